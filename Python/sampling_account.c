/* Sampling profiler: WHAT a sample weighs.

   Owns each thread's clocks: every nanosecond of a thread, wall and CPU, goes
   to exactly one sample.  Must not know signals or the layout of tables.

   A thread is in one of three states: it runs (holds the GIL), is blocked
   (gave it up), or waits for it.  Time of each state is carried apart:

   - Running: a capture takes the running time since the last capture.  Ticks
     fall uniformly into running time, so that is unbiased; what is left when
     the thread detaches is carried to its next capture.
   - Off the GIL the stack stands still, so detach and attach tell everything.
     An interval of at least half a period is booked as it is, to the
     nanosecond.  A shorter one is booked only if a tick fell into it, and then
     takes with it the time of all the short ones that no tick hit.  A tick
     hits an interval in proportion to its length, so that is unbiased too.
     The cost is bounded: at most three records per period.
   - A thread that runs for less than two microseconds between two intervals
     is doing little but the call that gives the GIL up.  Such slivers are so
     rarely hit by a tick that one hit would take the time of thousands, so
     they are booked on the stack of the interval that follows.

   Reading a thread's CPU clock is a system call.  It is read at ticks, at
   detach and attach if the last reading is old enough, and when a record is
   written.  CPU time between two readings belongs to running time first, and
   what does not fit there was burnt without the GIL. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_unset_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_tables.h"
#include "pycore_tstate.h"            // _PyThreadStateImpl

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <time.h>

/* At detach the CPU clock is read if the last reading is older than this: at
   half a microsecond per reading that costs 0.5 % at the most. */
#define CPU_READ_INTERVAL_NS 100000

/* Intervals off the GIL of a period divided by this, or longer, are booked one
   by one. */
#define LONG_PERIOD_DIVISOR 2

/* Running time that is booked with the interval off the GIL that follows:
   about what giving the GIL up and taking it back costs by itself. */
#define SLIVER_NS 2000

/* A thread that gives the GIL up only to let others run asks for it again
   after less than this.  It is not blocked then, it waits. */
#define YIELD_NS 5000

/* If another thread had requested the GIL, giving it up includes waiting until
   that thread has it, which takes that long at the most. */
#define FORCED_YIELD_NS 200000


