/* Profiles and batches as Python objects.

   Owns the shape of the dict that Lib/profile_sampling/_data/tables.py reads;
   both describe it.  Numbers go over as bytes of whole columns, so that a
   large profile is a few objects.  Nobody changes it meanwhile. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"

static PyObject *
text_of(const struct _sampling_tables *tables, uint32_t row)
{
    if (row == _PySampling_NO_STRING) {
        return Py_NewRef(Py_None);
    }
    const struct _sampling_string_row *s = &tables->strings[row];
    return PyUnicode_DecodeUTF8(tables->string_bytes + s->offset, s->size,
                                "surrogatepass");
}

static PyObject *
function(const struct _sampling_tables *tables, uint32_t row)
{
    const struct _sampling_function_row *f = &tables->functions[row];
    uint32_t module = _PySampling_TablesModuleOf(tables, f);
    return Py_BuildValue("(NNNii)", text_of(tables, module),
                         text_of(tables, f->qualname),
                         text_of(tables, f->filename),
                         f->first_line, f->kind);
}

static PyObject *
thread(const struct _sampling_tables *tables, uint32_t row)
{
    const struct _sampling_thread_row *t = &tables->threads[row];
    return Py_BuildValue("(KLNL)", (unsigned long long)t->ident,
                         (long long)t->native_id, text_of(tables, t->name),
                         (long long)t->interpreter_id);
}

static PyObject *
list_of(const struct _sampling_tables *tables, uint32_t num,
        PyObject *(*item_of)(const struct _sampling_tables *, uint32_t))
{
    PyObject *list = PyList_New(num);
    for (uint32_t row = 0; list != NULL && row < num; row++) {
        PyObject *item = item_of(tables, row);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, row, item);
    }
    return list;
}

static PyObject *
frame_columns(const struct _sampling_tables *tables)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, (Py_ssize_t)tables->num_frames * 5 * sizeof(int32_t));
    if (bytes == NULL) {
        return NULL;
    }
    int32_t *out = (int32_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < tables->num_frames; row++) {
        const struct _sampling_frame_row *f = &tables->frames[row];
        *out++ = (int32_t)f->function;
        *out++ = f->line;
        *out++ = f->column;
        *out++ = f->offset;
        *out++ = f->opcode;
    }
    return bytes;
}

static PyObject *
node_columns(const struct _sampling_tables *tables)
{
    Py_BUILD_ASSERT(sizeof(struct _sampling_node_row) == 8);
    return PyBytes_FromStringAndSize(
        (const char *)tables->nodes,
        (Py_ssize_t)tables->num_nodes * sizeof(struct _sampling_node_row));
}

/* (parent row, key or None for a task, value or None, id of the task, what it
   runs: row of coroutines + 1, or 0: not known, and whether the thread only
   works for it) */
static PyObject *
label(const struct _sampling_tables *tables, uint32_t row)
{
    const struct _sampling_label_row *l = &tables->labels[row];
    return Py_BuildValue("(INNKIi)", l->parent, text_of(tables, l->key),
                         text_of(tables, l->value),
                         (unsigned long long)l->task_id, l->coroutine,
                         l->is_work);
}

/* uint32_t, without the zeros at the end */
static PyObject *
lives(const struct _sampling_task_row *row)
{
    Py_ssize_t used = _PySampling_LIFE_BUCKETS;
    while (used > 0 && row->lives[used - 1] == 0) {
        used--;
    }
    return PyBytes_FromStringAndSize((const char *)row->lives,
                                     used * (Py_ssize_t)sizeof(*row->lives));
}

static PyObject *
task_class(uint32_t function, const struct _sampling_task_row *row)
{
    const struct _sampling_task_values *v = &row->values;
    return Py_BuildValue("(IKKKKKKKKKN)", function,
                         (unsigned long long)v->num_finished,
                         (unsigned long long)v->num_cancelled,
                         (unsigned long long)v->running_ns,
                         (unsigned long long)v->loop_wait_ns,
                         (unsigned long long)v->awaiting_ns,
                         (unsigned long long)v->longest_step_ns,
                         (unsigned long long)v->longest_life_ns,
                         (unsigned long long)v->num_steps,
                         (unsigned long long)v->lives_ns, lives(row));
}

