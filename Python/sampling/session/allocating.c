/* Sampling profiler: who samples allocations, from when to when.

   Owns when the allocators are exchanged.  Must not know how a block is sampled
   (alloc/). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../alloc/alloc.h"
#include "session.h"

#define STATE (&_PyRuntime.sampling)

static int
is_sampling(void)
{
    return STATE->alloc != NULL && STATE->alloc->active;
}

int
_PySampling_AllocMayJoin(uint64_t alloc_bytes)
{
    return alloc_bytes == 0 || !is_sampling()
        || STATE->alloc->period_bytes == alloc_bytes;
}

_PySampling_Status
_PySampling_AllocReconfigure(void)
{
    uint64_t wanted = 0;
    for (struct _sampling_sink *sink = STATE->sinks; sink != NULL;
         sink = sink->next)
    {
        wanted = Py_MAX(wanted, sink->allocations.period_bytes);
    }
    if (wanted != 0 && !is_sampling()) {
        struct _sampling_alloc *alloc = _PySampling_AllocState();
        if (alloc == NULL) {
            return _PySampling_ERR_NO_MEMORY;
        }
        _PySampling_AllocBegin(alloc, wanted);
        _PySampling_AllocInstall(alloc);
    }
    else if (wanted == 0 && is_sampling()) {
        _PySampling_AllocUninstall(STATE->alloc);
        _PySampling_AllocStop(STATE->alloc);
    }
    return _PySampling_OK;
}

/* In the child, where a session that goes on begins anew. */
void
_PySampling_AllocAfterFork(void)
{
    if (STATE->alloc != NULL) {
        _PySampling_AllocUninstall(STATE->alloc);
        _PySampling_AllocStop(STATE->alloc);
    }
}
