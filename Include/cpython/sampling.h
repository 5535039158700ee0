/* Samples of the built-in profiler, for profilers written in C.

   A subscription is handed over in batches: what every thread did since the
   last one, added up, with the names that it uses.  Batches are drained
   without a Python object, from any thread, with or without an attached thread
   state.

       #include "Python.h"
       #include "cpython/sampling.h"

       const PySampling_API *api =
           PyCapsule_Import(PySampling_CAPSULE_NAME, 0);
       if (api == NULL || api->version < 2) ...

       PySampling_Options options = PySampling_OPTIONS_INIT;
       options.rate_hz = 100;
       PySampling_Subscription *sub = api->subscribe(&options);
       ...
       PySampling_Batch *batch;
       while (api->drain(sub, &batch) > 0) {
           ...
           api->release(batch);
       }
       api->close(sub);
       ... drain what is left ...
       api->free(sub);

   A batch is whole: its rows refer to rows of the same batch.  `numbers` says
   which rows of several batches are the same: those of equal number, as long
   as `serial` is the same.

   An extension and an interpreter may be of different versions: structs grow,
   at their end only, and whoever makes one says how large it is.

   - PySampling_Options is the extension's.  What lies beyond its `size` has
     the default.  If it is larger than the interpreter knows, what the
     interpreter does not know has to be 0: the default of all fields to come.
   - PySampling_API and PySampling_Batch are the interpreter's.  All fields of
     version 2 are there; check PySampling_HAS() before using a later one.
   - So are rows.  The `stride` of an array is the distance between two of
     them: use PySampling_ROW(), never an index into the array. */