static PyObject *
task_classes(const struct _sampling_profile *profile)
{
    const struct _sampling_tables *tables = profile->tables;
    const struct _sampling_task_row none = {0};
    PyObject *list = PyList_New(tables->num_coroutines);
    for (uint32_t i = 0; list != NULL && i < tables->num_coroutines; i++) {
        PyObject *item = task_class(
            tables->coroutines[i].function,
            i < profile->tasks.num_rows ? &profile->tasks.rows[i] : &none);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static int64_t *
put_sample(int64_t *out, const struct _sampling_sample_row *s)
{
    *out++ = s->key.node;
    *out++ = s->key.thread;
    *out++ = s->key.labels;
    *out++ = s->key.state;
    *out++ = s->key.holder_thread == _PySampling_NO_THREAD
        ? -1 : (int64_t)s->key.holder_thread;
    *out++ = s->key.holder_node;
#define X(NAME, KIND, UNIT) *out++ = (int64_t)s->values.NAME;
    _PySampling_VALUES(X)
#undef X
    return out;
}

#define KEY_COLUMNS 6
#define SAMPLE_COLUMNS \
    (KEY_COLUMNS + sizeof(struct _sampling_values) / sizeof(uint64_t))

/* node, thread, labels, state, thread that held the GIL (-1: not known) and
   its place (0: no wait for the GIL), then the values. */
static PyObject *
sample_columns(const struct _sampling_profile *profile)
{
    Py_ssize_t used = 0;
    for (uint32_t row = 0; row < profile->num_samples; row++) {
        used += _PySampling_Weighs(&profile->samples[row].values);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, used * (Py_ssize_t)(SAMPLE_COLUMNS * sizeof(int64_t)));
    if (bytes == NULL) {
        return NULL;
    }
    int64_t *out = (int64_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < profile->num_samples; row++) {
        if (_PySampling_Weighs(&profile->samples[row].values)) {
            out = put_sample(out, &profile->samples[row]);
        }
    }
    return bytes;
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

PyObject *
_PyProfile_Export(const struct _sampling_profile *profile)
{
    const struct _sampling_tables *tables = profile->tables;
    return Py_BuildValue(
        "{s:s,s:i,s:i,s:i,s:i,s:L,s:K,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}",
        "mode", profile->options.mode == _PySampling_CPU ? "cpu" : "wall",
        "rate_hz", profile->options.rate_hz,
        "depth_frames", profile->options.depth_frames,
        "names", profile->options.names,
        "pid", _PyRuntime.sampling.owner_pid,
        "start_time_ns", (long long)profile->start_time_ns,
        "duration_ns", (unsigned long long)profile->duration_ns,
        "functions", list_of(tables, tables->num_functions, function),
        "frames", frame_columns(tables),
        "nodes", node_columns(tables),
        "labels", list_of(tables, tables->num_labels, label),
        "samples", sample_columns(profile),
        "measured", value_types(),
        "task_classes", task_classes(profile),
        "threads", list_of(tables, tables->num_threads, thread),
        "stats", _PyProfile_ExportCounters(&profile->counters));
}


/* Calls. */

/* (caller's row or -1, line, callee's row, route, calls, of these recursive,
   resumes, of these recursive, deepest); the route is None of what is no
   query, and '' of a query without one. */
static PyObject *
calls_row(const struct _sampling_calls *calls,
          const struct _sampling_calls_row *row)
{
    PyObject *route;
    switch (row->route) {
    case _PySampling_NO_QUERY:
        route = Py_NewRef(Py_None);
        break;
    case _PySampling_NO_ROUTE:
        route = PyUnicode_New(0, 0);
        break;
    default:
        route = text_of(calls->names, row->route - 2);
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
    PyObject *rows = PyList_New(calls->num_rows);
    for (uint32_t i = 0; rows != NULL && i < calls->num_rows; i++) {
        PyObject *row = calls_row(calls, &calls->rows[i]);
        if (row == NULL) {
            Py_CLEAR(rows);
            break;
        }
        PyList_SET_ITEM(rows, i, row);
    }
    return Py_BuildValue(
        "(iNNK)", calls->mode,
        list_of(calls->names, calls->names->num_functions, function), rows,
        (unsigned long long)calls->num_lost);
}


/* Batches of records. */

static PyObject *
new_strings(const struct _sampling_tables *rows)
{
    return list_of(rows, rows->num_strings, text_of);
}

/* Rows of uint32_t: module, qualname, filename, first line, kind. */
static PyObject *
new_functions(const struct _sampling_tables *rows)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, (Py_ssize_t)rows->num_functions * 5 * sizeof(uint32_t));
    if (bytes == NULL) {
        return NULL;
    }
    uint32_t *out = (uint32_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < rows->num_functions; row++) {
        const struct _sampling_function_row *f = &rows->functions[row];
        *out++ = f->module;
        *out++ = f->qualname;
        *out++ = f->filename;
        *out++ = (uint32_t)f->first_line;
        *out++ = (uint32_t)f->kind;
    }
    return bytes;
}

/* Rows of uint64_t: parent, key, value, id of the task, what it runs: row of
   task_functions + 1, or 0, and whether the thread only works for it. */
static PyObject *
new_labels(const struct _sampling_tables *rows)
{
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, (Py_ssize_t)rows->num_labels * 6 * sizeof(uint64_t));
    if (bytes == NULL) {
        return NULL;
    }
    uint64_t *out = (uint64_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < rows->num_labels; row++) {
        const struct _sampling_label_row *l = &rows->labels[row];
        *out++ = l->parent;
        *out++ = l->key;
        *out++ = l->value;
        *out++ = l->task_id;
        *out++ = l->coroutine;
        *out++ = l->is_work;
    }
    return bytes;
}

/* The functions that tasks run, rows of uint32_t. */
static PyObject *
task_functions(const struct _sampling_taken *taken)
{
    return PyBytes_FromStringAndSize(
        (const char *)taken->coroutine_functions,
        (Py_ssize_t)taken->num_coroutines * sizeof(uint32_t));
}

/* None: they are not for this subscriber. */
static PyObject *
batch_task_classes(const struct _sampling_taken *taken)
{
    const struct _sampling_task_table *tasks = &taken->batch->tasks;
    if (tasks->rows == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *list = PyList_New(tasks->num_rows);
    for (uint32_t i = 0; list != NULL && i < tasks->num_rows; i++) {
        PyObject *item = task_class(taken->coroutine_functions[i],
                                    &tasks->rows[i]);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* (ident, native id, row of the name, interpreter id) */
static PyObject *
thread_numbers(const struct _sampling_thread_row *t)
{
    return Py_BuildValue("(KLIL)", (unsigned long long)t->ident,
                         (long long)t->native_id, t->name,
                         (long long)t->interpreter_id);
}

static PyObject *
new_thread(const struct _sampling_tables *rows, uint32_t row)
{
    return thread_numbers(&rows->threads[row]);
}

/* (row, row of the module) of functions that have one by now. */
static PyObject *
changed_functions(const struct _sampling_taken *taken)
{
    PyObject *list = PyList_New(taken->num_changed_functions);
    for (uint32_t i = 0;
         list != NULL && i < taken->num_changed_functions; i++)
    {
        PyObject *item = Py_BuildValue(
            "(II)", taken->changed_functions[i],
            taken->changed_function_rows[i].module);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *
changed_threads(const struct _sampling_taken *taken)
{
    PyObject *list = PyList_New(taken->num_changed_threads);
    for (uint32_t i = 0; list != NULL && i < taken->num_changed_threads; i++) {
        PyObject *item = Py_BuildValue(
            "(IN)", taken->changed_threads[i],
            thread_numbers(&taken->changed_thread_rows[i]));
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

#define COLUMN(NAME, TYPE) \
    static PyObject * \
    column_##NAME(const struct _sampling_batch *batch) \
    { \
        PyObject *bytes = PyBytes_FromStringAndSize( \
            NULL, (Py_ssize_t)(batch->num_events * sizeof(TYPE))); \
        if (bytes != NULL) { \
            TYPE *out = (TYPE *)PyBytes_AS_STRING(bytes); \
            for (uint32_t i = 0; i < batch->num_events; i++) { \
                out[i] = batch->events[i].NAME; \
            } \
        } \
        return bytes; \
    }

COLUMN(time_ns, uint64_t)
COLUMN(kind, uint8_t)
COLUMN(state, uint8_t)
COLUMN(flags, uint16_t)
COLUMN(thread, uint32_t)
COLUMN(node, uint32_t)
COLUMN(labels, uint32_t)
COLUMN(count, uint64_t)
COLUMN(cpu_ns, uint64_t)
COLUMN(wall_ns, uint64_t)
COLUMN(holder_thread, uint32_t)
COLUMN(holder_node, uint32_t)

static PyObject *
lost(const struct _sampling_event *event)
{
    if (event->count == 0) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("(KKKK)", event->time_ns, event->count,
                         event->cpu_ns, event->wall_ns);
}

/* Lib/profile_sampling/_subscribing/batch.py reads it. */
PyObject *
_PyProfile_ExportBatch(const struct _sampling_taken *taken)
{
    const struct _sampling_tables *rows = &taken->rows;
    const struct _sampling_batch *batch = taken->batch;
    const struct _sampling_cursor *from = &taken->from;
    return Py_BuildValue(
        "{s:I,s:(IIIIII),s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,"
        "s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}",
        "serial", from->serial,
        "first", from->strings, from->functions, from->frames, from->nodes,
            from->labels, from->threads,
        "strings", new_strings(rows),
        "functions", new_functions(rows),
        "frames", frame_columns(rows),
        "nodes", node_columns(rows),
        "labels", new_labels(rows),
        "task_functions", task_functions(taken),
        "task_classes", batch_task_classes(taken),
        "threads", list_of(rows, rows->num_threads, new_thread),
        "changed_functions", changed_functions(taken),
        "changed_threads", changed_threads(taken),
        "lost", lost(&taken->lost),
        "stats", _PyProfile_ExportCounters(&_PyRuntime.sampling.counters),
        "time_ns", column_time_ns(batch),
        "kind", column_kind(batch),
        "state", column_state(batch),
        "flags", column_flags(batch),
        "thread", column_thread(batch),
        "node", column_node(batch),
        "labels_row", column_labels(batch),
        "count", column_count(batch),
        "cpu_ns", column_cpu_ns(batch),
        "wall_ns", column_wall_ns(batch),
        "holder_thread", column_holder_thread(batch),
        "holder_node", column_holder_node(batch));
}
