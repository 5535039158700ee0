/* pprof files: the message, taken apart.

   What is kept is what the message says, once, and all of it is counted.  Must
   not know what the parts mean to each other: most refer to strings or places
   that may come later. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof_parser.h"

/* A Python string takes so much beside its characters. */
#define STRING_BYTES 80
/* The key of a field and its value or size. */
#define MAX_HEAD_BYTES 20

/* --- Parts of a profile. */

static int
add_string(struct parser *p, struct span span)
{
    size_t size = (size_t)(span.end - span.at);
    if (_PyPprof_Spend(p->budget, STRING_BYTES + 4 * size) < 0) {
        return -1;
    }
    PyObject *text = PyUnicode_DecodeUTF8((const char *)span.at,
                                          (Py_ssize_t)size, NULL);
    if (text == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            return _PyPprof_Fault(p, span.at, "a string is not UTF-8");
        }
        return -1;
    }
    int err = PyList_Append(p->strings, text);
    Py_DECREF(text);
    return err;
}

static int
add_type(struct parser *p, struct span span)
{
    int64_t type[2];
    if (_PyPprof_GetNumbers(p, span, (int[]){1, 2}, type, 2) < 0) {
        return -1;
    }
    return _PyPprof_Append(&p->types, type, 1);
}

/* number, name, file, first line */
static int
add_function(struct parser *p, struct span span)
{
    int64_t function[4];
    if (_PyPprof_GetNumbers(p, span, (int[]){1, 2, 4, 5}, function, 4) < 0) {
        return -1;
    }
    return _PyPprof_Append(&p->functions, function, 1);
}

/* function, line, column */
static int
add_line(struct parser *p, struct span span)
{
    int64_t line[3];
    if (_PyPprof_GetNumbers(p, span, (int[]){1, 2, 3}, line, 3) < 0) {
        return -1;
    }
    return _PyPprof_Append(&p->lines, line, 1);
}

/* number, address, first line and number of lines */
static int
add_location(struct parser *p, struct span span)
{
    int64_t location[4] = {0, 0, (int64_t)p->lines.num, 0};
    struct field field;
    int more;
    while ((more = _PyPprof_GetField(p, &span, &field)) > 0) {
        int wanted = field.number == 4 ? WIRE_BYTES : WIRE_VARINT;
        if (field.number != 1 && field.number != 3 && field.number != 4) {
            continue;
        }
        if (field.wire_type != wanted) {
            return _PyPprof_Fault(p, field.span.at,
                         "a location has a field of the wrong wire type");
        }
        if (field.number == 4) {
            if (add_line(p, field.span) < 0) {
                return -1;
            }
            location[3]++;
        }
        else {
            location[field.number == 1 ? 0 : 1] = (int64_t)field.value;
        }
    }
    return more < 0 ? -1 : _PyPprof_Append(&p->locations, location, 1);
}

/* --- Samples. */

/* Returns the label set with one label more. */
static int64_t
add_label(struct parser *p, int64_t label_set, struct span span)
{
    int64_t label[3];
    if (_PyPprof_GetNumbers(p, span, (int[]){1, 2, 3}, label, 3) < 0) {
        return -1;
    }
    Py_ssize_t row = _PyPprof_Intern(&p->labels, label);
    if (row < 0) {
        return -1;
    }
    return _PyPprof_Child(&p->label_sets, label_set, row);
}

/* The node of the sample's locations, which are leaf first. */
static int64_t
add_stack(struct parser *p)
{
    const int64_t *locations = (const int64_t *)p->sample_locations.items;
    size_t num = p->sample_locations.num;
    const int64_t *last = (const int64_t *)p->last_locations.items;
    const int64_t *nodes = (const int64_t *)p->last_nodes.items;
    size_t depth = 0;
    while (depth < num && depth < p->last_locations.num
           && last[depth] == locations[num - 1 - depth])
    {
        depth++;
    }
    int64_t node = depth > 0 ? nodes[depth - 1] : 0;
    p->last_locations.num = p->last_nodes.num = depth;
    for (; depth < num; depth++) {
        int64_t location = locations[num - 1 - depth];
        node = _PyPprof_Child(&p->stacks, node, location);
        if (node < 0
            || _PyPprof_Append(&p->last_locations, &location, 1) < 0
            || _PyPprof_Append(&p->last_nodes, &node, 1) < 0)
        {
            return -1;
        }
    }
    return node;
}

