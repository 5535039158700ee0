/* pprof files: the labels of samples, written.

   Owns what is said of a sample beyond its stack.  Most samples share such
   labels with others, so they are encoded once, as pieces. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof_encoder.h"

/* `text` is NULL: a number. */
static int
put_label(struct encoder *e, PyObject *key, PyObject *text, uint64_t number)
{
    e->label.num = 0;
    if (_PyPprof_PutString(e, &e->label, 1, key) < 0
        || (text != NULL && _PyPprof_PutString(e, &e->label, 2, text) < 0)
        || _PyPprof_PutNumber(&e->label, 3, number) < 0)
    {
        return -1;
    }
    return _PyPprof_PutPayload(&e->scratch, 3, e->label.items, e->label.num);
}

static int
put_own_label(struct encoder *e, const char *key, PyObject *text,
              uint64_t number)
{
    PyObject *name = PyUnicode_FromString(key);
    int err = name != NULL ? put_label(e, name, text, number) : -1;
    Py_XDECREF(name);
    return err;
}

/* Makes a piece of scratch, or finds the one that is equal. */
static int64_t
piece_of_scratch(struct encoder *e)
{
    PyObject *bytes = _PyPprof_ArrayBytes(&e->scratch);
    size_t start = e->pieces.bytes.num;
    Py_ssize_t num = PyDict_GET_SIZE(e->known_pieces);
    PyObject *next = PyLong_FromSsize_t(num);
    PyObject *number = NULL;
    int64_t piece = -1;
    if (bytes != NULL && next != NULL
        && PyDict_SetDefaultRef(e->known_pieces, bytes, next, &number) >= 0)
    {
        piece = PyLong_AsLongLong(number);
        if (piece == num
            && (_PyPprof_Append(&e->pieces.starts, &start, 1) < 0
                || _PyPprof_Append(&e->pieces.bytes, e->scratch.items,
                                   e->scratch.num) < 0))
        {
            piece = -1;
        }
    }
    Py_XDECREF(bytes);
    Py_XDECREF(next);
    Py_XDECREF(number);
    e->scratch.num = 0;
    return piece;
}

static int
put_piece(struct encoder *e, int64_t piece)
{
    const size_t *starts = (const size_t *)e->pieces.starts.items;
    size_t end = (size_t)piece + 1 < e->pieces.starts.num
        ? starts[piece + 1] : e->pieces.bytes.num;
    return _PyPprof_Append(&e->scratch, e->pieces.bytes.items + starts[piece],
                           end - starts[piece]);
}

/* A row of labels: (parent, key or None for a task, value, id of the task).
   Returns borrowed references; -1: an exception is set. */
static int
read_label_row(struct encoder *e, Py_ssize_t row, Py_ssize_t *parent,
               PyObject **key, PyObject **value, uint64_t *task_id)
{
    PyObject *label = PyList_GET_ITEM(e->profile->labels, row);
    unsigned long long id;
    if (!PyArg_ParseTuple(label, "nOOK", parent, key, value, &id)) {
        return -1;
    }
    *task_id = id;
    if (row != 0 && (*parent < 0 || *parent >= row)) {
        PyErr_SetString(PyExc_ValueError, "a label comes before its parent");
        return -1;
    }
    return 0;
}

/* Writes {key: value} into scratch, by name. */
static int
put_label_dict(struct encoder *e, PyObject *labels)
{
    PyObject *keys = PyDict_Keys(labels);
    if (keys == NULL || PyList_Sort(keys) < 0) {
        Py_XDECREF(keys);
        return -1;
    }
    int err = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys) && err == 0; i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        PyObject *value = PyDict_GetItemWithError(labels, key);
        err = value != NULL ? put_label(e, key, value, 0) : -1;
    }
    Py_DECREF(keys);
    return err;
}

/* An inner label hides an outer one of the same name; the innermost task is
   the one that the sample was in. */
