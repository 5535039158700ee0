/* Sampling profiler: what hangs on the runtime, on each interpreter and on
   each thread, and what is asked of a session.  This header must not know who
   changes it, nor when: the hooks are in pycore_sampling.h.

   All-zero is the off state, so none of the structs needs an initializer.

   The profiler's memory comes from malloc(), not from PyMem_RawMalloc():
   tracemalloc and the debug allocator hook the latter, so that the program
   would see the profiler's blocks among its own. */

#ifndef Py_INTERNAL_SAMPLING_STATE_H
#define Py_INTERNAL_SAMPLING_STATE_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_lock.h"          // PyMutex

struct _PyInterpreterFrame;
struct _sampling_tables;
struct _sampling_clock;
struct _sampling_buffer;
struct _sampling_holders;
struct _sampling_sink;
struct _sampling_profile;
struct _sampling_calls;
struct _sampling_watch;
struct _sampling_alloc;

// The record of a thread (Python/sampling/base/thread.h).
typedef struct _sampling_thread _PySampling_Thread;

/* Where tasks of a type keep what the profiler asks them for, in bytes from
   their beginning.  The first three are objects, or NULL; they live until
   _PySampling_TaskEnd(). */
typedef struct _sampling_task_layout {
    size_t coroutine;           // what it runs
    size_t context;             // and in which
    size_t name;                // a str, or the number in the name that
                                // asyncio gives
    size_t record;              // struct _sampling_task *, for the profiler
    // What it waits for: an object whose type says it, the coroutine of
    // another task, or NULL.  Borrowed; runs no code.
    PyObject *(*awaited)(PyObject *task);
} _PySampling_TaskLayout;

/* A task, as its scheduler tells of it. */
typedef struct _sampling_task_info {
    PyObject *task;
    const _PySampling_TaskLayout *layout;       // NULL: no more is known of
                                                // it
    int state;                  // 0: pending, 1: cancelled, 2: finished
    int skip_frames;            // innermost ones that are not its loop's
} _PySampling_TaskInfo;

/* A task that a thread of an executor works for, as rows of the tables. */
struct _sampling_work {
    unsigned int serial;        // of the tables; 0: the thread works for none
    uint32_t name;              // string
    uint32_t coroutine;         // what it runs: row + 1; 0: not known
    uint64_t task_id;
};

typedef enum {
    _PySampling_ANY_MODE = -1,      // as the session
    _PySampling_WALL = 0,
    _PySampling_CPU = 1,
    _PySampling_ALLOC = 2,          // bytes; time is of no interest
} _PySampling_Mode;

typedef struct {
    _PySampling_Mode mode;
    int rate_hz;                // 1.._PySampling_MAX_RATE_HZ
    int depth_frames;           // 1.._PySampling_MAX_DEPTH_FRAMES
    int names;                  // of _PySampling_NAME_*
    int signal;                 // 0: choose one
    int manual;                 // no sampler thread: ticks come from tests
    int is_deferred;            // the session samples inside of regions
    int has_timeline;           // it keeps moments
    int overhead_percent;       // of CPU time, at most: the rate gives way;
                                // 0: it does not
    uint64_t alloc_bytes;       // a block is sampled per so many; 0: none
} _PySampling_Options;

#define _PySampling_DEFAULT_RATE_HZ 1000
#define _PySampling_MAX_RATE_HZ 10000
#define _PySampling_DEFAULT_ALLOC_BYTES (512 << 10)
#define _PySampling_MAX_ALLOC_BYTES (1ll << 40)
#define _PySampling_DEFAULT_DEPTH_FRAMES 512
#define _PySampling_MAX_DEPTH_FRAMES 16384

/* What is named beyond Python frames. */
#define _PySampling_NAME_CALLS 1    // C functions and operators
#define _PySampling_NAME_OPCODES 2  // the leaf's specialized opcode
#define _PySampling_ALL_NAMES 3