static int
add_values(struct parser *p, const int64_t *keys, struct span span)
{
    Py_ssize_t num = (Py_ssize_t)p->sample_values.num;
    if (p->num_values < 0) {
        p->num_values = p->types.num > 0 ? (Py_ssize_t)p->types.num : num;
        _PyPprof_InitRows(&p->samples, 2 + (size_t)p->num_values, 2,
                          p->budget);
    }
    if (num != p->num_values) {
        return _PyPprof_Fault(p, span.at, "a sample has %zd values for %zd "
                              "sample types", num, p->num_values);
    }
    Py_ssize_t row = _PyPprof_Intern(&p->samples, keys);
    if (row < 0) {
        return -1;
    }
    int64_t *sums = pprof_row(&p->samples, (size_t)row) + 2;
    const int64_t *values = (const int64_t *)p->sample_values.items;
    for (Py_ssize_t i = 0; i < num; i++) {
        if (__builtin_add_overflow(sums[i], values[i], &sums[i])) {
            return _PyPprof_Fault(p, span.at,
                         "the weight of a stack is beyond 64 bits");
        }
    }
    return 0;
}

static int
add_sample(struct parser *p, struct span span)
{
    struct span whole = span;
    struct field field;
    int64_t label_set = 0;
    int more;
    p->sample_locations.num = p->sample_values.num = 0;
    while ((more = _PyPprof_GetField(p, &span, &field)) > 0) {
        int err = 0;
        switch (field.number) {
        case 1:
            err = _PyPprof_AddNumbers(p, &field, &p->sample_locations);
            break;
        case 2:
            err = _PyPprof_AddNumbers(p, &field, &p->sample_values);
            break;
        case 3:
            if (field.wire_type != WIRE_BYTES) {
                return _PyPprof_Fault(p, field.span.at,
                             "a label has the wrong wire type");
            }
            label_set = add_label(p, label_set, field.span);
            err = label_set < 0 ? -1 : 0;
            break;
        }
        if (err < 0) {
            return -1;
        }
    }
    int64_t node = more < 0 ? -1 : add_stack(p);
    if (node < 0) {
        return -1;
    }
    return add_values(p, (int64_t[]){node, label_set}, whole);
}

/* --- The message. */

static int
add_part(struct parser *p, struct field *field)
{
    switch (field->number) {
    case FIELD_SAMPLE_TYPE:
        return add_type(p, field->span);
    case FIELD_SAMPLE:
        return add_sample(p, field->span);
    case FIELD_LOCATION:
        return add_location(p, field->span);
    case FIELD_FUNCTION:
        return add_function(p, field->span);
    case FIELD_STRING:
        return add_string(p, field->span);
    default:
        return _PyPprof_AddNumbers(p, field, &p->comments);
    }
}

/* One that is a number if it is of interest. */
static int
add_fact(struct parser *p, const struct field *field)
{
    int64_t *fact;
    switch (field->number) {
    case FIELD_TIME_NS:
        fact = &p->time_ns;
        break;
    case FIELD_DURATION_NS:
        fact = &p->duration_ns;
        break;
    case FIELD_PERIOD:
        fact = &p->period;
        break;
    case FIELD_DEFAULT_TYPE:
        fact = &p->default_type;
        break;
    case FIELD_COMMENT:
        return _PyPprof_Append(&p->comments, &field->value, 1);
    default:
        return 0;
    }
    *fact = (int64_t)field->value;
    return 0;
}

static int
is_message(uint64_t number)
{
    return number <= FIELD_STRING;
}

static int
is_number(uint64_t number)
{
    return number == FIELD_TIME_NS || number == FIELD_DURATION_NS
        || number == FIELD_PERIOD || number == FIELD_DEFAULT_TYPE;
}

/* 1: there may be more. */
static int
parse_field(struct parser *p)
{
    struct field field;
    uint64_t size;
    if (_PyPprof_Fill(p, MAX_HEAD_BYTES) < 0) {
        return -1;
    }
    struct span span = _PyPprof_InWindow(p);
    if (span.at == span.end) {
        return 0;
    }
    field.span = span;
    if (_PyPprof_GetFieldHead(p, &span, &field, &size) < 0) {
        return -1;
    }
    if ((is_message(field.number) && field.wire_type != WIRE_BYTES)
        || (is_number(field.number) && field.wire_type != WIRE_VARINT))
    {
        return _PyPprof_WrongType(p, &field);
    }
    p->at = (size_t)(span.at - (const uint8_t *)p->window.items);
    if (field.wire_type == WIRE_VARINT) {
        return add_fact(p, &field) < 0 ? -1 : 1;
    }
    if ((!is_message(field.number) && field.number != FIELD_COMMENT)
        || field.number == FIELD_MAPPING)
    {
        return _PyPprof_Skip(p, size) < 0 ? -1 : 1;
    }
    if (_PyPprof_Fill(p, size) < 0) {
        return -1;
    }
    span = _PyPprof_InWindow(p);
    if ((size_t)(span.end - span.at) < size) {
        return _PyPprof_Fault(p, span.at,
                              "a field is longer than what holds it");
    }
    p->at += size;
    field.span = (struct span){span.at, span.at + size};
    return add_part(p, &field) < 0 ? -1 : 1;
}

