/* Sampling profiler: the record of a thread.

   Says of each field who writes it, and under which lock.  Must not know what
   the parts that own the fields make of them. */

#ifndef Py_SAMPLING_THREAD_H
#define Py_SAMPLING_THREAD_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_sampling.h"

struct _sampling_window;

/* A stretch of time on both clocks. */
typedef struct _sampling_time {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} _PySampling_Time;

/* Per-thread clocks: every nanosecond since `wall_ns` began is either on a
   record, or waits in the thread's window, or lies after `wall_ns`. */
struct _sampling_account {
    uint64_t wall_ns;           // written relaxed, for RecordLostThreads()
    uint64_t cpu_ns;
    uint64_t counted_ns;        // deadlines up to then are on records
    uint64_t random;
    uint64_t gil_wait_ns;       // all of the session's
};

/* The evaluation stack of a thread in a call, by which the call is named when
   the thread comes to a safepoint: then it is over.  Read by the sampler
   thread, of a thread that sleeps with the GIL, or kept by the thread. */
#define _PySampling_CALL_OPERANDS 16

struct _sampling_call {
    struct _PyInterpreterFrame *frame;  // NULL: none.  Release store
    void *instr;
    PyObject *operands[_PySampling_CALL_OPERANDS];
};

/* What a thread is in, one word (clock/run.c): a state, flags, and a
   generation that rises with each change of state.  Only the thread changes
   the state; the sampler thread may set a flag by comparing the whole word. */
enum {
    // States.
    _PySampling_INACTIVE = 0,        // not sampled, or at the profiler's own work
    _PySampling_RUNS = 1,       // it has its GIL
    _PySampling_DETACHED = 2,
    _PySampling_WAITS = 3,      // for its GIL
    _PySampling_STATES = 3,
    // Flags.
    _PySampling_ASKED = 4,      // a tick has found it running
    _PySampling_SENDING = 8,    // and its signal is on its way
    _PySampling_PENDING = 16,     // there is something to do before it detaches
    _PySampling_NOTED = 32,     // a tick has left a note: no more come
    _PySampling_FLAGS = 60,
    _PySampling_GENERATION = 64,
};

#define _PySampling_RUN_OF(WORD) \
    ((WORD) & ~(uint64_t)(_PySampling_GENERATION - 1))

#define _PySampling_ALWAYS_ON_CPU 1024

/* What the thread has found when it last asked for its signal mask. */
typedef enum {
    _PySampling_MASK_UNKNOWN = 0,
    _PySampling_TAKES_SIGNAL,
    _PySampling_BLOCKS_SIGNAL,
} _PySampling_Mask;

/* Work that is not the program's is not sampled. */
typedef enum {
    _PySampling_NOT_EXCLUDED = 0,
    _PySampling_EXCLUDED = 1,       // it serves a subscriber: counted apart
    _PySampling_HELPER = 2,         // it waits for others: not counted
} _PySampling_Exclusion;

/* What the sampler thread knows of a thread at a tick.  It writes this
   before it sets a flag; the thread reads it while it has that flag. */
struct _sampling_tick {
    uint64_t number;
    uint64_t at_ns;
    // Its CPU clock then, or 0: not read yet.  Written after the flag.
    uint64_t cpu_ns;
    int signal;                 // that is sent
    int is_on_cpu;              // beside the sampler thread, which has another
    int is_asleep;              // with the GIL; or, atomic, without
    int is_sleepy;              // it sleeps with the GIL, or did so lately
    // How often the thread had gone to sleep, and 1, if it was awake without the
    // GIL; 0: not known.  Relaxed, written after the flag.
    uint64_t sleeps;
    // What threads without Python had computed (clock/others.c), or 0: not
    // known.  Relaxed, written after the flag.
    uint64_t others_cpu_ns;
};

/* A tick that met a run that was about to end: to be captured that long after
   the beginning of the next. */
