/* Sampling profiler: the passage of records to whoever delivers them.

   Owns which rows of the tables a subscriber has got.  Must not know
   what becomes of a batch.

   Taking a batch swaps it for a spare, and copies the rows that are new, so
   that whoever delivers needs no lock meanwhile. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "sinks.h"

#define STATE (&_PyRuntime.sampling)


/* Taking. */

#define TAKEN_TABLES(X) \
    X(string) X(function) X(frame) X(node) X(label) X(thread)

/* Copies the rows that are new since `from`. */
static int
copy_new_rows(struct _sampling_tables *rows,
              const struct _sampling_tables *tables,
              const struct _sampling_cursor *from)
{
    int ok = 1;
#define X(NAME) \
    rows->num_##NAME##s = tables->num_##NAME##s - from->NAME##s; \
    rows->NAME##s = _PySampling_CopyRows( \
        tables->NAME##s + from->NAME##s, \
        rows->num_##NAME##s * sizeof(*rows->NAME##s)); \
    ok &= rows->NAME##s != NULL;
    TAKEN_TABLES(X)
#undef X
    uint32_t first_byte = 0;
    if (from->strings < tables->num_strings) {
        first_byte = tables->strings[from->strings].offset;
    }
    else {
        first_byte = tables->num_string_bytes;
    }
    rows->num_string_bytes = tables->num_string_bytes - first_byte;
    rows->string_bytes = _PySampling_CopyRows(
        tables->string_bytes + first_byte, rows->num_string_bytes);
    for (uint32_t i = 0; rows->strings != NULL && i < rows->num_strings; i++) {
        rows->strings[i].offset -= first_byte;
    }
    return ok && rows->string_bytes != NULL;
}

static int
copy_coroutine_functions(struct _sampling_taken *taken,
                         const struct _sampling_tables *tables)
{
    taken->num_coroutines = tables->num_coroutines;
    taken->coroutine_functions =
        malloc((tables->num_coroutines + 1) * sizeof(uint32_t));
    if (taken->coroutine_functions == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < tables->num_coroutines; i++) {
        taken->coroutine_functions[i] = tables->coroutines[i].function;
    }
    return 1;
}

static int
grow(uint32_t **items, uint32_t *cap, uint32_t num)
{
    if (num <= *cap) {
        return 1;
    }
    uint32_t new_cap = Py_MAX(64, Py_MAX(num, *cap * 2));
    uint32_t *block = realloc(*items, new_cap * sizeof(uint32_t));
    if (block == NULL) {
        return 0;
    }
    *items = block;
    *cap = new_cap;
    return 1;
}

/* Functions that went out without a module and have one now. */
static int
copy_changed_functions(struct _sampling_subscription *sub,
                       struct _sampling_taken *taken,
                       const struct _sampling_tables *tables)
{
    uint32_t num = sub->num_nameless;
    taken->changed_functions = malloc((num + 1) * sizeof(uint32_t));
    taken->changed_function_rows =
        malloc((num + 1) * sizeof(struct _sampling_function_row));
    if (taken->changed_functions == NULL
        || taken->changed_function_rows == NULL)
    {
        return 0;
    }
    for (uint32_t i = 0; i < num; i++) {
        uint32_t row = sub->nameless[i];
        if (tables->functions[row].module != _PySampling_NO_STRING) {
            uint32_t n = taken->num_changed_functions++;
            taken->changed_functions[n] = row;
            taken->changed_function_rows[n] = tables->functions[row];
        }
    }
    return 1;
}

/* Threads whose name is another one than went out. */
static int
copy_changed_threads(struct _sampling_subscription *sub,
                     struct _sampling_taken *taken,
                     const struct _sampling_tables *tables)
{
    uint32_t num = taken->from.threads, changed = 0;
    for (uint32_t i = 0; i < num; i++) {
        changed += tables->threads[i].name != sub->thread_names[i];
    }
    taken->changed_threads = malloc((changed + 1) * sizeof(uint32_t));
    taken->changed_thread_rows =
        malloc((changed + 1) * sizeof(struct _sampling_thread_row));
    if (taken->changed_threads == NULL || taken->changed_thread_rows == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < num; i++) {
        if (tables->threads[i].name != sub->thread_names[i]) {
            uint32_t n = taken->num_changed_threads++;
            taken->changed_threads[n] = i;
            taken->changed_thread_rows[n] = tables->threads[i];
        }
    }
    return 1;
}

/* The rows go out.  Space has been made before. */
static void
advance(struct _sampling_subscription *sub,
        const struct _sampling_tables *tables)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sub->num_nameless; i++) {
        uint32_t row = sub->nameless[i];
        if (tables->functions[row].module == _PySampling_NO_STRING) {
            sub->nameless[kept++] = row;
        }
    }
    for (uint32_t i = sub->cursor.functions; i < tables->num_functions; i++) {
        if (tables->functions[i].module == _PySampling_NO_STRING
            && tables->functions[i].kind == _PySampling_KIND_PYTHON)
        {
            sub->nameless[kept++] = i;
        }
    }
    sub->num_nameless = kept;
    for (uint32_t i = 0; i < tables->num_threads; i++) {
        sub->thread_names[i] = tables->threads[i].name;
    }
    sub->cursor.serial = tables->serial;
#define X(NAME) sub->cursor.NAME##s = tables->num_##NAME##s;
    TAKEN_TABLES(X)
#undef X
}

