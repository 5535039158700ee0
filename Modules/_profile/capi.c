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

/* No version of the options will be as large: it is not their size. */
#define MAX_OPTIONS_BYTES 4096

/* Are there options, beyond those known here, that ask for something? */
static int
asks_for_more(const PySampling_Options *options)
{
    const char *bytes = (const char *)options;
    for (size_t i = sizeof(*options); i < options->size; i++) {
        if (bytes[i] != 0) {
            return 1;
        }
    }
    return 0;
}

static void
raise_later_version(void)
{
    PyErr_SetString(PyExc_ValueError,
                    "PySampling_Options asks for what only a later "
                    "version has");
}

/* The options of an extension that was compiled for another version, maybe.
   Returns 0 with an exception if they cannot be understood. */
static int
read_options(const PySampling_Options *given, PySampling_Options *options)
{
    if (!PySampling_HAS(given->size, PySampling_Options, rate_hz)
        || given->size > MAX_OPTIONS_BYTES)
    {
        PyErr_Format(PyExc_ValueError,
                     "PySampling_Options cannot be of %zu bytes: use "
                     "PySampling_OPTIONS_INIT", given->size);
        return 0;
    }
    if (asks_for_more(given)) {
        raise_later_version();
        return 0;
    }
    *options = (PySampling_Options)PySampling_OPTIONS_INIT;
#define READ(FIELD) \
    if (PySampling_HAS(given->size, PySampling_Options, FIELD)) { \
        options->FIELD = given->FIELD; \
    }
    READ(rate_hz)
    READ(depth_frames)
    READ(names)
    READ(max_records)
    READ(interpreter_id)
    READ(flags)
#undef READ
    if (options->flags & ~(uint64_t)PySampling_WITH_TASKS) {
        raise_later_version();
        return 0;
    }
    return 1;
}

/* Checked as they are given: what stands for a default is one number. */
static int
are_in_range(const PySampling_Options *options)
{
    return is_in_range("rate_hz", options->rate_hz, 1,
                       _PySampling_MAX_RATE_HZ)
        && is_in_range("depth_frames", options->depth_frames, 0,
                       _PySampling_MAX_DEPTH_FRAMES)
        && is_in_range("names", options->names, -1, _PySampling_ALL_NAMES)
        && is_in_range("max_records", options->max_records,
                       _PySampling_MIN_EVENTS, _PySampling_MAX_EVENTS)
        // Of an interpreter that is not there: it may come.
        && is_in_range("interpreter_id", options->interpreter_id, -1,
                       INT64_MAX);
}

