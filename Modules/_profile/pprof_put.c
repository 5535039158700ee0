/* pprof files: numbers, payloads and strings as protocol buffers have them.

   Must not know what a field means. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pprof_encoder.h"

#define MAX_VARINT_BYTES 10

/* --- The wire. */

int
_PyPprof_PutVarint(struct pprof_array *out, uint64_t value)
{
    if (_PyPprof_Reserve(out, MAX_VARINT_BYTES) < 0) {
        return -1;
    }
    while (value > 127) {
        out->items[out->num++] = (char)((value & 127) | 128);
        value >>= 7;
    }
    out->items[out->num++] = (char)value;
    return 0;
}

/* A varint field; zero is the default and is not written. */
int
_PyPprof_PutNumber(struct pprof_array *out, int field, uint64_t value)
{
    if (value == 0) {
        return 0;
    }
    if (_PyPprof_PutVarint(out, (uint64_t)field << 3 | WIRE_VARINT) < 0) {
        return -1;
    }
    return _PyPprof_PutVarint(out, value);
}

int
_PyPprof_PutPayload(struct pprof_array *out, int field, const void *bytes,
                    size_t num)
{
    if (_PyPprof_PutVarint(out, (uint64_t)field << 3 | WIRE_BYTES) < 0
        || _PyPprof_PutVarint(out, num) < 0)
    {
        return -1;
    }
    return _PyPprof_Append(out, bytes, num);
}

/* Moves what is in scratch to the message. */
int
_PyPprof_PutScratch(struct encoder *e, int field)
{
    int err = _PyPprof_PutPayload(&e->out, field, e->scratch.items,
                                  e->scratch.num);
    e->scratch.num = 0;
    return err;
}

/* --- Strings. */

/* -1: an exception is set. */
int64_t
_PyPprof_StringNumber(struct encoder *e, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "a name must be str, not %T", text);
        return -1;
    }
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(e->strings));
    PyObject *number = NULL;
    if (next == NULL
        || PyDict_SetDefaultRef(e->strings, text, next, &number) < 0)
    {
        Py_XDECREF(next);
        return -1;
    }
    int64_t result = PyLong_AsLongLong(number);
    Py_DECREF(number);
    Py_DECREF(next);
    return result;
}

int
_PyPprof_PutString(struct encoder *e, struct pprof_array *out, int field,
           PyObject *text)
{
    int64_t number = _PyPprof_StringNumber(e, text);
    return number < 0 ? -1 : _PyPprof_PutNumber(out, field, (uint64_t)number);
}

/* The table comes when every string has its number. */
int
_PyPprof_PutStrings(struct encoder *e)
{
    Py_ssize_t pos = 0;
    PyObject *text;
    while (PyDict_Next(e->strings, &pos, &text, NULL)) {
        PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8",
                                                    "backslashreplace");
        if (bytes == NULL) {
            return -1;
        }
        int err = _PyPprof_PutPayload(&e->out, FIELD_STRING,
                                      PyBytes_AS_STRING(bytes),
                                      (size_t)PyBytes_GET_SIZE(bytes));
        Py_DECREF(bytes);
        if (err < 0) {
            return -1;
        }
    }
    return 0;
}
