/* Sampling profiler: the state that hangs on the runtime, on each interpreter
   and on each thread, and the hooks that the interpreter calls.

   Three parts never meet in one function: the clock (clock/clock.c)
   decides WHEN to sample, capture and accounting (sample/capture.c,
   sample/account.c) say WHAT a sample is, the tables
   (tables/tables.h) keep WHERE it goes.  This header must not know
   how any of them works.  What they ask of each other is in the headers beside
   their files, in Python/sampling/.

   All-zero is the off state, so none of the structs needs an initializer.

   The profiler's memory comes from malloc(), not from PyMem_RawMalloc():
   tracemalloc and the debug allocator hook the latter, so that the program
   would see the profiler's blocks among its own. */

#ifndef Py_INTERNAL_SAMPLING_H
#define Py_INTERNAL_SAMPLING_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_lock.h"          // PyMutex

/* configure decides whether there is a profiler: the clock needs tgkill(),
   per-thread CPU clocks and exactly one running thread per interpreter.  Where
   there is none, Python/sampling/stubs.c takes the place of the engine and
   Modules/_profile/unsupported.c that of the module, and who asks for samples
   is told this. */
#ifndef WITH_SAMPLING_PROFILER
#  ifndef __linux__
#    define _PySampling_MISSING \
        "the sampling profiler needs Linux; run the program there, profiles " \
        "can be loaded and reported here"
#  elif defined(Py_GIL_DISABLED)
#    define _PySampling_MISSING \
        "the sampling profiler needs the GIL, and this is a free-threaded " \
        "build of Python; run the program with a build that has the GIL"
#  else
#    define _PySampling_MISSING \
        "this Python was built --without-sampling-profiler; run the program " \
        "with one that was built with it"
#  endif
#endif

/* Bit 7 of tstate->eval_breaker: "a capture waits to be drained". */
#define _PY_SAMPLING_BIT (1U << 7)

/* Keeps the compiler from moving a store to tstate->current_frame across the
   stores that make the frame valid.  The only reader is a signal handler on
   the same thread, so this costs no instruction. */
#ifdef WITH_SAMPLING_PROFILER
#  define _PySampling_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#  define _PySampling_FENCE() ((void)0)
#endif

struct _PyInterpreterFrame;
struct _sampling_tables;
struct _sampling_clock;
struct _sampling_buffer;
struct _sampling_holders;
struct _sampling_window;
struct _sampling_subscription;
struct _sampling_block;
struct _sampling_mark;

typedef enum {
    _PySampling_ANY_MODE = -1,      // as the session
    _PySampling_WALL = 0,
    _PySampling_CPU = 1,
} _PySampling_Mode;

typedef enum {
    _PySampling_RUNNING = 0,
    _PySampling_BLOCKED = 1,
    _PySampling_GIL_WAIT = 2,
    _PySampling_GC = 3,
    _PySampling_LOST = 4,
    _PySampling_UNSAMPLED = 5,
    _PySampling_CUSTOM = 6,         // the program's own: not of its time
    _PySampling_ASLEEP_WITH_GIL = 7,
} _PySampling_State;

typedef struct {
    _PySampling_Mode mode;
    int rate_hz;                // 1.._PySampling_MAX_RATE_HZ
    int depth_frames;           // 1.._PySampling_MAX_DEPTH_FRAMES
    int names;                  // of _PySampling_NAME_*
    int signal;                 // 0: choose one
    int manual;                 // no sampler thread: ticks come from tests
    int is_deferred;            // the session samples inside of regions
} _PySampling_Options;

#define _PySampling_DEFAULT_RATE_HZ 1000
#define _PySampling_MAX_RATE_HZ 10000
#define _PySampling_DEFAULT_DEPTH_FRAMES 512
#define _PySampling_MAX_DEPTH_FRAMES 16384

/* What is told beyond Python frames. */
#define _PySampling_NAME_CALLS 1    // C functions and operators
#define _PySampling_NAME_OPCODES 2  // the leaf's specialised opcode
#define _PySampling_ALL_NAMES 3

#define _PySampling_USABLE_SIGNALS \
    "the profiler can use SIGURG, SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, " \
    "SIGIO, SIGWINCH or a real-time signal"

