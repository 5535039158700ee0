/* Sampling profiler: WHAT a sample weighs.

   Owns the samples of a thread until they are weighed.
   Must not know signals, how a thread's time is measured or the layout of
   tables.

   A tick *stands for* a period for each deadline that it answers, its span:
   each moment is as likely to have one as any other, so a place is sampled
   in proportion to the time spent there.  Each deadline in a thread's life is
   on one of its records, so spans add up to its wall time but for some periods.
   What the clocks say is shared by the thread's last samples: the oldest of
   them leaves with

       time not yet on a record * its span / spans of all that wait

   Nothing is created, lost or negative, and what is left at the end is shared
   in the same way.  The proof is in
   InternalDocs/profile_sampling/accounting.md. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../sinks/sinks.h"
#include "sample.h"

/* A thread's samples share its time with so many others. */
#define WINDOW 16

/* A wait for a CPU has a record of its own if it is at least so much of a
   sample, 1/8. */
#define LEAST_CPU_WAIT 8

#define STATE (&_PyRuntime.sampling)

/* Lock: tables_mutex. */
struct _sampling_window {
    struct _sampling_time time; // of the thread, on no record yet
    struct _sampling_time span; // of all that are pending
    int64_t no_cpu_ns;          // it held the GIL, and no record says so yet
    int first;
    int num;
    struct _sampling_pending pending[WINDOW];
};

/* The record, with its weight. */
static _PySampling_Record
weighed(const struct _sampling_pending *sample, struct _sampling_time weight)
{
    _PySampling_Record record = sample->record;
    record.values.wall_ns = weight.wall_ns;
    record.values.cpu_ns = weight.cpu_ns;
    return record;
}

/* Wall time that no CPU time was spent in, of a thread that holds the GIL and
   does not sleep: it waited for a CPU.  The two clocks are not read at one
   moment, so a difference may be made good by the next sample; and one that is
   small beside the sample waits, so that most have a single record. */
static uint64_t
take_cpu_wait(struct _sampling_window *w, struct _sampling_time weight)
{
    w->no_cpu_ns += (int64_t)weight.wall_ns - (int64_t)weight.cpu_ns;
    if (w->no_cpu_ns <= (int64_t)(weight.wall_ns / LEAST_CPU_WAIT)) {
        return 0;
    }
    uint64_t wait_ns = Py_MIN((uint64_t)w->no_cpu_ns, weight.wall_ns);
    w->no_cpu_ns -= (int64_t)wait_ns;
    return wait_ns;
}

static void
emit_weighed(struct _sampling_window *w,
             const struct _sampling_pending *sample,
             struct _sampling_time weight)
{
    // What waits is the program's, whatever the thread does by now.
    _PySampling_Record record = weighed(sample, weight);
    uint64_t wait_ns = record.key.state == PySampling_STATE_RUNNING
                       || record.key.state == PySampling_STATE_GC
        ? take_cpu_wait(w, weight) : 0;
    if (wait_ns != 0) {
        _PySampling_Record wait = record;
        wait.key.state = PySampling_STATE_CPU_WAIT;
        wait.key.node = _PySampling_TablesPseudoChild(
            STATE->tables, record.key.node, _PySampling_PSEUDO_CPU_WAIT, 0);
        wait.values.wall_ns = wait_ns;
        wait.values.cpu_ns = 0;
        record.values.wall_ns -= wait_ns;
        // It is one sample, of what ran: a thread that waits for a CPU cannot
        // be captured.
        wait.values.count = 0;
        _PySampling_EmitOfProgram(&wait);
    }
    if (record.values.count != 0 || record.values.wall_ns != 0 || record.values.cpu_ns != 0) {
        _PySampling_EmitOfProgram(&record);
    }
}

/* `all`: no sample comes any more that could take what is left. */
static void
emit_oldest(struct _sampling_window *w, int all)
{
    const struct _sampling_pending *oldest = &w->pending[w->first];
    struct _sampling_time weight = {
        .wall_ns = all && w->num == 1 ? w->time.wall_ns
            : _PySampling_PartOf(w->time.wall_ns, oldest->span.wall_ns,
                                 w->span.wall_ns),
        .cpu_ns = _PySampling_PartOf(w->time.cpu_ns, oldest->span.cpu_ns,
                                     w->span.cpu_ns),
    };
    if (oldest->record.key.state == PySampling_STATE_NATIVE
        && !(all && w->num == 1)) {
        // It was on a CPU all the while: the others share what that leaves.
        weight.wall_ns = Py_MIN(weight.cpu_ns, w->time.wall_ns);
    }
    w->time.wall_ns -= weight.wall_ns;
    w->time.cpu_ns -= weight.cpu_ns;
    w->span.wall_ns -= oldest->span.wall_ns;
    w->span.cpu_ns -= oldest->span.cpu_ns;
    w->first = (w->first + 1) % WINDOW;
    w->num--;
    emit_weighed(w, oldest, weight);
}

/* The thread has spent `time`, and there is a sample of it, or none (NULL). */
void
_PySampling_Weigh(_PySampling_Thread *thread,
                  const struct _sampling_pending *sample,
                  struct _sampling_time time)
{
    if (thread->window == NULL) {
        thread->window = calloc(1, sizeof(struct _sampling_window));
    }
    struct _sampling_window *w = thread->window;
    if (w == NULL || thread->excluded) {
        struct _sampling_pending none = {0};
        _PySampling_Record record =
            weighed(sample != NULL ? sample : &none, time);
        if (thread->excluded) {
            _PySampling_Emit(thread, &record);
        }
        return;
    }
    _PySampling_AddTime(&w->time, time);
    if (sample == NULL) {
        return;
    }
    _PySampling_AddTime(&w->span, sample->span);
    if (w->num == WINDOW) {
        // The newest one counts already, so that its time is shared by all.
        emit_oldest(w, 0);
    }
    w->pending[(w->first + w->num++) % WINDOW] = *sample;
}

/* All samples that wait are weighed now, and share `time` as well.  Returns
   what none of them takes: all, or CPU time that none was met on. */
_PySampling_Time
_PySampling_WeighAll(_PySampling_Thread *thread, struct _sampling_time time)
{
    struct _sampling_window *w = thread->window;
    if (w == NULL) {
        return time;
    }
    _PySampling_AddTime(&w->time, time);
    while (w->num > 0) {
        emit_oldest(w, 1);
    }
    time = w->time;
    *w = (struct _sampling_window){0};
    return time;
}

/* The rows of what waits are of tables that are gone. */
void
_PySampling_WeighNothing(_PySampling_Thread *thread)
{
    if (thread->window != NULL) {
        *thread->window = (struct _sampling_window){0};
    }
}

size_t
_PySampling_WeightsBytes(const _PySampling_Thread *thread)
{
    return thread->window != NULL ? sizeof(struct _sampling_window) : 0;
}
