/* Sampling profiler: what a subscriber is told of what is counted of tasks.

   The tables count what tasks do, by what they run, for all who share them.
   Owns which part of that a subscription gets: what was counted from its
   beginning to its end, each batch all up to its last record.  Must not know
   how tasks are counted.

   Lock: tables_mutex. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "sinks.h"

#define STATE (&_PyRuntime.sampling)


/* From its beginning. */

int
_PySampling_ToldBegin(struct _sampling_subscription *sub)
{
    const struct _sampling_tables *tables = STATE->tables;
    if (!sub->gets_tasks || tables == NULL) {
        return 1;
    }
    size_t bytes = tables->num_coroutines * sizeof(*sub->counted);
    sub->counted = malloc(bytes ? bytes : 1);
    if (sub->counted == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        sub->counted[i] = tables->coroutines[i];
        sub->counted[i].longest_step_ns = sub->counted[i].longest_life_ns = 0;
    }
    sub->counted_serial = tables->serial;
    sub->num_counted = tables->num_coroutines;
    return 1;
}

static uint32_t
num_counted_in(const struct _sampling_subscription *sub,
               const struct _sampling_tables *tables)
{
    return sub->counted_serial == tables->serial ? sub->num_counted : 0;
}

/* The longest are no sums.  What they were before the subscription began is
   not known: see _PySampling_SubtractCoroutine(). */
static void
keep_longest(struct _sampling_coroutine_row *kept,
             const struct _sampling_coroutine_row *row)
{
    kept->longest_step_ns = Py_MAX(kept->longest_step_ns,
                                   row->longest_step_ns);
    kept->longest_life_ns = Py_MAX(kept->longest_life_ns,
                                   row->longest_life_ns);
}

/* So that what is counted from zero on, less this, is the same as before. */
static void
keep_counted(struct _sampling_subscription *sub,
             const struct _sampling_tables *tables)
{
    struct _sampling_coroutine_row *counted = realloc(
        sub->counted, (tables->num_coroutines + 1) * sizeof(*counted));
    if (counted == NULL) {
        sub->num_counted = 0;   // what was counted until now is not told
        return;
    }
    uint32_t known = num_counted_in(sub, tables);
    memset(counted + known, 0,
           (tables->num_coroutines - known) * sizeof(*counted));
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        _PySampling_SubtractCoroutine(&counted[i], &tables->coroutines[i]);
        keep_longest(&counted[i], &tables->coroutines[i]);
    }
    sub->counted = counted;
    sub->counted_serial = tables->serial;
    sub->num_counted = tables->num_coroutines;
}

void
_PySampling_ToldKeep(void)
{
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        if (sub->gets_tasks) {
            keep_counted(sub, STATE->tables);
        }
    }
}


/* To its end. */

static struct _sampling_told_coroutine
tell(const struct _sampling_tables *tables, uint32_t coroutine)
{
    struct _sampling_told_coroutine told = {
        .row = tables->coroutines[coroutine],
    };
    if (told.row.unsampled_sample != 0) {
        const struct _sampling_sample_row *unsampled =
            &tables->samples[told.row.unsampled_sample];
        told.unsampled_node = unsampled->node;
        told.unsampled_thread = unsampled->thread;
        told.unsampled_labels = unsampled->labels;
    }
    return told;
}

/* Counters are of all tasks: who gets a part of the samples has no use for
   them. */
int
_PySampling_ToldSeal(const struct _sampling_subscription *sub,
                     struct _sampling_batch *batch)
{
    if (batch->told != NULL || !sub->gets_tasks || sub->thread_idents != NULL
        || sub->num_labels != 0)
    {
        return 1;
    }
    const struct _sampling_tables *tables = batch->tables;
    uint32_t num_counted = num_counted_in(sub, tables);
    batch->told = malloc((tables->num_coroutines + 1) * sizeof(*batch->told));
    if (batch->told == NULL) {
        return 0;
    }
    batch->num_told = tables->num_coroutines;
    for (uint32_t i = 0; i < batch->num_told; i++) {
        batch->told[i] = tell(tables, i);
        if (i < num_counted) {
            _PySampling_SubtractCoroutine(&batch->told[i].row,
                                          &sub->counted[i]);
            keep_longest(&batch->told[i].row, &sub->counted[i]);
        }
    }
    return 1;
}