#define _PySampling_USABLE_SIGNALS \
    "the profiler can use SIGURG, SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM, " \
    "SIGIO, SIGWINCH or a real-time signal"

/* One counter per outcome; X-macro so that stats() names each of them.
   Atomic, since threads of several GILs and the clock add to them.  Nothing is
   ordered by them: relaxed additions would do, which pyatomic.h does not have,
   and readers and whoever resets them are relaxed.  memory_bytes alone is no
   sum: _PySampling_UpdateMemoryBytes() sets it. */
#define _PySampling_COUNTERS(X) \
    X(ticks)                /* the sampler thread went through the threads */ \
    X(ticks_late)           /* skipped because the clock woke too late */ \
    X(ticks_idle)           /* no thread was to get one */ \
    X(ticks_busy)           /* the last signal was still unanswered */ \
    X(ticks_noted)          /* the holder slept, or takes none: no signal */ \
    X(ticks_no_signal)      /* no signal may or can reach the holder */ \
    X(ticks_blocked)        /* of these, as the thread blocks the signal */ \
    X(ticks_refused)        /* as the kernel or the program leaves none */ \
    X(ticks_unprobed)       /* as the kernel does not say who sleeps */ \
    X(signals_sent)         /* a thread was asked to capture */ \
    X(signals_late)         /* the session or the thread's part was over */ \
    X(signals_overdue)      /* the run ended first: captured in the next */ \
    X(signals_stray)        /* not ours */ \
    X(signals_unanswered)   /* blocked by the thread, or not sent */ \
    X(signals_moved)        /* the program took the signal: chose another */ \
    X(calls_interrupted)    /* system calls with the GIL cut short */ \
    X(captures)             /* stacks copied by the signal handler */ \
    X(captures_merged)      /* same instruction as the last: weight added */ \
    X(captures_in_hook)     /* fell into the profiler's own work */ \
    X(captures_skipped)     /* thinned out: the stack is very deep */ \
    X(captures_no_space)    /* put off to the next tick: buffer full */ \
    X(captures_biased)      /* taken at the safepoint, not at the tick */ \
    X(samples)              /* records added to the tables */ \
    X(frames_truncated)     /* captures deeper than depth_frames */ \
    X(callees_put_off)      /* not worked out in time: frames without one */ \
    X(lost_table_full)      /* samples recorded as [lost]: table limit */ \
    X(lost_wall_ns)         /* wall time recorded as [lost] */ \
    X(lost_cpu_ns)          /* CPU time recorded as [lost] */ \
    X(lost_labels)          /* samples whose labels were too many to keep */ \
    X(lost_tasks)           /* samples whose task was one too many to keep */ \
    X(lost_holders)         /* waits whose holder was one too many to keep */ \
    X(lost_task_ns)         /* of tasks' lives, on no record */ \
    X(tasks_untracked)      /* steps of tasks that have no record */ \
    X(lost_threads)         /* not registered, or out of reach at the end */ \
    X(allocations)          /* blocks sampled */ \
    X(allocated_bytes)      /* requested while blocks were sampled: exact */ \
    X(lost_allocations)     /* sampled blocks without a stack or a row */ \
    X(collections_gen0)     /* collections of generation 0 that ended */ \
    X(collections_gen1)     /* of generation 1 */ \
    X(collections_gen2)     /* of generation 2: full ones */ \
    X(subscribers_wall_ns)  /* of threads while they served subscribers */ \
    X(subscribers_cpu_ns)   /* the same on their CPU clocks */ \
    X(subscribers_allocated_bytes)  /* of allocated_bytes, by samples */ \
    X(overhead_capture_ns)  /* that ticks took */ \
    X(overhead_drain_ns)    /* spent turning captures into samples */ \
    X(overhead_hooks_ns)    /* time off the GIL that was recorded */ \
    X(overhead_clock_ns)    /* CPU time of the sampler thread */ \
    X(rate_lowered)         /* to half: the profiler took too much */ \
    X(rate_raised)          /* to the double again */ \
    X(memory_bytes)         /* taken by the profiler, as last measured */

