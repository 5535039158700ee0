/* Sampling profiler: what a frame is called.

   Owns the functions and frames of the tables, and the rows of code objects
   that are alive.  Must not know stacks, samples or threads.

   Functions and frames differ in what they say (names, file, lines), not in
   the address of the code object: a program that compiles the same
   text again and again adds nothing.  Addresses live only in `codes` and
   `places`, whose rows are freed with the code object. */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_opcode_metadata.h"   // _PyOpcode_Deopt
#include "pycore_runtime.h"           // _PyRuntime

#include "move.h"
#include "store.h"

/* Indexes. */

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
hash_code_row(const struct _sampling_code_row *row)
{
    return mix((uintptr_t)row->code, 0);
}

static uint32_t
hash_place_row(const struct _sampling_place_row *row)
{
    return mix((uintptr_t)row->instr, 0);
}

DEFINE_INDEX(function, 0)
DEFINE_INDEX(frame, 0)
DEFINE_INDEX(code, AT(tables, code, row)->code == NULL)
DEFINE_INDEX(place, AT(tables, place, row)->code == NULL)


static PyObject *
module_name(PyObject *globals)
{
    PyObject *name = _PySampling_DictGet(globals, &_Py_ID(__name__));
    return name != NULL && PyUnicode_Check(name) ? name : NULL;
}


/* Functions and frames. */

/* A Python function may get its module when it is in the index already. */
static uint32_t
hash_function(const struct _sampling_function_row *key)
{
    uint32_t module = key->kind == _PySampling_KIND_PYTHON ? 0 : key->module;
    return mix(((uint64_t)key->qualname << 32) | key->filename,
               ((uint64_t)module << 32) | (uint32_t)key->first_line);
}

/* The modules of a file's functions, as far as they are known. */
#define MANY_MODULES (_PySampling_NO_STRING - 1)

static void
add_to_file(struct _sampling_tables *tables, uint32_t filename,
            uint32_t module)
{
    struct _sampling_string_row *file = AT(tables, string,
                                                       filename);
    if (module != _PySampling_NO_STRING && file->module != module) {
        _Py_atomic_store_uint32_release(
            &file->module, file->module == _PySampling_NO_STRING
                           ? module : MANY_MODULES);
    }
}

/* The row that says the same, hash included, or NO_ROW. */
static uint32_t
find_function(const struct _sampling_tables *tables,
              const struct _sampling_function_row *key)
{
    FOR_CANDIDATES(tables->function_index, key->hash, row) {
        if (memcmp(AT(tables, function, row), key, sizeof(*key)) == 0) {
            return row;
        }
    }
    return NO_ROW;
}

