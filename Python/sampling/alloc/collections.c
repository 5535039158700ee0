/* Sampling profiler: collections of the garbage collector, in the profiles of
   memory.

   Owns what a collection is charged to: the stack that started it.  Must not
   know what a row adds up to (tables/allocations.c).  Collections are few, so
   none is left out. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../sample/sample.h"
#include "../tables/labels.h"
#include "alloc.h"

#define STATE (&_PyRuntime.sampling)


static void
add_collection(const struct _sampling_alloc_key *key, int generation,
               const _PySampling_Collections *its)
{
    uint64_t now_ns = _PySampling_WallNow();
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        if (_PySampling_SinkWantsBlock(sink, key)
            && !_PySampling_AllocTableAddCollection(
                    &sink->allocations, key, generation, its, now_ns))
        {
            _PySampling_COUNT(lost_allocations, 1);
        }
    }
}

void
_PySampling_AllocCollection(PyThreadState *tstate, _PySampling_Thread *thread,
                            const _PySampling_Collections *its)
{
    if (STATE->alloc == NULL || !STATE->alloc->active
        || !_PySampling_IN_EPOCH(thread)
        || tstate->interp->sampling.buffer == NULL)
    {
        return;
    }
    // The stack is copied to where captures wait.
    _PySampling_Drain(tstate, thread);
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables != NULL) {
        const struct _sampling_alloc_key key = {
            .node = _PySampling_WalkNode(tstate, thread, 1),
            .thread = thread->thread_index,
            .labels = _PySampling_LabelsOf(tables, tstate, tstate->context),
        };
        add_collection(&key, thread->gc_generation, its);
        _PySampling_CloseTables();
    }
}
