/* Sampling profiler: allocators that see each block.

   Owns what is put in the place of Python's allocators, and around those that
   are not pymalloc's.  Must not know which blocks are sampled.

   Our functions get the context of those that they call, and no block has a
   header.  So whoever allocates meanwhile, with no GIL, may meet any mixture of
   old functions and new ones, and another tool may stay on top of ours. */

#include "Python.h"

#include "pycore_pymem.h"             // _PyMem_DebugEnabled()
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "alloc.h"

#define STATE (&_PyRuntime.sampling)

/* A large object is asked for in one domain, which asks for raw memory: the
   outermost of our functions sees it.  Who has a GIL knows whether it is
   within another. */
static inline int *
nested(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    return tstate != NULL ? &tstate->interp->sampling.alloc_nested : NULL;
}

static inline void
nest(int change)
{
    int *its = nested();
    if (its != NULL) {
        *its += change;
    }
}

/* With a GIL all blocks of an interpreter have one budget; without, those of
   all threads have another, which is atomic. */
static inline void
count_block(unsigned int kind, void *block, size_t size)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        _PySampling_AllocNoGil(kind, block, size);
        return;
    }
    struct _sampling_interpreter_state *s = &tstate->interp->sampling;
    if (s->alloc_nested == 0) {
        s->alloc_budget -= (int64_t)size;
        if (s->alloc_budget < 0) {
            (void)_PySampling_AllocGil(tstate->interp, kind, block, size);
        }
    }
}

/* Only if blocks of that domain may be asked for in another. */
#define NESTS(DOMAIN) ((DOMAIN) != PYMEM_DOMAIN_RAW)

static inline void
count_of_domain(int domain, void *block, size_t size)
{
    if (!NESTS(domain)) {
        _Py_atomic_store_ptr_relaxed(&STATE->alloc->last_raw, block);
    }
    count_block(_PySampling_LARGE_BLOCK, block, size);
}

static void *
reallocate(int domain, void *ctx, void *block, size_t size)
{
    struct _sampling_alloc *alloc = STATE->alloc;
    // Before, since another thread may get the address at once.
    _PySampling_TakenBlock taken = {_PySampling_NO_BLOCK, 0};
    if (_PySampling_AllocMayHave(alloc, block)) {
        taken = _PySampling_AllocTake(_PySampling_LARGE_BLOCK, block);
    }
    if (NESTS(domain)) {
        nest(1);
    }
    void *moved = alloc->inner[domain].realloc(ctx, block, size);
    if (NESTS(domain)) {
        nest(-1);
    }
    if (moved == NULL) {
        _PySampling_AllocPutBack(taken);
        return NULL;
    }
    _PySampling_AllocEndTaken(taken);
    count_of_domain(domain, moved, size);
    return moved;
}

#define FUNCTIONS(NAME, DOMAIN) \
    static void * \
    NAME##_malloc(void *ctx, size_t size) \
    { \
        if (NESTS(DOMAIN)) { \
            nest(1); \
        } \
        void *block = STATE->alloc->inner[DOMAIN].malloc(ctx, size); \
        if (NESTS(DOMAIN)) { \
            nest(-1); \
        } \
        if (block != NULL) { \
            count_of_domain(DOMAIN, block, size); \
        } \
        return block; \
    } \
    \
    static void * \
    NAME##_calloc(void *ctx, size_t num, size_t size) \
    { \
        if (NESTS(DOMAIN)) { \
            nest(1); \
        } \
        void *block = STATE->alloc->inner[DOMAIN].calloc(ctx, num, size); \
        if (NESTS(DOMAIN)) { \
            nest(-1); \
        } \
        if (block != NULL) { \
            count_of_domain(DOMAIN, block, num * size); \
        } \
        return block; \
    } \
    \
    static void * \
    NAME##_realloc(void *ctx, void *block, size_t size) \
    { \
        return reallocate(DOMAIN, ctx, block, size); \
    } \
    \
    static void \
    NAME##_free(void *ctx, void *block) \
    { \
        struct _sampling_alloc *alloc = STATE->alloc; \
        if (_PySampling_AllocMayHave(alloc, block)) { \
            (void)_PySampling_AllocEnd(_PySampling_LARGE_BLOCK, block); \
        } \
        if (!NESTS(DOMAIN) \
            && _Py_atomic_load_ptr_relaxed(&alloc->last_raw) == block) \
        { \
            /* Another may get the address, without us. */ \
            _Py_atomic_store_ptr_relaxed(&alloc->last_raw, NULL); \
        } \
        alloc->inner[DOMAIN].free(ctx, block); \
    }

FUNCTIONS(raw, PYMEM_DOMAIN_RAW)
FUNCTIONS(mem, PYMEM_DOMAIN_MEM)
FUNCTIONS(obj, PYMEM_DOMAIN_OBJ)


/* Blocks of libraries. */

