/* Sampling profiler: from what a thread did to records.

   Owns how a capture and a note become records, what becomes of time that no
   tick will meet any more, and the order of that: the tables are locked, a
   stack becomes a node, the context a set of labels, then the record waits for
   its weight (sample/weights.c).  The waits of tasks, which are no thread's
   time, are recorded by task/waits.c.  Must not know how samples share time
   or sinks keep them. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "../alloc/alloc.h"
#include "../clock/clock.h"
#include "../tables/labels.h"
#include "buffer.h"
#include "sample.h"

#define STATE (&_PyRuntime.sampling)

/* Of a capture.  What takes longer than this is not the drain alone: the
   thread waited for a CPU, or a container had used its share up. */
#define MAX_DRAIN_NS 1000000

/* The same of a note. */
#define MAX_NOTE_NS 100000

/* Where time goes: a stack of a thread, and its labels; who held the GIL, if
   it waited for it. */
struct place {
    _PySampling_Thread *thread;
    uint32_t node;
    uint32_t labels;
    struct _sampling_holder holder;
};

static _PySampling_Record
record_of(const struct place *place, PySampling_State state, uint64_t count,
          uint64_t time_ns)
{
    return (_PySampling_Record){
        .key = {
            .node = place->node,
            .thread = place->thread->thread_index,
            .labels = place->labels,
            .state = state,
            .holder_thread = place->holder.thread,
            .holder_node = place->holder.node,
        },
        .values.count = count,
        .time_ns = time_ns,
    };
}

/* The record waits to share the thread's time; and tasks may have waited
   meanwhile. */
static void
record_share(const struct place *place, PySampling_State state,
             uint64_t count, uint64_t time_ns, struct _sampling_time span)
{
    _PySampling_Record record = record_of(place, state, count, time_ns);
    if (span.wall_ns <= _PySampling_PeriodNow()
        || state == PySampling_STATE_RUNNING)
    {
        _PySampling_DelaysSawSample(place->thread, &record, span.wall_ns);
    }
    else {
        _PySampling_DelaysSawInterval(place->thread, &record,
                                      time_ns - Py_MIN(time_ns, span.wall_ns),
                                      time_ns);
    }
    _PySampling_Weigh(place->thread, &(struct _sampling_pending){record, span},
                      (struct _sampling_time){0});
}

/* A record that has its weight. */
static void
record_weighed(const struct place *place, PySampling_State state,
               struct _sampling_time weight)
{
    _PySampling_Record record =
        record_of(place, state, 0, place->thread->account.wall_ns);
    record.values.wall_ns = weight.wall_ns;
    record.values.cpu_ns = weight.cpu_ns;
    _PySampling_Emit(place->thread, &record);
}

static uint32_t
below(const struct place *place, _PySampling_Pseudo pseudo)
{
    return _PySampling_TablesPseudoChild(STATE->tables, place->node, pseudo,
                                         0);
}

static struct place
place_at(struct _sampling_tables *tables, _PySampling_Thread *thread,
         uint32_t node)
{
    PyThreadState *tstate = thread->tstate;
    return (struct place){
        .thread = thread,
        .node = node,
        .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
    };
}


/* Captures. */

static void
drain_capture(struct _sampling_tables *tables, PyThreadState *tstate,
              _PySampling_Thread *thread, struct _sampling_buffer *buffer,
              const struct _sampling_capture *capture)
{
    struct place place = {
        .thread = thread,
        .node = _PySampling_InternStack(tables, buffer, tstate,
                                        buffer->frames + capture->first,
                                        capture->depth),
        .labels = _PySampling_LabelsOf(tables, tstate, capture->context),
    };
    PySampling_State state = capture->gc_generation >= 0
        ? PySampling_STATE_GC : PySampling_STATE_RUNNING;
    _PySampling_Weigh(thread, NULL, capture->spent);
    record_share(&place, state, capture->count, capture->time_ns,
                 capture->span);
    if (capture->asleep_ns != 0) {
        struct place leaf = place;
        leaf.node = below(&place, _PySampling_PSEUDO_ASLEEP);
        record_share(&leaf, PySampling_STATE_ASLEEP_WITH_GIL, 0,
                     capture->time_ns,
                     (struct _sampling_time){.wall_ns = capture->asleep_ns});
    }
    _PySampling_HolderSampled(thread, place.node, capture->first_tick);
    if (place.node != _PySampling_NO_NODE && state == PySampling_STATE_RUNNING
        && !thread->excluded)
    {
        thread->last_node = place.node;
        thread->last_labels = place.labels;
    }
}

