/* Sampling profiler: what -X sampleprof or PYTHONSAMPLEPROF asks for.  Between
   session/options.c, which reads it, and session/autostart.c. */

#ifndef Py_SAMPLING_OPTIONS_H
#define Py_SAMPLING_OPTIONS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_sampling.h"

struct _sampling_request {
    const char *source;         // for messages: which text is meant
    wchar_t *text;              // of PyMem_RawMalloc()
    _PySampling_Options options;
    wchar_t *out;               // points into the text
    wchar_t *format;
    wchar_t *parent;            // what the first process said of itself
    int is_off;
    int children;               // -1: not given
    int is_per_process;         // the name of the file is
    int quiet;
    int duration_s;             // 0: to the end of the program
    int timeline;               // keep when samples were taken
    int is_inherited;           // from who started the program
};

// 1: the text is the caller's to free; 0: nothing is asked for; -1: it is not
// to be understood, which sys.stderr says.
extern int _PySampling_ReadOptions(const PyConfig *config,
                                   struct _sampling_request *request);

// Can the file be written, as far as can be known before the program runs?  If
// not, 0, and sys.stderr says why.  A relative name begins in *cwd*, or in the
// current directory if that is NULL.  *directory is what the file is to be in,
// open, or -1.
extern int _PySampling_CanWrite(const struct _sampling_request *request,
                                const char *cwd, int *directory);

// Says on sys.stderr, which escapes what the terminal cannot show, what is
// wrong with the text.  Returns -1.
extern int _PySampling_Complain(const struct _sampling_request *request,
                                const char *format, ...);

#endif  // !Py_SAMPLING_OPTIONS_H