/* Clocks. */

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec ts;
    if (clock_gettime(clock, &ts) != 0) {
        return 0;       // the thread has ended
    }
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The monotonic clock.  Async-signal-safe. */
uint64_t
_PySampling_MonotonicNow(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* The clock of the session: the monotonic one, or the tests' own. */
uint64_t
_PySampling_WallNow(void)
{
    if (_PyRuntime.sampling.options.manual) {
        return _PyRuntime.sampling.manual_wall_ns;
    }
    return _PySampling_MonotonicNow();
}

/* The CPU clock of a thread, which may be another one; 0 if it has ended. */
uint64_t
_PySampling_CpuNow(_PySampling_Thread *thread)
{
    if (_PyRuntime.sampling.options.manual) {
        return thread->manual_cpu_ns;
    }
    return read_clock((clockid_t)thread->cpu_clock);
}


/* Carrying. */

static void
carry_cpu(struct _sampling_account *a, uint64_t wall_ns, uint64_t cpu_ns)
{
    if (cpu_ns <= a->cpu_ns) {
        return;
    }
    uint64_t burnt = cpu_ns - a->cpu_ns;
    uint64_t elapsed = wall_ns > a->cpu_read_wall_ns
        ? wall_ns - a->cpu_read_wall_ns : 0;
    uint64_t ran = elapsed > a->off_since_read_ns
        ? elapsed - a->off_since_read_ns : 0;
    // Without an interval off the GIL all of it ran, whatever the two
    // clocks say about each other.
    uint64_t run = a->off_since_read_ns ? Py_MIN(burnt, ran) : burnt;
    a->carry_run_cpu_ns += run;
    a->carry_off_cpu_ns += burnt - run;
    a->cpu_ns = cpu_ns;
    a->cpu_read_wall_ns = wall_ns;
    a->off_since_read_ns = 0;
}

static void
carry_run_wall(struct _sampling_account *a, uint64_t wall_ns)
{
    if (wall_ns > a->wall_ns) {
        a->carry_run_wall_ns += wall_ns - a->wall_ns;
        a->wall_ns = wall_ns;
    }
}

static uint64_t
take(uint64_t *carry)
{
    uint64_t ns = *carry;
    *carry = 0;
    return ns;
}

void
_PySampling_AccountStart(_PySampling_Thread *thread, uint64_t wall_ns)
{
    thread->account = (struct _sampling_account){
        .wall_ns = wall_ns,
        .cpu_ns = _PySampling_CpuNow(thread),
        .cpu_read_wall_ns = wall_ns,
    };
}

/* The weight of a capture at a tick: running time since the last one.  A tick
   that finds the thread without a CPU (tick_cpu_ns is 0) says nothing about
   where it burns CPU time: kernels take the CPU away at places they prefer,
   such as the return from a system call.  Runs in the signal handler. */
void
_PySampling_AccountRun(_PySampling_Thread *thread,
                       uint64_t tick_wall_ns, uint64_t tick_cpu_ns,
                       uint64_t *wall_ns, uint64_t *cpu_ns)
{
    struct _sampling_account *a = &thread->account;
    if (tick_wall_ns > a->wall_ns) {    // else: older than the last record
        carry_run_wall(a, tick_wall_ns);
        carry_cpu(a, tick_wall_ns, tick_cpu_ns);
    }
    *wall_ns = take(&a->carry_run_wall_ns);
    *cpu_ns = tick_cpu_ns != 0 ? take(&a->carry_run_cpu_ns) : 0;
}

/* The thread held the GIL but used less CPU time than wall time passed since
   the last record, because it slept.  Returns the time it slept and carries
   the rest. */
static uint64_t
account_asleep(_PySampling_Thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
    struct _sampling_account *a = &thread->account;
    if (wall_ns <= a->wall_ns) {
        return 0;
    }
    uint64_t elapsed = wall_ns - a->wall_ns;
    uint64_t burnt_before = a->carry_run_cpu_ns;
    carry_cpu(a, wall_ns, cpu_ns);
    uint64_t ran = Py_MIN(a->carry_run_cpu_ns - burnt_before, elapsed);
    a->carry_run_wall_ns += ran;
    a->wall_ns = wall_ns;
    return elapsed - ran;
}


/* Records of time off the GIL. */

static void
add_off_gil(_PySampling_Thread *thread, uint32_t stack,
            uint64_t blocked_ns, uint64_t wait_ns, uint64_t cpu_ns)
{
    struct _sampling_tables *tables = _PyRuntime.sampling.tables;
    if (blocked_ns != 0 || cpu_ns != 0) {
        uint32_t node = _PySampling_TablesPseudoChild(
            tables, stack, _PySampling_PSEUDO_BLOCKED, 0);
        _PySampling_TablesAdd(tables, node, thread->thread_index,
                              _PySampling_BLOCKED, 1, cpu_ns, blocked_ns);
        if (node != _PySampling_NO_NODE) {
            thread->last_blocked_node = node;
        }
    }
    if (wait_ns != 0) {
        uint32_t node = _PySampling_TablesPseudoChild(
            tables, stack, _PySampling_PSEUDO_GIL_WAIT, 0);
        _PySampling_TablesAdd(tables, node, thread->thread_index,
                              _PySampling_GIL_WAIT, 1, 0, wait_ns);
    }
}

/* Books slivers of running time on the stack that gave the GIL up. */
static void
add_sliver(_PySampling_Thread *thread, uint32_t stack, uint64_t sliver_ns)
{
    struct _sampling_account *a = &thread->account;
    uint64_t cpu_ns = Py_MIN(sliver_ns, a->carry_run_cpu_ns);
    a->carry_run_cpu_ns -= cpu_ns;
    if (sliver_ns != 0) {
        _PySampling_TablesAdd(_PyRuntime.sampling.tables, stack,
                              thread->thread_index, _PySampling_RUNNING,
                              0, cpu_ns, sliver_ns);
    }
}

/* Splits [detached, now) at the moment the thread asked for the GIL. */
static void
split_off_gil(_PySampling_Thread *thread, uint64_t now_ns,
              uint64_t *blocked_ns, uint64_t *wait_ns)
{
    uint64_t from_ns = thread->account.detached_ns;
    uint64_t asked_ns =
        _Py_atomic_load_uint64_relaxed(&thread->waiting_since_ns);
    if (asked_ns == 0 || asked_ns > now_ns) {
        asked_ns = now_ns;
    }
    if (asked_ns < from_ns) {
        asked_ns = from_ns;
    }
    *blocked_ns = asked_ns - from_ns;
    *wait_ns = now_ns - asked_ns;
    uint64_t yield_ns =
        thread->was_requested ? FORCED_YIELD_NS : YIELD_NS;
    if (*wait_ns != 0 && *blocked_ns < yield_ns) {
        *wait_ns += *blocked_ns;
        *blocked_ns = 0;
    }
}

/* A thread of C code may end without clearing its thread state: the frames of
   that lie on a C stack that is gone. */
static int
has_ended(_PySampling_Thread *thread)
{
    return !_PyRuntime.sampling.options.manual
        && _PySampling_CpuNow(thread) == 0;
}

/* Books the interval off the GIL that ends now.  The thread's stack must
   stand still: it is attaching, or detached and the caller has its GIL. */
static void
book_off_gil(PyThreadState *tstate, _PySampling_Thread *thread,
             uint64_t now_ns, int exact)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_account *a = &thread->account;
    uint64_t blocked_ns, wait_ns;
    split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
    uint64_t asked_ns = now_ns - wait_ns;
    a->off_since_read_ns += blocked_ns + wait_ns;
    a->wall_ns = now_ns;

    uint64_t cpu_before_ns = a->carry_off_cpu_ns;
    carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    uint64_t cpu_ns = a->carry_off_cpu_ns - cpu_before_ns;
    uint64_t sliver_ns = take(&a->sliver_ns);
    if (exact) {
        a->carry_off_cpu_ns = cpu_before_ns;
    }
    else {
        cpu_ns = take(&a->carry_off_cpu_ns);
        sliver_ns += take(&a->carry_sliver_ns);
        // The tick fell into one of the two parts; the other is carried.
        uint64_t tick_ns =
            _Py_atomic_load_uint64_relaxed(&state->last_tick_wall_ns);
        if (wait_ns == 0 || (blocked_ns != 0 && tick_ns < asked_ns)) {
            blocked_ns += take(&a->carry_blocked_ns);
            a->carry_wait_ns += take(&wait_ns);
        }
        else {
            wait_ns += take(&a->carry_wait_ns);
            a->carry_blocked_ns += take(&blocked_ns);
        }
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (state->tables != NULL) {
        // A thread that only yields is between two instructions.
        int is_in_c = blocked_ns != 0
            && !(thread->was_requested && wait_ns != 0);
        uint32_t stack = has_ended(thread)
            ? thread->root_node
            : _PySampling_WalkNode(tstate, thread, is_in_c);
        add_sliver(thread, stack, sliver_ns);
        add_off_gil(thread, stack, blocked_ns, wait_ns, cpu_ns);
    }
    PyMutex_Unlock(&state->tables_mutex);
}


/* Several thread states on one OS thread. */

/* From now on the OS thread that both records share runs `to`.  What it did
   until `from` gave up its GIL is booked or carried there; the time since then
   becomes an interval off the GIL of `to`. */
void
_PySampling_AccountHandOver(_PySampling_Thread *from, _PySampling_Thread *to)
{
    struct _sampling_account *f = &from->account;
    struct _sampling_account *t = &to->account;
    uint64_t now_ns = _PySampling_WallNow();
    f->off_since_read_ns += now_ns - f->wall_ns;
    carry_cpu(f, now_ns, _PySampling_CpuNow(from));
    t->wall_ns = f->wall_ns;
    t->detached_ns = f->wall_ns;
    t->detached_ticks = f->detached_ticks;
    t->cpu_ns = _PySampling_CpuNow(to);
    t->cpu_read_wall_ns = now_ns;
    t->off_since_read_ns = 0;
}


/* Hooks: detach and attach. */

static _PySampling_Thread *
session_thread(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread == NULL || thread->session != _PyRuntime.sampling.session) {
        return NULL;
    }
    return thread;
}

