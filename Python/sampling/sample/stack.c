/* Sampling profiler: a stack as a node of the tables.

   Owns the way from a copy of pointers, or from a thread that stands still, to
   a row: what the stack shares with the one before is not looked up again.
   Must not know whose time it is. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../base/frame.h"
#include "buffer.h"
#include "sample.h"
#include "walk.h"

/* How far up the stack a frame of the same file is looked for. */
#define MAX_GLOBALS_FRAMES 64

/* The globals of a frame that still runs `code`.  A leaf that has returned
   meanwhile is of the same module as any frame whose code came from the same
   compilation: those share one object as their file name.  NULL: none. */
static PyObject *
globals_of(PyThreadState *tstate, PyCodeObject *code)
{
    int steps = 0;
    for (_PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
         frame != NULL && steps < MAX_GLOBALS_FRAMES;
         frame = _PySampling_FramePrevious(frame), steps++)
    {
        if (!_PySampling_IsArtificial(frame)
            && _PySampling_FrameCode(frame)->co_filename == code->co_filename)
        {
            return _PySampling_FrameGlobals(frame);
        }
    }
    return NULL;
}

/* The node of one entry, whose caller's is `node`.  A mark has no node of its
   own, but is read with its entry (entry[1] of it); nor has C code that is not
   to be named. */
static uint32_t
intern_entry(struct _sampling_tables *tables, PyThreadState *tstate,
             uint32_t node, const _PySampling_Frame *entry, int has_mark)
{
    if (_PySampling_IsMark(*entry)) {
        return node;
    }
    if (_PySampling_IsCallee(*entry)) {
        uint32_t frame = _PySampling_InternCallee(tables, tstate->interp,
                                                  entry[0], entry[1]);
        return frame == UINT32_MAX
            ? node : _PySampling_InternChild(tables, node, frame);
    }
    int opcode = has_mark ? _PySampling_OpcodeOfMark(entry[1]) : 0;
    PyObject *globals = NULL;
    if (_PySampling_FunctionLacksModule(tables, entry->code)) {
        globals = globals_of(tstate, entry->code);
    }
    return _PySampling_InternChild(
        tables, node,
        _PySampling_InternFrame(tables, *entry, opcode, globals));
}

/* How many entries of a stack say what the leaf frame does. */
static int
entries_above_leaf(const _PySampling_Frame *frames, int depth)
{
    int n = 0;
    while (n < depth && (frames[n].code == NULL
                         || _PySampling_IsCallee(frames[n])))
    {
        n++;
    }
    return n;
}

static int
leaf_wants_module(struct _sampling_tables *tables,
                  const _PySampling_Frame *frames, int depth)
{
    int leaf = entries_above_leaf(frames, depth);
    return leaf < depth
        && _PySampling_FunctionLacksModule(tables, frames[leaf].code);
}

/* Is the entry at `depth` from the root what it was in the last stack?  A
   callee is looked up: what the same words lead to may be another one. */
static int
is_as_before(struct _sampling_tables *tables,
             const struct _sampling_buffer *buffer, PyThreadState *tstate,
             const _PySampling_Frame *entry, int depth)
{
    return entry->code == buffer->path[depth].code
        && entry->instr == buffer->path[depth].instr
        && (!_PySampling_IsCallee(*entry)
            || intern_entry(tables, tstate, buffer->path_nodes[depth - 1],
                            entry, 0) == buffer->path_nodes[depth]);
}

/* The node of a stack given leaf first.  What it shares with the last stack,
   from the root on, is not looked up again. */
