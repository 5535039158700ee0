/* Sampling profiler: where records come in, and to whom they go.

   Owns the choice of sinks.  Must not know how a sink keeps what it gets, nor
   how a weight came about. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../base/common.h"
#include "sinks.h"

#define STATE (&_PyRuntime.sampling)

#define FOR_SINKS(SINK) \
    for (struct _sampling_sink *SINK = STATE->sinks; SINK != NULL; \
         SINK = SINK->next)

void
_PySampling_Emit(_PySampling_Thread *thread, const _PySampling_Record *record)
{
    // A thread of another GIL may record what is lost.
    int excluded = _Py_atomic_load_int_relaxed(&thread->excluded);
    if (!excluded) {
        _PySampling_EmitOfProgram(record);
    }
    else if (excluded == _PySampling_EXCLUDED) {
        _PySampling_COUNT(subscribers_wall_ns, record->values.wall_ns);
        _PySampling_COUNT(subscribers_cpu_ns, record->values.cpu_ns);
    }
}

void
_PySampling_EmitOfProgram(const _PySampling_Record *record)
{
    const struct _sampling_values *values = &record->values;
    _PySampling_Record at = *record;
    at.time_ns += STATE->skipped_ns;        // on the monotonic clock
    int is_lost = 0;
    FOR_SINKS(sink) {
        uint64_t lost = sink->stats.lost;
        _PySampling_SinkAdd(sink, &at);
        is_lost |= sink->stats.lost != lost && !sink->is_subscription;
    }
    if (STATE->num_profiles > 0) {
        _PySampling_COUNT(samples, values->count);
    }
    if (is_lost) {
        _PySampling_COUNT(lost_table_full, values->count);
        _PySampling_COUNT(lost_wall_ns, values->wall_ns);
        _PySampling_COUNT(lost_cpu_ns, values->cpu_ns);
        _PySampling_COUNT(lost_task_ns, values->task_ns);
    }
}

void
_PySampling_EmitTaskValues(uint32_t coroutine,
                           const struct _sampling_task_values *values)
{
    int is_kept = 1;
    FOR_SINKS(sink) {
        if (sink->gets_task_table && sink->rows != NULL
            && sink->rows->tables == STATE->tables)
        {
            is_kept &=
                _PySampling_RowsAddTasks(sink->rows, coroutine, values);
        }
    }
    if (!is_kept) {
        _PySampling_COUNT(lost_task_ns, values->running_ns
                                        + values->loop_wait_ns
                                        + values->awaiting_ns);
    }
}

void
_PySampling_EmitEvent(PySampling_Kind kind, uint32_t thread, uint64_t count,
                      uint64_t cpu_ns, uint64_t wall_ns)
{
    if (STATE->tables == NULL) {
        return;
    }
    const PySampling_Event event = {
        .time_ns = _PySampling_WallNow() + STATE->skipped_ns,
        .count = count,
        .cpu_ns = cpu_ns,
        .wall_ns = wall_ns,
        .kind = kind,
        .thread = thread,
    };
    FOR_SINKS(sink) {
        _PySampling_SinkAddEvent(sink, &event);
    }
}
