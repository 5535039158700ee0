/* Sampling profiler: what the kernel says of a thread of this process.

   Owns which files of /proc are read: a process may read its own, whoever it
   is.  Must not know what the answer means: numbers of system calls are the
   client's to name.  Async-signal-safe. */

#include "Python.h"

#include "../native/native.h"
#include "reach.h"

#include <fcntl.h>                    // open()
#include <poll.h>
#include <stdio.h>                    // snprintf()
#include <stdlib.h>                   // strtoull()
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>


static int
read_file(const char *path, char *out, size_t space)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, out, space - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    out[Py_MAX(size, 0)] = '\0';
    return size > 0;
}

static int
read_call(int native_id, char *out, size_t space)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", native_id);
    return read_file(path, out, space);
}

int
_PySampling_Sleeps(int native_id)
{
    char call[32];
    return read_call(native_id, call, sizeof(call))
        && call[0] >= '0' && call[0] <= '9';
}

/* What a descriptor is, and who is at the other end. */
static void
put_file(struct _sampling_records *r, int fd)
{
    char path[64], target[512];
    struct sockaddr_storage peer;
    socklen_t peer_size = sizeof(peer);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t size = readlink(path, target, sizeof(target));
    if (size < 0) {
        return;
    }
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0) {
        peer_size = 0;
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_FILE);
    _PySampling_PutNumber(r, (uint64_t)fd);
    _PySampling_PutBytes(r, target, (size_t)size);
    _PySampling_PutBytes(r, &peer, Py_MIN(peer_size, sizeof(peer)));
    _PySampling_RecordEnd(r);
}

/* The descriptor that a system call waits for, or -1. */
static int
descriptor_of(unsigned long number, unsigned long long first,
              unsigned long long second)
{
    switch (number) {
    case SYS_read: case SYS_write: case SYS_readv: case SYS_writev:
    case SYS_pread64: case SYS_pwrite64:
    case SYS_recvfrom: case SYS_recvmsg: case SYS_sendto: case SYS_sendmsg:
    case SYS_accept: case SYS_accept4: case SYS_connect:
    case SYS_flock: case SYS_fsync: case SYS_fdatasync:
        return (int)first;
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: {
        // The client's side of most sockets with a timeout waits like this.
        struct pollfd only;
        return second == 1
                && _PySampling_ReadMemory(
                    NULL, (void *)(uintptr_t)first, &only, sizeof(only))
            ? only.fd : -1;
    }
    default:
        return -1;
    }
}

void
_PySampling_PutKernel(struct _sampling_records *r, int native_id)
{
    char call[256];
    if (!read_call(native_id, call, sizeof(call))) {
        return;
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_CALL);
    _PySampling_PutBytes(r, call, strcspn(call, "\n"));
    _PySampling_RecordEnd(r);
    char *at;
    unsigned long number = strtoul(call, &at, 10);
    if (at == call || call[0] == '-') {
        return;     // it runs
    }
    unsigned long long first = strtoull(at, &at, 16);
    unsigned long long second = strtoull(at, &at, 16);
    int fd = descriptor_of(number, first, second);
    if (fd >= 0) {
        put_file(r, fd);
    }
}
