/* Sampling profiler: WHERE samples go.

   Owns the interned strings, functions, frames, stacks and the samples of one
   session.  Must not know clocks, signals or interpreter frames.

   Stacks are kept as a tree: a node is a frame below a parent node, and a
   stack is the path from the root to a node, so stacks share what they have
   in common.  Every table is an array of rows, found through an index of row
   numbers (open addressing, linear probing).  Rows refer to each other by
   number, so the arrays can be handed out as they are.

   Functions and frames are told apart by what they say (names, file, lines),
   not by the address of the code object: a program that compiles the same
   text again and again adds nothing.  Addresses live only in `codes` and
   `places`, whose rows are freed with the code object. */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_dict.h"              // DK_IS_UNICODE()
#include "pycore_opcode_metadata.h"   // _PyOpcode_Deopt
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_tables.h"

/* First size of every table, in rows; it doubles from there. */
#define FIRST_ROWS 64

/* The longest name that is kept, in bytes of UTF-8; the rest is cut off with
   a mark.  Long enough for any name a person wrote. */
#define MAX_STRING_BYTES 4096
#define CUT_MARK "..."

#define NO_ROW UINT32_MAX
#define FREED_SLOT UINT32_MAX


/* Memory, counted against the limit. */

static void *
resize(struct _sampling_tables *tables, void *old, size_t old_bytes,
       size_t new_bytes)
{
    if (tables->bytes - old_bytes + new_bytes > tables->limit_bytes) {
        return NULL;
    }
    void *block = realloc(old, new_bytes);
    if (block != NULL) {
        tables->bytes += new_bytes - old_bytes;
    }
    return block;
}

/* Makes room for one more row.  Returns 0 if the limit is reached. */
static int
reserve_row(struct _sampling_tables *tables, void **rows, uint32_t num,
            uint32_t *cap, size_t row_bytes)
{
    if (num < *cap) {
        return 1;
    }
    uint32_t new_cap = *cap ? *cap * 2 : FIRST_ROWS;
    void *block = resize(tables, *rows, *cap * row_bytes,
                         new_cap * row_bytes);
    if (block == NULL) {
        return 0;
    }
    *rows = block;
    *cap = new_cap;
    return 1;
}

