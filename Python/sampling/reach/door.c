/* Sampling profiler: the door for another process that asks.

   Owns when a question is answered: nobody may run Python code meanwhile.
   Must not know who may ask (reach/client.c), nor what is said.

   While nobody asks there is a handler of a signal that is ignored by default,
   and nothing else: no thread, no file, no descriptor.  The handler connects
   to the client, sends its answer without waiting and closes the connection,
   so a client that dies or never reads costs nothing that lasts.

   Nobody may run Python code while stacks are walked.  There are three ways:

     the thread holds the GIL:   it stands in this handler
     nobody holds the GIL:       the handler has the mutex that one needs to
                                 take it
     it sleeps with the GIL:     the same mutex keeps it from giving the GIL
                                 up; its own stack is copied (copies.c)

   Else the signal goes on to the thread that holds it.  So a program that
   hangs answers, too, as long as that thread takes signals. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_initconfig.h"        // _Py_GetEnv()
#include "pycore_interp.h"            // PyInterpreterState.ceval
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "../clock/clock.h"
#include "../native/native.h"         // _PySampling_MemoryInit()
#include "door.h"
#include "reach.h"

#include <errno.h>
#include <sys/auxv.h>                 // getauxval()
#include <sys/syscall.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* Who holds the mutex of the GIL does so for less than a microsecond; unless
   the thread that holds it is this one. */
#define MUTEX_SPINS 1000

/* Nobody but the caller runs Python code. */
struct turn {
    struct _gil_runtime_state *gil;
    PyThreadState *holder;      // NULL: nobody
    int is_asleep;              // the holder, in a system call
    int has_mutex;
};


/* The turn to say something. */

enum {TURN_TAKEN, TURN_PASSED_ON, TURN_LATER};

int
_PySampling_SendRequest(pid_t pid, pid_t native_id, uint64_t request)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = SIGURG;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)request;
    return (int)syscall(SYS_rt_tgsigqueueinfo, pid, native_id, SIGURG, &info);
}

/* From here on nobody else runs Python code, to EndTurn(). */
static int
begin_turn(struct turn *turn, uint64_t request)
{
    PyThreadState *tstate = _PyThreadState_GET();
    turn->has_mutex = turn->is_asleep = 0;
    turn->holder = tstate;
    if (tstate != NULL && tstate->interp->ceval.gil == turn->gil) {
        return TURN_TAKEN;
    }
    for (int i = 0; pthread_mutex_trylock(&turn->gil->mutex) != 0; i++) {
        if (i == MUTEX_SPINS) {
            return TURN_LATER;
        }
        _PySampling_Relax();
    }
    turn->has_mutex = 1;
    turn->holder = NULL;
    if (!_Py_atomic_load_int_relaxed(&turn->gil->locked)) {
        return TURN_TAKEN;
    }
    // Alive: to give the GIL up takes the mutex.
    turn->holder = _Py_atomic_load_ptr_relaxed(&turn->gil->last_holder);
    unsigned long native_id =
        turn->holder != NULL ? turn->holder->native_thread_id : 0;
    if (native_id == (unsigned long)syscall(SYS_gettid)) {
        return TURN_TAKEN;      // it has just taken it, or is to drop it
    }
    turn->is_asleep = native_id != 0 && _PySampling_Sleeps((int)native_id);
    if (turn->is_asleep && STATE->memory.can_readv) {
        return TURN_TAKEN;
    }
    pthread_mutex_unlock(&turn->gil->mutex);
    if (native_id == 0) {
        return TURN_LATER;
    }
    (void)_PySampling_SendRequest(getpid(), (pid_t)native_id, request);
    return TURN_PASSED_ON;
}

static void
end_turn(struct turn *turn)
{
    if (turn->has_mutex) {
        pthread_mutex_unlock(&turn->gil->mutex);
    }
}


/* Requests. */

static void
say_stacks(struct _sampling_records *r, const void *arg)
{
    const struct turn *turn = arg;
    _PySampling_Dump(r, _PyInterpreterState_Main(), turn->holder,
                     turn->is_asleep);
}

static void
say_tasks(struct _sampling_records *r, const void *Py_UNUSED(turn))
{
    _PySampling_DumpTasks(r, _PyInterpreterState_Main());
}

static int
has_audit_hooks(PyInterpreterState *interp)
{
    return _PyRuntime.audit_hooks.head != NULL || interp->audit_hooks != NULL;
}

/* At the next safepoint of the holder, or of whoever runs next. */
static void
put_off(uint64_t request, PyInterpreterState *interp, PyThreadState *holder)
{
    _Py_atomic_store_uint64(&STATE->reach.pending, request);
    if (holder != NULL) {
        _Py_set_eval_breaker_bit(holder, _PY_SAMPLING_BIT);
        return;
    }
    for (PyThreadState *t = interp->threads.head; t != NULL; t = t->next) {
        _Py_set_eval_breaker_bit(t, _PY_SAMPLING_BIT);
    }
}

