/* Sampling profiler: WHERE samples are.  Interned strings, functions, frames
   and stacks, labels and threads, in plain memory of a bounded size.  All
   profiles (tables/profile.h) and subscriptions refer to their rows.

   The tables know code objects, but neither clocks nor interpreter frames.
   They make no Python object.  Lock of every function that takes tables:
   runtime->sampling.tables_mutex, unless the tables are the caller's own. */

#ifndef Py_SAMPLING_TABLES_H
#define Py_SAMPLING_TABLES_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_code.h"          // _Py_CODEUNIT
#include "../base/common.h"

/* What all tables may take together, in bytes.  A stack costs
   16 bytes for each frame it does not share with another stack, so this is
   space for some millions of distinct call paths. */
#define _PySampling_TABLE_LIMIT_BYTES ((size_t)64 << 20)

/* Label sets and tasks that differ in one session.  Samples beyond that are
   labelled as lost, or belong to no task. */
#define _PySampling_MAX_LABEL_SETS 262144
#define _PySampling_MAX_TASKS 131072
#define _PySampling_MAX_TASK_IDS 256    // and of these, with an id

/* Functions that tasks run; further ones share a row. */
#define _PySampling_MAX_COROUTINES 1024

/* Threads with rows of their own in one session; later ones share a row. */
#define _PySampling_MAX_THREADS 65536

typedef enum {
    _PySampling_KIND_PYTHON = 0,
    _PySampling_KIND_C = 1,
    _PySampling_KIND_OPERATOR = 2,
    _PySampling_KIND_PSEUDO = 3,
} _PySampling_Kind;

/* One entry of a captured stack.  `code` is borrowed: it is valid until the
   capture is drained.  NULL marks a pseudo-frame, described by `instr`; an odd
   address marks a callee (native/native.h). */
typedef struct {
    PyCodeObject *code;
    _Py_CODEUNIT *instr;
} _PySampling_Frame;

/* Pseudo-frames: what a thread does that is no Python frame. */
typedef enum {
    _PySampling_PSEUDO_WAITING = 1,
    _PySampling_PSEUDO_GIL_WAIT,
    _PySampling_PSEUDO_GC,          // value: the generation
    _PySampling_PSEUDO_TRUNCATED,   // value: how many frames, rounded down
    _PySampling_PSEUDO_LOST,
    _PySampling_PSEUDO_UNSAMPLED,
    _PySampling_PSEUDO_ASLEEP,
    _PySampling_PSEUDO_CPU_WAIT,
    _PySampling_PSEUDO_UNKNOWN,     // who held the GIL
    _PySampling_PSEUDO_AWAITING,
    _PySampling_PSEUDO_LOOP_WAIT,
    _PySampling_PSEUDO_OTHER_TASKS,     // one coroutine too many to keep
    _PySampling_PSEUDO_NATIVE_THREAD,   // it has no Python code
    // No frames, but marks: _PySampling_IsMark() of native/native.h.
    _PySampling_PSEUDO_OPCODE,      // value: its specialized opcode
    _PySampling_PSEUDO_CALLEE,      // value: see native/native.h
    // Never captured.
    _PySampling_PSEUDO_OTHERS,      // it waits, threads without Python compute
} _PySampling_Pseudo;

static inline _PySampling_Frame
_PySampling_PseudoFrame(_PySampling_Pseudo pseudo, uint32_t value)
{
    Py_BUILD_ASSERT(_PySampling_PSEUDO_CALLEE < 16);    // the last one
    uintptr_t bits = ((uintptr_t)value << 4) | (uintptr_t)pseudo;
    return (_PySampling_Frame){NULL, (_Py_CODEUNIT *)bits};
}

#define _PySampling_NO_STRING UINT32_MAX

struct _sampling_string_row {
    const char *bytes;          // UTF-8; surrogates may stand alone
    uint32_t size;
    uint32_t hash;
    // Of the file with that name: the module of all its functions, or
    // _PySampling_NO_STRING, or MANY_MODULES (tables/frames.c).  Atomic.
    uint32_t module;
};

struct _sampling_function_row {
    uint32_t hash;
    uint32_t module;            // string, or _PySampling_NO_STRING
    uint32_t qualname;
    uint32_t filename;
    int32_t first_line;
    int32_t kind;               // _PySampling_Kind
};