void
_PySampling_Drain(PyThreadState *tstate, _PySampling_Thread *thread)
{
    assert(thread->in_hook);
    _PySampling_AllocDrain(tstate, thread);
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    if (!_PySampling_HasCaptures(tstate) || buffer->epoch != thread->epoch) {
        return;
    }
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
}

void
_PySampling_RecordRunEnd(_PySampling_Thread *thread)
{
    uint32_t node =
        thread->held_node != 0 ? thread->held_node : thread->root_node;
    _PySampling_HolderSampled(thread, node, thread->tick.number);
}


/* Notes. */

/* What a thread did from a tick that noted it until now. */
struct note {
    uint64_t now_ns;
    struct _sampling_time span; // of which some on a CPU, off the GIL or with
    uint64_t wait_ns;           // the same of its wait for the GIL
    struct _sampling_time spent;
    int was_asleep;             // at its beginning
};

/* The thread goes on, or is noted still: then for what comes from now on. */
static struct note
take_note(_PySampling_Thread *thread, int state, uint64_t now_ns)
{
    struct note note = {.now_ns = now_ns};
    uint64_t cpu_ns = _PySampling_CpuNow(thread);
    uint64_t asked_ns =
        _Py_atomic_load_uint64_relaxed(&thread->waiting_since_ns);
    // Giving it up only to let others run includes waiting until one has it.
    uint64_t until_ns = state == _PySampling_RUNS ? note.now_ns
        : thread->is_yielding ? 0
        : state != _PySampling_WAITS ? note.now_ns
        : asked_ns != 0 ? Py_MIN(asked_ns, note.now_ns) : 0;
    note.spent = _PySampling_AccountSpent(thread, note.now_ns, cpu_ns);
    if (until_ns != 0) {
        note.span.wall_ns =
            _PySampling_RunTakeSpan(thread, thread->tick.at_ns, until_ns);
        note.span.cpu_ns =
            _PySampling_AccountOnCpu(thread, note.span.wall_ns, until_ns, cpu_ns);
    }
    if (until_ns != note.now_ns) {
        note.wait_ns =
            _PySampling_RunTakeSpan(thread, thread->tick.at_ns, note.now_ns);
        thread->account.gil_wait_ns += note.wait_ns;
    }
    // Should it be noted still: as if by a tick of now.
    // The tick that has noted it may be at work still.
    note.was_asleep = _Py_atomic_load_int_relaxed(&thread->tick.is_asleep);
    _Py_atomic_store_uint64_relaxed(&thread->tick.at_ns, note.now_ns);
    if (note.span.wall_ns != 0) {
        _Py_atomic_store_int_relaxed(
            &thread->tick.is_asleep,
            note.span.cpu_ns < note.span.wall_ns / 2);
    }
    _Py_atomic_store_uint64(&thread->tick.cpu_ns, cpu_ns);
    return note;
}

/* Two records, of which the longer one has the count, but for a wait for a CPU,
   in which there is no sample to be had.  They end where the wait
   for the GIL began: what the thread waited for before kept no task waiting
   then. */