/* One counter per outcome; X-macro so that stats() names each of them.
   Atomic, since threads of several GILs and the clock add to them.  Nothing is
   ordered by them: relaxed additions would do, which pyatomic.h does not have,
   and readers and whoever resets them are relaxed.  memory_bytes alone is no
   sum: _PySampling_Measure() sets it. */
#define _PySampling_COUNTERS(X) \
    X(ticks)                /* the clock fired */ \
    X(ticks_late)           /* skipped because the clock woke too late */ \
    X(ticks_idle)           /* no thread held the interpreter's GIL */ \
    X(ticks_missed)         /* the run it fell into had ended by then */ \
    X(ticks_busy)           /* the last signal was still unanswered */ \
    X(ticks_noted)          /* the holder slept or is deaf: no signal */ \
    X(ticks_unheard)        /* no signal may or can reach the holder */ \
    X(signals_sent)         /* a thread was asked to capture */ \
    X(signals_late)         /* the session, or the thread's part, had ended */ \
    X(signals_overdue)      /* met the end of a run: captured in the next */ \
    X(signals_stray)        /* not ours */ \
    X(signals_unanswered)   /* blocked by the thread, or not sent */ \
    X(signals_moved)        /* the program took the signal: chose another */ \
    X(calls_interrupted)    /* system calls with the GIL cut short */ \
    X(captures)             /* stacks copied by the signal handler */ \
    X(captures_merged)      /* same instruction as the last: weight added */ \
    X(captures_in_hook)     /* fell into the profiler's own work */ \
    X(captures_skipped)     /* thinned out: the stack is very deep */ \
    X(captures_no_room)     /* put off to the next tick: buffer full */ \
    X(captures_biased)      /* taken at the safepoint, not at the tick */ \
    X(samples)              /* records added to the tables */ \
    X(frames_truncated)     /* captures deeper than depth_frames */ \
    X(callees_put_off)      /* not worked out in time: frames without one */ \
    X(lost_table_full)      /* samples booked as [lost]: table limit */ \
    X(lost_wall_ns)         /* wall time booked as [lost] */ \
    X(lost_cpu_ns)          /* CPU time booked as [lost] */ \
    X(lost_labels)          /* samples whose labels were too many to keep */ \
    X(lost_tasks)           /* samples whose task was one too many to keep */ \
    X(lost_holders)         /* waits whose holder was one too many to keep */ \
    X(lost_threads)         /* not registered, or out of reach at the end */ \
    X(subscribers_wall_ns)  /* of threads while they served subscribers */ \
    X(subscribers_cpu_ns)   /* the same on their CPU clocks */ \
    X(overhead_capture_ns)  /* spent in the signal handler */ \
    X(overhead_drain_ns)    /* spent turning captures into samples */ \
    X(memory_bytes)         /* taken by the profiler, as last measured */

struct _sampling_counters {
#define X(name) uint64_t name;
    _PySampling_COUNTERS(X)
#undef X
};

/* A stretch of time on both clocks. */
typedef struct _sampling_time {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} _PySampling_Time;

/* Time that waits for a sample.  It is carried apart by state, so that a
   sample of one state never takes time of another. */
struct _sampling_carries {
    struct _sampling_time run;
    uint64_t off_cpu_ns;
    uint64_t blocked_ns;        // since the last point of its axis
    uint64_t wait_ns;           // the same
    uint64_t sliver_ns;         // running time, booked with blocked time
};

/* A thread's short intervals off the GIL, laid end to end, one axis for each
   state: how far it is to the next point (sample/account.c). */
struct _sampling_axes {
    uint64_t blocked_to_go_ns;  // 0: no point is laid yet
    uint64_t wait_to_go_ns;
    uint64_t random;
};

/* Per-thread clocks: every nanosecond since `wall_ns` began is either booked
   on a sample, or carried, or lies after `wall_ns`. */
