/* pprof files: the parts of a message, put together as packed tables.

   Owns how locations become frames and nodes.  The parts come from a file:
   what they refer to may not exist. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof.h"

struct builder {
    const struct pprof_message *m;
    struct pprof_budget *budget;
    struct pprof_rows function_numbers;
    struct pprof_rows location_numbers;
    struct pprof_rows frames;       // function, line, column, offset, opcode
    struct pprof_rows nodes;        // parent, frame; node 0 has no row
    struct pprof_rows samples;      // as in packed tables
    // Frames of each location, root first.
    struct pprof_array location_frames;
    int64_t *first_frame;           // per location; one more than there are
    // Per stack of the message, node 0 included: its location, whether a
    // sample or another stack needs it, and its node.
    uint32_t *location;
    char *is_needed;
    uint32_t *node;
    int64_t *holder_nodes;
};

static int
broken(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(PyExc_ValueError, format, args);
    va_end(args);
    return -1;
}

static void *
new_zeros(struct builder *b, size_t num, size_t item_bytes)
{
    if (_PyPprof_Spend(b->budget, (num + 1) * item_bytes) < 0) {
        return NULL;
    }
    void *items = PyMem_RawCalloc(num + 1, item_bytes);
    if (items == NULL) {
        PyErr_NoMemory();
    }
    return items;
}

/* --- Functions, locations, frames. */

/* Numbers that are found again, each there once. */
static int
add_number(struct pprof_rows *rows, int64_t number, const char *what)
{
    if (number == 0) {
        return broken("a %s has number 0", what);
    }
    size_t known = rows->cells.num;
    Py_ssize_t row = _PyPprof_Intern(rows, &number);
    if (row < 0) {
        return -1;
    }
    if ((size_t)row != known) {
        return broken("two %ss have number %llu", what,
                      (unsigned long long)number);
    }
    return 0;
}

/* -1: it does not exist, and an exception is set. */
static Py_ssize_t
find_number(struct pprof_rows *rows, int64_t number, const char *what)
{
    size_t known = rows->cells.num;
    Py_ssize_t row = _PyPprof_Intern(rows, &number);
    if (row >= 0 && (size_t)row == known) {
        return broken("refers to %s %llu, which does not exist", what,
                      (unsigned long long)number);
    }
    return row;
}

static int
is_place(int64_t line, int64_t column)
{
    return line >= 0 && line <= INT32_MAX
        && column >= 0 && column <= INT32_MAX;
}

static Py_ssize_t
add_frame(struct builder *b, int64_t function, int64_t line, int64_t column,
          int64_t offset, int64_t opcode)
{
    int64_t keys[] = {function, line, column, offset, opcode};
    return _PyPprof_Intern(&b->frames, keys);
}

static int
add_location_frame(struct builder *b, Py_ssize_t frame)
{
    int64_t item = frame;
    return frame < 0 ? -1 : _PyPprof_Append(&b->location_frames, &item, 1);
}

/* Calls that were inlined have a line each, the innermost first. */
static int
add_location(struct builder *b, Py_ssize_t index)
{
    const int64_t *location = &b->m->locations[4 * index];
    if (add_number(&b->location_numbers, location[0], "location") < 0) {
        return -1;
    }
    b->first_frame[index] = (int64_t)b->location_frames.num;
    if (location[3] == 0) {
        return add_location_frame(
            b, add_frame(b, b->m->natives[index], 0, 0, -1, 0));
    }
    for (int64_t i = location[2] + location[3] - 1; i >= location[2]; i--) {
        const int64_t *line = &b->m->lines[3 * i];
        Py_ssize_t function =
            find_number(&b->function_numbers, line[0], "function");
        if (function < 0) {
            return -1;
        }
        if (!is_place(line[1], line[2])) {
            return broken("a location has line %lld, column %lld",
                          (long long)line[1], (long long)line[2]);
        }
        if (add_location_frame(
                b, add_frame(b, function, line[1], line[2], -1, 0)) < 0)
        {
            return -1;
        }
    }
    return 0;
}