static void
record_parts(const struct place *place, const struct note *note,
             PySampling_State on_cpu, PySampling_State off_cpu,
             _PySampling_Pseudo pseudo)
{
    uint64_t on_ns = note->span.cpu_ns;
    uint64_t off_ns = note->span.wall_ns - on_ns;
    uint64_t until_ns = note->now_ns - note->wait_ns;
    int is_on = on_ns >= off_ns
        || (on_ns != 0 && off_cpu == PySampling_STATE_CPU_WAIT);
    if (on_ns != 0) {
        record_share(place, on_cpu, is_on, until_ns,
                     (struct _sampling_time){on_ns, on_ns});
    }
    if (off_ns != 0) {
        struct place leaf = *place;
        leaf.node = below(place, pseudo);
        record_share(&leaf, off_cpu, !is_on, until_ns,
                     (struct _sampling_time){.wall_ns = off_ns});
    }
}

/* A tick found it awake without the GIL, and it has not gone to sleep since, but
   for the GIL: what it was on no CPU for is that it got none. */
static int
never_slept(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t before =
        _Py_atomic_load_uint64_relaxed(&thread->tick.sleeps);
    if (before == 0 || tstate != _PyThreadState_GET()) {
        return 0;
    }
    uint64_t now = thread->waiting_since_sleeps;
    return (now != 0 ? now : _PySampling_OwnSleeps()) == before;
}

/* Whoever held the GIL at one of the ticks meanwhile: all are as likely to be
   chosen as they were met. */
static void
record_wait(const struct place *place, const struct note *note)
{
    _PySampling_Thread *thread = place->thread;
    uint64_t since =
        _Py_atomic_load_uint64_relaxed(&thread->waiting_since_tick);
    uint64_t first = Py_MAX(thread->tick.number, since + 1);
    uint64_t last = _Py_atomic_load_uint64_relaxed(&STATE->tick_number);
    uint64_t tick = last <= first ? last
        : last - _PySampling_NextRandom(&thread->account.random)
                 % (last - first + 1);
    struct place leaf = *place;
    leaf.node = below(place, _PySampling_PSEUDO_GIL_WAIT);
    leaf.holder = _PySampling_HolderAt(thread, tick);
    record_share(&leaf, PySampling_STATE_GIL_WAIT, 1, note->now_ns,
                 (struct _sampling_time){.wall_ns = note->wait_ns});
}

/* A thread of C code may end without clearing its thread state: the frames of
   that lie on a C stack that is gone. */
static uint32_t
node_off_gil(PyThreadState *tstate, _PySampling_Thread *thread)
{
    return _PySampling_CpuNow(thread) == 0 ? thread->root_node
        : _PySampling_WalkNode(tstate, thread, !thread->is_yielding);
}

/* It slept with the GIL, and is at the instruction that slept still, whose
   call has returned; or it takes no signals, and what it does now is the best
   that can be had, not what it did at the tick. */
static void
record_with_gil(struct _sampling_tables *tables, PyThreadState *tstate,
                _PySampling_Thread *thread, const struct note *note)
{
    struct place place =
        place_at(tables, thread, _PySampling_SleeperNode(tstate, thread));
    _PySampling_HolderSampled(thread, place.node, thread->tick.number);
    PySampling_State state = thread->gc_generation >= 0
        ? PySampling_STATE_GC : PySampling_STATE_RUNNING;
    if (thread->tick.is_sleepy) {
        record_parts(&place, note, state, PySampling_STATE_ASLEEP_WITH_GIL,
                     _PySampling_PSEUDO_ASLEEP);
    }
    else {
        record_share(&place, state, 1, note->now_ns, note->span);
    }
    _PySampling_COUNT(captures_biased, !note->was_asleep);
}