struct _sampling_account {
    uint64_t wall_ns;           // booked or carried up to here; written
                                // relaxed, for book_lost_threads()
    uint64_t cpu_ns;            // same, on the thread's CPU clock
    uint64_t cpu_read_wall_ns;  // wall moment of that CPU reading
    uint64_t off_since_read_ns; // wall time without the GIL since then
    struct _sampling_carries carried;
    struct _sampling_axes axes;
    uint64_t sliver_ns;         // ran that short before it detached
    uint64_t detached_ns;       // gave up the GIL then; 0 while attached
};

/* A thread's last samples, which share its time (sample/weights.c): those
   while it held the GIL, and those of short intervals off the GIL, which share
   the CPU time burnt in these. */
typedef enum {
    _PySampling_ON_GIL,
    _PySampling_OFF_GIL,
    _PySampling_NUM_WINDOWS,
} _PySampling_Window;

/* The evaluation stack of a thread in a call, by which the call is named when
   the thread comes to a safepoint: then it is over.  Read by the clock, of a
   thread that sleeps with the GIL, or kept by the thread itself. */
#define _PySampling_CALL_OPERANDS 16

struct _sampling_call {
    struct _PyInterpreterFrame *frame;  // NULL: none.  Release store
    void *instr;
    PyObject *operands[_PySampling_CALL_OPERANDS];
};

typedef enum {
    _PySampling_NOT_ASKED = 0,
    _PySampling_ASKING,         // the clock is about to send the signal
    _PySampling_ASKED,          // it is sent; the handler clears this
} _PySampling_Asked;

typedef enum {
    _PySampling_NO_TIMER = 0,
    _PySampling_HAS_TIMER,
    _PySampling_TIMER_REFUSED,  // by the kernel, for want of resources
} _PySampling_HasTimer;

/* Work that is not the program's is not sampled. */
typedef enum {
    _PySampling_NOT_EXCLUDED = 0,
    _PySampling_EXCLUDED = 1,       // it serves a subscriber: counted apart
    _PySampling_WAITING = 2,        // a helper, which waits: not counted
} _PySampling_Exclusion;

/* One per thread state, created when the thread first attaches during a
   session and kept until the thread state is cleared. */
typedef struct _sampling_thread {
    // Set at registration.
    PyThreadState *tstate;
    struct _sampling_interpreter_state *interp;
    long cpu_clock;             // clockid_t of the thread's CPU clock
    int native_id;
    // List of an interpreter's threads.  Lock: runtime->sampling.mutex.
    struct _sampling_thread *next;
    struct _sampling_thread *prev;
    // Ring of the records that share an OS thread; NULL: it is the only one.
    // Same lock.
    struct _sampling_thread *sibling;
    // Mailbox of the clock: it writes; the signal handler reads, and the
    // thread when it settles.  Published by `asked`.
    uint64_t tick_wall_ns;
    uint64_t tick_cpu_ns;
    int asked_signal;           // which was sent, whatever is sent by now
    int asked;                  // _PySampling_Asked
    // What the ticks since the last capture stand for.  The clock adds, the
    // thread takes.
    struct _sampling_time span;
    // A tick at which no signal was sent, because the thread slept or does
    // not answer signals.  Written by the clock, taken by the thread.
    uint64_t note_wall_ns;
    int note_asleep;            // ticks at which it slept
    uint64_t asleep_span_ns;    // what these stand for
    struct _sampling_call sleeper;  // what it slept in
    // Ticks for which the clock sends notes only: the thread left a signal
    // unanswered.  Written by both, relaxed: it is a hint.
    int deaf_ticks;
    // Owner: the clock thread.
    uint64_t asked_ns;
    uint64_t asked_cpu_ns;
    uint64_t seen_wall_ns;
    uint64_t seen_cpu_ns;
    uint64_t seen_delay_ns;     // how long it had waited for a CPU
    int sleepy_ticks;           // it slept with the GIL lately
    // The thread's own timer (clock/timer.c).  Owner: the thread; the clock
    // reads what is relaxed.
    int timer;                  // _PySampling_HasTimer
    int timer_id;
    int timer_signal;
    int is_timed;               // its run is: the clock need not look; relaxed
    uint64_t timer_deadline_ns; // which it is set for; 0: none; relaxed
    uint64_t timer_fires_ns;
    uint64_t usual_run_ns;      // how long it holds the GIL, on average
    // Set by the thread, relaxed: when it asked for the GIL (0: it did not),
    // for a snapshot; when it got it, for the clock.
    uint64_t waiting_since_ns;
    uint64_t attached_ns;
    // Owner: the thread itself, or, while it is detached, whoever holds its
    // GIL.
    // runtime->sampling.session it belongs to.  Written with the thread's GIL
    // and runtime->sampling.mutex; read by _PySampling_IN_SESSION().
    unsigned int session;
    int in_hook;                // handler must not touch what follows
    int is_yielding;            // the GIL, between two instructions
    int is_settling;            // giving the GIL up: the handler looks
    uint64_t settling_ns;       // how long it has waited for the clock
    // A tick that reached it when its run was over: to be captured that long
    // after the beginning of its next run.  0: none.
    uint64_t overdue_ns;
    struct _sampling_call resumed;  // what that run began in
    int excluded;               // _PySampling_Exclusion
    int shadowed;               // another record has the OS thread's clock
    int gc_generation;          // -1: no collection
    struct _PyInterpreterFrame *gc_frame;
    uint64_t gc_start_ns;
    int skip_ticks;             // thinning after a very deep walk
    uint32_t thread_index;      // row in the tables
    // By _PySampling_Window; NULL: there was no such sample.
    struct _sampling_window *windows[_PySampling_NUM_WINDOWS];
    // The last stack sampled while running; 0: none.
    uint32_t last_node;
    uint32_t last_labels;       // as they were then
    uint32_t last_blocked_node;
    uint32_t last_blocked_labels;
    uint32_t root_node;         // its outermost frames; 0: not known yet
    // Where the last sample found it while it held the GIL, for those who
    // waited for it; 0: no sample has.
    uint32_t held_node;
    uint64_t manual_cpu_ns;     // CPU clock of manual sessions
    struct _sampling_account account;
    struct _sampling_carries set_aside; // the program's, while `excluded`
    uint64_t residue_cpu_ns;    // booked by the last flush without a tick
    uint64_t residue_wall_ns;
} _PySampling_Thread;

