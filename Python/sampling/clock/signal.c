/* Sampling profiler: the signal by which the clock asks.

   Owns which signal it is, its handler, and what the program had there before:
   takes a signal that is free, leaves it to a program that wants it, moves to
   another, gives it back.  Must not know when the signal is sent, to whom, or
   what its handler does. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "clock.h"
#include "inside.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>


/* Others forward or repeat signals by chance: only one that carries a word is
   a request. */
static void
handle_request(int Py_UNUSED(signum), siginfo_t *info, void *Py_UNUSED(context))
{
    void (*answer)(const void *) = _PyRuntime.sampling.reach.answer;
    if (info->si_code == SI_QUEUE && answer != NULL) {
        int saved_errno = errno;
        answer(info);
        errno = saved_errno;
    }
}

static void
handle_signal(int signum, siginfo_t *info, void *context)
{
    if (info->si_code == SI_QUEUE && signum == SIGURG) {
        handle_request(signum, info, context);
        return;
    }
    _PyRuntime.sampling.handler(signum, info, context);
}

static int
has_handler(const struct sigaction *action,
            void (*handler)(int, siginfo_t *, void *))
{
    return (action->sa_flags & SA_SIGINFO) != 0
        && action->sa_sigaction == handler;
}

static int
set_handler(int signum, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler};
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    return sigaction(signum, &action, NULL);
}

/* Installs the handler for a signal that nobody uses. */
static int
install_handler(struct _sampling_signal *signal, int signum)
{
    struct sigaction action;
    if (sigaction(signum, NULL, &action) != 0
        || ((action.sa_flags & SA_SIGINFO) != 0
            && !has_handler(&action, handle_request))
        || ((action.sa_flags & SA_SIGINFO) == 0
            && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
    {
        return -1;
    }
    signal->old_action = action;
    return set_handler(signum, handle_signal);
}

void
_PySampling_SignalArm(void (*answer)(const void *siginfo))
{
    struct sigaction action;
    _PyRuntime.sampling.reach.answer = answer;
    if (sigaction(SIGURG, NULL, &action) == 0
        && (action.sa_flags & SA_SIGINFO) == 0
        && action.sa_handler == SIG_DFL)
    {
        (void)set_handler(SIGURG, handle_request);
    }
}

int
_PySampling_IsArmedHandler(PyOS_sighandler_t handler)
{
    return (void *)handler == (void *)handle_request;
}

/* May the clock have sent the signal?  If the user's queue
   of pending signals is full (RLIMIT_SIGPENDING), the kernel has no space for
   who sent it and says that it was process 0. */
int
_PySampling_IsFromClock(const siginfo_t *info)
{
    return info->si_code == SI_TKILL
        ? info->si_pid == _PyRuntime.sampling.owner_pid
        : info->si_code == SI_USER && info->si_pid == 0;
}

static int
handler_is_ours(int signum)
{
    struct sigaction action;
    return sigaction(signum, NULL, &action) == 0
        && has_handler(&action, handle_signal);
}

int
_PySampling_SignalIsOurs(void)
{
    return handler_is_ours(_PyRuntime.sampling.signal);
}

/* Linux has such a call return -EINTR. */
int
_PySampling_HasCutCall(void *context)
{
    const ucontext_t *uc = context;
#if defined(__x86_64__)
    // The instruction leaves the address that follows it in RCX.
    const greg_t *r = uc->uc_mcontext.gregs;
    return r[REG_RCX] == r[REG_RIP] && r[REG_RAX] == -EINTR;
#elif defined(__aarch64__)
    const uint32_t svc_0 = 0xd4000001;
    const uint32_t *pc = (const uint32_t *)uc->uc_mcontext.pc;
    return pc[-1] == svc_0 && (int64_t)uc->uc_mcontext.regs[0] == -EINTR;
#else
    (void)uc;
    return 0;
#endif
}

/* The signals a program may name: those that report no fault of its own and
   that the kernel lets be handled. */
int
_PySampling_IsUsableSignal(int signum)
{
    switch (signum) {
    case SIGURG: case SIGUSR1: case SIGUSR2: case SIGPROF: case SIGVTALRM:
    case SIGIO: case SIGWINCH:
        return 1;
    default:
        return signum >= SIGRTMIN && signum <= SIGRTMAX;
    }
}

/* SIGURG is ignored by default, so that one that arrives after an exec harms
   nobody.  Next come real-time signals, from the top: what uses them starts at
   the bottom. */
static int
install_any_handler(struct _sampling_signal *signal)
{
    if (install_handler(signal, SIGURG) == 0) {
        return SIGURG;
    }
    for (int signum = SIGRTMAX; signum >= SIGRTMIN; signum--) {
        if (install_handler(signal, signum) == 0) {
            return signum;
        }
    }
    return 0;
}

/* Takes the signal that the session's options name, or any that is free.
   Returns 0 if the program has a handler for it. */
int
_PySampling_SignalTake(struct _sampling_signal *signal)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    int signum = state->options.signal;
    if (signum == 0) {
        signum = install_any_handler(signal);
    }
    else if (install_handler(signal, signum) != 0) {
        signum = 0;
    }
    if (signum == 0) {
        return 0;
    }
    state->signal = signum;
    return 1;
}

static void
take_another(struct _sampling_signal *signal)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    int signum = install_any_handler(signal);
    if (signum == 0) {
        signal->is_gone = 1;
        return;
    }
    state->signal = signum;
    _PySampling_COUNT(signals_moved, 1);
}

