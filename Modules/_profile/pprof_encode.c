/* pprof files: the message, written.

   Owns which rows of the tables are one Sample or one Location of a file.
   What the fields mean is in Lib/profile_sampling/_formats/pprof/writer.py,
   which chooses the names. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof_encoder.h"

static size_t
varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (value > 127) {
        value >>= 7;
        bytes++;
    }
    return bytes;
}

/* --- Places. */

/* Frames differ also in what pprof lacks. */
static int
number_locations(struct encoder *e)
{
    const struct pprof_profile *p = e->profile;
    for (Py_ssize_t frame = 0; frame < p->t.num_frames; frame++) {
        const int32_t *f = &p->t.frames[FRAME_COLUMNS * frame];
        int64_t keys[] = {f[0], f[1], f[2]};
        Py_ssize_t location = _PyPprof_Intern(&e->locations, keys);
        if (location < 0) {
            return -1;
        }
        e->location_of_frame[frame] = (uint32_t)location + 1;
        e->frames_at[location + 1]++;
    }
    return 0;
}

/* Of nodes that are the same to pprof, the first counts.  They have the same
   location, from frames that differ, or callers of which that is true: all
   others need not be looked for. */
static int
number_stack(struct encoder *e, struct pprof_rows *stacks, Py_ssize_t node)
{
    const uint32_t *row = &e->profile->t.nodes[NODE_COLUMNS * node];
    uint32_t parent = e->same_stack[row[0]];
    uint32_t location = e->location_of_frame[row[1]];
    e->same_stack[node] = (uint32_t)node;
    e->has_doubles[node] =
        e->has_doubles[parent] || e->frames_at[location] > 1;
    if (!e->has_doubles[node]) {
        return 0;
    }
    int64_t keys[] = {parent, location};
    size_t known = stacks->cells.num;
    Py_ssize_t stack = _PyPprof_Intern(stacks, keys);
    if (stack < 0) {
        return -1;
    }
    if ((size_t)stack == known) {
        pprof_row(stacks, stack)[2] = node;
    }
    e->same_stack[node] = (uint32_t)pprof_row(stacks, stack)[2];
    return 0;
}

/* Callers come before what they call. */
static int
number_stacks(struct encoder *e)
{
    const struct packed_tables *t = &e->profile->t;
    struct pprof_rows stacks;
    _PyPprof_InitRows(&stacks, 3, 2, NULL);
    e->python_frame[0] = -1;
    Py_ssize_t node = 1;
    for (; node < t->num_nodes; node++) {
        if (number_stack(e, &stacks, node) < 0) {
            break;
        }
        uint32_t parent = t->nodes[NODE_COLUMNS * node];
        uint32_t frame = t->nodes[NODE_COLUMNS * node + 1];
        e->stack_bytes[node] = e->stack_bytes[parent]
            + varint_bytes(e->location_of_frame[frame]);
        e->python_frame[node] =
            _PyPprof_IsPython(e, t->frames[FRAME_COLUMNS * frame])
            ? (int32_t)frame : e->python_frame[parent];
    }
    _PyPprof_FreeRows(&stacks);
    return node < t->num_nodes ? -1 : 0;
}

static int
put_locations(struct encoder *e)
{
    for (size_t row = 0; row < e->locations.cells.num; row++) {
        const int64_t *place = pprof_row(&e->locations, row);
        e->label.num = 0;
        if (_PyPprof_PutNumber(&e->label, 1, (uint64_t)place[0] + 1) < 0
            || _PyPprof_PutNumber(&e->label, 2, (uint64_t)place[1]) < 0
            || _PyPprof_PutNumber(&e->label, 3, (uint64_t)place[2]) < 0
            || _PyPprof_PutNumber(&e->scratch, 1, row + 1) < 0
            || _PyPprof_PutNumber(&e->scratch, 2, 1) < 0
            || _PyPprof_PutPayload(&e->scratch, 4, e->label.items,
                                   e->label.num) < 0
            || _PyPprof_PutScratch(e, FIELD_LOCATION) < 0)
        {
            return -1;
        }
    }
    return 0;
}

static int
put_functions(struct encoder *e)
{
    PyObject *functions = e->profile->functions;
    for (Py_ssize_t row = 0; row < PyList_GET_SIZE(functions); row++) {
        PyObject *function = PyList_GET_ITEM(functions, row);
        uint64_t first_line = PyLong_AsUnsignedLongLongMask(
            PyTuple_GET_ITEM(function, 2));
        if (PyErr_Occurred()
            || _PyPprof_PutNumber(&e->scratch, 1, (uint64_t)row + 1) < 0
            || _PyPprof_PutString(e, &e->scratch, 2,
                                  PyTuple_GET_ITEM(function, 0)) < 0
            || _PyPprof_PutString(e, &e->scratch, 4,
                                  PyTuple_GET_ITEM(function, 1)) < 0
            || _PyPprof_PutNumber(&e->scratch, 5, first_line) < 0
            || _PyPprof_PutScratch(e, FIELD_FUNCTION) < 0)
        {
            return -1;
        }
    }
    return 0;
}

