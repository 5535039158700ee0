/* Sampling profiler: the life of a profile.

   Owns when its time begins, and how it is handed over.  Must not know whose
   it is (session/session.c, session/blocks.c), nor when it gets samples. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_time.h"              // PyTime_TimeRaw()

#include "session.h"

#define STATE (&_PyRuntime.sampling)


/* Counters. */

void
_PySampling_ReadCounters(struct _sampling_counters *counters)
{
#define X(name) \
    counters->name = \
        _Py_atomic_load_uint64_relaxed(&STATE->counters.name);
    _PySampling_COUNTERS(X)
#undef X
}

void
_PySampling_CountersSince(struct _sampling_counters *counters,
                          const struct _sampling_counters *before)
{
    uint64_t memory_bytes = counters->memory_bytes;     // it is no sum
#define X(name) counters->name -= before->name;
    _PySampling_COUNTERS(X)
#undef X
    counters->memory_bytes = memory_bytes;
}


/* Begin. */

void
_PySampling_BeginProfile(struct _sampling_profile *profile, uint64_t wall_ns)
{
    PyTime_t now = 0;
    (void)PyTime_TimeRaw(&now);
    profile->start_time_ns = now;
    profile->start_wall_ns = wall_ns;
    _PySampling_ReadCounters(&profile->counters);
}

void
_PySampling_ProfilesBegin(uint64_t wall_ns)
{
    for (struct _sampling_profile *profile = STATE->profiles;
         profile != NULL; profile = profile->next)
    {
        if (profile->start_wall_ns == 0) {
            _PySampling_BeginProfile(profile, wall_ns);
        }
    }
}


/* End. */

void
_PySampling_CountProfile(struct _sampling_profile *profile)
{
    struct _sampling_counters counters;
    _PySampling_ReadCounters(&counters);
    _PySampling_CountersSince(&counters, &profile->counters);
    profile->counters = counters;
}

struct _sampling_profile *
_PySampling_CopyOf(const struct _sampling_profile *profile, int all_rows)
{
    _PySampling_LockTables();
    struct _sampling_profile *copy = all_rows
        ? _PySampling_ProfileCopy(profile)
        : _PySampling_ProfileExtract(profile);
    if (copy != NULL) {
        // With the lock: what is counted is on it.
        _PySampling_CountProfile(copy);
    }
    _PySampling_UnlockTables();
    return copy;
}

_PySampling_Status
_PySampling_FinishProfile(struct _sampling_profile *profile, uint64_t end_ns,
                          struct _sampling_profile **result)
{
    *result = profile;
    if (profile == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    profile->duration_ns = end_ns - profile->start_wall_ns;
    return _PySampling_OK;
}
