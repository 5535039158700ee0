/* Sampling profiler: how the waits of tasks are recorded.

   Owns which of them are, and where.  Must not know in which state a task is
   (task/life.c).

   The stack of a task that waits stands still, so both waits are recorded when
   it is entered again: one walk, with the loop's stack below it, as for its
   running samples.  Waits of tasks that run the same are laid end to end, and
   points say which are recorded (base/axis.h); long ones all are.  If that
   would be too many, the points move apart.

   Lock: tables_mutex. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "../base/axis.h"
#include "../tables/labels.h"
#include "task.h"

/* At most so many waits are recorded in a period of the clock, about, as
   counted over so much time. */
#define MAX_RECORDED_PER_PERIOD 2
#define RATE_WINDOW_NS 100000000
#define MIN_RECORDED 4      // however long the period is


static void
walk_once(struct _sampling_waiting *w)
{
    if (w->node != 0) {
        return;
    }
    const _PySampling_TaskInfo *info = &w->task->info;
    uint32_t base = w->is_entering
        ? _PySampling_OuterNode(w->tstate, w->thread, info->skip_frames)
        : _PySampling_AT(w->tables, coroutine, w->task->coroutine)->base_node;
    w->node = _PySampling_AwaitsNode(w->tables, base, info);
    w->labels = _PySampling_LabelsOfWait(w->tables, w->tstate, info);
    if (w->is_entering && base != _PySampling_NO_NODE) {
        _PySampling_AT(w->tables, coroutine,
                       w->task->coroutine)->base_node = base;
    }
}

static void
emit(const struct _sampling_task_waits *waits, PySampling_State state,
     uint64_t ns)
{
    _PySampling_EmitOfProgram(&(_PySampling_Record){
        .key = {
            .node = waits->node,
            .thread = waits->thread,
            .labels = waits->labels,
            .state = state,
        },
        .values.task_ns = ns,
        .time_ns = _PySampling_WallNow(),
    });
}

/* The next wait of that state is charged here, or what it carries. */
static void
set_place(struct _sampling_waiting *w, struct _sampling_task_waits *waits,
          _PySampling_Pseudo pseudo)
{
    walk_once(w);
    waits->node = _PySampling_TablesPseudoChild(w->tables, w->node, pseudo, 0);
    waits->labels = w->labels;
    waits->thread = (w->task->thread != NULL ? w->task->thread
                     : w->thread)->thread_index;
}

/* Few waits come here: not a part of what all pass. */
Py_NO_INLINE void
_PySampling_RecordWait(struct _sampling_waiting *w,
                       struct _sampling_task_waits *waits,
                       PySampling_State state, uint64_t ns)
{
    if (ns == 0) {
        return;
    }
    uint64_t recorded_ns = _PySampling_IsLong(ns, w->period_ns) ? ns
        : _PySampling_Cover(&waits->to_go_ns, &waits->carried_ns, ns,
                            w->period_ns, &w->thread->account.random);
    if (recorded_ns == 0 && waits->node != 0) {
        return;
    }
    set_place(w, waits, state == PySampling_STATE_LOOP_WAIT
                            ? _PySampling_PSEUDO_LOOP_WAIT
                            : _PySampling_PSEUDO_AWAITING);
    if (recorded_ns != 0) {
        emit(waits, state, recorded_ns);
        w->tstate->interp->sampling.task_rate.num_recorded++;
    }
}

/* Points are moved apart, or nearer to each other, once in a while. */
uint64_t
_PySampling_PeriodOfWaits(uint64_t now_ns)
{
    struct _sampling_task_rate *r =
        &_PyInterpreterState_GET()->sampling.task_rate;
    uint64_t shortest_ns = _PySampling_PeriodNow();
    r->period_ns = Py_MAX(r->period_ns, shortest_ns);
    if (r->num_recorded <= MIN_RECORDED
        && now_ns - r->since_ns < RATE_WINDOW_NS)
    {
        return r->period_ns;    // most often
    }
    uint64_t most = Py_MAX(
        MAX_RECORDED_PER_PERIOD * RATE_WINDOW_NS / shortest_ns, MIN_RECORDED);
    if (r->num_recorded > most) {
        r->period_ns *= 2;
    }
    else if (now_ns - r->since_ns < RATE_WINDOW_NS) {
        return r->period_ns;
    }
    else if (r->num_recorded < most / 4) {
        r->period_ns = Py_MAX(r->period_ns / 2, shortest_ns);
    }
    r->since_ns = now_ns;
    r->num_recorded = 0;
    return r->period_ns;
}

/* What is carried goes where the last of its kind went. */
static void
emit_carried(struct _sampling_task_waits *waits, PySampling_State state)
{
    if (waits->carried_ns != 0) {
        emit(waits, state, waits->carried_ns);
        waits->carried_ns = 0;
    }
}

void
_PySampling_WaitsFlush(_PySampling_Thread *own)
{
    struct _sampling_tables *tables = _PySampling_OpenTables(own);
    if (tables == NULL) {
        return;
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        struct _sampling_coroutine_row *row =
            _PySampling_AT(tables, coroutine, i);
        emit_carried(&row->awaiting, PySampling_STATE_AWAITING);
        emit_carried(&row->loop_wait, PySampling_STATE_LOOP_WAIT);
    }
    _PySampling_CloseTables();
}
