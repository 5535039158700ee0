/* Sampling profiler: what kept a loop busy while tasks waited for it.

   Owns a thread's last samples, as far as they may have to answer for tasks
   that were to run meanwhile.  Each sample of a thread with loops weighs, as
   delay, its time for each task that has been woken and waits.  A timer is
   found late: then its task waited already, and what the thread did since the
   timer's deadline is charged once more, for that task.  In the end all delay
   of a thread is shared in these proportions, by the package
   (_data/shared.py).

   A loop that is far behind finds thousands of timers late.  So the charge of
   the samples is not recorded one by one: each keeps by how many more tasks it
   is charged than the one before, and when the oldest one leaves, the number
   of those who charge it is known.

   Lock: tables_mutex. */

#include "Python.h"

#include "sample.h"

/* At 1,000 Hz, a quarter of a second. */
#define MAX_STRETCHES 256

/* What the thread did for a while: a sample at a moment stands for as much
   time around it. */
struct stretch {
    _PySampling_Record record;
    uint64_t from_ns;           // from_ns == until_ns: a sample
    uint64_t until_ns;
    uint64_t span_ns;
    int64_t more_charges;       // than the stretch before
};

struct _sampling_delays {
    unsigned int epoch;         // the rows are of that one
    int64_t oldest_charges;     // of the one before the oldest that is kept
    int64_t next_more_charges;  // of the next one that comes
    uint64_t num_stretches;     // ever; the last MAX_STRETCHES are here
    struct stretch stretches[MAX_STRETCHES];
};

static void
charge(const struct stretch *stretch, uint64_t ns)
{
    if (ns != 0) {
        _PySampling_EmitOfProgram(&(_PySampling_Record){
            .key = stretch->record.key,
            .values.delay_ns = ns,
            .time_ns = _PySampling_WallNow(),
        });
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
        d->oldest_charges = d->next_more_charges = 0;
    }
    return d;
}

static uint64_t
first_kept(const struct _sampling_delays *d)
{
    return d->num_stretches > MAX_STRETCHES
        ? d->num_stretches - MAX_STRETCHES : 0;
}

static struct stretch *
stretch_at(struct _sampling_delays *d, uint64_t number)
{
    return &d->stretches[number % MAX_STRETCHES];
}

/* It makes space for another one. */
static void
drop_oldest(struct _sampling_delays *d)
{
    const struct stretch *oldest = stretch_at(d, first_kept(d));
    d->oldest_charges += oldest->more_charges;
    charge(oldest, oldest->span_ns * (uint64_t)d->oldest_charges);
}

static void
saw(_PySampling_Thread *thread, const struct stretch *stretch)
{
    if (!thread->ran_tasks || thread->excluded
        || stretch->record.key.node == _PySampling_NO_NODE)
    {
        return;
    }
    struct _sampling_delays *d = delays_of(thread);
    if (d != NULL) {
        if (d->num_stretches >= MAX_STRETCHES) {
            drop_oldest(d);
        }
        struct stretch *last = stretch_at(d, d->num_stretches++);
        *last = *stretch;
        last->more_charges = d->next_more_charges;
        d->next_more_charges = 0;
        charge(last, last->span_ns * thread->num_woken);
    }
}

void
_PySampling_DelaysSawSample(_PySampling_Thread *thread,
                            const _PySampling_Record *record,
                            uint64_t span_ns)
{
    saw(thread, &(struct stretch){
        *record, record->time_ns, record->time_ns, span_ns, 0});
}

void
_PySampling_DelaysSawInterval(_PySampling_Thread *thread,
                              const _PySampling_Record *record,
                              uint64_t from_ns, uint64_t until_ns)
{
    saw(thread, &(struct stretch){
        *record, from_ns, until_ns, until_ns - from_ns, 0});
}

/* The first stretch that does not end before a moment. */
static uint64_t
find_since(struct _sampling_delays *d, uint64_t since_ns)
{
    uint64_t low = first_kept(d), high = d->num_stretches;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (stretch_at(d, middle)->until_ns < since_ns) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

void
_PySampling_DelaysCharge(_PySampling_Thread *thread, uint64_t since_ns)
{
    struct _sampling_delays *d = delays_of(thread);
    if (d == NULL) {
        return;
    }
    uint64_t number = find_since(d, since_ns);
    if (number < d->num_stretches
        && stretch_at(d, number)->from_ns < since_ns)
    {
        // Only its end.
        const struct stretch *s = stretch_at(d, number++);
        charge(s, s->until_ns - since_ns);
    }
    if (number < d->num_stretches) {
        stretch_at(d, number)->more_charges++;
        d->next_more_charges--;
    }
}

void
_PySampling_DelaysFlush(_PySampling_Thread *thread)
{
    struct _sampling_delays *d = thread->delays;
    if (d == NULL || d->epoch != thread->epoch) {
        return;
    }
    for (uint64_t i = first_kept(d); i < d->num_stretches; i++) {
        struct stretch *s = stretch_at(d, i);
        d->oldest_charges += s->more_charges;
        charge(s, s->span_ns * (uint64_t)d->oldest_charges);
        s->more_charges = 0;
    }
    d->oldest_charges = d->next_more_charges = 0;
}

size_t
_PySampling_DelaysBytes(const _PySampling_Thread *thread)
{
    return thread->delays != NULL ? sizeof(*thread->delays) : 0;
}