/* Embedded in PyInterpreterState. */
struct _sampling_interpreter_state {
    // Who holds the GIL, as the clock sees it; NULL: nobody.
    // Release store by the thread that attaches, acquire load by the clock.
    _PySampling_Thread *running;
    // The GIL of its threads; NULL: it has none yet.  Release store before
    // the first of them attaches: the interpreter is in the runtime's list
    // while it is being made.
    struct _gil_runtime_state *gil;
    // Lock: runtime->sampling.mutex.
    _PySampling_Thread *threads;
    struct _sampling_interpreter_state *next;
    struct _sampling_interpreter_state *prev;
    int registered;
    // Owner: the thread that holds this interpreter's GIL.
    struct _sampling_buffer *buffer;
    // Who held the GIL; shared by the interpreters that share it, and owned
    // by the one whose it is.  Written with runtime->sampling.mutex as well.
    struct _sampling_holders *holders;
    int owns_holders;
    // Where contexts keep their labels, and of what type (borrowed from the
    // _profile module).  NULL: nothing has been labelled.  Same owner.
    PyObject *label_var;
    PyTypeObject *label_set_type;
    // What the thread waits for that delivers to subscribers (borrowed from
    // the same).
    struct _sampling_bell *bell;
};

/* What can be read without asking the kernel, and how to ask it
   (native/safe_read.c).  Set at the start of a session. */
#define _PySampling_MAX_IMAGE_RANGES 8

struct _sampling_memory {
    int num_ranges;             // of the interpreter's own image
    struct { uintptr_t from, to; } ranges[_PySampling_MAX_IMAGE_RANGES];
    int pid;
    int can_readv;              // process_vm_readv() is allowed
};

/* Embedded in _PyThreadStateImpl. */
struct _sampling_thread_state {
    struct _sampling_thread *record;    // owned; NULL until first sampled
    int is_bound;               // to its OS thread, until cleared; atomic
    int is_excluded;            // it serves a subscriber of samples
    PyObject *task;             // owned; asyncio's current task
    PyObject **task_name;       // its field; NULL: it has none
    struct _sampling_outer_task *outer_tasks;   // owned; it is inside
};

