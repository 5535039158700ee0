/* What is handed over, as Python objects.

   Owns the shape of the dict that Lib/profile_sampling/_data/tables.py reads;
   both describe it.  Numbers go over as bytes of whole columns, so that a
   large profile is a few objects.  Nobody changes it meanwhile. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_ceval.h"             // _Py_eval_breaker_bit_is_set()
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"

#define ROW(TYPE, ROWS, I) PySampling_ROW(PySampling_##TYPE, (ROWS), (I))

/* So many items are made between two looks whether another thread wants the
   GIL.  Nobody else has what they are made of. */
#define ITEMS_AT_A_TIME 1024

static void
let_others_run(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_Py_eval_breaker_bit_is_set(tstate, _PY_GIL_DROP_REQUEST_BIT)) {
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
    }
}

/* What items are made of: a batch, and its texts (list of str). */
struct source {
    const PySampling_Batch *batch;
    PyObject *texts;
    int has_tasks;
};

static const struct source *
begin_item(const void *source, uint32_t row)
{
    if (row % ITEMS_AT_A_TIME == ITEMS_AT_A_TIME - 1) {
        let_others_run();
    }
    return source;
}

static PyObject *
list_of(const void *from, uint32_t num,
        PyObject *(*item_of)(const void *, uint32_t))
{
    PyObject *list = PyList_New(num);
    if (list != NULL) {
        // Others may run meanwhile: they are not to find it half made.
        PyObject_GC_UnTrack(list);
    }
    for (uint32_t row = 0; list != NULL && row < num; row++) {
        PyObject *item = item_of(from, row);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, row, item);
    }
    if (list != NULL) {
        PyObject_GC_Track(list);
    }
    return list;
}

static PyObject *
text(const void *source, uint32_t row)
{
    const struct source *from = begin_item(source, row);
    const PySampling_String *s = ROW(String, from->batch->strings, row);
    return PyUnicode_DecodeUTF8(s->utf8, (Py_ssize_t)s->size,
                                "surrogatepass");
}

static PyObject *
text_of(const struct source *from, uint32_t row)
{
    return Py_NewRef(row == PySampling_NO_STRING
                     ? Py_None : PyList_GET_ITEM(from->texts, row));
}

static PyObject *
function(const void *source, uint32_t row)
{
    const struct source *from = begin_item(source, row);
    const PySampling_Function *f = ROW(Function, from->batch->functions, row);
    return Py_BuildValue("(NNNii)", text_of(from, f->module),
                         text_of(from, f->qualname),
                         text_of(from, f->filename), f->first_line, f->kind);
}

static PyObject *
thread(const void *source, uint32_t row)
{
    const struct source *from = begin_item(source, row);
    const PySampling_Thread *t = ROW(Thread, from->batch->threads, row);
    return Py_BuildValue("(KLNL)", (unsigned long long)t->ident,
                         (long long)t->native_id, text_of(from, t->name),
                         (long long)t->interpreter_id);
}

/* (parent row, key or None for a task, value or None, id of the task, what it
   runs: row of task classes + 1, or 0: not known, and whether the thread only
   works for it) */
static PyObject *
label(const void *source, uint32_t row)
{
    const struct source *from = begin_item(source, row);
    const PySampling_Label *l = ROW(Label, from->batch->labels, row);
    return Py_BuildValue("(INNKII)", l->parent, text_of(from, l->key),
                         text_of(from, l->value),
                         (unsigned long long)l->task_id, l->task_class + 1,
                         l->is_work);
}

/* uint32_t, without the zeros at the end */
static PyObject *
lives(const PySampling_TaskClass *row)
{
    Py_ssize_t used = row->num_lives;
    while (used > 0 && row->lives[used - 1] == 0) {
        used--;
    }
    return PyBytes_FromStringAndSize((const char *)row->lives,
                                     used * (Py_ssize_t)sizeof(*row->lives));
}