#define RESERVE(TABLES, NAME) \
    reserve_row((TABLES), (void **)&(TABLES)->NAME, (TABLES)->num_##NAME, \
                &(TABLES)->cap_##NAME, sizeof(*(TABLES)->NAME))


/* Hashing. */

static inline uint32_t
mix(uint64_t a, uint64_t b)
{
    // Multiplication by 2^64 / golden ratio spreads low bits to high ones.
    uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(h >> 32);
}

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

static uint32_t
hash_function_row(const struct _sampling_function_row *row)
{
    return row->hash;
}

static uint32_t
hash_frame_row(const struct _sampling_frame_row *row)
{
    return row->hash;
}

static uint32_t
hash_node_row(const struct _sampling_node_row *row)
{
    return mix(row->parent, row->frame);
}

static uint32_t
hash_sample_row(const struct _sampling_sample_row *row)
{
    return mix(row->node, ((uint64_t)row->thread << 3) | row->state);
}

static uint32_t
hash_code_row(const struct _sampling_code_row *row)
{
    return mix((uintptr_t)row->code, 0);
}

static uint32_t
hash_thread_row(const struct _sampling_thread_row *row)
{
    return mix(row->ident,
               (uint64_t)row->interpreter_id << 32 | (uint32_t)row->native_id);
}

static uint32_t
hash_place_row(const struct _sampling_place_row *row)
{
    return mix((uintptr_t)row->instr, 0);
}


/* Puts a row that is not there yet into an index that has room. */
static void
index_put(struct _sampling_index *index, uint32_t hash, uint32_t row)
{
    uint32_t i = hash & index->mask;
    while (index->slots[i] != 0) {
        i = (i + 1) & index->mask;
    }
    index->slots[i] = row + 1;
    index->used++;
}

/* For each table: grow its index to hold one more row, rehashing; and find
   the slot that holds a row.  Rows freed meanwhile are dropped on the way. */
#define DEFINE_INDEX(NAME, IS_FREE) \
    static int \
    reserve_##NAME##_index(struct _sampling_tables *tables) \
    { \
        struct _sampling_index *index = &tables->NAME##_index; \
        uint32_t old_size = index->slots ? index->mask + 1 : 0; \
        if ((index->used + 1) * 4ull <= old_size * 3ull) { \
            return 1; \
        } \
        uint32_t size = old_size ? old_size : FIRST_ROWS; \
        while ((tables->num_##NAME##s + 1) * 2ull > size) { \
            size *= 2; \
        } \
        size_t bytes = size * sizeof(uint32_t); \
        size_t old_bytes = old_size * sizeof(uint32_t); \
        if (tables->bytes - old_bytes + bytes > tables->limit_bytes) { \
            return 0; \
        } \
        uint32_t *slots = calloc(size, sizeof(uint32_t)); \
        if (slots == NULL) { \
            return 0; \
        } \
        free(index->slots); \
        tables->bytes = tables->bytes - old_bytes + bytes; \
        *index = (struct _sampling_index){slots, size - 1, 0}; \
        for (uint32_t row = 0; row < tables->num_##NAME##s; row++) { \
            if (!(IS_FREE)) { \
                index_put(index, hash_##NAME##_row(&tables->NAME##s[row]), \
                          row); \
            } \
        } \
        return 1; \
    }

DEFINE_INDEX(string, 0)
DEFINE_INDEX(function, 0)
DEFINE_INDEX(frame, 0)
DEFINE_INDEX(node, row == 0)        // node 0 is the root and has no key
DEFINE_INDEX(sample, 0)
DEFINE_INDEX(code, tables->codes[row].code == NULL)
DEFINE_INDEX(place, tables->places[row].code == NULL)
DEFINE_INDEX(thread, 0)

/* Loops over the rows whose hash may be HASH, as uint32_t ROW. */
#define FOR_CANDIDATES(INDEX, HASH, ROW) \
    for (uint32_t slot_ = (INDEX).slots ? (HASH) & (INDEX).mask : 0, ROW; \
         (INDEX).slots != NULL && (INDEX).slots[slot_] != 0 \
             && (ROW = (INDEX).slots[slot_] - 1, 1); \
         slot_ = (slot_ + 1) & (INDEX).mask) \
        if (ROW != FREED_SLOT - 1)


/* Strings. */

static uint32_t
intern_bytes(struct _sampling_tables *tables, const char *bytes,
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
        char *block = resize(tables, tables->string_bytes,
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
static uint32_t
intern_unicode(struct _sampling_tables *tables, PyObject *text)
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
    return intern_bytes(tables, buffer, size);
}

/* globals['__name__'], if that can be read without running Python code:
   a dict whose keys are all strings compares them without calling out. */
static PyObject *
module_name(PyObject *globals)
{
    if (globals == NULL || !PyDict_CheckExact(globals)
        || !DK_IS_UNICODE(((PyDictObject *)globals)->ma_keys))
    {
        return NULL;
    }
    PyObject *name = _PyDict_GetItem_KnownHash(
        globals, &_Py_ID(__name__),
        ((PyASCIIObject *)&_Py_ID(__name__))->hash);
    return name != NULL && PyUnicode_Check(name) ? name : NULL;
}


/* Functions and frames. */

static uint32_t
intern_function(struct _sampling_tables *tables,
                struct _sampling_function_row key)
{
    if (key.qualname == NO_ROW || key.filename == NO_ROW) {
        return NO_ROW;
    }
    key.hash = mix(((uint64_t)key.qualname << 32) | key.filename,
                   ((uint64_t)key.module << 32) | (uint32_t)key.first_line);
    FOR_CANDIDATES(tables->function_index, key.hash, row) {
        if (memcmp(&tables->functions[row], &key, sizeof(key)) == 0) {
            return row;
        }
    }
    if (!RESERVE(tables, functions) || !reserve_function_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = tables->num_functions++;
    tables->functions[row] = key;
    index_put(&tables->function_index, key.hash, row);
    return row;
}

static uint32_t
intern_frame(struct _sampling_tables *tables, struct _sampling_frame_row key)
{
    if (key.function == NO_ROW) {
        return NO_ROW;
    }
    key.hash = mix(((uint64_t)key.function << 32) | (uint32_t)key.offset,
                   ((uint64_t)(uint32_t)key.line << 32)
                   | (uint32_t)(key.column << 8 | key.opcode));
    FOR_CANDIDATES(tables->frame_index, key.hash, row) {
        if (memcmp(&tables->frames[row], &key, sizeof(key)) == 0) {
            return row;
        }
    }
    if (!RESERVE(tables, frames) || !reserve_frame_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = tables->num_frames++;
    tables->frames[row] = key;
    index_put(&tables->frame_index, key.hash, row);
    return row;
}

static uint32_t
pseudo_frame(struct _sampling_tables *tables, _PySampling_Pseudo pseudo,
             uint32_t value)
{
    char text[64];
    switch (pseudo) {
    case _PySampling_PSEUDO_BLOCKED:
        strcpy(text, "[blocked]");
        break;
    case _PySampling_PSEUDO_GIL_WAIT:
        strcpy(text, "[GIL wait]");
        break;
    case _PySampling_PSEUDO_GC:
        PyOS_snprintf(text, sizeof(text), "[GC gen%u]", (unsigned)value);
        break;
    case _PySampling_PSEUDO_TRUNCATED:
        PyOS_snprintf(text, sizeof(text), "[truncated %u+ frames]",
                      (unsigned)value);
        break;
    case _PySampling_PSEUDO_LOST:
        strcpy(text, "[lost]");
        break;
    case _PySampling_PSEUDO_UNSAMPLED:
        strcpy(text, "[unsampled]");
        break;
    default:
        Py_UNREACHABLE();
    }
    uint32_t function = intern_function(tables,
        (struct _sampling_function_row){
            .module = _PySampling_NO_STRING,
            .qualname = intern_bytes(tables, text, (uint32_t)strlen(text)),
            .filename = intern_bytes(tables, "", 0),
            .kind = _PySampling_KIND_PSEUDO,
        });
    return intern_frame(tables, (struct _sampling_frame_row){
        .function = function, .offset = -1});
}

static uint32_t
function_of_code(struct _sampling_tables *tables, PyCodeObject *code,
                 PyObject *module)
{
    return intern_function(tables, (struct _sampling_function_row){
        .module = intern_unicode(tables, module),
        .qualname = intern_unicode(tables, code->co_qualname),
        .filename = intern_unicode(tables, code->co_filename),
        .first_line = code->co_firstlineno,
        .kind = _PySampling_KIND_PYTHON,
    });
}

static uint32_t
find_code(struct _sampling_tables *tables, PyCodeObject *code)
{
    uint32_t hash = mix((uintptr_t)code, 0);
    FOR_CANDIDATES(tables->code_index, hash, row) {
        if (tables->codes[row].code == code) {
            return row;
        }
    }
    return NO_ROW;
}

static uint32_t
add_code(struct _sampling_tables *tables, PyCodeObject *code,
         PyObject *globals)
{
    PyObject *module = module_name(globals);
    uint32_t function = function_of_code(tables, code, module);
    if (function == NO_ROW || !reserve_code_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = tables->free_code;
    if (row != NO_ROW) {
        tables->free_code = tables->codes[row].function;
    }
    else {
        if (!RESERVE(tables, codes)) {
            return NO_ROW;
        }
        row = tables->num_codes++;
    }
    tables->codes[row] = (struct _sampling_code_row){code, function, NO_ROW};
    index_put(&tables->code_index, hash_code_row(&tables->codes[row]), row);
    if (module == NULL) {
        tables->functions_without_module++;
    }
    return row;
}

static uint32_t
frame_of_instr(struct _sampling_tables *tables, uint32_t function,
               PyCodeObject *code, _Py_CODEUNIT *instr)
{
    struct _sampling_frame_row key = {.function = function, .offset = -1};
    Py_ssize_t index = instr - _PyCode_CODE(code);
    if (index >= 0 && index < Py_SIZE(code)) {
        int line, column, end_line, end_column;
        key.offset = (int32_t)(index * sizeof(_Py_CODEUNIT));
        key.opcode = _PyOpcode_Deopt[_Py_GetBaseOpcode(code, (int)index)];
        if (PyCode_Addr2Location(code, key.offset, &line, &column,
                                 &end_line, &end_column))
        {
            key.line = line > 0 ? line : 0;
            key.column = column >= 0 ? column + 1 : 0;
        }
    }
    return intern_frame(tables, key);
}

int
_PySampling_TablesWantsModule(struct _sampling_tables *tables,
                              PyCodeObject *code)
{
    if (code == NULL) {
        return 0;
    }
    uint32_t row = find_code(tables, code);
    if (row == NO_ROW) {
        return 1;
    }
    if (tables->functions_without_module == 0) {
        return 0;
    }
    uint32_t function = tables->codes[row].function;
    return tables->functions[function].module == _PySampling_NO_STRING;
}

/* The frame that was running when the code was first seen had returned by
   the drain; now one is there to tell the module.  The old rows stay valid:
   only their function gets its name. */
static void
name_module(struct _sampling_tables *tables, uint32_t code_row,
            PyObject *globals)
{
    uint32_t name = intern_unicode(tables, module_name(globals));
    if (name == NO_ROW) {
        return;
    }
    struct _sampling_function_row *function =
        &tables->functions[tables->codes[code_row].function];
    function->module = name;
    if (tables->functions_without_module > 0) {
        tables->functions_without_module--;
    }
}

uint32_t
_PySampling_TablesFrame(struct _sampling_tables *tables,
                        _PySampling_Frame frame, PyObject *globals)
{
    if (frame.code == NULL) {
        uintptr_t bits = (uintptr_t)frame.instr;
        return pseudo_frame(tables, (_PySampling_Pseudo)(bits & 15),
                            (uint32_t)(bits >> 4));
    }
    uint32_t hash = mix((uintptr_t)frame.instr, 0);
    FOR_CANDIDATES(tables->place_index, hash, row) {
        const struct _sampling_place_row *place = &tables->places[row];
        if (place->code == frame.code && place->instr == frame.instr
            && globals == NULL)
        {
            return place->frame;
        }
    }
    uint32_t code = find_code(tables, frame.code);
    if (code == NO_ROW) {
        code = add_code(tables, frame.code, globals);
        if (code == NO_ROW) {
            return NO_ROW;
        }
    }
    else if (globals != NULL) {
        uint32_t function = tables->codes[code].function;
        if (tables->functions[function].module == _PySampling_NO_STRING) {
            name_module(tables, code, globals);
        }
    }
    FOR_CANDIDATES(tables->place_index, hash, row) {
        const struct _sampling_place_row *place = &tables->places[row];
        if (place->code == frame.code && place->instr == frame.instr) {
            return place->frame;
        }
    }
    uint32_t number = frame_of_instr(tables, tables->codes[code].function,
                                     frame.code, frame.instr);
    if (number == NO_ROW || !reserve_place_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = tables->free_place;
    if (row != NO_ROW) {
        tables->free_place = tables->places[row].next_place;
    }
    else {
        if (!RESERVE(tables, places)) {
            return NO_ROW;
        }
        row = tables->num_places++;
    }
    tables->places[row] = (struct _sampling_place_row){
        frame.code, frame.instr, number, tables->codes[code].first_place};
    tables->codes[code].first_place = row;
    index_put(&tables->place_index, hash, row);
    return number;
}

/* Takes a row out of an index.  Its key must still be readable. */
static void
index_remove(struct _sampling_index *index, uint32_t hash, uint32_t row)
{
    uint32_t i = hash & index->mask;
    while (index->slots[i] != row + 1) {
        assert(index->slots[i] != 0);
        i = (i + 1) & index->mask;
    }
    index->slots[i] = FREED_SLOT;
}

void
_PySampling_TablesForgetCode(struct _sampling_tables *tables,
                             PyCodeObject *code)
{
    uint32_t row = find_code(tables, code);
    if (row == NO_ROW) {
        return;
    }
    struct _sampling_code_row *c = &tables->codes[row];
    if (tables->functions[c->function].module == _PySampling_NO_STRING
        && tables->functions_without_module > 0)
    {
        tables->functions_without_module--;
    }
    for (uint32_t p = c->first_place; p != NO_ROW; ) {
        struct _sampling_place_row *place = &tables->places[p];
        uint32_t next = place->next_place;
        index_remove(&tables->place_index, hash_place_row(place), p);
        place->code = NULL;
        place->next_place = tables->free_place;
        tables->free_place = p;
        p = next;
    }
    index_remove(&tables->code_index, hash_code_row(c), row);
    c->code = NULL;
    c->function = tables->free_code;    // the list of free rows
    tables->free_code = row;
    tables->code_version++;
}

/* Is it a file, so that all its functions are of one module?  "<string>" is
   what everyone calls his own. */
static int
names_a_file(const struct _sampling_tables *tables, uint32_t string)
{
    const struct _sampling_string_row *s = &tables->strings[string];
    const char *text = tables->string_bytes + s->offset;
    const char *frozen = "<frozen ";
    return s->size > 0
        && (text[0] != '<'
            || (s->size > strlen(frozen)
                && memcmp(text, frozen, strlen(frozen)) == 0));
}

/* A function whose frames had always returned by the drain gets the module
   that all other functions of its file have. */
int
_PySampling_TablesGuessModules(struct _sampling_tables *tables)
{
    const uint32_t unknown = NO_ROW, ambiguous = NO_ROW - 1;
    uint32_t *module_of = malloc(
        (tables->num_strings + 1) * sizeof(*module_of));
    if (module_of == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < tables->num_strings; i++) {
        module_of[i] = names_a_file(tables, i) ? unknown : ambiguous;
    }
    for (uint32_t i = 0; i < tables->num_functions; i++) {
        const struct _sampling_function_row *f = &tables->functions[i];
        uint32_t *module = &module_of[f->filename];
        if (f->module != _PySampling_NO_STRING && *module != f->module) {
            *module = *module == unknown ? f->module : ambiguous;
        }
    }
    for (uint32_t i = 0; i < tables->num_functions; i++) {
        struct _sampling_function_row *f = &tables->functions[i];
        uint32_t module = module_of[f->filename];
        if (f->module == _PySampling_NO_STRING && module != unknown
            && module != ambiguous)
        {
            f->module = module;
        }
    }
    free(module_of);
    return 1;
}


/* Stacks and samples. */

uint32_t
_PySampling_TablesChild(struct _sampling_tables *tables, uint32_t parent,
                        uint32_t frame)
{
    if (parent == _PySampling_NO_NODE || frame == NO_ROW) {
        return _PySampling_NO_NODE;
    }
    uint32_t hash = mix(parent, frame);
    FOR_CANDIDATES(tables->node_index, hash, row) {
        if (tables->nodes[row].parent == parent
            && tables->nodes[row].frame == frame)
        {
            return row;
        }
    }
    if (!RESERVE(tables, nodes) || !reserve_node_index(tables)) {
        return _PySampling_NO_NODE;
    }
    uint32_t row = tables->num_nodes++;
    tables->nodes[row] = (struct _sampling_node_row){parent, frame};
    index_put(&tables->node_index, hash, row);
    return row;
}

uint32_t
_PySampling_TablesPseudoChild(struct _sampling_tables *tables,
                              uint32_t parent, _PySampling_Pseudo pseudo,
                              uint32_t value)
{
    return _PySampling_TablesChild(tables, parent,
                                   pseudo_frame(tables, pseudo, value));
}

static struct _sampling_sample_row *
find_or_add_sample(struct _sampling_tables *tables, uint32_t node,
                   uint32_t thread, _PySampling_State state)
{
    struct _sampling_sample_row key = {node, thread, state, 0, 0, 0};
    uint32_t hash = hash_sample_row(&key);
    FOR_CANDIDATES(tables->sample_index, hash, row) {
        struct _sampling_sample_row *sample = &tables->samples[row];
        if (sample->node == node && sample->thread == thread
            && sample->state == (int32_t)state)
        {
            return sample;
        }
    }
    if (!RESERVE(tables, samples) || !reserve_sample_index(tables)) {
        return NULL;
    }
    uint32_t row = tables->num_samples++;
    tables->samples[row] = key;
    index_put(&tables->sample_index, hash, row);
    return &tables->samples[row];
}

/* Row 0 of the samples is [lost] of thread 0, made with the tables. */
static struct _sampling_sample_row *
lost_sample(struct _sampling_tables *tables, uint32_t thread)
{
    struct _sampling_sample_row *sample = find_or_add_sample(
        tables, tables->lost_node, thread, _PySampling_LOST);
    return sample != NULL ? sample : &tables->samples[0];
}

void
_PySampling_TablesAdd(struct _sampling_tables *tables, uint32_t node,
                      uint32_t thread, _PySampling_State state,
                      uint64_t count, uint64_t cpu_ns, uint64_t wall_ns)
{
    struct _sampling_sample_row *sample = NULL;
    if (node != _PySampling_NO_NODE) {
        sample = find_or_add_sample(tables, node, thread, state);
    }
    if (sample == NULL) {
        _PySampling_COUNT(lost_table_full, count);
        _PySampling_COUNT(lost_wall_ns, wall_ns);
        _PySampling_COUNT(lost_cpu_ns, cpu_ns);
        sample = lost_sample(tables, thread);
    }
    sample->count += count;
    sample->cpu_ns += cpu_ns;
    sample->wall_ns += wall_ns;
    _PySampling_COUNT(samples, count);
}

void
_PySampling_TablesAddLost(struct _sampling_tables *tables, uint32_t thread,
                          uint64_t wall_ns)
{
    lost_sample(tables, thread)->wall_ns += wall_ns;
    _PySampling_COUNT(lost_wall_ns, wall_ns);
}


/* Threads. */

uint32_t
_PySampling_TablesAddThread(struct _sampling_tables *tables, uint64_t ident,
                            int64_t native_id, int64_t interpreter_id)
{
    struct _sampling_thread_row key = {
        ident, native_id, interpreter_id, _PySampling_NO_STRING};
    uint32_t hash = hash_thread_row(&key);
    FOR_CANDIDATES(tables->thread_index, hash, row) {
        const struct _sampling_thread_row *thread = &tables->threads[row];
        if (thread->ident == ident && thread->native_id == native_id
            && thread->interpreter_id == interpreter_id)
        {
            return row;
        }
    }
    if (tables->num_threads >= _PySampling_MAX_THREADS
        || !RESERVE(tables, threads) || !reserve_thread_index(tables))
    {
        _PySampling_COUNT(lost_threads, 1);
        return tables->num_threads ? tables->num_threads - 1 : NO_ROW;
    }
    uint32_t row = tables->num_threads++;
    tables->threads[row] = key;
    index_put(&tables->thread_index, hash, row);
    return row;
}

void
_PySampling_TablesNameMainThread(struct _sampling_tables *tables,
                                 uint32_t thread)
{
    static const char name[] = "MainThread";    // as threading calls it
    if (thread < tables->num_threads) {
        tables->threads[thread].name =
            intern_bytes(tables, name, sizeof(name) - 1);
    }
}

void
_PySampling_TablesNameThread(struct _sampling_tables *tables,
                             uint32_t thread, PyObject *name)
{
    if (thread < tables->num_threads) {
        tables->threads[thread].name = intern_unicode(tables, name);
    }
}

/* The thread keeps the name it had in other tables. */
void
_PySampling_TablesMoveName(struct _sampling_tables *tables, uint32_t thread,
                           const struct _sampling_tables *old,
                           uint32_t old_thread)
{
    if (thread >= tables->num_threads || old_thread >= old->num_threads
        || old->threads[old_thread].name == _PySampling_NO_STRING)
    {
        return;
    }
    const struct _sampling_string_row *name =
        &old->strings[old->threads[old_thread].name];
    tables->threads[thread].name = intern_bytes(
        tables, old->string_bytes + name->offset, name->size);
}


/* Life. */

struct _sampling_tables *
_PySampling_TablesNew(size_t limit_bytes)
{
    struct _sampling_tables *tables =
        calloc(1, sizeof(*tables));
    if (tables == NULL) {
        return NULL;
    }
    tables->limit_bytes = limit_bytes;
    tables->free_code = NO_ROW;
    tables->free_place = NO_ROW;
    if (!RESERVE(tables, nodes)) {
        _PySampling_TablesFree(tables);
        return NULL;
    }
    tables->nodes[tables->num_nodes++] = (struct _sampling_node_row){0, 0};
    tables->lost_node = _PySampling_TablesPseudoChild(
        tables, 0, _PySampling_PSEUDO_LOST, 0);
    // Made beforehand so that losing needs no memory.
    if (tables->lost_node == _PySampling_NO_NODE
        || find_or_add_sample(tables, tables->lost_node, 0,
                              _PySampling_LOST) == NULL)
    {
        _PySampling_TablesFree(tables);
        return NULL;
    }
    return tables;
}

void
_PySampling_TablesFree(struct _sampling_tables *tables)
{
    if (tables == NULL) {
        return;
    }
#define X(name) \
    free(tables->name##s); \
    free(tables->name##_index.slots);
    _PySampling_TABLES(X)
#undef X
    free(tables->string_bytes);
    free(tables);
}

static int
copy_block(void **block, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (copy != NULL && bytes != 0) {
        memcpy(copy, *block, bytes);
    }
    *block = copy;
    return copy != NULL;
}

struct _sampling_tables *
_PySampling_TablesCopy(const struct _sampling_tables *tables)
{
    struct _sampling_tables *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    *copy = *tables;
    // Rows only: a copy is read from end to end, never searched.
    int ok = 1;
#define X(name) \
    copy->name##_index = (struct _sampling_index){NULL, 0, 0}; \
    ok &= copy_block((void **)&copy->name##s, \
                     copy->num_##name##s * sizeof(*copy->name##s));
    _PySampling_TABLES(X)
#undef X
    ok &= copy_block((void **)&copy->string_bytes, copy->num_string_bytes);
    if (!ok) {
        _PySampling_TablesFree(copy);
        return NULL;
    }
    return copy;
}
