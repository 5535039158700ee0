/* Sampling profiler: who held the GIL while others waited for it.

   Owns, for each GIL, the log of who took it, when, and what they did with it.
   Must not know how waits are recognized, or recorded.

   The log is a ring of stretches.  One begins when a thread takes the GIL, and
   when a sample of the holder finds it elsewhere than the sample before; it
   lasts until the next one begins.  So nothing has to be done where the GIL is
   given up, and the moments in which nobody has it count for who had it last.
   A stretch is where the last sample of its thread was, even if it is of an
   earlier stretch: a sample stands for the time around it, and what a thread
   does at the moment it gives the GIL up (it sleeps, it waits) is what it did
   least while it had it.

   No lock: the log is written by who holds the GIL, and read by a thread that
   has just got it, or that records the time of others while it holds it. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_Main()
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/store.h"
#include "sample.h"

/* Stretches that are kept.  At switch intervals of 5 ms that is a second. */
#define MAX_STRETCHES 256

struct stretch {
    uint64_t from_ns;
    uint32_t thread;            // row in the tables
    uint32_t node;              // of the sample; 0: there was none
};

struct _sampling_holders {
    unsigned int epoch;         // the rows are of that one
    uint64_t random;
    // Up to when it is known where the holder was.
    uint64_t since_ns;
    uint64_t num_stretches;     // ever; the last MAX_STRETCHES are here
    struct stretch stretches[MAX_STRETCHES];
    // For one call of _PySampling_HoldersSplit().
    struct _sampling_wait_part parts[MAX_STRETCHES + 2];
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
        struct _sampling_holders *log = calloc(1, sizeof(*log));
        if (log == NULL) {
            return 0;
        }
        log->random = (uintptr_t)log | 1;
        owner->sampling.holders = log;
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

static struct stretch *
newest(struct _sampling_holders *log)
{
    return log->num_stretches != 0
        ? &log->stretches[(log->num_stretches - 1) % MAX_STRETCHES] : NULL;
}

static void
begin_stretch(struct _sampling_holders *log, const _PySampling_Thread *thread,
              uint32_t node, uint64_t from_ns)
{
    struct stretch *last = newest(log);
    if (last == NULL || last->thread != thread->thread_index
        || last->node != node)
    {
        log->stretches[log->num_stretches++ % MAX_STRETCHES] =
            (struct stretch){from_ns, thread->thread_index, node};
    }
}

/* The thread has the GIL, since the moment up to which its time is recorded or
   carried.  If it had the GIL last as well, its stretch goes on. */
void
_PySampling_HoldersTake(_PySampling_Thread *thread)
{
    struct _sampling_holders *log = thread->interp->holders;
    struct stretch *last = newest(log);
    if (log->epoch == thread->epoch && last != NULL
        && last->thread == thread->thread_index)
    {
        return;
    }
    if (log->epoch != thread->epoch) {
        // Rows of other tables say nothing.
        log->epoch = thread->epoch;
        log->num_stretches = 0;
        log->since_ns = 0;
    }
    // Threads that joined late may begin with an earlier moment.
    log->since_ns = Py_MAX(log->since_ns, thread->account.wall_ns);
    begin_stretch(log, thread,
                  thread->held_node != 0 ? thread->held_node
                                         : thread->root_node,
                  log->since_ns);
}

/* The holder was at `node` from the sample before, or from when it took the
   GIL, up to `time_ns`; and it is there still, as far as is known. */
void
_PySampling_HoldersSaw(_PySampling_Thread *thread, uint32_t node,
                       uint64_t time_ns)
{
    struct _sampling_holders *log = thread->interp->holders;
    if (node == _PySampling_NO_NODE) {
        return;
    }
    thread->held_node = node;
    struct stretch *last = newest(log);
    if (log->epoch != thread->epoch || last == NULL
        || last->thread != thread->thread_index)
    {
        return;
    }
    if (last->from_ns == log->since_ns) {
        last->node = node;      // it took the GIL there
    }
    else {
        begin_stretch(log, thread, node, log->since_ns);
    }
    log->since_ns = Py_MAX(log->since_ns, time_ns);
}

/* Its outermost frames are known.  Better than nothing, until a sample. */
void
_PySampling_HoldersSawRoot(_PySampling_Thread *thread)
{
    struct _sampling_holders *log = thread->interp->holders;
    struct stretch *last = newest(log);
    if (log->epoch == thread->epoch && last != NULL
        && last->thread == thread->thread_index && last->node == 0)
    {
        last->node = thread->root_node;
    }
}


/* Places. */

static int
is_python(const struct _sampling_tables *tables, uint32_t node)
{
    uint32_t frame = tables->nodes[node].frame;
    return tables->functions[tables->frames[frame].function].kind
           == _PySampling_KIND_PYTHON;
}

/* The stack of at most two frames that says where a stack's leaf is: the
   innermost Python function at its line, and the C function that it calls.
   Instructions make no difference: each would have rows of its own with every
   stack that waits. */
static uint32_t
place_of(struct _sampling_tables *tables, uint32_t node)
{
    uint32_t callee = 0;
    while (node != 0 && !is_python(tables, node)) {
        callee = node;
        node = tables->nodes[node].parent;
    }
    uint32_t place = 0;
    if (node != 0) {
        place = _PySampling_InternChild(
            tables, 0, _PySampling_InternLine(tables,
                                              tables->nodes[node].frame));
    }
    if (callee != 0) {
        place = _PySampling_InternChild(tables, place,
                                        tables->nodes[callee].frame);
    }
    return place != 0 && place != _PySampling_NO_NODE
        ? place : _PySampling_TablesUnknownPlace(tables);
}


/* Reading. */

/* The log, if it is of the epoch that the waiter is in. */
static const struct _sampling_holders *
log_of(const _PySampling_Thread *thread)
{
    const struct _sampling_holders *log = thread->interp->holders;
    return log->epoch == thread->epoch ? log : NULL;
}

static const struct stretch *
stretch_at(const struct _sampling_holders *log, uint64_t number)
{
    return &log->stretches[number % MAX_STRETCHES];
}

static uint64_t
oldest(const struct _sampling_holders *log)
{
    return log->num_stretches > MAX_STRETCHES
        ? log->num_stretches - MAX_STRETCHES : 0;
}

/* Did the moment come before all stretches that are kept, but not before all
   that there were? */
static int
has_lost(const struct _sampling_holders *log, uint64_t moment_ns)
{
    uint64_t first = oldest(log);
    return first != 0 && stretch_at(log, first)->from_ns > moment_ns;
}

/* The number of the stretch that held the GIL at a moment at which `thread`
   waited for it, or UINT64_MAX: it is not known any more.  The waiter had it
   last itself until somebody else took it: then it is that one. */
static uint64_t
find_stretch(const struct _sampling_holders *log,
             const _PySampling_Thread *thread, uint64_t moment_ns)
{
    uint64_t first = oldest(log);
    uint64_t i = log->num_stretches;
    while (i > first && stretch_at(log, i - 1)->from_ns > moment_ns) {
        i--;
    }
    if (has_lost(log, moment_ns)) {
        return UINT64_MAX;
    }
    if (i != first
        && stretch_at(log, i - 1)->thread != thread->thread_index)
    {
        return i - 1;
    }
    return i != log->num_stretches ? i : UINT64_MAX;
}

_PySampling_WaitPart
_PySampling_HolderNotKnown(void)
{
    return (struct _sampling_wait_part){
        .holder_thread = _PySampling_NO_THREAD,
        .holder_node = _PySampling_TablesUnknownPlace(
            _PyRuntime.sampling.tables)};
}

static struct _sampling_wait_part
part_of(const struct stretch *s)
{
    return (struct _sampling_wait_part){
        .holder_thread = s->thread,
        .holder_node = place_of(_PyRuntime.sampling.tables, s->node)};
}

_PySampling_WaitPart
_PySampling_HolderAt(_PySampling_Thread *thread, uint64_t moment_ns)
{
    const struct _sampling_holders *log = log_of(thread);
    uint64_t i = log != NULL ? find_stretch(log, thread, moment_ns)
                             : UINT64_MAX;
    return i != UINT64_MAX ? part_of(stretch_at(log, i))
                           : _PySampling_HolderNotKnown();
}

/* Parts with the same holder become one. */
static int
add_part(struct _sampling_wait_part *parts, int num_parts,
         const struct _sampling_wait_part *part, uint64_t wall_ns)
{
    for (int i = 0; i < num_parts; i++) {
        if (parts[i].holder_node == part->holder_node
            && parts[i].holder_thread == part->holder_thread)
        {
            parts[i].wall_ns += wall_ns;
            return num_parts;
        }
    }
    parts[num_parts] = *part;
    parts[num_parts].wall_ns = wall_ns;
    return num_parts + 1;
}

/* Too many holders for a record each.  Points are laid on the wait, equally
   far from each other; who held the GIL at a point gets the time around it.
   Each holder gets its share in expectation, and the sum stays what it was. */
static int
choose_parts(struct _sampling_holders *log, int num_parts)
{
    struct _sampling_wait_part *parts = log->parts;
    uint64_t total_ns = 0;
    for (int i = 0; i < num_parts; i++) {
        total_ns += parts[i].wall_ns;
    }
    uint64_t step_ns = total_ns / _PySampling_MAX_WAIT_PARTS;
    assert(step_ns != 0);       // no part is empty, and they are more
    uint64_t rest_ns = total_ns - step_ns * _PySampling_MAX_WAIT_PARTS;
    uint64_t point_ns = _PySampling_NextRandom(&log->random) % step_ns;
    uint64_t from_ns = 0;
    int points = 0, kept = 0;
    for (int i = 0; i < num_parts; i++) {
        uint64_t to_ns = from_ns + parts[i].wall_ns;
        uint64_t recorded_ns = 0;
        while (point_ns < to_ns && points < _PySampling_MAX_WAIT_PARTS) {
            recorded_ns += step_ns;
            point_ns += step_ns;
            points++;
        }
        if (recorded_ns != 0) {
            parts[kept] = parts[i];
            parts[kept++].wall_ns = recorded_ns;
        }
        from_ns = to_ns;
    }
    parts[kept - 1].wall_ns += rest_ns;
    return kept;
}

int
_PySampling_HoldersSplit(_PySampling_Thread *thread, uint64_t from_ns,
                         uint64_t to_ns,
                         const struct _sampling_wait_part **parts)
{
    struct _sampling_holders *log = thread->interp->holders;
    *parts = log->parts;
    uint64_t first = UINT64_MAX;
    uint64_t known_ns = to_ns;
    if (log_of(thread) != NULL) {
        first = find_stretch(log, thread, from_ns);
        if (first != UINT64_MAX) {
            known_ns = from_ns;
        }
        else if (has_lost(log, from_ns)) {
            first = oldest(log);
            known_ns = Py_MIN(to_ns, stretch_at(log, first)->from_ns);
        }
    }
    int num_parts = 0;
    if (known_ns > from_ns) {
        struct _sampling_wait_part unknown = _PySampling_HolderNotKnown();
        num_parts = add_part(log->parts, 0, &unknown, known_ns - from_ns);
    }
    for (uint64_t i = first; known_ns < to_ns; i++) {
        uint64_t until_ns = to_ns;
        if (i + 1 < log->num_stretches) {
            until_ns = Py_MIN(to_ns, stretch_at(log, i + 1)->from_ns);
        }
        if (until_ns > known_ns) {
            struct _sampling_wait_part part = part_of(stretch_at(log, i));
            num_parts = add_part(log->parts, num_parts, &part,
                                 until_ns - known_ns);
            known_ns = until_ns;
        }
    }
    return num_parts > _PySampling_MAX_WAIT_PARTS
        ? choose_parts(log, num_parts) : num_parts;
}
