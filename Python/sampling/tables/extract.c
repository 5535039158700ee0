/* Sampling profiler: a profile as it is handed over.

   Owns the choice of rows: those that its samples need, so that a short block
   of a long session has a small profile.  Takes time and memory for these
   only.  Rows keep their order, in which parents come first.  Must not know
   who takes it. */

#include "Python.h"

#include "profile.h"
#include "store.h"

#define COPIED(X) X(function) X(frame) X(node) X(label) X(thread) X(coroutine)

struct copying {
    const struct _sampling_tables *from;
    struct _sampling_tables *to;
    // Of the rows of `from`: their number in `to`, plus 1; 0: none.
#define X(NAME) uint32_t *NAME##s;
    COPIED(X)
#undef X
    int has_failed;             // there was no memory
};

/* Adds a row, which ROW of the tables copied from becomes. */
#define ADD_ROW(C, NAME, ROW, ...) \
    do { \
        struct _sampling_##NAME##_row row_ = __VA_ARGS__; \
        if (RESERVE((C)->to, NAME##s)) { \
            (C)->to->NAME##s[(C)->to->num_##NAME##s++] = row_; \
        } \
        else { \
            (C)->has_failed = 1; \
        } \
        (C)->NAME##s[ROW] = (C)->to->num_##NAME##s; \
    } while (0)

/* Rows that are copied when something refers to them.  Returns the number;
   0, without memory, may be no row. */
#define DEFINE_COPY(NAME) \
    static uint32_t \
    copy_##NAME(struct copying *c, uint32_t row) \
    { \
        if (c->NAME##s[row] == 0) { \
            ADD_ROW(c, NAME, row, changed_##NAME(c, c->from->NAME##s[row])); \
        } \
        return c->has_failed ? 0 : c->NAME##s[row] - 1; \
    }

static uint32_t
copy_string(struct copying *c, uint32_t row)
{
    if (row == _PySampling_NO_STRING) {
        return row;
    }
    const struct _sampling_string_row *s = &c->from->strings[row];
    uint32_t copy = _PySampling_InternBytes(
        c->to, c->from->string_bytes + s->offset, s->size);
    c->has_failed |= copy == NO_ROW;
    return copy;
}

static struct _sampling_function_row
changed_function(struct copying *c, struct _sampling_function_row f)
{
    f.module = copy_string(c, _PySampling_TablesModuleOf(c->from, &f));
    f.qualname = copy_string(c, f.qualname);
    f.filename = copy_string(c, f.filename);
    return f;
}

DEFINE_COPY(function)

static struct _sampling_frame_row
changed_frame(struct copying *c, struct _sampling_frame_row f)
{
    f.function = copy_function(c, f.function);
    return f;
}

DEFINE_COPY(frame)

static struct _sampling_thread_row
changed_thread(struct copying *c, struct _sampling_thread_row t)
{
    t.name = copy_string(c, t.name);
    return t;
}

DEFINE_COPY(thread)

static struct _sampling_coroutine_row
changed_coroutine(struct copying *c, struct _sampling_coroutine_row r)
{
    return (struct _sampling_coroutine_row){
        .function = copy_function(c, r.function)};
}

DEFINE_COPY(coroutine)


static int
did_anything(const struct _sampling_task_row *row)
{
    const struct _sampling_task_values *v = &row->values;
    return v->num_steps != 0 || v->running_ns != 0 || v->loop_wait_ns != 0
        || v->awaiting_ns != 0 || v->num_finished != 0;
}

/* Which nodes and labels the samples have, up to their roots; then these, in
   their order. */

#define USE_PATH(C, NAME, ROW) \
    for (uint32_t r_ = (ROW); (C)->NAME##s[r_] == 0; \
         r_ = (C)->from->NAME##s[r_].parent) \
    { \
        (C)->NAME##s[r_] = 1; \
    }

static void
use_paths(struct copying *c, const struct _sampling_profile *profile)
{
    c->nodes[0] = c->labels[0] = 1;
    for (uint32_t i = 0; i < profile->num_samples; i++) {
        const struct _sampling_sample_row *s = &profile->samples[i];
        if (_PySampling_Weighs(&s->values)) {
            USE_PATH(c, node, s->key.node)
            USE_PATH(c, node, s->key.holder_node)
            USE_PATH(c, label, s->key.labels)
        }
    }
}

static void
copy_nodes(struct copying *c)
{
    ADD_ROW(c, node, 0, c->from->nodes[0]);
    for (uint32_t row = 1; row < c->from->num_nodes; row++) {
        if (c->nodes[row] != 0) {
            struct _sampling_node_row n = c->from->nodes[row];
            ADD_ROW(c, node, row, {
                c->nodes[n.parent] - 1, copy_frame(c, n.frame)});
        }
    }
}

static void
copy_labels(struct copying *c)
{
    ADD_ROW(c, label, 0, c->from->labels[0]);
    for (uint32_t row = 1; row < c->from->num_labels; row++) {
        if (c->labels[row] != 0) {
            struct _sampling_label_row l = c->from->labels[row];
            l.parent = c->labels[l.parent] - 1;
            l.key = copy_string(c, l.key);
            l.value = copy_string(c, l.value);
            l.coroutine = l.coroutine != 0
                ? copy_coroutine(c, l.coroutine - 1) + 1 : 0;
            ADD_ROW(c, label, row, l);
        }
    }
}


/* What refers to them. */

static void
copy_samples(struct copying *c, const struct _sampling_profile *from,
             struct _sampling_profile *to)
{
    for (uint32_t i = 0; i < from->num_samples; i++) {
        if (!_PySampling_Weighs(&from->samples[i].values)) {
            continue;
        }
        struct _sampling_sample_row *row = &to->samples[to->num_samples++];
        *row = from->samples[i];
        row->key.node = c->nodes[row->key.node] - 1;
        row->key.labels = c->labels[row->key.labels] - 1;
        row->key.thread = copy_thread(c, row->key.thread);
        if (row->key.holder_node != 0
            && row->key.holder_thread != _PySampling_NO_THREAD)
        {
            row->key.holder_thread = copy_thread(c, row->key.holder_thread);
        }
        row->key.holder_node = c->nodes[row->key.holder_node] - 1;
    }
}

static void
copy_tasks(struct copying *c, const struct _sampling_profile *from,
           struct _sampling_profile *to)
{
    for (uint32_t i = 0; i < from->tasks.num_rows; i++) {
        if (!did_anything(&from->tasks.rows[i])) {
            continue;
        }
        uint32_t copy = copy_coroutine(c, i);
        if (c->has_failed) {
            return;
        }
        to->tasks.rows[copy] = from->tasks.rows[i];
    }
}

static int
copy_rows(struct copying *c, const struct _sampling_profile *from,
          struct _sampling_profile *to)
{
    to->num_samples = 0;
    to->samples = malloc(from->num_samples * sizeof(*to->samples));
    to->tasks.num_rows = c->from->num_coroutines;
    to->tasks.rows =
        calloc(c->from->num_coroutines + 1, sizeof(*to->tasks.rows));
    if (to->samples == NULL || to->tasks.rows == NULL) {
        return 0;
    }
    use_paths(c, from);
    copy_nodes(c);
    copy_labels(c);
    copy_samples(c, from, to);
    copy_tasks(c, from, to);
    return !c->has_failed;
}

static struct _sampling_tables *
new_tables(void)
{
    struct _sampling_tables *tables = calloc(1, sizeof(*tables));
    if (tables != NULL) {
        tables->references = 1;
        tables->limit_bytes = SIZE_MAX;
    }
    return tables;
}

struct _sampling_profile *
_PySampling_ProfileExtract(const struct _sampling_profile *from)
{
    struct copying c = {.from = from->tables, .to = new_tables()};
    struct _sampling_profile *to = malloc(sizeof(*to));
    size_t num_rows = 0;
#define X(NAME) num_rows += c.from->num_##NAME##s;
    COPIED(X)
#undef X
    uint32_t *numbers = calloc(num_rows, sizeof(*numbers));
    if (c.to == NULL || to == NULL || numbers == NULL) {
        free(numbers);
        free(to);
        _PySampling_TablesFree(c.to);
        return NULL;
    }
    uint32_t *next = numbers;
#define X(NAME) \
    c.NAME##s = next; \
    next += c.from->num_##NAME##s;
    COPIED(X)
#undef X
    *to = *from;
    to->is_open = 0;
    to->next = to->prev = NULL;
    to->sample_index = (struct _sampling_index){0};
    to->tables = c.to;
    int ok = copy_rows(&c, from, to);
    free(numbers);
    if (!ok) {
        _PySampling_ProfileFree(to);
        to = NULL;
    }
    return to;
}
