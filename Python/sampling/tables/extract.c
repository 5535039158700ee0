/* Sampling profiler: a profile as it is handed over.

   Owns the choice of rows: those that the samples need, found by a hash of
   their numbers, so that a hand-over takes time and memory for these only,
   however large the tables are.  Parents come first.  Reads rows that nobody
   changes any more and tables whose rows do not move, so it needs no lock.
   Must not know who takes it. */

#include "Python.h"

#include "profile.h"
#include "store.h"

#define FIRST_ITEMS 32

/* Rows of one kind: PySampling_Rows that grow, found by their number. */
struct column {
    PySampling_Rows *out;
    uint32_t cap;
    struct _sampling_index index;
};

struct copying {
    const struct _sampling_rows *from;
    const struct _sampling_tables *tables;
    PySampling_Batch *to;
    struct column strings, functions, frames, nodes, labels, threads,
        task_classes;
    uint32_t *path;             // on the way to a root
    uint32_t cap_path;
    int has_failed;             // there was no memory
};


/* Columns. */

static int
reserve_index(struct column *column)
{
    struct _sampling_index *index = &column->index;
    uint32_t size = index->slots != NULL ? index->mask + 1 : 0;
    if ((column->out->num + 1) * 2ull <= size) {
        return 1;
    }
    size = size != 0 ? 4 * size : 2 * FIRST_ITEMS;
    uint32_t *slots = calloc(size, sizeof(uint32_t));
    if (slots == NULL) {
        return 0;
    }
    free(index->slots);
    *index = (struct _sampling_index){slots, size - 1, 0};
    for (uint32_t i = 0; i < column->out->num; i++) {
        index_put(index, mix(column->out->numbers[i], 0), i);
    }
    return 1;
}

static int
reserve_item(struct column *column)
{
    if (column->out->num < column->cap) {
        return 1;
    }
    uint32_t cap = Py_MAX(2 * column->cap, FIRST_ITEMS);
    void *rows = realloc((void *)column->out->rows,
                         cap * column->out->stride);
    if (rows == NULL) {
        return 0;
    }
    column->out->rows = rows;
    uint32_t *numbers = realloc((void *)column->out->numbers,
                                cap * sizeof(uint32_t));
    if (numbers == NULL) {
        return 0;
    }
    column->out->numbers = numbers;
    column->cap = cap;
    return 1;
}

/* NO_ROW: it is not there yet. */
static uint32_t
find(const struct column *column, uint32_t number)
{
    FOR_CANDIDATES(column->index, mix(number, 0), i) {
        if (column->out->numbers[i] == number) {
            return i;
        }
    }
    return NO_ROW;
}

/* Without memory it may be no row. */
static uint32_t
add(struct copying *c, struct column *column, uint32_t number,
    const void *row)
{
    if (!reserve_item(column) || !reserve_index(column)) {
        c->has_failed = 1;
        return 0;
    }
    PySampling_Rows *out = column->out;
    memcpy((char *)out->rows + out->num * out->stride, row, out->stride);
    ((uint32_t *)out->numbers)[out->num] = number;
    index_put(&column->index, mix(number, 0), out->num);
    return out->num++;
}


/* Rows, each after those that it refers to. */

static uint32_t
copy_string(struct copying *c, uint32_t number)
{
    uint32_t found = number == _PySampling_NO_STRING
        ? number : find(&c->strings, number);
    if (number == _PySampling_NO_STRING || found != NO_ROW) {
        return found;
    }
    const struct _sampling_string_row *s =
        AT(c->tables, string, number);
    return add(c, &c->strings, number,
               &(PySampling_String){s->bytes, s->size});
}

static uint32_t
copy_function(struct copying *c, uint32_t number)
{
    uint32_t found = find(&c->functions, number);
    if (found != NO_ROW) {
        return found;
    }
    const struct _sampling_function_row *f =
        AT(c->tables, function, number);
    uint32_t module = _PySampling_TablesModuleOf(c->tables, f);
    return add(c, &c->functions, number, &(PySampling_Function){
        copy_string(c, module), copy_string(c, f->qualname),
        copy_string(c, f->filename), f->first_line, f->kind});
}

static uint32_t
copy_frame(struct copying *c, uint32_t number)
{
    uint32_t found = find(&c->frames, number);
    if (found != NO_ROW) {
        return found;
    }
    const struct _sampling_frame_row *f =
        AT(c->tables, frame, number);
    return add(c, &c->frames, number, &(PySampling_Frame){
        copy_function(c, f->function), f->line, f->column, f->offset,
        f->opcode});
}

