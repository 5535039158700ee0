/* Sampling profiler: from what a thread did to records.

   Owns how a capture, a note of a tick and an interval off the GIL become
   records, and the order of that: the tables are locked, a stack becomes a
   node, the context a set of labels, then the record gets its weight or goes
   to the sinks.  Other records are made of these or by its functions: waits
   for a CPU (sample/weights.c), what is left at the end (sample/leftover.c),
   charges of delay (sample/delays.c).  The waits of tasks, which are no
   thread's time, are recorded by task/waits.c.  Must not know how time is
   measured (sample/account.c), shared (sample/weights.c) or kept (sinks/). */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/labels.h"
#include "record.h"
#include "buffer.h"
#include "sample.h"

#define STATE (&_PyRuntime.sampling)

/* Of a capture.  What takes longer than this is not the drain alone: the
   thread waited for a CPU, or a container had used its share up. */
#define MAX_DRAIN_NS 1000000

static struct _sampling_event
record_of(const struct _sampling_place *place, _PySampling_State state,
          uint64_t count, uint64_t time_ns)
{
    return (struct _sampling_event){
        .time_ns = time_ns,
        .node = place->node,
        .thread = place->thread->thread_index,
        .labels = place->labels,
        .kind = _PySampling_EVENT_SAMPLE,
        .state = (uint8_t)state,
        .flags = count == 0 ? _PySampling_FLAG_RESIDUE : 0,
        .count = count,
        .holder_thread = place->holder.holder_thread,
        .holder_node = place->holder.holder_node,
    };
}

void
_PySampling_Record(const struct _sampling_place *place,
                   _PySampling_State state, uint64_t count, uint64_t cpu_ns,
                   uint64_t wall_ns)
{
    struct _sampling_event record =
        record_of(place, state, count, place->thread->account.wall_ns);
    record.cpu_ns = cpu_ns;
    record.wall_ns = wall_ns;
    _PySampling_Emit(place->thread, &record);
}

/* Time that was sampled: the record waits to share the thread's time, of which
   `spent` is new. */
static void
record_share(const struct _sampling_place *place, _PySampling_Window window,
             struct _sampling_event record, struct _sampling_time span,
             struct _sampling_time spent)
{
    _PySampling_Weigh(place->thread, window,
                      &(struct _sampling_pending){record, span}, spent);
}

/* A sample of a thread that holds the GIL, for the tasks that it keeps
   waiting, too. */
static void
record_sampled(const struct _sampling_place *place, _PySampling_State state,
               uint64_t count, uint64_t time_ns, struct _sampling_time span,
               struct _sampling_time spent)
{
    struct _sampling_event record = record_of(place, state, count, time_ns);
    _PySampling_DelaysSawSample(place->thread, &record, span.wall_ns);
    record_share(place, _PySampling_ON_GIL, record, span, spent);
}

_PySampling_Place
_PySampling_PlaceBelow(const struct _sampling_place *place,
                       _PySampling_Pseudo pseudo)
{
    struct _sampling_place child = *place;
    child.node = _PySampling_TablesPseudoChild(STATE->tables, place->node,
                                               pseudo, 0);
    return child;
}


/* Running time. */

static void
drain_capture(struct _sampling_tables *tables, PyThreadState *tstate,
              _PySampling_Thread *thread, struct _sampling_buffer *buffer,
              const struct _sampling_capture *capture)
{
    struct _sampling_place place = {
        .thread = thread,
        .node = _PySampling_InternStack(tables, buffer, tstate,
                                        buffer->frames + capture->first,
                                        capture->depth),
        .labels = _PySampling_LabelsOf(tables, tstate, capture->context),
    };
    _PySampling_State state = capture->gc_generation >= 0
        ? _PySampling_GC : _PySampling_RUNNING;
    record_sampled(&place, state, capture->count, capture->time_ns,
                   capture->span, capture->spent);
    _PySampling_HoldersSaw(thread, place.node, capture->time_ns);
    if (place.node != _PySampling_NO_NODE && state == _PySampling_RUNNING
        && !thread->excluded)
    {
        thread->last_node = place.node;
        thread->last_labels = place.labels;
    }
}