/* Who did not ask for them gets the function only. */
static PyObject *
task_class(const void *source, uint32_t row)
{
    const struct source *from = begin_item(source, row);
    const PySampling_TaskClass *c =
        ROW(TaskClass, from->batch->task_classes, row);
    if (!from->has_tasks) {
        return Py_BuildValue("(I)", c->function);
    }
    return Py_BuildValue("(IKKKKKKKKKN)", c->function,
                         (unsigned long long)c->finished,
                         (unsigned long long)c->cancelled,
                         (unsigned long long)c->running_ns,
                         (unsigned long long)c->loop_wait_ns,
                         (unsigned long long)c->awaiting_ns,
                         (unsigned long long)c->longest_step_ns,
                         (unsigned long long)c->longest_life_ns,
                         (unsigned long long)c->steps,
                         (unsigned long long)c->lives_ns, lives(c));
}

/* Structs as they are. */
static PyObject *
bytes_of(const PySampling_Rows *rows)
{
    return PyBytes_FromStringAndSize(
        rows->rows, (Py_ssize_t)(rows->num * rows->stride));
}

/* The numbers of rows, which are the same in all batches of a serial. */
static PyObject *
numbers_of(const PySampling_Rows *rows)
{
    return PyBytes_FromStringAndSize(
        (const char *)rows->numbers,
        (Py_ssize_t)(rows->num * sizeof(uint32_t)));
}

static int64_t *
put_sample(int64_t *out, const PySampling_Sample *s)
{
    *out++ = s->node;
    *out++ = s->thread;
    *out++ = s->labels;
    *out++ = s->state;
    *out++ = s->holder_thread == PySampling_NO_THREAD
        ? -1 : (int64_t)s->holder_thread;
    *out++ = s->holder_node;
#define X(NAME, KIND, UNIT) *out++ = (int64_t)s->NAME;
    _PySampling_VALUES(X)
#undef X
    return out;
}

#define KEY_COLUMNS 6
#define SAMPLE_COLUMNS \
    (KEY_COLUMNS + sizeof(struct _sampling_values) / sizeof(uint64_t))

static void
put_samples(PyObject *bytes, const PySampling_Batch *batch)
{
    int64_t *out = (int64_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < batch->samples.num; row++) {
        out = put_sample(out, ROW(Sample, batch->samples, row));
    }
}

/* node, thread, labels, state, thread that held the GIL (-1: not known) and
   its place (0: no wait for the GIL), then the values. */
static PyObject *
sample_columns(const PySampling_Batch *batch)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, batch->samples.num
              * (Py_ssize_t)(SAMPLE_COLUMNS * sizeof(int64_t)));
    if (bytes != NULL && batch->samples.num > ITEMS_AT_A_TIME) {
        // Nobody else has the bytes.
        Py_BEGIN_ALLOW_THREADS
        put_samples(bytes, batch);
        Py_END_ALLOW_THREADS
    }
    else if (bytes != NULL) {
        put_samples(bytes, batch);
    }
    return bytes;
}

/* When the last record of each sample was. */
static PyObject *
last_moments(const PySampling_Batch *batch)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, batch->samples.num * (Py_ssize_t)sizeof(uint64_t));
    uint64_t *out = bytes != NULL
        ? (uint64_t *)PyBytes_AS_STRING(bytes) : NULL;
    for (uint32_t row = 0; out != NULL && row < batch->samples.num; row++) {
        out[row] = ROW(Sample, batch->samples, row)->time_ns;
    }
    return bytes;
}

/* All of one kind. */
static PyObject *
columns_of_allocations(const struct _sampling_alloc_table *table,
                       int of_collections)
{
    int64_t words[_PySampling_BLOCK_WORDS];
    Py_ssize_t num = 0;
    for (uint32_t row = 0; row < table->num_allocs; row++) {
        num += _PySampling_AllocWords(table, row, of_collections, words);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, num * (Py_ssize_t)sizeof(*words));
    if (bytes != NULL) {
        int64_t *out = (int64_t *)PyBytes_AS_STRING(bytes);
        for (uint32_t row = 0; row < table->num_allocs; row++) {
            num = _PySampling_AllocWords(table, row, of_collections, words);
            memcpy(out, words, (size_t)num * sizeof(*words));
            out += num;
        }
    }
    return bytes;
}

