/* Sampling profiler: which blocks are sampled, and where they were allocated.

   Owns the budgets, the table of sampled blocks and the copies of stacks.  Must
   not know what the allocators do (alloc/functions.c, alloc/pymalloc.h), or
   what becomes of a sample (alloc/drain.c).

   Everything here runs in the middle of an allocation or a free, of any
   thread.  What waits is bounded: beyond that a block is not sampled, and
   counted. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../base/frame.h"
#include "../sample/buffer.h"
#include "../sample/walk.h"
#include "alloc.h"

#include <errno.h>
#include <math.h>                     // log()

#define STATE (&_PyRuntime.sampling)

/* How much is drawn while nobody samples: a session finds no more than that
   left where a GIL is not its own. */
#define IDLE_BYTES ((int64_t)1 << 20)

/* Sampled blocks that are alive, or whose end waits: 128 bytes each. */
#define MAX_BLOCKS ((uint32_t)1 << 22)
/* What waits for a thread that drains: a C call may allocate for long. */
#define MAX_LOG ((uint32_t)1 << 22)
#define MAX_CAPTURES 1024
#define MAX_FRAMES ((uint32_t)1 << 18)
#define FIRST_BUCKETS 1024


static inline void
lock(struct _sampling_alloc *alloc)
{
    PyMutex_LockFlags(&alloc->mutex, _Py_LOCK_DONT_DETACH);
}

static inline void
unlock(struct _sampling_alloc *alloc)
{
    PyMutex_Unlock(&alloc->mutex);
}

/* Space for one more.  Returns 0 if there is none. */
static int
reserve(void **rows, uint32_t num, uint32_t *cap, uint32_t most,
        size_t row_bytes)
{
    if (num < *cap) {
        return 1;
    }
    uint32_t wanted = *cap != 0 ? 2 * *cap : 64;
    void *block = wanted <= most ? realloc(*rows, wanted * row_bytes) : NULL;
    if (block == NULL) {
        return 0;
    }
    *rows = block;
    *cap = wanted;
    return 1;
}

#define RESERVE_ONE(ALLOC, NAME, MOST) \
    reserve((void **)&(ALLOC)->NAME, (ALLOC)->num_##NAME, \
            &(ALLOC)->cap_##NAME, (MOST), sizeof(*(ALLOC)->NAME))


/* Budgets. */

/* How many bytes lie before the next sample: memoryless, so that a block is
   sampled with the same probability whatever was before it. */
static int64_t
draw(struct _sampling_alloc *alloc)
{
    // From (0, 1]: 53 bits.
    double u = (double)((_PySampling_NextRandom(&alloc->random) >> 11) + 1)
        * 0x1p-53;
    return (int64_t)(-log(u) * (double)alloc->period_bytes);
}

static int64_t
draw_no_gil(struct _sampling_alloc *alloc)
{
    return alloc->active ? draw(alloc) : IDLE_BYTES;
}

static void
refill_gil(struct _sampling_interpreter_state *s, int64_t bytes)
{
    s->alloc_drawn += (uint64_t)(bytes - s->alloc_budget);
    s->alloc_budget = bytes;
}

/* The block has found less than its size. */
static int
is_hit_gil(struct _sampling_alloc *alloc,
             struct _sampling_interpreter_state *s, size_t size_bytes)
{
    if (!alloc->active) {
        refill_gil(s, IDLE_BYTES);
        return 0;
    }
    if (s->alloc_session != alloc->session) {
        // What was left was drawn in another session.
        s->alloc_session = alloc->session;
        refill_gil(s, draw(alloc) - (int64_t)size_bytes);
        if (s->alloc_budget >= 0) {
            return 0;
        }
    }
    refill_gil(s, draw(alloc));
    return 1;
}

/* `before` is what the budget was.  Who takes it below zero is sampled, and
   refills it.  Who comes in between is sampled by a draw of its own, and gives
   back what it took. */
static int
is_hit_no_gil(struct _sampling_alloc *alloc, int64_t before, size_t size_bytes)
{
    int64_t drawn = draw_no_gil(alloc);
    int is_hit = 1;
    int64_t more = drawn + (int64_t)size_bytes - before;
    if (before < 0) {
        is_hit = drawn < (int64_t)size_bytes;
        more = (int64_t)size_bytes;
    }
    (void)_Py_atomic_add_int64(&alloc->no_gil_budget, more);
    (void)_Py_atomic_add_uint64(&alloc->no_gil_drawn, (uint64_t)more);
    return is_hit && alloc->active;
}

/* Each number is loaded whole, while others may be changing them. */
uint64_t
_PySampling_AllocTotalBytes(void)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    if (alloc == NULL) {
        return 0;
    }
    uint64_t bytes = _Py_atomic_load_uint64_relaxed(&alloc->no_gil_drawn)
        - (uint64_t)_Py_atomic_load_int64_relaxed(&alloc->no_gil_budget);
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        struct _sampling_interpreter_state *s = &interp->sampling;
        bytes += _Py_atomic_load_uint64_relaxed(&s->alloc_drawn)
            - (uint64_t)_Py_atomic_load_int64_relaxed(&s->alloc_budget);
    }
    HEAD_UNLOCK(&_PyRuntime);
    return bytes;
}