void
_PySampling_Drain(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    if (!_PySampling_HasCaptures(tstate) || buffer->epoch != thread->epoch) {
        return;
    }
    assert(thread->in_hook);
    uint64_t before_ns = _PySampling_MonotonicNow();
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables != NULL) {
        for (int i = 0; i < buffer->num_captures; i++) {
            drain_capture(tables, tstate, thread, buffer,
                          &buffer->captures[i]);
        }
        _PySampling_CloseTables();
    }
    uint64_t most_ns = (uint64_t)buffer->num_captures * MAX_DRAIN_NS;
    buffer->num_captures = 0;
    buffer->used = 0;
    _PySampling_SlotsKeep(buffer->slots);
    uint64_t took_ns = _PySampling_MonotonicNow() - before_ns;
    _PySampling_COUNT(overhead_drain_ns, Py_MIN(took_ns, most_ns));
    thread->drained_ns += took_ns;
}

/* The thread slept with the GIL: it has come to a safepoint now, still at the
   instruction that slept, whose call has returned. */
static void
record_sleep(struct _sampling_tables *tables, PyThreadState *tstate,
             _PySampling_Thread *thread, uint64_t count,
             struct _sampling_time span, struct _sampling_time spent)
{
    struct _sampling_place place = {
        .thread = thread,
        .node = _PySampling_SleeperNode(tstate, thread),
        .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
    };
    uint64_t now_ns = thread->account.wall_ns;
    _PySampling_HoldersSaw(thread, place.node, now_ns);
    place = _PySampling_PlaceBelow(&place, _PySampling_PSEUDO_ASLEEP);
    record_sampled(&place, _PySampling_ASLEEP_WITH_GIL, count, now_ns, span,
                   spent);
}

/* The thread does not answer signals: this is the best that can be had, what
   it does now, not what it did at the tick. */
static void
record_biased(struct _sampling_tables *tables, PyThreadState *tstate,
              _PySampling_Thread *thread, struct _sampling_time spent)
{
    struct _sampling_place place = {
        .thread = thread,
        .node = _PySampling_WalkNode(tstate, thread, 0),
        .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
    };
    uint64_t now_ns = thread->account.wall_ns;
    _PySampling_HoldersSaw(thread, place.node, now_ns);
    _PySampling_State state = thread->gc_generation >= 0
        ? _PySampling_GC : _PySampling_RUNNING;
    record_sampled(&place, state, 1, now_ns, _PySampling_TakeSpan(thread),
                   spent);
    _PySampling_COUNT(captures_biased, 1);
}

void
_PySampling_RecordNote(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t note_ns = _Py_atomic_exchange_uint64(&thread->note_wall_ns, 0);
    int ticks_asleep = _Py_atomic_exchange_int(&thread->note_asleep, 0);
    struct _sampling_time asleep = {
        .wall_ns = _Py_atomic_exchange_uint64(&thread->asleep_span_ns, 0)};
    if (ticks_asleep == 0 && note_ns <= thread->account.wall_ns) {
        return;         // it has been captured since
    }
    struct _sampling_time spent = _PySampling_AccountRun(
        thread, _PySampling_WallNow(), _PySampling_CpuNow(thread));
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return;
    }
    if (ticks_asleep != 0) {
        record_sleep(tables, tstate, thread, (uint64_t)ticks_asleep, asleep,
                     spent);
    }
    else {
        record_biased(tables, tstate, thread, spent);
    }
    _PySampling_CloseTables();
}


/* Time off the GIL. */

/* An interval, or one that weighs for others, too. */
static void
saw_off_gil(const struct _sampling_place *leaf, _PySampling_State state,
            uint64_t until_ns, uint64_t wall_ns, uint64_t weight_ns)
{
    struct _sampling_event record = record_of(leaf, state, 0, until_ns);
    if (weight_ns == wall_ns) {
        _PySampling_DelaysSawInterval(leaf->thread, &record,
                                      until_ns - wall_ns, until_ns);
    }
    else {
        _PySampling_DelaysSawSample(leaf->thread, &record, weight_ns);
    }
}

