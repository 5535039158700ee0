/* Sampling profiler: what tasks run, and how long they took for it.

   Owns the rows of coroutines, which keep what is known exactly: the lives of
   their tasks, state by state.  Must not know when a task is in which state
   (task/life.c), or how a stack is walked. */

#include "Python.h"

#include "store.h"


/* Rows. */

static uint32_t
hash_coroutine_row(const struct _sampling_coroutine_row *row)
{
    return mix(row->function, 0);
}

DEFINE_INDEX(coroutine, 0)

/* When there are too many: the last row is for all that follow. */
static uint32_t
function_of_others(struct _sampling_tables *tables)
{
    uint32_t frame = _PySampling_InternPseudo(
        tables, _PySampling_PSEUDO_OTHER_TASKS, 0);
    return frame == NO_ROW ? NO_ROW : tables->frames[frame].function;
}

static uint32_t
find_coroutine(const struct _sampling_tables *tables, uint32_t function)
{
    FOR_CANDIDATES(tables->coroutine_index, mix(function, 0), row) {
        if (tables->coroutines[row].function == function) {
            return row;
        }
    }
    return NO_ROW;
}

uint32_t
_PySampling_TablesCoroutine(struct _sampling_tables *tables,
                            uint32_t function)
{
    if (function == NO_ROW) {
        return NO_ROW;
    }
    uint32_t found = find_coroutine(tables, function);
    if (found != NO_ROW) {
        return found;
    }
    if (tables->num_coroutines >= _PySampling_MAX_COROUTINES) {
        function = function_of_others(tables);
        found = find_coroutine(tables, function);
        if (found != NO_ROW || function == NO_ROW) {
            return found;
        }
    }
    if (!RESERVE(tables, coroutines) || !reserve_coroutine_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = tables->num_coroutines++;
    memset(&tables->coroutines[row], 0, sizeof(*tables->coroutines));
    tables->coroutines[row].function = function;
    index_put(&tables->coroutine_index,
              hash_coroutine_row(&tables->coroutines[row]), row);
    return row;
}

/* Below 8 ns a bucket is a nanosecond wide, above an eighth of a power of
   two. */
static int
life_bucket(uint64_t life_ns)
{
    int shift = 0;
    while (life_ns >> shift >= 16) {
        shift++;
    }
    return Py_MIN(8 * shift + (int)(life_ns >> shift),
                  _PySampling_LIFE_BUCKETS - 1);
}

void
_PySampling_TablesAddLife(struct _sampling_tables *tables, uint32_t coroutine,
                          uint64_t life_ns, int is_cancelled)
{
    struct _sampling_coroutine_row *row = &tables->coroutines[coroutine];
    row->num_finished++;
    row->num_cancelled += is_cancelled != 0;
    row->lives_ns += life_ns;
    row->longest_life_ns = Py_MAX(row->longest_life_ns, life_ns);
    row->lives[life_bucket(life_ns)]++;
}

void
_PySampling_TablesKeepUnsampled(struct _sampling_tables *tables,
                                uint32_t coroutine, uint32_t thread)
{
    struct _sampling_coroutine_row *row = &tables->coroutines[coroutine];
    if (row->unsampled_sample != 0) {
        return;
    }
    uint32_t node = _PySampling_TablesPseudoChild(
        tables,
        _PySampling_InternChild(
            tables, 0, _PySampling_InternFunction(tables, row->function)),
        _PySampling_PSEUDO_UNSAMPLED, 0);
    uint32_t labels = _PySampling_LabelsOfCoroutine(tables, coroutine);
    if (node == _PySampling_NO_NODE || labels == NO_ROW) {
        return;
    }
    uint32_t sample = _PySampling_TablesSampleRow(
        tables, &(struct _sampling_sample_row){
            .node = node, .thread = thread, .labels = labels,
            .state = _PySampling_UNSAMPLED});
    row->unsampled_sample = sample != NO_ROW ? sample : 0;
}

/* The longest step and the longest life may have been before: what they were
   since is not known. */
void
_PySampling_SubtractCoroutine(struct _sampling_coroutine_row *row,
                              const struct _sampling_coroutine_row *before)
{
    row->awaiting.all_ns -= before->awaiting.all_ns;
    row->loop_wait.all_ns -= before->loop_wait.all_ns;
    row->running_ns -= before->running_ns;
    row->num_steps -= before->num_steps;
    row->num_finished -= before->num_finished;
    row->num_cancelled -= before->num_cancelled;
    row->lives_ns -= before->lives_ns;
    for (int bucket = 0; bucket < _PySampling_LIFE_BUCKETS; bucket++) {
        row->lives[bucket] -= before->lives[bucket];
    }
}

/* The samples begin anew: so does what is counted. */
void
_PySampling_TablesClearCoroutines(struct _sampling_tables *tables)
{
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        uint32_t function = tables->coroutines[i].function;
        memset(&tables->coroutines[i], 0, sizeof(*tables->coroutines));
        tables->coroutines[i].function = function;
    }
}