static uint32_t
intern_function(struct _sampling_tables *tables,
                struct _sampling_function_row key)
{
    if (key.qualname == NO_ROW || key.filename == NO_ROW) {
        return NO_ROW;
    }
    key.hash = hash_function(&key);
    uint32_t found = find_function(tables, &key);
    if (found != NO_ROW) {
        return found;
    }
    if (!RESERVE(tables, functions) || !reserve_function_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = add_function_row(tables, key);
    add_to_file(tables, key.filename, key.module);
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
        if (memcmp(AT(tables, frame, row), &key, sizeof(key)) == 0) {
            return row;
        }
    }
    if (!RESERVE(tables, frames) || !reserve_frame_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = add_frame_row(tables, key);
    index_put(&tables->frame_index, key.hash, row);
    return row;
}

uint32_t
_PySampling_InternNative(struct _sampling_tables *tables, uint32_t module,
                         uint32_t qualname, _PySampling_Kind kind)
{
    uint32_t function = intern_function(tables,
        (struct _sampling_function_row){
            .module = module,
            .qualname = qualname,
            .filename = _PySampling_InternBytes(tables, "", 0),
            .kind = kind,
        });
    return intern_frame(tables, (struct _sampling_frame_row){
        .function = function, .offset = -1});
}

uint32_t
_PySampling_InternLine(struct _sampling_tables *tables, uint32_t frame)
{
    const struct _sampling_frame_row *row = AT(tables, frame, frame);
    return intern_frame(tables, (struct _sampling_frame_row){
        .function = row->function, .line = row->line, .offset = -1});
}

uint32_t
_PySampling_InternPseudo(struct _sampling_tables *tables,
                         _PySampling_Pseudo pseudo, uint32_t value)
{
    static const char *const formats[] = {
        [_PySampling_PSEUDO_WAITING] = "[waiting]",
        [_PySampling_PSEUDO_GIL_WAIT] = "[GIL wait]",
        [_PySampling_PSEUDO_GC] = "[GC gen%u]",
        [_PySampling_PSEUDO_TRUNCATED] = "[truncated %u+ frames]",
        [_PySampling_PSEUDO_LOST] = "[lost]",
        [_PySampling_PSEUDO_UNSAMPLED] = "[unsampled]",
        [_PySampling_PSEUDO_ASLEEP] = "[asleep with GIL]",
        [_PySampling_PSEUDO_CPU_WAIT] = "[CPU wait]",
        [_PySampling_PSEUDO_UNKNOWN] = "[unknown]",
        [_PySampling_PSEUDO_AWAITING] = "[awaiting]",
        [_PySampling_PSEUDO_LOOP_WAIT] = "[loop wait]",
        [_PySampling_PSEUDO_OTHER_TASKS] = "[other tasks]",
        [_PySampling_PSEUDO_NATIVE_THREAD] = "[native thread]",
    };
    char text[64];
    PyOS_snprintf(text, sizeof(text), formats[pseudo], (unsigned)value);
    return _PySampling_InternNative(
        tables, _PySampling_NO_STRING,
        _PySampling_InternBytes(tables, text, (uint32_t)strlen(text)),
        _PySampling_KIND_PSEUDO);
}

static uint32_t
function_of_code(struct _sampling_tables *tables, PyCodeObject *code,
                 PyObject *module)
{
    return intern_function(tables, (struct _sampling_function_row){
        .module = _PySampling_InternText(tables, module),
        .qualname = _PySampling_InternText(tables, code->co_qualname),
        .filename = _PySampling_InternText(tables, code->co_filename),
        .first_line = code->co_firstlineno,
        .kind = _PySampling_KIND_PYTHON,
    });
}

static uint32_t
find_code(struct _sampling_tables *tables, PyCodeObject *code)
{
    uint32_t hash = mix((uintptr_t)code, 0);
    FOR_CANDIDATES(tables->code_index, hash, row) {
        if (AT(tables, code, row)->code == code) {
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
    const struct _sampling_code_row content = {code, function, NO_ROW};
    uint32_t row = tables->free_code;
    if (row != NO_ROW) {
        tables->free_code = AT(tables, code, row)->function;
        *AT(tables, code, row) = content;
    }
    else {
        if (!RESERVE(tables, codes)) {
            return NO_ROW;
        }
        row = add_code_row(tables, content);
    }
    index_put(&tables->code_index, hash_code_row(&content), row);
    return row;
}

uint32_t
_PySampling_TablesFunction(struct _sampling_tables *tables,
                           PyCodeObject *code, PyObject *globals)
{
    uint32_t row = find_code(tables, code);
    if (row == NO_ROW) {
        row = add_code(tables, code, globals);
    }
    return row != NO_ROW ? AT(tables, code, row)->function : NO_ROW;
}

static uint32_t
frame_of_instr(struct _sampling_tables *tables, uint32_t function,
               PyCodeObject *code, _Py_CODEUNIT *instr, int opcode)
{
    struct _sampling_frame_row key = {.function = function, .offset = -1};
    Py_ssize_t index = instr - _PyCode_CODE(code);
    if (index >= 0 && index < Py_SIZE(code)) {
        int line, column, end_line, end_column;
        key.offset = (int32_t)(index * sizeof(_Py_CODEUNIT));
        key.opcode = opcode != 0
            ? opcode : _PyOpcode_Deopt[_Py_GetBaseOpcode(code, (int)index)];
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
_PySampling_FunctionLacksModule(struct _sampling_tables *tables,
                              PyCodeObject *code)
{
    if (code == NULL || ((uintptr_t)code & 1) != 0) {
        return 0;       // not a Python frame
    }
    uint32_t row = find_code(tables, code);
    if (row == NO_ROW) {
        return 1;
    }
    uint32_t function = AT(tables, code, row)->function;
    return AT(tables, function, function)->module
        == _PySampling_NO_STRING;
}

/* Places lead to frames of the function that a code object had. */
static void
forget_places(struct _sampling_tables *tables, struct _sampling_code_row *c)
{
    for (uint32_t p = c->first_place; p != NO_ROW; ) {
        struct _sampling_place_row *place = AT(tables, place, p);
        uint32_t next = place->next_place;
        index_remove(&tables->place_index, hash_place_row(place), p);
        place->code = NULL;
        place->next_place = tables->free_place;
        tables->free_place = p;
        p = next;
    }
    c->first_place = NO_ROW;
    tables->code_version++;
}

/* The frame that was running when the code was first seen had returned by
   the drain; now one is there that has the module.  The old rows stay valid:
   only their function gets its name.  If there is such a function already,
   of the same text compiled at another time, the code is one of that from now
   on: two rows would say the same, and more with each time that the text is
   compiled. */
static void
name_module(struct _sampling_tables *tables, uint32_t code_row,
            PyObject *globals)
{
    struct _sampling_code_row *code = AT(tables, code, code_row);
    struct _sampling_function_row key =
        *AT(tables, function, code->function);
    key.module = _PySampling_InternText(tables, module_name(globals));
    if (key.module == NO_ROW) {
        return;
    }
    uint32_t found = find_function(tables, &key);
    if (found == NO_ROW) {
        // Who reads it without the lock finds the string there.
        _Py_atomic_store_uint32_release(
            &AT(tables, function, code->function)->module,
            key.module);
        add_to_file(tables, key.filename, key.module);
    }
    else {
        code->function = found;
        forget_places(tables, code);
    }
}

uint32_t
_PySampling_InternFrame(struct _sampling_tables *tables,
                        _PySampling_Frame frame, int opcode,
                        PyObject *globals)
{
    if (frame.code == NULL) {
        uintptr_t bits = (uintptr_t)frame.instr;
        return _PySampling_InternPseudo(tables,
                                        (_PySampling_Pseudo)(bits & 15),
                                        (uint32_t)(bits >> 4));
    }
    uint32_t hash = mix((uintptr_t)frame.instr, 0);
    FOR_CANDIDATES(tables->place_index, hash, row) {
        const struct _sampling_place_row *place = AT(tables, place, row);
        if (place->code == frame.code && place->instr == frame.instr
            && place->opcode == opcode && globals == NULL)
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
        uint32_t function = AT(tables, code, code)->function;
        if (AT(tables, function, function)->module == _PySampling_NO_STRING) {
            name_module(tables, code, globals);
        }
    }
    FOR_CANDIDATES(tables->place_index, hash, row) {
        const struct _sampling_place_row *place = AT(tables, place, row);
        if (place->code == frame.code && place->instr == frame.instr
            && place->opcode == opcode)
        {
            return place->frame;
        }
    }
    uint32_t number = frame_of_instr(tables, AT(tables, code, code)->function,
                                     frame.code, frame.instr, opcode);
    if (number == NO_ROW || !reserve_place_index(tables)) {
        return NO_ROW;
    }
    const struct _sampling_place_row content = {
        frame.code, frame.instr, opcode, number,
        AT(tables, code, code)->first_place};
    uint32_t row = tables->free_place;
    if (row != NO_ROW) {
        tables->free_place = AT(tables, place, row)->next_place;
        *AT(tables, place, row) = content;
    }
    else {
        if (!RESERVE(tables, places)) {
            return NO_ROW;
        }
        row = add_place_row(tables, content);
    }
    AT(tables, code, code)->first_place = row;
    index_put(&tables->place_index, hash, row);
    return number;
}

/* What referred to living objects, all of it: what died while no hook was
   called is not known. */
void
_PySampling_TablesForgetAddresses(struct _sampling_tables *tables)
{
#define X(NAME) \
    if (tables->NAME##_index.slots != NULL) { \
        memset(tables->NAME##_index.slots, 0, \
               (tables->NAME##_index.mask + 1) * sizeof(uint32_t)); \
    } \
    tables->NAME##_index.used = 0; \
    tables->bytes -= tables->num_##NAME##s * sizeof(*tables->NAME##s[0]); \
    tables->num_##NAME##s = 0; \
    tables->free_##NAME = NO_ROW;
    X(code) X(place)
#undef X
    memset(tables->callees, 0, sizeof(tables->callees));
    tables->code_version++;
}

void
_PySampling_TablesForgetCode(struct _sampling_tables *tables,
                             PyCodeObject *code)
{
    uint32_t row = find_code(tables, code);
    if (row == NO_ROW) {
        return;
    }
    struct _sampling_code_row *c = AT(tables, code, row);
    forget_places(tables, c);
    index_remove(&tables->code_index, hash_code_row(c), row);
    c->code = NULL;
    c->function = tables->free_code;    // the list of free rows
    tables->free_code = row;
}

/* Is it a file, so that all its functions are of one module?  "<string>" is
   what everyone calls his own. */
static int
names_a_file(const struct _sampling_string_row *s)
{
    const char *frozen = "<frozen ";
    return s->size > 0
        && (s->bytes[0] != '<'
            || (s->size > strlen(frozen)
                && memcmp(s->bytes, frozen, strlen(frozen)) == 0));
}

/* A function whose frames had always returned by the drain gets the module
   that all other functions of its file have. */
uint32_t
_PySampling_TablesModuleOf(const struct _sampling_tables *tables,
                           const struct _sampling_function_row *function)
{
    uint32_t module = _Py_atomic_load_uint32_acquire(&function->module);
    const struct _sampling_string_row *file =
        AT(tables, string, function->filename);
    if (module != _PySampling_NO_STRING || !names_a_file(file)) {
        return module;
    }
    module = _Py_atomic_load_uint32_acquire(&file->module);
    return module != MANY_MODULES ? module : _PySampling_NO_STRING;
}


/* In other tables. */

uint32_t
_PySampling_CopyString(struct _sampling_tables *to,
                       const struct _sampling_tables *from, uint32_t string)
{
    if (string == _PySampling_NO_STRING) {
        return string;
    }
    const struct _sampling_string_row *row = AT(from, string, string);
    return _PySampling_InternBytes(to, row->bytes, row->size);
}

uint32_t
_PySampling_CopyFunction(struct _sampling_tables *to,
                         const struct _sampling_tables *from,
                         uint32_t function)
{
    const struct _sampling_function_row *row = AT(from, function, function);
    return intern_function(to, (struct _sampling_function_row){
        .module = _PySampling_CopyString(
            to, from, _PySampling_TablesModuleOf(from, row)),
        .qualname = _PySampling_CopyString(to, from, row->qualname),
        .filename = _PySampling_CopyString(to, from, row->filename),
        .first_line = row->first_line,
        .kind = row->kind,
    });
}

uint32_t
_PySampling_CopyFrame(struct _sampling_tables *to,
                      const struct _sampling_tables *from, uint32_t frame)
{
    struct _sampling_frame_row key = *AT(from, frame, frame);
    key.function = _PySampling_CopyFunction(to, from, key.function);
    return intern_frame(to, key);
}
