/* Sampling profiler: what its parts ask of each other, by the file that
   answers.  No other file of the interpreter needs it. */

#ifndef Py_INTERNAL_SAMPLING_PARTS_H
#define Py_INTERNAL_SAMPLING_PARTS_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling.h"

// sampling_config.c.  What to tell the user.
extern const char *_PySampling_Reason(_PySampling_Status status);

// sampling_process.c.  Is the file, whose name is the same in all processes,
// this one's to write?  -1 with an exception on failure.
extern int _PySampling_ClaimFile(void);

// sampling_fork.c.  Did C code fork without a word to the interpreter?  Then
// there is no clock in this process, and nobody knows what other threads of
// its parent had begun.
extern int _PySampling_IsForkedUnheard(void);
// From now on no fork goes unnoticed in the child.
extern void _PySampling_WatchForks(void);

// sampling.c.  Before the process ends: nobody gets samples any more.
extern void _PySampling_EndSubscriptions(PyThreadState *tstate);

// Is the thread's record of the session that runs?  A thread that waits for
// its GIL asks this, too: what it finds in the record is there, since the load
// pairs with the store in register_thread().
#define _PySampling_SESSION() \
    _Py_atomic_load_uint_relaxed(&_PyRuntime.sampling.session)
#define _PySampling_IN_SESSION(THREAD) \
    (_Py_atomic_load_uint(&(THREAD)->session) == _PySampling_SESSION())

// The tables that a thread's rows are in.  NULL: there are none any more,
// since a thread of another GIL has ended the session or begun new tables.
// Lock: tables_mutex.
#define _PySampling_TABLES_OF(THREAD) \
    (_PySampling_IN_SESSION(THREAD) \
     ? _PyRuntime.sampling.tables : NULL)

// Around what the signal handler of the same thread must not interrupt; they
// nest.
#define _PySampling_ENTER_HOOK(THREAD) \
    do { (THREAD)->in_hook++; _PySampling_FENCE(); } while (0)
#define _PySampling_LEAVE_HOOK(THREAD) \
    do { _PySampling_FENCE(); (THREAD)->in_hook--; } while (0)

// xorshift64 (Marsaglia, "Xorshift RNGs", 2003).  The state is never 0.
static inline uint64_t
_PySampling_NextRandom(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

// A period that varies by a quarter to both sides, so that a program with a
// rhythm of its own is not seen at the same beat each time.
static inline uint64_t
_PySampling_Jittered(uint64_t period_ns, uint64_t *random_state)
{
    uint64_t spread = period_ns / 4;
    return period_ns - spread
        + _PySampling_NextRandom(random_state) % (2 * spread + 1);
}

static inline void
_PySampling_AddTime(struct _sampling_time *to, struct _sampling_time time)
{
    to->wall_ns += time.wall_ns;
    to->cpu_ns += time.cpu_ns;
}

extern uint64_t _PySampling_MonotonicNow(void);
extern uint64_t _PySampling_WallNow(void);
extern uint64_t _PySampling_CpuNow(_PySampling_Thread *thread);

// sampling_clock.c.  Called with runtime->sampling.mutex held.
extern _PySampling_Status _PySampling_ClockStart(void);
extern void _PySampling_ClockTickAll(uint64_t wall_ns,
                                     struct _sampling_time distance);
// Somebody holds a GIL: the clock does not rest any more, unless it only needs
// to watch a run with a timer.
typedef enum {
    _PySampling_AWAKE = 0,
    _PySampling_WATCHES,        // now and then, whether signals are answered
    _PySampling_RESTS,
} _PySampling_Rest;
extern void _PySampling_ClockWakeUp(void);
static inline void
_PySampling_ClockWake(int is_timed)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    int *ran = is_timed ? &state->somebody_timed : &state->somebody_ran;
    if (!_Py_atomic_load_int_relaxed(ran)) {
        _Py_atomic_store_int_relaxed(ran, 1);
    }
    int wakes_up = is_timed ? _PySampling_RESTS : _PySampling_WATCHES;
    if (_Py_atomic_load_int(&state->clock_rests) >= wakes_up) {
        _PySampling_ClockWakeUp();
    }
}
// Called without it.
extern void _PySampling_ClockStop(_PySampling_Thread *caller);
extern void _PySampling_ClockRest(_PySampling_Thread *caller);
extern _PySampling_Status _PySampling_ClockResume(void);
extern void _PySampling_ClockSetPeriod(uint64_t period_ns);
extern void _PySampling_ClockForget(void);
// The last thread has ended: the sampler thread must not keep the process.
extern void _PySampling_ClockAbandon(void);
// On the thread itself: returns when no signal is on its way to it.
extern void _PySampling_ClockSettle(_PySampling_Thread *thread);
// Leaves the signal to the program and takes another.  On a thread that is
// settled, with runtime->sampling.mutex held.
extern void _PySampling_ClockLeaveSignal(void);
// sampling_timer.c.
extern int _PySampling_TimerBegin(_PySampling_Thread *thread,
                                  uint64_t from_ns);