/* Embedded in _PyRuntimeState. */
struct _sampling_runtime_state {
    int active;                 // hooks do nothing while this is 0.  Atomic
                                // store; read by _PySampling_ACTIVE()
    // Three locks, taken in this order if several are.  None of them is held
    // when a GIL is waited for or Python code runs; they may be taken with a
    // GIL, and are waited for without giving it up.  HEAD_LOCK(), which guards
    // the runtime's own lists, may be taken with any of them held, but none of
    // them with HEAD_LOCK() alone: start() takes tables_mutex with it and a
    // fork takes it with tables_mutex, both with `mutex` held before.
    //
    // Start, stop and snapshot are one at a time, whatever GIL their callers
    // hold.
    PyMutex control_mutex;
    // The registry: guards the lists of interpreters and threads, and starting
    // and stopping the clock.  The clock holds it during a look.
    PyMutex mutex;
    struct _sampling_interpreter_state *interpreters;
    // Numbers the sessions; 0: none yet.  Lock: tables_mutex, but threads of
    // other GILs and those that wait for one read it without.
    unsigned int session;
    // A fork that called no hook is noticed by these.
    int owner_pid;
    int is_unheard_child;
    // The engine (session/engine.c).  Lock: control_mutex; the period is
    // read without it.
    _PySampling_Options options;
    uint64_t period_ns;
    // Tables that only subscribers use begin anew at that size.  Same lock.
    uint64_t renewal_bytes;
    uint64_t renewed_ns;
    // Who wants a profile: a session, start() to stop(), and blocks of
    // profile() (session/blocks.c).  Same lock.
    int has_session;            // atomic store; read without it by tasks.c
    struct _sampling_block *blocks;
    int num_regions;            // entered and not left, by any thread
    unsigned int num_forks;     // of this process since it was the first
    _PySampling_Options session_options;    // of whoever of them was first
    // Where the session begins if its tables began before; else NULL.
    struct _sampling_mark *origin;
    uint64_t flushed_wall_ns;   // of the last flush of these tables, or 0
    int64_t start_time_ns;      // time.time_ns() at the start
    uint64_t start_wall_ns;     // monotonic
    int signal;
    // What the signal does (sample/capture.c).  Set before it is sent.
    void (*handler)(int signum, void *siginfo, void *context);
    int exit_session;           // started by -X: written at exit
    uint64_t manual_wall_ns;    // 0: not manual; relaxed
    uint64_t deadline_ns;       // of the clock's next look; relaxed
    // While no run needs looks the clock rests, until a thread that attaches
    // wakes it.  Pairs with interp->running, both sequentially consistent.
    int clock_rests;            // _PySampling_Rest
    int somebody_ran;           // a run that needs looks, since the last look
    int somebody_timed;         // a run with a timer, since the last watch
    uint64_t clock_woken_ns;
    uint32_t clock_wakeups;     // what the clock waits for: a futex
    struct _sampling_clock *clock;
    // Timers of threads (clock/timer.c).  Owner: who holds the GIL.
    int uses_timers;            // relaxed
    int has_no_timers;          // nor ever will in this session; relaxed
    uint64_t trial_ns;          // looked at, nobody asleep; the clock's
    uint64_t timer_late_ns;     // how late signals are on this machine
    uint64_t next_timed_run_ns;
    uint64_t deadline_seed;
    struct _sampling_memory memory;
    struct _sampling_counters counters;
    // Guards tables, *tables and changes of session.  Never held while a
    // Python object is made.
    PyMutex tables_mutex;
    struct _sampling_tables *tables;
    unsigned int tables_serial;
    // Who gets the records (sinks/dispatch.c): the table of samples, and
    // subscriptions.  Lock: tables_mutex.
    int is_aggregating;
    struct _sampling_subscription *subscriptions;
    int num_helpers;            // threads that serve subscribers
    // What -X sampleprof asked for.  Owner: who holds the main interpreter's
    // GIL.
    int exit_quiet;             // no line on stderr after a success
    int exit_children;          // children of a fork are profiled, too
    int exit_goes_on;           // for a moment: it is to start in this child
    PyThreadState *exit_writer; // it writes and then ends the process
    PyObject *exit_write;       // the function that does
    // Makes Python objects of tables, for exit_write; the module's.
    PyObject *(*exit_export)(struct _sampling_tables *);
};

