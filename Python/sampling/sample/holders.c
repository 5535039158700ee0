/* Sampling profiler: who held the GIL while others waited for it.

   Owns, for each GIL, where ticks have found its holder.  Must not know how
   waits are recognized, or recorded.

   A tick finds the holder of a GIL and those who wait for it.  Where the holder
   was is known when its capture is drained, which is before it gives the GIL
   up; so a thread that has waited for it finds that by the tick's number.  A
   tick that has met the end of a run says nothing of a place: then the holder
   was where the last one has found it.  One that has met the profiler's own
   work is that of the holder before, one in a hundred.

   No lock: it is written by who holds the GIL, and read by a thread that has
   just got it, or that records the time of others while it holds it. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_Main()
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/store.h"
#include "sample.h"

/* Meetings that are kept. */
#define MAX_MEETINGS 256

/* Innermost Python frames of a holder that are kept: a line of the program's
   own is below those of the frameworks that called it, and calls into
   libraries are seldom deeper. */
#define MAX_PLACE_FRAMES 48

/* Some ticks, one after the other, that found a thread at one place. */
struct meeting {
    uint64_t first_tick;
    uint32_t thread;            // row in the tables
    uint32_t node;
    uint32_t place;             // of the node; 0 before somebody asks
};

struct _sampling_holders {
    unsigned int epoch;         // the rows are of that one
    uint64_t num_meetings;      // ever; the last MAX_MEETINGS are here
    struct meeting meetings[MAX_MEETINGS];
};


/* Life. */

/* The interpreter whose GIL it is: the log lives as long as that GIL. */
static PyInterpreterState *
owner_of(PyInterpreterState *interp)
{
    return interp->ceval.own_gil ? interp : _PyInterpreterState_Main();
}

int
_PySampling_HoldersInit(PyInterpreterState *interp)
{
    PyInterpreterState *owner = owner_of(interp);
    if (owner->sampling.holders == NULL) {
        owner->sampling.holders =
            calloc(1, sizeof(*owner->sampling.holders));
        if (owner->sampling.holders == NULL) {
            return 0;
        }
        owner->sampling.owns_holders = 1;
    }
    interp->sampling.holders = owner->sampling.holders;
    return 1;
}

void
_PySampling_HoldersFini(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    if (s->owns_holders) {
        free(s->holders);
    }
    s->holders = NULL;
    s->owns_holders = 0;
}

size_t
_PySampling_HoldersBytes(const struct _sampling_interpreter_state *s)
{
    return s->owns_holders ? sizeof(*s->holders) : 0;
}


/* Writing. */

void
_PySampling_HolderSampled(_PySampling_Thread *thread, uint32_t node,
                       uint64_t first_tick)
{
    struct _sampling_holders *log = thread->interp->holders;
    if (node == _PySampling_NO_NODE) {
        return;
    }
    thread->held_node = node;
    if (log->epoch != thread->epoch) {
        // Rows of other tables say nothing.
        log->epoch = thread->epoch;
        log->num_meetings = 0;
    }
    const struct meeting *last =
        &log->meetings[(log->num_meetings - 1) % MAX_MEETINGS];
    if (log->num_meetings == 0 || last->thread != thread->thread_index
        || last->node != node)
    {
        log->meetings[log->num_meetings++ % MAX_MEETINGS] =
            (struct meeting){first_tick, thread->thread_index, node, 0};
    }
}


/* Places. */

static int
is_python(const struct _sampling_tables *tables, uint32_t node)
{
    uint32_t frame = AT(tables, node, node)->frame;
    uint32_t function = AT(tables, frame, frame)->function;
    return AT(tables, function, function)->kind == _PySampling_KIND_PYTHON;
}

/* The stack that says where a holder is: its Python functions at their lines,
   and the C function that the innermost calls.  Instructions make no
   difference: each would have rows of its own with every stack that waits. */
static uint32_t
place_of(struct _sampling_tables *tables, uint32_t node)
{
    uint32_t callee = 0;
    while (node != 0 && !is_python(tables, node)) {
        callee = node;
        node = AT(tables, node, node)->parent;
    }
    uint32_t frames[MAX_PLACE_FRAMES];
    size_t num_frames = 0;
    for (; node != 0 && num_frames < MAX_PLACE_FRAMES;
         node = AT(tables, node, node)->parent)
    {
        frames[num_frames++] = _PySampling_InternLine(
            tables, AT(tables, node, node)->frame);
    }
    uint32_t place = 0;
    while (num_frames > 0) {
        place = _PySampling_InternChild(tables, place, frames[--num_frames]);
    }
    if (callee != 0) {
        place = _PySampling_InternChild(tables, place,
                                        AT(tables, node, callee)->frame);
    }
    return place != 0 && place != _PySampling_NO_NODE
        ? place : _PySampling_TablesUnknownPlace(tables);
}


/* Reading. */

_PySampling_Holder
_PySampling_HolderAt(_PySampling_Thread *thread, uint64_t tick)
{
    struct _sampling_holders *log = thread->interp->holders;
    struct _sampling_tables *tables = _PyRuntime.sampling.tables;
    uint64_t num = log->epoch == thread->epoch ? log->num_meetings : 0;
    uint64_t oldest = num > MAX_MEETINGS ? num - MAX_MEETINGS : 0;
    struct meeting *found = NULL;
    int is_known = oldest == 0;     // or not kept any more
    for (uint64_t i = num; i > oldest; i--) {
        struct meeting *m = &log->meetings[(i - 1) % MAX_MEETINGS];
        // The waiter had it last itself until somebody else took it.
        if (m->thread != thread->thread_index) {
            found = m;
        }
        if (m->first_tick <= tick) {
            is_known = 1;
            break;
        }
    }
    if (found == NULL || !is_known) {
        return (struct _sampling_holder){
            .thread = _PySampling_NO_THREAD,
            .node = _PySampling_TablesUnknownPlace(tables)};
    }
    if (found->place == 0) {
        found->place = place_of(tables, found->node);
    }
    return (struct _sampling_holder){
        .thread = found->thread, .node = found->place};
}
