/* Sampling profiler: a second copy of pymalloc's functions, which see each
   block.  Included at the end of Objects/obmalloc.c, whose parts they are made
   of; those there are as without us.

   They take the place of the first ones while blocks are sampled, and cost a
   subtraction for each block that begins, and a comparison with the header of
   its pool, which is written in any case, for each that ends. */

#include "../Python/sampling/alloc/alloc.h"

#ifdef WITH_PYMALLOC

/* Which of the 32 bits of its pool's header a block has: those of neighbours,
   of any size, are different ones. */
static inline unsigned int
sampled_bit(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    return (address >> 4 ^ address >> 9) & 31;
}

/* None of the pool's blocks with that bit is sampled: ends would go on looking
   for it.  There are few, as the bit says where in each 512 bytes. */
static void
clean_sampled_bit(poolp pool, unsigned int bit)
{
    for (uintptr_t part = 0; part < POOL_SIZE; part += 512) {
        uintptr_t address = (uintptr_t)pool + part;
        address |= ((address >> 9 ^ bit) & 31) << 4;
        if (_PySampling_AllocHas(_PySampling_SMALL_BLOCK, (void *)address)) {
            return;
        }
    }
    pool->ref.sampled &= ~(UINT32_C(1) << bit);
}

static Py_NO_INLINE void
sample_small(PyInterpreterState *interp, void *p, size_t nbytes)
{
    if (_PySampling_AllocGil(interp, _PySampling_SMALL_BLOCK, p, nbytes)) {
        POOL_ADDR(p)->ref.sampled |= UINT32_C(1) << sampled_bit(p);
    }
}

/* Takes the size of a small block from the budget.  Returns 0 if it has found
   less: the block is to be shown to sample_small(). */
static inline int
take_small(PyInterpreterState *interp, size_t nbytes)
{
    interp->sampling.alloc_budget -= (int64_t)nbytes;
    return LIKELY(interp->sampling.alloc_budget >= 0);
}

static inline void
count_small(PyInterpreterState *interp, void *p, size_t nbytes)
{
    if (!take_small(interp, nbytes)) {
        sample_small(interp, p, nbytes);
    }
}

static inline int
may_be_sampled(poolp pool, const void *p)
{
    return UNLIKELY(pool->ref.sampled != 0)
        && (pool->ref.sampled >> sampled_bit(p) & 1);
}

static Py_NO_INLINE void
end_small(poolp pool, void *p)
{
    (void)_PySampling_AllocEnd(_PySampling_SMALL_BLOCK, p);
    clean_sampled_bit(pool, sampled_bit(p));
}

/* It is counted as a large one, and is no small one. */
static void *
malloc_raw(PyInterpreterState *interp, size_t nbytes, size_t taken)
{
    interp->sampling.alloc_budget += (int64_t)taken;
    void *ptr = PyMem_RawMalloc(nbytes);
    if (ptr != NULL) {
        OMState *state = interp->obmalloc;
        raw_allocated_blocks++;
    }
    return ptr;
}

static Py_NO_INLINE void *
malloc_sample(PyInterpreterState *interp, size_t nbytes)
{
    void *ptr = pymalloc_alloc(interp->obmalloc, NULL, nbytes);
    if (ptr == NULL) {
        return malloc_raw(interp, nbytes, nbytes);
    }
    sample_small(interp, ptr, nbytes);
    return ptr;
}

/* What is rare is in functions of its own, which are called last: so this one
   saves no more registers than the one whose place it takes. */
static void *
sampled_malloc(void *ctx, size_t nbytes)
{
    PyInterpreterState *interp = _PyInterpreterState_GET();
    if (UNLIKELY(nbytes - 1 >= SMALL_REQUEST_THRESHOLD)) {
        return malloc_raw(interp, nbytes, 0);
    }
    if (!take_small(interp, nbytes)) {
        return malloc_sample(interp, nbytes);
    }
    void *ptr = pymalloc_alloc(interp->obmalloc, ctx, nbytes);
    if (LIKELY(ptr != NULL)) {
        return ptr;
    }
    return malloc_raw(_PyInterpreterState_GET(), nbytes, nbytes);
}