/* Those of the profile's time, and the one of now. */
static PyObject *
columns_of_readings(const struct _sampling_profile *profile,
                    const struct _sampling_resident *now)
{
    int64_t words[_PySampling_MAX_READINGS + 1][_PySampling_READING_WORDS];
    Py_ssize_t num = 0;
    const struct _sampling_resident *reading = NULL;
    while ((reading = _PySampling_NextReading(profile, reading, now)) != NULL)
    {
        _PySampling_ReadingWords(profile, reading, words[num++]);
    }
    return PyBytes_FromStringAndSize((const char *)words,
                                     num * (Py_ssize_t)sizeof(words[0]));
}

/* None: none were sampled. */
static PyObject *
allocations(const struct _sampling_profile *profile)
{
    const struct _sampling_alloc_table *table = &profile->allocations;
    if (table->period_bytes == 0) {
        Py_RETURN_NONE;
    }
    // Of the whole process batches say nothing.
    struct _sampling_resident resident = {0};
    const struct _sampling_resident *now = &resident;
    int is_batch = profile->start_wall_ns == 0;
    if (!is_batch) {
        _PySampling_ReadResident(&resident);
    }
#define X(NAME, VALUE) "s:K,"
    return Py_BuildValue(
        "{" _PySampling_FACTS_OF_ALLOCATIONS(X) "s:N,s:N,s:N}",
#undef X
#define X(NAME, VALUE) #NAME, (unsigned long long)(VALUE),
        _PySampling_FACTS_OF_ALLOCATIONS(X)
#undef X
        "blocks", columns_of_allocations(table, 0),
        "collections", columns_of_allocations(table, 1),
        "readings", is_batch ? PyBytes_FromStringAndSize(NULL, 0)
                             : columns_of_readings(profile, now));
}

/* (kind, unit) of each value. */
static PyObject *
value_types(void)
{
#define X(NAME, KIND, UNIT) "(ss)"
    return Py_BuildValue("(" _PySampling_VALUES(X) ")"
#undef X
#define X(NAME, KIND, UNIT) , KIND, UNIT
                         _PySampling_VALUES(X));
#undef X
}

PyObject *
_PyProfile_ExportCounters(const struct _sampling_counters *counters)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL) {
        return NULL;
    }
#define X(name) \
    { \
        PyObject *value = PyLong_FromUnsignedLongLong( \
            _Py_atomic_load_uint64_relaxed(&counters->name)); \
        if (value == NULL || PyDict_SetItemString(dict, #name, value) < 0) { \
            Py_XDECREF(value); \
            Py_DECREF(dict); \
            return NULL; \
        } \
        Py_DECREF(value); \
    }
    _PySampling_COUNTERS(X)
#undef X
    return dict;
}

/* Of which rows of the engine they are, and what is in the order of time. */
static PyObject *
columns_of_batch(const struct _sampling_profile *profile)
{
    const PySampling_Batch *batch = &profile->batch;
    return Py_BuildValue(
        "{s:I,s:K,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:K}",
        "serial", batch->serial,
        "start_ns", (unsigned long long)profile->start_wall_ns,
        "function_numbers", numbers_of(&batch->functions),
        "frame_numbers", numbers_of(&batch->frames),
        "node_numbers", numbers_of(&batch->nodes),
        "label_numbers", numbers_of(&batch->labels),
        "thread_numbers", numbers_of(&batch->threads),
        "time_ns", last_moments(batch),
        "events", bytes_of(&batch->events),
        "moments", profile->rows->max_moments != 0
            ? bytes_of(&batch->moments) : Py_NewRef(Py_None),
        "resolution_ns",
            (unsigned long long)profile->rows->resolution_ns);
}