/* Sampled blocks. */

static uint32_t *
bucket_of(const struct _sampling_alloc *alloc, uintptr_t address)
{
    uint64_t hash = (address >> 4) * 0x9E3779B97F4A7C15u;
    return &alloc->buckets[(hash >> 40) & alloc->bucket_mask];
}

static int
reserve_bucket(struct _sampling_alloc *alloc)
{
    uint32_t size = alloc->buckets != NULL ? alloc->bucket_mask + 1 : 0;
    if (alloc->num_live < size) {
        return 1;
    }
    uint32_t wanted = size != 0 ? 2 * size : FIRST_BUCKETS;
    uint32_t *buckets = malloc(wanted * sizeof(*buckets));
    if (buckets == NULL) {
        return 0;
    }
    memset(buckets, 0xff, wanted * sizeof(*buckets));   // _PySampling_NO_BLOCK
    uint32_t *old = alloc->buckets;
    alloc->buckets = buckets;
    alloc->bucket_mask = wanted - 1;
    for (uint32_t i = 0; i < size; i++) {
        for (uint32_t b = old[i], next; b != _PySampling_NO_BLOCK; b = next) {
            next = alloc->blocks[b].next;
            uint32_t *bucket = bucket_of(alloc, alloc->blocks[b].address);
            alloc->blocks[b].next = *bucket;
            *bucket = b;
        }
    }
    free(old);
    return 1;
}

/* A number that was once as large as it can be is never less again. */
static void
filter_add(struct _sampling_alloc *alloc, uintptr_t address, int change)
{
    uint8_t *count = &alloc->filter[_PySampling_FilterBucket((void *)address)];
    if (*count != UINT8_MAX) {
        _Py_atomic_store_uint8_relaxed(count, (uint8_t)(*count + change));
    }
}

static void
link_block(struct _sampling_alloc *alloc, uint32_t b)
{
    struct _sampling_block *block = &alloc->blocks[b];
    uint32_t *bucket = bucket_of(alloc, block->address);
    block->next = *bucket;
    *bucket = b;
    if (block->kind != _PySampling_SMALL_BLOCK) {
        filter_add(alloc, block->address, 1);
    }
}

/* Where its number is; NULL: it is not sampled. */
static uint32_t *
find_block(struct _sampling_alloc *alloc, unsigned int kind, uintptr_t address)
{
    if (alloc->num_live == 0) {
        return NULL;
    }
    for (uint32_t *at = bucket_of(alloc, address); *at != _PySampling_NO_BLOCK;
         at = &alloc->blocks[*at].next)
    {
        struct _sampling_block *block = &alloc->blocks[*at];
        if (block->address == address && block->kind == kind) {
            return at;
        }
    }
    return NULL;
}

static uint32_t
unlink_block(struct _sampling_alloc *alloc, unsigned int kind,
             uintptr_t address)
{
    uint32_t *at = find_block(alloc, kind, address);
    if (at == NULL) {
        return _PySampling_NO_BLOCK;
    }
    uint32_t b = *at;
    *at = alloc->blocks[b].next;
    if (kind != _PySampling_SMALL_BLOCK) {
        filter_add(alloc, address, -1);
    }
    return b;
}

static void
log_end(struct _sampling_alloc *alloc, uint32_t b)
{
    // There is space for the end of each block that has begun.
    alloc->log[alloc->num_log++] = b << 1 | 1;
    alloc->blocks[b].ended_ns = _PySampling_WallNow();
    alloc->num_live--;
}

/* While the block is what it was. */
static void
note_types(struct _sampling_alloc *alloc, uint32_t b)
{
    struct _sampling_block *block = &alloc->blocks[b];
    if (block->number == 0 && block->kind < _PySampling_FOREIGN_BLOCK) {
        _PySampling_AllocFindTypes((uintptr_t *)block->address,
                                   block->size_bytes, block->types);
        block->has_types = 1;
    }
}