/* Ignoring a signal drops what is pending of it, in all threads: the default
   action of most signals ends the process. */
static void
restore_action(int signum, const struct sigaction *old_action)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(signum, &ignore, NULL);
    sigaction(signum, old_action, NULL);
}

/* C code may install a handler of its own at any time: then the signal is the
   program's, and another one is used. */
void
_PySampling_SignalCheckOwner(struct _sampling_signal *signal)
{
    if (!signal->is_gone
        && !handler_is_ours(_PyRuntime.sampling.signal))
    {
        take_another(signal);
    }
}

/* Python code calls a hook beforehand, so that not one of our signals gets to
   its handler. */
void
_PySampling_SignalLeave(struct _sampling_signal *signal)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (signal->is_gone) {
        return;
    }
    int signum = state->signal;
    struct sigaction old_action = signal->old_action;
    take_another(signal);
    if (handler_is_ours(signum)) {
        restore_action(signum, &old_action);
    }
}

/* What the program has set for the signal, whose handler is `handler` now.
   With the registry locked. */
PyOS_sighandler_t
_PySampling_SignalHandlerOfProgram(const struct _sampling_signal *signal,
                                   PyOS_sighandler_t handler)
{
    return (void *)handler == (void *)handle_signal
        ? (has_handler(&signal->old_action, handle_request)
           ? SIG_DFL : signal->old_action.sa_handler)
        : handler;
}

/* Gives the signal back, unless someone has taken it over meanwhile. */
void
_PySampling_SignalGiveBack(struct _sampling_signal *signal)
{
    int signum = _PyRuntime.sampling.signal;
    if (handler_is_ours(signum)) {
        restore_action(signum, &signal->old_action);
    }
}


/* The thread's mask. */

int
_PySampling_BlocksSignal(int signum)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0
        && sigismember(&blocked, signum) == 1;
}

void
_PySampling_ReadMask(_PySampling_Thread *thread)
{
    int blocks = _PySampling_BlocksSignal(_PyRuntime.sampling.signal);
    _Py_atomic_store_int(&thread->mask, blocks ? _PySampling_BLOCKS_SIGNAL
                                               : _PySampling_TAKES_SIGNAL);
}

/* Takes back the signal that was sent to this thread, which blocks it.  The
   clock may have moved to another one since, because C code has installed a
   handler of its own: that handler must not get ours.  One that somebody else
   has sent is put back as it was.  Returns 0 if none of ours waited. */
int
_PySampling_TakeBackSignal(_PySampling_Thread *thread, int signum)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signum);
    struct timespec now = {0, 0};
    siginfo_t info;
    // Not sigtimedwait(): glibc's reports SI_TKILL as SI_USER.
    if (syscall(SYS_rt_sigtimedwait, &set, &info, &now, _NSIG / 8)
            != signum)
    {
        return 0;
    }
    if (_PySampling_IsFromClock(&info)) {
        return 1;
    }
    syscall(SYS_rt_tgsigqueueinfo,
            _PyRuntime.sampling.owner_pid, thread->native_id,
            signum, &info);
    return 0;
}
