/* Sampling profiler: WHAT a sample is: captures, stacks, threads' time
   and how it is recorded. */

#ifndef Py_SAMPLING_SAMPLE_H
#define Py_SAMPLING_SAMPLE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "../sinks/sinks.h"

// sample/capture.c.
extern void _PySampling_SignalHandler(int signum, void *info, void *context);
// A tick that was overdue, if it is due by now: at a safepoint, or when the
// run has ended.
extern void _PySampling_CaptureOverdue(PyThreadState *tstate,
                                       _PySampling_Thread *thread,
                                       int is_in_c);
// sample/buffer.c.  The buffer, ready for the current session, or a new one in
// its place.  NULL: no memory.  Called with the GIL of its interpreter.
extern struct _sampling_buffer *
_PySampling_BufferEnsure(struct _sampling_buffer *buffer);
extern size_t
_PySampling_BufferBytes(const struct _sampling_buffer *buffer);
extern void _PySampling_BufferForgetCode(struct _sampling_buffer *buffer,
                                         PyCodeObject *code);
extern void _PySampling_BufferFree(struct _sampling_buffer *buffer);

// sample/stack.c.  Lock: tables_mutex.
struct _sampling_tables;
// The node of a stack that was copied, leaf first.
extern uint32_t _PySampling_InternStack(struct _sampling_tables *tables,
                                        struct _sampling_buffer *buffer,
                                        PyThreadState *tstate,
                                        const _PySampling_Frame *frames,
                                        int depth);
// The stack of `tstate`, which must not run meanwhile, as a node of the
// tables; with the C function that its leaf is in, if it `is_in_c` now.
extern uint32_t _PySampling_WalkNode(PyThreadState *tstate,
                                     _PySampling_Thread *thread,
                                     int is_in_c);

// The same of a thread in C code, without some of its innermost frames.
extern uint32_t _PySampling_OuterNode(PyThreadState *tstate,
                                      _PySampling_Thread *thread,
                                      int skip_frames);

// The same for a thread that slept with the GIL until now, with the C function
// that it slept in, if the clock has seen it.
extern uint32_t _PySampling_SleeperNode(PyThreadState *tstate,
                                        _PySampling_Thread *thread);

// The same without the innermost frame.
extern uint32_t _PySampling_CallerNode(PyThreadState *tstate,
                                       _PySampling_Thread *thread);

// The node of its outermost frames only.
extern uint32_t _PySampling_RootNode(PyThreadState *tstate,
                                     _PySampling_Thread *thread);

// More than a tick takes from a thread whose CPU it shares.
#define _PySampling_TICK_TAKES_NS 150000

// sample/account.c.
extern void _PySampling_AccountStart(_PySampling_Thread *thread,
                                     uint64_t wall_ns);
// What the thread has spent since the last call, up to a moment whose clocks
// are given.  Async-signal-safe.
extern _PySampling_Time
_PySampling_AccountSpent(_PySampling_Thread *thread, uint64_t wall_ns,
                         uint64_t cpu_ns);
// Of a thread that is noted, and has not been asked since: how much of a span
// it was on a CPU, up to a moment whose CPU clock is given.
// Async-signal-safe.
extern uint64_t
_PySampling_AccountOnCpu(_PySampling_Thread *thread, uint64_t span_ns,
                         uint64_t until_ns, uint64_t cpu_ns);
// The calling thread's CPU time, and how long it has waited for its GIL in
// this session.  Returns 0 if it takes no part.
extern int _PySampling_ThreadTimes(PyThreadState *tstate, uint64_t *cpu_ns,
                                   uint64_t *gil_wait_ns);
// From now on `to` goes on with the clock of the OS thread they share.
extern void _PySampling_AccountHandOver(_PySampling_Thread *from,
                                        _PySampling_Thread *to);

// sample/record.c.  On the thread, or while it stands still and the caller has
// its GIL.

// Around all that makes records.  NULL: there are no tables for the thread any
// more, and nothing to close.
static inline struct _sampling_tables *
_PySampling_OpenTables(_PySampling_Thread *thread)
{
    _PySampling_LockTables();
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    if (tables == NULL) {
        _PySampling_UnlockTables();
    }
    return tables;
}

static inline void
_PySampling_CloseTables(void)
{
    _PySampling_UnlockTables();
}

