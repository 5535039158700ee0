/* As changed_clock.h, for the profiler, too: that asks the C library itself.
   Here, it asks whoever comes first. */

#include "changed_clock.h"

#include <string.h>

__attribute__((visibility("default")))
void *
dlopen(const char *file, int mode)
{
    void *(*open)(const char *, int) =
        (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    int is_libc = file != NULL && strcmp(file, "libc.so.6") == 0;
    return open(is_libc ? NULL : file, mode);
}
