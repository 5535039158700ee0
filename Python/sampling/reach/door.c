/* Sampling profiler: the door for another process that asks.

   Owns who may ask, when a question is answered, and how the answer gets to
   the client.  Must not know what is said.

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
#include <fcntl.h>                    // open()
#include <stddef.h>                   // offsetof()
#include <stdio.h>                    // snprintf()
#include <stdlib.h>                   // strtoul()
#include <sys/auxv.h>                 // getauxval()
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* What the kernel gives in place of users that a namespace does not know. */
#define OVERFLOW_UID 65534

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


/* The client. */

/* A socket that the client has bound.  -1: there is none, as of a request that
   comes late. */
static int
connect_to_client(uint64_t request)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[40];
    int size = snprintf(name, sizeof(name), "sampleprof-%016llx",
                        (unsigned long long)request);
    memcpy(address.sun_path + 1, name, (size_t)size);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    0);
    if (fd >= 0
        && connect(fd, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path)
                               + 1 + (size_t)size)) != 0)
    {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Does the namespace of users have that number, or does it stand for all that
   are not known? */
static int
is_mapped(unsigned long uid)
{
    char map[512];
    int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, map, sizeof(map) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    map[Py_MAX(size, 0)] = '\0';
    // Lines of: first inside, first outside, how many.
    for (char *at = map; *at != '\0'; ) {
        unsigned long first = strtoul(at, &at, 10);
        (void)strtoul(at, &at, 10);
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (end == at) {
            break;
        }
        if (uid >= first && uid - first < number) {
            return 1;
        }
        at = end + strspn(end, " \n");
    }
    return 0;
}

/* The right to send a signal is the kernel's to give; it says nothing of who
   has bound the socket. */
static _PySampling_Answer
may_ask(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return _PySampling_NOT_YOURS;
    }
    if (peer.uid == 0) {
        return _PySampling_ANSWERED;
    }
    if (peer.uid == OVERFLOW_UID && !is_mapped(OVERFLOW_UID)) {
        return _PySampling_UNMAPPED;
    }
    if (peer.uid != geteuid()) {
        return _PySampling_NOT_YOURS;
    }
    return prctl(PR_GET_DUMPABLE) == 1 ? _PySampling_ANSWERED
                                       : _PySampling_PROTECTED;
}

/* One message, and the descriptor of the records (-1: none). */
static void
send_answer(int fd, const struct _sampling_answer *answer, int records_fd)
{
    struct iovec part = {(void *)answer, sizeof(*answer)};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof(control));
    if (records_fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &records_fd, sizeof(int));
    }
    // If it does not take this, it has gone.
    (void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What is said is told by `say`, NULL: nothing. */
static void
answer_client(uint64_t request, _PySampling_Answer refusal, int at_safepoint,
              void (*say)(struct _sampling_records *, const struct turn *),
              const struct turn *turn)
{
    uint64_t begin_ns = _PySampling_MonotonicNow();
    int fd = connect_to_client(request);
    if (fd < 0) {
        return;
    }
    struct _sampling_answer answer = {
        .magic = {'s', 'a', 'm', 'p', 'l', 'e', 'n', 'g'},
        .protocol = _PySampling_PROTOCOL,
        .answer = (uint32_t)may_ask(fd),
        .pid = (uint32_t)getpid(),
        .at_safepoint = (uint32_t)at_safepoint,
        .version = PY_VERSION,
    };
    if (answer.answer == _PySampling_ANSWERED) {
        answer.answer = (uint32_t)refusal;
    }
    struct _sampling_records records = {.fd = -1};
    if (answer.answer == _PySampling_ANSWERED && say != NULL) {
        if (_PySampling_RecordsOpen(&records)) {
            say(&records, turn);
            answer.first = (uint64_t)(records.first - (char *)records.known);
            answer.num_bytes = (uint64_t)(records.at - records.first);
        }
        else {
            answer.answer = _PySampling_NO_SPACE;
        }
    }
    answer.took_ns = _PySampling_MonotonicNow() - begin_ns;
    send_answer(fd, &answer, records.fd);
    if (records.fd >= 0) {
        _PySampling_RecordsClose(&records);
    }
    close(fd);
}


/* The turn to say something. */

enum {TURN_TAKEN, TURN_PASSED_ON, TURN_LATER};

static void
pass_on(uint64_t request, unsigned long native_id)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = SIGURG;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)request;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)native_id, SIGURG,
            &info);
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
    pass_on(request, native_id);
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
say_stacks(struct _sampling_records *r, const struct turn *turn)
{
    _PySampling_Dump(r, _PyInterpreterState_Main(), turn->holder,
                     turn->is_asleep);
}

static void
say_tasks(struct _sampling_records *r, const struct turn *Py_UNUSED(turn))
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
    int is_dump = _PySampling_VerbOf(request) == _PySampling_ASK_DUMP;
    if (has_audit_hooks(interp) || (!is_dump && turn->holder != NULL)) {
        put_off(request, interp, turn->holder);
        return;
    }
    PyThreadState *own = pose_as(
        turn->holder != NULL ? turn->holder : interp->threads.head);
    answer_client(request, _PySampling_ANSWERED, 0,
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
        answer_client(request, _PySampling_ENDS, 0, NULL, NULL);
        return;
    }
    if (_PySampling_VerbOf(request) == _PySampling_ASK_HELLO) {
        answer_client(request, _PySampling_ANSWERED, 0, NULL, NULL);
        return;
    }
    switch (begin_turn(&turn, request)) {
    case TURN_TAKEN:
        answer_in_turn(request, interp, &turn);
        end_turn(&turn);
        break;
    case TURN_LATER:
        answer_client(request, _PySampling_ASK_AGAIN, 0, NULL, NULL);
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
    struct turn turn = {.gil = tstate->interp->ceval.gil, .holder = tstate};
    answer_client(request, refusal, 1,
                  _PySampling_VerbOf(request) == _PySampling_ASK_DUMP
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
    STATE->reach.pid = (int)getpid();
    _PySampling_SignalArm(handle_request);
}
