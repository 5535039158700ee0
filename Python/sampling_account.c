/* Sampling profiler: WHAT a thread's time is spent on.

   Owns each thread's clocks: every nanosecond of a thread, wall and CPU, goes
   to exactly one sample.  Must not know signals or the layout of tables, nor
   how samples share the time that a thread holds the GIL
   (sampling_weights.c).

   A thread is in one of three states: it runs (holds the GIL), is blocked
   (gave it up), or waits for it.  Time of each state is carried apart:

   - Running: the clock looks at it now and then.  What passed since the last
     capture is handed on with the next.
   - Off the GIL the stack stands still, so detach and attach tell everything.
     An interval of at least half a period is booked as it is, to the
     nanosecond.  Shorter ones are laid end to end, and points on that axis, a
     period apart on average, say which of them are booked: each with the
     distance to the point before.  An interval covers a point in proportion to
     its length, so that is unbiased.  The cost is bounded: at most three
     records per period.
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
   0.4 microseconds per reading that costs 1.6 % at the most. */
#define CPU_READ_INTERVAL_NS 25000

/* Intervals off the GIL of a period divided by this, or longer, are booked one
   by one.  Shorter ones never cover two points of their axis, which are three
   quarters of a period apart at the least. */
#define LONG_PERIOD_DIVISOR 2

/* Samples of a thread that has not run for so long wait no longer for others
   to share its time with. */
#define IDLE_NS 1000000000

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
    if (cpu_ns < a->cpu_ns) {
        return;         // read earlier than the last one, or it has ended
    }
    uint64_t burnt = cpu_ns - a->cpu_ns;
    uint64_t elapsed = wall_ns > a->cpu_read_wall_ns
        ? wall_ns - a->cpu_read_wall_ns : 0;
    uint64_t ran = elapsed > a->off_since_read_ns
        ? elapsed - a->off_since_read_ns : 0;
    // Without an interval off the GIL all of it ran, whatever the two
    // clocks say about each other.
    uint64_t run = a->off_since_read_ns ? Py_MIN(burnt, ran) : burnt;
    a->carried.run.cpu_ns += run;
    a->carried.off_cpu_ns += burnt - run;
    _Py_atomic_store_uint64_relaxed(&a->cpu_ns, cpu_ns);  // the clock looks
    a->cpu_read_wall_ns = wall_ns;
    a->off_since_read_ns = 0;
}

