/* Sampling profiler: what comes in for a sink, until it is taken.

   Owns the rows, found by their keys, and what becomes of a sample that there
   is no space for.  Must not know whose they are, or when they are taken
   (session/, sinks/). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "profile.h"
#include "store.h"

/* Of what is no sample. */
#define MAX_EVENTS 4096
#define FIRST_ITEMS 64

/* The first span of time in which moments of one sample become one. */
#define FIRST_RESOLUTION_NS 1000000
#define MAX_RESOLUTION_NS ((uint64_t)1 << 62)


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

DEFINE_ADD_ROW(rows, sample)
DEFINE_INDEX_OF(rows, sample, 0)

static int
is_same(const struct _sampling_key *a, const struct _sampling_key *b)
{
    return a->node == b->node && a->thread == b->thread
        && a->labels == b->labels && a->state == b->state
        && a->holder_node == b->holder_node
        && a->holder_thread == b->holder_thread;
}

/* NO_ROW: there is none. */
static uint32_t
find_sample(const struct _sampling_rows *rows,
            const struct _sampling_key *key)
{
    FOR_CANDIDATES(rows->sample_index, hash_key(key), row) {
        if (is_same(&AT(rows, sample, row)->key, key)) {
            return row;
        }
    }
    return NO_ROW;
}

static uint32_t
find_or_add_sample(struct _sampling_rows *rows,
                   const struct _sampling_key *key)
{
    uint32_t row = find_sample(rows, key);
    if (row != NO_ROW) {
        return row;
    }
    // What is lost is at least its thread's.
    if ((rows->num_samples >= rows->max_samples
         && key->state != PySampling_STATE_LOST)
        || !RESERVE(rows, samples) || !reserve_sample_index(rows))
    {
        return NO_ROW;
    }
    row = add_sample_row(rows, (struct _sampling_sample_row){.key = *key});
    index_put(&rows->sample_index, hash_key(key), row);
    rows->num_held_samples += key->holder_node != 0;
    return row;
}

/* Stacks that wait times places they wait for: many threads could fill the
   profile with that. */
static void
bound_holders(struct _sampling_rows *rows, struct _sampling_key *key)
{
    if (key->holder_node == 0
        || rows->num_held_samples < _PySampling_MAX_HELD_SAMPLES
        || find_sample(rows, key) != NO_ROW)
    {
        return;
    }
    key->holder_thread = _PySampling_NO_THREAD;
    key->holder_node = _PySampling_TablesUnknownPlace(rows->tables);
    _PySampling_COUNT(lost_holders, 1);
}

static uint32_t
find_or_add_lost(struct _sampling_rows *rows, uint32_t thread)
{
    return find_or_add_sample(rows, &(struct _sampling_key){
        .node = rows->tables->lost_node,
        .thread = thread,
        .state = PySampling_STATE_LOST,
    });
}

static void
add_record(struct _sampling_sample_row *row, const _PySampling_Record *record)
{
#define X(NAME, KIND, UNIT) row->values.NAME += record->values.NAME;
    _PySampling_VALUES(X)
#undef X
    row->time_ns = Py_MAX(row->time_ns, record->time_ns);
}


/* Arrays that grow. */

/* Returns 0 if there is no space for one more. */
static int
grow(struct _sampling_rows *rows, void **items, uint32_t num, uint32_t *cap,
     uint32_t max, size_t item_bytes)
{
    if (num < *cap) {
        return 1;
    }
    uint32_t new_cap = Py_MIN(Py_MAX(2 * *cap, FIRST_ITEMS), max);
    void *block = num < max ? realloc(*items, new_cap * item_bytes) : NULL;
    if (block == NULL) {
        return 0;
    }
    rows->bytes += (new_cap - *cap) * item_bytes;
    *items = block;
    *cap = new_cap;
    return 1;
}


/* Moments. */

static int
is_near(const PySampling_Moment *a, const PySampling_Moment *b,
        uint64_t resolution_ns)
{
    return a->sample == b->sample
        && a->time_ns / resolution_ns == b->time_ns / resolution_ns;
}

/* Those of one sample in one span of time become one, at the last of their
   moments.  Returns 0 if there is no memory. */