/* What names types asks which thread state is the current one, as the turn is
   as good as the GIL. */
static PyThreadState *
pose_as(PyThreadState *tstate)
{
    PyThreadState *before = _Py_tss_tstate;
    _Py_tss_tstate = tstate;
    return before;
}

static void
answer_in_turn(uint64_t request, PyInterpreterState *interp,
               const struct turn *turn)
{
    int verb = (int)_PySampling_VerbOf(request);
    int is_dump = verb == _PySampling_ASK_DUMP;
    if (has_audit_hooks(interp) || verb == _PySampling_ASK_WATCH
        || (!is_dump && turn->holder != NULL))
    {
        put_off(request, interp, turn->holder);
        return;
    }
    PyThreadState *own = pose_as(
        turn->holder != NULL ? turn->holder : interp->threads.head);
    (void)_PySampling_AnswerWith(request, _PySampling_ANSWERED, 0,
                                 is_dump ? say_stacks : say_tasks, turn);
    (void)pose_as(own);
}

/* On any thread.  Async-signal-safe. */
static void
handle_request(const void *siginfo)
{
    const siginfo_t *info = siginfo;
    uint64_t request = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    PyInterpreterState *interp = _PyInterpreterState_Main();
    if (getpid() != STATE->reach.pid) {
        return;     // of a child that is not whole, or not yet
    }
    struct turn turn = {.gil = NULL};
    if (interp == NULL || _PyRuntimeState_GetFinalizing(&_PyRuntime) != NULL
        || (turn.gil = interp->ceval.gil) == NULL)
    {
        (void)_PySampling_AnswerWith(request, _PySampling_ENDS, 0, NULL,
                                     NULL);
        return;
    }
    switch (_PySampling_VerbOf(request)) {
    case _PySampling_ASK_HELLO:
        (void)_PySampling_AnswerWith(request, _PySampling_ANSWERED, 0, NULL,
                                     NULL);
        return;
    default:
        break;
    }
    switch (begin_turn(&turn, request)) {
    case TURN_TAKEN:
        answer_in_turn(request, interp, &turn);
        end_turn(&turn);
        break;
    case TURN_LATER:
        (void)_PySampling_AnswerWith(request, _PySampling_ASK_AGAIN, 0, NULL,
                                     NULL);
        break;
    }
}

void
_PySampling_AnswerPending(PyThreadState *tstate)
{
    if (!_Py_IsMainInterpreter(tstate->interp)
        || _Py_atomic_load_uint64_relaxed(&STATE->reach.pending) == 0)
    {
        return;
    }
    uint64_t request = _Py_atomic_exchange_uint64(&STATE->reach.pending, 0);
    if (request == 0) {
        return;
    }
    _PySampling_Answer refusal = _PySampling_ANSWERED;
    PyObject *exc = PyErr_GetRaisedException();
    if (PySys_Audit("profile_sampling.reach", "i",
                    (int)_PySampling_VerbOf(request)) < 0)
    {
        PyErr_Clear();
        refusal = _PySampling_VETOED;
    }
    PyErr_SetRaisedException(exc);
    if (refusal == _PySampling_ANSWERED
        && _PySampling_VerbOf(request) == _PySampling_ASK_WATCH)
    {
        _PySampling_WatchBegin(request);
        return;
    }
    struct turn turn = {.gil = tstate->interp->ceval.gil, .holder = tstate};
    (void)_PySampling_AnswerWith(
        request, refusal, 1,
        refusal != _PySampling_ANSWERED ? NULL
        : _PySampling_VerbOf(request) == _PySampling_ASK_DUMP
            ? say_stacks : say_tasks, &turn);
}


/* Arming. */

static int
is_switched_off(const PyConfig *config)
{
    const wchar_t *option =
        _Py_get_xoption(&config->xoptions, L"sampleprof-attach");
    if (option != NULL) {
        const wchar_t *equals = wcschr(option, L'=');
        return equals != NULL && wcscmp(equals + 1, L"0") == 0;
    }
    const char *variable =
        _Py_GetEnv(config->use_environment, "PYTHONSAMPLEPROFATTACH");
    return variable != NULL && strcmp(variable, "0") == 0;
}

void
_PySampling_ReachBegin(PyThreadState *tstate)
{
    const PyConfig *config = _PyInterpreterState_GetConfig(tstate->interp);
    if (!config->install_signal_handlers || is_switched_off(config)
        || getauxval(AT_SECURE))
    {
        return;
    }
    _PySampling_MemoryInit();
    (void)_PySampling_MonotonicNow();   // finds the clock: no handler may
    STATE->reach.pid = (int)getpid();
    STATE->reach.forget = _PySampling_WatchForget;
    _PySampling_SignalArm(handle_request);
}
