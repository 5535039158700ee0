/* Sampling profiler: the thread that writes the profile of -X sampleprof.

   Owns that thread, and when a process ends that a signal ends by its default
   action, or os._exit().  Must not know how a profile is written
   (session/autostart.c).

   No thread of the program runs Python code for that: it may hold any lock, or
   have no stack left, and a handler of the program's signals may raise in it.
   A thread of our own has waited for this moment.  It takes the GIL, and if
   the process ends at once it keeps it from the program's threads from then
   on: they stop as soon as they want to run Python again.

       a signal:   its handler ------> writer thread ---> the signal once more,
                                                          by its default action
       os._exit(): calling thread -->  writer thread ---> _exit()
       the end, or exec: the caller -> writer thread ---> the caller goes on,
                                                          or a signal that came
                                                          meanwhile ends it

   A process that is not done after LIMIT_S ends without a profile: some thread
   may keep the GIL for ever. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_Main()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* Docker kills after ten. */
#define LIMIT_S 5

#define POLL_US 1000

/* Encoders need little of it: calls from Python to Python take none. */
#define STACK_BYTES (1024 * 1024)

/* Signals that ask a process to end: terminals and shells, alarm(), and those
   by which schedulers of jobs announce the end, or limit CPU time.  Those of
   crashes end one as it is. */
static const int ENDING_SIGNALS[] = {
    SIGTERM, SIGHUP, SIGINT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGPIPE};

struct _sampling_ending {
    pthread_t thread;
    sem_t orders;               // it waits for one
    // Writes what there is, or the profile that is handed over, attached.
    void (*write)(PyThreadState *tstate, struct _sampling_profile *handed);
    sem_t written;              // what was handed over
    // Atomic.
    struct _sampling_profile *handed;
    int signum;                 // by which the process is to end
    uint64_t limit_ns;          // no later than that; written before signum
    int is_exiting;             // os._exit() was called
    int is_done;                // the profile is written
    int is_over;                // nothing more is to be written
};


/* Ends the process by the signal's default action.  Async-signal-safe.
   Returns only in the first process of a container, which ignores it. */
static void
die_by(int signum)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signum, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signum);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), signum);
}

/* The first process of a container is not ended by a signal that it does not
   handle. */
static int
is_first_process(void)
{
    return getpid() == 1;
}

/* When that time is over, the signal comes once more.  Async-signal-safe. */
static int
set_limit(int signum)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL,
        .sigev_signo = signum,
    };
    struct {
        long interval_s, interval_ns, value_s, value_ns;
    } limit = {.value_s = LIMIT_S};
    int id;
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0
        && syscall(SYS_timer_settime, id, 0, &limit, NULL) == 0;
}

static uint64_t
limit_from_now(void)
{
    return _PySampling_MonotonicNow() + (uint64_t)LIMIT_S * 1000000000u;
}

/* Returns whether the process is to end now.  A signal that is sent once more
   does not end what is under way, unless the limit is over. */
static int
begin_ending(struct _sampling_ending *ending, int signum)
{
    if (_Py_atomic_load_int(&ending->signum) != 0) {
        return _PySampling_MonotonicNow() >= ending->limit_ns;
    }
    ending->limit_ns = limit_from_now();
    int none = 0;
    if (!_Py_atomic_compare_exchange_int(&ending->signum, &none, signum)) {
        return 0;
    }
    return (!is_first_process() && !set_limit(signum))
        || sem_post(&ending->orders) != 0;
}

/* The call that the signal came in would fail if the handler returned, which
   no program expects that has not caught SIGPIPE.  Async-signal-safe. */
static void
wait_for_end(struct _sampling_ending *ending)
{
    while (_PySampling_MonotonicNow() < ending->limit_ns) {
        usleep(POLL_US);
    }
}

/* On any thread, maybe of a child that C code is about to make another
   program of.  Async-signal-safe. */
static void
handle_ending(int signum)
{
    int saved_errno = errno;
    struct _sampling_ending *ending = _Py_atomic_load_ptr(&STATE->ending);
    if (ending == NULL || _PySampling_ForkedWithoutHooks()
        // Who has the GIL cannot wait for the writer thread, which needs it.
        || (signum == SIGPIPE && _PyThreadState_GET() != NULL)
        || begin_ending(ending, signum))
    {
        die_by(signum);
    }
    else if (signum == SIGPIPE && !is_first_process()) {
        wait_for_end(ending);
        die_by(signum);
    }
    errno = saved_errno;
}


