/* Sampling profiler: fewer samples for a sink that wants a lower rate.

   Owns what a sink with a lower rate than the clock's has not been given yet.
   Must not know what a sink does with samples.

   Points are laid on each thread's time, a period apart on average.  A sample
   that covers a point passes, and weighs for all the time of its state since
   the last one that passed; the others wait.  A sample covers a point in
   proportion to the time it weighs, so shares stay true, and nothing is lost:
   weights add up to the same sum at any rate. */

#include "Python.h"

#include "pycore_sampling_events.h"
#include "pycore_sampling_parts.h"

#define NUM_STATES (_PySampling_UNSAMPLED + 1)

struct _sampling_thin_thread {
    uint64_t to_go_ns;          // to the next point; 0: the thread is new
    // What waits, by state: the last sample with the sum of their weights.
    struct _sampling_event waiting[NUM_STATES];
};

static struct _sampling_thin_thread *
thread_of(struct _sampling_thinner *thinner, uint32_t thread)
{
    if (thread >= thinner->num_threads) {
        uint32_t num = Py_MAX(thread + 1, thinner->num_threads * 2);
        struct _sampling_thin_thread *threads =
            realloc(thinner->threads, num * sizeof(*threads));
        if (threads == NULL) {
            return NULL;
        }
        memset(threads + thinner->num_threads, 0,
               (num - thinner->num_threads) * sizeof(*threads));
        thinner->threads = threads;
        thinner->num_threads = num;
    }
    struct _sampling_thin_thread *t = &thinner->threads[thread];
    if (t->to_go_ns == 0) {
        thinner->random |= 1;       // all-zero is where a thinner begins
        t->to_go_ns = _PySampling_NextRandom(&thinner->random)
                      % thinner->period_ns + 1;
    }
    return t;
}

static void
add_weights(struct _sampling_event *to, const struct _sampling_event *from)
{
    to->count += from->count;
    to->cpu_ns += from->cpu_ns;
    to->wall_ns += from->wall_ns;
}

int
_PySampling_Thin(struct _sampling_thinner *thinner,
                 struct _sampling_event *event)
{
    if (thinner->period_ns == 0 || event->state >= NUM_STATES) {
        return 1;
    }
    struct _sampling_thin_thread *t = thread_of(thinner, event->thread);
    if (t == NULL) {
        return 1;               // no memory: more samples than asked for
    }
    int passes = event->wall_ns >= t->to_go_ns;
    uint64_t wall_ns = event->wall_ns;
    struct _sampling_event *waiting = &t->waiting[event->state];
    add_weights(event, waiting);
    if (passes) {
        *waiting = (struct _sampling_event){0};
        wall_ns -= t->to_go_ns;
        t->to_go_ns = _PySampling_Jittered(thinner->period_ns,
                                           &thinner->random);
        // Points that the sample covers besides are covered.
        if (wall_ns >= t->to_go_ns) {
            wall_ns %= thinner->period_ns;
            t->to_go_ns = Py_MAX(t->to_go_ns, wall_ns + 1);
        }
    }
    else {
        *waiting = *event;
    }
    t->to_go_ns -= wall_ns;
    return passes;
}

int
_PySampling_ThinResidue(struct _sampling_thinner *thinner, uint32_t thread,
                        struct _sampling_event *event)
{
    if (thread >= thinner->num_threads) {
        return 0;
    }
    for (int state = 0; state < NUM_STATES; state++) {
        struct _sampling_event *waiting =
            &thinner->threads[thread].waiting[state];
        if (waiting->count != 0 || waiting->wall_ns != 0
            || waiting->cpu_ns != 0)
        {
            *event = *waiting;
            event->flags |= _PySampling_FLAG_RESIDUE;
            *waiting = (struct _sampling_event){0};
            return 1;
        }
    }
    return 0;
}

void
_PySampling_ThinSetRate(struct _sampling_thinner *thinner, int rate_hz)
{
    thinner->period_ns = rate_hz ? 1000000000u / (uint64_t)rate_hz : 0;
    for (uint32_t i = 0; i < thinner->num_threads; i++) {
        thinner->threads[i].to_go_ns = 0;
    }
}

/* Nothing waits: the caller has taken the residue of every thread. */
void
_PySampling_ThinClear(struct _sampling_thinner *thinner)
{
    free(thinner->threads);
    thinner->threads = NULL;
    thinner->num_threads = 0;
}

size_t
_PySampling_ThinBytes(const struct _sampling_thinner *thinner)
{
    return thinner->num_threads * sizeof(*thinner->threads);
}
