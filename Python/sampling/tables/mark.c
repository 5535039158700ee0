/* Sampling profiler: what tables have got, or have got since a moment.

   Owns the difference between tables and how far they were before.  Rows of
   samples only grow, and keep their places until all are cleared; so what they
   had before need only be subtracted.  Must not know who wants the difference.
*/

#include "Python.h"

#include "tables.h"


int
_PySampling_TablesMark(const struct _sampling_tables *tables,
                       struct _sampling_mark *mark)
{
    struct _sampling_weight *weights =
        malloc(tables->num_samples * sizeof(*weights));
    if (weights == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        weights[i] = (struct _sampling_weight){
            s->count, s->cpu_ns, s->wall_ns, s->task_ns, s->delay_ns};
    }
    mark->coroutines = malloc((tables->num_coroutines + 1)
                              * sizeof(*mark->coroutines));
    if (mark->coroutines == NULL) {
        free(weights);
        return 0;
    }
    if (tables->num_coroutines != 0) {
        memcpy(mark->coroutines, tables->coroutines,
               tables->num_coroutines * sizeof(*mark->coroutines));
    }
    mark->num_coroutines = tables->num_coroutines;
    mark->weights = weights;
    mark->num_samples = tables->num_samples;
    mark->counters = tables->counters;
    mark->after_ns = tables->duration_ns;
    return 1;
}

void
_PySampling_MarkFreeRows(struct _sampling_mark *mark)
{
    free(mark->weights);
    free(mark->coroutines);
    mark->weights = NULL;
    mark->coroutines = NULL;
    mark->num_samples = mark->num_coroutines = 0;
}

void
_PySampling_MarkFree(struct _sampling_mark *mark)
{
    if (mark != NULL) {
        _PySampling_MarkFreeRows(mark);
        free(mark);
    }
}

void
_PySampling_CountersSince(struct _sampling_counters *counters,
                          const struct _sampling_mark *mark)
{
    uint64_t memory_bytes = counters->memory_bytes;     // it is no sum
#define X(name) counters->name -= mark->counters.name;
    _PySampling_COUNTERS(X)
#undef X
    counters->memory_bytes = memory_bytes;
}

static void
subtract_samples(struct _sampling_tables *tables,
                 const struct _sampling_mark *mark)
{
    for (uint32_t i = 0; i < mark->num_samples; i++) {
        struct _sampling_sample_row *s = &tables->samples[i];
        s->count -= mark->weights[i].count;
        s->cpu_ns -= mark->weights[i].cpu_ns;
        s->wall_ns -= mark->weights[i].wall_ns;
        s->task_ns -= mark->weights[i].task_ns;
        s->delay_ns -= mark->weights[i].delay_ns;
    }
}

static void
subtract_coroutines(struct _sampling_tables *tables,
                    const struct _sampling_mark *mark)
{
    for (uint32_t i = 0; i < mark->num_coroutines; i++) {
        _PySampling_SubtractCoroutine(&tables->coroutines[i],
                                      &mark->coroutines[i]);
    }
}

/* Samples that have got nothing since then go. */
static void
leave_out_empty(struct _sampling_tables *tables)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        if (_PySampling_Weighs(s)) {
            tables->samples[kept++] = *s;
        }
    }
    tables->num_samples = kept;
}

/* Per row, whether it is used, and then its number among those that are. */
struct numbers {
    uint32_t *threads;
    uint32_t *labels;
    uint32_t *nodes;
    uint32_t *frames;
    uint32_t *functions;
};