void
_PySampling_RecordNote(PyThreadState *tstate, _PySampling_Thread *thread,
                       int state, uint64_t now_ns, int waits_for_others)
{
    struct note note = take_note(thread, state, now_ns);
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return;
    }
    _PySampling_Weigh(thread, NULL, note.spent);
    if (thread->excluded || note.span.wall_ns + note.wait_ns == 0) {
        // There was no deadline, or it is none of the program's.
    }
    else if (state == _PySampling_RUNS) {
        record_with_gil(tables, tstate, thread, &note);
    }
    else {
        struct place place =
            place_at(tables, thread, node_off_gil(tstate, thread));
        if (never_slept(tstate, thread)) {
            record_parts(&place, &note, PySampling_STATE_NATIVE,
                         PySampling_STATE_CPU_WAIT,
                         _PySampling_PSEUDO_CPU_WAIT);
        }
        else {
            record_parts(&place, &note, PySampling_STATE_NATIVE,
                         PySampling_STATE_WAITING, waits_for_others
                         ? _PySampling_PSEUDO_OTHERS
                         : _PySampling_PSEUDO_WAITING);
        }
        if (note.wait_ns != 0) {
            record_wait(&place, &note);
        }
    }
    _PySampling_CloseTables();
    thread->tick.number =
        _Py_atomic_load_uint64_relaxed(&STATE->tick_number) + 1;
    if (!thread->excluded) {
        uint64_t took_ns = _PySampling_WallNow() - note.now_ns;
        _PySampling_COUNT(overhead_hooks_ns, Py_MIN(took_ns, MAX_NOTE_NS));
    }
}


/* All time up to now.  With runtime->sampling.mutex held. */

/* Time that no sample takes: it ran where it was last met, if it was, and
   stands still now. */
static void
record_left(struct _sampling_tables *tables, _PySampling_Thread *thread,
            int state, struct _sampling_time time)
{
    struct place place = place_at(tables, thread, thread->root_node);
    struct _sampling_time run = time;
    if (state >= _PySampling_DETACHED) {
        run.wall_ns = Py_MIN(time.wall_ns, time.cpu_ns);
    }
    if (run.wall_ns != time.wall_ns) {
        struct place leaf = place;
        leaf.node = node_off_gil(thread->tstate, thread);
        leaf.node = below(&leaf, _PySampling_PSEUDO_WAITING);
        record_weighed(&leaf, PySampling_STATE_WAITING,
                       (struct _sampling_time){
            .wall_ns = time.wall_ns - run.wall_ns});
    }
    if (run.wall_ns == 0 && run.cpu_ns == 0) {
        return;
    }
    PySampling_State with = PySampling_STATE_RUNNING;
    if (thread->last_node != 0) {
        place.node = thread->last_node;
        place.labels = thread->last_labels;
    }
    else {
        place.node = below(&place, _PySampling_PSEUDO_UNSAMPLED);
        with = PySampling_STATE_UNSAMPLED;
    }
    record_weighed(&place, with, run);
}

/* What its clocks say up to now is for the samples that wait. */
static void
weigh_spent(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (_PySampling_OpenTables(thread) != NULL) {
        _PySampling_Weigh(thread, NULL, _PySampling_AccountSpent(
            thread, now_ns, _PySampling_CpuNow(thread)));
        _PySampling_CloseTables();
    }
}

void
_PySampling_RecordPause(_PySampling_Thread *thread)
{
    weigh_spent(thread, _PySampling_WallNow());
}

/* What waits is the program's, even if the thread serves a subscriber now. */
static void
weigh_all(_PySampling_Thread *thread, int state)
{
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables == NULL) {
        return;
    }
    int excluded = thread->excluded;
    thread->excluded = _PySampling_NOT_EXCLUDED;
    struct _sampling_time left =
        _PySampling_WeighAll(thread, (struct _sampling_time){0});
    if (left.wall_ns != 0 || left.cpu_ns != 0) {
        record_left(tables, thread, state, left);
    }
    _PySampling_DelaysFlush(thread);
    thread->excluded = excluded;
    _PySampling_CloseTables();
    thread->residue_cpu_ns = left.cpu_ns;
    thread->residue_wall_ns = left.wall_ns;
}

