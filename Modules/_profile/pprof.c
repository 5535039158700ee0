/* The _profile module: pprof files and packed tables.

   Glue only: arguments and errors.  Needs no profiler, so it is there in every
   build. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof.h"

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/pprof.c.h"

/*[clinic input]
_profile.check_tables

    frames: Py_buffer
    nodes: Py_buffer
    samples: Py_buffer
    weights: Py_ssize_t
        How many each sample has.
    functions: Py_ssize_t
    labels: Py_ssize_t
    threads: Py_ssize_t
    states: Py_ssize_t
    /

Raise ValueError unless every index in packed tables names an existing row.
[clinic start generated code]*/

static PyObject *
_profile_check_tables_impl(PyObject *module, Py_buffer *frames,
                           Py_buffer *nodes, Py_buffer *samples,
                           Py_ssize_t weights, Py_ssize_t functions,
                           Py_ssize_t labels, Py_ssize_t threads,
                           Py_ssize_t states)
/*[clinic end generated code: output=d1952d78f33ffef2 input=25ab35fed56d1a6e]*/
{
    struct packed_tables t = {
        .num_weights = weights, .num_functions = functions,
        .num_labels = labels, .num_threads = threads, .num_states = states,
    };
    if (_PyProfile_CheckTables(&t, frames, nodes, samples) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* PyArg_ParseTuple(), which reads them, takes nothing else. */
static int
check_tuples(const char *what, PyObject *rows)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        if (!PyTuple_Check(PyList_GET_ITEM(rows, i))) {
            PyErr_Format(PyExc_TypeError, "%s must be a tuple, not %T", what,
                         PyList_GET_ITEM(rows, i));
            return -1;
        }
    }
    return 0;
}

static int
check_functions(PyObject *functions)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions); i++) {
        PyObject *row = PyList_GET_ITEM(functions, i);
        if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4
            || !PyUnicode_Check(PyTuple_GET_ITEM(row, 0))
            || !PyUnicode_Check(PyTuple_GET_ITEM(row, 1))
            || !PyLong_Check(PyTuple_GET_ITEM(row, 2)))
        {
            PyErr_SetString(PyExc_TypeError, "a function must be (name, "
                            "place, first line, is it Python)");
            return -1;
        }
    }
    return 0;
}

/* New memory: which weight each column is. */
static Py_ssize_t *
read_columns(PyObject *columns, Py_ssize_t num_weights)
{
    Py_ssize_t num = PyList_GET_SIZE(columns);
    Py_ssize_t *result = PyMem_New(Py_ssize_t, num + 1);
    if (result == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < num; i++) {
        result[i] = PyLong_AsSsize_t(PyList_GET_ITEM(columns, i));
        if (result[i] < 0 || result[i] >= num_weights) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_ValueError, "there is no weight %zd",
                             result[i]);
            }
            PyMem_Free(result);
            return NULL;
        }
    }
    return result;
}

static int
read_header(PyObject *header, struct pprof_header *h)
{
    unsigned long long time_ns, duration_ns, period;
    if (!PyArg_ParseTuple(header, "UKKO!KO!UU", &h->binary, &time_ns,
                          &duration_ns, &PyTuple_Type, &h->period_type,
                          &period, &PyList_Type, &h->comments,
                          &h->default_type, &h->doc_url))
    {
        return -1;
    }
    h->time_ns = time_ns;
    h->duration_ns = duration_ns;
    h->period = period;
    return 0;
}

/*[clinic input]
_profile.encode_pprof

    value_types: object(subclass_of='&PyList_Type')
        Pairs of a type and its unit.
    columns: object(subclass_of='&PyList_Type')
        For each of these, which weight of a sample it is.
    weights: Py_ssize_t
        How many each sample has.
    measures: Py_ssize_t
        How many of these, the first, weigh: a sample that has none of them is
        at a place, but at no instruction.
    functions: object(subclass_of='&PyList_Type')
        (name, place, first line, is it Python)
    labels: object(subclass_of='&PyList_Type')
    threads: object(subclass_of='&PyList_Type')
    states: object(subclass_of='&PyList_Type')
    frames: Py_buffer
    nodes: Py_buffer
    samples: Py_buffer
    header: object(subclass_of='&PyTuple_Type')
        (binary, time, duration, period type, period, comments, default type,
        URL of the documentation)
    opnames: object(subclass_of='&PyList_Type') = NULL
        Names of opcodes; without it instructions are left out.
    /

Return a profile as an encoded pprof message.
[clinic start generated code]*/

static PyObject *
_profile_encode_pprof_impl(PyObject *module, PyObject *value_types,
                           PyObject *columns, Py_ssize_t weights,
                           Py_ssize_t measures, PyObject *functions,
                           PyObject *labels, PyObject *threads,
                           PyObject *states, Py_buffer *frames,
                           Py_buffer *nodes, Py_buffer *samples,
                           PyObject *header, PyObject *opnames)
/*[clinic end generated code: output=c47f96f689911d9b input=28f54edfc1b77dc2]*/
{
    struct pprof_profile profile = {
        .value_types = value_types, .functions = functions,
        .labels = labels, .threads = threads, .states = states,
        .opnames = opnames, .num_columns = PyList_GET_SIZE(columns),
        .num_measures = Py_MIN(measures, weights),
        .t = {
            .num_weights = weights,
            .num_functions = PyList_GET_SIZE(functions),
            .num_labels = PyList_GET_SIZE(labels),
            .num_threads = PyList_GET_SIZE(threads),
            .num_states = PyList_GET_SIZE(states),
        },
    };
    if (check_tuples("a value type", value_types) < 0
        || check_functions(functions) < 0
        || check_tuples("a label", labels) < 0
        || check_tuples("a thread", threads) < 0
        || read_header(header, &profile.header) < 0
        || _PyProfile_CheckTables(&profile.t, frames, nodes, samples) < 0)
    {
        return NULL;
    }
    Py_ssize_t *which = read_columns(columns, weights);
    if (which == NULL) {
        return NULL;
    }
    profile.columns = which;
    PyObject *result = _PyPprof_Encode(&profile);
    PyMem_Free(which);
    return result;
}

