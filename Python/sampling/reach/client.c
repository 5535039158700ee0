/* Sampling profiler: the client that asks, and how it gets its answer.

   Owns who may ask, and the connection: one message and the descriptor of
   memory that has the records.  Must not know when it is answered, nor what is
   said.  Async-signal-safe; waits for nobody. */

#include "Python.h"

#include "reach.h"

#include <fcntl.h>                    // open()
#include <poll.h>
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

/* A connection that is kept has no number that the program's own would get:
   it may count on the next file being 0, 1 or 2. */
#define FIRST_KEPT_FD 200


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

/* One message, and the descriptor of the records (-1: none).  Returns 0 if the
   client does not take it: it has gone. */
static int
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
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static int
answer_on(int fd, size_t max_bytes, _PySampling_Answer refusal,
          int at_safepoint, _PySampling_SayFunc say, const void *arg)
{
    uint64_t begin_ns = _PySampling_MonotonicNow();
    struct _sampling_answer answer = {
        .magic = {'s', 'a', 'm', 'p', 'l', 'e', 'n', 'g'},
        .protocol = _PySampling_PROTOCOL,
        .answer = (uint32_t)may_ask(fd),
        .pid = (uint32_t)getpid(),
        .at_safepoint = (uint32_t)at_safepoint,
        .version = PY_VERSION,
    };
    struct _sampling_records records = {.fd = -1};
    if (answer.answer == _PySampling_ANSWERED) {
        answer.answer = (uint32_t)refusal;
        if (say != NULL && _PySampling_RecordsOpen(&records, max_bytes)) {
            say(&records, arg);
            if (records.is_full) {
                _PySampling_RecordCut(&records);
            }
            answer.first = (uint64_t)(records.first - (char *)records.known);
            answer.num_bytes = (uint64_t)(records.at - records.first);
        }
        else if (say != NULL) {
            answer.answer = _PySampling_NO_SPACE;
        }
    }
    answer.took_ns = _PySampling_MonotonicNow() - begin_ns;
    int is_taken = send_answer(fd, &answer, records.fd);
    if (records.fd >= 0) {
        _PySampling_RecordsClose(&records);
    }
    return is_taken;
}

int
_PySampling_AnswerWith(uint64_t request, _PySampling_Answer refusal,
                       int at_safepoint, _PySampling_SayFunc say,
                       const void *arg)
{
    int fd = connect_to_client(request);
    if (fd >= 0) {
        (void)answer_on(fd, MAX_DUMP_BYTES, refusal, at_safepoint, say, arg);
        close(fd);
    }
    return fd >= 0;
}


/* Connections that are kept. */

static uint64_t
cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);
    (void)getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size);
    return cookie;
}

/* Is it still there? */
static int
is_whole(const struct _sampling_client *client)
{
    return client->fd >= 0 && cookie_of(client->fd) == client->cookie;
}

int
_PySampling_ClientConnect(struct _sampling_client *client, uint64_t request)
{
    int fd = connect_to_client(request);
    if (fd < 0) {
        return 0;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_KEPT_FD);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    // The least there is: who never reads keeps a few slices, no more.
    int size = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    struct ucred peer = {0};
    socklen_t peer_size = sizeof(peer);
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size);
    client->pid = (uint32_t)peer.pid;
    client->cookie = cookie_of(fd);
    client->fd = fd;
    return 1;
}

int
_PySampling_ClientAnswer(const struct _sampling_client *client,
                         _PySampling_Answer refusal, _PySampling_SayFunc say,
                         const void *arg)
{
    return is_whole(client)
        && answer_on(client->fd, MAX_PROFILE_BYTES, refusal, 1, say, arg);
}

int
_PySampling_ClientTake(const struct _sampling_client *client,
                       struct _sampling_order *order, int limit_ms)
{
    struct pollfd wanted = {.fd = client->fd, .events = POLLIN};
    return is_whole(client)
        && poll(&wanted, 1, limit_ms) == 1
        && is_whole(client)
        && recv(client->fd, order, sizeof(*order), MSG_DONTWAIT)
           == (ssize_t)sizeof(*order);
}

void
_PySampling_ClientWake(const struct _sampling_client *client)
{
    if (is_whole(client)) {
        (void)shutdown(client->fd, SHUT_RD);
    }
}

void
_PySampling_ClientClose(struct _sampling_client *client)
{
    if (is_whole(client)) {
        // A child of a fork may have a copy.
        (void)shutdown(client->fd, SHUT_RDWR);
        close(client->fd);
    }
    client->fd = -1;
}

void
_PySampling_ClientForget(struct _sampling_client *client)
{
    if (is_whole(client)) {
        close(client->fd);
    }
    client->fd = -1;
}
