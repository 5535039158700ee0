/* Sampling profiler: where an instruction's operands lie on the evaluation
   stack.

   Owns a table for each code object that was sampled: one byte for each code
   unit, made once, freed with the code object.  Must not know objects or
   names.

   The depth of the evaluation stack at an instruction depends on nothing but
   its position.  The compiler knows it and throws it away; here it is worked
   out again, by following all ways through the code.

   One of these per interpreter; owner: the thread that holds its GIL, and the
   signal handler on that thread.  The handler allocates nothing: a code object
   that it meets for the first time is worked out in a scratch area, and kept
   at the next drain.

   What the handler works out between two drains is bounded by the room of the
   scratch area, and each code object is worked out once: a stack may hold
   thousands of frames of code that nobody has seen.  What does not fit is
   counted, and worked out at the drain. */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_opcode_metadata.h"   // _PyOpcode_num_popped()
#include "pycore_runtime.h"           // _PyRuntime

#include "native.h"

/* The handler works out that many units between two drains, at 20 to 40 ns
   each: half a millisecond, once, and not more than MAX_PASSES times that for
   code made by hand.  Enough for one function of 5,000 lines, or for all those
   of a usual stack. */
#define MAX_SCRATCH_UNITS 16384

/* Code objects that wait to be kept; the others wait for another sample.  They
   are looked through for each frame of code that is not kept yet. */
#define MAX_PENDING_CODES 64

/* All tables of an interpreter; at the limit they are made anew.  Enough for
   more code than the standard library has. */
#define MAX_BYTES ((size_t)16 << 20)

/* Compilers lay code out so that two passes reach all of it; bytecode made by
   hand could ask for as many as it has jumps. */
#define MAX_PASSES 8

#define FIRST_INDEX_SIZE 64

/* Values of a byte: 0, nothing known or nothing to know; the slot + 1; or that
   the unit is an EXTENDED_ARG. */
#define IS_EXTENDED_ARG 255
#define MAX_SLOT 253

struct slot_table {
    PyCodeObject *code;
    int num_units;
    uint8_t units[];
};

struct _sampling_slots {
    struct slot_table **index;      // open addressing; &freed: was used
    uint32_t mask;
    uint32_t used;                  // freed ones included
    uint32_t live;
    uint64_t bytes;                 // atomic: also read without the GIL
    // What was met since the last drain.
    struct {
        PyCodeObject *code;         // NULL: it has died
        const uint8_t *units;       // in the scratch area; NULL: no room
    } pending[MAX_PENDING_CODES];
    int num_pending;
    int used_scratch;
    uint8_t scratch[MAX_SCRATCH_UNITS];
};

static const struct slot_table freed;


/* Working out. */

/* How far below the top of the stack the first operand lies: what is called,
   the left operand, or the container.  0: of no interest. */
static int
operand_distance(int opcode, int oparg)
{
    switch (opcode) {
    case CALL:
        return oparg + 2;
    case CALL_KW:
        return oparg + 3;
    case CALL_FUNCTION_EX:
        return 3 + (oparg & 1);
    case WITH_EXCEPT_START:
        return 4;
    case BINARY_SLICE:
    case STORE_SLICE:
        return 3;
    case BINARY_OP:
    case COMPARE_OP:
    case BINARY_SUBSCR:
    case STORE_SUBSCR:
    case DELETE_SUBSCR:
    case SEND:
    case FORMAT_WITH_SPEC:
        return 2;
    case CONTAINS_OP:
    case LOAD_ATTR:
    case STORE_ATTR:
    case FOR_ITER:
    case GET_ITER:
    case GET_AITER:
    case GET_ANEXT:
    case GET_AWAITABLE:
    case GET_LEN:
    case UNPACK_SEQUENCE:
    case UNPACK_EX:
    case TO_BOOL:
    case UNARY_NEGATIVE:
    case UNARY_INVERT:
    case FORMAT_SIMPLE:
    case CONVERT_VALUE:
    case BEFORE_WITH:
        return 1;
    default:
        return 0;
    }
}

