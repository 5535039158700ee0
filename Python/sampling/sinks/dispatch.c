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

static struct _sampling_sample_row
row_of(const struct _sampling_event *event)
{
    return (struct _sampling_sample_row){
        .node = event->node,
        .thread = event->thread,
        .labels = event->labels,
        .state = event->state,
        .holder_thread = event->holder_thread,
        .holder_node = event->holder_node,
    };
}

/* The table of samples is one of the sinks. */
static void
add_to_session(const struct _sampling_event *event)
{
    struct _sampling_sample_row row = row_of(event);
    row.count = event->count;
    row.cpu_ns = event->cpu_ns;
    row.wall_ns = event->wall_ns;
    _PySampling_TablesAdd(STATE->tables, &row);
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
    // A thread of another GIL may book what is lost.
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
    if (STATE->is_aggregating) {
        add_to_session(record);
    }
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
    if (STATE->is_aggregating) {
        struct _sampling_sample_row row = row_of(record);
        row.task_ns = record->wall_ns;
        _PySampling_TablesAdd(STATE->tables, &row);
    }
    emit_of_task(record, _PySampling_EVENT_TASK);
}

void
_PySampling_EmitDelay(const struct _sampling_event *record)
{
    if (STATE->is_aggregating) {
        struct _sampling_sample_row row = row_of(record);
        row.delay_ns = record->wall_ns;
        _PySampling_TablesAdd(STATE->tables, &row);
    }
    emit_of_task(record, _PySampling_EVENT_DELAY);
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