struct _sampling_frame_row {
    uint32_t hash;
    uint32_t function;
    int32_t line;               // 0: unknown
    int32_t column;             // 1-based; 0: unknown
    int32_t offset;             // of the instruction, bytes; -1: none
    int32_t opcode;             // 0: none; specialized if it was the leaf's
};

struct _sampling_node_row {
    uint32_t parent;            // node; node 0 is the root of all stacks
    uint32_t frame;
};

/* One label more than the parent row has, or a task. */
struct _sampling_label_row {
    uint32_t parent;            // label; row 0 is the empty set
    uint32_t key;               // string; _PySampling_NO_STRING: a task
    uint32_t value;             // string; a task's name, if it has one
    uint32_t coroutine : 31;    // what the task runs: row + 1; 0: not known
    uint32_t is_work : 1;       // a thread works for it, and is not in it
    uint64_t task_id;           // id() of the task, or 0
};

struct _sampling_thread_row {
    uint64_t ident;
    int64_t native_id;
    int64_t interpreter_id;
    uint32_t name;              // string, or _PySampling_NO_STRING
};

/* Waits of tasks, short ones laid end to end (base/axis.h), and where the
   last of them was. */
struct _sampling_task_waits {
    uint64_t to_go_ns;
    uint64_t carried_ns;
    uint32_t node;              // 0: there was none
    uint32_t labels;
    uint32_t thread;
};

/* What tasks run. */
struct _sampling_coroutine_row {
    uint32_t function;
    uint32_t base_node;         // the stack of a loop that ran it
    struct _sampling_task_waits awaiting;
    struct _sampling_task_waits loop_wait;
};

/* A code object that is alive and has been sampled. */
struct _sampling_code_row {
    PyCodeObject *code;         // NULL: the row is free
    uint32_t function;
    uint32_t first_place;       // place, or UINT32_MAX
};

/* An instruction of such a code object. */
struct _sampling_place_row {
    PyCodeObject *code;         // NULL: the row is free
    _Py_CODEUNIT *instr;
    int32_t opcode;             // as captured; 0: it was not the leaf's
    uint32_t frame;
    uint32_t next_place;        // of the same code object, or UINT32_MAX
};

/* The frame of a callee (native/names.c).  A name costs 1 to 6 us to make, and
   most samples are of a few callees. */
#define _PySampling_CACHED_CALLEES 256

struct _sampling_cached_callee {
    uintptr_t words[3];         // the last is 0: none is kept here
    uint32_t frame;
};

/* Open addressing over row numbers; the rows hold the keys. */
struct _sampling_index {
    uint32_t *slots;            // row + 1; 0: never used
    uint32_t mask;
    uint32_t used;              // slots not 0, freed ones included
};

#define _PySampling_TABLES(X) \
    X(string) X(function) X(frame) X(node) X(label) X(code) X(place) \
    X(thread) X(coroutine)

/* Rows lie in chunks that never move: of 64, 128, 256... of them.  Who adds
   one holds the lock, and publishes it by a release store of their number; who
   has the number of a row, from an acquire load or by way of a lock, may read
   the row without one.  What changes in a row that is published is atomic: the
   module of a function, the name of a thread.  What is read with the lock
   only: codes and places, waits of coroutines, indexes. */
#define _PySampling_FIRST_ROWS 64
#define _PySampling_NUM_CHUNKS 20

struct _sampling_tables {
#define X(name) \
    struct _sampling_##name##_row *name##s[_PySampling_NUM_CHUNKS]; \
    uint32_t num_##name##s; \
    struct _sampling_index name##_index;
    _PySampling_TABLES(X)
#undef X
    struct _sampling_cached_callee callees[_PySampling_CACHED_CALLEES];
    struct _sampling_text_block *text_blocks;   // the newest first
    uint32_t free_code;         // first free row, or UINT32_MAX
    uint32_t free_place;
    uint32_t lost_node;         // the stack "[lost]"
    uint32_t lost_labels;       // the labels of samples whose own are lost
    uint32_t num_tasks;         // of the rows of labels
    uint32_t num_task_ids;      // of these
    int references;             // atomic
    unsigned int serial;        // no two tables of a process share one
    unsigned int code_version;  // changes when a sampled code object dies
    size_t bytes;
    size_t limit_bytes;
    size_t moved_bytes;         // of what came from others (tables/move.h)
};

#define _PySampling_NO_NODE UINT32_MAX
#define _PySampling_NO_THREAD UINT32_MAX

