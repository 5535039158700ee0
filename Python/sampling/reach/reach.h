/* Sampling profiler: another process asks this one.

   A request is a SIGURG that carries 64 bits: a number that nobody can guess,
   in whose name the client has bound a socket, an argument, and a verb.  No
   request runs code of the client's, names a file or changes the program.

   What the client gets is a message and, for most verbs, a descriptor of
   memory that holds records (reach/records.c). */

#ifndef Py_SAMPLING_REACH_H
#define Py_SAMPLING_REACH_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../base/common.h"

#include <signal.h>                   // siginfo_t

/* Rises with each change of what is said: another version is not read. */
#define _PySampling_PROTOCOL 2

/* --- A request: 4 bits of verb, and 60 that nobody can guess. */

typedef enum {
    _PySampling_ASK_HELLO = 1,
    _PySampling_ASK_DUMP,       // stacks of all threads, at this instruction
    _PySampling_ASK_TASKS,      // tasks, at a safepoint or while nobody runs
    _PySampling_ASK_WATCH,      // samples, by orders over the connection
} _PySampling_Verb;

static inline _PySampling_Verb
_PySampling_VerbOf(uint64_t request)
{
    return (_PySampling_Verb)(request & 15);
}

// Ask a process, by a thread of it.  Return 0, or -1 with errno.
extern int _PySampling_SendRequest(pid_t pid, pid_t native_id,
                                   uint64_t request);

/* --- The answer.  Lib/profile_sampling/_reach/door.py has the same. */

typedef enum {
    _PySampling_ANSWERED = 0,
    _PySampling_ASK_AGAIN,      // it is between two states: in a millisecond
    _PySampling_NOT_YOURS,      // the client is of another user
    _PySampling_PROTECTED,      // the process gave up rights
    _PySampling_UNMAPPED,       // all users of its namespace look the same
    _PySampling_VETOED,         // by an audit hook
    _PySampling_ENDS,           // it is about to end, or to begin
    _PySampling_NO_SPACE,       // no memory or descriptor for the answer
    _PySampling_BUSY,           // others watch: who; or it cannot begin
} _PySampling_Answer;

struct _sampling_answer {
    char magic[8];              // "sampleng"
    uint32_t protocol;
    uint32_t answer;            // _PySampling_Answer
    uint32_t pid;               // in the process's own namespace
    uint32_t at_safepoint;      // or in the signal handler
    uint64_t first;             // byte of the records in the memory
    uint64_t num_bytes;         // of them
    uint64_t took_ns;           // that the program stood still
    char version[32];           // of Python
};

/* --- Orders of who watches, over the connection that WATCH was answered on.
   --- Each is answered, the second and third with samples since the last. */

typedef enum {
    _PySampling_ORDER_BEGIN = 1,
    _PySampling_ORDER_SLICE,
    _PySampling_ORDER_END,
} _PySampling_OrderVerb;

struct _sampling_order {
    uint32_t verb;              // _PySampling_OrderVerb
    // Of the first; but for the last two 0 or -1 is what holds already.
    int32_t mode;
    int32_t rate_hz;
    int32_t depth_frames;
    int32_t names;
    uint32_t has_moments;
    uint64_t alloc_bytes;       // 0: allocations are not sampled
};

// A code object of ten thousand instructions fits.
#define _PySampling_SCRATCH_BYTES ((size_t)256 << 10)

/* --- Records (reach/records.c).  Async-signal-safe. */

typedef enum {
    _PySampling_RECORD_MOMENT = 1,
    _PySampling_RECORD_GIL,
    _PySampling_RECORD_CODE,
    _PySampling_RECORD_THREAD,
    _PySampling_RECORD_FRAME,
    _PySampling_RECORD_CALLEE,
    _PySampling_RECORD_LEFT_OUT,
    _PySampling_RECORD_LOCK,
    _PySampling_RECORD_CALL,
    _PySampling_RECORD_FILE,
    _PySampling_RECORD_LABEL,
    _PySampling_RECORD_TASK,
    _PySampling_RECORD_CUT,
    _PySampling_RECORD_UNSURE,  // the thread may have run meanwhile
    _PySampling_RECORD_PART,    // of a profile: its name, and numbers
    _PySampling_RECORD_REQUEST,
} _PySampling_RecordKind;

struct _sampling_records {
    char *first;
    char *begin;                // of the record that is being written
    char *at;
    char *end;
    size_t all_bytes;
    int is_full;                // what came last is not there
    int fd;                     // of the memory
    const void **known;         // addresses that have a record
    struct _sampling_slots *slots;      // of one frame (native/operands.c)
    char *scratch;              // for copies of one frame
};

extern int _PySampling_RecordsOpen(struct _sampling_records *r,
                                   size_t max_bytes);
