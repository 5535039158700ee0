/* Sampling profiler: of which type the object in a block is.

   Owns how a type is found.  Must not know what an allocator does, or why the
   block was sampled.

   An allocator knows no types.  They are looked for when a block ends, while
   it is still as it was, or else when it is drained: then its object has long
   been made.  What lies there may be anything: a word is a type only if it can
   be proved to be one, and the head of an object, at the distance that the
   type says, only with a reference count that can be one. */

#include "Python.h"

#include "pycore_object.h"            // _PyType_PreHeaderSize()

#include "../native/naming.h"
#include "../tables/labels.h"
#include "../tables/store.h"
#include "alloc.h"

/* By which domain NumPy reports its buffers. */
#define NUMPY_DOMAIN 389047

/* Immortal objects have a count of 32 bits; addresses are larger. */
#define MAX_REFCNT ((Py_ssize_t)1 << 33)

/* How far an object may be from the beginning of its block, in words. */
static const int distances[_PySampling_TYPE_CANDIDATES] = {0, 2, 4};

void
_PySampling_AllocFindTypes(const uintptr_t *words, size_t size_bytes,
                           PyTypeObject *types[_PySampling_TYPE_CANDIDATES])
{
    for (int i = 0; i < _PySampling_TYPE_CANDIDATES; i++) {
        size_t end = (size_t)(distances[i] + 2) * sizeof(void *);
        Py_ssize_t refcnt =
            end <= size_bytes ? (Py_ssize_t)words[distances[i]] : -1;
        types[i] = refcnt >= 0 && refcnt < MAX_REFCNT
            ? (PyTypeObject *)words[distances[i] + 1] : NULL;
    }
}

/* How large one is at least.  A str of ASCII ends before the fields that its
   type counts. */
static size_t
least_size_of(PyTypeObject *type)
{
    return type == &PyUnicode_Type ? sizeof(PyASCIIObject)
        : (size_t)type->tp_basicsize;
}

static PyTypeObject *
type_among(PyInterpreterState *interp,
           PyTypeObject *types[_PySampling_TYPE_CANDIDATES],
           size_t size_bytes)
{
    for (int i = 0; i < _PySampling_TYPE_CANDIDATES; i++) {
        PyTypeObject *type = types[i];
        size_t before = (size_t)distances[i] * sizeof(void *);
        if (type != NULL && _PySampling_IsType(interp, type)
            && _PyType_PreHeaderSize(type) == before
            && before + least_size_of(type) <= size_bytes)
        {
            return type;
        }
    }
    return NULL;
}

static PyTypeObject *
type_of(PyInterpreterState *interp, struct _sampling_block *block)
{
    if (!block->has_types) {
        uintptr_t words[_PySampling_TYPE_WORDS] = {0};
        size_t size = Py_MIN(block->size_bytes, sizeof(words));
        if (!_PySampling_ReadMemory(interp, (void *)block->address, words,
                                    size))
        {
            return NULL;
        }
        _PySampling_AllocFindTypes(words, size, block->types);
    }
    return type_among(interp, block->types, block->size_bytes);
}

static uint32_t
text_of(struct _sampling_tables *tables, PyInterpreterState *interp,
        struct _sampling_block *block)
{
    struct _sampling_name name;
    _PySampling_ClearName(&name);
    PyTypeObject *type = NULL;
    if (block->kind == _PySampling_FOREIGN_BLOCK + NUMPY_DOMAIN
        || block->domain == NUMPY_DOMAIN)
    {
        _PySampling_AppendString(&name.qualname, "numpy ");
    }
    else if (block->kind < _PySampling_FOREIGN_BLOCK) {
        type = type_of(interp, block);
    }
    if (type == NULL) {
        _PySampling_AppendString(&name.qualname, "buffer");
    }
    else {
        _PySampling_NameType(tables, type, &name);
        if (name.module.size != 0) {
            _PySampling_AppendString(&name.module, ".");
            _PySampling_AppendBytes(&name.module, name.qualname.bytes,
                                    (size_t)name.qualname.size);
            name.qualname = name.module;
        }
    }
    return _PySampling_InternBytes(tables, name.qualname.bytes,
                                   (uint32_t)name.qualname.size);
}

uint32_t
_PySampling_AllocLabels(struct _sampling_tables *tables,
                        PyInterpreterState *interp,
                        struct _sampling_block *block, uint32_t labels)
{
    static const char key[] = "block type";
    return _PySampling_LabelsBelow(
        tables, labels,
        _PySampling_InternBytes(tables, key, sizeof(key) - 1),
        text_of(tables, interp, block));
}
