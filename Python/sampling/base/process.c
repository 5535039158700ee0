/* Sampling profiler: is this still the process that it was?

   C code may fork without a word to the interpreter.  Then there is no clock
   in the child, and nobody knows what other threads of its parent had
   begun. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "common.h"

#include <unistd.h>                   // getpid()

int
_PySampling_ForkedWithoutHooks(void)
{
    const struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    return state->tables != NULL
        && (state->is_unheard_child || state->owner_pid != (int)getpid());
}