/* Tasks that waited meanwhile are charged to one. */
static struct _sampling_wait_part
longest_part(const struct _sampling_wait_part *parts, int num_parts)
{
    int longest = 0;
    for (int i = 1; i < num_parts; i++) {
        if (parts[i].wall_ns > parts[longest].wall_ns) {
            longest = i;
        }
    }
    return parts[longest];
}

/* A wait for the GIL that weighs what it took is charged to all who held the
   GIL meanwhile.  One that weighs for others is charged to who held it at the
   moment that chose it. */
static void
record_wait(const struct _sampling_place *place,
            const struct _sampling_off_gil *off)
{
    struct _sampling_place leaf =
        _PySampling_PlaceBelow(place, _PySampling_PSEUDO_GIL_WAIT);
    if (off->wait_from_ns == off->wait_until_ns) {
        leaf.holder = _PySampling_HolderAt(place->thread, off->wait_from_ns);
        saw_off_gil(&leaf, _PySampling_GIL_WAIT, off->wait_from_ns, 0,
                    off->wait_ns);
        _PySampling_Record(&leaf, _PySampling_GIL_WAIT, 1, 0, off->wait_ns);
        return;
    }
    assert(off->wait_ns == off->wait_until_ns - off->wait_from_ns);
    const struct _sampling_wait_part *parts;
    int num_parts = _PySampling_HoldersSplit(
        place->thread, off->wait_from_ns, off->wait_until_ns, &parts);
    leaf.holder = longest_part(parts, num_parts);
    saw_off_gil(&leaf, _PySampling_GIL_WAIT, off->wait_until_ns, off->wait_ns,
                off->wait_ns);
    for (int i = 0; i < num_parts; i++) {
        leaf.holder = parts[i];
        _PySampling_Record(&leaf, _PySampling_GIL_WAIT, 1, 0,
                           parts[i].wall_ns);
    }
}

_PySampling_Place
_PySampling_RecordNoGIL(const struct _sampling_place *place, uint64_t count,
                        uint64_t cpu_ns, uint64_t native_ns, uint64_t wall_ns)
{
    native_ns = Py_MIN(native_ns, wall_ns);
    uint64_t waiting_ns = wall_ns - native_ns;
    int is_native = native_ns >= waiting_ns;
    if (native_ns != 0 || cpu_ns != 0) {
        _PySampling_Record(place, _PySampling_NATIVE, is_native ? count : 0,
                           cpu_ns, native_ns);
    }
    if (waiting_ns == 0) {
        return *place;
    }
    struct _sampling_place leaf =
        _PySampling_PlaceBelow(place, _PySampling_PSEUDO_WAITING);
    _PySampling_Record(&leaf, _PySampling_WAITING, is_native ? 0 : count, 0,
                       waiting_ns);
    return is_native ? *place : leaf;
}

static void
record_block(const struct _sampling_place *place,
             const struct _sampling_off_gil *off)
{
    struct _sampling_place most = _PySampling_RecordNoGIL(
        place, 1, off->cpu_ns, off->cpu_ns + off->cpu_span_ns,
        off->blocked_ns);
    if (off->cpu_span_ns != 0) {
        // The wall time is recorded already.
        record_share(place, _PySampling_OFF_GIL,
                     record_of(place, _PySampling_NATIVE, 0,
                               place->thread->account.wall_ns),
                   (struct _sampling_time){.cpu_ns = off->cpu_span_ns},
                   (struct _sampling_time){.cpu_ns = off->shared_cpu_ns});
    }
    // Tasks that waited meanwhile see one state, that of most of it.
    saw_off_gil(&most, most.node == place->node ? _PySampling_NATIVE
                                                : _PySampling_WAITING,
                off->blocked_until_ns,
                off->is_block_exact ? off->blocked_ns : 0, off->blocked_ns);
    if (place->node != _PySampling_NO_NODE && !place->thread->excluded) {
        place->thread->last_off_node = place->node;
        place->thread->last_off_labels = place->labels;
    }
}

/* A thread of C code may end without clearing its thread state: the frames of
   that lie on a C stack that is gone. */
