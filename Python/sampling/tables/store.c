/* Sampling profiler: what all tables are made of.

   Owns their memory, which is counted against the limit, and the interned
   strings.  Must not know what a row means. */

#include "Python.h"

#include "pycore_dict.h"              // DK_IS_UNICODE()

#include "store.h"

#define CUT_MARK "..."


/* Memory, counted against the limit. */

void *
_PySampling_NewChunk(int chunk, size_t row_bytes)
{
    return malloc(((size_t)_PySampling_FIRST_ROWS << chunk) * row_bytes);
}

void
_PySampling_FreeChunks(void **chunks)
{
    for (int i = 0; i < _PySampling_NUM_CHUNKS; i++) {
        free(chunks[i]);
    }
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

/* Bytes never move either.  A block is full when the next text does not
   fit. */
struct _sampling_text_block {
    struct _sampling_text_block *next;
    uint32_t used;
    uint32_t size;
    char bytes[];
};

#define FIRST_BLOCK_BYTES 8192
#define MAX_BLOCK_BYTES 65536

static const char *
keep_bytes(struct _sampling_tables *tables, const char *bytes, uint32_t size)
{
    struct _sampling_text_block *block = tables->text_blocks;
    if (tables->bytes + size > tables->limit_bytes) {
        return NULL;
    }
    if (block == NULL || size > block->size - block->used) {
        uint32_t block_bytes = block == NULL ? FIRST_BLOCK_BYTES
            : Py_MIN(2 * block->size, MAX_BLOCK_BYTES);
        block = malloc(sizeof(*block) + block_bytes);
        if (block == NULL) {
            return NULL;
        }
        *block = (struct _sampling_text_block){
            tables->text_blocks, 0, block_bytes};
        tables->text_blocks = block;
    }
    char *kept = block->bytes + block->used;
    memcpy(kept, bytes, size);
    block->used += size;
    tables->bytes += size;
    return kept;
}

void
_PySampling_FreeTexts(struct _sampling_tables *tables)
{
    while (tables->text_blocks != NULL) {
        struct _sampling_text_block *block = tables->text_blocks;
        tables->text_blocks = block->next;
        free(block);
    }
}

uint32_t
_PySampling_FindBytes(const struct _sampling_tables *tables,
                      const char *bytes, uint32_t size)
{
    uint32_t hash = hash_bytes(bytes, size);
    FOR_CANDIDATES(tables->string_index, hash, row) {
        const struct _sampling_string_row *s = AT(tables, string, row);
        if (s->hash == hash && s->size == size
            && memcmp(s->bytes, bytes, size) == 0)
        {
            return row;
        }
    }
    return NO_ROW;
}

uint32_t
_PySampling_InternBytes(struct _sampling_tables *tables, const char *bytes,
                        uint32_t size)
{
    uint32_t found = _PySampling_FindBytes(tables, bytes, size);
    if (found != NO_ROW) {
        return found;
    }
    if (!RESERVE(tables, strings) || !reserve_string_index(tables)) {
        return NO_ROW;
    }
    const char *kept = keep_bytes(tables, bytes, size);
    if (kept == NULL) {
        return NO_ROW;
    }
    uint32_t hash = hash_bytes(bytes, size);
    uint32_t row = add_string_row(tables, (struct _sampling_string_row){
        kept, size, hash, _PySampling_NO_STRING});
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
_PySampling_EncodeText(PyObject *text, char *out, uint32_t space)
{
    uint32_t size = 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0; i < length; i++) {
        if (size + 4 + strlen(CUT_MARK) > space) {
            memcpy(out + size, CUT_MARK, strlen(CUT_MARK));
            size += strlen(CUT_MARK);
            break;
        }
        size += encode_utf8(PyUnicode_READ(kind, data, i), out + size);
    }
    return size;
}

uint32_t
_PySampling_InternText(struct _sampling_tables *tables, PyObject *text)
{
    if (text == NULL || !PyUnicode_Check(text)) {
        return NO_ROW;
    }
    char buffer[_PySampling_MAX_STRING_BYTES];
    return _PySampling_InternBytes(
        tables, buffer, _PySampling_EncodeText(text, buffer, sizeof(buffer)));
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
