/* Sampling profiler: a process that forks.

   Owns what parent and child do around it, also if C code forks without a word
   to the interpreter.  Must not know how a session is begun anew in the child
   (session/autostart.c). */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_unset_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_pythread.h"          // _PyThread_at_fork_reinit()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../alloc/alloc.h"
#include "../clock/clock.h"
#include "../sinks/sinks.h"
#include "session.h"

#include <pthread.h>                  // pthread_atfork()
#include <unistd.h>                   // getpid()

#define STATE (&_PyRuntime.sampling)

/* The thread that forks, if it is sampled. */
static _PySampling_Thread *
forking_thread(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    return _PySampling_ACTIVE() && tstate != NULL
        ? _PySampling_RECORD_OF(tstate) : NULL;
}

void
_PySampling_BeforeFork(void)
{
    // Older kernels begin anew when a signal comes, which in a large process
    // would be for ever.
    _PySampling_Thread *own = forking_thread();
    if (own != NULL) {
        _PySampling_RunEnd(own);
    }
    // So that the child finds lists and tables whole.
    PyMutex_LockFlags(&STATE->control_mutex, _Py_LOCK_DONT_DETACH);
    _PySampling_LockRegistry();
    _PySampling_LockTables();
}

void
_PySampling_AfterForkParent(void)
{
    _PySampling_EmitEvent(PySampling_FORK, PySampling_NO_THREAD, 0, 0, 0);
    _PySampling_UnlockTables();
    _PySampling_UnlockRegistry();
    PyMutex_Unlock(&STATE->control_mutex);
    _PySampling_Thread *own = forking_thread();
    if (own != NULL) {
        _PySampling_RunBegin(own, _PySampling_PENDING);
    }
}

/* In the child: what is in progress is the parent's to end, and what waited is
   its to deliver. */
static void
forget_sinks(void)
{
    while (STATE->sinks != NULL) {
        struct _sampling_sink *sink = STATE->sinks;
        STATE->sinks = sink->next;
        _PySampling_SinkForget(sink);
        sink->is_linked = sink->is_open = 0;
    }
    STATE->num_profiles = 0;
    _PySampling_SinkFree(STATE->session);
    STATE->session = NULL;
}

/* The thread that woke the clock, or was about to wait, is gone. */
static void
renew_wakeups(void)
{
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        struct _sampling_wakeup *wakeup = interp->sampling.wakeup;
        if (wakeup != NULL) {
            // Without memory for a new lock the old one does as well, unless
            // another thread was just about to use it.
            (void)_PyThread_at_fork_reinit(&wakeup->lock);
            PyThread_acquire_lock(wakeup->lock, NOWAIT_LOCK);
            wakeup->is_pending = 0;
        }
    }
}

/* In the child of any fork, before all else.  If C code has forked, it is all
   that is ever done: nothing is sampled, and nobody waits for what threads of
   the parent had locked, or the clock had begun.  Async-signal-safe. */
static void
rest_in_child(void)
{
    _PySampling_ForgetNativeId();
    _PyMutex_at_fork_reinit(&STATE->control_mutex);
    _PyMutex_at_fork_reinit(&STATE->mutex);
    _PyMutex_at_fork_reinit(&STATE->tables_mutex);
    _PySampling_AllocForget();
    STATE->active = 0;
    STATE->is_child_of_c_code = 1;
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        if (sink->is_subscription) {
            sink->is_open = 0;
            sink->ended_by_fork = 1;
        }
    }
    STATE->num_helpers = 0;
    STATE->exit_writer = NULL;
    STATE->exit_by_exec = 0;
    _PySampling_EndingForget();
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        return;
    }
    // Who gives the GIL up on request waits until another thread has it: here
    // there is none, and it was maybe the profiler's own that had asked.
    _Py_unset_eval_breaker_bit(tstate, _PY_GIL_DROP_REQUEST_BIT);
    // Whatever thread it was in the parent.
    ((_PyThreadStateImpl *)tstate)->sampling.is_excluded =
        _PySampling_NOT_EXCLUDED;
    _PySampling_Thread *own = _PySampling_RECORD_OF(tstate);
    if (own != NULL) {
        (void)_PySampling_RunSet(own, _PySampling_INACTIVE);
        own->excluded = _PySampling_NOT_EXCLUDED;
    }
}

static void
watch_forks(void)
{
    // Without memory for it, C code that forks takes a risk.
    (void)pthread_atfork(NULL, NULL, rest_in_child);
}

void
_PySampling_WatchForks(void)
{
    static pthread_once_t is_watched = PTHREAD_ONCE_INIT;
    pthread_once(&is_watched, watch_forks);
}

/* The child has one thread and no clock.  If the session goes on there, it
   begins anew when the child is a whole process (session/autostart.c). */
void
_PySampling_AfterForkChild(void)
{
    rest_in_child();
    STATE->is_child_of_c_code = 0;
    if (STATE->reach.pid != 0) {
        STATE->reach.pid = STATE->memory.pid = (int)getpid();
        STATE->reach.pending = 0;
        STATE->reach.forget();
    }
    renew_wakeups();
    forget_sinks();
    _PySampling_AllocAfterFork();
    _PySampling_CountAfterFork(_PyThreadState_GET(), STATE->exit_session
                                                     && STATE->exit_children);
    STATE->num_regions = 0;
    STATE->num_forks++;
    if (STATE->tables == NULL) {
        return;
    }
    if (STATE->exit_session && STATE->exit_children) {
        STATE->exit_goes_on = 1;
        if (STATE->session_options.signal != STATE->signal) {
            // The program has taken it meanwhile; any other will do.
            STATE->session_options.signal = 0;
        }
    }
    _PySampling_ClockForget();
    STATE->exit_session = 0;
    STATE->epoch++;
    _PySampling_TablesFree(STATE->tables);
    STATE->tables = NULL;
}

int
_PySampling_CountProfilerThreads(void)
{
    _PySampling_LockRegistry();
    int has_clock = _PySampling_ClockHasThread();
    _PySampling_UnlockRegistry();
    return has_clock + _PySampling_EndingHasThread() + STATE->num_helpers;
}