static int
put_on_path(struct copying *c, uint32_t depth, uint32_t number)
{
    if (depth == c->cap_path) {
        uint32_t cap = Py_MAX(2 * c->cap_path, FIRST_ITEMS);
        uint32_t *path = realloc(c->path, cap * sizeof(uint32_t));
        if (path == NULL) {
            c->has_failed = 1;
            return 0;
        }
        c->path = path;
        c->cap_path = cap;
    }
    c->path[depth] = number;
    return 1;
}

static uint32_t
copy_node(struct copying *c, uint32_t number)
{
    uint32_t depth = 0, parent;
    while ((parent = find(&c->nodes, number)) == NO_ROW) {
        if (!put_on_path(c, depth++, number)) {
            return 0;
        }
        number = AT(c->tables, node, number)->parent;
    }
    while (depth > 0) {
        number = c->path[--depth];
        uint32_t frame = AT(c->tables, node, number)->frame;
        parent = add(c, &c->nodes, number,
                     &(PySampling_Node){parent, copy_frame(c, frame)});
    }
    return parent;
}

static uint32_t
copy_thread(struct copying *c, uint32_t number)
{
    uint32_t found = find(&c->threads, number);
    if (found != NO_ROW) {
        return found;
    }
    const struct _sampling_thread_row *t =
        AT(c->tables, thread, number);
    uint32_t name = _Py_atomic_load_uint32_acquire(&t->name);
    return add(c, &c->threads, number, &(PySampling_Thread){
        t->ident, t->native_id, t->interpreter_id, copy_string(c, name)});
}

static uint32_t
copy_class(struct copying *c, uint32_t number)
{
    uint32_t found = find(&c->task_classes, number);
    if (found != NO_ROW) {
        return found;
    }
    uint32_t function = copy_function(
        c, AT(c->tables, coroutine, number)->function);
    if (number >= c->from->tasks.num_rows) {
        // Its tasks did nothing.
        return add(c, &c->task_classes, number,
                   &(PySampling_TaskClass){.function = function});
    }
    const struct _sampling_task_row *row = &c->from->tasks.rows[number];
    const struct _sampling_task_values *v = &row->values;
    return add(c, &c->task_classes, number, &(PySampling_TaskClass){
        .function = function,
        .num_lives = _PySampling_LIFE_BUCKETS,
        .lives = row->lives,
        .finished = v->num_finished,
        .cancelled = v->num_cancelled,
        .steps = v->num_steps,
        .running_ns = v->running_ns,
        .loop_wait_ns = v->loop_wait_ns,
        .awaiting_ns = v->awaiting_ns,
        .longest_step_ns = v->longest_step_ns,
        .longest_life_ns = v->longest_life_ns,
        .lives_ns = v->lives_ns,
    });
}

static uint32_t
add_label(struct copying *c, uint32_t parent, uint32_t number)
{
    const struct _sampling_label_row *l =
        AT(c->tables, label, number);
    return add(c, &c->labels, number, &(PySampling_Label){
        parent, copy_string(c, l->key), copy_string(c, l->value), l->task_id,
        l->coroutine != 0 ? copy_class(c, l->coroutine - 1)
                          : PySampling_NO_CLASS,
        l->is_work});
}

static uint32_t
copy_labels(struct copying *c, uint32_t number)
{
    uint32_t depth = 0, parent;
    while ((parent = find(&c->labels, number)) == NO_ROW) {
        if (!put_on_path(c, depth++, number)) {
            return 0;
        }
        number = AT(c->tables, label, number)->parent;
    }
    while (depth > 0) {
        parent = add_label(c, parent, c->path[--depth]);
    }
    return parent;
}


/* What refers to them. */

/* Returns the number of each row of samples, or NULL. */
static uint32_t *
copy_samples(struct copying *c)
{
    const struct _sampling_rows *from = c->from;
    PySampling_Sample *samples =
        malloc((from->num_samples + 1) * sizeof(*samples));
    uint32_t *numbers = malloc((from->num_samples + 1) * sizeof(uint32_t));
    c->to->samples.rows = samples;
    if (samples == NULL || numbers == NULL) {
        free(numbers);
        return NULL;
    }
    for (uint32_t i = 0; i < from->num_samples; i++) {
        const struct _sampling_sample_row *s = AT(from, sample, i);
        if (!_PySampling_Weighs(&s->values)) {
            continue;
        }
        numbers[i] = c->to->samples.num++;
        PySampling_Sample *to = &samples[numbers[i]];
        memcpy(to, s, sizeof(*to));
        to->node = copy_node(c, s->key.node);
        to->labels = copy_labels(c, s->key.labels);
        to->thread = copy_thread(c, s->key.thread);
        to->holder_node = copy_node(c, s->key.holder_node);
        if (s->key.holder_node != 0
            && s->key.holder_thread != _PySampling_NO_THREAD)
        {
            to->holder_thread = copy_thread(c, s->key.holder_thread);
        }
    }
    return numbers;
}