/* An instruction, its EXTENDED_ARGs and caches. */
struct instruction {
    int opcode;     // neither specialised nor instrumented
    int oparg;
    int unit;       // where the opcode is
    int next_unit;
};

static struct instruction
decode(PyCodeObject *code, int unit, int num_units)
{
    const _Py_CODEUNIT *units = _PyCode_CODE(code);
    int opcode = _Py_GetBaseOpcode(code, unit);
    int oparg = units[unit].op.arg;
    while (opcode == EXTENDED_ARG && unit + 1 < num_units) {
        unit++;
        opcode = _Py_GetBaseOpcode(code, unit);
        oparg = oparg << 8 | units[unit].op.arg;
    }
    return (struct instruction){
        opcode, oparg, unit, unit + 1 + _PyOpcode_Caches[opcode]};
}

static int
jump_target(struct instruction in)
{
    switch (in.opcode) {
    case JUMP_FORWARD:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
    case FOR_ITER:
    case SEND:
        return in.next_unit + in.oparg;
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
        return in.next_unit - in.oparg;
    default:
        return -1;
    }
}

static int
falls_through(int opcode)
{
    switch (opcode) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case RETURN_VALUE:
    case RETURN_CONST:
    case RAISE_VARARGS:
    case RERAISE:
    case INTERPRETER_EXIT:
        return 0;
    default:
        return 1;
    }
}

/* While working out, a byte is the depth at its unit + 1; 0: not known. */
static void
set_depth(uint8_t *units, int num_units, int unit, int depth)
{
    if (unit >= 0 && unit < num_units && units[unit] == 0
        && depth >= 0 && depth <= MAX_SLOT)
    {
        units[unit] = (uint8_t)(depth + 1);
    }
}

/* A number of the exception table: six bits a byte, the highest first
   (InternalDocs of CPython, exception_handling). */
static const uint8_t *
read_varint(const uint8_t *p, const uint8_t *end, int *value)
{
    *value = 0;
    while (p < end) {
        *value = *value << 6 | (*p & 63);
        if ((*p++ & 64) == 0) {
            break;
        }
    }
    return p;
}

/* An exception handler starts at a depth that its table tells. */
static void
set_handler_depths(PyCodeObject *code, uint8_t *units, int num_units)
{
    PyObject *table = code->co_exceptiontable;
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(table);
    const uint8_t *end = p + PyBytes_GET_SIZE(table);
    while (p < end) {
        int start, size, target, depth_lasti;
        p = read_varint(p, end, &start);
        p = read_varint(p, end, &size);
        p = read_varint(p, end, &target);
        p = read_varint(p, end, &depth_lasti);
        // The exception is pushed, and before it where it was raised, if a
        // later RERAISE is to know.
        set_depth(units, num_units, target,
                  (depth_lasti >> 1) + (depth_lasti & 1) + 1);
    }
}

/* One pass over the code; returns 1 if a jump back reached what had not been
   reached before. */
static int
propagate_depths(PyCodeObject *code, uint8_t *units, int num_units)
{
    int again = 0;
    for (int unit = 0; unit < num_units; ) {
        struct instruction in = decode(code, unit, num_units);
        if (units[unit] == 0) {
            unit = in.next_unit;
            continue;
        }
        int depth = units[unit] - 1;
        set_depth(units, num_units, in.unit, depth);
        int popped = _PyOpcode_num_popped(in.opcode, in.oparg);
        int pushed = _PyOpcode_num_pushed(in.opcode, in.oparg);
        if (popped >= 0 && pushed >= 0) {
            int after = depth - popped + pushed;
            int target = jump_target(in);
            if (target >= 0 && target < num_units && units[target] == 0) {
                set_depth(units, num_units, target, after);
                again |= target < unit;
            }
            if (falls_through(in.opcode)) {
                set_depth(units, num_units, in.next_unit, after);
            }
        }
        unit = in.next_unit;
    }
    return again;
}