/* --- Samples. */

static int
weighs(const struct pprof_profile *p, const int64_t *row)
{
    for (Py_ssize_t i = 0; i < p->num_measures; i++) {
        if (row[KEY_COLUMNS + i] != 0) {
            return 1;
        }
    }
    return 0;
}

/* What labels say of the instruction of a sample.  A place that only stands for
   samples below it is told apart by its line, as all their callers are. */
static int
instruction_keys(struct encoder *e, const int64_t *row, int64_t *keys)
{
    const struct pprof_profile *p = e->profile;
    int32_t frame = e->python_frame[row[0]];
    keys[KEY_OPNAME] = 0;
    keys[KEY_OFFSET] = -1;
    if (p->opnames == NULL || frame < 0 || !weighs(p, row)) {
        return 0;
    }
    const int32_t *f = &p->t.frames[FRAME_COLUMNS * frame];
    if (f[3] >= 0) {
        keys[KEY_OFFSET] = f[3];
    }
    // An opcode has a byte.
    PyObject *name = f[4] > 0 && f[4] < PyList_GET_SIZE(p->opnames)
        ? PyList_GET_ITEM(p->opnames, f[4]) : Py_None;
    if (name != Py_None) {
        keys[KEY_OPNAME] = _PyPprof_StringNumber(e, name);
    }
    return keys[KEY_OPNAME] < 0 ? -1 : 0;
}

static int
sample_keys(struct encoder *e, const int64_t *row, int64_t *keys)
{
    int64_t node = row[0], thread = row[1], holder_node = row[5];
    keys[KEY_STACK] = e->same_stack[node];
    keys[KEY_THREAD] = thread;
    keys[KEY_STATE] = row[3];
    keys[KEY_HOLDER_THREAD] = keys[KEY_HOLDER] = -1;
    keys[KEY_LABELS] = _PyPprof_Piece(e, PIECE_LABELS, row[2]);
    if (keys[KEY_LABELS] < 0
        || _PyPprof_Piece(e, PIECE_THREAD, thread) < 0
        || _PyPprof_Piece(e, PIECE_STATE, row[3]) < 0)
    {
        return -1;
    }
    if (holder_node != 0) {
        keys[KEY_HOLDER] = _PyPprof_Piece(e, PIECE_HOLDER, holder_node);
        keys[KEY_HOLDER_THREAD] = row[4];
        if (keys[KEY_HOLDER] < 0
            || (row[4] >= 0
                && _PyPprof_Piece(e, PIECE_HOLDER_THREAD, row[4]) < 0))
        {
            return -1;
        }
    }
    return instruction_keys(e, row, keys);
}

static int
sum_samples(struct encoder *e)
{
    const struct pprof_profile *p = e->profile;
    Py_ssize_t width = KEY_COLUMNS + p->t.num_weights;
    for (Py_ssize_t i = 0; i < p->t.num_samples; i++) {
        const int64_t *row = &p->t.samples[width * i];
        int64_t keys[NUM_KEYS];
        if (sample_keys(e, row, keys) < 0) {
            return -1;
        }
        Py_ssize_t sample = _PyPprof_Intern(&e->samples, keys);
        if (sample < 0) {
            return -1;
        }
        int64_t *sums = pprof_row(&e->samples, sample) + NUM_KEYS;
        for (Py_ssize_t w = 0; w < p->t.num_weights; w++) {
            // The weights of all samples together fit.
            sums[w] += row[KEY_COLUMNS + w];
        }
    }
    return 0;
}

/* The numbers of a stack's locations, leaf first. */
static int
put_stack(struct encoder *e, Py_ssize_t node)
{
    const uint32_t *nodes = e->profile->t.nodes;
    struct pprof_array *out = &e->scratch;
    if (_PyPprof_PutVarint(out, 1 << 3 | WIRE_BYTES) < 0
        || _PyPprof_PutVarint(out, e->stack_bytes[node]) < 0
        || _PyPprof_Reserve(out, e->stack_bytes[node]) < 0)
    {
        return -1;
    }
    char *at = out->items + out->num;
    for (; node != 0; node = nodes[NODE_COLUMNS * node]) {
        uint32_t location =
            e->location_of_frame[nodes[NODE_COLUMNS * node + 1]];
        while (location > 127) {
            *at++ = (char)((location & 127) | 128);
            location >>= 7;
        }
        *at++ = (char)location;
    }
    out->num = (size_t)(at - out->items);
    return 0;
}