// The captures that wait (_PySampling_HasCaptures() of buffer.h).  Allocates
// no Python object.
extern void _PySampling_Drain(PyThreadState *tstate,
                              _PySampling_Thread *thread);
// Of a thread that a tick has noted, in which state: what it did since then.
// For threads without Python, as it seems, if it waited.
extern void _PySampling_RecordNote(PyThreadState *tstate,
                                   _PySampling_Thread *thread, int state,
                                   uint64_t now_ns, int waits_for_others);
// A tick has met the end of its run: the holder was where it was before.
extern void _PySampling_RecordRunEnd(_PySampling_Thread *thread);
// Once per thread: under which frames its time goes if no tick hits it.
extern void _PySampling_RecordRoot(PyThreadState *tstate,
                                   _PySampling_Thread *thread);
// A sample of the program's own, of its caller.
extern void _PySampling_RecordCustom(PyThreadState *tstate,
                                     _PySampling_Thread *thread,
                                     uint64_t count, PyObject *pairs);
// Of a thread of another GIL, which cannot be asked any more.  With
// tables_mutex locked.
extern void _PySampling_RecordLost(_PySampling_Thread *thread,
                                   uint64_t now_ns);
// What it has spent off the GIL, if a tick has noted it there.
extern void _PySampling_RecordBlocked(_PySampling_Thread *thread,
                                      uint64_t now_ns);
// The session's time stands still, or goes on: the thread's clocks are read.
extern void _PySampling_RecordPause(_PySampling_Thread *thread);
// Everything up to now.
extern void _PySampling_RecordAll(_PySampling_Thread *thread, uint64_t now_ns);
// From now on the thread works for others, or for the program again.  On the
// thread itself, attached, with its captures drained.
extern void _PySampling_RecordExclude(_PySampling_Thread *thread,
                                      _PySampling_Exclusion excluded);

// sample/weights.c.  Lock: tables_mutex.
struct _sampling_pending {
    _PySampling_Record record;      // without weights
    struct _sampling_time span;     // what its ticks stand for
};
extern void _PySampling_Weigh(_PySampling_Thread *thread,
                              const struct _sampling_pending *sample,
                              struct _sampling_time time);
extern _PySampling_Time
_PySampling_WeighAll(_PySampling_Thread *thread, struct _sampling_time time);
extern void _PySampling_WeighNothing(_PySampling_Thread *thread);
extern size_t _PySampling_WeightsBytes(const _PySampling_Thread *thread);

// sample/holders.c.  Who had the GIL, and where it was: Python functions at
// their lines, and the C function that the innermost calls.
typedef struct _sampling_holder {
    uint32_t thread;            // row, or _PySampling_NO_THREAD: not known
    uint32_t node;
} _PySampling_Holder;
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_HoldersInit(PyInterpreterState *interp);
extern void _PySampling_HoldersFini(PyInterpreterState *interp);
extern size_t
_PySampling_HoldersBytes(const struct _sampling_interpreter_state *s);
// Ticks from that one on have found the holder there.
extern void _PySampling_HolderSampled(_PySampling_Thread *thread, uint32_t node,
                                   uint64_t first_tick);
// Who had the GIL at a tick that has found `thread` waiting for it.  With that
// GIL, and tables_mutex locked.
extern _PySampling_Holder
_PySampling_HolderAt(_PySampling_Thread *thread, uint64_t tick);

// sample/delays.c.  Lock: tables_mutex.
// The thread did this at a moment that stands for `span_ns`, or for a while.
extern void
_PySampling_DelaysSawSample(_PySampling_Thread *thread,
                            const _PySampling_Record *record,
                            uint64_t span_ns);
extern void
_PySampling_DelaysSawInterval(_PySampling_Thread *thread,
                              const _PySampling_Record *record,
                              uint64_t from_ns, uint64_t until_ns);
// A task has waited for its loop, unseen, since that moment.
extern void _PySampling_DelaysCharge(_PySampling_Thread *thread,
                                     uint64_t since_ns);
// All that is not recorded yet.
extern void _PySampling_DelaysFlush(_PySampling_Thread *thread);
extern size_t _PySampling_DelaysBytes(const _PySampling_Thread *thread);

#endif  // !Py_SAMPLING_SAMPLE_H
