/* Sampling profiler: WHAT a sample weighs.

   Owns the samples of a thread that holds the GIL until they are weighed, and
   those of short intervals off the GIL until their CPU time is.
   Must not know signals, how a thread's time is measured or the layout of
   tables.

   A tick *stands for* a period for each deadline that it answers, its span,
   whatever the thread did meanwhile: each moment is as likely to be looked at
   as any other, so each look counts alike, and a place is sampled in
   proportion to the time spent there.  (The time since the last *capture* is
   something else.  The first tick of a burst comes soon after a wait, so the
   beginnings of bursts would get too little, by up to two fifths.)

   Spans add up to a thread's time only on average.  So a thread's last samples
   wait, and share the time that it really had: the oldest of them leaves with

       time not yet on a record * its span / spans of all that wait

   CPU time burnt off the GIL is shared in the same way by the samples of short
   intervals: each stands for CPU time as dense as in its own.

   Nothing is created, lost or negative, and what is left at the end is shared
   in the same way.  InternalDocs/profile_sampling.md has the proof. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_events.h"
#include "pycore_sampling_parts.h"

#ifdef _PySampling_SUPPORTED

/* time * span / all.  The last one takes what is left. */
static uint64_t
share(uint64_t time_ns, uint64_t span_ns, uint64_t all_ns, int is_last)
{
    if (is_last) {
        return time_ns;
    }
    if (all_ns == 0) {
        return 0;
    }
#ifdef __SIZEOF_INT128__
    return (uint64_t)((unsigned __int128)time_ns * span_ns / all_ns);
#else
    uint64_t ns = (uint64_t)((double)time_ns * (double)span_ns
                             / (double)all_ns);
    return Py_MIN(ns, time_ns);
#endif
}

static struct _sampling_sample_row
row_of(const _PySampling_Thread *thread,
       const struct _sampling_pending *sample, struct _sampling_time weight)
{
    return (struct _sampling_sample_row){
        .node = sample->node,
        .thread = thread->thread_index,
        .labels = sample->labels,
        .state = (uint32_t)sample->state,
        .count = sample->count,
        .cpu_ns = weight.cpu_ns,
        .wall_ns = weight.wall_ns,
    };
}

static int
flags_of(const struct _sampling_pending *sample)
{
    return sample->count == 0 ? _PySampling_FLAG_RESIDUE : 0;
}

/* `all`: no sample comes any more that could take the CPU time.  Then, if no
   tick found the thread on a CPU, it goes as wall time does. */
static void
emit_oldest(_PySampling_Thread *thread, struct _sampling_window *w, int all)
{
    const struct _sampling_pending *oldest = &w->pending[w->first];
    int is_last = all && w->num == 1;
    struct _sampling_time weight = {
        .wall_ns = share(w->time.wall_ns, oldest->span.wall_ns,
                         w->span.wall_ns, is_last),
        .cpu_ns = share(w->time.cpu_ns, oldest->span.cpu_ns,
                        w->span.cpu_ns, is_last),
    };
    if (all && w->span.cpu_ns == 0) {
        weight.cpu_ns = share(w->time.cpu_ns, oldest->span.wall_ns,
                              w->span.wall_ns, is_last);
    }
    w->time.wall_ns -= weight.wall_ns;
    w->time.cpu_ns -= weight.cpu_ns;
    w->span.wall_ns -= oldest->span.wall_ns;
    w->span.cpu_ns -= oldest->span.cpu_ns;
    w->first = (w->first + 1) % _PySampling_WINDOW;
    w->num--;
    // What waits is the program's, whatever the thread does by now.
    struct _sampling_sample_row row = row_of(thread, oldest, weight);
    _PySampling_EmitOfProgram(&row, oldest->time_ns, flags_of(oldest));
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
        struct _sampling_sample_row row = row_of(thread, sample, time);
        _PySampling_Emit(thread, &row, sample->time_ns, flags_of(sample));
        return;
    }
    _PySampling_AddTime(&w->time, time);
    _PySampling_AddTime(&w->span, sample->span);
    if (w->num == _PySampling_WINDOW) {
        // The newest one counts already, so that its time is shared by all.
        emit_oldest(thread, w, 0);
    }
    w->pending[(w->first + w->num++) % _PySampling_WINDOW] = *sample;
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
        emit_oldest(thread, w, 1);
    }
    return 1;
}

#endif  // _PySampling_SUPPORTED
