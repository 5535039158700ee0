/* Arrays that grow, and rows that are found by their keys.

   Must not know what the rows mean. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"
#include "pycore_pyhash.h"            // _Py_HashSecret

#include "pprof.h"

#define FIRST_ITEMS 64
#define GOLDEN 0x9E3779B97F4A7C15u    // 2^64 / golden ratio

int
_PyPprof_Reserve(struct pprof_array *array, size_t more)
{
    if (more <= array->cap - array->num) {
        return 0;
    }
    size_t cap = array->cap ? array->cap : FIRST_ITEMS;
    size_t most = PY_SSIZE_T_MAX / 2 / array->item_bytes;
    if (more > most || array->num > most - more) {
        PyErr_NoMemory();
        return -1;
    }
    while (cap < array->num + more) {
        cap *= 2;
    }
    char *items = PyMem_RawRealloc(array->items, cap * array->item_bytes);
    if (items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    array->items = items;
    array->cap = cap;
    return 0;
}

int
_PyPprof_Append(struct pprof_array *array, const void *items, size_t num)
{
    if (_PyPprof_Reserve(array, num) < 0) {
        return -1;
    }
    if (num > 0) {
        memcpy(array->items + array->num * array->item_bytes, items,
               num * array->item_bytes);
        array->num += num;
    }
    return 0;
}

void
_PyPprof_FreeArray(struct pprof_array *array)
{
    PyMem_RawFree(array->items);
    array->items = NULL;
    array->num = array->cap = 0;
}

PyObject *
_PyPprof_ArrayBytes(const struct pprof_array *array)
{
    return PyBytes_FromStringAndSize(
        array->items, (Py_ssize_t)(array->num * array->item_bytes));
}

void
_PyPprof_InitRows(struct pprof_rows *rows, size_t num_columns,
                  size_t num_keys)
{
    *rows = (struct pprof_rows){
        .cells = {.item_bytes = num_columns * sizeof(int64_t)},
        .num_columns = num_columns,
        .num_keys = num_keys,
    };
}

void
_PyPprof_FreeSlots(struct pprof_rows *rows)
{
    PyMem_RawFree(rows->slots);
    rows->slots = NULL;
    rows->num_slots = rows->num_indexed = 0;
}

void
_PyPprof_FreeRows(struct pprof_rows *rows)
{
    _PyPprof_FreeSlots(rows);
    _PyPprof_FreeArray(&rows->cells);
}

/* With the secret of the process: a file cannot be made so that its rows
   collide. */
static size_t
hash_of(const struct pprof_rows *rows, const int64_t *keys)
{
    const uint64_t factor0 = (_Py_HashSecret.siphash.k0 ^ GOLDEN) | 1;
    const uint64_t factor1 = (_Py_HashSecret.siphash.k1 ^ GOLDEN) | 1;
    uint64_t hash = 0;
    for (size_t i = 0; i < rows->num_keys; i++) {
        hash = (hash ^ (uint64_t)keys[i]) * factor0;
        hash ^= hash >> 32;
        hash *= factor1;
        hash ^= hash >> 29;
    }
    return (size_t)hash;
}

/* Of a tree, a node that was added right after its parent is found beside it,
   and by nothing else.  That is most of them. */
static int
is_beside_parent(const struct pprof_rows *rows, size_t row)
{
    return rows->is_tree && pprof_row(rows, row)[0] == (int64_t)row;
}

static int
grow_slots(struct pprof_rows *rows)
{
    size_t num_slots = rows->num_slots ? rows->num_slots * 2 : FIRST_ITEMS;
    if (rows->cells.num >= UINT32_MAX / 2) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t *slots = PyMem_RawCalloc(num_slots, sizeof(uint32_t));
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t row = 0; row < rows->cells.num; row++) {
        if (is_beside_parent(rows, row)) {
            continue;
        }
        size_t i = hash_of(rows, pprof_row(rows, row)) & (num_slots - 1);
        while (slots[i] != 0) {
            i = (i + 1) & (num_slots - 1);
        }
        slots[i] = (uint32_t)row + 1;
    }
    PyMem_RawFree(rows->slots);
    rows->slots = slots;
    rows->num_slots = num_slots;
    return 0;
}

/* -1: an exception is set. */
static Py_ssize_t
append_row(struct pprof_rows *rows, const int64_t *keys)
{
    if (_PyPprof_Reserve(&rows->cells, 1) < 0) {
        return -1;
    }
    size_t row = rows->cells.num++;
    int64_t *cells = pprof_row(rows, row);
    for (size_t i = 0; i < rows->num_columns; i++) {
        cells[i] = i < rows->num_keys ? keys[i] : 0;
    }
    return (Py_ssize_t)row;
}

Py_ssize_t
_PyPprof_Intern(struct pprof_rows *rows, const int64_t *keys)
{
    // At most two of three are taken.
    if (rows->num_indexed * 3 >= rows->num_slots * 2 && grow_slots(rows) < 0) {
        return -1;
    }
    size_t key_bytes = rows->num_keys * sizeof(int64_t);
    size_t i = hash_of(rows, keys) & (rows->num_slots - 1);
    while (rows->slots[i] != 0) {
        size_t row = rows->slots[i] - 1;
        if (memcmp(pprof_row(rows, row), keys, key_bytes) == 0) {
            return (Py_ssize_t)row;
        }
        i = (i + 1) & (rows->num_slots - 1);
    }
    Py_ssize_t row = append_row(rows, keys);
    if (row >= 0) {
        rows->slots[i] = (uint32_t)row + 1;
        rows->num_indexed++;
    }
    return row;
}

int64_t
_PyPprof_Child(struct pprof_rows *tree, int64_t parent, int64_t item)
{
    int64_t keys[2] = {parent, item};
    size_t beside = (size_t)parent;
    if (beside == tree->cells.num) {
        Py_ssize_t row = append_row(tree, keys);
        return row < 0 ? -1 : row + 1;
    }
    if (is_beside_parent(tree, beside) && pprof_row(tree, beside)[1] == item) {
        return parent + 1;
    }
    Py_ssize_t row = _PyPprof_Intern(tree, keys);
    return row < 0 ? -1 : row + 1;
}