/* The clock left a note instead of sending a signal.  If the thread slept
   while it held the GIL, it has come to a safepoint now, still at the
   instruction that slept.  If it does not answer signals, this is the best
   that can be had: what it does now, not what it did at the tick. */
static void
answer_note(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    uint64_t note_ns = _Py_atomic_exchange_uint64(&thread->note_wall_ns, 0);
    if (note_ns <= thread->account.wall_ns) {
        return;
    }
    uint64_t now_ns = _PySampling_WallNow();
    uint64_t cpu_now_ns = _PySampling_CpuNow(thread);
    uint64_t wall_ns, cpu_ns = 0;
    if (_Py_atomic_load_int_relaxed(&thread->note_asleep)) {
        wall_ns = account_asleep(thread, now_ns, cpu_now_ns);
    }
    else {
        _PySampling_AccountRun(thread, now_ns, cpu_now_ns, &wall_ns, &cpu_ns);
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (state->tables != NULL) {
        // The call that slept has returned.
        uint32_t node = _PySampling_WalkNode(tstate, thread, 0);
        _PySampling_TablesAdd(state->tables, node, thread->thread_index,
                              thread->gc_generation >= 0
                                  ? _PySampling_GC : _PySampling_RUNNING,
                              1, cpu_ns, wall_ns);
    }
    PyMutex_Unlock(&state->tables_mutex);
    _PySampling_COUNT(captures_biased, 1);
}

static void
drain_and_answer(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    _PySampling_Drain(tstate, thread);
    if (_Py_atomic_load_uint64_relaxed(&thread->note_wall_ns) != 0) {
        answer_note(tstate, thread);
    }
}

/* From here on the clock asks this thread for nothing more, and what it has
   asked is answered before a system call could be interrupted. */
static void
settle(PyThreadState *tstate)
{
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    if (thread != NULL) {
        _Py_atomic_store_ptr(&tstate->interp->sampling.running, NULL);
        thread->is_settling = 1;
        _PySampling_FENCE();
        _PySampling_ClockSettle(thread);
        _PySampling_FENCE();
        thread->is_settling = 0;
    }
}

void
_PySampling_BeforeExec(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_PySampling_ACTIVE() && tstate != NULL) {
        settle(tstate);
    }
}