/* It is noted still. */
static void
record_note_of_blocked(_PySampling_Thread *thread, int state, uint64_t now_ns)
{
    _PySampling_RecordNote(thread->tstate, thread, state, now_ns,
                           _PySampling_OthersComputed(thread, now_ns, 1));
    _Py_atomic_store_uint64_relaxed(&thread->tick.others_cpu_ns,
                                    _PySampling_OthersCpu());
}

void
_PySampling_RecordAll(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (thread->inactive_on_os_thread) {
        // Another thread state has the OS thread's time: what was spent before
        // waits to be weighed, all of it spent in runs.
        weigh_all(thread, _PySampling_INACTIVE);
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    _PySampling_TickStill(thread, now_ns);
    int state = _PySampling_STATE_OF(_PySampling_WORD(thread));
    if (state >= _PySampling_DETACHED) {
        record_note_of_blocked(thread, state, now_ns);
    }
    else {
        weigh_spent(thread, now_ns);
    }
    weigh_all(thread, state);
    _PySampling_LEAVE_HOOK(thread);
}

/* Its samples wait no longer for others to share its time with. */
void
_PySampling_RecordBlocked(_PySampling_Thread *thread, uint64_t now_ns)
{
    uint64_t word = _PySampling_WORD(thread);
    int state = _PySampling_STATE_OF(word);
    if (thread->inactive_on_os_thread || state < _PySampling_DETACHED
        || !(word & _PySampling_NOTED)
        || _PySampling_DeadlinesUntil(now_ns) <= thread->account.counted_ns)
    {
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    record_note_of_blocked(thread, state, now_ns);
    weigh_all(thread, state);
    _PySampling_LEAVE_HOOK(thread);
}

/* The program's work and a subscriber's have their time apart. */
void
_PySampling_RecordExclude(_PySampling_Thread *thread,
                          _PySampling_Exclusion excluded)
{
    if (thread->excluded == (int)excluded) {
        return;
    }
    uint64_t now_ns = _PySampling_WallNow();
    (void)_PySampling_RunTakeSpan(thread, now_ns, now_ns);
    weigh_spent(thread, now_ns);
    _Py_atomic_store_int_relaxed(&thread->excluded, excluded);
}


/* What is no time of the thread's, or is not known. */

void
_PySampling_RecordRoot(PyThreadState *tstate, _PySampling_Thread *thread)
{
    if (_PySampling_OpenTables(thread) != NULL) {
        uint32_t node = _PySampling_RootNode(tstate, thread);
        if (node != _PySampling_NO_NODE) {
            thread->root_node = node;
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
    struct place place = {
        .thread = thread,
        .node = _PySampling_CallerNode(tstate, thread),
        .labels = _PySampling_LabelsWith(tables, tstate, pairs),
    };
    _PySampling_Record record = record_of(
        &place, PySampling_STATE_CUSTOM, count, _PySampling_WallNow());
    _PySampling_Emit(thread, &record);
    _PySampling_CloseTables();
}

void
_PySampling_RecordLost(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_time lost =
        _PySampling_WeighAll(thread, (struct _sampling_time){0});
    uint64_t recorded_ns =
        _Py_atomic_load_uint64_relaxed(&thread->account.wall_ns);
    if (now_ns > recorded_ns && !thread->inactive_on_os_thread) {
        lost.wall_ns += now_ns - recorded_ns;
    }
    if (lost.wall_ns == 0) {
        return;
    }
    struct place place = {
        .thread = thread,
        .node = STATE->tables->lost_node,
    };
    _PySampling_Record record =
        record_of(&place, PySampling_STATE_LOST, 0, now_ns);
    record.values.wall_ns = lost.wall_ns;
    _PySampling_Emit(thread, &record);
    _PySampling_COUNT(lost_wall_ns, record.values.wall_ns);
    _PySampling_COUNT(lost_threads, 1);
}
