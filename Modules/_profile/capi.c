/* The C API of subscriptions: what Include/cpython/sampling.h promises.

   Owns the passage of batches into its structs.  It makes no Python object
   but the capsule. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"
#include "cpython/sampling.h"

#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"

/* A batch, and what it was taken from. */
typedef struct {
    PySampling_Batch batch;
    PySampling_Subscription *sub;
    struct _sampling_taken taken;
} TakenBatch;


/* Subscribing. */

static int
is_in_range(const char *name, long long value, long long min, long long max)
{
    return _PyProfile_CheckRange(name, value, min, max) == 0;
}

static PySampling_Subscription *
capi_subscribe(const PySampling_Options *options)
{
    if (options->size != sizeof(*options)) {
        PyErr_SetString(PyExc_ValueError,
                        "PySampling_Options has another size: use "
                        "PySampling_OPTIONS_INIT");
        return NULL;
    }
    _PySampling_Options engine = {
        .mode = options->cpu_mode ? _PySampling_CPU : _PySampling_WALL,
        .rate_hz = options->rate_hz,
        .depth_frames = options->depth_frames,
        .names = options->names,
    };
    _PySampling_DefaultOptions(&engine);
    if (!is_in_range("rate_hz", engine.rate_hz, 1, _PySampling_MAX_RATE_HZ)
        || !is_in_range("depth_frames", engine.depth_frames, 1,
                        _PySampling_MAX_DEPTH_FRAMES)
        || !is_in_range("names", engine.names, 0, _PySampling_ALL_NAMES)
        || !is_in_range("max_records", options->max_records,
                        _PySampling_MIN_EVENTS, _PySampling_MAX_EVENTS))
    {
        return NULL;
    }
    PySampling_Subscription *sub =
        _PySampling_SubscriptionNew(&(_PySampling_SubscribeOptions){
            .mode = engine.mode,
            .rate_hz = engine.rate_hz,
            .max_events = options->max_records,
            .batch_events = options->max_records,
            .interpreter_id = options->interpreter_id,
        });
    if (sub == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    _PySampling_Status status =
        _PySampling_Subscribe(_PyThreadState_GET(), sub, &engine);
    if (status != _PySampling_OK) {
        _PySampling_SubscriptionFree(sub);
        (void)_PyProfile_RaiseStatus(status);
        return NULL;
    }
    return sub;
}

static int
result_of(_PySampling_Status status)
{
    if (status == _PySampling_OK) {
        return 0;
    }
    (void)_PyProfile_RaiseStatus(status);
    return -1;
}

static int
capi_flush(PySampling_Subscription *sub)
{
    PyThreadState *tstate = _PyThreadState_GET();
    _PySampling_Status status = _PySampling_FlushSubscription(tstate, sub);
    return result_of(status != _PySampling_OK
                     ? status : _PySampling_RenewIfFull(tstate));
}

static int
capi_set_rate(PySampling_Subscription *sub, int rate_hz)
{
    if (!is_in_range("rate_hz", rate_hz, 1, _PySampling_MAX_RATE_HZ)) {
        return -1;
    }
    return result_of(_PySampling_SetSubscriptionRate(_PyThreadState_GET(),
                                                     sub, rate_hz));
}

static int
capi_close(PySampling_Subscription *sub)
{
    return result_of(_PySampling_Unsubscribe(_PyThreadState_GET(), sub));
}


/* Draining. */

static PySampling_Function
public_function(const struct _sampling_function_row *f)
{
    return (PySampling_Function){f->module, f->qualname, f->filename,
                                 f->first_line, f->kind};
}

static PySampling_Thread
public_thread(const struct _sampling_thread_row *t)
{
    return (PySampling_Thread){t->ident, t->native_id, t->interpreter_id,
                               t->name};
}

/* Room for `num` items, and one more so that it is never NULL for none. */
static void *
items(size_t num, size_t item_bytes)
{
    return malloc((num + 1) * item_bytes);
}

#define NEW_ITEMS(TYPE, FIELD, NUM) \
    TYPE *FIELD = items((NUM), sizeof(TYPE)); \
    batch->FIELD = FIELD; \
    if (FIELD == NULL) { \
        return 0; \
    }

static int
fill_strings(PySampling_Batch *batch, const struct _sampling_tables *rows)
{
    NEW_ITEMS(PySampling_String, strings, rows->num_strings)
    batch->num_strings = rows->num_strings;
    for (uint32_t i = 0; i < rows->num_strings; i++) {
        strings[i] = (PySampling_String){
            rows->string_bytes + rows->strings[i].offset,
            rows->strings[i].size};
    }
    return 1;
}

static int
fill_functions(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ITEMS(PySampling_Function, functions, rows->num_functions)
    batch->num_functions = rows->num_functions;
    for (uint32_t i = 0; i < rows->num_functions; i++) {
        functions[i] = public_function(&rows->functions[i]);
    }
    uint32_t num = taken->num_changed_functions;
    NEW_ITEMS(PySampling_Function, changed_functions, num)
    batch->num_changed_functions = num;
    batch->changed_function_rows = taken->changed_functions;
    for (uint32_t i = 0; i < num; i++) {
        changed_functions[i] =
            public_function(&taken->changed_function_rows[i]);
    }
    return 1;
}

static int
fill_frames(PySampling_Batch *batch, const struct _sampling_tables *rows)
{
    NEW_ITEMS(PySampling_Frame, frames, rows->num_frames)
    batch->num_frames = rows->num_frames;
    for (uint32_t i = 0; i < rows->num_frames; i++) {
        const struct _sampling_frame_row *f = &rows->frames[i];
        frames[i] = (PySampling_Frame){f->function, f->line, f->column,
                                       f->offset, f->opcode};
    }
    NEW_ITEMS(PySampling_Node, nodes, rows->num_nodes)
    batch->num_nodes = rows->num_nodes;
    for (uint32_t i = 0; i < rows->num_nodes; i++) {
        nodes[i] = (PySampling_Node){rows->nodes[i].parent,
                                     rows->nodes[i].frame};
    }
    return 1;
}

static int
fill_labels(PySampling_Batch *batch, const struct _sampling_tables *rows)
{
    NEW_ITEMS(PySampling_Label, labels, rows->num_labels)
    batch->num_labels = rows->num_labels;
    for (uint32_t i = 0; i < rows->num_labels; i++) {
        const struct _sampling_label_row *l = &rows->labels[i];
        labels[i] = (PySampling_Label){l->parent, l->key, l->value,
                                       l->task_id};
    }
    return 1;
}

static int
fill_threads(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ITEMS(PySampling_Thread, threads, rows->num_threads)
    batch->num_threads = rows->num_threads;
    for (uint32_t i = 0; i < rows->num_threads; i++) {
        threads[i] = public_thread(&rows->threads[i]);
    }
    uint32_t num = taken->num_changed_threads;
    NEW_ITEMS(PySampling_Thread, changed_threads, num)
    batch->num_changed_threads = num;
    batch->changed_thread_rows = taken->changed_threads;
    for (uint32_t i = 0; i < num; i++) {
        changed_threads[i] = public_thread(&taken->changed_thread_rows[i]);
    }
    return 1;
}

static int
has_holder(const struct _sampling_batch *batch)
{
    for (uint32_t i = 0; i < batch->num_events; i++) {
        if (batch->events[i].holder_node != 0) {
            return 1;
        }
    }
    return 0;
}

/* Apart from the records, whose size is part of the API. */
static int
fill_holders(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_event *events = taken->batch->events;
    if (!has_holder(taken->batch)) {
        return 1;
    }
    NEW_ITEMS(PySampling_Holder, holders, batch->num_records)
    PySampling_Holder *out = holders;
    if (taken->lost.count != 0) {
        *out++ = (PySampling_Holder){0};
    }
    for (uint32_t i = 0; i < taken->batch->num_events; i++) {
        *out++ = (PySampling_Holder){events[i].holder_thread,
                                     events[i].holder_node};
    }
    return 1;
}

/* What was lost comes first, as a record like any other. */
static int
fill_records(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    Py_BUILD_ASSERT(sizeof(PySampling_Record)
                    == offsetof(struct _sampling_event, holder_thread));
    uint32_t num = taken->batch->num_events;
    int has_lost = taken->lost.count != 0;
    NEW_ITEMS(PySampling_Record, records, num + 1)
    batch->num_records = num + (uint32_t)has_lost;
    if (has_lost) {
        memcpy(records, &taken->lost, sizeof(*records));
        records->kind = PySampling_LOST;
    }
    for (uint32_t i = 0; i < num; i++) {
        memcpy(&records[has_lost + i], &taken->batch->events[i],
               sizeof(*records));
    }
    return fill_holders(batch, taken);
}

static int
fill(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_cursor *from = &taken->from;
    batch->size = sizeof(*batch);
    batch->serial = from->serial;
    batch->first_string = from->strings;
    batch->first_function = from->functions;
    batch->first_frame = from->frames;
    batch->first_node = from->nodes;
    batch->first_label = from->labels;
    batch->first_thread = from->threads;
    return fill_records(batch, taken)
        && fill_strings(batch, &taken->rows)
        && fill_functions(batch, taken)
        && fill_frames(batch, &taken->rows)
        && fill_labels(batch, &taken->rows)
        && fill_threads(batch, taken);
}

static void
free_items(PySampling_Batch *batch)
{
    free((void *)batch->records);
    free((void *)batch->holders);
    free((void *)batch->strings);
    free((void *)batch->functions);
    free((void *)batch->changed_functions);
    free((void *)batch->frames);
    free((void *)batch->nodes);
    free((void *)batch->labels);
    free((void *)batch->threads);
    free((void *)batch->changed_threads);
}

static void
capi_release(PySampling_Batch *batch)
{
    TakenBatch *b = (TakenBatch *)batch;
    free_items(batch);
    _PySampling_SubscriptionGiveBack(b->sub, &b->taken);
    free(b);
}

static int
capi_drain(PySampling_Subscription *sub, PySampling_Batch **batch)
{
    *batch = NULL;
    TakenBatch *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return -1;
    }
    b->sub = sub;
    int result = _PySampling_SubscriptionTake(sub, UINT32_MAX, &b->taken);
    if (result == 1 && !fill(&b->batch, &b->taken)) {
        free_items(&b->batch);
        _PySampling_SubscriptionPutBack(sub, &b->taken);
        result = -1;
    }
    if (result != 1) {
        free(b);
        return result;
    }
    *batch = &b->batch;
    return 1;
}

static const PySampling_API capi = {
    .version = 1,
    .size = sizeof(PySampling_API),
    .subscribe = capi_subscribe,
    .flush = capi_flush,
    .set_rate = capi_set_rate,
    .close = capi_close,
    .drain = capi_drain,
    .release = capi_release,
    .free = _PySampling_SubscriptionFree,
};

int
_PyProfile_InitCAPI(PyObject *module)
{
    PyObject *capsule =
        PyCapsule_New((void *)&capi, PySampling_CAPSULE_NAME, NULL);
    return PyModule_Add(module, "C_API", capsule);
}
