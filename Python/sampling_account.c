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
     they are booked on the stack of the interval that follows.  So are some
     longer ones, if they are short against that interval.

   Reading a thread's CPU clock is a system call.  It is read at ticks, at
   detach and attach if the last reading is old enough, and when a record is
   written.  CPU time between two readings belongs to running time first, and
   what does not fit there was burnt without the GIL. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_events.h"
#include "pycore_sampling_labels.h"
#include "pycore_sampling_parts.h"

#ifdef _PySampling_SUPPORTED

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

/* And up to this, if it is no more than a part of the interval. */
#define MAX_SLIVER_NS 10000
#define SLIVER_DIVISOR 200

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
    // Not options.manual: a thread that waits for its GIL may ask while a
    // session starts.
    uint64_t manual_ns = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.manual_wall_ns);
    return manual_ns != 0 ? manual_ns : _PySampling_MonotonicNow();
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

/* Atomic for a thread of another GIL that ends the session. */
static void
advance(struct _sampling_account *a, uint64_t wall_ns)
{
    _Py_atomic_store_uint64_relaxed(&a->wall_ns, wall_ns);
}

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
    a->carried.run_cpu_ns += run;
    a->carried.off_cpu_ns += burnt - run;
    a->cpu_ns = cpu_ns;
    a->cpu_read_wall_ns = wall_ns;
    a->off_since_read_ns = 0;
}