/* Steps. */

static int
is_of_step(const struct _sampling_tables *tables,
           const struct _sampling_sample_row *sample)
{
    const struct _sampling_label_row *labels = &tables->labels[sample->labels];
    return labels->coroutine != 0 && !labels->is_work
        && sample->state != _PySampling_AWAITING
        && sample->state != _PySampling_LOOP_WAIT
        && sample->state != _PySampling_CUSTOM;
}

/* What some samples share, and have not taken yet. */
struct shared {
    uint64_t ns;
    uint64_t weight;            // of those samples
    int is_by_wall;
};

/* The part of the next of them. */
static uint64_t
take_part(struct shared *s, uint64_t weight)
{
    uint64_t ns = _PySampling_PartOf(s->ns, weight, s->weight);
    s->ns -= ns;
    s->weight -= weight;
    return ns;
}

static void
share_steps(struct _sampling_tables *tables, struct shared *steps)
{
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        if (is_of_step(tables, s)) {
            steps[tables->labels[s->labels].coroutine - 1].weight +=
                s->wall_ns;
        }
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        steps[i].ns = tables->coroutines[i].running_ns;
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        struct _sampling_sample_row *s = &tables->samples[i];
        if (is_of_step(tables, s)) {
            s->task_ns = take_part(
                &steps[tables->labels[s->labels].coroutine - 1], s->wall_ns);
        }
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        struct _sampling_coroutine_row *c = &tables->coroutines[i];
        if (c->unsampled_sample != 0) {
            tables->samples[c->unsampled_sample].task_ns += steps[i].ns;
        }
        c->unsampled_sample = 0;        // samples may get other numbers now
    }
}

/* If no sample had to answer for it, all do, by their wall time. */
static uint64_t
delay_weight(const struct _sampling_sample_row *s, const struct shared *thread)
{
    return thread->is_by_wall ? s->wall_ns : s->delay_ns;
}

static void
share_delays(struct _sampling_tables *tables, struct shared *threads)
{
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        if (s->state == _PySampling_LOOP_WAIT) {
            threads[s->thread].ns += s->task_ns;
        }
        threads[s->thread].weight += s->delay_ns;
    }
    for (uint32_t i = 0; i < tables->num_threads; i++) {
        threads[i].is_by_wall = threads[i].weight == 0;
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        if (threads[s->thread].is_by_wall) {
            threads[s->thread].weight += s->wall_ns;
        }
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        struct _sampling_sample_row *s = &tables->samples[i];
        struct shared *thread = &threads[s->thread];
        s->delay_ns = take_part(thread, delay_weight(s, thread));
    }
}

int
_PySampling_TablesShareTasks(struct _sampling_tables *tables)
{
    if (tables->num_coroutines == 0) {
        return 1;
    }
    struct shared *shared = calloc(
        (size_t)tables->num_coroutines + tables->num_threads, sizeof(*shared));
    if (shared == NULL) {
        return 0;
    }
    share_steps(tables, shared);
    share_delays(tables, shared + tables->num_coroutines);
    free(shared);
    return 1;
}