static void
find_used(const struct _sampling_tables *tables, struct numbers *to)
{
    to->nodes[0] = 1;
    to->labels[0] = 1;
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        const struct _sampling_sample_row *s = &tables->samples[i];
        to->nodes[s->node] = 1;
        to->nodes[s->holder_node] = 1;
        to->labels[s->labels] = 1;
        to->threads[s->thread] = 1;
        if (s->holder_node != 0
            && s->holder_thread != _PySampling_NO_THREAD)
        {
            to->threads[s->holder_thread] = 1;
        }
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        to->functions[tables->coroutines[i].function] = 1;
    }
    // Rows come after their parents.
    for (uint32_t i = tables->num_labels; i-- > 1; ) {
        to->labels[tables->labels[i].parent] |= to->labels[i];
    }
    for (uint32_t i = tables->num_nodes; i-- > 1; ) {
        if (to->nodes[i]) {
            uint32_t frame = tables->nodes[i].frame;
            to->nodes[tables->nodes[i].parent] = 1;
            to->frames[frame] = 1;
            to->functions[tables->frames[frame].function] = 1;
        }
    }
}

#define KEEP_USED(NAME) \
    { \
        uint32_t kept = 0; \
        for (uint32_t i = 0; i < tables->num_##NAME; i++) { \
            if (to->NAME[i]) { \
                tables->NAME[kept] = tables->NAME[i]; \
                to->NAME[i] = kept++; \
            } \
        } \
        tables->num_##NAME = kept; \
    }

static void
keep_used(struct _sampling_tables *tables, struct numbers *to)
{
    KEEP_USED(threads)
    KEEP_USED(labels)
    KEEP_USED(nodes)
    KEEP_USED(frames)
    KEEP_USED(functions)
    for (uint32_t i = 1; i < tables->num_labels; i++) {
        tables->labels[i].parent = to->labels[tables->labels[i].parent];
    }
    for (uint32_t i = 1; i < tables->num_nodes; i++) {
        struct _sampling_node_row *n = &tables->nodes[i];
        *n = (struct _sampling_node_row){to->nodes[n->parent],
                                         to->frames[n->frame]};
    }
    for (uint32_t i = 0; i < tables->num_frames; i++) {
        struct _sampling_frame_row *f = &tables->frames[i];
        f->function = to->functions[f->function];
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        struct _sampling_coroutine_row *c = &tables->coroutines[i];
        c->function = to->functions[c->function];
    }
    for (uint32_t i = 0; i < tables->num_samples; i++) {
        struct _sampling_sample_row *s = &tables->samples[i];
        s->node = to->nodes[s->node];
        s->labels = to->labels[s->labels];
        s->thread = to->threads[s->thread];
        if (s->holder_node != 0
            && s->holder_thread != _PySampling_NO_THREAD)
        {
            s->holder_thread = to->threads[s->holder_thread];
        }
        s->holder_node = to->nodes[s->holder_node];
    }
}

/* A short block of a long session is to have a small profile. */
static int
leave_out_unused(struct _sampling_tables *tables)
{
    uint32_t *all = calloc((size_t)tables->num_threads + tables->num_labels
                           + tables->num_nodes + tables->num_frames
                           + tables->num_functions + 1, sizeof(*all));
    if (all == NULL) {
        return 0;
    }
    struct numbers to;
    to.threads = all;
    to.labels = to.threads + tables->num_threads;
    to.nodes = to.labels + tables->num_labels;
    to.frames = to.nodes + tables->num_nodes;
    to.functions = to.frames + tables->num_frames;
    find_used(tables, &to);
    keep_used(tables, &to);
    free(all);
    return 1;
}

int
_PySampling_TablesFinish(struct _sampling_tables *tables,
                         const struct _sampling_mark *mark)
{
    // Which file is which module is known best by all functions together.
    if (!_PySampling_TablesGuessModules(tables)) {
        return 0;
    }
    if (mark == NULL) {
        return _PySampling_TablesShareTasks(tables);
    }
    tables->start_time_ns = mark->start_time_ns;
    tables->duration_ns -= mark->after_ns;
    _PySampling_CountersSince(&tables->counters, mark);
    subtract_samples(tables, mark);
    subtract_coroutines(tables, mark);
    if (!_PySampling_TablesShareTasks(tables)) {
        return 0;
    }
    leave_out_empty(tables);
    return leave_out_unused(tables);
}
