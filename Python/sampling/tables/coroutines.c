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
        _PySampling_TablesChild(
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
    return tables->labels[sample->labels].coroutine != 0
        && sample->state != _PySampling_AWAITING
        && sample->state != _PySampling_LOOP_WAIT
        && sample->state != _PySampling_CUSTOM;
}

/* Of a coroutine: what its samples weigh, and how much of that is shared. */
struct steps {
    uint64_t wall_ns;
    uint64_t seen_wall_ns;
    uint64_t given_ns;
};

/* Where the samples are so far, rounded down: so the parts add up to all. */
static uint64_t
give(struct steps *s, uint64_t wall_ns, uint64_t running_ns)
{
    s->seen_wall_ns += wall_ns;
    double part = s->seen_wall_ns == s->wall_ns
        ? 1.0 : (double)s->seen_wall_ns / (double)s->wall_ns;
    uint64_t until_ns = part == 1.0
        ? running_ns : (uint64_t)((double)running_ns * part);
    until_ns = Py_MAX(Py_MIN(until_ns, running_ns), s->given_ns);
    uint64_t given_ns = until_ns - s->given_ns;
    s->given_ns = until_ns;
    return given_ns;
}

int
_PySampling_TablesShareSteps(struct _sampling_tables *tables)
{
    struct steps *steps = calloc(tables->num_coroutines + 1, sizeof(*steps));
    if (steps == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        if (is_of_step(tables, s)) {
            steps[tables->labels[s->labels].coroutine - 1].wall_ns +=
                s->wall_ns;
        }
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        struct _sampling_sample_row *s = &tables->samples[i];
        if (!is_of_step(tables, s)) {
            continue;
        }
        uint32_t coroutine = tables->labels[s->labels].coroutine - 1;
        if (steps[coroutine].wall_ns != 0) {
            s->task_ns = give(&steps[coroutine], s->wall_ns,
                              tables->coroutines[coroutine].running_ns);
        }
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        struct _sampling_coroutine_row *c = &tables->coroutines[i];
        if (steps[i].wall_ns == 0 && c->unsampled_sample != 0) {
            tables->samples[c->unsampled_sample].task_ns = c->running_ns;
        }
        c->unsampled_sample = 0;        // samples may get other numbers now
    }
    free(steps);
    return 1;
}