uint32_t
_PySampling_InternStack(struct _sampling_tables *tables,
                        struct _sampling_buffer *buffer,
                        PyThreadState *tstate,
                        const _PySampling_Frame *frames, int depth)
{
    if (buffer->path_serial != tables->serial
        || buffer->path_version != tables->code_version)
    {
        buffer->path_serial = tables->serial;
        buffer->path_version = tables->code_version;
        buffer->path_depth = 0;
    }
    int shared = Py_MIN(depth, buffer->path_depth);
    int i = 0;
    const _PySampling_Frame *entry = frames + depth - 1;
    while (i < shared && is_as_before(tables, buffer, tstate, entry, i)) {
        i++;
        entry--;
    }
    int is_last = i == depth && depth == buffer->path_depth;
    int may_want_module = !is_last || buffer->path_wants_module;
    if (depth > 0 && i == depth && may_want_module
        && leaf_wants_module(tables, frames, depth))
    {
        // Give it another chance to give its module.
        int leaf = entries_above_leaf(frames, depth);
        i = depth - 1 - leaf;
        entry = frames + leaf;
    }
    uint32_t node = i > 0 ? buffer->path_nodes[i - 1] : 0;
    for (; i < depth; i++, entry--) {
        int has_mark = i > 0 && _PySampling_IsMark(entry[1]);
        node = intern_entry(tables, tstate, node, entry, has_mark);
        if (node == _PySampling_NO_NODE) {
            break;
        }
        buffer->path[i] = *entry;
        buffer->path_nodes[i] = node;
    }
    buffer->path_depth = i;
    if (may_want_module) {
        buffer->path_wants_module = leaf_wants_module(tables, frames, depth);
    }
    return node;
}

/* Frames that show what a thread is for: those of threading.Thread, and the
   target that it calls. */
#define OUTERMOST_FRAMES 4

static uint32_t
walk_node(PyThreadState *tstate, _PySampling_Thread *thread,
          _PyInterpreterFrame *frame, int names, int is_in_c, int max_depth,
          const struct _sampling_call *call)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    assert(buffer->num_captures == 0
           || buffer->epoch != thread->epoch);
    struct _sampling_walk w = {
        .interp = tstate->interp,
        .slots = buffer->slots,
        .names = names,
        .call = call,
        .out = buffer->frames,
    };
    _PySampling_Walk(&w, thread, frame, buffer->depth_frames, is_in_c);
    _PySampling_SlotsKeep(buffer->slots);
    int skip = w.num_entries > max_depth ? w.num_entries - max_depth : 0;
    return _PySampling_InternStack(
        _PyRuntime.sampling.tables, buffer, tstate, buffer->frames + skip,
        w.num_entries - skip);
}

uint32_t
_PySampling_WalkNode(PyThreadState *tstate, _PySampling_Thread *thread,
                     int is_in_c)
{
    return walk_node(tstate, thread, _PySampling_CurrentFrame(tstate),
                     _PyRuntime.sampling.options.names, is_in_c, INT_MAX,
                     NULL);
}

_PySampling_RACES uint32_t
_PySampling_SleeperNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
    int is_known = frame != NULL
        && _Py_atomic_load_ptr_acquire(&thread->sleeper.frame) == frame
        && thread->sleeper.instr == _PySampling_FrameInstr(frame);
    struct _sampling_call call = thread->sleeper;
    // The clock may have begun to write another one meanwhile.
    _Py_atomic_fence_acquire();
    is_known = is_known
        && _Py_atomic_load_ptr_relaxed(&thread->sleeper.frame) == frame;
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    return walk_node(tstate, thread, frame,
                     _PyRuntime.sampling.options.names, is_known, INT_MAX,
                     is_known ? &call : NULL);
}

/* The frame so many Python frames further out. */
static _PyInterpreterFrame *
outer_frame(_PyInterpreterFrame *frame, int skip_frames)
{
    for (;;) {
        while (frame != NULL && _PySampling_IsArtificial(frame)) {
            frame = _PySampling_FramePrevious(frame);
        }
        if (frame == NULL || skip_frames-- <= 0) {
            return frame;
        }
        frame = _PySampling_FramePrevious(frame);
    }
}

uint32_t
_PySampling_OuterNode(PyThreadState *tstate, _PySampling_Thread *thread,
                      int skip_frames)
{
    return walk_node(tstate, thread,
                     outer_frame(_PySampling_CurrentFrame(tstate),
                                 skip_frames),
                     _PyRuntime.sampling.options.names, 1, INT_MAX, NULL);
}

uint32_t
_PySampling_CallerNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    return walk_node(tstate, thread,
                     outer_frame(_PySampling_CurrentFrame(tstate), 1),
                     _PyRuntime.sampling.options.names, 0, INT_MAX, NULL);
}

uint32_t
_PySampling_RootNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    return walk_node(tstate, thread, _PySampling_CurrentFrame(tstate), 0, 0,
                     OUTERMOST_FRAMES, NULL);
}