static int
add_places(struct builder *b)
{
    const struct pprof_message *m = b->m;
    for (Py_ssize_t i = 0; i < m->num_functions; i++) {
        if (add_number(&b->function_numbers, m->functions[i],
                       "function") < 0)
        {
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < m->num_locations; i++) {
        if (add_location(b, i) < 0) {
            return -1;
        }
    }
    b->first_frame[m->num_locations] = (int64_t)b->location_frames.num;
    for (Py_ssize_t stack = 1; stack <= m->num_stacks; stack++) {
        Py_ssize_t location = find_number(
            &b->location_numbers, m->stacks[2 * (stack - 1) + 1],
            "location");
        if (location < 0) {
            return -1;
        }
        b->location[stack] = (uint32_t)location;
    }
    return 0;
}

/* --- Nodes. */

static size_t
caller_of(const struct builder *b, size_t stack)
{
    return (size_t)b->m->stacks[2 * (stack - 1)];
}

static int64_t
innermost_frame(const struct builder *b, size_t location)
{
    return ((const int64_t *)b->location_frames.items)[
        b->first_frame[location + 1] - 1];
}

static int
is_python(const struct builder *b, size_t stack)
{
    int64_t frame = innermost_frame(b, b->location[stack]);
    int64_t function = pprof_row(&b->frames, (size_t)frame)[0];
    return function < b->m->num_functions && b->m->is_python[function];
}

static const int64_t *
about_sample(const struct builder *b, Py_ssize_t sample)
{
    const int64_t *row = &b->m->samples[(2 + b->m->num_values) * sample];
    return &b->m->about[ABOUT_COLUMNS * row[1]];
}

static int
has_instruction(const int64_t *about)
{
    return about[ABOUT_OFFSET] >= 0 || about[ABOUT_OPCODE] != 0;
}

/* The innermost stack of Python that a stack is in: an instruction is its.
   0: none. */
static size_t
python_stack(const struct builder *b, size_t stack)
{
    while (stack != 0 && !is_python(b, stack)) {
        stack = caller_of(b, stack);
    }
    return stack;
}

static void
mark_needed(struct builder *b)
{
    const struct pprof_message *m = b->m;
    for (Py_ssize_t i = 0; i < m->num_samples; i++) {
        size_t stack = (size_t)m->samples[(2 + m->num_values) * i];
        if (has_instruction(about_sample(b, i))) {
            size_t python = python_stack(b, stack);
            stack = python != 0 ? caller_of(b, python) : stack;
        }
        b->is_needed[stack] = 1;
    }
    for (Py_ssize_t stack = m->num_stacks; stack > 0; stack--) {
        if (b->is_needed[stack]) {
            b->is_needed[caller_of(b, (size_t)stack)] = 1;
        }
    }
}

/* The node of a location called from another node.  `about`: the instruction
   that its innermost call had come to, or NULL. */
static int64_t
add_location_node(struct builder *b, int64_t node, size_t location,
                  const int64_t *about)
{
    const int64_t *frames = (const int64_t *)b->location_frames.items;
    int64_t last = b->first_frame[location + 1] - 1;
    // Inlined calls make much work of few bytes: that is bounded, too.
    if (_PyPprof_Spend(b->budget,
                       (size_t)(last - b->first_frame[location])) < 0)
    {
        return -1;
    }
    for (int64_t i = b->first_frame[location]; i <= last && node >= 0; i++) {
        int64_t frame = frames[i];
        if (i == last && about != NULL) {
            const int64_t *place = pprof_row(&b->frames, (size_t)frame);
            frame = add_frame(b, place[0], place[1], place[2],
                              about[ABOUT_OFFSET], about[ABOUT_OPCODE]);
            if (frame < 0) {
                return -1;
            }
        }
        node = _PyPprof_Child(&b->nodes, node, frame);
    }
    return node;
}

static int
add_nodes(struct builder *b)
{
    for (Py_ssize_t stack = 1; stack <= b->m->num_stacks; stack++) {
        if (b->is_needed[stack]) {
            int64_t node = add_location_node(
                b, b->node[caller_of(b, (size_t)stack)], b->location[stack],
                NULL);
            if (node < 0) {
                return -1;
            }
            b->node[stack] = (uint32_t)node;
        }
    }
    for (Py_ssize_t i = 0; i < b->m->num_holders; i++) {
        const int64_t *holder = &b->m->holders[3 * i];
        Py_ssize_t frame = add_frame(b, holder[0], holder[1], 0, -1, 0);
        int64_t node = frame < 0 ? -1 : _PyPprof_Child(&b->nodes, 0, frame);
        if (node >= 0 && holder[2] >= 0) {
            frame = add_frame(b, holder[2], 0, 0, -1, 0);
            node = frame < 0 ? -1 : _PyPprof_Child(&b->nodes, node, frame);
        }
        if (node < 0) {
            return -1;
        }
        b->holder_nodes[i] = node;
    }
    return 0;
}

/* --- Samples. */

/* What is above an instruction differs with it; that is few frames. */
static int64_t
node_of_sample(struct builder *b, size_t stack, const int64_t *about)
{
    size_t python = has_instruction(about) ? python_stack(b, stack) : 0;
    if (python == 0) {
        return b->node[stack];
    }
    struct pprof_array path = {.item_bytes = sizeof(size_t),
                               .budget = b->budget};
    int err = 0;
    for (size_t at = stack; at != python && err == 0; at = caller_of(b, at)) {
        err = _PyPprof_Append(&path, &at, 1);
    }
    int64_t node = err < 0 ? -1 : add_location_node(
        b, b->node[caller_of(b, python)], b->location[python], about);
    while (path.num > 0 && node >= 0) {
        size_t above = ((size_t *)path.items)[--path.num];
        node = add_location_node(b, node, b->location[above], NULL);
    }
    _PyPprof_FreeArray(&path);
    return node;
}

static int
add_sample(struct builder *b, Py_ssize_t index)
{
    const struct pprof_message *m = b->m;
    const int64_t *row = &m->samples[(2 + m->num_values) * index];
    const int64_t *about = about_sample(b, index);
    int64_t node = node_of_sample(b, (size_t)row[0], about);
    if (node < 0) {
        return -1;
    }
    int64_t holder = about[ABOUT_HOLDER];
    int64_t keys[KEY_COLUMNS] = {
        node, about[ABOUT_THREAD], about[ABOUT_LABELS], about[ABOUT_STATE],
        about[ABOUT_HOLDER_THREAD],
        holder != 0 ? b->holder_nodes[holder - 1] : 0};
    Py_ssize_t sample = _PyPprof_Intern(&b->samples, keys);
    if (sample < 0) {
        return -1;
    }
    int64_t *weights = pprof_row(&b->samples, (size_t)sample) + KEY_COLUMNS;
    for (Py_ssize_t i = 0; i < m->num_columns; i++) {
        int64_t column = m->columns[2 * i], factor = m->columns[2 * i + 1];
        int64_t weight;
        if (factor != 0
            && (__builtin_mul_overflow(row[2 + column], factor, &weight)
                || __builtin_add_overflow(weights[i], weight, &weights[i])))
        {
            return broken("the weight of a stack is beyond 64 bits");
        }
    }
    return 0;
}

/* --- The result. */

/* Rows as columns of int32_t or uint32_t. */
static PyObject *
narrow_bytes(struct builder *b, const struct pprof_rows *rows, size_t first)
{
    size_t num = rows->cells.num * rows->num_columns;
    size_t bytes = (first + num) * sizeof(int32_t);
    if (_PyPprof_Spend(b->budget, bytes) < 0) {
        return NULL;
    }
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (result != NULL) {
        int32_t *out = (int32_t *)PyBytes_AS_STRING(result);
        memset(out, 0, first * sizeof(int32_t));
        const int64_t *cells = (const int64_t *)rows->cells.items;
        for (size_t i = 0; i < num; i++) {
            out[first + i] = (int32_t)cells[i];
        }
    }
    return result;
}

static PyObject *
result_of(struct builder *b)
{
    // Nodes and frames have numbers of 32 bits.
    if (b->nodes.cells.num >= UINT32_MAX
        || b->frames.cells.num >= INT32_MAX)
    {
        return PyErr_NoMemory();
    }
    PyObject *frames = narrow_bytes(b, &b->frames, 0);
    PyObject *nodes = narrow_bytes(b, &b->nodes, NODE_COLUMNS);
    PyObject *samples = NULL;
    if (_PyPprof_Spend(b->budget, b->samples.cells.num
                                  * b->samples.cells.item_bytes) == 0)
    {
        samples = _PyPprof_ArrayBytes(&b->samples.cells);
    }
    if (frames == NULL || nodes == NULL || samples == NULL) {
        Py_XDECREF(frames);
        Py_XDECREF(nodes);
        Py_XDECREF(samples);
        return NULL;
    }
    return Py_BuildValue("(NNN)", frames, nodes, samples);
}

static int
init_builder(struct builder *b)
{
    const struct pprof_message *m = b->m;
    _PyPprof_InitRows(&b->function_numbers, 1, 1, b->budget);
    _PyPprof_InitRows(&b->location_numbers, 1, 1, b->budget);
    _PyPprof_InitRows(&b->frames, FRAME_COLUMNS, FRAME_COLUMNS, b->budget);
    _PyPprof_InitRows(&b->nodes, NODE_COLUMNS, NODE_COLUMNS, b->budget);
    b->nodes.is_tree = 1;
    _PyPprof_InitRows(&b->samples, KEY_COLUMNS + (size_t)m->num_columns,
                      KEY_COLUMNS, b->budget);
    b->location_frames.item_bytes = sizeof(int64_t);
    b->location_frames.budget = b->budget;
    size_t num_stacks = (size_t)m->num_stacks;
    b->first_frame = new_zeros(b, (size_t)m->num_locations, sizeof(int64_t));
    b->location = new_zeros(b, num_stacks, sizeof(uint32_t));
    b->is_needed = new_zeros(b, num_stacks, 1);
    b->node = new_zeros(b, num_stacks, sizeof(uint32_t));
    b->holder_nodes = new_zeros(b, (size_t)m->num_holders, sizeof(int64_t));
    return PyErr_Occurred() ? -1 : 0;
}

static void
free_builder(struct builder *b)
{
    struct pprof_rows *rows[] = {
        &b->function_numbers, &b->location_numbers, &b->frames, &b->nodes,
        &b->samples};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++) {
        _PyPprof_FreeRows(rows[i]);
    }
    _PyPprof_FreeArray(&b->location_frames);
    PyMem_RawFree(b->first_frame);
    PyMem_RawFree(b->location);
    PyMem_RawFree(b->is_needed);
    PyMem_RawFree(b->node);
    PyMem_RawFree(b->holder_nodes);
}

static int
build(struct builder *b)
{
    if (add_places(b) < 0) {
        return -1;
    }
    mark_needed(b);
    if (add_nodes(b) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < b->m->num_samples; i++) {
        if (add_sample(b, i) < 0) {
            return -1;
        }
    }
    _PyPprof_FreeSlots(&b->nodes);
    _PyPprof_FreeSlots(&b->samples);
    return 0;
}

PyObject *
_PyPprof_Build(const struct pprof_message *message,
               struct pprof_budget *budget)
{
    struct builder b = {.m = message, .budget = budget};
    PyObject *result = NULL;
    if (init_builder(&b) == 0 && build(&b) == 0) {
        result = result_of(&b);
    }
    free_builder(&b);
    return result;
}