/* A block that begins, with space in the log for its end, too. */
static struct _sampling_block *
new_block(struct _sampling_alloc *alloc)
{
    uint64_t most = (uint64_t)alloc->num_log + alloc->num_live + 2;
    while (alloc->cap_log < most) {
        if (!reserve((void **)&alloc->log, alloc->cap_log, &alloc->cap_log,
                     MAX_LOG, sizeof(*alloc->log)))
        {
            return NULL;
        }
    }
    if (!reserve_bucket(alloc)) {
        return NULL;
    }
    uint32_t b = alloc->free_block;
    if (b != _PySampling_NO_BLOCK) {
        alloc->free_block = alloc->blocks[b].next;
    }
    else if (RESERVE_ONE(alloc, blocks, MAX_BLOCKS)) {
        b = alloc->num_blocks++;
    }
    else {
        return NULL;
    }
    alloc->log[alloc->num_log++] = b << 1;
    alloc->num_live++;
    return &alloc->blocks[b];
}


/* Stacks. */

static int
reserve_capture(struct _sampling_alloc *alloc, uint32_t num_frames)
{
    while (alloc->cap_frames - alloc->num_frames < num_frames) {
        if (!reserve((void **)&alloc->frames, alloc->cap_frames,
                     &alloc->cap_frames, MAX_FRAMES, sizeof(*alloc->frames)))
        {
            return 0;
        }
    }
    return RESERVE_ONE(alloc, captures, MAX_CAPTURES);
}

/* Copies the stack of this thread, unless the last one was the same.  One that
   has no GIL stands still, but what names C functions is not its own to use. */
static uint32_t
capture(struct _sampling_alloc *alloc, PyThreadState *tstate,
        _PySampling_Thread *thread, int has_gil)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    _PyInterpreterFrame *frame = _PySampling_CurrentFrame(tstate);
    struct _sampling_alloc_capture wanted = {
        .interp = tstate->interp,
        .tstate = tstate,
        .context = tstate->context,
        .frame = frame,
        .instr = frame != NULL && !_PySampling_IsEntry(frame)
            ? _PySampling_FrameInstr(frame) : NULL,
        .gc_generation = thread->gc_generation,
        .first = alloc->num_frames,
        .thread = thread->thread_index,
    };
    if (alloc->num_captures > 0) {
        const struct _sampling_alloc_capture *last =
            &alloc->captures[alloc->num_captures - 1];
        if (!last->is_named && last->tstate == tstate
            && last->frame == wanted.frame && last->instr == wanted.instr
            && last->context == wanted.context
            && last->gc_generation == wanted.gc_generation)
        {
            return alloc->num_captures - 1;
        }
    }
    int depth_frames = STATE->options.depth_frames;
    if (buffer == NULL
        || !reserve_capture(
                alloc, (uint32_t)_PySampling_MaxEntries(depth_frames)))
    {
        return _PySampling_NO_CAPTURE;
    }
    struct _sampling_walk w = {
        .interp = tstate->interp,
        .slots = buffer->slots,
        .names = has_gil ? STATE->options.names : 0,
        .out = alloc->frames + alloc->num_frames,
    };
    _PySampling_Walk(&w, thread, frame, depth_frames, 1);
    wanted.depth = (uint32_t)w.num_entries;
    alloc->num_frames += wanted.depth;
    alloc->captures[alloc->num_captures] = wanted;
    tstate->interp->sampling.num_alloc_captures += has_gil;
    return alloc->num_captures++;
}

static uint32_t
capture_native(struct _sampling_alloc *alloc)
{
    if (!reserve_capture(alloc, 0)) {
        return _PySampling_NO_CAPTURE;
    }
    alloc->captures[alloc->num_captures] = (struct _sampling_alloc_capture){
        .ident = PyThread_get_thread_ident(),
        .native_id = _PySampling_OwnNativeId(),
    };
    return alloc->num_captures++;
}

/* The calling thread's state, if its frames are its own to read. */
static PyThreadState *
state_without_gil(void)
{
    PyThreadState *tstate = PyGILState_GetThisThreadState();
    if (tstate == NULL) {
        return NULL;
    }
    _PySampling_Thread *thread =
        _Py_atomic_load_ptr_acquire(&_PySampling_RECORD_OF(tstate));
    return thread != NULL && _PySampling_IN_EPOCH(thread)
        && thread->native_id == _PySampling_OwnNativeId() ? tstate : NULL;
}