/*[clinic input]
_profile.parse_pprof

    read: object
        Returns some bytes more of the message, none at its end.
    limit: size_t
        How many bytes of memory may be used.
    /

Take an encoded pprof message apart.

Columns of the result are of 64 bits.  What one part says of others has not
been looked at.
[clinic start generated code]*/

static PyObject *
_profile_parse_pprof_impl(PyObject *module, PyObject *read, size_t limit)
/*[clinic end generated code: output=a09533693de01fce input=d205bab74e1f9133]*/
{
    struct pprof_budget budget = {limit, limit};
    return _PyPprof_Parse(read, &budget);
}

static int
take_column(const Py_buffer *buffer, Py_ssize_t num_columns,
            const int64_t **column, Py_ssize_t *num)
{
    Py_ssize_t row_bytes = num_columns * (Py_ssize_t)sizeof(int64_t);
    if (buffer->len % row_bytes != 0) {
        PyErr_SetString(PyExc_ValueError,
                        "a column of a message has a broken row");
        return -1;
    }
    *column = buffer->buf;
    *num = buffer->len / row_bytes;
    return 0;
}

/* What _PyPprof_Parse() returns is so; this is for all else. */
static int
is_whole(const struct pprof_message *m)
{
    for (Py_ssize_t i = 0; i < m->num_locations; i++) {
        const int64_t *location = &m->locations[4 * i];
        // A native function may be one that the reader has added.
        if (!is_row(location[2], m->num_lines + 1)
            || !is_row(location[3], m->num_lines - location[2] + 1)
            || m->natives[i] < 0)
        {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < m->num_stacks; i++) {
        if (!is_row(m->stacks[2 * i], i + 1)) {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < m->num_samples; i++) {
        const int64_t *row = &m->samples[(2 + m->num_values) * i];
        if (!is_row(row[0], m->num_stacks + 1)
            || !is_row(row[1], m->num_about))
        {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < m->num_about; i++) {
        if (!is_row(m->about[ABOUT_COLUMNS * i + ABOUT_HOLDER],
                      m->num_holders + 1))
        {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < m->num_columns; i++) {
        // Without samples it is not known how many values they have.
        if (m->num_samples > 0
            && !is_row(m->columns[2 * i], m->num_values))
        {
            return 0;
        }
    }
    return 1;
}

/*[clinic input]
_profile.build_pprof

    functions: Py_buffer
        Their numbers.
    is_python: Py_buffer
        A byte per function.
    locations: Py_buffer
    natives: Py_buffer
        Per location, the function if it has no line.
    lines: Py_buffer
    stacks: Py_buffer
    about: Py_buffer
        Per label set, what it says.
    holders: Py_buffer
        (function, line, callee or -1)
    samples: Py_buffer
    num_values: Py_ssize_t
    columns: Py_buffer
        Per weight, its value and a factor; 0: there is none.
    limit: size_t
    left: size_t
        How many bytes of memory may still be used.
    /

Put the parts of a message together as (frames, nodes, samples).
[clinic start generated code]*/

static PyObject *
_profile_build_pprof_impl(PyObject *module, Py_buffer *functions,
                          Py_buffer *is_python, Py_buffer *locations,
                          Py_buffer *natives, Py_buffer *lines,
                          Py_buffer *stacks, Py_buffer *about,
                          Py_buffer *holders, Py_buffer *samples,
                          Py_ssize_t num_values, Py_buffer *columns,
                          size_t limit, size_t left)
/*[clinic end generated code: output=3d6316db6cfe61db input=106b57a9827baaf3]*/
{
    struct pprof_budget budget = {limit, left};
    struct pprof_message m = {.is_python = is_python->buf,
                              .num_values = num_values};
    Py_ssize_t num_natives;
    if (num_values < 0 || num_values > samples->len) {
        PyErr_Format(PyExc_ValueError, "a sample cannot have %zd values",
                     num_values);
        return NULL;
    }
    if (take_column(functions, 1, &m.functions, &m.num_functions) < 0
        || take_column(locations, 4, &m.locations, &m.num_locations) < 0
        || take_column(natives, 1, &m.natives, &num_natives) < 0
        || take_column(lines, 3, &m.lines, &m.num_lines) < 0
        || take_column(stacks, 2, &m.stacks, &m.num_stacks) < 0
        || take_column(about, ABOUT_COLUMNS, &m.about, &m.num_about) < 0
        || take_column(holders, 3, &m.holders, &m.num_holders) < 0
        || take_column(samples, 2 + num_values, &m.samples,
                       &m.num_samples) < 0
        || take_column(columns, 2, &m.columns, &m.num_columns) < 0)
    {
        return NULL;
    }
    if (is_python->len != m.num_functions || num_natives != m.num_locations
        || !is_whole(&m))
    {
        PyErr_SetString(PyExc_ValueError,
                        "the parts of a message do not fit together");
        return NULL;
    }
    return _PyPprof_Build(&m, &budget);
}

PyMethodDef _PyProfile_PprofMethods[] = {
    _PROFILE_BUILD_PPROF_METHODDEF
    _PROFILE_CHECK_TABLES_METHODDEF
    _PROFILE_ENCODE_PPROF_METHODDEF
    _PROFILE_PARSE_PPROF_METHODDEF
    {NULL, NULL}
};
