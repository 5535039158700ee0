/* Sampling profiler: is this still the process, or the thread, that it was?

   C code may fork without a word to the interpreter.  Then there is no clock
   in the child, and nobody knows what other threads of its parent had
   begun.

   C code may go on with a thread state on another thread.  pthread_self() does
   not tell: the next thread often has that of the last. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "common.h"

#include <unistd.h>                   // getpid()

/* 0: nobody has asked yet. */
static _Py_thread_local int own_native_id;

int
_PySampling_OwnNativeId(void)
{
    if (own_native_id == 0) {
        own_native_id = (int)PyThread_get_thread_native_id();
    }
    return own_native_id;
}

void
_PySampling_ForgetNativeId(void)
{
    own_native_id = 0;
}

int
_PySampling_ForkedWithoutHooks(void)
{
    const struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    return state->tables != NULL
        && (state->is_unheard_child || state->owner_pid != (int)getpid());
}