extern int _PySampling_TimerIsSoon(_PySampling_Thread *thread);
extern int _PySampling_TimerTakeDue(_PySampling_Thread *thread,
                                    uint64_t now_ns);
extern uint64_t _PySampling_TimerHear(_PySampling_Thread *thread,
                                      uint64_t now_ns);
extern void _PySampling_TimerGoOn(_PySampling_Thread *thread,
                                  uint64_t deadline_ns, uint64_t ticked_ns);
extern int _PySampling_TimerEnd(_PySampling_Thread *thread);
extern int _PySampling_TimerTakeLast(_PySampling_Thread *thread,
                                     uint64_t now_ns);
extern void _PySampling_TimerResume(_PySampling_Thread *thread);
extern void _PySampling_TimersNoMore(void);
extern int _PySampling_HasOneGIL(void);
extern void _PySampling_TimerDelete(_PySampling_Thread *thread);
// sampling_signal.c.  May a program ask for this signal?  Async-signal-safe.
extern int _PySampling_IsUsableSignal(int signum);

// sampling_capture.c.
extern void _PySampling_SignalHandler(int signum, void *info, void *context);
// Takes the stack at a tick whose clocks are given; `is_in_c`: its leaf may be
// in C code.  Returns 0 if there was no room.
extern int _PySampling_Capture(PyThreadState *tstate,
                               _PySampling_Thread *thread,
                               uint64_t wall_ns, uint64_t cpu_ns,
                               int is_in_c);
// What the ticks stand for that have not been captured.
extern struct _sampling_time
_PySampling_TakeSpan(_PySampling_Thread *thread);
// At a safepoint or a detach: captures the tick that was put off, if it is due
// by now.  Returns 0 if not.
extern int _PySampling_CaptureOverdue(PyThreadState *tstate,
                                      _PySampling_Thread *thread,
                                      int is_in_c);
extern void _PySampling_CaptureDue(PyThreadState *tstate,
                                   _PySampling_Thread *thread);
extern void _PySampling_CaptureLast(PyThreadState *tstate,
                                    _PySampling_Thread *thread, int is_in_c);
extern void _PySampling_Drain(PyThreadState *tstate,
                              _PySampling_Thread *thread);
// The buffer, ready for the current session, or a new one in its place.  NULL:
// no memory.  Called with the GIL of its interpreter.
extern struct _sampling_buffer *
_PySampling_BufferFit(struct _sampling_buffer *buffer);
extern size_t
_PySampling_BufferBytes(const struct _sampling_buffer *buffer);
extern void _PySampling_BufferForgetCode(struct _sampling_buffer *buffer,
                                         PyCodeObject *code);
