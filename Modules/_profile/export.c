/* The tables of a sampling session as Python objects.

   Owns the shape of the dict that Lib/profile_sampling/_model.py reads; both
   describe it.  Numbers go over as bytes of whole columns, so that a large
   profile is a few objects.  The tables are a copy that nobody changes. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_sampling_tables.h"

static PyObject *
string(const struct _sampling_tables *tables, uint32_t row)
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
    return Py_BuildValue("(NNNii)", string(tables, f->module),
                         string(tables, f->qualname),
                         string(tables, f->filename),
                         f->first_line, f->kind);
}

static PyObject *
thread(const struct _sampling_tables *tables, uint32_t row)
{
    const struct _sampling_thread_row *t = &tables->threads[row];
    return Py_BuildValue("(KLNL)", (unsigned long long)t->ident,
                         (long long)t->native_id, string(tables, t->name),
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

static int
is_used(const struct _sampling_sample_row *s)
{
    return s->count != 0 || s->wall_ns != 0 || s->cpu_ns != 0;
}

static PyObject *
sample_columns(const struct _sampling_tables *tables)
{
    Py_ssize_t used = 0;
    for (uint32_t row = 0; row < tables->num_samples; row++) {
        used += is_used(&tables->samples[row]);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(
        NULL, used * 6 * (Py_ssize_t)sizeof(int64_t));
    if (bytes == NULL) {
        return NULL;
    }
    int64_t *out = (int64_t *)PyBytes_AS_STRING(bytes);
    for (uint32_t row = 0; row < tables->num_samples; row++) {
        const struct _sampling_sample_row *s = &tables->samples[row];
        if (is_used(s)) {
            *out++ = s->node;
            *out++ = s->thread;
            *out++ = s->state;
            *out++ = (int64_t)s->count;
            *out++ = (int64_t)s->cpu_ns;
            *out++ = (int64_t)s->wall_ns;
        }
    }
    return bytes;
}

PyObject *
_PySampling_ExportCounters(const struct _sampling_counters *counters)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL) {
        return NULL;
    }
#define X(name) \
    { \
        PyObject *value = PyLong_FromUnsignedLongLong(counters->name); \
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
_PySampling_Export(struct _sampling_tables *tables)
{
    if (!_PySampling_TablesGuessModules(tables)) {
        return PyErr_NoMemory();
    }
    return Py_BuildValue(
        "{s:s,s:i,s:i,s:i,s:L,s:K,s:N,s:N,s:N,s:N,s:N,s:N}",
        "mode", tables->options.mode == _PySampling_CPU ? "cpu" : "wall",
        "rate_hz", tables->options.rate_hz,
        "depth_frames", tables->options.depth_frames,
        "names", tables->options.names,
        "start_time_ns", (long long)tables->start_time_ns,
        "duration_ns", (unsigned long long)tables->duration_ns,
        "functions", list_of(tables, tables->num_functions, function),
        "frames", frame_columns(tables),
        "nodes", node_columns(tables),
        "samples", sample_columns(tables),
        "threads", list_of(tables, tables->num_threads, thread),
        "stats", _PySampling_ExportCounters(&tables->counters));
}