void
_PySampling_AfterFailedExec(void)
{
    PyThreadState *tstate = _PyThreadState_GET();
    if (_PySampling_ACTIVE() && tstate != NULL) {
        _Py_atomic_store_ptr(&tstate->interp->sampling.running,
                             session_thread(tstate));
    }
}

void
_PySampling_Safepoint(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL) {
        // It was running, with a GIL of its own, when the session started.
        _Py_unset_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
        if (_PySampling_ACTIVE()) {
            settle(tstate);
            _PySampling_AfterAttach(tstate);
        }
        errno = saved_errno;
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    drain_and_answer(tstate, thread);
    _PySampling_LEAVE_HOOK(thread);
    errno = saved_errno;
}

/* Once per thread: under which frames its time goes if no tick hits it. */
static void
note_root(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    if (state->tables != NULL) {
        uint32_t node = _PySampling_RootNode(tstate, thread);
        if (node != _PySampling_NO_NODE) {
            thread->root_node = node;
        }
    }
    PyMutex_Unlock(&state->tables_mutex);
}

void
_PySampling_BeforeDetach(PyThreadState *tstate)
{
    int saved_errno = errno;
    settle(tstate);
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    if (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker)
        & _PY_SAMPLING_BIT)
    {
        drain_and_answer(tstate, thread);
    }
    if (thread->root_node == 0 && tstate->current_frame != NULL) {
        note_root(tstate, thread);
    }
    struct _sampling_account *a = &thread->account;
    uint64_t now_ns = _PySampling_WallNow();
    // If no tick has been booked since it attached.
    if (a->wall_ns == thread->attached_ns
        && now_ns - a->wall_ns <= SLIVER_NS)
    {
        a->sliver_ns = now_ns - a->wall_ns;
        a->wall_ns = now_ns;
    }
    carry_run_wall(a, now_ns);
    if (now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS) {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns, 0);
    thread->was_requested = _Py_eval_breaker_bit_is_set(
        tstate, _PY_GIL_DROP_REQUEST_BIT);
    a->detached_ticks = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.counters.ticks);
    a->detached_ns = now_ns;
    _PySampling_LEAVE_HOOK(thread);
    errno = saved_errno;
}

void
_PySampling_BeforeGILWait(PyThreadState *tstate)
{
    _PySampling_Thread *thread = session_thread(tstate);
    if (thread != NULL
        && _Py_atomic_load_uint64_relaxed(&thread->waiting_since_ns) == 0)
    {
        int saved_errno = errno;
        _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns,
                                        _PySampling_WallNow());
        errno = saved_errno;
    }
}

