/* Sampling profiler: where records come in, and to whom they go.

   Owns the choice of sinks.  Must not know how a sink keeps what it gets, nor
   how a weight came about. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../base/common.h"
#include "sinks.h"

#define STATE (&_PyRuntime.sampling)

static int
is_for(const struct _sampling_subscription *sub,
       const struct _sampling_event *event)
{
    const struct _sampling_tables *tables = STATE->tables;
    if (event->kind == _PySampling_EVENT_FORK) {
        return 1;
    }
    const struct _sampling_thread_row *thread =
        &tables->threads[event->thread];
    if (sub->interpreter_id >= 0
        && sub->interpreter_id != thread->interpreter_id)
    {
        return 0;
    }
    if (sub->thread_idents == NULL) {
        return 1;
    }
    for (uint32_t i = 0; i < sub->num_thread_idents; i++) {
        if (sub->thread_idents[i] == thread->ident) {
            return 1;
        }
    }
    return 0;
}

/* One of other tables has just ended, or is about to begin. */
#define FOR_PROFILES(PROFILE) \
    for (struct _sampling_profile *PROFILE = STATE->profiles; \
         PROFILE != NULL; PROFILE = PROFILE->next) \
        if (PROFILE->tables == STATE->tables)

static void
add_to_profiles(const struct _sampling_event *event,
                struct _sampling_values values)
{
    if (STATE->profiles == NULL) {
        return;
    }
    const struct _sampling_key key = {
        .node = event->node,
        .thread = event->thread,
        .labels = event->labels,
        .state = event->state,
        .holder_thread = event->holder_thread,
        .holder_node = event->holder_node,
    };
    int is_kept = 1;
    FOR_PROFILES(profile) {
        is_kept &= _PySampling_ProfileAdd(profile, key, &values);
    }
    _PySampling_COUNT(samples, values.count);
    if (!is_kept) {
        _PySampling_COUNT(lost_table_full, values.count);
        _PySampling_COUNT(lost_wall_ns, values.wall_ns);
        _PySampling_COUNT(lost_cpu_ns, values.cpu_ns);
        _PySampling_COUNT(lost_task_ns, values.task_ns);
    }
}

static void
emit(const struct _sampling_event *event)
{
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        if (is_for(sub, event)) {
            _PySampling_SubscriptionAdd(sub, event);
        }
    }
}

void
_PySampling_Emit(_PySampling_Thread *thread,
                 const struct _sampling_event *record)
{
    // A thread of another GIL may record what is lost.
    int excluded = _Py_atomic_load_int_relaxed(&thread->excluded);
    if (!excluded) {
        _PySampling_EmitOfProgram(record);
    }
    else if (excluded == _PySampling_EXCLUDED) {
        _PySampling_COUNT(subscribers_wall_ns, record->wall_ns);
        _PySampling_COUNT(subscribers_cpu_ns, record->cpu_ns);
    }
}

void
_PySampling_EmitOfProgram(const struct _sampling_event *record)
{
    add_to_profiles(record, (struct _sampling_values){
        .count = record->count,
        .cpu_ns = record->cpu_ns,
        .wall_ns = record->wall_ns,
    });
    if (STATE->subscriptions == NULL) {
        return;
    }
    if (record->node != _PySampling_NO_NODE) {
        emit(record);
        return;
    }
    struct _sampling_event lost = *record;
    lost.node = STATE->tables->lost_node;
    lost.state = _PySampling_LOST;
    lost.holder_thread = lost.holder_node = 0;
    emit(&lost);
}

static void
emit_of_task(const struct _sampling_event *record, _PySampling_EventKind kind)
{
    if (STATE->subscriptions != NULL
        && record->node != _PySampling_NO_NODE)
    {
        struct _sampling_event event = *record;
        event.kind = (uint8_t)kind;
        event.time_ns = _PySampling_WallNow();
        emit(&event);
    }
}

void
_PySampling_EmitOfTask(const struct _sampling_event *record)
{
    add_to_profiles(
        record, (struct _sampling_values){.task_ns = record->wall_ns});
    emit_of_task(record, _PySampling_EVENT_TASK);
}

void
_PySampling_EmitDelay(const struct _sampling_event *record)
{
    add_to_profiles(
        record, (struct _sampling_values){.delay_ns = record->wall_ns});
    emit_of_task(record, _PySampling_EVENT_DELAY);
}

void
_PySampling_EmitTaskValues(uint32_t coroutine,
                           const struct _sampling_task_values *values)
{
    int is_kept = 1;
    FOR_PROFILES(profile) {
        is_kept &=
            _PySampling_TaskTableAdd(&profile->tasks, coroutine, values);
    }
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        if (sub->gets_task_table) {
            is_kept &=
                _PySampling_TaskTableAdd(&sub->tasks, coroutine, values);
        }
    }
    if (!is_kept) {
        _PySampling_COUNT(lost_task_ns, values->running_ns
                                        + values->loop_wait_ns
                                        + values->awaiting_ns);
    }
}

void
_PySampling_EmitRecord(_PySampling_EventKind kind, uint32_t thread,
                       uint64_t count, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (STATE->subscriptions != NULL && STATE->tables != NULL) {
        emit(&(struct _sampling_event){
            .time_ns = _PySampling_WallNow(),
            .kind = (uint8_t)kind,
            .thread = thread,
            .count = count,
            .cpu_ns = cpu_ns,
            .wall_ns = wall_ns,
        });
    }
}