void
(_PySampling_BlockUntracked)(unsigned int domain, uintptr_t block)
{
    if (_PySampling_AllocMayHave(STATE->alloc, (void *)block)) {
        (void)_PySampling_AllocEnd(_PySampling_FOREIGN_BLOCK + domain,
                                   (void *)block);
    }
}

/* What a library reports is malloc()ed by itself, as by NumPy 1, or it is from
   PyMem_RawMalloc(), as by NumPy 2.5: then it was just asked for, and is counted
   there. */
static int
is_from_python(struct _sampling_alloc *alloc, unsigned int domain,
               uintptr_t block)
{
    if (_Py_atomic_load_ptr_relaxed(&alloc->last_raw) == (void *)block) {
        _Py_atomic_store_uint_relaxed(&alloc->raw_domain, domain + 1);
    }
    return _Py_atomic_load_uint_relaxed(&alloc->raw_domain) == domain + 1;
}

/* One that has moved, or is used again, is reported without an end. */
void
(_PySampling_BlockTracked)(unsigned int domain, uintptr_t block,
                           size_t size_bytes)
{
    if (block != 0 && is_from_python(STATE->alloc, domain, block)) {
        if (_PySampling_AllocMayHave(STATE->alloc, (void *)block)) {
            _PySampling_AllocOwned(domain, (void *)block);
        }
        return;
    }
    (_PySampling_BlockUntracked)(domain, block);
    if (block != 0 && STATE->alloc->active) {
        count_block(_PySampling_FOREIGN_BLOCK + domain, (void *)block,
                    size_bytes);
    }
}


/* In their place. */

#define NUM_DOMAINS (PYMEM_DOMAIN_OBJ + 1)

static PyMemAllocatorEx
functions_of(PyMemAllocatorDomain domain)
{
    switch (domain) {
    case PYMEM_DOMAIN_RAW:
        return (PyMemAllocatorEx){
            NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
    case PYMEM_DOMAIN_MEM:
        return (PyMemAllocatorEx){
            NULL, mem_malloc, mem_calloc, mem_realloc, mem_free};
    default:
        return (PyMemAllocatorEx){
            NULL, obj_malloc, obj_calloc, obj_realloc, obj_free};
    }
}


/* Life. */

static PyMemAllocatorEx *
allocator_of(PyMemAllocatorDomain domain)
{
    return domain == PYMEM_DOMAIN_RAW ? &_PyRuntime.allocators.standard.raw
        : domain == PYMEM_DOMAIN_MEM ? &_PyRuntime.allocators.standard.mem
        : &_PyRuntime.allocators.standard.obj;
}

/* Another tool may be on top of ours.  But if an allocator of Python's own is
   there, whoever was has taken ours away with its own. */
static void
wrap(struct _sampling_alloc *alloc, PyMemAllocatorDomain domain)
{
    PyMemAllocatorEx *current = allocator_of(domain);
    PyMemAllocatorEx ours = functions_of(domain);
    if (current->malloc == ours.malloc
        || ((alloc->wrapped & 1 << domain)
            && !_PySampling_AllocIsPlain(current)))
    {
        return;
    }
    alloc->inner[domain] = *current;
    ours.ctx = current->ctx;
    // A thread without the GIL that finds ours calls what they wrap.
    _Py_atomic_fence_release();
    *current = ours;
    alloc->wrapped |= 1 << domain;
}

void
_PySampling_AllocInstall(struct _sampling_alloc *alloc)
{
    PyMutex_LockFlags(&_PyRuntime.allocators.mutex, _Py_LOCK_DONT_DETACH);
    for (int domain = 0; domain < NUM_DOMAINS; domain++) {
        if (domain == PYMEM_DOMAIN_RAW
            || !_PySampling_AllocExchange(allocator_of(domain), 1))
        {
            wrap(alloc, domain);
        }
    }
    PyMutex_Unlock(&_PyRuntime.allocators.mutex);
}

void
_PySampling_AllocCheck(struct _sampling_alloc *alloc)
{
    for (int domain = 0; domain < NUM_DOMAINS; domain++) {
        if (_PySampling_AllocIsPlain(allocator_of(domain))) {
            _PySampling_AllocInstall(alloc);
            return;
        }
    }
}

/* What another tool is on top of stays, and samples nothing. */
void
_PySampling_AllocUninstall(struct _sampling_alloc *alloc)
{
    PyMutex_LockFlags(&_PyRuntime.allocators.mutex, _Py_LOCK_DONT_DETACH);
    for (int domain = 0; domain < NUM_DOMAINS; domain++) {
        PyMemAllocatorEx *current = allocator_of(domain);
        if (current->malloc == functions_of(domain).malloc) {
            *current = alloc->inner[domain];
            alloc->wrapped &= ~(1 << domain);
        }
        else if (domain != PYMEM_DOMAIN_RAW) {
            (void)_PySampling_AllocExchange(current, 0);
        }
    }
    PyMutex_Unlock(&_PyRuntime.allocators.mutex);
}
