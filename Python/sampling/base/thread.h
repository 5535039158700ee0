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

/* A tick that reached the thread when its run was over: to be captured that
   long after the beginning of what is sampled of its next runs. */
struct _sampling_overdue {
    uint64_t after_ns;          // 0: there is none
    int num_runs;               // that have begun since
    struct _sampling_time span; // what it stands for
};

/* Time that waits for a sample.  It is carried apart by state, so that a
   sample of one state never takes time of another. */
struct _sampling_carries {
    struct _sampling_time run;
    uint64_t off_cpu_ns;
    uint64_t blocked_ns;        // since the last point of its axis
    uint64_t wait_ns;           // the same
    uint64_t hook_ns;           // the same
};

/* A thread's short intervals off the GIL, laid end to end, one axis for each
   state and one for the profiler's own work around them: how far it is to the
   next point (sample/account.c). */
struct _sampling_axes {
    uint64_t blocked_to_go_ns;  // 0: no point is laid yet
    uint64_t wait_to_go_ns;
    uint64_t hook_to_go_ns;
    uint64_t random;
};

/* Per-thread clocks: every nanosecond since `wall_ns` began is either recorded
   on a sample, or carried, or lies after `wall_ns`. */
struct _sampling_account {
    uint64_t wall_ns;           // recorded or carried up to here; written
                                // relaxed, for RecordLostThreads()
    uint64_t cpu_ns;            // same, on the thread's CPU clock
    uint64_t cpu_read_wall_ns;  // wall moment of that CPU reading
    uint64_t off_since_read_ns; // wall time without the GIL since then
    uint64_t hooks_since_read_ns;   // of it the profiler's work
    struct _sampling_carries carried;
    struct _sampling_axes axes;
    uint64_t detached_ns;       // gave up the GIL then; 0 while attached
    uint64_t hook_ns;           // the profiler's work before and after that
    uint64_t uncounted_ns;      // the same: of overhead_hooks_ns
    unsigned int num_hooks;     // where it gave up the GIL
    uint64_t gil_wait_ns;       // all of the session's
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
    _PySampling_ASKING,         // the clock asks the kernel what it does
    _PySampling_SENDING,        // and is about to send the signal
    _PySampling_ASKED,          // it is sent; the handler clears this
} _PySampling_Asked;

/* What the thread has found when it last asked for its signal mask. */
typedef enum {
    _PySampling_MASK_UNKNOWN = 0,
    _PySampling_TAKES_SIGNAL,
    _PySampling_BLOCKS_SIGNAL,
} _PySampling_Mask;

enum {  // what a thread has of a timer
    _PySampling_NO_TIMER = 0,
    _PySampling_HAS_TIMER,
    _PySampling_TIMER_REFUSED,  // by the kernel, for want of resources
};

struct _sampling_kernel_timer {
    int state;                  // _PySampling_NO_TIMER, ...
    int id;
    uint64_t set_ns;            // when it fires, or has fired; 0: it is clear
};

/* Work that is not the program's is not sampled. */
typedef enum {
    _PySampling_NOT_EXCLUDED = 0,
    _PySampling_EXCLUDED = 1,       // it serves a subscriber: counted apart
    _PySampling_HELPER = 2,         // it waits for others: not counted
} _PySampling_Exclusion;

/* One per thread state, created when the thread first attaches during a
   session and kept until the thread state is cleared. */
struct _sampling_thread {
    // Set at registration.
    PyThreadState *tstate;
    struct _sampling_interpreter_state *interp;
    long cpu_clock;             // clockid_t of the thread's CPU clock
    int native_id;
    unsigned long ident;        // of the OS thread that it runs on
    // List of an interpreter's threads.  Lock: runtime->sampling.mutex.
    struct _sampling_thread *next;
    struct _sampling_thread *prev;
    // Ring of the records that share an OS thread; NULL: it is the only one.
    // Same lock.
    struct _sampling_thread *sibling;
    // Mailbox of the clock: it writes; the signal handler reads, and the
    // thread when it gives up the GIL.  Published by `asked`.
    uint64_t tick_wall_ns;
    uint64_t tick_cpu_ns;
    uint64_t sent_ns;           // when the signal was sent
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
    // Does the thread take signals?  Written by the thread, before it reads
    // `asked`; read by the clock, after it has stored that.
    int mask;                   // _PySampling_Mask
    // Owner: the clock thread.
    uint64_t asked_ns;
    uint64_t seen_wall_ns;
    uint64_t seen_cpu_ns;
    uint64_t seen_delay_ns;     // how long it had waited for a CPU
    uint64_t seen_slices;       // how often it had got one
    int seen_asleep;            // in a system call, with the GIL
    int sleepy_ticks;           // it slept with the GIL lately
    // The thread's own timer (clock/run.c).  Owner: the thread; the clock
    // reads what is relaxed.
    struct _sampling_kernel_timer timer;
    int timer_signal;
    int is_timed;               // its run is: the clock checks not; relaxed
    uint64_t timer_deadline_ns; // which it is set for; 0: none; relaxed
    uint64_t timer_fires_ns;
    uint64_t run_end_ns;        // before the timer was cleared
    uint64_t drained_ns;        // since then
    uint64_t usual_run_ns;      // how long it holds the GIL, on average
    // Set by the thread, relaxed, and read by a flush and the clock.
    // When it found that another thread has the GIL that it asks for; 0: it
    // has not since it gave the GIL up.
    uint64_t waiting_since_ns;
    // The beginning of its run: RunPrepare() sets it, RunOpen() moves it
    // behind what the profiler did since.
    uint64_t attached_ns;
    // Owner: the thread itself, or, while it is detached, whoever holds its
    // GIL.
    // runtime->sampling.epoch it belongs to.  Written with the thread's GIL
    // and runtime->sampling.mutex; read by _PySampling_IN_EPOCH().
    unsigned int epoch;
    int in_hook;                // handler must not touch what follows
    int is_yielding;            // the GIL, between two instructions
    int is_leaving;             // from RunPrepare() to RunOpen(), and in
                                // RunEnd(): the handler captures nothing
    uint64_t flight_ns;         // how long a signal usually takes to stop it
    uint64_t visits_ns;         // of its run, for the overdue tick
    struct _sampling_overdue overdue;
    struct _sampling_call resumed;  // what that run began in
    int excluded;               // _PySampling_Exclusion
    int ran_tasks;              // of some loop
    uint32_t num_woken;         // tasks that are to run on it
    struct _sampling_delays *delays;    // NULL: none was seen
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
    uint32_t last_off_node;     // the same without the GIL
    uint32_t last_off_labels;
    uint32_t root_node;         // its outermost frames; 0: not known yet
    // Where the last sample found it while it held the GIL, for those who
    // waited for it; 0: no sample has.
    uint32_t held_node;
    uint64_t manual_cpu_ns;     // CPU clock of manual sessions
    struct _sampling_account account;
    struct _sampling_carries set_aside; // the program's, while `excluded`
    uint64_t residue_cpu_ns;    // recorded by the last flush without a tick
    uint64_t residue_wall_ns;
};

#endif  // !Py_SAMPLING_THREAD_H