#define _PySampling_COUNT(NAME, N) \
    ((void)_Py_atomic_add_uint64(&_PyRuntime.sampling.counters.NAME, (N)))

/* --- Hooks.  Each is called with the GIL unless it says otherwise, leaves
   --- errno alone, allocates no Python object and runs no Python code. */

#ifdef WITH_SAMPLING_PROFILER

// Is a session running?  A plain load of what another thread may be storing:
// by the letter of C a data race.  It is so on purpose, as in
// FT_ATOMIC_LOAD_*() of builds with the GIL: whoever holds the GIL of the
// thread that stored it has seen the store, a thread of another GIL or of none
// may see it late, which only means that it joins or leaves late, and an
// aligned int is loaded whole.  It compiles to one compare with memory, which
// an atomic load does not; but ThreadSanitizer wants to see one.
#ifdef _Py_THREAD_SANITIZER
#  define _PySampling_ACTIVE() \
    _Py_atomic_load_int_relaxed(&_PyRuntime.sampling.active)
#else
#  define _PySampling_ACTIVE() (_PyRuntime.sampling.active)
#endif

// Of a hook that is a macro, too: one compare while nobody profiles.
#define _PySampling_IF_ACTIVE(CALL) (_PySampling_ACTIVE() ? (CALL) : (void)0)

// At a safepoint of the eval loop, with _PY_SAMPLING_BIT set, and before
// anything changes that the samples which wait belong to: they are recorded.
extern void _PySampling_Safepoint(PyThreadState *tstate);

// A context is about to change or to die.
static inline void
_PySampling_BeforeContextChange(PyThreadState *tstate)
{
    if (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker)
        & _PY_SAMPLING_BIT)
    {
        _PySampling_Safepoint(tstate);
    }
}

// The current task of some loop is `entered` instead of `left`; NULL: none.
// If the loop is run inside a task of another, that one is the thread's again
// when nothing is entered any more.  `name`: the field of `entered` for its
// name, a str or the number in the name that asyncio gives, or NULL.
// Export for '_asyncio' shared extension.
PyAPI_FUNC(void) _PySampling_SwapTask(PyObject *left, PyObject *entered,
                                      PyObject **name);

// The thread has no task any more.
extern void _PySampling_ForgetTasks(PyThreadState *tstate);

// The eval breaker is about to give up the GIL because another thread wants
// it: this thread is in no C function.
extern void _PySampling_BeforeYield(PyThreadState *tstate);
#define _PySampling_BeforeYield(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_BeforeYield(TSTATE))

// The thread is about to give up the GIL.
extern void _PySampling_BeforeDetach(PyThreadState *tstate);
#define _PySampling_BeforeDetach(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_BeforeDetach(TSTATE))

// The thread asks for the GIL, and another thread has it.  Called without the
// GIL but with gil->mutex, which the holder needs to give the GIL up: takes no
// lock and does not wait.  Maybe called several times in one wait.
extern void _PySampling_BeforeGILWait(PyThreadState *tstate);
#define _PySampling_BeforeGILWait(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_BeforeGILWait(TSTATE))

// The thread has the GIL.
extern void _PySampling_AfterAttach(PyThreadState *tstate);
#define _PySampling_AfterAttach(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_AfterAttach(TSTATE))

// The thread state is its OS thread's from now on.
extern void _PySampling_AfterBind(PyThreadState *tstate);

// This thread is about to start another, which is to be left out as well if
// this one serves subscribers.
extern void _PySampling_ThreadStart(PyThreadState *tstate);

// The thread state is being cleared; it may belong to another thread.
extern void _PySampling_ThreadEnd(PyThreadState *tstate);

// The interpreter's memory is about to go.
extern void _PySampling_InterpreterEnd(PyInterpreterState *interp);

// The garbage collector starts (and ends) a collection.
extern void _PySampling_GCStart(PyThreadState *tstate, int generation);
#define _PySampling_GCStart(TSTATE, GENERATION) \
    _PySampling_IF_ACTIVE(_PySampling_GCStart(TSTATE, GENERATION))
