/* Sampling profiler: the walk of a stack.

   Owns which frames of a chain are kept, and in which order.
   Must not know when a stack is walked, or what becomes of the copy. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../base/frame.h"
#include "walk.h"

/* Of a stack deeper than depth_frames, this many frames next to the root are
   kept, or a quarter of depth_frames if that is less. */
#define ROOT_FRAMES 64

/* No walk follows more frames than this: at 70 ns each, as most are in no
   cache, it bounds the time in the signal handler to about a millisecond.  Of
   a deeper stack the root is not found. */
#define MAX_WALK_FRAMES 16384


/* How many frames were left out, rounded down to four significant bits: each
   number would be a stack of its own otherwise. */
static uint32_t
rounded_down(uint32_t n)
{
    uint32_t unit = 1;
    while (n / unit >= 16) {
        unit *= 2;
    }
    return n / unit * unit;
}

/* The C function or operator that `frame` is in, if it has one. */
static void
add_callee(struct _sampling_walk *w, _PyInterpreterFrame *frame)
{
    if (w->names & _PySampling_NAME_CALLS) {
        const struct _sampling_call *call =
            w->call != NULL && w->call->frame == frame ? w->call : NULL;
        w->num_entries += _PySampling_CaptureCallee(
            w->interp, w->slots, frame, call, w->out + w->num_entries);
    }
}

static void
add_pseudo(struct _sampling_walk *w, _PySampling_Pseudo pseudo, uint32_t value)
{
    w->out[w->num_entries++] = _PySampling_PseudoFrame(pseudo, value);
}

/* A collection that gc.collect() asked for is below it; any other started
   between two instructions, and what lies on the stack is over. */
static void
add_collection(struct _sampling_walk *w, _PySampling_Thread *thread,
               _PyInterpreterFrame *frame)
{
    add_pseudo(w, _PySampling_PSEUDO_GC, (uint32_t)thread->gc_generation);
    int before = w->num_entries;
    if (!_PySampling_IsArtificial(frame)) {
        add_callee(w, frame);
    }
    if (w->num_entries != before
        && _PySampling_KindOfCallee(w->out[before + 1])
           != _PySampling_CALLEE_FUNCTION)
    {
        w->num_entries = before;
    }
}

static void
add_kept(struct _sampling_walk *w, _PyInterpreterFrame *frame, int is_in_c)
{
    if (is_in_c) {
        add_callee(w, frame);
    }
    w->out[w->num_entries++] = (_PySampling_Frame){
        _PySampling_FrameCode(frame), _PySampling_FrameInstr(frame)};
}

static void
add_leaf_opcode(struct _sampling_walk *w, _PyInterpreterFrame *frame)
{
    if (w->names & _PySampling_NAME_OPCODES) {
        add_pseudo(w, _PySampling_PSEUDO_OPCODE,
                   (uint32_t)_PySampling_OpcodeAt(
                       _PySampling_FrameCode(frame),
                       _PySampling_FrameInstr(frame)));
    }
}

/* The frames beyond those next to the leaf, of which the last are kept. */
struct root_end {
    int num_frames;
    int max_kept;
    _PyInterpreterFrame *gc_frame;      // NULL: no collection is among them
    int gc_index;               // of the frame that it is to stand before
    struct {
        _PyInterpreterFrame *frame;
        int is_in_c;
    } last[ROOT_FRAMES];        // ring of max_kept
};

static void
see_root_end(struct root_end *r, _PyInterpreterFrame *frame, int is_in_c)
{
    if (r->max_kept != 0) {
        int i = r->num_frames % r->max_kept;
        r->last[i].frame = frame;
        r->last[i].is_in_c = is_in_c;
    }
    r->num_frames++;
}

static void
add_root_end(struct _sampling_walk *w, _PySampling_Thread *thread,
             const struct root_end *r, int is_whole)
{
    // If it gave up before the root, the last ones are no root frames.
    int num_kept = is_whole ? Py_MIN(r->num_frames, r->max_kept) : 0;
    int num_cut = r->num_frames - num_kept;
    if (r->gc_frame != NULL && r->gc_index < num_cut) {
        add_collection(w, thread, r->gc_frame); // among those that are cut out
    }
    if (num_cut > 0) {
        add_pseudo(w, _PySampling_PSEUDO_TRUNCATED,
                   rounded_down((uint32_t)num_cut));
        _PySampling_COUNT(frames_truncated, 1);
    }
    for (int i = num_cut; i < r->num_frames; i++) {
        if (r->gc_frame != NULL && i == r->gc_index) {
            add_collection(w, thread, r->gc_frame);
        }
        add_kept(w, r->last[i % r->max_kept].frame,
                 r->last[i % r->max_kept].is_in_c);
    }
    if ((r->gc_frame != NULL && r->gc_index >= r->num_frames)
        || (thread->gc_generation >= 0 && thread->gc_frame == NULL))
    {
        // The collection was started with no Python frame: it is the root.
        add_pseudo(w, _PySampling_PSEUDO_GC, (uint32_t)thread->gc_generation);
    }
}

/* Runs in the signal handler: follows pointers of this thread's own stack and
   writes to preallocated memory only. */
int
_PySampling_Walk(struct _sampling_walk *w, _PySampling_Thread *thread,
                 _PyInterpreterFrame *frame, int depth_frames, int is_in_c)
{
    struct root_end root_end;
    root_end.num_frames = 0;
    root_end.max_kept = depth_frames < 2
        ? 0 : Py_MIN(ROOT_FRAMES, Py_MAX(1, depth_frames / 4));
    root_end.gc_frame = NULL;
    root_end.gc_index = -1;
    int leaf_frames = depth_frames - root_end.max_kept;
    int total = 0;
    _PyInterpreterFrame *gc_frame =
        thread->gc_generation >= 0 ? thread->gc_frame : NULL;

    for (; frame != NULL && total < MAX_WALK_FRAMES;
         frame = _PySampling_FramePrevious(frame))
    {
        if (frame == gc_frame) {
            if (total < leaf_frames) {
                add_collection(w, thread, frame);
            }
            else {
                root_end.gc_frame = frame;
                root_end.gc_index = root_end.num_frames;
            }
            is_in_c = 0;
        }
        if (_PySampling_IsArtificial(frame)) {
            // C code called the frame that comes before this one.
            is_in_c |= _PySampling_IsEntry(frame);
            continue;
        }
        if (total < leaf_frames) {
            add_kept(w, frame, is_in_c);
            if (total == 0) {
                add_leaf_opcode(w, frame);
            }
        }
        else {
            see_root_end(&root_end, frame, is_in_c);
        }
        is_in_c = 0;
        total++;
    }
    add_root_end(w, thread, &root_end, frame == NULL);
    return total;
}
