/* Sampling profiler: rows of what was allocated.

   Owns the sums and the peak.  Must not know when a block is sampled, nor how
   its end is noticed (alloc/). */

#include "Python.h"

#include "allocations.h"
#include "store.h"

#include <math.h>                     // expm1()


/* Of a block that is sampled with the probability p, s / p is its size without
   bias, and s * s * (1 - p) / (p * p) the variance of that, also without. */
_PySampling_Amount
_PySampling_AmountOf(size_t size_bytes, uint64_t period_bytes)
{
    double size = (double)size_bytes;
    double p = -expm1(-size / (double)period_bytes);
    double q = exp(-size / (double)period_bytes);
    return (struct _sampling_amount){
        .objects = (uint64_t)llround(_PySampling_OBJECT_PARTS / p),
        .bytes = (uint64_t)llround(size / p),
        .variance = (uint64_t)llround(
            size / p * size / p * q / _PySampling_VARIANCE_UNIT),
    };
}

static void
add(struct _sampling_amount *to, const struct _sampling_amount *amount)
{
    to->objects += amount->objects;
    to->bytes += amount->bytes;
    to->variance += amount->variance;
}

static void
subtract(struct _sampling_amount *from, const struct _sampling_amount *amount)
{
    from->objects -= amount->objects;
    from->bytes -= amount->bytes;
    from->variance -= amount->variance;
}


/* Rows. */

static uint32_t
hash_alloc_key(const struct _sampling_alloc_key *key)
{
    return mix((uint64_t)key->labels << 32 | key->node,
               (uint64_t)key->begun << 40 ^ (uint64_t)key->ended << 20
               ^ (uint64_t)key->lifetime << 16 ^ key->thread);
}

/* Makes space for one more row; the index is twice as large as the rows.
   Returns 0 if there is none. */
static int
reserve(struct _sampling_alloc_table *table)
{
    if (table->num_allocs < table->cap_allocs) {
        return 1;
    }
    uint32_t cap = Py_MAX(2 * table->cap_allocs, _PySampling_FIRST_ROWS);
    if (cap > _PySampling_MAX_ALLOC_ROWS) {
        return 0;
    }
    struct _sampling_alloc_row *rows =
        realloc(table->allocs, cap * sizeof(*rows));
    if (rows == NULL) {
        return 0;
    }
    table->allocs = rows;
    uint32_t *slots = calloc(2 * cap, sizeof(*slots));
    if (slots == NULL) {
        return 0;
    }
    free(table->alloc_index.slots);
    table->alloc_index = (struct _sampling_index){slots, 2 * cap - 1, 0};
    for (uint32_t i = 0; i < table->num_allocs; i++) {
        index_put(&table->alloc_index, hash_alloc_key(&rows[i].key), i);
    }
    table->cap_allocs = cap;
    return 1;
}

static struct _sampling_alloc_row *
find(const struct _sampling_alloc_table *table,
     const struct _sampling_alloc_key *key)
{
    FOR_CANDIDATES(table->alloc_index, hash_alloc_key(key), row) {
        const struct _sampling_alloc_key *its = &table->allocs[row].key;
        if (its->node == key->node && its->thread == key->thread
            && its->labels == key->labels && its->begun == key->begun
            && its->ended == key->ended && its->lifetime == key->lifetime)
        {
            return &table->allocs[row];
        }
    }
    return NULL;
}

static struct _sampling_alloc_row *
find_or_add(struct _sampling_alloc_table *table,
            const struct _sampling_alloc_key *key)
{
    struct _sampling_alloc_row *found = find(table, key);
    if (found != NULL) {
        return found;
    }
    if (!reserve(table)) {
        return NULL;
    }
    uint32_t row = table->num_allocs++;
    table->allocs[row] = (struct _sampling_alloc_row){.key = *key};
    index_put(&table->alloc_index, hash_alloc_key(key), row);
    return &table->allocs[row];
}


static void
add_collections(struct _sampling_collections *to,
                const struct _sampling_collections *its)
{
    to->number += its->number;
    to->pause_ns += its->pause_ns;
    to->freed += its->freed;
    to->uncollectable += its->uncollectable;
}


/* The peak.  A new one costs no more than its number: a row writes down what
   it has before it changes, if a peak has come since it did. */

static void
keep_peak(const struct _sampling_alloc_table *table,
          struct _sampling_alloc_row *row)
{
    if (row->peak_number != table->peak_number) {
        row->peak_number = table->peak_number;
        row->peak = row->in_use;
    }
}

_PySampling_Amount
_PySampling_PeakOf(const struct _sampling_alloc_table *table,
                   const struct _sampling_alloc_row *row)
{
    return row->peak_number == table->peak_number ? row->peak : row->in_use;
}

/* Moments. */

