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
// Takes the stack at a tick whose clocks are given; `is_in_c`: its leaf may be
// in C code.  Returns 0 if there was no space.
extern int _PySampling_Capture(PyThreadState *tstate,
                               _PySampling_Thread *thread,
                               uint64_t wall_ns, uint64_t cpu_ns,
                               int is_in_c);
// The tick that is due and that no signal came for, if there is one: at a
// safepoint, or when the run has ended.  `was_overdue`: one was when it ended.
extern void _PySampling_CaptureDue(PyThreadState *tstate,
                                   _PySampling_Thread *thread);
extern void _PySampling_CaptureLast(PyThreadState *tstate,
                                    _PySampling_Thread *thread,
                                    int was_overdue, int is_in_c);
// The buffer, ready for the current session, or a new one in its place.  NULL:
// no memory.  Called with the GIL of its interpreter.
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

// sample/account.c.
extern void _PySampling_AccountStart(_PySampling_Thread *thread,
                                     uint64_t wall_ns);
// Is the last reading of the thread's CPU clock old enough for a tick to read
// it once more?  Async-signal-safe.
extern int _PySampling_AccountWantsCpu(const _PySampling_Thread *thread,
                                       uint64_t wall_ns);
// How long it has run by then, since the last reading.
extern uint64_t _PySampling_AccountUnread(const _PySampling_Thread *thread);
// What the thread has spent with the GIL since the last call, up to a moment
// whose clocks are given; the CPU clock may not have been read (0).
// Async-signal-safe.
extern struct _sampling_time
_PySampling_AccountRun(_PySampling_Thread *thread, uint64_t wall_ns,
                       uint64_t cpu_ns);
extern void _PySampling_AccountExclude(_PySampling_Thread *thread,
                                       _PySampling_Exclusion excluded);
// From now on the thread works for others, or for the program again: what it
// carries of the one is set aside.
extern void _PySampling_AccountSetAside(_PySampling_Thread *thread,
                                        _PySampling_Exclusion excluded);
// When its run ended, which is about to give up the GIL: after RunEnd().
extern uint64_t _PySampling_AccountRunEnd(_PySampling_Thread *thread);
// The interval off the GIL begins.  `took_time`: the hook has done more since
// then than its usual work.
extern void _PySampling_AccountDetach(_PySampling_Thread *thread,
                                      int took_time);
extern void _PySampling_AccountAttach(_PySampling_Thread *thread);

// What is to be recorded of an interval off the GIL.
struct _sampling_off_gil {
    uint64_t blocked_ns;
    uint64_t wait_ns;
    // It waited from then until then; or the moment that stands for all waits
    // since the one before.
    uint64_t wait_from_ns;
    uint64_t wait_until_ns;
    uint64_t cpu_ns;
    uint64_t blocked_until_ns;
    int is_block_exact;         // it weighs what it took
    // If it was short, it shares CPU time with others: what it stands for, and
    // what there is to share.
    uint64_t cpu_span_ns;
    uint64_t shared_cpu_ns;
    int is_in_c;
};

// The interval that ends now, if it is one of the many that are short and
// cover no point: it is carried.  Returns 0 if it is another one: then nothing
// is done.
extern int _PySampling_AccountShort(_PySampling_Thread *thread,
                                    uint64_t now_ns);
// Any interval; what is not to be recorded is carried.  `all`: it is not to
// wait for a point.
extern void _PySampling_AccountOffGIL(_PySampling_Thread *thread,
                                      uint64_t now_ns, int all,
                                      struct _sampling_off_gil *off);
// What the profiler did at both ends of the interval, the same way.  Returns 0
// if nothing is to be recorded.
extern int _PySampling_AccountHooks(_PySampling_Thread *thread,
                                    uint64_t now_ns,
                                    struct _sampling_off_gil *off);
// Is it off the GIL, for long?
extern int _PySampling_AccountIsLong(const _PySampling_Thread *thread,
                                     uint64_t now_ns);
// Has it not run for so long that its samples wait no longer?
extern int _PySampling_AccountIsIdle(const _PySampling_Thread *thread,
                                     uint64_t now_ns);
// The calling thread's CPU time, and how long it has waited for its GIL in
// this session.  Returns 0 if it takes no part.
extern int _PySampling_ThreadTimes(PyThreadState *tstate, uint64_t *cpu_ns,
                                   uint64_t *gil_wait_ns);
// Carries what it has spent with the GIL.
extern void _PySampling_AccountAdvance(_PySampling_Thread *thread,
                                       uint64_t now_ns);

typedef struct _sampling_leftover {
    struct _sampling_time run;
    uint64_t off_cpu_ns;
    uint64_t blocked_ns;
    uint64_t wait_ns;
} _PySampling_Leftover;