void
_PySampling_AfterAttach(PyThreadState *tstate)
{
    int saved_errno = errno;
    _PySampling_Thread *thread = _PySampling_ThreadOf(tstate);
    if (thread == NULL) {
        errno = saved_errno;
        return;
    }
    if (thread->shadowed) {
        _PySampling_SiblingsTakeOver(thread);
    }
    struct _sampling_account *a = &thread->account;
    if (a->detached_ns != 0) {
        _PySampling_ENTER_HOOK(thread);
        uint64_t now_ns = _PySampling_WallNow();
        uint64_t ticks = _Py_atomic_load_uint64_relaxed(
            &_PyRuntime.sampling.counters.ticks);
        int is_long = now_ns - a->detached_ns >= _PyRuntime.sampling.period_ns
                                                 / LONG_PERIOD_DIVISOR;
        if (is_long || ticks != a->detached_ticks) {
            book_off_gil(tstate, thread, now_ns, is_long);
        }
        else {
            uint64_t blocked_ns, wait_ns;
            split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
            a->carry_blocked_ns += blocked_ns;
            a->carry_wait_ns += wait_ns;
            a->carry_sliver_ns += take(&a->sliver_ns);
            a->off_since_read_ns += blocked_ns + wait_ns;
            a->wall_ns = now_ns;
            if (now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS) {
                carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
            }
        }
        a->detached_ns = 0;
        _Py_atomic_store_uint64_relaxed(&thread->attached_ns, now_ns);
        _PySampling_LEAVE_HOOK(thread);
    }
    _Py_atomic_store_uint64_relaxed(&thread->note_wall_ns, 0);
    _Py_atomic_store_int_relaxed(&thread->asked, _PySampling_NOT_ASKED);
    _Py_atomic_store_ptr_release(&tstate->interp->sampling.running, thread);
    errno = saved_errno;
}


/* What no tick will see any more. */

static uint32_t
below_root(struct _sampling_tables *tables, _PySampling_Thread *thread,
           _PySampling_Pseudo pseudo)
{
    return _PySampling_TablesPseudoChild(tables, thread->root_node, pseudo,
                                         0);
}

/* Books all that is carried, and, for a thread that stands still, the
   interval it is in.  Called with the thread's GIL, for a snapshot, at the
   end of the thread or of the session. */
void
_PySampling_AccountFlush(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_account *a = &thread->account;
    _PySampling_ENTER_HOOK(thread);
    if (thread->shadowed) {
        // Another thread state has the OS thread's time since it detached.
    }
    else if (a->detached_ns != 0) {
        book_off_gil(thread->tstate, thread, now_ns, 1);
        a->detached_ns = now_ns;
    }
    else {
        carry_run_wall(a, now_ns);
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = state->tables;
    uint64_t run_ns = take(&a->carry_run_wall_ns)
                      + take(&a->carry_sliver_ns);
    uint64_t run_cpu_ns = take(&a->carry_run_cpu_ns);
    uint64_t blocked_ns = take(&a->carry_blocked_ns);
    uint64_t wait_ns = take(&a->carry_wait_ns);
    uint64_t off_cpu_ns = take(&a->carry_off_cpu_ns);
    if (blocked_ns == 0) {
        // No short interval is left that could have burnt it.
        run_cpu_ns += off_cpu_ns;
        off_cpu_ns = 0;
    }
    if (tables != NULL && (run_ns != 0 || run_cpu_ns != 0)) {
        int seen = thread->last_node != 0;
        _PySampling_TablesAdd(
            tables, seen ? thread->last_node
                         : below_root(tables, thread,
                                      _PySampling_PSEUDO_UNSAMPLED),
            thread->thread_index,
            seen ? _PySampling_RUNNING : _PySampling_UNSAMPLED,
            0, run_cpu_ns, run_ns);
    }
    if (tables != NULL && (blocked_ns != 0 || off_cpu_ns != 0)) {
        int seen = thread->last_blocked_node != 0;
        _PySampling_TablesAdd(
            tables, seen ? thread->last_blocked_node
                         : below_root(tables, thread,
                                      _PySampling_PSEUDO_BLOCKED),
            thread->thread_index, _PySampling_BLOCKED,
            0, off_cpu_ns, blocked_ns);
    }
    if (tables != NULL && wait_ns != 0) {
        _PySampling_TablesAdd(
            tables, below_root(tables, thread, _PySampling_PSEUDO_GIL_WAIT),
            thread->thread_index, _PySampling_GIL_WAIT, 0, 0, wait_ns);
    }
    PyMutex_Unlock(&state->tables_mutex);
    _PySampling_LEAVE_HOOK(thread);
}

#endif  // _PySampling_SUPPORTED
