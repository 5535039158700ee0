/* Sampling profiler: what kept a loop busy while tasks waited for it.

   Owns a thread's last samples, as far as they may have to answer for tasks
   that were to run meanwhile.  Each sample of a thread with loops weighs, as
   delay, its time for each task that has been woken and waits.  A timer is
   found late: then its task waited already, and what the thread did since the
   timer's deadline is blamed once more, for that task.  In the end all delay
   of a thread is shared in these proportions (tables/coroutines.c).

   Lock: tables_mutex. */

#include "Python.h"

#include "sample.h"

/* At 1,000 Hz, a quarter of a second. */
#define MAX_STRETCHES 256

/* What the thread did for a while: a sample at a moment stands for as much
   time around it. */
struct stretch {
    struct _sampling_event record;
    uint64_t from_ns;           // from_ns == until_ns: a sample
    uint64_t until_ns;
    uint64_t span_ns;
};

struct _sampling_delays {
    unsigned int epoch;         // the rows are of that one
    uint64_t num_stretches;     // ever; the last MAX_STRETCHES are here
    struct stretch stretches[MAX_STRETCHES];
};

static void
blame(const struct stretch *stretch, uint64_t ns)
{
    if (ns != 0) {
        struct _sampling_event record = stretch->record;
        record.count = record.cpu_ns = 0;
        record.wall_ns = ns;
        _PySampling_EmitDelay(&record);
    }
}

static struct _sampling_delays *
delays_of(_PySampling_Thread *thread)
{
    if (thread->delays == NULL) {
        thread->delays = calloc(1, sizeof(*thread->delays));
    }
    struct _sampling_delays *d = thread->delays;
    if (d != NULL && d->epoch != thread->epoch) {
        d->epoch = thread->epoch;
        d->num_stretches = 0;
    }
    return d;
}

static void
saw(_PySampling_Thread *thread, const struct stretch *stretch)
{
    if (!thread->ran_tasks || thread->excluded
        || stretch->record.node == _PySampling_NO_NODE)
    {
        return;
    }
    struct _sampling_delays *d = delays_of(thread);
    if (d != NULL) {
        d->stretches[d->num_stretches++ % MAX_STRETCHES] = *stretch;
        blame(stretch, stretch->span_ns * thread->num_woken);
    }
}

void
_PySampling_DelaysSawSample(_PySampling_Thread *thread,
                            const struct _sampling_event *record,
                            uint64_t span_ns)
{
    saw(thread, &(struct stretch){
        *record, record->time_ns, record->time_ns, span_ns});
}

void
_PySampling_DelaysSawInterval(_PySampling_Thread *thread,
                              const struct _sampling_event *record,
                              uint64_t from_ns, uint64_t until_ns)
{
    saw(thread, &(struct stretch){
        *record, from_ns, until_ns, until_ns - from_ns});
}

/* How much of a stretch is after a moment. */
static uint64_t
part_since(const struct stretch *stretch, uint64_t since_ns)
{
    if (stretch->from_ns == stretch->until_ns) {
        return stretch->until_ns >= since_ns ? stretch->span_ns : 0;
    }
    uint64_t from_ns = Py_MAX(stretch->from_ns, since_ns);
    return stretch->until_ns > from_ns ? stretch->until_ns - from_ns : 0;
}

void
_PySampling_DelaysBlame(_PySampling_Thread *thread, uint64_t since_ns)
{
    struct _sampling_delays *d = delays_of(thread);
    if (d == NULL) {
        return;
    }
    uint64_t first = d->num_stretches > MAX_STRETCHES
        ? d->num_stretches - MAX_STRETCHES : 0;
    for (uint64_t i = d->num_stretches; i > first; i--) {
        const struct stretch *s = &d->stretches[(i - 1) % MAX_STRETCHES];
        if (s->until_ns < since_ns) {
            break;
        }
        blame(s, part_since(s, since_ns));
    }
}

size_t
_PySampling_DelaysBytes(const _PySampling_Thread *thread)
{
    return thread->delays != NULL ? sizeof(*thread->delays) : 0;
}
