/* Sampling profiler: where an instruction's operands lie on the evaluation
   stack.

   The depth of the evaluation stack at an instruction depends on nothing but
   its position.  The compiler knows it and throws it away; here it is worked
   out again, by following all ways through the code.  Must not know when that
   is done, or what is kept of it (native/operands.c). */

#include "Python.h"
#include "opcode.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_opcode_metadata.h"   // _PyOpcode_num_popped()

#include "native.h"

/* Compilers lay code out so that two passes reach all of it; bytecode made by
   hand could ask for as many as it has jumps. */
#define MAX_PASSES 8

#define MAX_SLOT (_PySampling_UNIT_EXTENDED_ARG - 2)


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
    int opcode;     // neither specialized nor instrumented
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

/* An exception handler starts at a depth that its table gives. */
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

void
_PySampling_WorkOutSlots(PyCodeObject *code, uint8_t *units, int num_units)
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
            units[i] = _PySampling_UNIT_EXTENDED_ARG;
        }
        units[in.unit] = (uint8_t)(slot + 1);
        for (int i = in.unit + 1; i < in.next_unit && i < num_units; i++) {
            units[i] = 0;
        }
        unit = in.next_unit;
    }
}
