/* Sampling profiler: one subscriber's records.

   Owns the bounded buffer in which they wait, and what happens when it is
   full.  Must not know where records come from, or how they are taken
   (sinks/batch.c).

   Records wait in a batch.  A batch that is full is condensed: samples of the
   same stack, thread, labels, state and holder of the GIL become one.  If that
   does not help, its older half is dropped; a record of what was lost then
   says how much, so that totals add up all the same. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "sinks.h"

#define STATE (&_PyRuntime.sampling)


/* Life. */

struct _sampling_batch *
_PySampling_BatchNew(uint32_t max_events)
{
    struct _sampling_batch *batch = malloc(
        sizeof(*batch) + max_events * sizeof(struct _sampling_event));
    if (batch != NULL) {
        *batch = (struct _sampling_batch){0};
    }
    return batch;
}

int
_PySampling_BatchComplete(const struct _sampling_subscription *sub,
                          struct _sampling_batch *batch)
{
    if (!sub->gets_task_table || batch->tasks.rows != NULL) {
        return 1;
    }
    uint32_t num_rows = batch->tables->num_coroutines;
    uint32_t num_used = Py_MIN(sub->tasks.num_rows, num_rows);
    batch->tasks.rows = calloc(num_rows + 1, sizeof(*batch->tasks.rows));
    if (batch->tasks.rows == NULL) {
        return 0;
    }
    if (num_used != 0) {
        memcpy(batch->tasks.rows, sub->tasks.rows,
               num_used * sizeof(*batch->tasks.rows));
    }
    batch->tasks.num_rows = num_rows;
    return 1;
}

void
_PySampling_BatchClear(struct _sampling_batch *batch)
{
    _PySampling_TablesFree(batch->tables);
    batch->tables = NULL;
    _PySampling_TaskTableFree(&batch->tasks);
    batch->num_events = 0;
}