/* --- The result. */

/* The bytes stay in use, the array does not. */
static PyObject *
take_array(struct pprof_array *array)
{
    PyObject *bytes = NULL;
    if (_PyPprof_Spend(array->budget, array->num * array->item_bytes) == 0) {
        bytes = _PyPprof_ArrayBytes(array);
    }
    _PyPprof_FreeArray(array);
    return bytes;
}

static PyObject *
take_rows(struct pprof_rows *rows)
{
    _PyPprof_FreeSlots(rows);
    return take_array(&rows->cells);
}

/* Columns are of int64_t. */
static PyObject *
result_of(struct parser *p)
{
    PyObject *result = Py_BuildValue(
        "{s:O,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:n,s:L,s:L,s:L,s:L}",
        "strings", p->strings,
        "types", take_array(&p->types),
        "functions", take_array(&p->functions),
        "locations", take_array(&p->locations),
        "lines", take_array(&p->lines),
        "comments", take_array(&p->comments),
        "stacks", take_rows(&p->stacks),
        "labels", take_rows(&p->labels),
        "label_sets", take_rows(&p->label_sets),
        "samples", take_rows(&p->samples),
        "num_values", p->num_values,
        "time_ns", (long long)p->time_ns,
        "duration_ns", (long long)p->duration_ns,
        "period", (long long)p->period,
        "default_type", (long long)p->default_type);
    PyObject *left = PyLong_FromSize_t(p->budget->left);
    if (result != NULL
        && (left == NULL || PyDict_SetItemString(result, "left", left) < 0))
    {
        Py_CLEAR(result);
    }
    Py_XDECREF(left);
    return result;
}

static void
init_array(struct parser *p, struct pprof_array *array, size_t item_bytes)
{
    array->item_bytes = item_bytes;
    array->budget = p->budget;
}

PyObject *
_PyPprof_Parse(PyObject *read, struct pprof_budget *budget)
{
    struct parser p = {.read = read, .budget = budget, .num_values = -1};
    init_array(&p, &p.window, 1);
    init_array(&p, &p.types, 2 * sizeof(int64_t));
    init_array(&p, &p.functions, 4 * sizeof(int64_t));
    init_array(&p, &p.locations, 4 * sizeof(int64_t));
    init_array(&p, &p.lines, 3 * sizeof(int64_t));
    init_array(&p, &p.comments, sizeof(int64_t));
    init_array(&p, &p.sample_locations, sizeof(int64_t));
    init_array(&p, &p.sample_values, sizeof(int64_t));
    init_array(&p, &p.last_locations, sizeof(int64_t));
    init_array(&p, &p.last_nodes, sizeof(int64_t));
    _PyPprof_InitRows(&p.stacks, 2, 2, budget);
    _PyPprof_InitRows(&p.labels, 3, 3, budget);
    _PyPprof_InitRows(&p.label_sets, 2, 2, budget);
    _PyPprof_InitRows(&p.samples, 2, 2, budget);
    p.stacks.is_tree = p.label_sets.is_tree = 1;
    p.strings = PyList_New(0);
    int more = p.strings != NULL ? 1 : -1;
    while (more > 0) {
        more = parse_field(&p);
    }
    _PyPprof_FreeArray(&p.window);
    PyObject *result = more == 0 ? result_of(&p) : NULL;
    struct pprof_array *arrays[] = {
        &p.window, &p.types, &p.functions, &p.locations, &p.lines,
        &p.comments, &p.sample_locations, &p.sample_values,
        &p.last_locations, &p.last_nodes};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(arrays); i++) {
        _PyPprof_FreeArray(arrays[i]);
    }
    struct pprof_rows *rows[] = {&p.stacks, &p.labels, &p.label_sets,
                                 &p.samples};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++) {
        _PyPprof_FreeRows(rows[i]);
    }
    Py_XDECREF(p.strings);
    return result;
}