extern void _PySampling_RecordsClose(struct _sampling_records *r);
// A record from its beginning to its end; one that has no space is left out,
// and all after it.
extern void _PySampling_RecordBegin(struct _sampling_records *r,
                                    _PySampling_RecordKind kind);
extern void _PySampling_RecordEnd(struct _sampling_records *r);
// The last record: something is left out.
extern void _PySampling_RecordCut(struct _sampling_records *r);
extern void _PySampling_PutNumber(struct _sampling_records *r, uint64_t n);
extern void _PySampling_PutBytes(struct _sampling_records *r,
                                 const void *bytes, size_t size);
// A str, as UTF-8; other objects are "".
extern void _PySampling_PutText(struct _sampling_records *r, PyObject *text);
// Is it the first time?
extern int _PySampling_IsNew(struct _sampling_records *r,
                             const void *address);

/* --- What there is to say.  Async-signal-safe; nobody but the caller runs
   --- Python code meanwhile. */

// reach/dump.c
// `is_asleep`: the holder stands in no handler, but in a system call.
extern void _PySampling_Dump(struct _sampling_records *r,
                             PyInterpreterState *interp,
                             PyThreadState *holder, int is_asleep);
// reach/copies.c.  The stack of a thread that sleeps with the GIL.
extern void _PySampling_PutSleeper(struct _sampling_records *r,
                                   PyThreadState *tstate);
// reach/tasks.c
extern void _PySampling_DumpTasks(struct _sampling_records *r,
                                  PyInterpreterState *interp);
// reach/frames.c.  A frame of Python code, the innermost of those that are
// said one after the other; `is_in_c`: what it calls may be C code.  `key`:
// the address of its code, of which the frame may have a copy.
extern void _PySampling_PutFrame(struct _sampling_records *r,
                                 PyInterpreterState *interp,
                                 struct _PyInterpreterFrame *frame,
                                 const void *key, int is_in_c);
// reach/locks.c
extern void _PySampling_PutLocks(struct _sampling_records *r,
                                 PyInterpreterState *interp,
                                 struct _PyInterpreterFrame *frame,
                                 int is_innermost);
// reach/parts.c.  Not async-signal-safe; needs no GIL.
struct _sampling_profile;
// `now`: of a profile with allocations.
struct _sampling_resident;
extern void _PySampling_PutProfile(struct _sampling_records *r,
                                   const struct _sampling_profile *profile,
                                   const struct _sampling_resident *now);
// Bytes that have a name.
extern void _PySampling_PutPart(struct _sampling_records *r, const char *name,
                                const void *bytes, size_t size);
// reach/kernel.c.  What the kernel says of a thread.
extern void _PySampling_PutKernel(struct _sampling_records *r, int native_id);
// Is it in a system call?
extern int _PySampling_Sleeps(int native_id);

// reach/client.c.  Answers a request, with what `say` tells of `arg` unless it
// is NULL; a refusal needs none, but may have it.  Returns 0 if the client is
// gone.  Async-signal-safe if `say` is; with the GIL or without.
typedef void (*_PySampling_SayFunc)(struct _sampling_records *, const void *);
extern int _PySampling_AnswerWith(uint64_t request, _PySampling_Answer refusal,
                                  int at_safepoint, _PySampling_SayFunc say,
                                  const void *arg);

// A connection that is kept.  With the GIL, but for ClientAnswer and ClientTake.
struct _sampling_client {
    int fd;                     // -1: there is none
    uint64_t cookie;            // of the socket: the program may have closed
                                // it, and have the number now
    uint32_t pid;               // the client's in our namespace, or 0
};
// They return 0 if the client is gone, or does not take what it asks for.
extern int _PySampling_ClientConnect(struct _sampling_client *client,
                                     uint64_t request);
extern int _PySampling_ClientAnswer(const struct _sampling_client *client,
                                    _PySampling_Answer refusal,
                                    _PySampling_SayFunc say, const void *arg);
// Waits for an order.
extern int _PySampling_ClientTake(const struct _sampling_client *client,
                                  struct _sampling_order *order,
                                  int limit_ms);
// Whoever waits for an order gets none any more.
extern void _PySampling_ClientWake(const struct _sampling_client *client);
extern void _PySampling_ClientClose(struct _sampling_client *client);
// In the child of a fork: it is the parent's.
extern void _PySampling_ClientForget(struct _sampling_client *client);

// reach/watch.c.  At a safepoint: from now on somebody takes orders.
extern void _PySampling_WatchBegin(uint64_t request);
// In the child of a fork: nobody watches.
extern void _PySampling_WatchForget(void);

#endif  // !Py_SAMPLING_REACH_H