static void
carry_run_wall(struct _sampling_account *a, uint64_t wall_ns)
{
    if (wall_ns > a->wall_ns) {
        a->carried.run_wall_ns += wall_ns - a->wall_ns;
        advance(a, wall_ns);
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
    *wall_ns = take(&a->carried.run_wall_ns);
    *cpu_ns = tick_cpu_ns != 0 ? take(&a->carried.run_cpu_ns) : 0;
}

/* The thread held the GIL but used less CPU time than wall time passed since
   the last record, because it slept.  Returns the time it slept and carries
   the rest. */
uint64_t
_PySampling_AccountAsleep(_PySampling_Thread *thread, uint64_t wall_ns,
                          uint64_t cpu_ns)
{
    struct _sampling_account *a = &thread->account;
    if (wall_ns <= a->wall_ns) {
        return 0;
    }
    uint64_t elapsed = wall_ns - a->wall_ns;
    uint64_t burnt_before = a->carried.run_cpu_ns;
    carry_cpu(a, wall_ns, cpu_ns);
    uint64_t ran = Py_MIN(a->carried.run_cpu_ns - burnt_before, elapsed);
    a->carried.run_wall_ns += ran;
    advance(a, wall_ns);
    return elapsed - ran;
}


/* Records of time off the GIL. */

/* What a record is about: a stack of a thread, and its labels. */
struct place {
    _PySampling_Thread *thread;
    uint32_t stack;
    uint32_t labels;
};

static void
emit(const struct place *place, _PySampling_State state, uint64_t count,
     uint64_t cpu_ns, uint64_t wall_ns)
{
    _PySampling_Thread *thread = place->thread;
    _PySampling_Emit(thread, &(struct _sampling_sample_row){
        .node = place->stack,
        .thread = thread->thread_index,
        .labels = place->labels,
        .state = state,
        .count = count,
        .cpu_ns = cpu_ns,
        .wall_ns = wall_ns,
    }, thread->account.wall_ns, count == 0 ? _PySampling_FLAG_RESIDUE : 0);
}

static struct place
below(const struct place *place, _PySampling_Pseudo pseudo)
{
    struct place child = *place;
    child.stack = _PySampling_TablesPseudoChild(
        _PyRuntime.sampling.tables, place->stack, pseudo, 0);
    return child;
}

static void
add_off_gil(const struct place *place, uint64_t blocked_ns, uint64_t wait_ns,
            uint64_t cpu_ns)
{
    if (blocked_ns != 0 || cpu_ns != 0) {
        struct place leaf = below(place, _PySampling_PSEUDO_BLOCKED);
        emit(&leaf, _PySampling_BLOCKED, 1, cpu_ns, blocked_ns);
        if (leaf.stack != _PySampling_NO_NODE && !place->thread->excluded) {
            place->thread->last_blocked_node = leaf.stack;
            place->thread->last_blocked_labels = leaf.labels;
        }
    }
    if (wait_ns != 0) {
        struct place leaf = below(place, _PySampling_PSEUDO_GIL_WAIT);
        emit(&leaf, _PySampling_GIL_WAIT, 1, 0, wait_ns);
    }
}

/* Books slivers of running time on the stack that gave the GIL up. */
static void
add_sliver(const struct place *place, uint64_t sliver_ns)
{
    struct _sampling_account *a = &place->thread->account;
    uint64_t cpu_ns = Py_MIN(sliver_ns, a->carried.run_cpu_ns);
    a->carried.run_cpu_ns -= cpu_ns;
    if (sliver_ns != 0) {
        emit(place, _PySampling_RUNNING, 0, cpu_ns, sliver_ns);
    }
}

/* Whether the running time before an interval goes with it, is known when the
   interval has ended. */
static void
settle_sliver(struct _sampling_account *a, uint64_t interval_ns)
{
    if (a->sliver_ns > SLIVER_NS
        && a->sliver_ns > interval_ns / SLIVER_DIVISOR)
    {
        a->carried.run_wall_ns += take(&a->sliver_ns);
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
        thread->is_yielding ? FORCED_YIELD_NS : YIELD_NS;
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
    settle_sliver(a, blocked_ns + wait_ns);
    a->off_since_read_ns += blocked_ns + wait_ns;
    advance(a, now_ns);

    uint64_t cpu_before_ns = a->carried.off_cpu_ns;
    carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    uint64_t cpu_ns = a->carried.off_cpu_ns - cpu_before_ns;
    uint64_t sliver_ns = take(&a->sliver_ns);
    if (exact) {
        a->carried.off_cpu_ns = cpu_before_ns;
    }
    else {
        cpu_ns = take(&a->carried.off_cpu_ns);
        sliver_ns += take(&a->carried.sliver_ns);
        // The tick fell into one of the two parts; the other is carried.
        uint64_t tick_ns =
            _Py_atomic_load_uint64_relaxed(&state->last_tick_wall_ns);
        if (wait_ns == 0 || (blocked_ns != 0 && tick_ns < asked_ns)) {
            blocked_ns += take(&a->carried.blocked_ns);
            a->carried.wait_ns += take(&wait_ns);
        }
        else {
            wait_ns += take(&a->carried.wait_ns);
            a->carried.blocked_ns += take(&blocked_ns);
        }
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    if (tables != NULL) {
        // A thread that only yields is between two instructions.
        int is_in_c = blocked_ns != 0 && !thread->is_yielding;
        struct place place = {
            .thread = thread,
            .stack = has_ended(thread)
                ? thread->root_node
                : _PySampling_WalkNode(tstate, thread, is_in_c),
            .labels = _PySampling_LabelsOf(tables, tstate,
                                           tstate->context),
        };
        add_sliver(&place, sliver_ns);
        add_off_gil(&place, blocked_ns, wait_ns, cpu_ns);
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
    advance(t, f->wall_ns);
    t->detached_ns = f->wall_ns;
    t->detached_ticks = f->detached_ticks;
    t->cpu_ns = _PySampling_CpuNow(to);
    t->cpu_read_wall_ns = now_ns;
    t->off_since_read_ns = 0;
}


/* Work that is not the program's. */

/* The program's work and a subscriber's carry time apart. */
static void
set_excluded(_PySampling_Thread *thread, _PySampling_Exclusion excluded)
{
    struct _sampling_carries *c = &thread->account.carried;
    if (!thread->excluded) {
        thread->set_aside = *c;
    }
    else if (thread->excluded == _PySampling_EXCLUDED) {
        _PySampling_COUNT(subscribers_wall_ns,
                          c->run_wall_ns + c->sliver_ns + c->blocked_ns
                          + c->wait_ns);
        _PySampling_COUNT(subscribers_cpu_ns, c->run_cpu_ns + c->off_cpu_ns);
    }
    *c = excluded ? (struct _sampling_carries){0} : thread->set_aside;
    _Py_atomic_store_int_relaxed(&thread->excluded, excluded);
}

/* Says what the thread does from here on.  On the thread itself, attached,
   with its captures drained. */
void
_PySampling_AccountExclude(_PySampling_Thread *thread,
                           _PySampling_Exclusion excluded)
{
    struct _sampling_account *a = &thread->account;
    if (thread->excluded != (int)excluded) {
        uint64_t now_ns = _PySampling_WallNow();
        carry_run_wall(a, now_ns);
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
        set_excluded(thread, excluded);
    }
}


/* Detach and attach. */

void
_PySampling_AccountDetach(_PySampling_Thread *thread)
{
    struct _sampling_account *a = &thread->account;
    uint64_t now_ns = _PySampling_WallNow();
    // If no tick has been booked since it attached.
    if (a->wall_ns == thread->attached_ns
        && now_ns - a->wall_ns <= MAX_SLIVER_NS)
    {
        a->sliver_ns = now_ns - a->wall_ns;
        advance(a, now_ns);
    }
    carry_run_wall(a, now_ns);
    if (now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS) {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    a->detached_ticks = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.counters.ticks);
    a->detached_ns = now_ns;
}

/* Too short to be booked, unless a tick hit it. */
static void
carry_off_gil(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_account *a = &thread->account;
    uint64_t blocked_ns, wait_ns;
    split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
    settle_sliver(a, blocked_ns + wait_ns);
    a->carried.blocked_ns += blocked_ns;
    a->carried.wait_ns += wait_ns;
    a->carried.sliver_ns += take(&a->sliver_ns);
    a->off_since_read_ns += blocked_ns + wait_ns;
    advance(a, now_ns);
    if (now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS) {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
}

void
_PySampling_AccountAttach(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_account *a = &thread->account;
    uint64_t now_ns = _PySampling_WallNow();
    uint64_t ticks = _Py_atomic_load_uint64_relaxed(
        &_PyRuntime.sampling.counters.ticks);
    int is_long = now_ns - a->detached_ns >= _PyRuntime.sampling.period_ns
                                             / LONG_PERIOD_DIVISOR;
    if (is_long || ticks != a->detached_ticks) {
        book_off_gil(tstate, thread, now_ns, is_long);
    }
    else {
        carry_off_gil(thread, now_ns);
    }
    a->detached_ns = 0;
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, now_ns);
}


/* What no tick will see any more. */

/* What is left when all time is to be booked: running time after the last tick
   goes to the stack that the *first* tick found.  A sample takes the time
   since the one before it, so the first takes less than its share, by as much
   as is left at the end, on average: from the last tick around to the first it
   is one interval like any other.  Given to the last stack, half a period of
   each thread would move from what it did first to what it did last. */

static void
flush_running(const struct place *root, uint64_t cpu_ns, uint64_t wall_ns)
{
    const _PySampling_Thread *thread = root->thread;
    struct place place = *root;
    if (thread->first_node != 0) {
        place.stack = thread->first_node;
        place.labels = thread->first_labels;
    }
    else if (thread->last_node != 0) {
        place.stack = thread->last_node;
        place.labels = thread->last_labels;
    }
    else {
        place = below(root, _PySampling_PSEUDO_UNSAMPLED);
        emit(&place, _PySampling_UNSAMPLED, 0, cpu_ns, wall_ns);
        return;
    }
    emit(&place, _PySampling_RUNNING, 0, cpu_ns, wall_ns);
}

static void
flush_blocked(const struct place *root, uint64_t cpu_ns, uint64_t wall_ns)
{
    const _PySampling_Thread *thread = root->thread;
    struct place leaf;
    if (thread->last_blocked_node != 0) {
        leaf = *root;
        leaf.stack = thread->last_blocked_node;
        leaf.labels = thread->last_blocked_labels;
    }
    else {
        leaf = below(root, _PySampling_PSEUDO_BLOCKED);
    }
    emit(&leaf, _PySampling_BLOCKED, 0, cpu_ns, wall_ns);
}

/* Books the interval off the GIL that the thread is in, if it is long.  Called
   with the thread's GIL. */
void
_PySampling_AccountBlocked(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_account *a = &thread->account;
    if (thread->shadowed || a->detached_ns == 0
        || now_ns - a->detached_ns
           < _PyRuntime.sampling.period_ns / LONG_PERIOD_DIVISOR)
    {
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    book_off_gil(thread->tstate, thread, now_ns, 1);
    a->detached_ns = now_ns;
    _PySampling_LEAVE_HOOK(thread);
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
    _PySampling_Exclusion excluded = thread->excluded;
    if (excluded) {
        set_excluded(thread, _PySampling_NOT_EXCLUDED);
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    uint64_t run_ns = take(&a->carried.run_wall_ns)
                      + take(&a->carried.sliver_ns) + take(&a->sliver_ns);
    uint64_t run_cpu_ns = take(&a->carried.run_cpu_ns);
    uint64_t blocked_ns = take(&a->carried.blocked_ns);
    uint64_t wait_ns = take(&a->carried.wait_ns);
    uint64_t off_cpu_ns = take(&a->carried.off_cpu_ns);
    if (blocked_ns == 0) {
        // No short interval is left that could have burnt it.
        run_cpu_ns += off_cpu_ns;
        off_cpu_ns = 0;
    }
    if (tables != NULL) {
        struct place root = {
            .thread = thread,
            .stack = thread->root_node,
            .labels = _PySampling_LabelsOf(tables, thread->tstate,
                                           thread->tstate->context),
        };
        if (run_ns != 0 || run_cpu_ns != 0) {
            flush_running(&root, run_cpu_ns, run_ns);
        }
        if (blocked_ns != 0 || off_cpu_ns != 0) {
            flush_blocked(&root, off_cpu_ns, blocked_ns);
        }
        if (wait_ns != 0) {
            struct place leaf = below(&root, _PySampling_PSEUDO_GIL_WAIT);
            emit(&leaf, _PySampling_GIL_WAIT, 0, 0, wait_ns);
        }
    }
    thread->first_node = 0;
    thread->residue_cpu_ns = run_cpu_ns + off_cpu_ns;
    thread->residue_wall_ns = run_ns + blocked_ns + wait_ns;
    PyMutex_Unlock(&state->tables_mutex);
    if (excluded) {
        set_excluded(thread, excluded);
    }
    _PySampling_LEAVE_HOOK(thread);
}

#endif  // _PySampling_SUPPORTED