static int
put_values(struct encoder *e, const int64_t *sums)
{
    const Py_ssize_t num = e->profile->num_columns;
    size_t bytes = 0;
    for (Py_ssize_t i = 0; i < num; i++) {
        bytes += varint_bytes((uint64_t)sums[e->profile->columns[i]]);
    }
    if (_PyPprof_PutVarint(&e->scratch, 2 << 3 | WIRE_BYTES) < 0
        || _PyPprof_PutVarint(&e->scratch, bytes) < 0)
    {
        return -1;
    }
    for (Py_ssize_t i = 0; i < num; i++) {
        uint64_t value = (uint64_t)sums[e->profile->columns[i]];
        if (_PyPprof_PutVarint(&e->scratch, value) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
put_samples(struct encoder *e)
{
    for (size_t i = 0; i < e->samples.cells.num; i++) {
        const int64_t *row = pprof_row(&e->samples, i);
        if ((row[KEY_STACK] != 0 && put_stack(e, row[KEY_STACK]) < 0)
            || put_values(e, row + NUM_KEYS) < 0
            || _PyPprof_PutSampleLabels(e, row) < 0
            || _PyPprof_PutScratch(e, FIELD_SAMPLE) < 0)
        {
            return -1;
        }
    }
    return 0;
}

/* --- The rest. */

static int
put_type(struct encoder *e, int field, PyObject *type)
{
    PyObject *name, *unit;
    e->label.num = 0;
    if (!PyArg_ParseTuple(type, "UU", &name, &unit)
        || _PyPprof_PutString(e, &e->label, 1, name) < 0
        || _PyPprof_PutString(e, &e->label, 2, unit) < 0)
    {
        return -1;
    }
    return _PyPprof_PutPayload(&e->scratch, field, e->label.items,
                               e->label.num);
}

static int
put_types(struct encoder *e)
{
    PyObject *types = e->profile->value_types;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
        if (put_type(e, FIELD_SAMPLE_TYPE, PyList_GET_ITEM(types, i)) < 0) {
            return -1;
        }
    }
    int err = _PyPprof_Append(&e->out, e->scratch.items, e->scratch.num);
    e->scratch.num = 0;
    return err;
}

/* One mapping that says that names are complete: else pprof looks for the
   binary to find them. */
static int
put_mapping(struct encoder *e, PyObject *binary)
{
    if (_PyPprof_PutNumber(&e->scratch, 1, 1) < 0
        || _PyPprof_PutString(e, &e->scratch, 5, binary) < 0
        || _PyPprof_PutNumber(&e->scratch, 7, 1) < 0
        || _PyPprof_PutNumber(&e->scratch, 8, 1) < 0
        || _PyPprof_PutNumber(&e->scratch, 9, 1) < 0)
    {
        return -1;
    }
    return _PyPprof_PutScratch(e, FIELD_MAPPING);
}

/* Packed, as proto3 has repeated numbers. */
static int
put_comments(struct encoder *e, struct pprof_array *out, PyObject *comments)
{
    struct pprof_array numbers = {
        .item_bytes = 1, .budget = e->scratch.budget};
    int err = 0;
    for (Py_ssize_t i = 0; err == 0 && i < PyList_GET_SIZE(comments); i++) {
        int64_t number =
            _PyPprof_StringNumber(e, PyList_GET_ITEM(comments, i));
        err = number < 0 ? -1
            : _PyPprof_PutVarint(&numbers, (uint64_t)number);
    }
    if (err == 0 && numbers.num > 0) {
        err = _PyPprof_PutPayload(out, FIELD_COMMENT, numbers.items,
                                  numbers.num);
    }
    _PyPprof_FreeArray(&numbers);
    return err;
}

/* What comes after the strings, into scratch. */
static int
put_facts(struct encoder *e)
{
    const struct pprof_header *h = &e->profile->header;
    struct pprof_array *out = &e->scratch;
    if (_PyPprof_PutNumber(out, FIELD_TIME_NS, h->time_ns) < 0
        || _PyPprof_PutNumber(out, FIELD_DURATION_NS, h->duration_ns) < 0
        || put_type(e, FIELD_PERIOD_TYPE, h->period_type) < 0
        || _PyPprof_PutNumber(out, FIELD_PERIOD, h->period) < 0)
    {
        return -1;
    }
    if (put_comments(e, out, h->comments) < 0
        || _PyPprof_PutString(e, out, FIELD_DEFAULT_TYPE,
                              h->default_type) < 0)
    {
        return -1;
    }
    return _PyPprof_PutString(e, out, FIELD_DOC_URL, h->doc_url);
}

static int
put_message(struct encoder *e)
{
    PyObject *nothing = PyUnicode_New(0, 0);
    int64_t zero = nothing != NULL ? _PyPprof_StringNumber(e, nothing) : -1;
    Py_XDECREF(nothing);
    if (zero < 0
        || put_types(e) < 0
        || number_locations(e) < 0
        || number_stacks(e) < 0
        || sum_samples(e) < 0
        || put_samples(e) < 0
        || put_mapping(e, e->profile->header.binary) < 0
        || put_locations(e) < 0
        || put_functions(e) < 0
        || put_facts(e) < 0
        || _PyPprof_PutStrings(e) < 0)
    {
        return -1;
    }
    return _PyPprof_Append(&e->out, e->scratch.items, e->scratch.num);
}

/* --- Memory. */

static int
init_pieces(struct encoder *e)
{
    const struct pprof_profile *p = e->profile;
    const Py_ssize_t num_rows[NUM_PIECE_KINDS] = {
        [PIECE_LABELS] = PyList_GET_SIZE(p->labels),
        [PIECE_THREAD] = PyList_GET_SIZE(p->threads),
        [PIECE_STATE] = PyList_GET_SIZE(p->states),
        [PIECE_HOLDER_THREAD] = PyList_GET_SIZE(p->threads),
        [PIECE_HOLDER] = p->t.num_nodes,
    };
    for (int kind = 0; kind < NUM_PIECE_KINDS; kind++) {
        size_t num = (size_t)num_rows[kind];
        int64_t *pieces = PyMem_RawMalloc(num * sizeof(int64_t) + 1);
        if (pieces == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < num; i++) {
            pieces[i] = -1;
        }
        e->piece_of[kind] = pieces;
    }
    return 0;
}

static int
init_encoder(struct encoder *e)
{
    const struct pprof_profile *p = e->profile;
    e->out.item_bytes = e->scratch.item_bytes = e->label.item_bytes = 1;
    e->pieces.bytes.item_bytes = 1;
    e->pieces.starts.item_bytes = sizeof(size_t);
    _PyPprof_InitRows(&e->locations, 3, 3, NULL);
    _PyPprof_InitRows(&e->samples, NUM_KEYS + (size_t)p->t.num_weights,
                      NUM_KEYS, NULL);
    size_t num_nodes = (size_t)p->t.num_nodes;
    e->location_of_frame =
        PyMem_RawCalloc((size_t)p->t.num_frames + 1, sizeof(uint32_t));
    e->frames_at = PyMem_RawCalloc((size_t)p->t.num_frames + 1,
                                   sizeof(uint32_t));
    e->has_doubles = PyMem_RawCalloc(num_nodes, 1);
    e->same_stack = PyMem_RawCalloc(num_nodes, sizeof(uint32_t));
    e->stack_bytes = PyMem_RawCalloc(num_nodes, sizeof(uint64_t));
    e->python_frame = PyMem_RawCalloc(num_nodes, sizeof(int32_t));
    e->strings = PyDict_New();
    e->known_pieces = PyDict_New();
    if (e->location_of_frame == NULL || e->frames_at == NULL
        || e->has_doubles == NULL || e->same_stack == NULL
        || e->stack_bytes == NULL || e->python_frame == NULL)
    {
        PyErr_NoMemory();
        return -1;
    }
    if (e->strings == NULL || e->known_pieces == NULL) {
        return -1;
    }
    return init_pieces(e);
}

static void
free_encoder(struct encoder *e)
{
    _PyPprof_FreeArray(&e->out);
    _PyPprof_FreeArray(&e->scratch);
    _PyPprof_FreeArray(&e->label);
    _PyPprof_FreeArray(&e->pieces.bytes);
    _PyPprof_FreeArray(&e->pieces.starts);
    _PyPprof_FreeRows(&e->locations);
    _PyPprof_FreeRows(&e->samples);
    PyMem_RawFree(e->location_of_frame);
    PyMem_RawFree(e->frames_at);
    PyMem_RawFree(e->has_doubles);
    PyMem_RawFree(e->same_stack);
    PyMem_RawFree(e->stack_bytes);
    PyMem_RawFree(e->python_frame);
    for (int kind = 0; kind < NUM_PIECE_KINDS; kind++) {
        PyMem_RawFree(e->piece_of[kind]);
    }
    Py_XDECREF(e->strings);
    Py_XDECREF(e->known_pieces);
}

PyObject *
_PyPprof_Encode(const struct pprof_profile *profile)
{
    struct encoder e = {.profile = profile};
    PyObject *result = NULL;
    if (init_encoder(&e) == 0 && put_message(&e) == 0) {
        result = _PyPprof_ArrayBytes(&e.out);
    }
    free_encoder(&e);
    return result;
}