extern void _PySampling_BufferFree(struct _sampling_buffer *buffer);
// The stack of `tstate`, which must not run meanwhile, as a node of the
// tables; with the C function that its leaf is in, if it `is_in_c` now.  Lock:
// tables_mutex.
extern uint32_t _PySampling_WalkNode(PyThreadState *tstate,
                                     _PySampling_Thread *thread,
                                     int is_in_c);

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

// sampling_account.c.
extern void _PySampling_AccountStart(_PySampling_Thread *thread,
                                     uint64_t wall_ns);
// What the thread has spent with the GIL since the last call, up to a moment
// whose clocks are given.  Async-signal-safe.
extern struct _sampling_time
_PySampling_AccountRun(_PySampling_Thread *thread, uint64_t wall_ns,
                       uint64_t cpu_ns);
extern void _PySampling_AccountExclude(_PySampling_Thread *thread,
                                       _PySampling_Exclusion excluded);
extern void _PySampling_AccountDetach(_PySampling_Thread *thread);
extern void _PySampling_AccountAttach(PyThreadState *tstate,
                                      _PySampling_Thread *thread);
extern void _PySampling_AccountBlocked(_PySampling_Thread *thread,
                                       uint64_t wall_ns);
extern void _PySampling_AccountFlush(_PySampling_Thread *thread,
                                     uint64_t wall_ns);
extern void _PySampling_AccountEnd(_PySampling_Thread *thread,
                                   uint64_t wall_ns);
// From now on `to` goes on with the clock of the OS thread they share.
extern void _PySampling_AccountHandOver(_PySampling_Thread *from,
                                        _PySampling_Thread *to);

// sampling_weights.c.  Lock: tables_mutex.
extern void _PySampling_Weigh(_PySampling_Thread *thread,
                              _PySampling_Window window,
                              const struct _sampling_pending *sample,
                              struct _sampling_time time);
extern int _PySampling_WeighAll(_PySampling_Thread *thread,
                                _PySampling_Window window,
                                struct _sampling_time time);

// sampling_holders.c.  Which part of a wait for the GIL another thread had it,
// and where it was: at most two frames, a Python function and the C function
// that it calls.
typedef struct _sampling_wait_part {
    uint32_t holder_thread;     // row, or _PySampling_NO_THREAD: not known
    uint32_t holder_node;
    uint64_t wall_ns;
} _PySampling_WaitPart;
// A wait is booked on at most so many holders: that bounds what it costs.
#define _PySampling_MAX_WAIT_PARTS 8
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_HoldersInit(PyInterpreterState *interp);
extern void _PySampling_HoldersFini(PyInterpreterState *interp);
extern size_t
_PySampling_HoldersBytes(const struct _sampling_interpreter_state *s);
// The thread has the GIL; all its time up to now is booked or carried.
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

// sampling_siblings.c: the first three with the registry locked.
extern void _PySampling_SiblingsLink(_PySampling_Thread *thread,
                                     int is_alone);
extern void _PySampling_SiblingsUnlink(_PySampling_Thread *thread);
extern void _PySampling_SiblingsChoose(_PySampling_Thread *thread);
extern void _PySampling_SiblingsTakeOver(_PySampling_Thread *thread);

// sampling_registry.c.  The lock is runtime->sampling.mutex.
extern void _PySampling_LockRegistry(void);
extern void _PySampling_UnlockRegistry(void);
// The thread's record, registering it if the session is new.
extern _PySampling_Thread *_PySampling_ThreadOf(PyThreadState *tstate);
// Do threads of the interpreter stand still while the caller runs?
extern int _PySampling_SharesGIL(struct _sampling_interpreter_state *s,
                                 PyThreadState *caller);
// With the registry locked.  Returns 0 if there is no memory.
extern int _PySampling_RegisterExisting(PyThreadState *caller,
                                        uint64_t wall_ns, int goes_on);
// With the registry locked.
extern unsigned int _PySampling_EnterTables(_PySampling_Thread *thread,
                                            int is_new);
extern void _PySampling_WakeOthers(PyThreadState *caller);

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_PARTS_H