/* One thread writes at a time, or waits for what it has handed over: the main
   thread at the end of the process, or the writer thread; or, before, one
   whose time is over. */

void
_PySampling_SetWriter(PyThreadState *tstate)
{
    _Py_atomic_store_ptr(&STATE->exit_writer, tstate);
}

int
_PySampling_AnotherWrites(PyThreadState *tstate)
{
    PyThreadState *writer = _Py_atomic_load_ptr(&STATE->exit_writer);
    return writer != NULL && writer != tstate;
}

static void
let_others_run(void)
{
    Py_BEGIN_ALLOW_THREADS
    usleep(POLL_US);
    Py_END_ALLOW_THREADS
}

/* If it is exiting the process, this is the end, and the status is left to it.
   Without a profile to write this thread would not have run again. */
void
_PySampling_WaitForWriter(PyThreadState *tstate)
{
    while (_PySampling_AnotherWrites(tstate)) {
        let_others_run();
    }
}


/* The writer thread. */

static PyThreadState *
attach_writer(void)
{
    PyThreadState *tstate = PyThreadState_New(_PyInterpreterState_Main());
    if (tstate != NULL) {
        // It is no part of the profile.
        ((_PyThreadStateImpl *)tstate)->sampling.is_excluded =
            _PySampling_HELPER;
        (void)_Py_atomic_add_int(&STATE->num_helpers, 1);
        PyEval_AcquireThread(tstate);
    }
    return tstate;
}

/* Whoever else writes may be about to hand it over. */
static void
write_by(struct _sampling_ending *ending, PyThreadState *tstate)
{
    struct _sampling_profile *handed = NULL;
    while ((handed = _Py_atomic_exchange_ptr(&ending->handed, NULL)) == NULL
           && _PySampling_AnotherWrites(tstate))
    {
        let_others_run();
    }
    PyThreadState *caller = STATE->exit_writer;
    _PySampling_SetWriter(tstate);
    ending->write(tstate, handed);
    _PySampling_SetWriter(caller);
    if (handed != NULL) {
        sem_post(&ending->written);
    }
}

/* The program goes on.  Its profile up to now is there, whatever ends it. */
static void
write_and_go_on(struct _sampling_ending *ending)
{
    PyThreadState *tstate = attach_writer();
    if (tstate != NULL) {
        write_by(ending, tstate);
        PyThreadState_Clear(tstate);
        PyThreadState_DeleteCurrent();
    }
    else if (_Py_atomic_load_ptr(&ending->handed) != NULL) {
        sem_post(&ending->written);     // the caller takes it back
    }
}

static void
write_and_end(struct _sampling_ending *ending, int signum)
{
    PyThreadState *tstate = attach_writer();
    if (tstate != NULL) {
        _Py_atomic_store_int(&STATE->parks_threads, 1);
        write_by(ending, tstate);
    }
    _Py_atomic_store_int(&ending->is_done, 1);
    if (signum != 0) {
        die_by(signum);
    }
    for (;;) {
        pause();                // it has the GIL: nobody else runs
    }
}

static void *
run_writer(void *arg)
{
    struct _sampling_ending *ending = arg;
    prctl(PR_SET_NAME, "sampleprof-end");
    for (;;) {
        while (sem_wait(&ending->orders) != 0) {
            // Interrupted by a debugger.
        }
        int signum = _Py_atomic_load_int(&ending->signum);
        if (signum != 0 && is_first_process()) {
            write_and_go_on(ending);    // it would have ended nothing
            _Py_atomic_store_int(&ending->signum, 0);
        }
        else if (signum != 0 || _Py_atomic_load_int(&ending->is_exiting)) {
            write_and_end(ending, signum);
        }
        else if (_Py_atomic_load_ptr(&ending->handed) != NULL) {
            write_and_go_on(ending);
        }
        else if (_Py_atomic_load_int(&ending->is_over)) {
            return NULL;        // the process ends as it should
        }
    }
}


/* From the beginning of the session to its end. */

/* Replaces one of the handlers by the other, where it is in place. */
static void
replace_handlers(PyOS_sighandler_t old, PyOS_sighandler_t new)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(ENDING_SIGNALS); i++) {
        struct sigaction action;
        if (sigaction(ENDING_SIGNALS[i], NULL, &action) == 0
            && (action.sa_flags & SA_SIGINFO) == 0
            && action.sa_handler == old)
        {
            action.sa_handler = new;
            action.sa_flags = SA_RESTART | SA_ONSTACK;
            sigaction(ENDING_SIGNALS[i], &action, NULL);
        }
    }
}