static int
make_coarse(struct _sampling_rows *rows, uint64_t resolution_ns)
{
    uint32_t mask = 1;
    while (mask < 2 * rows->num_moments) {
        mask = mask * 2 + 1;
    }
    uint32_t *slots = calloc((size_t)mask + 1, sizeof(uint32_t));
    if (slots == NULL) {
        return 0;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rows->num_moments; i++) {
        PySampling_Moment m = rows->moments[i];
        uint32_t slot = mix(m.sample, m.time_ns / resolution_ns) & mask;
        while (slots[slot] != 0
               && !is_near(&rows->moments[slots[slot] - 1], &m,
                           resolution_ns))
        {
            slot = (slot + 1) & mask;
        }
        if (slots[slot] == 0) {
            rows->moments[kept++] = m;
            slots[slot] = kept;
            continue;
        }
        PySampling_Moment *same = &rows->moments[slots[slot] - 1];
        same->time_ns = Py_MAX(same->time_ns, m.time_ns);
        same->count += m.count;
        same->cpu_ns += m.cpu_ns;
        same->wall_ns += m.wall_ns;
    }
    free(slots);
    rows->num_moments = kept;
    rows->resolution_ns = resolution_ns;
    return 1;
}

/* There is space for more afterwards.  What is dropped has its sums in the
   samples, but no moment. */
static void
make_fewer_moments(struct _sampling_rows *rows)
{
    uint32_t max = rows->num_moments / 2;
    int ok = 1;
    while (ok && rows->num_moments > max
           && rows->resolution_ns < MAX_RESOLUTION_NS)
    {
        ok = make_coarse(rows, Py_MAX(2 * rows->resolution_ns,
                                      FIRST_RESOLUTION_NS));
    }
    if (rows->num_moments > max) {
        uint32_t dropped = rows->num_moments - max;
        rows->num_moments = max;
        memmove(rows->moments, rows->moments + dropped,
                max * sizeof(*rows->moments));
    }
}

static void
add_moment(struct _sampling_rows *rows, uint32_t sample,
           const struct _sampling_values *values, uint64_t time_ns)
{
    if (rows->num_moments >= rows->max_moments) {
        make_fewer_moments(rows);
    }
    if (grow(rows, (void **)&rows->moments, rows->num_moments,
             &rows->cap_moments, rows->max_moments, sizeof(*rows->moments)))
    {
        rows->moments[rows->num_moments++] = (PySampling_Moment){
            .time_ns = time_ns,
            .count = values->count,
            .cpu_ns = values->cpu_ns,
            .wall_ns = values->wall_ns,
            .sample = sample,
        };
    }
}

int
_PySampling_RowsAdd(struct _sampling_rows *rows,
                    const _PySampling_Record *record)
{
    struct _sampling_key key = record->key;
    uint32_t row = NO_ROW;
    if (key.node != _PySampling_NO_NODE) {
        bound_holders(rows, &key);
        row = find_or_add_sample(rows, &key);
    }
    int is_kept = row != NO_ROW;
    if (!is_kept) {
        row = find_or_add_lost(rows, key.thread);
    }
    if (row == NO_ROW) {
        row = 0;                // made beforehand
    }
    add_record(AT(rows, sample, row), record);
    rows->num_records++;
    if (rows->max_moments != 0 && _PySampling_IsOfThreads(&record->values)) {
        add_moment(rows, row, &record->values, record->time_ns);
    }
    return is_kept;
}