#ifndef Py_CPYTHON_SAMPLING_H
#define Py_CPYTHON_SAMPLING_H
#ifdef __cplusplus
extern "C" {
#endif

#include <stddef.h>
#include <stdint.h>

#define PySampling_CAPSULE_NAME "_profile.C_API"

// Is the field there, in a struct of that size, or a row of that stride?
#define PySampling_HAS(SIZE, TYPE, FIELD) \
    ((SIZE) >= offsetof(TYPE, FIELD) + sizeof(((const TYPE *)0)->FIELD))

typedef struct _sampling_sink PySampling_Subscription;

typedef struct {
    size_t size;                // sizeof(PySampling_Options), as the extension
                                // was compiled
    int rate_hz;                // samples per second of each thread, at least:
                                // the clock ticks for whoever wants most, and
                                // all get every sample
    int depth_frames;           // 0: what holds already, or the default
    int names;                  // 1: C functions and operators, 2: opcodes,
                                // 3: both; -1: what holds, or the default
    uint32_t max_samples;       // capacity: samples that differ, in a batch;
                                // further ones are of the stack "[lost]"
    int64_t interpreter_id;     // -1: all interpreters; of one that is not
                                // there (yet) no records come
    uint64_t flags;             // PySampling_WITH_*
    uint32_t max_moments;       // with PySampling_WITH_MOMENTS: how many wait;
                                // more are made fewer, and coarser
} PySampling_Options;

// Also what asyncio's tasks wait for: task_ns, delay_ns and counters in the
// rows of PySampling_TaskClass.
#define PySampling_WITH_TASKS 1
// Also when samples were taken: the rows of PySampling_Moment.
#define PySampling_WITH_MOMENTS 2

#define PySampling_OPTIONS_INIT \
    {sizeof(PySampling_Options), 1000, 0, -1, 65536, -1, 0, 65536}

// What happens beside samples.
typedef enum {
    PySampling_THREAD_START = 1,
    PySampling_THREAD_END = 2,  // weights: given to samples without a tick
    PySampling_GC = 3,          // count: the generation; wall_ns: how long
    PySampling_FORK = 4,        // the process forked; this is the parent
    PySampling_RATE = 5,        // count: the rate it asks for, in Hz
} PySampling_Kind;

typedef enum {
    PySampling_STATE_RUNNING = 0,       // on a CPU, with the GIL
    PySampling_STATE_WAITING = 1,       // neither
    PySampling_STATE_GIL_WAIT = 2,
    PySampling_STATE_GC = 3,
    PySampling_STATE_LOST = 4,
    PySampling_STATE_UNSAMPLED = 5,     // its stack is not known
    PySampling_STATE_CUSTOM = 6,        // taken by the program itself
    PySampling_STATE_ASLEEP_WITH_GIL = 7,   // in a system call
    PySampling_STATE_AWAITING = 8,          // of tasks: what they wait for
    PySampling_STATE_LOOP_WAIT = 9,         // has not happened; it has
    PySampling_STATE_NATIVE = 10,       // on a CPU, without the GIL
    PySampling_STATE_CPU_WAIT = 11,     // with the GIL, but without a CPU
} PySampling_State;

/* All records of one key since the last batch. */
typedef struct {
    uint32_t node;              // the stack: a node and its parents
    uint32_t thread;
    uint32_t labels;
    uint32_t state;             // PySampling_State
    // Who had the GIL while the thread waited for it.
    uint32_t holder_thread;     // PySampling_NO_THREAD: it is not known
    uint32_t holder_node;       // where it was: Python functions at their
                                // lines, and the C function that the innermost
                                // calls; 0: it is no such wait
    uint64_t time_ns;           // monotonic: of the last record
    uint64_t count;             // samples that it stands for
    uint64_t cpu_ns;
    uint64_t wall_ns;
    uint64_t task_ns;           // of tasks' lives while they wait
    uint64_t delay_ns;          // tasks waited for their loop because of this:
                                // a proportion, not a time
} PySampling_Sample;

#define PySampling_NO_THREAD UINT32_MAX

/* A record of a sample.  Those of one thread need not be in the order of
   time. */
typedef struct {
    uint64_t time_ns;           // monotonic: of its tick; off the GIL, when
                                // the time that it weighs ended
    uint64_t count;
    uint64_t cpu_ns;
    uint64_t wall_ns;
    uint32_t sample;            // the row that it is part of
    uint32_t reserved;
} PySampling_Moment;

typedef struct {
    uint64_t time_ns;           // monotonic
    uint64_t count;
    uint64_t cpu_ns;
    uint64_t wall_ns;
    uint32_t kind;              // PySampling_Kind
    uint32_t thread;            // PySampling_NO_THREAD: it is of none
} PySampling_Event;

#define PySampling_NO_STRING UINT32_MAX

typedef struct {
    const char *utf8;           // not terminated; surrogates may stand alone
    size_t size;                // in bytes
} PySampling_String;

typedef struct {
    uint32_t module;            // string, or PySampling_NO_STRING
    uint32_t qualname;          // string
    uint32_t filename;          // string
    int32_t first_line;
    int32_t kind;               // 0: Python, 1: C, 2: operator, 3: pseudo
} PySampling_Function;

typedef struct {
    uint32_t function;
    int32_t line;               // 0: not known
    int32_t column;             // from 1; 0: not known
    int32_t offset;             // of the instruction, in bytes; -1: none
    int32_t opcode;             // 0: none; specialized if it was the leaf's
} PySampling_Frame;

/* A frame below a parent node.  Node 0 is the root of all stacks. */
typedef struct {
    uint32_t parent;
    uint32_t frame;
} PySampling_Node;

/* One label more than its parent row has.  Row 0 is the empty set. */
typedef struct {
    uint32_t parent;
    uint32_t key;               // string; PySampling_NO_STRING: a task
    uint32_t value;             // string; of a task its name, if it has one
    uint64_t task_id;           // id() of the task, or 0
    uint32_t task_class;        // what the task runs, if it is known
    uint32_t is_work;           // the thread is not in the task: it is one of
                                // an executor, and works for it
} PySampling_Label;

#define PySampling_NO_CLASS UINT32_MAX

/* What was counted of all tasks that run a function, exactly, since the last
   batch; the two longest may have been before.  What they ran is
   to be shared by the samples in these tasks, by their wall time. */
typedef struct {
    uint32_t function;
    uint32_t num_lives;
    const uint32_t *lives;      // how many of those that finished lived that
                                // long: a bucket for each of the first 8 ns,
                                // then 8 for each power of two
    uint64_t finished;
    uint64_t cancelled;         // of these
    uint64_t steps;
    uint64_t running_ns;
    uint64_t loop_wait_ns;
    uint64_t awaiting_ns;
    uint64_t longest_step_ns;
    uint64_t longest_life_ns;
    uint64_t lives_ns;          // of those that finished
} PySampling_TaskClass;

typedef struct {
    uint64_t ident;
    int64_t native_id;
    int64_t interpreter_id;
    uint32_t name;              // string, or PySampling_NO_STRING
} PySampling_Thread;

/* An array.  This struct does not grow: batches consist of it. */
typedef struct {
    const void *rows;
    size_t stride;              // bytes from one row to the next
    uint32_t num;
    const uint32_t *numbers;    // of each row; NULL: they have none
} PySampling_Rows;

// A pointer to row i: PySampling_ROW(PySampling_Sample, batch->samples, i)
#define PySampling_ROW(TYPE, ROWS, I) \
    ((const TYPE *)((const char *)(ROWS).rows + (size_t)(I) * (ROWS).stride))

typedef struct {
    size_t size;                // sizeof(PySampling_Batch), as the interpreter
                                // was compiled
    uint32_t serial;
    PySampling_Rows samples;    // PySampling_Sample
    PySampling_Rows strings;    // PySampling_String
    PySampling_Rows functions;  // PySampling_Function
    PySampling_Rows frames;     // PySampling_Frame
    PySampling_Rows nodes;      // PySampling_Node
    PySampling_Rows labels;     // PySampling_Label
    PySampling_Rows threads;    // PySampling_Thread
    PySampling_Rows task_classes;       // PySampling_TaskClass
    PySampling_Rows events;     // PySampling_Event
    PySampling_Rows moments;    // PySampling_Moment
} PySampling_Batch;

typedef struct {
    int version;                // 2
    size_t size;                // sizeof(PySampling_API), as the interpreter
                                // was compiled

    /* With an attached thread state.  NULL, with an exception set, if the
       options are wrong (ValueError), sampling is under way with less than is
       asked for (RuntimeError), there is no memory, or this build has no
       profiler (NotImplementedError); then nothing else may be called. */
    PySampling_Subscription *(*subscribe)(const PySampling_Options *options);

    /* With an attached thread state.  0, or -1 with an exception set.  flush
       adds all time up to now, and lets all numbers begin anew if
       there are many; call it about once a second.  After close no more
       samples come. */
    int (*flush)(PySampling_Subscription *sub);
    int (*set_rate)(PySampling_Subscription *sub, int rate_hz);
    int (*close)(PySampling_Subscription *sub);

    /* From any thread, one at a time.  1: *batch is one; 0: nothing waits;
       -1: no memory, and nothing is lost.  Sets no exception. */
    int (*drain)(PySampling_Subscription *sub, PySampling_Batch **batch);
    void (*release)(PySampling_Batch *batch);

    /* After close, when every batch is released.  In the child of a fork
       subscriptions are closed. */
    void (*free)(PySampling_Subscription *sub);
} PySampling_API;

#ifdef __cplusplus
}
#endif
#endif  // !Py_CPYTHON_SAMPLING_H