/* Without memory or a thread for it, a process that ends at once leaves no
   profile. */
void
_PySampling_EndingBegin(void (*write)(PyThreadState *tstate,
                                      struct _sampling_profile *handed))
{
    struct _sampling_ending *ending = calloc(1, sizeof(*ending));
    if (ending == NULL) {
        return;
    }
    ending->write = write;
    sem_init(&ending->orders, 0, 0);
    sem_init(&ending->written, 0, 0);
    if (_PySampling_StartThread(&ending->thread, STACK_BYTES, run_writer,
                                ending) != 0)
    {
        free(ending);
        return;
    }
    _Py_atomic_store_ptr(&STATE->ending, ending);
    replace_handlers(SIG_DFL, handle_ending);
}

static void
dismiss(struct _sampling_ending *ending)
{
    _Py_atomic_store_int(&ending->is_over, 1);
    sem_post(&ending->orders);
}

static void
end_by_signal(struct _sampling_ending *ending)
{
    int signum = _Py_atomic_load_int(&ending->signum);
    if (signum != 0 && !is_first_process()) {
        die_by(signum);
    }
}

int
_PySampling_EndingWrite(struct _sampling_profile *profile)
{
    struct _sampling_ending *ending = STATE->ending;
    if (ending == NULL) {
        return 0;
    }
    _Py_atomic_store_ptr(&ending->handed, profile);
    sem_post(&ending->orders);
    Py_BEGIN_ALLOW_THREADS
    while (sem_wait(&ending->written) != 0) {
        // Interrupted by a signal.
    }
    Py_END_ALLOW_THREADS
    if (_Py_atomic_exchange_ptr(&ending->handed, NULL) != NULL) {
        return 0;
    }
    end_by_signal(ending);
    return 1;
}

/* Nothing more is to be written.  Does not return if a signal has come.  The
   caller is still the one that writes: who waits for that waits on. */
void
_PySampling_EndingOver(void)
{
    struct _sampling_ending *ending = STATE->ending;
    if (ending == NULL) {
        return;
    }
    replace_handlers(handle_ending, SIG_DFL);
    end_by_signal(ending);
    if (_Py_atomic_load_int(&ending->signum) == 0) {
        dismiss(ending);
        Py_BEGIN_ALLOW_THREADS
        pthread_join(ending->thread, NULL);
        Py_END_ALLOW_THREADS
    }
    // A thread may be in the handler: the memory stays.
    _Py_atomic_store_ptr(&STATE->ending, NULL);
}

/* No thread of the program takes part any more: ours must not keep the
   process. */
void
_PySampling_EndingAbandon(void)
{
    struct _sampling_ending *ending =
        _Py_atomic_exchange_ptr(&STATE->ending, NULL);
    if (ending != NULL) {
        dismiss(ending);
    }
}

/* In the child of a fork: the thread is not there. */
void
_PySampling_EndingForget(void)
{
    STATE->ending = NULL;
    STATE->parks_threads = 0;
}

int
_PySampling_EndingHasThread(void)
{
    return STATE->ending != NULL;
}


/* Hooks. */

PyOS_sighandler_t
_PySampling_EndingHandlerFor(int signum, PyOS_sighandler_t handler)
{
    int is_one = 0;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(ENDING_SIGNALS); i++) {
        is_one |= signum == ENDING_SIGNALS[i];
    }
    return is_one && handler == SIG_DFL && STATE->ending != NULL
        ? handle_ending : handler;
}

int
_PySampling_IsEndingHandler(PyOS_sighandler_t handler)
{
    return handler == handle_ending;
}

/* The thread never runs Python again. */
void
_PySampling_ParkAtEnding(void)
{
    (void)PyEval_SaveThread();
    for (;;) {
        pause();
    }
}

void
_PySampling_BeforeExit(void)
{
    struct _sampling_ending *ending = STATE->ending;
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_WaitForWriter(tstate);
    if (ending == NULL || !STATE->exit_session
        || _PySampling_ForkedWithoutHooks()
        || _Py_atomic_load_ptr(&STATE->exit_writer) == tstate
        || _PyInterpreterState_GetFinalizing(tstate->interp) != NULL)
    {
        return;
    }
    uint64_t limit_ns = limit_from_now();
    (void)PyEval_SaveThread();
    if (!_Py_atomic_exchange_int(&ending->is_exiting, 1)) {
        sem_post(&ending->orders);
    }
    while (!_Py_atomic_load_int(&ending->is_done)
           && _PySampling_MonotonicNow() < limit_ns)
    {
        usleep(POLL_US);
    }
}
