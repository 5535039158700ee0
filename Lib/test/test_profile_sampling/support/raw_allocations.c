/* Threads that never run Python, and ask its allocators for raw memory: each
   block is begun by one and ended by the next. */

#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define BLOCKS 64

__attribute__((visibility("default")))
extern int raw_allocations(long rounds, size_t size);

static _Atomic(void *) blocks[BLOCKS];
static long wanted_rounds;
static size_t wanted_size;

static void *
allocate(void *arg)
{
    size_t place = (size_t)arg;
    for (long i = 0; i < wanted_rounds; i++) {
        void *block = PyMem_RawMalloc(wanted_size);
        block = PyMem_RawRealloc(block, wanted_size + 1);
        place = (place * 7 + 1) % BLOCKS;
        PyMem_RawFree(atomic_exchange(&blocks[place], block));
    }
    return NULL;
}

/* Called without the GIL.  Returns 0 when all have ended. */
int
raw_allocations(long rounds, size_t size)
{
    pthread_t threads[THREADS];
    wanted_rounds = rounds;
    wanted_size = size;
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, allocate, (void *)i) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        PyMem_RawFree(atomic_exchange(&blocks[i], NULL));
    }
    return 0;
}