extern void _PySampling_GCEnd(PyThreadState *tstate);
#define _PySampling_GCEnd(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_GCEnd(TSTATE))

// A code object is being deallocated: captures borrow code pointers.
extern void _PySampling_CodeEnd(PyCodeObject *code);
#define _PySampling_CodeEnd(CODE) \
    _PySampling_IF_ACTIVE(_PySampling_CodeEnd(CODE))

// A type is being deallocated: captures borrow pointers to types.
extern void _PySampling_TypeEnd(PyTypeObject *type);
#define _PySampling_TypeEnd(TYPE) \
    _PySampling_IF_ACTIVE(_PySampling_TypeEnd(TYPE))

// The program is about to set what a signal does.
extern void _PySampling_BeforeSetSignal(int signum);

// Around exec: a signal on its way would outlive the handler.
// Export for '_posixsubprocess' shared extension.
PyAPI_FUNC(void) _PySampling_BeforeExec(void);
extern void _PySampling_AfterFailedExec(void);

extern void _PySampling_BeforeFork(void);
extern void _PySampling_AfterForkParent(void);
extern void _PySampling_AfterForkChild(void);

// Threads of this process that are the profiler's own: os.fork() does not
// warn about them.
extern int _PySampling_OwnThreads(void);

/* --- Start-up (session/options.c), children and exit of the process
   --- (session/autostart.c). */

// In the child of a fork, when it is a whole process again: the session that
// -X started in the parent begins anew.
extern void _PySampling_ContinueInChild(PyThreadState *tstate);

// Ends the session; writes the profile if -X started it.  Never raises.  Runs
// Python code.
extern void _PySampling_Finalize(PyThreadState *tstate);

// The same in a process that is about to end at once.
extern void _PySampling_BeforeExit(void);

#else  // no profiler: no hook costs an instruction

#define _PySampling_ACTIVE() 0
#define _PySampling_Safepoint(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeContextChange(TSTATE) ((void)(TSTATE))
#define _PySampling_SwapTask(LEFT, ENTERED, NAME) \
    ((void)(LEFT), (void)(ENTERED), (void)(NAME))
#define _PySampling_ForgetTasks(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeYield(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeDetach(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeGILWait(TSTATE) ((void)(TSTATE))
#define _PySampling_AfterAttach(TSTATE) ((void)(TSTATE))
#define _PySampling_ThreadStart(TSTATE) ((void)(TSTATE))
#define _PySampling_ThreadEnd(TSTATE) ((void)(TSTATE))
#define _PySampling_InterpreterEnd(INTERP) ((void)(INTERP))
#define _PySampling_GCStart(TSTATE, GENERATION) \
    ((void)(TSTATE), (void)(GENERATION))
#define _PySampling_GCEnd(TSTATE) ((void)(TSTATE))
#define _PySampling_CodeEnd(CODE) ((void)(CODE))
#define _PySampling_TypeEnd(TYPE) ((void)(TYPE))
#define _PySampling_AfterBind(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeSetSignal(SIGNUM) ((void)(SIGNUM))
#define _PySampling_BeforeExec() ((void)0)
#define _PySampling_AfterFailedExec() ((void)0)
#define _PySampling_BeforeFork() ((void)0)
#define _PySampling_AfterForkParent() ((void)0)
#define _PySampling_AfterForkChild() ((void)0)
#define _PySampling_OwnThreads() 0
#define _PySampling_ContinueInChild(TSTATE) ((void)(TSTATE))
#define _PySampling_Finalize(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeExit() ((void)0)

#endif  // !WITH_SAMPLING_PROFILER

// The method _thread._set_sampled_name(ident, name): what threading.Thread
// calls the thread.  Nothing while nobody profiles.
extern PyObject *_PySampling_SetThreadName(PyObject *module, PyObject *args);

// Reads -X sampleprof and PYTHONSAMPLEPROF and starts a session if asked.
// Returns an exit status of 2, after a message on stderr, for a bad text.
extern PyStatus _PySampling_InitFromConfig(PyThreadState *tstate);

