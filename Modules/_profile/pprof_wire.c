/* pprof files: protocol buffers that may be hostile, read.

   Owns the window through which a message streams, and what is wrong with its
   fields and where.  Must not know what they mean. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof_parser.h"

#define MAX_VARINT_BYTES 10

/* --- The wire. */

int
_PyPprof_Fault(struct parser *p, const uint8_t *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *what = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (what != NULL) {
        uint64_t offset = p->window_offset
            + (uint64_t)(at - (const uint8_t *)p->window.items);
        PyErr_Format(PyExc_ValueError,
                     "is not a pprof file, or is damaged: %U (at byte %llu "
                     "of the message)", what, (unsigned long long)offset);
        Py_DECREF(what);
    }
    return -1;
}

static int
get_varint(struct parser *p, struct span *span, uint64_t *value)
{
    const uint8_t *at = span->at;
    uint64_t result = 0;
    for (int shift = 0; shift < 7 * MAX_VARINT_BYTES; shift += 7) {
        if (at >= span->end) {
            return _PyPprof_Fault(p, span->at, "a number is cut off");
        }
        uint8_t byte = *at++;
        result |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            span->at = at;
            *value = result;
            return 0;
        }
    }
    return _PyPprof_Fault(p, span->at, "a number is longer than 64 bits");
}

int
_PyPprof_GetFieldHead(struct parser *p, struct span *span, struct field *field,
               uint64_t *size)
{
    const uint8_t *start = span->at;
    uint64_t key = 0;
    if (get_varint(p, span, &key) < 0) {
        return -1;
    }
    field->number = key >> 3;
    field->wire_type = (int)(key & 7);
    *size = 0;
    if (field->number == 0) {
        return _PyPprof_Fault(p, start, "a field has number 0");
    }
    switch (field->wire_type) {
    case WIRE_VARINT:
        return get_varint(p, span, &field->value);
    case WIRE_BYTES:
        return get_varint(p, span, size);
    case WIRE_FIXED_64:
        *size = 8;
        return 0;
    case WIRE_FIXED_32:
        *size = 4;
        return 0;
    default:
        return _PyPprof_Fault(p, start, "a field has the unknown wire type %d",
                     field->wire_type);
    }
}

int
_PyPprof_GetField(struct parser *p, struct span *span, struct field *field)
{
    uint64_t size;
    if (span->at >= span->end) {
        return 0;
    }
    const uint8_t *start = span->at;
    if (_PyPprof_GetFieldHead(p, span, field, &size) < 0) {
        return -1;
    }
    if (size > (size_t)(span->end - span->at)) {
        return _PyPprof_Fault(p, start,
                              "a field is longer than what holds it");
    }
    field->span = (struct span){span->at, span->at + size};
    span->at += size;
    return 1;
}

int
_PyPprof_WrongType(struct parser *p, const struct field *field)
{
    return _PyPprof_Fault(p, field->span.at,
                          "field %llu has the wrong wire type",
                          (unsigned long long)field->number);
}

int
_PyPprof_GetNumbers(struct parser *p, struct span span, const int *numbers,
            int64_t *values, int num)
{
    struct field field;
    int more;
    memset(values, 0, (size_t)num * sizeof(int64_t));
    while ((more = _PyPprof_GetField(p, &span, &field)) > 0) {
        for (int i = 0; i < num; i++) {
            if (field.number != (uint64_t)numbers[i]) {
                continue;
            }
            if (field.wire_type != WIRE_VARINT) {
                return _PyPprof_WrongType(p, &field);
            }
            values[i] = (int64_t)field.value;
        }
    }
    return more;
}

int
_PyPprof_AddNumbers(struct parser *p, struct field *field,
                    struct pprof_array *array)
{
    if (field->wire_type == WIRE_VARINT) {
        return _PyPprof_Append(array, &field->value, 1);
    }
    if (field->wire_type != WIRE_BYTES) {
        return _PyPprof_Fault(p, field->span.at,
                              "a number has the wrong wire type");
    }
    while (field->span.at < field->span.end) {
        uint64_t value;
        if (get_varint(p, &field->span, &value) < 0
            || _PyPprof_Append(array, &value, 1) < 0)
        {
            return -1;
        }
    }
    return 0;
}

/* --- The window. */

int
_PyPprof_Fill(struct parser *p, uint64_t size)
{
    while (p->window.num - p->at < size && !p->is_at_end) {
        if (p->at > 0) {
            memmove(p->window.items, p->window.items + p->at,
                    p->window.num - p->at);
            p->window.num -= p->at;
            p->window_offset += p->at;
            p->at = 0;
        }
        PyObject *chunk = PyObject_CallNoArgs(p->read);
        if (chunk == NULL) {
            return -1;
        }
        if (!PyBytes_Check(chunk)) {
            PyErr_Format(PyExc_TypeError, "read() must return bytes, not %T",
                         chunk);
            Py_DECREF(chunk);
            return -1;
        }
        p->is_at_end = PyBytes_GET_SIZE(chunk) == 0;
        int err = _PyPprof_Append(&p->window, PyBytes_AS_STRING(chunk),
                                  (size_t)PyBytes_GET_SIZE(chunk));
        Py_DECREF(chunk);
        if (err < 0) {
            return -1;
        }
    }
    return 0;
}

struct span
_PyPprof_InWindow(struct parser *p)
{
    const uint8_t *items = (const uint8_t *)p->window.items;
    return (struct span){items + p->at, items + p->window.num};
}

int
_PyPprof_Skip(struct parser *p, uint64_t size)
{
    while (size > 0) {
        if (_PyPprof_Fill(p, 1) < 0) {
            return -1;
        }
        uint64_t part = Py_MIN(size, p->window.num - p->at);
        if (part == 0) {
            return _PyPprof_Fault(p, _PyPprof_InWindow(p).at,
                         "a field is longer than what holds it");
        }
        p->at += part;
        size -= part;
    }
    return 0;
}