static int
put_label_set(struct encoder *e, Py_ssize_t row)
{
    PyObject *labels = PyDict_New();
    PyObject *task_name = NULL;
    uint64_t task_id = 0;
    int has_task = 0;
    while (labels != NULL && row != 0) {
        PyObject *key, *value;
        Py_ssize_t parent;
        uint64_t id;
        if (read_label_row(e, row, &parent, &key, &value, &id) < 0) {
            Py_CLEAR(labels);
            break;
        }
        if (key == Py_None) {
            // As label_set() of _data/values.py has it: the outermost.
            task_name = value;
            task_id = id;
            has_task = 1;
        }
        else if (PyDict_SetDefaultRef(labels, key, value, NULL) < 0) {
            Py_CLEAR(labels);
        }
        row = parent;
    }
    int err = labels != NULL ? put_label_dict(e, labels) : -1;
    Py_XDECREF(labels);
    if (err == 0 && has_task && task_name != Py_None) {
        err = put_own_label(e, "task name", task_name, 0);
    }
    if (err == 0 && has_task && task_id != 0) {
        err = put_own_label(e, "task id", NULL, task_id);
    }
    return err;
}

struct thread {
    uint64_t ident;
    int64_t native_id;
    PyObject *name;                 // borrowed; None or '': it has none
    uint64_t interpreter;
};

static int
read_thread(struct encoder *e, Py_ssize_t row, struct thread *thread)
{
    unsigned long long ident, interpreter;
    long long native_id;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(e->profile->threads, row), "KLOK",
                          &ident, &native_id, &thread->name, &interpreter))
    {
        return -1;
    }
    thread->ident = ident;
    thread->native_id = native_id;
    thread->interpreter = interpreter;
    return 0;
}

static int
has_name(const struct thread *thread)
{
    return thread->name != Py_None
        && !(PyUnicode_Check(thread->name)
             && PyUnicode_GET_LENGTH(thread->name) == 0);
}

static int
put_thread(struct encoder *e, Py_ssize_t row)
{
    struct thread thread;
    if (read_thread(e, row, &thread) < 0
        || put_own_label(e, "thread id", NULL, thread.ident) < 0
        || put_own_label(e, "thread native id", NULL,
                         (uint64_t)thread.native_id) < 0
        || (has_name(&thread)
            && put_own_label(e, "thread name", thread.name, 0) < 0))
    {
        return -1;
    }
    return put_own_label(e, "interpreter", NULL, thread.interpreter);
}

/* --- Who held the GIL. */

static int
put_holder_thread(struct encoder *e, Py_ssize_t row)
{
    struct thread thread;
    if (read_thread(e, row, &thread) < 0
        || (has_name(&thread)
            && put_own_label(e, "gil holder thread", thread.name, 0) < 0)
        || put_own_label(e, "gil holder thread id", NULL, thread.ident) < 0)
    {
        return -1;
    }
    return put_own_label(e, "gil holder thread native id", NULL,
                         (uint64_t)thread.native_id);
}

static Py_ssize_t
function_of_node(struct encoder *e, Py_ssize_t node)
{
    const struct pprof_profile *p = e->profile;
    uint32_t frame = p->t.nodes[NODE_COLUMNS * node + 1];
    return p->t.frames[FRAME_COLUMNS * frame];
}

/* A column of its row: 0 the name, 1 the place.  Borrowed. */
static PyObject *
text_of(struct encoder *e, Py_ssize_t function, int column)
{
    return PyTuple_GET_ITEM(PyList_GET_ITEM(e->profile->functions, function),
                            column);
}

int
_PyPprof_IsPython(struct encoder *e, Py_ssize_t function)
{
    PyObject *row = PyList_GET_ITEM(e->profile->functions, function);
    return PyTuple_GET_ITEM(row, 3) == Py_True;
}

/* 'function (callee)', and 'file:line' if the function is Python: what stands
   at the bottom of the stack, and the leaf if that is another. */
static int
put_holder(struct encoder *e, Py_ssize_t leaf)
{
    const struct pprof_profile *p = e->profile;
    Py_ssize_t node = leaf;
    while (p->t.nodes[NODE_COLUMNS * node] != 0) {
        node = p->t.nodes[NODE_COLUMNS * node];
    }
    Py_ssize_t function = function_of_node(e, node);
    PyObject *name = text_of(e, function, 0);
    PyObject *text = node == leaf ? Py_NewRef(name)
        : PyUnicode_FromFormat("%U (%U)", name,
                               text_of(e, function_of_node(e, leaf), 0));
    int err = text != NULL ? put_own_label(e, "gil holder", text, 0) : -1;
    Py_XDECREF(text);
    if (err < 0 || !_PyPprof_IsPython(e, function)) {
        return err;
    }
    uint32_t frame = p->t.nodes[NODE_COLUMNS * node + 1];
    PyObject *place = PyUnicode_FromFormat(
        "%U:%d", text_of(e, function, 1),
        (int)p->t.frames[FRAME_COLUMNS * frame + 1]);
    err = place != NULL ? put_own_label(e, "gil holder place", place, 0) : -1;
    Py_XDECREF(place);
    return err;
}