/* Async-signal-safe. */
static void
work_out(PyCodeObject *code, uint8_t *units, int num_units)
{
    memset(units, 0, (size_t)num_units);
    set_depth(units, num_units, 0, 0);
    set_handler_depths(code, units, num_units);
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        if (!propagate_depths(code, units, num_units)) {
            break;
        }
    }
    for (int unit = 0; unit < num_units; ) {
        struct instruction in = decode(code, unit, num_units);
        int depth = units[in.unit] - 1;
        int distance = operand_distance(in.opcode, in.oparg);
        int slot = distance > 0 && depth >= distance ? depth - distance : -1;
        for (int i = unit; i < in.unit; i++) {
            units[i] = IS_EXTENDED_ARG;
        }
        units[in.unit] = (uint8_t)(slot + 1);
        for (int i = in.unit + 1; i < in.next_unit && i < num_units; i++) {
            units[i] = 0;
        }
        unit = in.next_unit;
    }
}


/* The tables. */

static uint32_t
hash_code(const PyCodeObject *code)
{
    // Multiplication by 2^64 / golden ratio spreads low bits to high ones.
    return (uint32_t)(((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 32);
}

static struct slot_table **
find(const struct _sampling_slots *slots, const PyCodeObject *code)
{
    if (slots->index == NULL) {
        return NULL;
    }
    uint32_t i = hash_code(code) & slots->mask;
    for (; slots->index[i] != NULL; i = (i + 1) & slots->mask) {
        if (slots->index[i]->code == code) {
            return &slots->index[i];
        }
    }
    return NULL;
}

static void
set_bytes(struct _sampling_slots *slots, uint64_t bytes)
{
    _Py_atomic_store_uint64_relaxed(&slots->bytes, bytes);
}

static void
put(struct _sampling_slots *slots, struct slot_table *table)
{
    uint32_t i = hash_code(table->code) & slots->mask;
    while (slots->index[i] != NULL) {
        i = (i + 1) & slots->mask;
    }
    slots->index[i] = table;
    slots->used++;
    slots->live++;
}

static void
clear(struct _sampling_slots *slots)
{
    for (uint32_t i = 0; slots->index != NULL && i <= slots->mask; i++) {
        if (slots->index[i] != &freed) {
            free(slots->index[i]);
        }
    }
    free(slots->index);
    slots->index = NULL;
    slots->mask = 0;
    slots->used = 0;
    slots->live = 0;
    set_bytes(slots, 0);
}

/* Returns 0 if there is no memory. */
static int
reserve(struct _sampling_slots *slots)
{
    uint32_t old_size = slots->index != NULL ? slots->mask + 1 : 0;
    if ((slots->used + 1) * 2 <= old_size) {
        return 1;
    }
    uint32_t size = FIRST_INDEX_SIZE;
    while ((slots->live + 1) * 4 > size) {
        size *= 2;
    }
    struct slot_table **old = slots->index;
    struct slot_table **index = calloc(size, sizeof(*index));
    if (index == NULL) {
        return 0;
    }
    slots->index = index;
    slots->mask = size - 1;
    slots->used = 0;
    slots->live = 0;
    set_bytes(slots, slots->bytes - old_size * sizeof(*index)
                     + size * sizeof(*index));
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i] != NULL && old[i] != &freed) {
            put(slots, old[i]);
        }
    }
    free(old);
    return 1;
}

/* `units`: as worked out, or NULL. */
static void
keep(struct _sampling_slots *slots, PyCodeObject *code, const uint8_t *units)
{
    int num_units = (int)Py_SIZE(code);
    size_t bytes = sizeof(struct slot_table) + (size_t)num_units;
    if (find(slots, code) != NULL || bytes > MAX_BYTES / 2) {
        return;
    }
    if (slots->bytes + bytes > MAX_BYTES) {
        clear(slots);
    }
    struct slot_table *table = reserve(slots) ? malloc(bytes) : NULL;
    if (table == NULL) {
        return;     // it is worked out again at the next sample
    }
    table->code = code;
    table->num_units = num_units;
    if (units != NULL) {
        memcpy(table->units, units, (size_t)num_units);
    }
    else {
        work_out(code, table->units, num_units);
    }
    set_bytes(slots, slots->bytes + bytes);
    put(slots, table);
}