static uint32_t
interval_of(const struct _sampling_alloc_table *table, uint64_t wall_ns)
{
    int64_t since_ns = (int64_t)wall_ns - table->base_wall_ns;
    return since_ns < 0 ? 0
        : (uint32_t)((uint64_t)since_ns / table->interval_ns);
}

static uint32_t
lifetime_of(uint64_t lifetime_ns)
{
    uint32_t decade = 0;
    for (uint64_t end_ns = _PySampling_SHORTEST_LIFETIME_NS;
         lifetime_ns >= end_ns && decade < _PySampling_LIFETIMES - 1;
         end_ns *= 10)
    {
        decade++;
    }
    return decade;
}

static void
merge_row(struct _sampling_alloc_table *table, struct _sampling_alloc_row row)
{
    int is_of_blocks = row.key.ended != _PySampling_COLLECTIONS;
    if (is_of_blocks) {
        keep_peak(table, &row);
    }
    struct _sampling_alloc_row *to = find(table, &row.key);
    if (to == NULL) {
        uint32_t number = table->num_allocs++;
        table->allocs[number] = row;
        index_put(&table->alloc_index, hash_alloc_key(&row.key), number);
        return;
    }
    if (!is_of_blocks) {
        add_collections(&to->collections, &row.collections);
        return;
    }
    add(&to->allocated, &row.allocated);
    add(&to->in_use, &row.in_use);
    add(&to->peak, &row.peak);
}

/* There are none any more; returns how many there were, which still lie
   there. */
static uint32_t
take_rows(struct _sampling_alloc_table *table)
{
    struct _sampling_index *index = &table->alloc_index;
    if (index->slots == NULL) {
        return 0;
    }
    memset(index->slots, 0, (index->mask + 1) * sizeof(uint32_t));
    index->used = 0;
    uint32_t num = table->num_allocs;
    table->num_allocs = 0;
    return num;
}

/* Of two intervals each. */
static void
merge_intervals(struct _sampling_alloc_table *table)
{
    uint32_t num = take_rows(table);
    for (uint32_t i = 0; i < num; i++) {
        struct _sampling_alloc_row row = table->allocs[i];
        row.key.begun /= 2;
        if (row.key.ended < _PySampling_COLLECTIONS) {
            row.key.ended /= 2;
        }
        merge_row(table, row);
    }
    table->first_interval /= 2;
    table->interval_ns *= 2;
}

/* The epoch is a multiple of an interval as long as they may become. */
void
_PySampling_AllocTableBegin(struct _sampling_alloc_table *table,
                            int64_t time_ns, uint64_t wall_ns)
{
    if (table->interval_ns == 0) {
        int64_t since_ns =
            time_ns % ((int64_t)_PySampling_FIRST_INTERVAL_NS << 24);
        table->base_time_ns = time_ns - since_ns;
        table->base_wall_ns = (int64_t)wall_ns - since_ns;
        table->interval_ns = _PySampling_FIRST_INTERVAL_NS;
        table->first_interval = interval_of(table, wall_ns);
    }
}

/* The interval of a moment, which is not before the others. */
static uint32_t
newest_interval(struct _sampling_alloc_table *table, uint64_t wall_ns)
{
    while (interval_of(table, wall_ns)
           >= table->first_interval + _PySampling_MAX_INTERVALS)
    {
        merge_intervals(table);
    }
    return interval_of(table, wall_ns);
}

int
_PySampling_AllocTableAdd(struct _sampling_alloc_table *table,
                          const struct _sampling_alloc_key *key,
                          const struct _sampling_amount *amount,
                          int is_large, uint64_t wall_ns)
{
    struct _sampling_alloc_key its = *key;
    its.begun = newest_interval(table, wall_ns);
    its.ended = _PySampling_IN_USE;
    struct _sampling_alloc_row *row = key->node != _PySampling_NO_NODE
        ? find_or_add(table, &its) : NULL;
    int is_kept = row != NULL;
    if (!is_kept) {
        row = &table->allocs[0];
    }
    keep_peak(table, row);
    add(&row->allocated, amount);
    add(&row->in_use, amount);
    if (is_large) {
        add(&table->large, amount);
    }
    table->in_use_bytes += amount->bytes;
    if (table->in_use_bytes > table->peak_bytes) {
        table->peak_bytes = table->in_use_bytes;
        table->peak_wall_ns = wall_ns;
        table->peak_number++;
    }
    return is_kept;
}

