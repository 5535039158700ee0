/* Sampling profiler: WHERE samples go.

   Owns the memory of the tables and its limit, stacks and threads.
   Must not know clocks, signals or interpreter frames, nor what a frame is
   called (tables/frames.c).

   Stacks are kept as a tree: a node is a frame below a parent node, and a
   stack is the path from the root to a node, so stacks share what they have
   in common.  How rows are found is in tables/store.h. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "store.h"


/* Indexes. */

static uint32_t
hash_node_row(const struct _sampling_node_row *row)
{
    return mix(row->parent, row->frame);
}

static uint32_t
hash_thread_row(const struct _sampling_thread_row *row)
{
    return mix(row->ident,
               (uint64_t)row->interpreter_id << 32 | (uint32_t)row->native_id);
}

DEFINE_INDEX(node, row == 0)        // node 0 is the root and has no key
DEFINE_INDEX(thread, 0)


/* Stacks. */

uint32_t
_PySampling_InternChild(struct _sampling_tables *tables, uint32_t parent,
                        uint32_t frame)
{
    if (parent == _PySampling_NO_NODE || frame == NO_ROW) {
        return _PySampling_NO_NODE;
    }
    uint32_t hash = mix(parent, frame);
    FOR_CANDIDATES(tables->node_index, hash, row) {
        if (AT(tables, node, row)->parent == parent
            && AT(tables, node, row)->frame == frame)
        {
            return row;
        }
    }
    if (!RESERVE(tables, nodes) || !reserve_node_index(tables)) {
        return _PySampling_NO_NODE;
    }
    uint32_t row = add_node_row(
        tables, (struct _sampling_node_row){parent, frame});
    index_put(&tables->node_index, hash, row);
    return row;
}

uint32_t
_PySampling_TablesPseudoChild(struct _sampling_tables *tables,
                              uint32_t parent, _PySampling_Pseudo pseudo,
                              uint32_t value)
{
    uint32_t frame = _PySampling_InternPseudo(tables, pseudo, value);
    return _PySampling_InternChild(tables, parent, frame);
}

uint32_t
_PySampling_TablesUnknownPlace(struct _sampling_tables *tables)
{
    uint32_t node = _PySampling_TablesPseudoChild(
        tables, 0, _PySampling_PSEUDO_UNKNOWN, 0);
    return node != _PySampling_NO_NODE ? node : tables->lost_node;
}


/* Threads. */

uint32_t
_PySampling_TablesAddThread(struct _sampling_tables *tables, uint64_t ident,
                            int64_t native_id, int64_t interpreter_id)
{
    struct _sampling_thread_row key = {
        ident, native_id, interpreter_id, _PySampling_NO_STRING};
    uint32_t hash = hash_thread_row(&key);
    FOR_CANDIDATES(tables->thread_index, hash, row) {
        const struct _sampling_thread_row *thread = AT(tables, thread, row);
        if (thread->ident == ident && thread->native_id == native_id
            && thread->interpreter_id == interpreter_id)
        {
            return row;
        }
    }
    if (tables->num_threads >= _PySampling_MAX_THREADS
        || !RESERVE(tables, threads) || !reserve_thread_index(tables))
    {
        _PySampling_COUNT(lost_threads, 1);
        return tables->num_threads ? tables->num_threads - 1 : NO_ROW;
    }
    uint32_t row = add_thread_row(tables, key);
    index_put(&tables->thread_index, hash, row);
    return row;
}

/* Who reads it without the lock finds the string there. */
static void
set_name(struct _sampling_tables *tables, uint32_t thread, uint32_t name)
{
    if (thread < tables->num_threads) {
        _Py_atomic_store_uint32_release(
            &AT(tables, thread, thread)->name, name);
    }
}

void
_PySampling_TablesNameMainThread(struct _sampling_tables *tables,
                                 uint32_t thread)
{
    static const char name[] = "MainThread";    // as threading calls it
    set_name(tables, thread,
             _PySampling_InternBytes(tables, name, sizeof(name) - 1));
}

void
_PySampling_TablesNameThread(struct _sampling_tables *tables,
                             uint32_t thread, PyObject *name)
{
    set_name(tables, thread, _PySampling_InternText(tables, name));
}

/* The thread keeps the name it had in other tables. */
void
_PySampling_TablesMoveName(struct _sampling_tables *tables, uint32_t thread,
                           const struct _sampling_tables *old,
                           uint32_t old_thread)
{
    if (thread >= tables->num_threads || old_thread >= old->num_threads
        || AT(old, thread, old_thread)->name == _PySampling_NO_STRING)
    {
        return;
    }
    const struct _sampling_string_row *name = AT(
        old, string, AT(old, thread, old_thread)->name);
    set_name(tables, thread,
             _PySampling_InternBytes(tables, name->bytes, name->size));
}


/* Life. */

struct _sampling_tables *
_PySampling_TablesNew(size_t limit_bytes)
{
    struct _sampling_tables *tables =
        calloc(1, sizeof(*tables));
    if (tables == NULL) {
        return NULL;
    }
    tables->references = 1;
    tables->limit_bytes = limit_bytes;
    tables->free_code = NO_ROW;
    tables->free_place = NO_ROW;
    if (!RESERVE(tables, nodes)) {
        _PySampling_TablesFree(tables);
        return NULL;
    }
    (void)add_node_row(tables, (struct _sampling_node_row){0, 0});
    tables->lost_node = _PySampling_TablesPseudoChild(
        tables, 0, _PySampling_PSEUDO_LOST, 0);
    // Made beforehand so that losing needs no memory.
    if (tables->lost_node == _PySampling_NO_NODE
        || !_PySampling_TablesInitLabels(tables)
        || !RESERVE(tables, threads) || !reserve_thread_index(tables))
    {
        _PySampling_TablesFree(tables);
        return NULL;
    }
    return tables;
}

void
_PySampling_TablesKeep(struct _sampling_tables *tables)
{
    (void)_Py_atomic_add_int(&tables->references, 1);
}

void
_PySampling_TablesFree(struct _sampling_tables *tables)
{
    if (tables == NULL
        || _Py_atomic_add_int(&tables->references, -1) > 1)
    {
        return;
    }
#define X(name) \
    _PySampling_FreeChunks((void **)tables->name##s); \
    free(tables->name##_index.slots);
    _PySampling_TABLES(X)
#undef X
    _PySampling_FreeTexts(tables);
    free(tables);
}
