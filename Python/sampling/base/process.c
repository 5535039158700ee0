/* Sampling profiler: is this still the process, or the thread, that it was?

   C code may fork without a word to the interpreter.  Then there is no clock
   in the child, and nobody knows what other threads of its parent had
   begun.

   C code may go on with a thread state on another thread.  pthread_self() does
   not tell: the next thread often has that of the last.

   Owns how threads of our own are started, too. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>             // getrusage()
#include <unistd.h>                   // getpid()

/* 0: nobody has asked yet. */
static _Py_thread_local int own_native_id;

/* How often the calling thread has gone to sleep, and 1. */
uint64_t
_PySampling_OwnSleeps(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0
        ? 1 + (uint64_t)usage.ru_nvcsw : 0;
}

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
    return _Py_atomic_load_ptr_relaxed(&state->tables) != NULL
        && (state->is_child_of_c_code || state->owner_pid != (int)getpid());
}

/* A thread of our own, which handles no signal of the program's.  Returns an
   error number, as pthread_create() does. */
int
_PySampling_StartThread(pthread_t *thread, size_t stack_bytes,
                        void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack_bytes);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(thread, &attr, run, arg);
    if (err == EINVAL) {
        // The thread-local storage of some library does not fit.
        err = pthread_create(thread, NULL, run, arg);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return err;
}
