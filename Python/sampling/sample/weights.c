/* Sampling profiler: WHAT a sample weighs.

   Owns the samples of a thread that holds the GIL until they are weighed, and
   those of short intervals off the GIL until their CPU time is.
   Must not know signals, how a thread's time is measured or the layout of
   tables.

   A tick *stands for* a period for each deadline that it answers, its span,
   whatever the thread did meanwhile: each moment is as likely to be checked
   as any other, so each check counts alike, and a place is sampled in
   proportion to the time spent there.  (The time since the last *capture* is
   something else.  The first tick of a burst comes soon after a wait, so the
   beginnings of bursts would get too little, by up to two fifths.)

   Spans add up to a thread's time only on average.  So a thread's last samples
   wait, and share the time that it really had: the oldest of them leaves with

       time not yet on a record * its span / spans of all that wait

   CPU time burnt off the GIL is shared in the same way by the samples of short
   intervals: each stands for CPU time as dense as in its own.

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
static struct _sampling_event
weighed(const struct _sampling_pending *sample, struct _sampling_time weight)
{
    struct _sampling_event record = sample->record;
    record.wall_ns = weight.wall_ns;
    record.cpu_ns = weight.cpu_ns;
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
    struct _sampling_event record = weighed(sample, weight);
    uint64_t wait_ns = record.state == _PySampling_RUNNING
                       || record.state == _PySampling_GC
        ? take_cpu_wait(w, weight) : 0;
    if (wait_ns != 0) {
        struct _sampling_event wait = record;
        wait.state = _PySampling_CPU_WAIT;
        wait.node = _PySampling_TablesPseudoChild(
            STATE->tables, record.node, _PySampling_PSEUDO_CPU_WAIT, 0);
        wait.wall_ns = wait_ns;
        wait.cpu_ns = 0;
        record.wall_ns -= wait_ns;
        // It is one sample.
        struct _sampling_event *lesser =
            wait_ns > record.wall_ns ? &record : &wait;
        lesser->count = 0;
        lesser->flags |= _PySampling_FLAG_RESIDUE;
        _PySampling_EmitOfProgram(&wait);
    }
    if (record.count != 0 || record.wall_ns != 0 || record.cpu_ns != 0) {
        _PySampling_EmitOfProgram(&record);
    }
}

/* `all`: no sample comes any more that could take the CPU time.  Then, if no
   tick found the thread on a CPU, it goes as wall time does.  `unread_ns`: the
   CPU time of so much of the spans is not known yet. */
static void
emit_oldest(struct _sampling_window *w, int all, uint64_t unread_ns)
{
    const struct _sampling_pending *oldest = &w->pending[w->first];
    struct _sampling_time weight = w->time;
    if (!all || w->num > 1) {
        int is_by_wall = all && w->span.cpu_ns == 0;
        weight.wall_ns = _PySampling_PartOf(
            w->time.wall_ns, oldest->span.wall_ns, w->span.wall_ns);
        weight.cpu_ns = is_by_wall
            ? _PySampling_PartOf(w->time.cpu_ns, oldest->span.wall_ns,
                                 w->span.wall_ns)
            : _PySampling_PartOf(
                  w->time.cpu_ns, oldest->span.cpu_ns,
                  Py_MAX(w->span.cpu_ns - Py_MIN(w->span.cpu_ns, unread_ns),
                         oldest->span.cpu_ns));
    }
    w->time.wall_ns -= weight.wall_ns;
    w->time.cpu_ns -= weight.cpu_ns;
    w->span.wall_ns -= oldest->span.wall_ns;
    w->span.cpu_ns -= oldest->span.cpu_ns;
    w->first = (w->first + 1) % WINDOW;
    w->num--;
    emit_weighed(w, oldest, weight);
}

/* A sample of the thread, which has spent `time` since the last one. */
void
_PySampling_Weigh(_PySampling_Thread *thread, _PySampling_Window window,
                  const struct _sampling_pending *sample,
                  struct _sampling_time time)
{
    if (thread->windows[window] == NULL) {
        thread->windows[window] = calloc(1, sizeof(struct _sampling_window));
    }
    struct _sampling_window *w = thread->windows[window];
    if (w == NULL || thread->excluded) {
        struct _sampling_event record = weighed(sample, time);
        _PySampling_Emit(thread, &record);
        return;
    }
    _PySampling_AddTime(&w->time, time);
    _PySampling_AddTime(&w->span, sample->span);
    if (w->num == WINDOW) {
        // The newest one counts already, so that its time is shared by all.
        emit_oldest(w, 0, window == _PySampling_ON_GIL
                          ? _PySampling_AccountUnread(thread) : 0);
    }
    w->pending[(w->first + w->num++) % WINDOW] = *sample;
}

/* All samples that wait are weighed now.  They share `time`, too.  Returns 0
   if there are none. */
int
_PySampling_WeighAll(_PySampling_Thread *thread, _PySampling_Window window,
                     struct _sampling_time time)
{
    struct _sampling_window *w = thread->windows[window];
    if (w == NULL || w->num == 0) {
        return 0;
    }
    _PySampling_AddTime(&w->time, time);
    while (w->num > 0) {
        emit_oldest(w, 1, 0);
    }
    return 1;
}

/* The rows of what waits are of tables that are gone. */
void
_PySampling_WeighNothing(_PySampling_Thread *thread)
{
    for (int i = 0; i < _PySampling_NUM_WINDOWS; i++) {
        if (thread->windows[i] != NULL) {
            *thread->windows[i] = (struct _sampling_window){0};
        }
    }
}

size_t
_PySampling_WeightsBytes(const _PySampling_Thread *thread)
{
    size_t bytes = 0;
    for (int i = 0; i < _PySampling_NUM_WINDOWS; i++) {
        bytes += thread->windows[i] != NULL
            ? sizeof(struct _sampling_window) : 0;
    }
    return bytes;
}