struct _sampling_slots *
_PySampling_SlotsNew(void)
{
    return calloc(1, sizeof(struct _sampling_slots));
}

void
_PySampling_SlotsFree(struct _sampling_slots *slots)
{
    if (slots != NULL) {
        clear(slots);
        free(slots);
    }
}

void
_PySampling_SlotsClear(struct _sampling_slots *slots)
{
    clear(slots);
    slots->num_pending = 0;
    slots->used_scratch = 0;
}

size_t
_PySampling_SlotsBytes(const struct _sampling_slots *slots)
{
    return sizeof(*slots)
           + (size_t)_Py_atomic_load_uint64_relaxed(&slots->bytes);
}

void
_PySampling_SlotsKeep(struct _sampling_slots *slots)
{
    for (int i = 0; i < slots->num_pending; i++) {
        if (slots->pending[i].code != NULL) {
            keep(slots, slots->pending[i].code, slots->pending[i].units);
        }
    }
    slots->num_pending = 0;
    slots->used_scratch = 0;
}

void
_PySampling_SlotsForget(struct _sampling_slots *slots, PyCodeObject *code)
{
    struct slot_table **entry = find(slots, code);
    if (entry != NULL) {
        set_bytes(slots, slots->bytes - sizeof(struct slot_table)
                         - (size_t)(*entry)->num_units);
        free(*entry);
        *entry = (struct slot_table *)&freed;
        slots->live--;
    }
    for (int i = 0; i < slots->num_pending; i++) {
        if (slots->pending[i].code == code) {
            slots->pending[i].code = NULL;
        }
    }
}

/* Of a code object that is met for the first time since the last drain; NULL:
   it has to wait. */
static const uint8_t *
work_out_in_scratch(struct _sampling_slots *slots, PyCodeObject *code)
{
    if (slots->num_pending == MAX_PENDING_CODES) {
        return NULL;
    }
    uint8_t *units = NULL;
    int num_units = (int)Py_SIZE(code);
    if (num_units <= MAX_SCRATCH_UNITS - slots->used_scratch) {
        units = slots->scratch + slots->used_scratch;
        slots->used_scratch += num_units;
        work_out(code, units, num_units);
    }
    slots->pending[slots->num_pending].code = code;
    slots->pending[slots->num_pending].units = units;
    slots->num_pending++;
    return units;
}

/* The bytes of a code object, or NULL. */
static const uint8_t *
units_of(struct _sampling_slots *slots, PyCodeObject *code)
{
    struct slot_table **entry = find(slots, code);
    if (entry != NULL) {
        return (*entry)->units;
    }
    for (int i = 0; i < slots->num_pending; i++) {
        if (slots->pending[i].code == code) {
            return slots->pending[i].units;
        }
    }
    return work_out_in_scratch(slots, code);
}

int
_PySampling_SlotOf(struct _sampling_slots *slots, PyCodeObject *code,
                   _Py_CODEUNIT *instr)
{
    const uint8_t *units = units_of(slots, code);
    Py_ssize_t unit = instr - _PyCode_CODE(code);
    if (units == NULL) {
        _PySampling_COUNT(callees_put_off, 1);
        return _PySampling_NO_SLOT;
    }
    if (unit < 0 || unit >= Py_SIZE(code)
        || units[unit] == 0 || units[unit] == IS_EXTENDED_ARG)
    {
        return _PySampling_NO_SLOT;
    }
    return units[unit] - 1;
}

int
_PySampling_OpargOf(struct _sampling_slots *slots, PyCodeObject *code,
                    _Py_CODEUNIT *instr)
{
    const uint8_t *units = units_of(slots, code);
    Py_ssize_t unit = instr - _PyCode_CODE(code);
    int oparg = instr->op.arg;
    for (int shift = 8; units != NULL && unit > 0 && shift < 32
             && units[unit - 1] == IS_EXTENDED_ARG; shift += 8)
    {
        unit--;
        oparg |= _PyCode_CODE(code)[unit].op.arg << shift;
    }
    return oparg;
}