static int
has_ended(_PySampling_Thread *thread)
{
    return _PySampling_CpuNow(thread) == 0;
}

/* Returns 0 if there is nothing to record. */
static int
record_off_gil(PyThreadState *tstate, _PySampling_Thread *thread,
               const struct _sampling_off_gil *off)
{
    if (off->blocked_ns == 0 && off->wait_ns == 0) {
        return 0;
    }
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return 0;
    }
    struct _sampling_place place = {
        .thread = thread,
        .node = has_ended(thread)
            ? thread->root_node
            : _PySampling_WalkNode(tstate, thread, off->is_in_c),
        .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
    };
    if (off->blocked_ns != 0) {
        record_block(&place, off);
    }
    if (off->wait_ns != 0) {
        record_wait(&place, off);
    }
    _PySampling_CloseTables();
    return 1;
}

void
_PySampling_RecordOffGIL(PyThreadState *tstate, _PySampling_Thread *thread,
                         uint64_t now_ns, int all)
{
    struct _sampling_off_gil off;
    _PySampling_AccountOffGIL(thread, now_ns, all, &off);
    (void)record_off_gil(tstate, thread, &off);
}

int
_PySampling_RecordHooks(PyThreadState *tstate, _PySampling_Thread *thread,
                        uint64_t now_ns)
{
    struct _sampling_off_gil off;
    return _PySampling_AccountHooks(thread, now_ns, &off)
        && record_off_gil(tstate, thread, &off);
}

/* What that took is of the same call.  No other walk: of a deep stack it takes
   as long, and would be recorded as well, for ever. */
int
_PySampling_RecordHooksAgain(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_off_gil off;
    if (!_PySampling_AccountHooks(thread, now_ns, &off)
        || _PySampling_OpenTables(thread) == NULL)
    {
        return 0;
    }
    struct _sampling_place place = {
        .thread = thread,
        .node = thread->last_off_node != 0
            ? thread->last_off_node : _PySampling_NO_NODE,
        .labels = thread->last_off_labels,
    };
    record_block(&place, &off);
    _PySampling_CloseTables();
    return 1;
}


/* What is no time of the thread's, or is not known. */

void
_PySampling_RecordRoot(PyThreadState *tstate, _PySampling_Thread *thread)
{
    if (_PySampling_OpenTables(thread) != NULL) {
        uint32_t node = _PySampling_RootNode(tstate, thread);
        if (node != _PySampling_NO_NODE) {
            thread->root_node = node;
            _PySampling_HoldersSawRoot(thread);
        }
        _PySampling_CloseTables();
    }
}

void
_PySampling_RecordCustom(PyThreadState *tstate, _PySampling_Thread *thread,
                         uint64_t count, PyObject *pairs)
{
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return;
    }
    struct _sampling_place place = {
        .thread = thread,
        .node = _PySampling_CallerNode(tstate, thread),
        .labels = _PySampling_LabelsWith(tables, tstate, pairs),
    };
    struct _sampling_event record = record_of(
        &place, _PySampling_CUSTOM, count, _PySampling_WallNow());
    record.flags = 0;
    _PySampling_Emit(thread, &record);
    _PySampling_CloseTables();
}

void
_PySampling_RecordLost(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_time none = {0};
    (void)_PySampling_WeighAll(thread, _PySampling_ON_GIL, none);
    (void)_PySampling_WeighAll(thread, _PySampling_OFF_GIL, none);
    uint64_t recorded_ns =
        _Py_atomic_load_uint64_relaxed(&thread->account.wall_ns);
    if (thread->shadowed || now_ns <= recorded_ns) {
        return;
    }
    struct _sampling_place place = {
        .thread = thread,
        .node = STATE->tables->lost_node,
    };
    struct _sampling_event record =
        record_of(&place, _PySampling_LOST, 0, now_ns);
    record.flags = 0;
    record.wall_ns = now_ns - recorded_ns;
    _PySampling_Emit(thread, &record);
    _PySampling_COUNT(lost_wall_ns, record.wall_ns);
    _PySampling_COUNT(lost_threads, 1);
}
