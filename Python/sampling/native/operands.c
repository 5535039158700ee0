/* Sampling profiler: where the operands of code that was sampled lie.

   Owns a table for each code object: one byte for each code unit, made once,
   freed with the code object.  Must not know how it is worked out
   (native/depths.c), objects or names.

   One of these per interpreter; owner: the thread that holds its GIL, and the
   signal handler on that thread.  The handler allocates nothing: a code object
   that it meets for the first time is worked out in a scratch area, and kept
   at the next drain.

   What the handler works out between two drains is bounded by the size of the
   scratch area, and each code object is worked out once: a stack may hold
   thousands of frames of code that nobody has seen.  What does not fit is
   counted, and worked out at the drain. */

#include "Python.h"

#include "pycore_code.h"              // _PyCode_CODE()
#include "pycore_runtime.h"           // _PyRuntime

#include "native.h"

/* The handler works out that many units between two drains, at 20 to 40 ns
   each: half a millisecond, once, and not more than eight times that for code
   made by hand (MAX_PASSES).  Enough for one function of 5,000 lines, or for
   all those of a usual stack. */
#define MAX_SCRATCH_UNITS 16384

/* Code objects that wait to be kept; the others wait for another sample.  They
   are looked through for each frame of code that is not kept yet. */
#define MAX_PENDING_CODES 64

/* All tables of an interpreter; at the limit they are made anew.  Enough for
   more code than the standard library has. */
#define MAX_BYTES ((size_t)16 << 20)

#define FIRST_INDEX_SIZE 64

struct slot_table {
    PyCodeObject *code;
    int num_units;
    uint8_t units[];
};

struct _sampling_slots {
    struct slot_table **index;      // open addressing; FREED: was used
    uint32_t mask;
    uint32_t used;                  // freed ones included
    uint32_t live;
    uint64_t bytes;                 // atomic: also read without the GIL
    // What was met since the last drain.
    struct {
        PyCodeObject *code;         // NULL: it has died
        const uint8_t *units;       // in the scratch area; NULL: no space
    } pending[MAX_PENDING_CODES];
    int num_pending;
    int used_scratch;
    uint8_t scratch[MAX_SCRATCH_UNITS];
};

/* What was in a slot of the index has died. */
#define FREED ((struct slot_table *)1)


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
        if (slots->index[i] != FREED && slots->index[i]->code == code) {
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
    if (slots->index == NULL) {
        return;
    }
    for (uint32_t i = 0; i <= slots->mask; i++) {
        if (slots->index[i] != FREED) {
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
        if (old[i] != NULL && old[i] != FREED) {
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
        _PySampling_WorkOutSlots(code, table->units, num_units);
    }
    set_bytes(slots, slots->bytes + bytes);
    put(slots, table);
}

struct _sampling_slots *
_PySampling_SlotsNew(void)
{
    return calloc(1, sizeof(struct _sampling_slots));
}

size_t
_PySampling_SlotsSize(void)
{
    return sizeof(struct _sampling_slots);
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
        *entry = FREED;
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
        _PySampling_WorkOutSlots(code, units, num_units);
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
        || units[unit] == 0 || units[unit] == _PySampling_UNIT_EXTENDED_ARG)
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
             && units[unit - 1] == _PySampling_UNIT_EXTENDED_ARG; shift += 8)
    {
        unit--;
        oparg |= _PyCode_CODE(code)[unit].op.arg << shift;
    }
    return oparg;
}