/* In which chunk a row lies, and where in it. */
static inline int
_PySampling_ChunkOf(uint32_t row, uint32_t *place)
{
    uint32_t n = row + _PySampling_FIRST_ROWS;
    int chunk = 31 - __builtin_clz(n) - 6;
    *place = n ^ ((uint32_t)_PySampling_FIRST_ROWS << chunk);
    return chunk;
}

#define _PySampling_DEFINE_AT(OWNER, NAME) \
    static inline struct _sampling_##NAME##_row * \
    _PySampling_##NAME##_at(const struct _sampling_##OWNER *owner, \
                            uint32_t row) \
    { \
        assert(row < _Py_atomic_load_uint32_relaxed(&owner->num_##NAME##s)); \
        uint32_t place; \
        int chunk = _PySampling_ChunkOf(row, &place); \
        return &owner->NAME##s[chunk][place]; \
    }
#define X(NAME) _PySampling_DEFINE_AT(tables, NAME)
_PySampling_TABLES(X)
#undef X

/* A pointer to a row: _PySampling_AT(tables, node, 5). */
#define _PySampling_AT(OWNER, NAME, ROW) \
    _PySampling_##NAME##_at((OWNER), (ROW))

extern struct _sampling_tables *_PySampling_TablesNew(size_t limit_bytes);
// One more reference; TablesFree() drops one.
extern void _PySampling_TablesKeep(struct _sampling_tables *tables);
extern void _PySampling_TablesFree(struct _sampling_tables *tables);
// The row of a thread, which may come back with another thread state; beyond
// _PySampling_MAX_THREADS the shared last row.  UINT32_MAX: no memory.
extern uint32_t _PySampling_TablesAddThread(struct _sampling_tables *tables,
                                            uint64_t ident,
                                            int64_t native_id,
                                            int64_t interpreter_id);
extern void _PySampling_TablesNameThread(struct _sampling_tables *tables,
                                         uint32_t thread, PyObject *name);
extern void
_PySampling_TablesNameMainThread(struct _sampling_tables *tables,
                                 uint32_t thread);
extern void _PySampling_TablesMoveName(struct _sampling_tables *tables,
                                       uint32_t thread,
                                       const struct _sampling_tables *old,
                                       uint32_t old_thread);

// The frame row of a captured frame, or UINT32_MAX if the limit is reached.
// `opcode` is the specialized one if the frame is the leaf, or 0.  `globals`
// is the frame's, or NULL if it is gone.
extern uint32_t _PySampling_InternFrame(struct _sampling_tables *tables,
                                        _PySampling_Frame frame, int opcode,
                                        PyObject *globals);

// The function of a code object, or UINT32_MAX if the limit is reached.
extern uint32_t _PySampling_TablesFunction(struct _sampling_tables *tables,
                                           PyCodeObject *code,
                                           PyObject *globals);

// Does the function of this frame still lack the name of its module?
extern int _PySampling_FunctionLacksModule(struct _sampling_tables *tables,
                                         PyCodeObject *code);

// The module of a function, or _PySampling_NO_STRING.  Where no frame could
// give it, that of all other functions of the file.  Needs no lock.
extern uint32_t
_PySampling_TablesModuleOf(const struct _sampling_tables *tables,
                           const struct _sampling_function_row *function);

// The node below `parent`, or _PySampling_NO_NODE if the limit is reached.
extern uint32_t _PySampling_InternChild(struct _sampling_tables *tables,
                                        uint32_t parent, uint32_t frame);
extern uint32_t _PySampling_TablesPseudoChild(struct _sampling_tables *tables,
                                              uint32_t parent,
                                              _PySampling_Pseudo pseudo,
                                              uint32_t value);

// Where an unknown holder of the GIL was: a stack of its own.
extern uint32_t
_PySampling_TablesUnknownPlace(struct _sampling_tables *tables);

// tables/labels.c.
// Returns 0 if there is no memory.
extern int _PySampling_TablesInitLabels(struct _sampling_tables *tables);

// tables/coroutines.c: what tasks run.
// The row of a function, or UINT32_MAX if the limit is reached.
extern uint32_t
_PySampling_TablesCoroutine(struct _sampling_tables *tables,
                            uint32_t function);

extern void
_PySampling_TablesForgetAddresses(struct _sampling_tables *tables);
extern void _PySampling_TablesForgetCode(struct _sampling_tables *tables,
                                         PyCodeObject *code);

#endif  // !Py_SAMPLING_TABLES_H
