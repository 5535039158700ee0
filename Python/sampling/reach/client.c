/* Sampling profiler: the client that asks, and how it gets its answer.

   Owns who may ask, and the connection: one message and the descriptor of
   memory that has the records.  Must not know when it is answered, nor what is
   said.  Async-signal-safe; waits for nobody. */

#include "Python.h"

#include "reach.h"

#include <fcntl.h>                    // open()
#include <stddef.h>                   // offsetof()
#include <stdio.h>                    // snprintf()
#include <stdlib.h>                   // strtoul()
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* What the kernel gives in place of users that a namespace does not know. */
#define OVERFLOW_UID 65534

/* Pages that are not written are not there.  Of a dump ten thousand frames in
   a thousand functions take one megabyte. */
#define MAX_DUMP_BYTES ((size_t)8 << 20)
#define MAX_PROFILE_BYTES ((size_t)256 << 20)


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

int
_PySampling_AnswerWith(uint64_t request, _PySampling_Answer refusal,
                       int at_safepoint,
                       void (*say)(struct _sampling_records *, const void *),
                       const void *arg)
{
    uint64_t begin_ns = _PySampling_MonotonicNow();
    int fd = connect_to_client(request);
    if (fd < 0) {
        return 0;
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
        if (_PySampling_RecordsOpen(
                &records, _PySampling_VerbOf(request) >= _PySampling_ASK_WATCH
                          ? MAX_PROFILE_BYTES : MAX_DUMP_BYTES))
        {
            say(&records, arg);
            if (records.is_full) {
                _PySampling_RecordCut(&records);
            }
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
    return 1;
}
