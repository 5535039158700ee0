/* Sampling profiler: what all tables are made of.

   Owns their memory, which is counted against the limit, and the interned
   strings.  Must not know what a row means. */

#include "Python.h"

#include "pycore_dict.h"              // DK_IS_UNICODE()

#include "store.h"

/* The longest name that is kept, in bytes of UTF-8; the rest is cut off with
   a mark.  Long enough for any name a person wrote. */
#define MAX_STRING_BYTES 4096
#define CUT_MARK "..."


/* Memory, counted against the limit. */

void *
_PySampling_Resize(size_t *bytes, size_t limit_bytes, void *old,
                   size_t old_bytes, size_t new_bytes)
{
    if (*bytes - old_bytes + new_bytes > limit_bytes) {
        return NULL;
    }
    void *block = realloc(old, new_bytes);
    if (block != NULL) {
        *bytes += new_bytes - old_bytes;
    }
    return block;
}

void *
_PySampling_CopyRows(const void *rows, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (copy != NULL && bytes != 0) {
        memcpy(copy, rows, bytes);
    }
    return copy;
}


/* Strings. */

static uint32_t
hash_bytes(const char *bytes, size_t size)
{
    uint32_t h = 2166136261u;   // FNV-1a
    for (size_t i = 0; i < size; i++) {
        h = (h ^ (unsigned char)bytes[i]) * 16777619u;
    }
    return h;
}

static uint32_t
hash_string_row(const struct _sampling_string_row *row)
{
    return row->hash;
}

DEFINE_INDEX(string, 0)

uint32_t
_PySampling_InternBytes(struct _sampling_tables *tables, const char *bytes,
                        uint32_t size)
{
    uint32_t hash = hash_bytes(bytes, size);
    FOR_CANDIDATES(tables->string_index, hash, row) {
        const struct _sampling_string_row *s = &tables->strings[row];
        if (s->hash == hash && s->size == size
            && memcmp(tables->string_bytes + s->offset, bytes, size) == 0)
        {
            return row;
        }
    }
    if (!RESERVE(tables, strings) || !reserve_string_index(tables)) {
        return NO_ROW;
    }
    if (tables->num_string_bytes + size > tables->cap_string_bytes) {
        uint32_t cap = tables->cap_string_bytes * 2 + MAX_STRING_BYTES;
        char *block = _PySampling_Resize(
            &tables->bytes, tables->limit_bytes, tables->string_bytes,
            tables->cap_string_bytes, cap);
        if (block == NULL) {
            return NO_ROW;
        }
        tables->string_bytes = block;
        tables->cap_string_bytes = cap;
    }
    memcpy(tables->string_bytes + tables->num_string_bytes, bytes, size);
    uint32_t row = tables->num_strings++;
    tables->strings[row] = (struct _sampling_string_row){
        hash, tables->num_string_bytes, size};
    tables->num_string_bytes += size;
    index_put(&tables->string_index, hash, row);
    return row;
}

/* Writes a code point as UTF-8, a lone surrogate like any other.  Returns
   how many bytes it took. */
static uint32_t
encode_utf8(Py_UCS4 ch, char *out)
{
    if (ch < 0x80) {
        out[0] = (char)ch;
        return 1;
    }
    if (ch < 0x800) {
        out[0] = (char)(0xC0 | (ch >> 6));
        out[1] = (char)(0x80 | (ch & 0x3F));
        return 2;
    }
    if (ch < 0x10000) {
        out[0] = (char)(0xE0 | (ch >> 12));
        out[1] = (char)(0x80 | ((ch >> 6) & 0x3F));
        out[2] = (char)(0x80 | (ch & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (ch >> 18));
    out[1] = (char)(0x80 | ((ch >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((ch >> 6) & 0x3F));
    out[3] = (char)(0x80 | (ch & 0x3F));
    return 4;
}

/* PyUnicode_AsUTF8() would cache its result in the program's own object, so
   the text is encoded here. */
uint32_t
_PySampling_InternText(struct _sampling_tables *tables, PyObject *text)
{
    if (text == NULL || !PyUnicode_Check(text)) {
        return NO_ROW;
    }
    char buffer[MAX_STRING_BYTES];
    uint32_t size = 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0; i < length; i++) {
        if (size + 4 + strlen(CUT_MARK) > sizeof(buffer)) {
            memcpy(buffer + size, CUT_MARK, strlen(CUT_MARK));
            size += strlen(CUT_MARK);
            break;
        }
        size += encode_utf8(PyUnicode_READ(kind, data, i), buffer + size);
    }
    return _PySampling_InternBytes(tables, buffer, size);
}

/* An entry of a dict, if that can be read without running Python code: a dict
   whose keys are all strings compares them without calling out. */
PyObject *
_PySampling_DictGet(PyObject *dict, PyObject *key)
{
    if (dict == NULL || !PyDict_Check(dict)
        || !DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys))
    {
        return NULL;
    }
    return _PyDict_GetItem_KnownHash(dict, key,
                                     ((PyASCIIObject *)key)->hash);
}
