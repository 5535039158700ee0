/* Sampling profiler: how samples share what is known of tasks exactly.

   Owns the rule.  Must not know how a profile came to be. */

#include "Python.h"

#include "profile.h"
#include "store.h"


/* The coroutine that was in a step, and its row + 1; 0: the sample is of
   none. */
static uint32_t
coroutine_of(const struct _sampling_profile *profile,
             const struct _sampling_key *key)
{
    const struct _sampling_label_row *labels =
        &profile->tables->labels[key->labels];
    return labels->is_work || key->state == _PySampling_AWAITING
                           || key->state == _PySampling_LOOP_WAIT
                           || key->state == _PySampling_CUSTOM
        ? 0 : labels->coroutine;
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

/* What no sample can take goes to one of its own, for which there is space. */
static void
add_unsampled(struct _sampling_profile *profile, uint32_t coroutine,
              uint64_t task_ns)
{
    const struct _sampling_coroutine_row *c =
        &profile->tables->coroutines[coroutine];
    if (task_ns == 0 || c->unsampled_node == 0) {
        return;
    }
    profile->samples[profile->num_samples++] = (struct _sampling_sample_row){
        .key = {
            .node = c->unsampled_node,
            .thread = c->unsampled_thread,
            .labels = c->unsampled_labels,
            .state = _PySampling_UNSAMPLED,
        },
        .values = {.task_ns = task_ns},
    };
}

static void
share_steps(struct _sampling_profile *profile, struct shared *steps)
{
    uint32_t num_coroutines = profile->tables->num_coroutines;
    uint32_t num_samples = profile->num_samples;
    for (uint32_t i = 0; i < num_samples; i++) {
        const struct _sampling_sample_row *s = &profile->samples[i];
        uint32_t coroutine = coroutine_of(profile, &s->key);
        if (coroutine != 0) {
            steps[coroutine - 1].weight += s->values.wall_ns;
        }
    }
    for (uint32_t i = 0; i < num_coroutines; i++) {
        steps[i].ns = profile->tasks.rows[i].values.running_ns;
    }
    for (uint32_t i = 0; i < num_samples; i++) {
        struct _sampling_sample_row *s = &profile->samples[i];
        uint32_t coroutine = coroutine_of(profile, &s->key);
        if (coroutine != 0) {
            s->values.task_ns =
                take_part(&steps[coroutine - 1], s->values.wall_ns);
        }
    }
    for (uint32_t i = 0; i < num_coroutines; i++) {
        add_unsampled(profile, i, steps[i].ns);
    }
}

/* If no sample had to answer for it, all do, by their wall time. */
static uint64_t
delay_weight(const struct _sampling_values *values,
             const struct shared *thread)
{
    return thread->is_by_wall ? values->wall_ns : values->delay_ns;
}

static void
share_delays(struct _sampling_profile *profile, struct shared *threads)
{
    for (uint32_t i = 0; i < profile->num_samples; i++) {
        const struct _sampling_sample_row *s = &profile->samples[i];
        struct shared *thread = &threads[s->key.thread];
        if (s->key.state == _PySampling_LOOP_WAIT) {
            thread->ns += s->values.task_ns;
        }
        thread->weight += s->values.delay_ns;
    }
    for (uint32_t i = 0; i < profile->tables->num_threads; i++) {
        threads[i].is_by_wall = threads[i].weight == 0;
    }
    for (uint32_t i = 0; i < profile->num_samples; i++) {
        const struct _sampling_sample_row *s = &profile->samples[i];
        struct shared *thread = &threads[s->key.thread];
        if (thread->is_by_wall) {
            thread->weight += s->values.wall_ns;
        }
    }
    for (uint32_t i = 0; i < profile->num_samples; i++) {
        struct _sampling_sample_row *s = &profile->samples[i];
        struct shared *thread = &threads[s->key.thread];
        s->values.delay_ns =
            take_part(thread, delay_weight(&s->values, thread));
    }
}

int
_PySampling_ProfileShareTasks(struct _sampling_profile *profile)
{
    uint32_t num_coroutines = profile->tables->num_coroutines;
    if (num_coroutines == 0) {
        return 1;
    }
    struct _sampling_sample_row *samples = realloc(
        profile->samples,
        ((size_t)profile->num_samples + num_coroutines) * sizeof(*samples));
    if (samples == NULL) {
        return 0;
    }
    profile->samples = samples;
    if (!_PySampling_TaskTableReserve(&profile->tasks, num_coroutines - 1)) {
        return 0;
    }
    struct shared *shared = calloc(
        (size_t)num_coroutines + profile->tables->num_threads,
        sizeof(*shared));
    if (shared == NULL) {
        return 0;
    }
    share_steps(profile, shared);
    share_delays(profile, shared + num_coroutines);
    free(shared);
    return 1;
}