void
_PySampling_AllocTableRemove(struct _sampling_alloc_table *table,
                             const struct _sampling_alloc_key *key,
                             const struct _sampling_amount *amount,
                             int is_large, uint64_t begun_ns,
                             uint64_t ended_ns)
{
    struct _sampling_alloc_key its = *key;
    its.begun = interval_of(table, begun_ns);
    its.ended = _PySampling_IN_USE;
    its.lifetime = 0;
    if (find(table, &its) != NULL) {
        struct _sampling_alloc_key freed = its;
        freed.ended = interval_of(table, ended_ns);
        freed.lifetime = lifetime_of(ended_ns - begun_ns);
        struct _sampling_alloc_row *end = find_or_add(table, &freed);
        if (end != NULL) {
            add(&end->allocated, amount);
        }
    }
    // It may have moved.
    struct _sampling_alloc_row *row = find(table, &its);
    if (row == NULL) {
        row = &table->allocs[0];
    }
    keep_peak(table, row);
    subtract(&row->in_use, amount);
    if (is_large) {
        subtract(&table->large, amount);
    }
    table->in_use_bytes -= amount->bytes;
}

int
_PySampling_AllocTableAddCollection(struct _sampling_alloc_table *table,
                                    const struct _sampling_alloc_key *key,
                                    int generation,
                                    const struct _sampling_collections *its,
                                    uint64_t wall_ns)
{
    struct _sampling_alloc_key place = *key;
    place.begun = newest_interval(table, wall_ns);
    place.ended = _PySampling_COLLECTIONS;
    struct _sampling_alloc_row *row = key->node != _PySampling_NO_NODE
        ? find_or_add(table, &place) : NULL;
    if (row == NULL) {
        return 0;
    }
    add_collections(&row->collections, its);
    uint64_t *longest_ns = &table->longest_pause_ns[generation];
    *longest_ns = Py_MAX(*longest_ns, its->pause_ns);
    return 1;
}


/* Life. */

int
_PySampling_AllocTableInit(struct _sampling_alloc_table *table,
                           uint64_t period_bytes, uint32_t lost_node)
{
    if (find_or_add(table, &(struct _sampling_alloc_key){
            .node = lost_node, .ended = _PySampling_IN_USE}) == NULL)
    {
        return 0;
    }
    table->period_bytes = period_bytes;
    table->since = _PySampling_SINCE_BEGIN;
    return 1;
}

/* Row 0 is kept, for what has no space. */
static int
goes_on(const struct _sampling_alloc_table *table, uint32_t row)
{
    const struct _sampling_alloc_row *its = &table->allocs[row];
    return row == 0 || (its->key.ended != _PySampling_COLLECTIONS
                        && its->in_use.bytes != 0);
}

void
_PySampling_AllocTableWants(const struct _sampling_alloc_table *table,
                            struct _sampling_move *move)
{
    for (uint32_t i = 0; i < table->num_allocs; i++) {
        if (goes_on(table, i)) {
            _PySampling_MoveWants(move, table->allocs[i].key.node);
        }
    }
}

void
_PySampling_AllocKeyMove(struct _sampling_alloc_key *key,
                         struct _sampling_move *move)
{
    key->node = _PySampling_MovedNode(move, key->node);
    key->labels = _PySampling_MovedLabels(move, key->labels);
    key->thread = _PySampling_MovedThread(move, key->thread);
}

/* Two may be one there. */
void
_PySampling_AllocTableMove(struct _sampling_alloc_table *table,
                           struct _sampling_move *move)
{
    uint32_t num = take_rows(table);
    for (uint32_t i = 0; i < num; i++) {
        if (goes_on(table, i)) {
            struct _sampling_alloc_row row = table->allocs[i];
            if (i != 0) {
                _PySampling_AllocKeyMove(&row.key, move);
            }
            else {
                row.key.node = move->to->lost_node;
            }
            merge_row(table, row);
        }
    }
}

/* What is in use goes on: it is a level.  The peak is now. */
void
_PySampling_AllocTableClear(struct _sampling_alloc_table *table)
{
    table->peak_bytes = table->in_use_bytes;
    table->peak_number = 1;
    table->peak_wall_ns = 0;
    memset(table->longest_pause_ns, 0, sizeof(table->longest_pause_ns));
    uint32_t num = take_rows(table);
    for (uint32_t i = 0; i < num; i++) {
        if (goes_on(table, i)) {
            struct _sampling_alloc_row row = table->allocs[i];
            row.allocated = (struct _sampling_amount){0};
            row.peak_number = 0;
            merge_row(table, row);
        }
    }
}

int
_PySampling_AllocTableCopy(struct _sampling_alloc_table *copy,
                           const struct _sampling_alloc_table *from)
{
    *copy = *from;
    copy->alloc_index = (struct _sampling_index){0};
    copy->cap_allocs = 0;
    if (from->allocs == NULL) {
        return 1;
    }
    size_t bytes = from->num_allocs * sizeof(*from->allocs);
    copy->allocs = malloc(bytes);
    if (copy->allocs == NULL) {
        copy->num_allocs = 0;
        copy->period_bytes = 0;
        return 0;
    }
    memcpy(copy->allocs, from->allocs, bytes);
    return 1;
}

void
_PySampling_AllocTableFree(struct _sampling_alloc_table *table)
{
    free(table->alloc_index.slots);
    free(table->allocs);
    *table = (struct _sampling_alloc_table){0};
}
