/* Sampling profiler: how rows of the tables are added and found.  What
   tables/frames.c and tables/tables.c share; of no concern to others.

   Every table is rows in chunks, found through an index of row numbers (open
   addressing, linear probing).  Rows refer to each other by number.

   Lock of everything here: that of the tables. */

#ifndef Py_SAMPLING_STORE_H
#define Py_SAMPLING_STORE_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "tables.h"

#define AT _PySampling_AT

#define NO_ROW UINT32_MAX
#define FREED_SLOT UINT32_MAX

/* --- Rows. */

// Space for the rows of a chunk, or NULL.
extern void *_PySampling_NewChunk(int chunk, size_t row_bytes);
extern void _PySampling_FreeChunks(void **chunks);

/* Makes space for one more row.  Returns 0 if the limit is reached.  What
   counts is the rows in use: the rest of a large chunk is no memory yet. */
static inline int
reserve_row(size_t bytes, size_t limit_bytes, void **chunks, uint32_t num,
            size_t row_bytes)
{
    uint32_t place;
    int chunk = _PySampling_ChunkOf(num, &place);
    if (bytes + row_bytes > limit_bytes || chunk >= _PySampling_NUM_CHUNKS) {
        return 0;
    }
    if (chunks[chunk] == NULL) {
        chunks[chunk] = _PySampling_NewChunk(chunk, row_bytes);
    }
    return chunks[chunk] != NULL;
}

/* OWNER: tables, or what came in (tables/profile.h). */
#define RESERVE(OWNER, NAME) \
    reserve_row((OWNER)->bytes, (OWNER)->limit_bytes, \
                (void **)(OWNER)->NAME, (OWNER)->num_##NAME, \
                sizeof(*(OWNER)->NAME[0]))

/* Puts a row where space has been made; then it is published.  Returns its
   number. */
#define DEFINE_ADD_ROW(OWNER, NAME) \
    static inline uint32_t \
    add_##NAME##_row(struct _sampling_##OWNER *OWNER, \
                     struct _sampling_##NAME##_row content) \
    { \
        uint32_t place, row = OWNER->num_##NAME##s; \
        int chunk = _PySampling_ChunkOf(row, &place); \
        OWNER->NAME##s[chunk][place] = content; \
        OWNER->bytes += sizeof(content); \
        _Py_atomic_store_uint32_release(&OWNER->num_##NAME##s, row + 1); \
        return row; \
    }
#define X(NAME) DEFINE_ADD_ROW(tables, NAME)
_PySampling_TABLES(X)
#undef X

/* --- Indexes. */

static inline uint32_t
mix(uint64_t a, uint64_t b)
{
    // Multiplication by 2^64 / golden ratio spreads low bits to high ones.
    uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(h >> 32);
}

/* Puts a row that is not there yet into an index that has space. */
static inline void
index_put(struct _sampling_index *index, uint32_t hash, uint32_t row)
{
    uint32_t i = hash & index->mask;
    while (index->slots[i] != 0) {
        i = (i + 1) & index->mask;
    }
    index->slots[i] = row + 1;
    index->used++;
}

/* Takes a row out of an index.  Its key must still be readable. */
static inline void
index_remove(struct _sampling_index *index, uint32_t hash, uint32_t row)
{
    uint32_t i = hash & index->mask;
    while (index->slots[i] != row + 1) {
        assert(index->slots[i] != 0);
        i = (i + 1) & index->mask;
    }
    index->slots[i] = FREED_SLOT;
}

/* Defines what makes the index of a table of OWNER hold one more row, which
   may mean to grow and rehash it.  Rows freed meanwhile are dropped on the
   way. */
#define DEFINE_INDEX_OF(OWNER, NAME, IS_FREE) \
    static int \
    reserve_##NAME##_index(struct _sampling_##OWNER *OWNER) \
    { \
        struct _sampling_index *index = &OWNER->NAME##_index; \
        uint32_t old_size = index->slots ? index->mask + 1 : 0; \
        if ((index->used + 1) * 4ull <= old_size * 3ull) { \
            return 1; \
        } \
        uint32_t size = old_size ? old_size : _PySampling_FIRST_ROWS; \
        while ((OWNER->num_##NAME##s + 1) * 2ull > size) { \
            size *= 2; \
        } \
        size_t bytes = size * sizeof(uint32_t); \
        size_t old_bytes = old_size * sizeof(uint32_t); \
        if (OWNER->bytes - old_bytes + bytes > OWNER->limit_bytes) { \
            return 0; \
        } \
        uint32_t *slots = calloc(size, sizeof(uint32_t)); \
        if (slots == NULL) { \
            return 0; \
        } \
        free(index->slots); \
        OWNER->bytes = OWNER->bytes - old_bytes + bytes; \
        *index = (struct _sampling_index){slots, size - 1, 0}; \
        for (uint32_t row = 0; row < OWNER->num_##NAME##s; row++) { \
            if (!(IS_FREE)) { \
                uint32_t hash = \
                    hash_##NAME##_row(AT(OWNER, NAME, row)); \
                index_put(index, hash, row); \
            } \
        } \
        return 1; \
    }
#define DEFINE_INDEX(NAME, IS_FREE) DEFINE_INDEX_OF(tables, NAME, IS_FREE)

/* Loops over the rows whose hash may be HASH, as uint32_t ROW. */
#define FOR_CANDIDATES(INDEX, HASH, ROW) \
    for (uint32_t slot_ = (INDEX).slots ? (HASH) & (INDEX).mask : 0, ROW; \
         (INDEX).slots != NULL && (INDEX).slots[slot_] != 0 \
             && (ROW = (INDEX).slots[slot_] - 1, 1); \
         slot_ = (slot_ + 1) & (INDEX).mask) \
        if (ROW != FREED_SLOT - 1)

/* --- Strings.  NO_ROW: the limit is reached. */

extern void _PySampling_FreeTexts(struct _sampling_tables *tables);
// NO_ROW: it is not there.
extern uint32_t
_PySampling_FindBytes(const struct _sampling_tables *tables,
                      const char *bytes, uint32_t size);
/* The longest name that is kept, in bytes of UTF-8, less than a block; the
   rest is cut off with a mark.  Long enough for any name a person wrote. */
#define _PySampling_MAX_STRING_BYTES 4096

// A str as UTF-8, cut to `space`.  Returns how many bytes that took.
// Async-signal-safe.
extern uint32_t _PySampling_EncodeText(PyObject *text, char *out,
                                       uint32_t space);

extern uint32_t _PySampling_InternBytes(struct _sampling_tables *tables,
                                        const char *bytes, uint32_t size);
// Of a str; NO_ROW for anything else.
extern uint32_t _PySampling_InternText(struct _sampling_tables *tables,
                                       PyObject *text);
// An entry of a dict.  Borrowed; NULL: not there, or it would take Python code
// to know.
extern PyObject *_PySampling_DictGet(PyObject *dict, PyObject *key);

/* --- Frames (tables/frames.c).  NO_ROW: the limit is reached. */

// The frame of a function that has no Python code.
extern uint32_t _PySampling_InternNative(struct _sampling_tables *tables,
                                         uint32_t module, uint32_t qualname,
                                         _PySampling_Kind kind);
// The frame of the same function and line, at no instruction of it.
extern uint32_t _PySampling_InternLine(struct _sampling_tables *tables,
                                       uint32_t frame);
extern uint32_t _PySampling_InternPseudo(struct _sampling_tables *tables,
                                         _PySampling_Pseudo pseudo,
                                         uint32_t value);

#endif  // !Py_SAMPLING_STORE_H