static int
copy_moments(struct copying *c, const uint32_t *numbers)
{
    const struct _sampling_rows *from = c->from;
    PySampling_Moment *moments =
        malloc((from->num_moments + 1) * sizeof(*moments));
    c->to->moments.rows = moments;
    c->to->moments.num = from->num_moments;
    for (uint32_t i = 0; moments != NULL && i < from->num_moments; i++) {
        moments[i] = from->moments[i];
        moments[i].sample = numbers[moments[i].sample];
    }
    return moments != NULL;
}

static int
copy_events(struct copying *c)
{
    const struct _sampling_rows *from = c->from;
    PySampling_Event *events =
        malloc((from->num_events + 1) * sizeof(*events));
    c->to->events.rows = events;
    c->to->events.num = from->num_events;
    for (uint32_t i = 0; events != NULL && i < from->num_events; i++) {
        events[i] = from->events[i];
        if (events[i].thread != PySampling_NO_THREAD) {
            events[i].thread = copy_thread(c, events[i].thread);
        }
    }
    return events != NULL;
}

static void
copy_allocations(struct copying *c, struct _sampling_alloc_table *table)
{
    for (uint32_t i = 0; i < table->num_allocs; i++) {
        struct _sampling_alloc_key *key = &table->allocs[i].key;
        key->node = copy_node(c, key->node);
        key->labels = copy_labels(c, key->labels);
        key->thread = copy_thread(c, key->thread);
    }
}

static int
did_anything(const struct _sampling_task_row *row)
{
    const struct _sampling_task_values *v = &row->values;
    return v->num_steps != 0 || v->running_ns != 0 || v->loop_wait_ns != 0
        || v->awaiting_ns != 0 || v->num_finished != 0;
}

static int
copy_rows(struct copying *c, struct _sampling_alloc_table *allocations)
{
    add(c, &c->nodes, 0, &(PySampling_Node){0, 0});
    add(c, &c->labels, 0, &(PySampling_Label){
        0, _PySampling_NO_STRING, _PySampling_NO_STRING, 0,
        PySampling_NO_CLASS, 0});
    uint32_t *numbers = copy_samples(c);
    int ok = numbers != NULL && copy_moments(c, numbers) && copy_events(c);
    free(numbers);
    copy_allocations(c, allocations);
    for (uint32_t i = 0; i < c->from->tasks.num_rows; i++) {
        if (did_anything(&c->from->tasks.rows[i])) {
            (void)copy_class(c, i);
        }
    }
    return ok && !c->has_failed;
}

#define COLUMNS(X) \
    X(strings, PySampling_String) \
    X(functions, PySampling_Function) \
    X(frames, PySampling_Frame) \
    X(nodes, PySampling_Node) \
    X(labels, PySampling_Label) \
    X(threads, PySampling_Thread) \
    X(task_classes, PySampling_TaskClass)

struct _sampling_profile *
_PySampling_ProfileExtract(struct _sampling_rows *from,
                           struct _sampling_alloc_table *allocations)
{
    Py_BUILD_ASSERT(sizeof(PySampling_Sample)
                    == sizeof(struct _sampling_sample_row)
                    && offsetof(PySampling_Sample, count)
                       == offsetof(struct _sampling_sample_row, values));
    assert(from->older == NULL);
    struct _sampling_profile *profile = calloc(1, sizeof(*profile));
    if (profile == NULL) {
        return NULL;
    }
    PySampling_Batch *to = &profile->batch;
    profile->rows = from;
    _PySampling_RowsKeep(from);
    to->size = sizeof(*to);
    to->serial = from->tables->serial;
    to->samples.stride = sizeof(PySampling_Sample);
    to->events.stride = sizeof(PySampling_Event);
    to->moments.stride = sizeof(PySampling_Moment);
    struct copying c = {.from = from, .tables = from->tables, .to = to};
#define X(NAME, TYPE) \
    to->NAME.stride = sizeof(TYPE); \
    c.NAME.out = &to->NAME;
    COLUMNS(X)
#undef X
    if (allocations != NULL) {
        profile->allocations = *allocations;
        *allocations = (struct _sampling_alloc_table){0};
    }
    int ok = copy_rows(&c, &profile->allocations);
#define X(NAME, TYPE) free(c.NAME.index.slots);
    COLUMNS(X)
#undef X
    free(c.path);
    if (!ok) {
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
    PySampling_Batch *batch = &profile->batch;
#define X(NAME, TYPE) \
    free((void *)batch->NAME.rows); \
    free((void *)batch->NAME.numbers);
    COLUMNS(X)
    X(samples, PySampling_Sample)
    X(events, PySampling_Event)
    X(moments, PySampling_Moment)
#undef X
    _PySampling_AllocTableFree(&profile->allocations);
    _PySampling_RowsFree(profile->rows);
    free(profile);
}