static PySampling_Subscription *
capi_subscribe(const PySampling_Options *given)
{
    PySampling_Options options;
    if (!read_options(given, &options) || !are_in_range(&options)) {
        return NULL;
    }
    _PySampling_Options engine = {
        .rate_hz = options.rate_hz,
        .depth_frames = options.depth_frames,
        .names = options.names,
    };
    _PySampling_DefaultOptions(&engine);
    PySampling_Subscription *sub =
        _PySampling_SubscriptionNew(&(_PySampling_SubscribeOptions){
            .rate_hz = engine.rate_hz,
            .max_events = options.max_records,
            .batch_events = options.max_records,
            .interpreter_id = options.interpreter_id,
            .tasks = (options.flags & PySampling_WITH_TASKS) != 0,
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

/* Rows from number `first` on.  One more than there are, so that it is never
   NULL for none. */
static void *
new_rows(PySampling_Rows *rows, size_t stride, uint32_t first, uint32_t num)
{
    void *block = malloc(((size_t)num + 1) * stride);
    *rows = (PySampling_Rows){block, stride, first, num};
    return block;
}

/* Defines the variable FIELD, the rows of that field. */
#define NEW_ROWS(TYPE, FIELD, FIRST, NUM) \
    TYPE *FIELD = new_rows(&batch->FIELD, sizeof(TYPE), (FIRST), (NUM)); \
    if (FIELD == NULL) { \
        return 0; \
    }

static int
fill_strings(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ROWS(PySampling_String, strings, taken->from.strings,
             rows->num_strings)
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
    NEW_ROWS(PySampling_Function, functions, taken->from.functions,
             rows->num_functions)
    for (uint32_t i = 0; i < rows->num_functions; i++) {
        functions[i] = public_function(&rows->functions[i]);
    }
    uint32_t num = taken->num_changed_functions;
    NEW_ROWS(PySampling_Function, changed_functions, 0, num)
    batch->changed_function_rows = taken->changed_functions;
    for (uint32_t i = 0; i < num; i++) {
        changed_functions[i] =
            public_function(&taken->changed_function_rows[i]);
    }
    return 1;
}

static int
fill_frames(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ROWS(PySampling_Frame, frames, taken->from.frames, rows->num_frames)
    for (uint32_t i = 0; i < rows->num_frames; i++) {
        const struct _sampling_frame_row *f = &rows->frames[i];
        frames[i] = (PySampling_Frame){f->function, f->line, f->column,
                                       f->offset, f->opcode};
    }
    NEW_ROWS(PySampling_Node, nodes, taken->from.nodes, rows->num_nodes)
    for (uint32_t i = 0; i < rows->num_nodes; i++) {
        nodes[i] = (PySampling_Node){rows->nodes[i].parent,
                                     rows->nodes[i].frame};
    }
    return 1;
}

static int
fill_labels(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ROWS(PySampling_Label, labels, taken->from.labels, rows->num_labels)
    for (uint32_t i = 0; i < rows->num_labels; i++) {
        const struct _sampling_label_row *l = &rows->labels[i];
        labels[i] = (PySampling_Label){
            l->parent, l->key, l->value, l->task_id,
            l->coroutine == 0 ? PySampling_NO_FUNCTION
                : taken->coroutine_functions[l->coroutine - 1],
            l->is_work};
    }
    return 1;
}

static PySampling_TaskClass
public_task_class(uint32_t function, const struct _sampling_task_row *row)
{
    const struct _sampling_task_values *v = &row->values;
    return (PySampling_TaskClass){
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
    };
}

static int
fill_task_classes(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_task_table *tasks = &taken->batch->tasks;
    uint32_t num = tasks->num_rows;
    NEW_ROWS(PySampling_TaskClass, task_classes, 0, num)
    for (uint32_t i = 0; i < num; i++) {
        task_classes[i] = public_task_class(taken->coroutine_functions[i],
                                            &tasks->rows[i]);
    }
    return 1;
}

static int
fill_threads(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    NEW_ROWS(PySampling_Thread, threads, taken->from.threads,
             rows->num_threads)
    for (uint32_t i = 0; i < rows->num_threads; i++) {
        threads[i] = public_thread(&rows->threads[i]);
    }
    uint32_t num = taken->num_changed_threads;
    NEW_ROWS(PySampling_Thread, changed_threads, 0, num)
    batch->changed_thread_rows = taken->changed_threads;
    for (uint32_t i = 0; i < num; i++) {
        changed_threads[i] = public_thread(&taken->changed_thread_rows[i]);
    }
    return 1;
}

/* What was lost comes first, as a record like any other. */
static int
fill_records(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    Py_BUILD_ASSERT(sizeof(PySampling_Record)
                    == sizeof(struct _sampling_event));
    uint32_t num = taken->batch->num_events;
    uint32_t has_lost = taken->lost.count != 0;
    NEW_ROWS(PySampling_Record, records, 0, has_lost + num)
    if (has_lost) {
        memcpy(records, &taken->lost, sizeof(*records));
        records->kind = PySampling_LOST;
    }
    memcpy(records + has_lost, taken->batch->events, num * sizeof(*records));
    return 1;
}

static int
fill(PySampling_Batch *batch, const struct _sampling_taken *taken)
{
    batch->size = sizeof(*batch);
    batch->serial = taken->from.serial;
    return fill_records(batch, taken)
        && fill_strings(batch, taken)
        && fill_functions(batch, taken)
        && fill_frames(batch, taken)
        && fill_labels(batch, taken)
        && fill_task_classes(batch, taken)
        && fill_threads(batch, taken);
}

static void
free_rows(PySampling_Batch *batch)
{
    free((void *)batch->records.rows);
    free((void *)batch->strings.rows);
    free((void *)batch->functions.rows);
    free((void *)batch->changed_functions.rows);
    free((void *)batch->frames.rows);
    free((void *)batch->nodes.rows);
    free((void *)batch->labels.rows);
    free((void *)batch->threads.rows);
    free((void *)batch->changed_threads.rows);
    free((void *)batch->task_classes.rows);
}

static void
capi_release(PySampling_Batch *batch)
{
    TakenBatch *b = (TakenBatch *)batch;
    free_rows(batch);
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
    int result = _PySampling_BatchDrain(sub, &b->taken);
    if (result == 1 && !fill(&b->batch, &b->taken)) {
        free_rows(&b->batch);
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
