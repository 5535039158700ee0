/* Samples of the built-in profiler, for profilers written in C.

   A subscription gets records: samples of every thread, and what else happens
   (PySampling_Kind).  Batches of them are drained without a Python object,
   from any thread, with or without an attached thread state.

       #include "Python.h"
       #include "cpython/sampling.h"

       const PySampling_API *api =
           PyCapsule_Import(PySampling_CAPSULE_NAME, 0);
       if (api == NULL || api->version < 1) ...

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

   Records refer to stacks, threads and labels by number.  A batch brings the
   rows that the subscription has not got yet, so that whoever keeps
   them can look up every number; all numbers begin anew when `serial` of a
   batch differs from the one before.

   An extension and an interpreter may be of different versions: structs grow,
   at their end only, and whoever makes one says how large it is.

   - PySampling_Options is the extension's.  What lies beyond its `size` has
     the default.  If it is larger than the interpreter knows, what the
     interpreter does not know has to be 0: the default of all fields to come.
   - PySampling_API and PySampling_Batch are the interpreter's.  All fields of
     version 1 are there; check PySampling_HAS() before using a later one.
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

typedef struct _sampling_subscription PySampling_Subscription;

typedef struct {
    size_t size;                // sizeof(PySampling_Options), as the extension
                                // was compiled
    int rate_hz;                // samples per second of each thread, at least:
                                // the clock ticks for whoever wants most, and
                                // all get every sample
    int depth_frames;           // 0: what holds already, or the default
    int names;                  // 1: C functions and operators, 2: opcodes,
                                // 3: both; -1: what holds, or the default
    uint32_t max_records;       // capacity: records that may wait
    int64_t interpreter_id;     // -1: all interpreters; of one that is not
                                // there (yet) no records come
    uint64_t flags;             // PySampling_WITH_*
} PySampling_Options;

// Also what asyncio's tasks wait for: PySampling_TASK, PySampling_DELAY and
// the rows of PySampling_TaskClass.
#define PySampling_WITH_TASKS 1

#define PySampling_OPTIONS_INIT \
    {sizeof(PySampling_Options), 1000, 0, -1, 65536, -1, 0}

typedef enum {
    PySampling_SAMPLE = 0,
    PySampling_THREAD_START = 1,
    PySampling_THREAD_END = 2,  // weights: given to samples without a tick
    PySampling_GC = 3,          // count: the generation; wall_ns: how long
    PySampling_FORK = 4,        // the process forked; this is the parent
    PySampling_RATE = 5,        // count: the rate it asks for, in Hz
    PySampling_LOST = 6,        // count: records that were dropped
    // Only with PySampling_WITH_TASKS.  Their wall_ns is on no thread's clock.
    PySampling_TASK = 7,        // a task waited, for so long
    PySampling_DELAY = 8,       // tasks waited for their loop because of
                                // this: a proportion, not a time
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

#define PySampling_FLAG_RESIDUE 1   // count is 0: what no tick hit, or of a
                                    // sample that counts in another state
#define PySampling_FLAG_MERGED 2    // of several samples of one stack

typedef struct {
    uint64_t time_ns;           // monotonic: of its tick; off the GIL, when
                                // the time that it weighs ended.  Records of
                                // one thread need not be in this order
    uint32_t node;              // the stack: a node and its parents
    uint32_t thread;
    uint32_t labels;
    uint8_t kind;               // PySampling_Kind
    uint8_t state;              // PySampling_State
    uint16_t flags;
    uint64_t count;             // samples that it stands for
    uint64_t cpu_ns;
    uint64_t wall_ns;
    // Who had the GIL while the thread waited for it.  A wait with several
    // holders has a record for each.
    uint32_t holder_thread;     // PySampling_NO_THREAD: it is not known
    uint32_t holder_node;       // where it was: its Python functions at their
                                // lines, and the C function that the innermost
                                // calls; 0: the record is of no such wait
} PySampling_Record;

#define PySampling_NO_THREAD UINT32_MAX

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
    uint32_t task_function;     // what the task runs, if it is known
    uint32_t is_work;           // the thread is not in the task: it is one of
                                // an executor, and works for it
} PySampling_Label;

#define PySampling_NO_FUNCTION UINT32_MAX

/* What was counted of all tasks that run a function, exactly, since the
   subscription began; the two longest may have been before.  What they ran is
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
    uint32_t first;             // row i of the array is number first + i
    uint32_t num;
} PySampling_Rows;

// A pointer to row i: PySampling_ROW(PySampling_Record, batch->records, i)
#define PySampling_ROW(TYPE, ROWS, I) \
    ((const TYPE *)((const char *)(ROWS).rows + (size_t)(I) * (ROWS).stride))

typedef struct {
    size_t size;                // sizeof(PySampling_Batch), as the interpreter
                                // was compiled
    uint32_t serial;
    PySampling_Rows records;    // PySampling_Record; they have no numbers
    PySampling_Rows strings;    // PySampling_String
    PySampling_Rows functions;  // PySampling_Function
    PySampling_Rows frames;     // PySampling_Frame
    PySampling_Rows nodes;      // PySampling_Node
    PySampling_Rows labels;     // PySampling_Label
    PySampling_Rows threads;    // PySampling_Thread
    // Rows that came before and come again, because a function has got a
    // module or a thread another name; and the number of each.
    PySampling_Rows changed_functions;
    const uint32_t *changed_function_rows;
    PySampling_Rows changed_threads;
    const uint32_t *changed_thread_rows;
    // All that there are, in each batch, with PySampling_WITH_TASKS.
    PySampling_Rows task_classes;       // PySampling_TaskClass
} PySampling_Batch;

typedef struct {
    int version;                // 1
    size_t size;                // sizeof(PySampling_API), as the interpreter
                                // was compiled

    /* With an attached thread state.  NULL, with an exception set, if the
       options are wrong (ValueError), sampling is under way with less than is
       asked for (RuntimeError), there is no memory, or this build has no
       profiler (NotImplementedError); then nothing else may be called. */
    PySampling_Subscription *(*subscribe)(const PySampling_Options *options);

    /* With an attached thread state.  0, or -1 with an exception set.  flush
       makes records of all time up to now, and lets all numbers begin anew if
       there are many; call it about once a second.  After close no more
       records come. */
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
