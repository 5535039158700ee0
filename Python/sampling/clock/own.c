/* Sampling profiler: ticks that the thread takes itself.

   Owns the deadlines of a run without a timer (clock/timer.c), and what the
   thread's visits to safepoints put them off by.  Must not know what a capture
   is, or how it is chosen which runs have a timer.

   A thread that gives the GIL up too often for a timer each time is looked at
   by the sampler thread, but only when its run has lasted for a while: a
   signal takes longer than a short run.  Until then a run's deadlines are its
   own: the thread takes a tick that is due at its next safepoint, or when it
   gives the GIL up.  On one CPU the sampler thread stops it at the deadline,
   and no safepoint is needed.

   A visit to a safepoint takes several times as long as what lies between two
   of them in a small loop.  The deadline is a moment of the program's work, so
   what visits take puts it off. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "clock.h"
#include "inside.h"

#define STATE (&_PyRuntime.sampling)

/* For so long a run without a timer is not looked at. */
#define OWN_NS _PySampling_SHORT_RUN_NS

/* Taking the GIL back without making a record, and what is to be prepared for
   a deadline of its own, takes less than this. */
#define PREPARE_NS 5000

/* A visit to a safepoint takes as long as reading the clock does, and about
   this for the way there from the eval loop and back. */
#define VISIT_NS 12

/* The way to the first safepoints of a run is in no cache, and its branches
   went the other way for hundreds of runs: no clock sees that.  It is 40 ns
   after a call of 5 us, 80 after one of 30. */
#define FIRST_VISIT_NS 50

/* Were a visit taken for longer than it is, the deadline would be put off for
   ever. */
#define MAX_VISITS_NS 200000

#define CLOCK_BATCHES 8
#define CLOCK_READS 8


static uint64_t
how_long_a_visit_takes(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int batch = 0; batch < CLOCK_BATCHES; batch++) {
        // An interrupt makes one batch longer.
        uint64_t from_ns = _PySampling_MonotonicNow();
        uint64_t to_ns = from_ns;
        for (int i = 0; i < CLOCK_READS; i++) {
            to_ns = _PySampling_MonotonicNow();
        }
        least_ns = Py_MIN(least_ns, (to_ns - from_ns) / CLOCK_READS);
    }
    return least_ns + VISIT_NS;
}

void
_PySampling_OwnStart(void)
{
    STATE->own_ns = STATE->options.manual ? 0 : OWN_NS;
    STATE->visit_ns = how_long_a_visit_takes();
}

/* Just before the run begins, by what was the time a moment ago: may it have a
   deadline of its own?  What is to be prepared for that has to be done now, or
   it would be a part of such runs and not of others. */
int
_PySampling_OwnIsNear(const _PySampling_Thread *thread, uint64_t now_ns)
{
    if (_Py_atomic_load_int_relaxed(&thread->is_timed) || STATE->own_ns == 0) {
        return 0;
    }
    return _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, now_ns)
        < now_ns + PREPARE_NS + STATE->own_ns;
}

/* 0: it is the clock's to look at. */
static uint64_t
deadline_from(const _PySampling_Thread *thread, uint64_t from_ns)
{
    uint64_t deadline_ns =
        _PySampling_DeadlineFrom(_PySampling_OF_CLOCK, from_ns);
    return deadline_ns < _PySampling_LookedAtFrom(thread) ? deadline_ns : 0;
}

/* The run's next deadline, from that moment on. */
void
_PySampling_OwnSet(_PySampling_Thread *thread, uint64_t from_ns)
{
    // Not before the clock takes it or it gives the GIL up, or at every
    // safepoint.
    thread->timer_fires_ns = STATE->has_one_cpu ? 0 : UINT64_MAX;
    _Py_atomic_store_uint64_relaxed(&thread->timer_deadline_ns,
                                    deadline_from(thread, from_ns));
}

static void
put_off(_PySampling_Thread *thread, uint64_t visit_ns)
{
    uint64_t deadline_ns = _PySampling_DeadlineSetFor(thread);
    if (deadline_ns != 0
        && deadline_ns < _PySampling_LookedAtFrom(thread) + MAX_VISITS_NS
        && !_Py_atomic_load_int_relaxed(&thread->is_timed))
    {
        // Else the clock has taken it over.
        (void)_Py_atomic_compare_exchange_uint64(
            &thread->timer_deadline_ns, &deadline_ns,
            deadline_ns + visit_ns);
    }
}

/* The thread has come to a safepoint, before a tick was due that it waits
   for. */
void
_PySampling_OwnVisited(_PySampling_Thread *thread, uint64_t came_ns)
{
    // While a tick is overdue, run after run visits all its safepoints.
    int is_first = thread->visits_ns == 0 && thread->overdue.after_ns == 0;
    uint64_t visit_ns = _PySampling_MonotonicNow() - came_ns + STATE->visit_ns
                        + (is_first ? FIRST_VISIT_NS : 0);
    put_off(thread, visit_ns);
    if (thread->visits_ns < MAX_VISITS_NS) {
        thread->visits_ns += visit_ns;
    }
}

/* Two readings of its CPU time in a row tell: it is the sampler thread that
   reads. */
static int
runs_on(_PySampling_Thread *thread)
{
    return _PySampling_CpuNow(thread) != _PySampling_CpuNow(thread);
}

/* How many ticks a look at this moment finds: the look itself, if the thread
   is not at the beginning of its run, and a deadline of the thread's own that
   it has not come to take, because it waits for the CPU that the clock has, or
   is in a call.  If it runs on while it is looked at, it takes that one when
   it is asked, or when it gives the GIL up: they are two moments.  On the
   sampler thread, which has asked it to wait if it wants to give the GIL
   up. */
int
_PySampling_OwnTicksAt(_PySampling_Thread *thread, uint64_t wall_ns)
{
    int is_looked_at = wall_ns >= _PySampling_LookedAtFrom(thread);
    uint64_t own_ns = _PySampling_DeadlineSetFor(thread);
    if (!_PySampling_TimerIsDue(thread, wall_ns)
        || (is_looked_at && runs_on(thread))
        || !_Py_atomic_compare_exchange_uint64(
                &thread->timer_deadline_ns, &own_ns,
                deadline_from(thread, own_ns + 1)))
    {
        return is_looked_at;
    }
    return is_looked_at + 1;
}