static uint32_t
capture_here(struct _sampling_alloc *alloc)
{
    PyThreadState *tstate = _PyThreadState_GET();
    int has_gil = tstate != NULL;
    if (!has_gil) {
        tstate = state_without_gil();
        if (tstate == NULL) {
            return capture_native(alloc);
        }
    }
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread == NULL || !_PySampling_IN_EPOCH(thread)) {
        return _PySampling_NO_CAPTURE;
    }
    // A signal of the clock must not find its own structures half used.
    _PySampling_ENTER_HOOK(thread);
    uint32_t number = capture(alloc, tstate, thread, has_gil);
    _PySampling_LEAVE_HOOK(thread);
    _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    return number;
}

/* Threads that serve subscribers of samples are not the program's. */
static int
is_excluded(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    return tstate != NULL
        && ((_PyThreadStateImpl *)tstate)->sampling.is_excluded;
}


/* Samples. */

static void
sample(struct _sampling_alloc *alloc, unsigned int kind, void *address,
       size_t size_bytes)
{
    // Of a block that ended unseen.
    uint32_t stale = unlink_block(alloc, kind, (uintptr_t)address);
    if (stale != _PySampling_NO_BLOCK) {
        alloc->blocks[stale].has_types = 1;
        log_end(alloc, stale);
    }
    uint32_t its_capture = capture_here(alloc);
    struct _sampling_block *block =
        its_capture != _PySampling_NO_CAPTURE ? new_block(alloc) : NULL;
    if (block == NULL) {
        _PySampling_COUNT(lost_allocations, 1);
        return;
    }
    *block = (struct _sampling_block){
        .address = (uintptr_t)address,
        .size_bytes = size_bytes,
        .kind = kind,
        .capture = its_capture,
        .begun_ns = _PySampling_WallNow(),
    };
    link_block(alloc, (uint32_t)(block - alloc->blocks));
    _PySampling_COUNT(allocations, 1);
}

int
_PySampling_AllocGil(PyInterpreterState *interp, unsigned int kind,
                     void *block, size_t size_bytes)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    int saved_errno = errno;
    lock(alloc);
    int is_hit = is_hit_gil(alloc, &interp->sampling, size_bytes);
    if (is_hit && is_excluded()) {
        _PySampling_COUNT(
            subscribers_allocated_bytes,
            _PySampling_AmountOf(size_bytes, alloc->period_bytes).bytes);
        is_hit = 0;
    }
    if (is_hit) {
        sample(alloc, kind, block, size_bytes);
    }
    unlock(alloc);
    errno = saved_errno;
    return is_hit;
}

void
_PySampling_AllocNoGil(unsigned int kind, void *block, size_t size_bytes)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    int64_t before = _Py_atomic_add_int64(&alloc->no_gil_budget,
                                          -(int64_t)size_bytes);
    if (before >= (int64_t)size_bytes) {
        return;
    }
    int saved_errno = errno;
    lock(alloc);
    // Without the GIL nobody serves subscribers.
    if (is_hit_no_gil(alloc, before, size_bytes)) {
        sample(alloc, kind, block, size_bytes);
    }
    unlock(alloc);
    errno = saved_errno;
}

void
_PySampling_AllocOwned(unsigned int domain, void *address)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    lock(alloc);
    uint32_t *at = find_block(alloc, _PySampling_LARGE_BLOCK,
                              (uintptr_t)address);
    if (at != NULL) {
        alloc->blocks[*at].domain = domain;
    }
    unlock(alloc);
}

int
_PySampling_AllocHas(unsigned int kind, void *block)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    lock(alloc);
    int has_it = find_block(alloc, kind, (uintptr_t)block) != NULL;
    unlock(alloc);
    return has_it;
}

_PySampling_TakenBlock
_PySampling_AllocTake(unsigned int kind, void *block)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    lock(alloc);
    _PySampling_TakenBlock taken = {
        unlink_block(alloc, kind, (uintptr_t)block), alloc->session};
    if (taken.block != _PySampling_NO_BLOCK) {
        note_types(alloc, taken.block);
    }
    unlock(alloc);
    return taken;
}

/* All blocks may have been forgotten meanwhile. */
static void
give_back(_PySampling_TakenBlock taken,
          void (*how)(struct _sampling_alloc *alloc, uint32_t b))
{
    struct _sampling_alloc *alloc = STATE->alloc;
    if (taken.block != _PySampling_NO_BLOCK) {
        lock(alloc);
        if (taken.session == alloc->session) {
            how(alloc, taken.block);
        }
        unlock(alloc);
    }
}