struct _sampling_counters {
#define X(name) uint64_t name;
    _PySampling_COUNTERS(X)
#undef X
};

/* Embedded in PyInterpreterState. */
struct _sampling_interpreter_state {
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
    int num_tasks;              // in `tasks`, below; relaxed
    // Where contexts keep their labels, and of what type (borrowed from the
    // _profile module).  NULL: nothing has been labelled.  Same owner.
    PyObject *label_var;
    PyTypeObject *label_set_type;
    // Requests under way, the newest first.  Same owner.
    struct _sampling_request *requests;
    // What the thread waits for that delivers to subscribers (borrowed from
    // the same).
    struct _sampling_wakeup *wakeup;
    // Tasks that a session has seen and that have not ended.  Same owner.
    struct _sampling_task *tasks;
    struct _sampling_task_rate {
        uint64_t period_ns;     // between points of the axes of their waits
        uint64_t since_ns;
        uint64_t num_recorded;  // since then
    } task_rate;
    // A task that has no record has been suspended since then: the last start
    // or flush.  Written by who starts, and by the same owner.
    uint64_t tasks_since_ns;
    // Exact calls (Python/sampling/calls/); NULL: they were never counted.
    // The bit of our tool of sys.monitoring; 0: they are not.  Same owner.
    struct _sampling_calls *calls;
    uint8_t calls_tool;
    // Sampled allocations (Python/sampling/alloc/): bytes of small blocks
    // until the next is sampled, and all that were ever in this budget; the
    // session that it was drawn in; whether one of our functions is within
    // another; and captures that wait.  Same owner.
    int64_t alloc_budget;
    uint64_t alloc_drawn;
    unsigned int alloc_session;
    int alloc_nested;
    int num_alloc_captures;
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

/* That something holds while a GIL has seen so many switches, and since when;
   0: not known.  Lock to write: the GIL's mutex. */
struct _sampling_gil_note {
    uint64_t switches;          // + 1; 0: nothing is noted; atomic
    uint64_t since_ns;          // atomic
};

/* Embedded in _PyThreadStateImpl. */
struct _sampling_thread_state {
    struct _sampling_thread *record;    // owned; NULL until first sampled
    int is_bound;               // to its OS thread, until cleared; atomic
    int is_excluded;            // it serves a subscriber of samples
    struct _sampling_task_info entered; // asyncio's current task; owned
    struct _sampling_outer_task *outer_tasks;   // owned; it is inside
    struct _sampling_work work; // while an executor runs what a task gave it
    PyObject *name;             // owned; NULL: threading has given it none
    struct _sampling_gil_note waits;    // the thread, for the GIL
};

/* Embedded in _PyRuntimeState. */
struct _sampling_runtime_state {
    uint8_t active;             // hooks do nothing while this is 0.  Atomic
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
    // and stopping the clock.  The clock holds it during a tick.
    PyMutex mutex;
    struct _sampling_interpreter_state *interpreters;
    // A number that rises when the engine goes on or off or gets new tables,
    // so that what was kept for the one before is known to be stale; 0: it was
    // never on.  Lock: tables_mutex, but threads of other GILs and those that
    // wait for one read it without.
    unsigned int epoch;
    // A fork that called no hook is noticed by these.
    int owner_pid;
    int is_child_of_c_code;
    // The engine (session/engine.c).  Lock: control_mutex; the period is
    // read without it.
    _PySampling_Options options;
    uint64_t period_ns;
    // The sink of the session, start() to stop(); NULL: there is none.
    // Same lock, but read without it by tasks.c: atomic store.
    struct _sampling_sink *session;
    struct _sampling_counters session_counters;     // when it began
    _PySampling_Options session_options;    // of the session, or of the block
                                            // of profile() that was first
    int times_tasks;            // somebody wants more than memory, or has
                                // wanted since the engine began; relaxed
    int num_regions;            // entered and not left, by any thread
    unsigned int num_forks;     // of this process since it was the first
    uint64_t flushed_wall_ns;   // of the last flush; 0: the engine has not run
    int signal;
    // What the signal does (sample/capture.c).  Set before it is sent.
    void (*handler)(int signum, void *siginfo, void *context);
    int exit_session;           // started by -X: written at exit
    uint64_t manual_wall_ns;    // 0: not manual; relaxed
    // Time stands still between the regions of a deferred session
    // (base/time.c): at that moment, or 0; and how long it has so far.
    uint64_t stopped_ns;
    uint64_t skipped_ns;
    uint32_t pauses;            // rises with each stop and go; odd: it stands
    void *read_clock;           // clock_gettime(); NULL: not found; relaxed
    // What threads without Python compute (clock/others.c).  Lock: mutex.
    struct _sampling_others {
        uint64_t cpu_ns;        // as it was read last
        uint64_t read_ns;       // then, on the monotonic clock
        uint64_t rest_ns;       // to be read no earlier than that after it
        uint64_t ended_ns;      // CPU time of threads that had a record
    } others;
    // The threads that get ticks; and those that are to get them again: a
    // thread adds itself there, without a lock.
    _PySampling_Thread *ticked;
    _PySampling_Thread *returned;
    uint64_t tick_number;       // of the last one; relaxed
    uint64_t late_ns;           // how late ticks usually are; relaxed
    // With no thread to tick the clock rests, until one adds itself.
    // Pairs with `returned`, both sequentially consistent.
    int clock_rests;
    uint32_t clock_wakeups;     // what the clock waits for: a futex
    struct _sampling_clock *clock;
    uint64_t deadline_seed;
    uint64_t counted_before_ns; // deadlines of other periods; relaxed
    struct _sampling_memory memory;
    struct _sampling_counters counters;
    struct _sampling_alloc *alloc;      // NULL: none was ever sampled
    // Guards tables, *tables and changes of session.  Never held while a
    // Python object is made.
    PyMutex tables_mutex;
    struct _sampling_tables *tables;
    unsigned int tables_serial;
    // Who gets the records (sinks/dispatch.c): the session, blocks and
    // subscriptions.  Lock: tables_mutex, and control_mutex for changes.
    struct _sampling_sink *sinks;
    int num_profiles;           // of these, no subscriptions
    int num_helpers;            // threads that serve subscribers
    int has_moved_thread;       // a state ran on a thread that did not make it
    // What -X sampleprof asked for.  Owner: who holds the main interpreter's
    // GIL.
    int exit_quiet;             // no line on stderr after a success
    int exit_children;          // children of a fork are profiled, too
    int exit_goes_on;           // for a moment: it is to start in this child
    int exit_by_exec;           // while a profile is written before exec
    PyThreadState *exit_writer; // it writes; then maybe the process ends
    // A process that ends at once (session/ending.c).
    struct _sampling_ending *ending;
    int parks_threads;          // those of the program that take a GIL stop
    PyObject *exit_write;       // the function that does
    // For other processes that ask this one (Python/sampling/reach/).
    struct _sampling_reach {
        // What the handler of SIGURG does with a request; NULL: it is not
        // armed.  Set once.
        void (*answer)(const void *siginfo);
        void (*forget)(void);   // in the child of a fork: nobody watches
        int pid;                // a child of C code answers nothing
        uint64_t pending;       // request that waits for a safepoint; 0: none
        struct _sampling_watch *watch;  // who gets samples; NULL: nobody ever
        // No thread but its holder has had the GIL of the main interpreter.
        struct _sampling_gil_note holds;
    } reach;
    // Where asyncio's tasks keep what there is to ask; NULL: none has run.
    const struct _sampling_task_layout *task_layout;
    // Makes Python objects of a profile, for exit_write; the module's.
    PyObject *(*exit_export)(const struct _sampling_profile *);
};

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_STATE_H