static PyObject *
export(const struct _sampling_profile *profile, const struct source *from)
{
    static const char *const mode_names[] = {"wall", "cpu", "alloc"};
    const PySampling_Batch *batch = from->batch;
    PyObject *dict = Py_BuildValue(
        "{s:s,s:i,s:i,s:i,s:i,s:L,s:K,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,"
        "s:N}",
        "mode", mode_names[profile->options.mode],
        "rate_hz", profile->options.rate_hz,
        "depth_frames", profile->options.depth_frames,
        "names", profile->options.names,
        "pid", _PyRuntime.sampling.owner_pid,
        "start_time_ns", (long long)profile->start_time_ns,
        "duration_ns", (unsigned long long)profile->duration_ns,
        "functions", list_of(from, batch->functions.num, function),
        "frames", bytes_of(&batch->frames),
        "nodes", bytes_of(&batch->nodes),
        "labels", list_of(from, batch->labels.num, label),
        "samples", sample_columns(batch),
        "measured", value_types(),
        "allocations", allocations(profile),
        "task_classes", list_of(from, batch->task_classes.num, task_class),
        "threads", list_of(from, batch->threads.num, thread),
        "stats", _PyProfile_ExportCounters(&profile->counters));
    PyObject *more = dict != NULL ? columns_of_batch(profile) : NULL;
    if (more == NULL || PyDict_Update(dict, more) < 0) {
        Py_CLEAR(dict);
    }
    Py_XDECREF(more);
    return dict;
}

PyObject *
_PyProfile_Export(const struct _sampling_profile *profile, int has_tasks)
{
    struct source from = {.batch = &profile->batch, .has_tasks = has_tasks};
    from.texts = list_of(&from, from.batch->strings.num, text);
    PyObject *result = from.texts != NULL ? export(profile, &from) : NULL;
    Py_XDECREF(from.texts);
    return result;
}

PyObject *
_PyProfile_ExportProfile(const struct _sampling_profile *profile)
{
    return _PyProfile_Export(profile, 1);
}


/* Calls, whose names are in tables of their own. */

static PyObject *
name_text(const struct _sampling_tables *names, uint32_t row)
{
    if (row == _PySampling_NO_STRING) {
        Py_RETURN_NONE;
    }
    const struct _sampling_string_row *s = _PySampling_AT(names, string, row);
    return PyUnicode_DecodeUTF8(s->bytes, s->size, "surrogatepass");
}

static PyObject *
calls_function(const void *tables, uint32_t row)
{
    const struct _sampling_tables *names = tables;
    const struct _sampling_function_row *f =
        _PySampling_AT(names, function, row);
    return Py_BuildValue(
        "(NNNii)", name_text(names, _PySampling_TablesModuleOf(names, f)),
        name_text(names, f->qualname), name_text(names, f->filename),
        f->first_line, f->kind);
}

/* (caller's row or -1, line, callee's row, route, calls, of these recursive,
   resumes, of these recursive, deepest); the route is None of what is no
   query, and '' of a query without one. */
static PyObject *
calls_row(const void *counted, uint32_t i)
{
    const struct _sampling_calls *calls = counted;
    const struct _sampling_total_row *row = _PySampling_AT(calls, total, i);
    PyObject *route;
    switch (row->route) {
    case _PySampling_NO_QUERY:
        route = Py_NewRef(Py_None);
        break;
    case _PySampling_NO_ROUTE:
        route = PyUnicode_New(0, 0);
        break;
    default:
        route = name_text(calls->names, row->route - 2);
    }
    return Py_BuildValue(
        "(LiINKKKKK)",
        row->caller == UINT32_MAX ? -1LL : (long long)row->caller, row->line,
        row->callee, route, (unsigned long long)row->calls,
        (unsigned long long)row->recursive, (unsigned long long)row->resumes,
        (unsigned long long)row->recursive_resumes,
        (unsigned long long)row->deepest);
}

PyObject *
_PyProfile_ExportCalls(const struct _sampling_calls *calls)
{
    if (calls == NULL) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue(
        "(iNNKK)", calls->mode,
        list_of(calls->names, calls->names->num_functions, calls_function),
        list_of(calls, calls->num_totals, calls_row),
        (unsigned long long)calls->num_lost,
        (unsigned long long)calls->taken_ns);
}