static void
free_taken_rows(struct _sampling_taken *taken)
{
#define X(NAME) \
    free(taken->rows.NAME##s); \
    taken->rows.NAME##s = NULL;
    TAKEN_TABLES(X)
#undef X
    free(taken->rows.string_bytes);
    free(taken->changed_functions);
    free(taken->changed_function_rows);
    free(taken->changed_threads);
    free(taken->changed_thread_rows);
    free(taken->coroutine_functions);
}

static int
take_rows(struct _sampling_subscription *sub, struct _sampling_taken *taken,
          struct _sampling_batch *batch)
{
    const struct _sampling_tables *tables = batch->tables;
    if (sub->cursor.serial != tables->serial) {
        sub->cursor = (struct _sampling_cursor){.serial = tables->serial};
        sub->num_nameless = 0;
    }
    taken->from = sub->cursor;
    uint32_t new_functions = tables->num_functions - sub->cursor.functions;
    if (!grow(&sub->nameless, &sub->cap_nameless,
              sub->num_nameless + new_functions)
        || !grow(&sub->thread_names, &sub->cap_thread_names,
                 tables->num_threads)
        || !copy_new_rows(&taken->rows, tables, &taken->from)
        || !copy_changed_functions(sub, taken, tables)
        || !copy_changed_threads(sub, taken, tables)
        || !copy_coroutine_functions(taken, tables)
        || !_PySampling_BatchComplete(sub, batch))
    {
        return 0;
    }
    advance(sub, tables);
    return 1;
}

/* The batch that is to be delivered; the spare takes its place. */
static struct _sampling_batch *
take_batch(struct _sampling_subscription *sub)
{
    struct _sampling_batch *batch = sub->first;
    if (batch->next != NULL) {
        sub->first = batch->next;       // of tables that were replaced
        batch->next = NULL;
        return batch;
    }
    sub->first = sub->last = sub->spare;
    sub->spare = NULL;
    return batch;
}

/* In all batches.  The one that is being filled wakes the helper by itself; an
   older one has done so, and adds to what makes a delivery due. */
uint32_t
_PySampling_SubscriptionWaiting(struct _sampling_subscription *sub)
{
    _PySampling_LockTables();
    uint32_t waiting = 0;
    for (struct _sampling_batch *b = sub->first; b != NULL; b = b->next) {
        waiting += b->num_events;
    }
    _PySampling_UnlockTables();
    return waiting;
}

/* In how many batches, the one being filled included. */
uint32_t
_PySampling_SubscriptionBatches(struct _sampling_subscription *sub)
{
    _PySampling_LockTables();
    uint32_t num = 0;
    for (struct _sampling_batch *b = sub->first; b != NULL; b = b->next) {
        num++;
    }
    _PySampling_UnlockTables();
    return num;
}

static int
take_locked(struct _sampling_subscription *sub, struct _sampling_taken *taken)
{
    struct _sampling_batch *batch = sub->first;
    if (batch->num_events == 0) {
        return 0;
    }
    if (sub->spare == NULL) {
        sub->spare = _PySampling_BatchNew(sub->max_events);
    }
    if (sub->spare == NULL || !take_rows(sub, taken, batch)) {
        return -1;
    }
    taken->batch = take_batch(sub);
    return 1;
}

int
_PySampling_BatchDrain(struct _sampling_subscription *sub,
                       struct _sampling_taken *taken)
{
    *taken = (struct _sampling_taken){0};
    _PySampling_LockTables();
    int result = take_locked(sub, taken);
    if (result == 1 && sub->lost.count != 0) {
        taken->lost = sub->lost;
        sub->lost = (struct _sampling_event){0};
    }
    _PySampling_UnlockTables();
    if (result != 1) {
        free_taken_rows(taken);
    }
    return result;
}

/* It is the oldest batch again; all rows go out anew. */
void
_PySampling_SubscriptionPutBack(struct _sampling_subscription *sub,
                                struct _sampling_taken *taken)
{
    struct _sampling_batch *batch = taken->batch;
    _PySampling_LockTables();
    if (taken->lost.count != 0) {
        sub->lost.time_ns = taken->lost.time_ns;
        sub->lost.count += taken->lost.count;
        sub->lost.cpu_ns += taken->lost.cpu_ns;
        sub->lost.wall_ns += taken->lost.wall_ns;
    }
    sub->cursor.serial = 0;
    batch->next = sub->first;
    sub->first = batch;
    if (batch->next->num_events == 0 && batch->next == sub->last
        && batch->tables == STATE->tables && sub->is_open)
    {
        // Nothing has come since: it is the one being filled again.
        struct _sampling_batch *empty = batch->next;
        _PySampling_TaskTableFree(&batch->tasks);
        batch->next = NULL;
        sub->last = batch;
        if (sub->spare == NULL) {
            sub->spare = empty;
            empty = NULL;
        }
        free(empty);
    }
    _PySampling_UnlockTables();
    free_taken_rows(taken);
}

void
_PySampling_SubscriptionGiveBack(struct _sampling_subscription *sub,
                                 struct _sampling_taken *taken)
{
    struct _sampling_batch *batch = taken->batch;
    free_taken_rows(taken);
    _PySampling_LockTables();
    _PySampling_BatchClear(batch);
    if (sub->spare == NULL) {
        sub->spare = batch;
        batch = NULL;
    }
    _PySampling_UnlockTables();
    free(batch);
}