void
_PySampling_RowsAddEvent(struct _sampling_rows *rows,
                         const PySampling_Event *event)
{
    rows->num_records++;
    if (rows->num_events == MAX_EVENTS) {
        rows->num_events /= 2;
        memmove(rows->events, rows->events + rows->num_events,
                rows->num_events * sizeof(*rows->events));
    }
    if (grow(rows, (void **)&rows->events, rows->num_events,
             &rows->cap_events, MAX_EVENTS, sizeof(*rows->events)))
    {
        rows->events[rows->num_events++] = *event;
    }
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

static void
add_tasks(struct _sampling_task_row *row,
          const struct _sampling_task_values *values)
{
    struct _sampling_task_values *sums = &row->values;
    sums->running_ns += values->running_ns;
    sums->loop_wait_ns += values->loop_wait_ns;
    sums->awaiting_ns += values->awaiting_ns;
    sums->num_steps += values->num_steps;
    sums->longest_step_ns =
        Py_MAX(sums->longest_step_ns, values->longest_step_ns);
    sums->num_finished += values->num_finished;
    sums->num_cancelled += values->num_cancelled;
    sums->lives_ns += values->lives_ns;
}

int
_PySampling_RowsAddTasks(struct _sampling_rows *rows, uint32_t coroutine,
                         const struct _sampling_task_values *values)
{
    struct _sampling_task_table *table = &rows->tasks;
    if (!reserve_task_row(table, coroutine)) {
        return 0;
    }
    struct _sampling_task_row *row = &table->rows[coroutine];
    add_tasks(row, values);
    if (values->num_finished != 0) {
        row->values.longest_life_ns = Py_MAX(row->values.longest_life_ns,
                                             values->lives_ns);
        row->lives[life_bucket(values->lives_ns)]++;
    }
    return 1;
}

static int
merge_tasks(struct _sampling_task_table *table,
            const struct _sampling_task_table *more)
{
    if (more->num_rows != 0 && !reserve_task_row(table, more->num_rows - 1)) {
        return 0;
    }
    for (uint32_t i = 0; i < more->num_rows; i++) {
        struct _sampling_task_row *row = &table->rows[i];
        const struct _sampling_task_row *added = &more->rows[i];
        add_tasks(row, &added->values);
        row->values.longest_life_ns = Py_MAX(row->values.longest_life_ns,
                                             added->values.longest_life_ns);
        for (int b = 0; b < _PySampling_LIFE_BUCKETS; b++) {
            row->lives[b] += added->lives[b];
        }
    }
    return 1;
}


/* Life. */

struct _sampling_rows *
_PySampling_RowsNew(struct _sampling_tables *tables, uint32_t max_samples,
                    uint32_t max_moments)
{
    struct _sampling_rows *rows = calloc(1, sizeof(*rows));
    if (rows == NULL) {
        return NULL;
    }
    rows->references = 1;
    rows->bytes = sizeof(*rows);
    rows->limit_bytes = _PySampling_PROFILE_LIMIT_BYTES;
    rows->max_samples = max_samples;
    rows->max_moments = max_moments;
    rows->tables = tables;
    _PySampling_TablesKeep(tables);
    // Made beforehand so that losing needs no memory.
    if (find_or_add_lost(rows, 0) == NO_ROW) {
        _PySampling_RowsFree(rows);
        return NULL;
    }
    return rows;
}

void
_PySampling_RowsKeep(struct _sampling_rows *rows)
{
    (void)_Py_atomic_add_int(&rows->references, 1);
}

void
_PySampling_RowsFree(struct _sampling_rows *rows)
{
    while (rows != NULL && _Py_atomic_add_int(&rows->references, -1) == 1) {
        struct _sampling_rows *older = rows->older;
        _PySampling_TablesFree(rows->tables);
        _PySampling_FreeChunks((void **)rows->samples);
        free(rows->sample_index.slots);
        free(rows->tasks.rows);
        free(rows->moments);
        free(rows->events);
        free(rows);
        rows = older;
    }
}


/* Several that were taken one after the other. */

int
_PySampling_RowsMerge(struct _sampling_rows *to,
                      const struct _sampling_rows *from)
{
    uint32_t *numbers = malloc(from->num_samples * sizeof(uint32_t));
    int ok = numbers != NULL && merge_tasks(&to->tasks, &from->tasks);
    for (uint32_t i = 0; ok && i < from->num_samples; i++) {
        const struct _sampling_sample_row *s =
            AT(from, sample, i);
        uint32_t row = find_or_add_sample(to, &s->key);
        if (row == NO_ROW) {
            row = find_or_add_lost(to, s->key.thread);
            _PySampling_COUNT(lost_table_full, s->values.count);
            _PySampling_COUNT(lost_wall_ns, s->values.wall_ns);
            _PySampling_COUNT(lost_cpu_ns, s->values.cpu_ns);
        }
        numbers[i] = row != NO_ROW ? row : 0;
        add_record(AT(to, sample, numbers[i]), s);
    }
    for (uint32_t i = 0; ok && i < from->num_moments; i++) {
        const PySampling_Moment *m = &from->moments[i];
        add_moment(to, numbers[m->sample], &(struct _sampling_values){
            .count = m->count, .cpu_ns = m->cpu_ns, .wall_ns = m->wall_ns},
            m->time_ns);
    }
    for (uint32_t i = 0; ok && i < from->num_events; i++) {
        _PySampling_RowsAddEvent(to, &from->events[i]);
    }
    to->resolution_ns = Py_MAX(to->resolution_ns, from->resolution_ns);
    free(numbers);
    return ok;
}

struct _sampling_rows *
_PySampling_RowsMerged(const struct _sampling_rows *rows)
{
    struct _sampling_rows *merged = _PySampling_RowsNew(
        rows->tables, UINT32_MAX, rows->max_moments);
    if (merged == NULL) {
        return NULL;
    }
    for (; rows != NULL; rows = rows->older) {
        if (!_PySampling_RowsMerge(merged, rows)) {
            _PySampling_RowsFree(merged);
            return NULL;
        }
    }
    return merged;
}