/* --- The session (session/session.c): what the _profile module calls. */

typedef enum {
    _PySampling_OK = 0,
    _PySampling_ERR_RUNNING,        // a session is running already
    _PySampling_ERR_NOT_RUNNING,
    _PySampling_ERR_EXIT_SESSION,   // -X started it: it ends at exit
    _PySampling_ERR_SIGNAL_TAKEN,
    _PySampling_ERR_THREAD,         // errno says why
    _PySampling_ERR_OPTIONS,        // it runs with other options
    _PySampling_ERR_FORKED,         // by C code, which told nobody
    _PySampling_ERR_ENDING,         // the process is about to end
    _PySampling_ERR_NO_MEMORY,
} _PySampling_Status;

extern _PySampling_Status _PySampling_Start(PyThreadState *tstate,
                                            const _PySampling_Options *opts);
extern _PySampling_Status _PySampling_Stop(PyThreadState *tstate,
                                           struct _sampling_tables **result);
extern _PySampling_Status _PySampling_Snapshot(PyThreadState *tstate,
                                               int clear,
                                               struct _sampling_tables **copy);

// Brings counters.memory_bytes up to date.
extern void _PySampling_Measure(void);

// The counters of the session, or of the last one.
extern void _PySampling_GetCounters(struct _sampling_counters *counters);

// Is there a session, or a block of profile()?
extern int _PySampling_IsRunning(void);

// Blocks of profile() (session/blocks.c).  A rate_hz, depth_frames or signal
// of 0, names of -1 and a mode of _PySampling_ANY_MODE stand for what holds
// already, or the default.
extern _PySampling_Status
_PySampling_BlockBegin(PyThreadState *tstate,
                       const _PySampling_Options *asked,
                       struct _sampling_block **result);
// `*result` is NULL if the block has ended before, by a fork or at exit.
extern _PySampling_Status
_PySampling_BlockEnd(PyThreadState *tstate, struct _sampling_block *block,
                     struct _sampling_tables **result);
// Frees it; if it has not ended, it ends.
extern void _PySampling_BlockFree(PyThreadState *tstate,
                                  struct _sampling_block *block);

// A deferred session samples while anybody is in a region.  Leaving takes the
// number that entering gave: what is entered before a fork counts in the
// parent only.
extern _PySampling_Status _PySampling_RegionEnter(PyThreadState *tstate,
                                                  unsigned int *number);
extern _PySampling_Status _PySampling_RegionLeave(PyThreadState *tstate,
                                                  unsigned int number);

// Subscriptions (sinks/sinks.h).
extern _PySampling_Status
_PySampling_Subscribe(PyThreadState *tstate,
                      struct _sampling_subscription *sub,
                      const _PySampling_Options *options);
extern _PySampling_Status
_PySampling_Unsubscribe(PyThreadState *tstate,
                        struct _sampling_subscription *sub);
// Everything up to now can be taken.
extern _PySampling_Status
_PySampling_FlushSubscription(PyThreadState *tstate,
                              struct _sampling_subscription *sub);
extern _PySampling_Status
_PySampling_SetSubscriptionRate(PyThreadState *tstate,
                                struct _sampling_subscription *sub,
                                int rate_hz);

// Replaces depth_frames of 0 and names of -1: by what holds already, or by the
// default.
extern void _PySampling_DefaultOptions(_PySampling_Options *options);
// Begins with new tables if nobody but subscribers uses them and they are
// nearly full.
extern _PySampling_Status _PySampling_RenewIfFull(PyThreadState *tstate);

// Makes samples of intervals off the GIL that have not ended yet.
extern void _PySampling_AccountForBlocked(PyThreadState *tstate);

// A sample that the program takes of itself, in a Python function that is left
// out: its caller's stack.  `pairs`: its labels, a tuple of str.
extern _PySampling_Status
_PySampling_Sample(PyThreadState *tstate, uint64_t weight, PyObject *pairs);

// One tick of a manual session, `wall_ns` and `cpu_ns` after the last.
extern _PySampling_Status _PySampling_ManualTick(PyThreadState *tstate,
                                                 uint64_t wall_ns,
                                                 uint64_t cpu_ns);


#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_H