void
_PySampling_AllocPutBack(_PySampling_TakenBlock taken)
{
    give_back(taken, link_block);
}

void
_PySampling_AllocEndTaken(_PySampling_TakenBlock taken)
{
    give_back(taken, log_end);
}

int
_PySampling_AllocEnd(unsigned int kind, void *block)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    lock(alloc);
    uint32_t b = unlink_block(alloc, kind, (uintptr_t)block);
    if (b != _PySampling_NO_BLOCK) {
        note_types(alloc, b);
        log_end(alloc, b);
    }
    unlock(alloc);
    return b != _PySampling_NO_BLOCK;
}


/* Life. */

static void
drop_blocks(struct _sampling_alloc *alloc)
{
    alloc->session++;
    alloc->blocks = NULL;
    alloc->buckets = NULL;
    alloc->log = NULL;
    alloc->captures = NULL;
    alloc->frames = NULL;
    alloc->num_blocks = alloc->cap_blocks = 0;
    alloc->num_log = alloc->cap_log = 0;
    alloc->num_captures = alloc->cap_captures = 0;
    alloc->num_frames = alloc->cap_frames = 0;
    alloc->free_block = _PySampling_NO_BLOCK;
    alloc->num_live = 0;
    memset(alloc->filter, 0, sizeof(alloc->filter));
}

void
_PySampling_AllocForgetBlocks(struct _sampling_alloc *alloc)
{
    free(alloc->blocks);
    free(alloc->buckets);
    free(alloc->log);
    free(alloc->captures);
    free(alloc->frames);
    drop_blocks(alloc);
}

struct _sampling_alloc *
_PySampling_AllocState(void)
{
    if (STATE->alloc == NULL) {
        struct _sampling_alloc *alloc = calloc(1, sizeof(*alloc));
        if (alloc == NULL) {
            return NULL;
        }
        alloc->free_block = _PySampling_NO_BLOCK;
        STATE->alloc = alloc;
    }
    return STATE->alloc;
}

void
_PySampling_AllocBegin(struct _sampling_alloc *alloc, uint64_t period_bytes)
{
    lock(alloc);
    _PySampling_AllocForgetBlocks(alloc);
    alloc->period_bytes = period_bytes;
    alloc->serial = STATE->tables->serial;
    alloc->num_readings = 0;
    alloc->reading_every_ns = _PySampling_FIRST_INTERVAL_NS;
    alloc->next_reading_ns = 0;
    alloc->random = _PySampling_MonotonicNow() * 2 + 1;
    alloc->active = 1;
    // All budgets are drawn anew, that of each interpreter with its GIL.
    int64_t more = draw(alloc)
        - _Py_atomic_load_int64_relaxed(&alloc->no_gil_budget);
    (void)_Py_atomic_add_int64(&alloc->no_gil_budget, more);
    (void)_Py_atomic_add_uint64(&alloc->no_gil_drawn, (uint64_t)more);
    unlock(alloc);
    HEAD_LOCK(&_PyRuntime);
    for (PyInterpreterState *interp = PyInterpreterState_Head();
         interp != NULL; interp = PyInterpreterState_Next(interp))
    {
        struct _sampling_interpreter_state *s = &interp->sampling;
        s->num_alloc_captures = 0;
        if (_PyInterpreterState_GET()->ceval.gil == interp->ceval.gil) {
            refill_gil(s, 0);
        }
    }
    HEAD_UNLOCK(&_PyRuntime);
}

void
_PySampling_AllocStop(struct _sampling_alloc *alloc)
{
    lock(alloc);
    alloc->active = 0;
    _PySampling_AllocForgetBlocks(alloc);
    unlock(alloc);
}

void
_PySampling_AllocInterpreterEnd(PyInterpreterState *interp)
{
    struct _sampling_interpreter_state *s = &interp->sampling;
    if (STATE->alloc != NULL) {
        (void)_Py_atomic_add_uint64(
            &STATE->alloc->no_gil_drawn,
            s->alloc_drawn - (uint64_t)s->alloc_budget);
        s->alloc_drawn = (uint64_t)s->alloc_budget;
    }
}

void
_PySampling_AllocForget(void)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    if (alloc == NULL) {
        return;
    }
    alloc->active = 0;
    if (PyMutex_IsLocked(&alloc->mutex)) {
        // A thread that is not here was about to change them: they are not
        // whole, and stay as they are.
        drop_blocks(alloc);
        _PyMutex_at_fork_reinit(&alloc->mutex);
    }
}