static int
put_holder_labels(struct encoder *e, const int64_t *key)
{
    if (put_piece(e, key[KEY_HOLDER]) < 0) {
        return -1;
    }
    if (key[KEY_HOLDER_THREAD] < 0) {
        return 0;
    }
    struct thread waiter, holder;
    Py_ssize_t row = key[KEY_HOLDER_THREAD];
    if (put_piece(e, e->piece_of[PIECE_HOLDER_THREAD][row]) < 0
        || read_thread(e, key[KEY_THREAD], &waiter) < 0
        || read_thread(e, row, &holder) < 0)
    {
        return -1;
    }
    if (waiter.interpreter == holder.interpreter) {
        return 0;
    }
    return put_own_label(e, "gil holder interpreter", NULL,
                         holder.interpreter);
}

/* --- All of a sample. */

static int
put_labels_of(struct encoder *e, enum piece_kind kind, Py_ssize_t row)
{
    switch (kind) {
    case PIECE_LABELS:
        return put_label_set(e, row);
    case PIECE_THREAD:
        return put_thread(e, row);
    case PIECE_STATE:
        return put_own_label(e, "state",
                             PyList_GET_ITEM(e->profile->states, row), 0);
    case PIECE_HOLDER_THREAD:
        return put_holder_thread(e, row);
    case PIECE_HOLDER:
        return put_holder(e, row);
    default:
        Py_UNREACHABLE();
    }
}

int64_t
_PyPprof_Piece(struct encoder *e, enum piece_kind kind, Py_ssize_t row)
{
    int64_t *piece = &e->piece_of[kind][row];
    if (*piece < 0) {
        if (put_labels_of(e, kind, row) < 0) {
            return -1;
        }
        *piece = piece_of_scratch(e);
    }
    return *piece;
}

static uint64_t
own_key(struct encoder *e, uint64_t *known, const char *name)
{
    if (*known == 0) {
        PyObject *key = PyUnicode_FromString(name);
        int64_t number = key != NULL ? _PyPprof_StringNumber(e, key) : -1;
        Py_XDECREF(key);
        *known = number < 0 ? 0 : (uint64_t)number;
    }
    return *known;
}

/* Field 2 is a text, 3 a number. */
static int
put_numbered_label(struct encoder *e, uint64_t key, int field, uint64_t value)
{
    e->label.num = 0;
    if (key == 0
        || _PyPprof_PutNumber(&e->label, 1, key) < 0
        || _PyPprof_PutNumber(&e->label, field, value) < 0)
    {
        return -1;
    }
    return _PyPprof_PutPayload(&e->scratch, 3, e->label.items, e->label.num);
}

static int
put_instruction(struct encoder *e, const int64_t *key)
{
    if (key[KEY_OPNAME] != 0
        && put_numbered_label(e, own_key(e, &e->opcode_key, "opcode"), 2,
                              (uint64_t)key[KEY_OPNAME]) < 0)
    {
        return -1;
    }
    if (key[KEY_OFFSET] < 0) {
        return 0;
    }
    return put_numbered_label(
        e, own_key(e, &e->offset_key, "instruction offset"), 3,
        (uint64_t)key[KEY_OFFSET]);
}

/* A piece is made in scratch, so all are made before the first is put. */
int
_PyPprof_PutSampleLabels(struct encoder *e, const int64_t *key)
{
    if (put_piece(e, key[KEY_LABELS]) < 0
        || put_piece(e, e->piece_of[PIECE_THREAD][key[KEY_THREAD]]) < 0
        || put_piece(e, e->piece_of[PIECE_STATE][key[KEY_STATE]]) < 0
        || (key[KEY_HOLDER] >= 0 && put_holder_labels(e, key) < 0))
    {
        return -1;
    }
    return put_instruction(e, key);
}
