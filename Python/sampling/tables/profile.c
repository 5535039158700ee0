/* Sampling profiler: a profile while it gets samples.

   Owns its rows, found by their keys, and what becomes of a sample that there
   is no space for.  Must not know who wants the profile, or from when to when
   (session/). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "profile.h"
#include "store.h"


/* Samples. */

static uint32_t
hash_key(const struct _sampling_key *key)
{
    return mix((uint64_t)key->labels << 32 | key->node,
               ((uint64_t)key->thread << 4 | (uint32_t)key->state)
               ^ mix(key->holder_node, key->holder_thread));
}

static uint32_t
hash_sample_row(const struct _sampling_sample_row *row)
{
    return hash_key(&row->key);
}

DEFINE_INDEX_OF(profile, sample, 0)

static int
is_same(const struct _sampling_key *a, const struct _sampling_key *b)
{
    return a->node == b->node && a->thread == b->thread
        && a->labels == b->labels && a->state == b->state
        && a->holder_node == b->holder_node
        && a->holder_thread == b->holder_thread;
}

static struct _sampling_sample_row *
find_sample(const struct _sampling_profile *profile,
            const struct _sampling_key *key)
{
    FOR_CANDIDATES(profile->sample_index, hash_key(key), row) {
        if (is_same(&profile->samples[row].key, key)) {
            return &profile->samples[row];
        }
    }
    return NULL;
}

static struct _sampling_sample_row *
find_or_add_sample(struct _sampling_profile *profile,
                   const struct _sampling_key *key)
{
    struct _sampling_sample_row *found = find_sample(profile, key);
    if (found != NULL) {
        return found;
    }
    if (!RESERVE(profile, samples) || !reserve_sample_index(profile)) {
        return NULL;
    }
    uint32_t row = profile->num_samples++;
    profile->samples[row] = (struct _sampling_sample_row){.key = *key};
    index_put(&profile->sample_index, hash_key(key), row);
    profile->num_held_samples += key->holder_node != 0;
    return &profile->samples[row];
}

/* Stacks that wait times places they wait for: many threads could fill the
   profile with that. */
static void
bound_holders(struct _sampling_profile *profile, struct _sampling_key *key)
{
    if (key->holder_node == 0
        || profile->num_held_samples < _PySampling_MAX_HELD_SAMPLES
        || find_sample(profile, key) != NULL)
    {
        return;
    }
    key->holder_thread = _PySampling_NO_THREAD;
    key->holder_node = _PySampling_TablesUnknownPlace(profile->tables);
    _PySampling_COUNT(lost_holders, 1);
}

static struct _sampling_sample_row *
find_or_add_lost(struct _sampling_profile *profile, uint32_t thread)
{
    return find_or_add_sample(profile, &(struct _sampling_key){
        .node = profile->tables->lost_node,
        .thread = thread,
        .state = _PySampling_LOST,
    });
}

int
_PySampling_ProfileAdd(struct _sampling_profile *profile,
                       struct _sampling_key key,
                       const struct _sampling_values *values)
{
    struct _sampling_sample_row *row = NULL;
    if (key.node != _PySampling_NO_NODE) {
        bound_holders(profile, &key);
        row = find_or_add_sample(profile, &key);
    }
    int is_kept = row != NULL;
    if (!is_kept) {
        row = find_or_add_lost(profile, key.thread);
    }
    if (row == NULL) {
        row = &profile->samples[0];     // made beforehand
    }
#define X(NAME, KIND, UNIT) row->values.NAME += values->NAME;
    _PySampling_VALUES(X)
#undef X
    return is_kept;
}


/* Tasks. */

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

/* Makes sure that there is a row. */
static int
reserve_task_row(struct _sampling_task_table *table, uint32_t coroutine)
{
    if (coroutine < table->num_rows) {
        return 1;
    }
    uint32_t num_rows = Py_MAX(coroutine + 1, 2 * table->num_rows);
    struct _sampling_task_row *rows =
        realloc(table->rows, num_rows * sizeof(*rows));
    if (rows == NULL) {
        return 0;
    }
    memset(rows + table->num_rows, 0,
           (num_rows - table->num_rows) * sizeof(*rows));
    table->rows = rows;
    table->num_rows = num_rows;
    return 1;
}

int
_PySampling_TaskTableAdd(struct _sampling_task_table *table,
                         uint32_t coroutine,
                         const struct _sampling_task_values *values)
{
    if (!reserve_task_row(table, coroutine)) {
        return 0;
    }
    struct _sampling_task_row *row = &table->rows[coroutine];
    struct _sampling_task_values *sums = &row->values;
    sums->running_ns += values->running_ns;
    sums->loop_wait_ns += values->loop_wait_ns;
    sums->awaiting_ns += values->awaiting_ns;
    sums->num_steps += values->num_steps;
    sums->longest_step_ns =
        Py_MAX(sums->longest_step_ns, values->longest_step_ns);
    if (values->num_finished != 0) {
        sums->num_finished += values->num_finished;
        sums->num_cancelled += values->num_cancelled;
        sums->lives_ns += values->lives_ns;
        sums->longest_life_ns = Py_MAX(sums->longest_life_ns,
                                       values->lives_ns);
        row->lives[life_bucket(values->lives_ns)]++;
    }
    return 1;
}

void
_PySampling_TaskTableFree(struct _sampling_task_table *table)
{
    free(table->rows);
    *table = (struct _sampling_task_table){0};
}


/* Life. */

struct _sampling_profile *
_PySampling_ProfileNew(struct _sampling_tables *tables,
                       const _PySampling_Options *options)
{
    struct _sampling_profile *profile = calloc(1, sizeof(*profile));
    if (profile == NULL) {
        return NULL;
    }
    profile->options = *options;
    profile->limit_bytes = _PySampling_PROFILE_LIMIT_BYTES;
    profile->tables = tables;
    _PySampling_TablesKeep(tables);
    // Made beforehand so that losing needs no memory.
    if (find_or_add_lost(profile, 0) == NULL) {
        _PySampling_ProfileFree(profile);
        return NULL;
    }
    return profile;
}

void
_PySampling_ProfileFree(struct _sampling_profile *profile)
{
    if (profile == NULL) {
        return;
    }
    _PySampling_TablesFree(profile->tables);
    _PySampling_TaskTableFree(&profile->tasks);
    free(profile->sample_index.slots);
    free(profile->samples);
    free(profile);
}

struct _sampling_profile *
_PySampling_ProfileCopy(const struct _sampling_profile *profile)
{
    struct _sampling_profile *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    *copy = *profile;
    copy->is_open = 0;
    copy->sample_index = (struct _sampling_index){0};
    copy->tables = _PySampling_TablesCopy(profile->tables);
    copy->samples = _PySampling_CopyRows(
        profile->samples, profile->num_samples * sizeof(*profile->samples));
    copy->tasks.rows = _PySampling_CopyRows(
        profile->tasks.rows,
        profile->tasks.num_rows * sizeof(*profile->tasks.rows));
    if (copy->tables == NULL || copy->samples == NULL
        || copy->tasks.rows == NULL)
    {
        _PySampling_ProfileFree(copy);
        return NULL;
    }
    return copy;
}

size_t
_PySampling_ProfileBytes(const struct _sampling_profile *profile)
{
    return sizeof(*profile) + profile->bytes
        + profile->tasks.num_rows * sizeof(*profile->tasks.rows);
}