static void
carry_run_wall(struct _sampling_account *a, uint64_t wall_ns)
{
    if (wall_ns > a->wall_ns) {
        a->carried.run.wall_ns += wall_ns - a->wall_ns;
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

static struct _sampling_time
take_time(struct _sampling_time *carry)
{
    struct _sampling_time time = *carry;
    *carry = (struct _sampling_time){0};
    return time;
}

void
_PySampling_AccountStart(_PySampling_Thread *thread, uint64_t wall_ns)
{
    thread->account = (struct _sampling_account){
        .wall_ns = wall_ns,
        .cpu_ns = _PySampling_CpuNow(thread),
        .cpu_read_wall_ns = wall_ns,
        .axes.random = _PyRuntime.sampling.options.manual
            ? 1 : (wall_ns ^ (uintptr_t)thread) | 1,
    };
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, wall_ns);
}

_PySampling_Time
_PySampling_AccountRun(_PySampling_Thread *thread, uint64_t wall_ns,
                       uint64_t cpu_ns)
{
    struct _sampling_account *a = &thread->account;
    if (wall_ns > a->wall_ns) {         // else: older than the last record
        carry_run_wall(a, wall_ns);
        carry_cpu(a, wall_ns, cpu_ns);
    }
    return take_time(&a->carried.run);
}


/* Records of time off the GIL. */

/* What a record is about: a stack of a thread, and its labels; who held the
   GIL, if it waited for it. */
struct place {
    _PySampling_Thread *thread;
    uint32_t stack;
    uint32_t labels;
    struct _sampling_wait_part holder;
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
        .holder_thread = place->holder.holder_thread,
        .holder_node = place->holder.holder_node,
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

/* A wait for the GIL that weighs what it took is booked on all who held the
   GIL meanwhile.  One that weighs for others is booked on who held it at the
   moment that chose it. */
static void
add_wait(const struct place *place, uint64_t wait_ns, uint64_t from_ns,
         uint64_t to_ns)
{
    struct place leaf = below(place, _PySampling_PSEUDO_GIL_WAIT);
    if (from_ns == to_ns) {
        leaf.holder = _PySampling_HolderAt(place->thread, from_ns);
        emit(&leaf, _PySampling_GIL_WAIT, 1, 0, wait_ns);
        return;
    }
    assert(wait_ns == to_ns - from_ns);
    const struct _sampling_wait_part *parts;
    int num_parts = _PySampling_HoldersSplit(place->thread, from_ns, to_ns,
                                             &parts);
    for (int i = 0; i < num_parts; i++) {
        leaf.holder = parts[i];
        emit(&leaf, _PySampling_GIL_WAIT, 1, 0, parts[i].wall_ns);
    }
}

/* What is booked of the interval off the GIL that ends now. */
struct off_gil {
    uint64_t blocked_ns;
    uint64_t wait_ns;
    // It waited from then until then; or the moment that stands for all waits
    // since the one before.
    uint64_t wait_from_ns;
    uint64_t wait_until_ns;
    uint64_t cpu_ns;
    // What it stands for, if it was short: it shares CPU time with others.
    uint64_t cpu_span_ns;
    uint64_t sliver_ns;
    int is_in_c;
};

/* The sample has its wall time already. */
static void
share_off_gil_cpu(const struct place *place, uint64_t span_ns)
{
    struct _sampling_account *a = &place->thread->account;
    _PySampling_Weigh(place->thread, _PySampling_OFF_GIL,
                      &(struct _sampling_pending){
        .time_ns = a->wall_ns,
        .span.cpu_ns = span_ns,
        .node = place->stack,
        .labels = place->labels,
        .state = _PySampling_BLOCKED,
    }, (struct _sampling_time){.cpu_ns = take(&a->carried.off_cpu_ns)});
}

static void
add_off_gil(const struct place *place, const struct off_gil *booked)
{
    if (booked->blocked_ns != 0 || booked->cpu_ns != 0) {
        struct place leaf = below(place, _PySampling_PSEUDO_BLOCKED);
        emit(&leaf, _PySampling_BLOCKED, 1, booked->cpu_ns,
             booked->blocked_ns);
        if (booked->cpu_span_ns != 0) {
            share_off_gil_cpu(&leaf, booked->cpu_span_ns);
        }
        if (leaf.stack != _PySampling_NO_NODE && !place->thread->excluded) {
            place->thread->last_blocked_node = leaf.stack;
            place->thread->last_blocked_labels = leaf.labels;
        }
    }
    if (booked->wait_ns != 0) {
        add_wait(place, booked->wait_ns, booked->wait_from_ns,
                 booked->wait_until_ns);
    }
}

/* Books slivers of running time on the stack that gave the GIL up. */
static void
add_sliver(const struct place *place, uint64_t sliver_ns)
{
    struct _sampling_account *a = &place->thread->account;
    uint64_t cpu_ns = Py_MIN(sliver_ns, a->carried.run.cpu_ns);
    a->carried.run.cpu_ns -= cpu_ns;
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
        a->carried.run.wall_ns += take(&a->sliver_ns);
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

/* A short interval at the end of its axis: booked if it covers a point, with
   the distance to the point before.  What lies behind the point is carried. */
static uint64_t
cover(struct _sampling_account *a, uint64_t *to_go_ns, uint64_t *carried_ns,
      uint64_t length_ns, uint64_t period_ns)
{
    if (*to_go_ns == 0) {
        // The first point lies anywhere in the first period.
        *to_go_ns = 1 + _PySampling_NextRandom(&a->axes.random) % period_ns;
    }
    if (length_ns < *to_go_ns) {
        *to_go_ns -= length_ns;
        *carried_ns += length_ns;
        return 0;
    }
    uint64_t booked_ns = *carried_ns + *to_go_ns;
    *carried_ns = length_ns - *to_go_ns;
    *to_go_ns = _PySampling_Jittered(period_ns, &a->axes.random)
                - *carried_ns;
    return booked_ns;
}

/* The rate may change at any moment: who asks twice takes it once. */
static uint64_t
period_ns_now(void)
{
    return _Py_atomic_load_uint64_relaxed(&_PyRuntime.sampling.period_ns);
}

static int
is_long(uint64_t length_ns, uint64_t period_ns)
{
    return length_ns >= period_ns / LONG_PERIOD_DIVISOR;
}

/* Decides how the interval off the GIL that ends now is booked, and carries
   the rest.  `all`: it is not to wait for a point. */
static struct off_gil
measure_off_gil(_PySampling_Thread *thread, uint64_t now_ns, int all)
{
    struct _sampling_account *a = &thread->account;
    struct _sampling_carries *c = &a->carried;
    uint64_t blocked_ns, wait_ns;
    split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
    uint64_t asked_ns = now_ns - wait_ns;
    settle_sliver(a, blocked_ns + wait_ns);
    a->off_since_read_ns += blocked_ns + wait_ns;
    advance(a, now_ns);

    uint64_t period_ns = period_ns_now();
    int blocked_is_exact = all || is_long(blocked_ns, period_ns);
    int wait_is_exact = all || is_long(wait_ns, period_ns);
    struct off_gil booked = {
        .blocked_ns = blocked_is_exact ? blocked_ns
            : cover(a, &a->axes.blocked_to_go_ns, &c->blocked_ns, blocked_ns,
                    period_ns),
        .wait_from_ns = asked_ns,
        .wait_until_ns = now_ns,
        // A thread that only yields is between two instructions.
        .is_in_c = blocked_ns != 0 && !thread->is_yielding,
    };
    if (wait_is_exact) {
        booked.wait_ns = wait_ns;
    }
    else {
        uint64_t to_go_ns = a->axes.wait_to_go_ns;
        booked.wait_ns =
            cover(a, &a->axes.wait_to_go_ns, &c->wait_ns, wait_ns, period_ns);
        booked.wait_from_ns += Py_MIN(to_go_ns, wait_ns);
        booked.wait_until_ns = booked.wait_from_ns;
    }
    int is_booked = booked.blocked_ns != 0 || booked.wait_ns != 0;
    uint64_t cpu_before_ns = c->off_cpu_ns;
    if (is_booked
        || now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS)
    {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    uint64_t own_cpu_ns = c->off_cpu_ns - cpu_before_ns;
    if (booked.blocked_ns != 0 && blocked_is_exact) {
        booked.cpu_ns = own_cpu_ns;
        c->off_cpu_ns = cpu_before_ns;
    }
    else if (booked.blocked_ns != 0) {
        // As dense as in the interval itself.
        booked.cpu_span_ns = (uint64_t)(
            (double)Py_MIN(own_cpu_ns, blocked_ns) / (double)blocked_ns
            * (double)booked.blocked_ns);
    }
    if (!is_booked) {
        c->sliver_ns += take(&a->sliver_ns);
    }
    else {
        booked.sliver_ns = take(&a->sliver_ns);
        if (!blocked_is_exact && !wait_is_exact) {
            booked.sliver_ns += take(&c->sliver_ns);
        }
    }
    return booked;
}

/* Books the interval off the GIL that ends now.  The thread's stack must
   stand still: it is attaching, or detached and the caller has its GIL. */
static void
book_off_gil(PyThreadState *tstate, _PySampling_Thread *thread,
             uint64_t now_ns, int all)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct off_gil booked = measure_off_gil(thread, now_ns, all);
    if (booked.blocked_ns == 0 && booked.wait_ns == 0
        && booked.sliver_ns == 0 && booked.cpu_ns == 0)
    {
        return;
    }
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    if (tables != NULL) {
        struct place place = {
            .thread = thread,
            .stack = has_ended(thread)
                ? thread->root_node
                : _PySampling_WalkNode(tstate, thread, booked.is_in_c),
            .labels = _PySampling_LabelsOf(tables, tstate,
                                           tstate->context),
        };
        add_sliver(&place, booked.sliver_ns);
        add_off_gil(&place, &booked);
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
    // Else all of it was booked just now, maybe for the last time.
    if (f->cpu_read_wall_ns < f->wall_ns) {
        uint64_t now_ns = _PySampling_WallNow();
        f->off_since_read_ns += now_ns - f->wall_ns;
        carry_cpu(f, now_ns, _PySampling_CpuNow(from));
    }
    advance(t, f->wall_ns);
    t->detached_ns = f->wall_ns;
    // One clock, unless the tests tick those of each.
    t->cpu_ns = _PyRuntime.sampling.options.manual
        ? _PySampling_CpuNow(to) : f->cpu_ns;
    t->cpu_read_wall_ns = f->cpu_read_wall_ns;
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
                          c->run.wall_ns + c->sliver_ns + c->blocked_ns
                          + c->wait_ns);
        _PySampling_COUNT(subscribers_cpu_ns, c->run.cpu_ns + c->off_cpu_ns);
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
    // The interval that begins may be short and booked: it needs two readings
    // of its own.
    if (now_ns - a->cpu_read_wall_ns >= CPU_READ_INTERVAL_NS
        || a->axes.blocked_to_go_ns < CPU_READ_INTERVAL_NS)
    {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    a->detached_ns = now_ns;
}

void
_PySampling_AccountAttach(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t now_ns = _PySampling_WallNow();
    book_off_gil(tstate, thread, now_ns, 0);
    thread->account.detached_ns = 0;
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, now_ns);
}


/* What no tick will see any more. */

/* Running time of a thread none of whose samples waits to share it. */
static void
flush_running(const struct place *root, struct _sampling_time time)
{
    const _PySampling_Thread *thread = root->thread;
    struct place place = *root;
    _PySampling_State state = _PySampling_RUNNING;
    if (thread->last_node != 0) {
        place.stack = thread->last_node;
        place.labels = thread->last_labels;
    }
    else {
        place = below(root, _PySampling_PSEUDO_UNSAMPLED);
        state = _PySampling_UNSAMPLED;
    }
    emit(&place, state, 0, time.cpu_ns, time.wall_ns);
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

/* The samples that wait take the time, if there are any.  Lock:
   tables_mutex. */
static void
share_out(_PySampling_Thread *thread, _PySampling_Window window,
          struct _sampling_time *time)
{
    if (_PySampling_TABLES_OF(thread) != NULL
        && _PySampling_WeighAll(thread, window, *time))
    {
        *time = (struct _sampling_time){0};
    }
}

static void
weigh_all(_PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_carries *c = &thread->account.carried;
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    share_out(thread, _PySampling_ON_GIL, &c->run);
    struct _sampling_time off = {.cpu_ns = c->off_cpu_ns};
    share_out(thread, _PySampling_OFF_GIL, &off);
    c->off_cpu_ns = off.cpu_ns;
    PyMutex_Unlock(&state->tables_mutex);
}

/* Books the interval off the GIL that the thread is in, if it is long.  Called
   with the thread's GIL. */
void
_PySampling_AccountBlocked(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_account *a = &thread->account;
    if (thread->shadowed || a->detached_ns == 0
        || !is_long(now_ns - a->detached_ns, period_ns_now()))
    {
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    book_off_gil(thread->tstate, thread, now_ns, 1);
    a->detached_ns = now_ns;
    // What is carried, and where it goes, is a subscriber's meanwhile.
    if (!thread->excluded && now_ns - thread->attached_ns >= IDLE_NS) {
        weigh_all(thread);
    }
    _PySampling_LEAVE_HOOK(thread);
}

/* Books all that is carried, and, for a thread that stands still, the
   interval it is in.  Called with the thread's GIL. */
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
    struct _sampling_time run = take_time(&a->carried.run);
    run.wall_ns += take(&a->carried.sliver_ns) + take(&a->sliver_ns);
    uint64_t blocked_ns = take(&a->carried.blocked_ns);
    uint64_t wait_ns = take(&a->carried.wait_ns);
    struct _sampling_time off = {.cpu_ns = take(&a->carried.off_cpu_ns)};
    share_out(thread, _PySampling_OFF_GIL, &off);
    if (blocked_ns == 0) {
        // No short interval is left that could have burnt it.
        run.cpu_ns += take(&off.cpu_ns);
    }
    share_out(thread, _PySampling_ON_GIL, &run);
    if (tables != NULL) {
        struct place root = {
            .thread = thread,
            .stack = thread->root_node,
            .labels = _PySampling_LabelsOf(tables, thread->tstate,
                                           thread->tstate->context),
        };
        if (run.wall_ns != 0 || run.cpu_ns != 0) {
            flush_running(&root, run);
        }
        if (blocked_ns != 0 || off.cpu_ns != 0) {
            flush_blocked(&root, off.cpu_ns, blocked_ns);
        }
        if (wait_ns != 0) {
            // Of many waits that no tick hit.
            struct place leaf = below(&root, _PySampling_PSEUDO_GIL_WAIT);
            leaf.holder = _PySampling_HolderNotKnown();
            emit(&leaf, _PySampling_GIL_WAIT, 0, 0, wait_ns);
        }
    }
    thread->residue_cpu_ns = run.cpu_ns + off.cpu_ns;
    thread->residue_wall_ns = run.wall_ns + blocked_ns + wait_ns;
    PyMutex_Unlock(&state->tables_mutex);
    if (excluded) {
        set_excluded(thread, excluded);
    }
    _PySampling_LEAVE_HOOK(thread);
}

/* At the end of the thread or of the session: there is no next run in which an
   overdue tick could be captured. */
void
_PySampling_AccountEnd(_PySampling_Thread *thread, uint64_t now_ns)
{
    _PySampling_AccountFlush(thread, now_ns);
    if (thread->overdue_ns != 0) {
        thread->overdue_ns = 0;
        _PySampling_COUNT(signals_late, 1);
    }
}

#endif  // _PySampling_SUPPORTED