static void *
sampled_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t nbytes = nelem * elsize;
    PyInterpreterState *interp = _PyInterpreterState_GET();
    OMState *state = interp->obmalloc;
    void *ptr = pymalloc_alloc(state, ctx, nbytes);
    if (LIKELY(ptr != NULL)) {
        memset(ptr, 0, nbytes);
        count_small(interp, ptr, nbytes);
        return ptr;
    }
    ptr = PyMem_RawCalloc(nelem, elsize);
    if (ptr != NULL) {
        raw_allocated_blocks++;
    }
    return ptr;
}

static inline void
free_small(OMState *state, poolp pool, void *p)
{
    pymem_block *lastfree = pool->freeblock;
    *(pymem_block **)p = lastfree;
    pool->freeblock = (pymem_block *)p;
    pool->ref.count--;
    if (UNLIKELY(lastfree == NULL)) {
        insert_to_usedpool(state, pool);
    }
    else if (UNLIKELY(pool->ref.count == 0)) {
        insert_to_freepool(state, pool);
    }
}

static Py_NO_INLINE void
free_sampled(OMState *state, poolp pool, void *p)
{
    end_small(pool, p);
    free_small(state, pool, p);
}

static Py_NO_INLINE void
free_raw(OMState *state, void *p)
{
    PyMem_RawFree(p);
    raw_allocated_blocks--;
}

/* pymalloc_free() with one question more. */
static void
sampled_free(void *ctx, void *p)
{
    if (p == NULL) {
        return;
    }
    OMState *state = get_state();
    poolp pool = POOL_ADDR(p);
    if (UNLIKELY(!address_in_range(state, p, pool))) {
        free_raw(state, p);
    }
    else if (may_be_sampled(pool, p)) {
        free_sampled(state, pool, p);
    }
    else {
        free_small(state, pool, p);
    }
}

/* The end of one block and the beginning of another.  A large one is seen by
   our function of raw memory. */
static void *
sampled_realloc(void *ctx, void *ptr, size_t nbytes)
{
    if (ptr == NULL) {
        return sampled_malloc(ctx, nbytes);
    }
    PyInterpreterState *interp = _PyInterpreterState_GET();
    OMState *state = interp->obmalloc;
    poolp pool = POOL_ADDR(ptr);
    if (!address_in_range(state, ptr, pool)) {
        return PyMem_RawRealloc(ptr, nbytes);
    }
    int is_sampled = may_be_sampled(pool, ptr);
    _PySampling_TakenBlock taken = {_PySampling_NO_BLOCK, 0};
    if (is_sampled) {
        taken = _PySampling_AllocTake(_PySampling_SMALL_BLOCK, ptr);
    }
    void *moved = _PyObject_Realloc(ctx, ptr, nbytes);
    if (moved == NULL) {
        _PySampling_AllocPutBack(taken);
        return NULL;
    }
    if (is_sampled) {
        _PySampling_AllocEndTaken(taken);
        clean_sampled_bit(pool, sampled_bit(ptr));
    }
    if (address_in_range(state, moved, POOL_ADDR(moved))) {
        count_small(interp, moved, nbytes);
    }
    return moved;
}

#endif  // WITH_PYMALLOC

/* A domain whose functions are called while others run has one of them
   exchanged after the other: any mixture does. */
int
_PySampling_AllocExchange(PyMemAllocatorEx *allocator, int is_on)
{
#ifdef WITH_PYMALLOC
    static const PyMemAllocatorEx both[2] = {
        {NULL, _PyObject_Malloc, _PyObject_Calloc, _PyObject_Realloc,
         _PyObject_Free},
        {NULL, sampled_malloc, sampled_calloc, sampled_realloc,
         sampled_free}};
    if (pymemallocator_eq(allocator, (PyMemAllocatorEx *)&both[!is_on])) {
        *allocator = both[is_on];
    }
    return allocator->malloc == both[is_on].malloc;
#else
    return 0;
#endif
}

int
_PySampling_AllocIsPlain(const PyMemAllocatorEx *allocator)
{
    void *(*its)(void *ctx, size_t size) = allocator->malloc;
    return its == _PyMem_RawMalloc || its == _PyMem_DebugRawMalloc
        || its == _PyMem_DebugMalloc
#ifdef WITH_MIMALLOC
        || its == _PyMem_MiMalloc || its == _PyObject_MiMalloc
#endif
#ifdef WITH_PYMALLOC
        || its == _PyObject_Malloc
#endif
        ;
}