// All that is carried.
extern _PySampling_Leftover
_PySampling_AccountTakeAll(_PySampling_Thread *thread);
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
// What the thread did at a tick of which it was only left a note.
extern void _PySampling_RecordNote(PyThreadState *tstate,
                                   _PySampling_Thread *thread);
// What the profiler did at both ends of an interval off the GIL, up to now.
// Returns 0 if nothing was recorded.
extern int _PySampling_RecordHooks(PyThreadState *tstate,
                                   _PySampling_Thread *thread,
                                   uint64_t now_ns);
// What it took to record that, at the same place.
extern int _PySampling_RecordHooksAgain(_PySampling_Thread *thread,
                                        uint64_t now_ns);
// The interval off the GIL that ends now; `all` of it, however short.
extern void _PySampling_RecordOffGIL(PyThreadState *tstate,
                                     _PySampling_Thread *thread,
                                     uint64_t now_ns, int all);
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

// sample/leftover.c.  The same.
// The interval off the GIL that goes on, if it is long.
extern void _PySampling_RecordBlocked(_PySampling_Thread *thread,
                                      uint64_t now_ns);
// Everything up to now.
extern void _PySampling_RecordAll(_PySampling_Thread *thread, uint64_t now_ns);
// The same at the end of the thread or of the session.
extern void _PySampling_RecordEnd(_PySampling_Thread *thread, uint64_t now_ns);

// sample/weights.c.  Lock: tables_mutex.
struct _sampling_pending {
    struct _sampling_event record;  // without weights
    struct _sampling_time span;     // what its ticks stand for
};
extern void _PySampling_Weigh(_PySampling_Thread *thread,
                              _PySampling_Window window,
                              const struct _sampling_pending *sample,
                              struct _sampling_time time);
extern int _PySampling_WeighAll(_PySampling_Thread *thread,
                                _PySampling_Window window,
                                struct _sampling_time time);

extern void _PySampling_WeighNothing(_PySampling_Thread *thread);
extern size_t _PySampling_WeightsBytes(const _PySampling_Thread *thread);

// sample/holders.c.  Which part of a wait for the GIL another thread had it,
// and where it was: at most two frames, a Python function and the C function
// that it calls.
typedef struct _sampling_wait_part {
    uint32_t holder_thread;     // row, or _PySampling_NO_THREAD: not known
    uint32_t holder_node;
    uint64_t wall_ns;
} _PySampling_WaitPart;
// A wait is charged to at most so many holders: that bounds what it costs.
#define _PySampling_MAX_WAIT_PARTS 8
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_HoldersInit(PyInterpreterState *interp);
extern void _PySampling_HoldersFini(PyInterpreterState *interp);
extern size_t
_PySampling_HoldersBytes(const struct _sampling_interpreter_state *s);
// The thread has the GIL; all its time up to now is recorded or carried.
extern void _PySampling_HoldersTake(_PySampling_Thread *thread);
// A sample of the holder.
extern void _PySampling_HoldersSaw(_PySampling_Thread *thread, uint32_t node,
                                   uint64_t time_ns);
extern void _PySampling_HoldersSawRoot(_PySampling_Thread *thread);
// Who had the GIL while `thread` waited for it: [from_ns, to_ns) in parts,
// which add up to it and are valid until the next call; or at one moment.
// With that GIL, and tables_mutex locked.
extern int
_PySampling_HoldersSplit(_PySampling_Thread *thread, uint64_t from_ns,
                         uint64_t to_ns,
                         const struct _sampling_wait_part **parts);
extern struct _sampling_wait_part
_PySampling_HolderAt(_PySampling_Thread *thread, uint64_t moment_ns);
// Of a wait that no moment is known of.  With tables_mutex locked.
extern struct _sampling_wait_part _PySampling_HolderNotKnown(void);

// sample/delays.c.  Lock: tables_mutex.
// The thread did this at a moment that stands for `span_ns`, or for a while.
extern void
_PySampling_DelaysSawSample(_PySampling_Thread *thread,
                            const struct _sampling_event *record,
                            uint64_t span_ns);
extern void
_PySampling_DelaysSawInterval(_PySampling_Thread *thread,
                              const struct _sampling_event *record,
                              uint64_t from_ns, uint64_t until_ns);
// A task has waited for its loop, unseen, since that moment.
extern void _PySampling_DelaysCharge(_PySampling_Thread *thread,
                                     uint64_t since_ns);
// All that is not recorded yet.
extern void _PySampling_DelaysFlush(_PySampling_Thread *thread);
extern size_t _PySampling_DelaysBytes(const _PySampling_Thread *thread);

#endif  // !Py_SAMPLING_SAMPLE_H