struct _sampling_overdue {
    uint64_t after_ns;          // 0: there is none
    uint64_t at_ns;             // in this run
    uint64_t span_ns;           // what it stands for
};

/* One per thread state, created when the thread first attaches during a
   session and kept until the thread state is cleared. */
struct _sampling_thread {
    uint64_t word;
    // Set at registration.
    PyThreadState *tstate;
    struct _sampling_interpreter_state *interp;
    long cpu_clock;             // clockid_t of the thread's CPU clock
    int native_id;
    // runtime->sampling.epoch it belongs to.  Written with the thread's GIL
    // and runtime->sampling.mutex; read by _PySampling_IN_EPOCH().
    unsigned int epoch;
    // Does the thread take signals?  Written by the thread.
    int mask;                   // _PySampling_Mask
    int inactive_on_os_thread;  // another record has the OS thread's clock
    int is_yielding;            // the GIL, between two instructions
    int in_hook;                // handler must not touch what follows
    struct _sampling_overdue overdue;   // owner: the thread
    unsigned long ident;        // of the OS thread that it runs on
    // List of an interpreter's threads.  Lock: runtime->sampling.mutex.
    struct _sampling_thread *next;
    struct _sampling_thread *prev;
    // Ring of the records that share an OS thread; NULL: it is the only one.
    // Same lock.
    struct _sampling_thread *sibling;
    // List of those that get ticks.  Same lock.
    struct _sampling_thread *next_ticked;
    struct _sampling_thread *prev_ticked;
    int is_ticked;
    struct _sampling_thread *next_returned; // to get ticks again
    struct _sampling_tick tick;
    // When a thread that is noted found that another one has the GIL that it
    // asks for, and the last tick before that; 0: it has not, or not since it
    // was noted.
    uint64_t waiting_since_ns;
    uint64_t waiting_since_tick;
    uint64_t waiting_since_sleeps;  // as often had it gone to sleep then, and 1
    struct _sampling_call sleeper;  // what it slept in
    struct _sampling_call resumed;  // what its run began in: see overdue
    // Owner: the sampler thread.
    int sleepy_ticks;           // it slept with the GIL lately
    int is_probed;              // that is what the kernel said
    uint64_t sleepy_cpu_ns;     // its CPU clock at the last of them
    // Owner: the thread itself, or, while it is detached, whoever holds its
    // GIL.
    int signal_came;               // a signal came as it gave the GIL up
    uint64_t flight_ns;         // how long signals usually are on their way
    // Of ticks that are sure, which part found it on a CPU.
    int usual_part_on_cpu;      // of _PySampling_ALWAYS_ON_CPU
    uint64_t recorded_run;      // the last record was taken in, or before
    struct _sampling_time span; // of ticks that met the profiler's own work
    int excluded;               // _PySampling_Exclusion
    int ran_tasks;              // of some loop
    uint32_t num_woken;         // tasks that are to run on it
    struct _sampling_delays *delays;    // NULL: none was seen
    int gc_generation;          // -1: no collection
    struct _PyInterpreterFrame *gc_frame;
    uint64_t gc_start_ns;
    int skip_ticks;             // thinning after a very deep walk
    uint32_t thread_index;      // row in the tables
    struct _sampling_window *window;    // NULL: there was no sample
    // The last stack sampled while running; 0: none.
    uint32_t last_node;
    uint32_t last_labels;       // as they were then
    uint32_t root_node;         // its outermost frames; 0: not known yet
    // Where the last sample found it while it held the GIL, for those who
    // waited for it; 0: no sample has.
    uint32_t held_node;
    uint64_t begin_cpu_ns;      // its CPU clock when it came to take part
    uint64_t manual_cpu_ns;     // CPU clock of manual sessions
    struct _sampling_account account;
    uint32_t pauses;            // of the runtime, when its clocks were read last
    uint64_t residue_cpu_ns;    // recorded by the last flush without a tick
    uint64_t residue_wall_ns;
};

#endif  // !Py_SAMPLING_THREAD_H
