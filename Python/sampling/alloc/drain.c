/* Sampling profiler: from sampled blocks to rows.

   Owns how the stack of a block becomes a node, and in which order blocks
   begin and end in the profiles.  Must not know which blocks are sampled
   (alloc/samples.c), or what a row adds up to (tables/allocations.c). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../sample/buffer.h"
#include "../sample/sample.h"
#include "../tables/labels.h"
#include "../tables/store.h"
#include "alloc.h"

#define STATE (&_PyRuntime.sampling)


/* Stacks. */

static struct _sampling_alloc_key
key_of_native(struct _sampling_tables *tables,
              const struct _sampling_alloc_capture *capture)
{
    return (struct _sampling_alloc_key){
        .node = _PySampling_TablesPseudoChild(
            tables, 0, _PySampling_PSEUDO_NATIVE_THREAD, 0),
        .thread = _PySampling_TablesAddThread(tables, capture->ident,
                                              capture->native_id, 0),
    };
}

/* Those of other GILs are named by their own threads. */
static void
name_captures(struct _sampling_alloc *alloc, struct _sampling_tables *tables,
              PyThreadState *tstate)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    for (uint32_t i = 0; i < alloc->num_captures; i++) {
        struct _sampling_alloc_capture *capture = &alloc->captures[i];
        if (capture->is_named) {
            continue;
        }
        if (capture->interp == NULL) {
            capture->key = key_of_native(tables, capture);
        }
        else if (capture->interp == tstate->interp) {
            capture->key = (struct _sampling_alloc_key){
                .node = _PySampling_InternStack(
                    tables, buffer, capture->tstate,
                    alloc->frames + capture->first, (int)capture->depth),
                .thread = capture->thread,
                .labels = _PySampling_LabelsOf(tables, capture->tstate,
                                               capture->context),
            };
        }
        else {
            continue;
        }
        capture->is_named = 1;
    }
    tstate->interp->sampling.num_alloc_captures = 0;
    _PySampling_SlotsKeep(buffer->slots);
}


/* Blocks. */

static int
is_large(const struct _sampling_block *block)
{
    return block->kind != _PySampling_SMALL_BLOCK;
}

static void
begin_block(struct _sampling_alloc *alloc, struct _sampling_block *block,
            struct _sampling_tables *tables, PyInterpreterState *interp)
{
    block->key = alloc->captures[block->capture].key;
    block->key.labels = _PySampling_AllocLabels(tables, interp, block,
                                                block->key.labels);
    block->capture = _PySampling_NO_CAPTURE;
    block->number = ++alloc->num_samples;
    struct _sampling_amount amount =
        _PySampling_AmountOf(block->size_bytes, alloc->period_bytes);
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        if (_PySampling_SinkWantsBlock(sink, &block->key)
            && !_PySampling_AllocTableAdd(&sink->allocations, &block->key,
                                          &amount, is_large(block),
                                          block->begun_ns))
        {
            _PySampling_COUNT(lost_allocations, 1);
        }
    }
}

static void
end_block(struct _sampling_alloc *alloc, uint32_t b)
{
    struct _sampling_block *block = &alloc->blocks[b];
    struct _sampling_amount amount =
        _PySampling_AmountOf(block->size_bytes, alloc->period_bytes);
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        if (_PySampling_SinkWantsBlock(sink, &block->key)
            && sink->allocations.since < block->number)
        {
            _PySampling_AllocTableRemove(&sink->allocations, &block->key,
                                         &amount, is_large(block),
                                         block->begun_ns, block->ended_ns);
        }
    }
    block->number = 0;
    block->next = alloc->free_block;
    alloc->free_block = b;
}

/* In the order in which it happened, up to a block whose stack a thread of
   another GIL has to name. */
static void
replay_log(struct _sampling_alloc *alloc, struct _sampling_tables *tables,
           PyInterpreterState *interp)
{
    uint32_t done = 0;
    for (; done < alloc->num_log; done++) {
        uint32_t b = alloc->log[done] >> 1;
        struct _sampling_block *block = &alloc->blocks[b];
        if (alloc->log[done] & 1) {
            end_block(alloc, b);
        }
        else if (alloc->captures[block->capture].is_named) {
            begin_block(alloc, block, tables, interp);
        }
        else {
            break;
        }
    }
    alloc->num_log -= done;
    memmove(alloc->log, alloc->log + done,
            alloc->num_log * sizeof(*alloc->log));
    if (alloc->num_log == 0) {
        alloc->num_captures = 0;
        alloc->num_frames = 0;
    }
}

void
_PySampling_AllocDrain(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    if (alloc == NULL || !alloc->active) {
        return;
    }
    _PySampling_AllocCheck(alloc);
    _PySampling_KeepResident(alloc, tstate->interp);
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return;
    }
    PyMutex_LockFlags(&alloc->mutex, _Py_LOCK_DONT_DETACH);
    if (alloc->serial != tables->serial) {
        // What they are rows of is gone, and with it who wanted them.
        _PySampling_AllocForgetBlocks(alloc);
        alloc->serial = tables->serial;
    }
    if (alloc->num_captures != 0 || alloc->num_log != 0) {
        name_captures(alloc, tables, tstate);
        replay_log(alloc, tables, tstate->interp);
    }
    PyMutex_Unlock(&alloc->mutex);
    _PySampling_CloseTables();
}


/* Other tables. */

/* Those whose stack is known in the tables; others are named in the next. */
static void
want(const struct _sampling_alloc *alloc, struct _sampling_move *move)
{
    for (uint32_t b = 0; b < alloc->num_blocks; b++) {
        if (alloc->blocks[b].number != 0) {
            _PySampling_MoveWants(move, alloc->blocks[b].key.node);
        }
    }
    for (uint32_t i = 0; i < alloc->num_captures; i++) {
        if (alloc->captures[i].is_named) {
            _PySampling_MoveWants(move, alloc->captures[i].key.node);
        }
    }
}

static void
move_keys(struct _sampling_alloc *alloc, struct _sampling_move *move)
{
    for (uint32_t b = 0; b < alloc->num_blocks; b++) {
        if (alloc->blocks[b].number != 0) {
            _PySampling_AllocKeyMove(&alloc->blocks[b].key, move);
        }
    }
    for (uint32_t i = 0; i < alloc->num_captures; i++) {
        struct _sampling_alloc_capture *capture = &alloc->captures[i];
        if (capture->is_named) {
            _PySampling_AllocKeyMove(&capture->key, move);
        }
        else if (capture->interp != NULL) {
            capture->thread = _PySampling_MovedThread(move, capture->thread);
        }
    }
}

void
_PySampling_AllocMove(struct _sampling_tables *to,
                      const struct _sampling_tables *from)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    if (alloc == NULL || !alloc->active || alloc->serial != from->serial) {
        return;
    }
    PyMutex_LockFlags(&alloc->mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_move move;
    _PySampling_MoveBegin(&move, to, from);
    want(alloc, &move);
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        _PySampling_AllocTableWants(&sink->allocations, &move);
    }
    _PySampling_MoveNodes(&move);
    move_keys(alloc, &move);
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        _PySampling_AllocTableMove(&sink->allocations, &move);
    }
    _PySampling_MoveEnd(&move);
    alloc->serial = to->serial;
    to->moved_bytes = to->bytes;
    PyMutex_Unlock(&alloc->mutex);
}