static int
copy_labels(struct _sampling_subscription *sub,
            const _PySampling_SubscribeOptions *options)
{
    if (options->num_labels == 0) {
        return 1;
    }
    sub->label_texts = calloc(options->num_labels * 2, sizeof(char *));
    if (sub->label_texts == NULL) {
        return 0;
    }
    sub->num_labels = options->num_labels;
    for (uint32_t i = 0; i < options->num_labels * 2; i++) {
        sub->label_texts[i] = strdup(options->labels[i]);
        if (sub->label_texts[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

struct _sampling_subscription *
_PySampling_SubscriptionNew(const _PySampling_SubscribeOptions *options)
{
    struct _sampling_subscription *sub = calloc(1, sizeof(*sub));
    if (sub == NULL) {
        return NULL;
    }
    sub->rate_hz = options->rate_hz;
    sub->interpreter_id = options->interpreter_id;
    sub->max_events = options->max_events;
    sub->batch_events = options->batch_events;
    sub->gets_tasks = options->tasks;
    // Who gets a part of the samples has no use for what all tasks did.
    sub->gets_task_table = options->tasks && options->thread_idents == NULL
        && options->num_labels == 0;
    sub->last = sub->first = _PySampling_BatchNew(sub->max_events);
    sub->spare = _PySampling_BatchNew(sub->max_events);
    if (options->thread_idents != NULL) {
        size_t bytes = options->num_thread_idents * sizeof(uint64_t);
        sub->thread_idents = malloc(bytes ? bytes : 1);
        if (sub->thread_idents != NULL) {
            memcpy(sub->thread_idents, options->thread_idents, bytes);
            sub->num_thread_idents = options->num_thread_idents;
        }
    }
    if (sub->first == NULL || sub->spare == NULL
        || (options->thread_idents != NULL && sub->thread_idents == NULL)
        || !copy_labels(sub, options))
    {
        _PySampling_SubscriptionFree(sub);
        return NULL;
    }
    return sub;
}

void
_PySampling_SubscriptionFree(struct _sampling_subscription *sub)
{
    while (sub->first != NULL) {
        struct _sampling_batch *batch = sub->first;
        sub->first = batch->next;
        _PySampling_BatchClear(batch);
        free(batch);
    }
    free(sub->spare);
    for (uint32_t i = 0; i < sub->num_labels * 2; i++) {
        free(sub->label_texts[i]);
    }
    free(sub->label_texts);
    free(sub->label_matches);
    free(sub->thread_idents);
    free(sub->nameless);
    free(sub->thread_names);
    _PySampling_TaskTableFree(&sub->tasks);
    free(sub);
}

static size_t
subscription_bytes(const struct _sampling_subscription *sub)
{
    size_t num_batches = sub->spare != NULL;
    for (struct _sampling_batch *b = sub->first; b != NULL; b = b->next) {
        num_batches++;
    }
    return sizeof(*sub)
        + num_batches * (sizeof(struct _sampling_batch)
                         + sub->max_events * sizeof(struct _sampling_event))
        + sub->num_label_matches
        + sub->tasks.num_rows * sizeof(*sub->tasks.rows)
        + (sub->cap_nameless + sub->cap_thread_names) * sizeof(uint32_t);
}

size_t
_PySampling_SubscriptionsBytes(void)
{
    size_t bytes = 0;
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        bytes += subscription_bytes(sub);
    }
    return bytes;
}


/* Which samples are wanted. */

static int
string_is(const struct _sampling_tables *tables, uint32_t row,
          const char *text)
{
    const struct _sampling_string_row *s = &tables->strings[row];
    return s->size == strlen(text)
        && memcmp(tables->string_bytes + s->offset, text, s->size) == 0;
}

static int
has_label(const struct _sampling_tables *tables, uint32_t labels,
          const char *key, const char *value)
{
    for (; labels != 0; labels = tables->labels[labels].parent) {
        const struct _sampling_label_row *label = &tables->labels[labels];
        if (label->key != _PySampling_NO_STRING
            && string_is(tables, label->key, key))
        {
            // It hides outer ones of the same name.
            return string_is(tables, label->value, value);
        }
    }
    return 0;
}

static int
has_all_labels(const struct _sampling_subscription *sub,
               const struct _sampling_tables *tables, uint32_t labels)
{
    for (uint32_t i = 0; i < sub->num_labels; i++) {
        if (!has_label(tables, labels, sub->label_texts[2 * i],
                       sub->label_texts[2 * i + 1]))
        {
            return 0;
        }
    }
    return 1;
}

/* Remembered by row, so that most samples need no look at the texts. */
static int
matches(struct _sampling_subscription *sub, uint32_t labels)
{
    const struct _sampling_tables *tables = STATE->tables;
    if (sub->num_labels == 0) {
        return 1;
    }
    if (sub->match_serial != tables->serial) {
        sub->match_serial = tables->serial;
        if (sub->num_label_matches != 0) {
            memset(sub->label_matches, 0, sub->num_label_matches);
        }
    }
    if (labels >= sub->num_label_matches) {
        uint32_t num = Py_MAX(tables->cap_labels, labels + 1);
        uint8_t *known = realloc(sub->label_matches, num);
        if (known == NULL) {
            return has_all_labels(sub, tables, labels);
        }
        memset(known + sub->num_label_matches, 0,
               num - sub->num_label_matches);
        sub->label_matches = known;
        sub->num_label_matches = num;
    }
    if (sub->label_matches[labels] == 0) {
        sub->label_matches[labels] =
            1 + (uint8_t)has_all_labels(sub, tables, labels);
    }
    return sub->label_matches[labels] == 2;
}


/* A full batch. */

static uint32_t
hash_event(const struct _sampling_event *event)
{
    uint64_t h = (uint64_t)event->node << 32 ^ event->labels
        ^ (uint64_t)event->thread << 16 ^ (uint64_t)event->state << 60
        ^ (uint64_t)event->holder_node << 24 ^ event->holder_thread;
    h *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32);
}

static int
is_same(const struct _sampling_event *a, const struct _sampling_event *b)
{
    return a->kind == b->kind && a->node == b->node && a->thread == b->thread
        && a->labels == b->labels && a->state == b->state
        && a->holder_thread == b->holder_thread
        && a->holder_node == b->holder_node;
}

static int
is_of_task(const struct _sampling_event *event)
{
    return event->kind == _PySampling_EVENT_TASK
        || event->kind == _PySampling_EVENT_DELAY;
}

/* Others cannot be added up. */
static int
is_weight(const struct _sampling_event *event)
{
    return event->kind == _PySampling_EVENT_SAMPLE || is_of_task(event);
}

/* Samples of the same key become one, at the place of the first. */
static void
condense(struct _sampling_subscription *sub, struct _sampling_batch *batch)
{
    uint32_t mask = 1;
    while (mask < 2 * batch->num_events) {
        mask = mask * 2 + 1;
    }
    uint32_t *slots = calloc(mask + 1, sizeof(uint32_t));
    if (slots == NULL) {
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch->num_events; i++) {
        struct _sampling_event *event = &batch->events[i];
        struct _sampling_event *same = NULL;
        if (is_weight(event)) {
            uint32_t slot = hash_event(event) & mask;
            while (slots[slot] != 0
                   && !is_same(&batch->events[slots[slot] - 1], event))
            {
                slot = (slot + 1) & mask;
            }
            if (slots[slot] != 0) {
                same = &batch->events[slots[slot] - 1];
            }
            else {
                slots[slot] = kept + 1;
            }
        }
        if (same != NULL) {
            same->count += event->count;
            same->cpu_ns += event->cpu_ns;
            same->wall_ns += event->wall_ns;
            same->flags |= _PySampling_FLAG_MERGED;
            sub->stats.merged++;
        }
        else {
            batch->events[kept++] = *event;
        }
    }
    batch->num_events = kept;
    free(slots);
}

static void
drop_older_half(struct _sampling_subscription *sub,
                struct _sampling_batch *batch)
{
    uint32_t half = (batch->num_events + 1) / 2;
    for (uint32_t i = 0; i < half; i++) {
        const struct _sampling_event *event = &batch->events[i];
        sub->lost.time_ns = event->time_ns;
        sub->lost.count++;
        if (event->kind == _PySampling_EVENT_SAMPLE) {
            sub->lost.cpu_ns += event->cpu_ns;
            sub->lost.wall_ns += event->wall_ns;
            sub->stats.lost_cpu_ns += event->cpu_ns;
            sub->stats.lost_wall_ns += event->wall_ns;
        }
    }
    sub->stats.lost += half;
    batch->num_events -= half;
    memmove(batch->events, batch->events + half,
            batch->num_events * sizeof(batch->events[0]));
}


/* What comes in. */

static void
wake(struct _sampling_subscription *sub)
{
    if (sub->wakeup != NULL) {
        _PySampling_Wake(sub->wakeup);
    }
}

static void
append(struct _sampling_subscription *sub,
       const struct _sampling_event *event)
{
    struct _sampling_batch *batch = sub->last;
    if (batch->num_events == sub->max_events) {
        condense(sub, batch);
        // What is nearly full after that would be condensed again at once.
        if (batch->num_events > sub->max_events / 4 * 3) {
            drop_older_half(sub, batch);
        }
    }
    if (batch->tables == NULL) {
        batch->tables = STATE->tables;
        _PySampling_TablesKeep(batch->tables);
    }
    batch->events[batch->num_events++] = *event;
    if (event->kind == _PySampling_EVENT_SAMPLE) {
        sub->stats.samples++;
        sub->stats.wall_ns += event->wall_ns;
        sub->stats.cpu_ns += event->cpu_ns;
    }
    if (batch->num_events >= sub->batch_events) {
        wake(sub);
    }
}

void
_PySampling_SubscriptionAdd(struct _sampling_subscription *sub,
                            const struct _sampling_event *event)
{
    if (is_of_task(event) && !sub->gets_tasks) {
        return;
    }
    if (!is_weight(event) || matches(sub, event->labels)) {
        append(sub, event);
    }
}

/* No memory: its records are lost, and counted. */
static void
drop(struct _sampling_subscription *sub, struct _sampling_batch *batch)
{
    while (batch->num_events != 0) {
        drop_older_half(sub, batch);
    }
    _PySampling_BatchClear(batch);
}

/* The last record; what waits can still be taken. */
void
_PySampling_SubscriptionEnd(struct _sampling_subscription *sub)
{
    if (sub->last->num_events != 0
        && !_PySampling_BatchComplete(sub, sub->last))
    {
        sub->gets_task_table = 0;   // none is better than a wrong one
    }
    wake(sub);
}

/* In the child of a fork: what waits is the parent's. */
void
_PySampling_SubscriptionForget(struct _sampling_subscription *sub)
{
    for (struct _sampling_batch *b = sub->first; b != NULL; b = b->next) {
        _PySampling_BatchClear(b);
    }
    sub->lost = (struct _sampling_event){0};
}

static int
complete(struct _sampling_subscription *sub)
{
    struct _sampling_batch *fresh = _PySampling_BatchNew(sub->max_events);
    if (fresh == NULL || !_PySampling_BatchComplete(sub, sub->last)) {
        free(fresh);
        return 0;
    }
    sub->last->next = fresh;
    sub->last = fresh;
    wake(sub);
    return 1;
}

void
_PySampling_SubscriptionsComplete(void)
{
    for (struct _sampling_subscription *sub = STATE->subscriptions;
         sub != NULL; sub = sub->next)
    {
        if (sub->last->num_events != 0 && !complete(sub)) {
            drop(sub, sub->last);
        }
        _PySampling_TaskTableFree(&sub->tasks);     // of these tables
    }
}
