/* Sampling profiler: WHAT a thread's time is spent on.

   Owns each thread's clocks: every nanosecond of a thread, wall and CPU, is
   handed out once, for exactly one record.  This is arithmetic: it must not
   know stacks, tables or records (sample/record.c), nor how samples share the
   time that a thread holds the GIL (sample/weights.c).

   A thread holds the GIL, or gave it up, or asks for it again.  Time is
   carried apart by what it is of (struct _sampling_carries):

   - Running (`run`): ticks meet it now and then.  What passed since the last
     capture is handed on with the next.
   - Off the GIL, blocked (`blocked_ns`, and `off_cpu_ns` for the CPU time
     burnt meanwhile) or waiting for it (`wait_ns`), the stack stands still, so
     detach and attach see everything.  An interval of at least half a period
     is recorded as it is, to the nanosecond.  Shorter ones are laid end to
     end, and points on that axis, a period apart on average, say which of them
     are recorded: each with the distance to the point before.  An interval
     covers a point in proportion to its length, so that is unbiased.  The cost
     is bounded: a record per period and axis on average, two of long
     intervals, and for a wait one per holder.
   - The profiler's own work (`hook_ns`) when the GIL is given up and taken
     back is time of the call that does so.  It takes longer when a record is
     made, so on the axis of the intervals it would draw points to the short
     ones: it has an axis of its own.  The usual work of each time, some tens
     of nanoseconds, is the same for all: it is part of the interval, and the
     clock is not read for it.

   Reading a thread's CPU clock is a system call.  It is read at ticks and at
   detach if the last reading is old enough, at attach after more than a short
   interval, and when a record is written.  CPU time between two readings
   belongs to running time first, and what does not fit there was burnt without
   the GIL.  A thread that only yields goes on where it was: what it burns as
   it waits for the GIL is running time. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../base/axis.h"
#include "sample.h"

/* At attach the CPU clock is read if the interval was longer than this, at
   detach if the thread was off the GIL for so long since the last reading: at
   0.4 microseconds per reading that costs 1.6 % at the most.  At attach not
   after each short interval: at the end of a system call the kernel lets
   others have the CPU, and a thread that has just taken the GIL would have it
   while they wake up to wait for it. */
#define CPU_READ_INTERVAL_NS 25000

/* At detach, too, if the last reading is older than this part of a period: the
   thread may have had no CPU in its runs since. */
#define CPU_READS_PER_PERIOD 10

/* At a tick, if it is older than so many periods, or than this: samples share
   CPU time with others (sample/weights.c), so it may come in pieces of a few
   periods. */
#define CPU_READ_PERIODS 3
#define MAX_CPU_READ_NS 3000000

/* Samples of a thread that has not run for so long wait no longer for others
   to share its time with. */
#define IDLE_NS 1000000000

/* A thread that gives the GIL up only to let others run asks for it again
   after less than this.  It is not blocked then, it waits. */
#define YIELD_NS 5000

/* What takes longer than this is not the hook alone: the thread waited for a
   CPU. */
#define MAX_HOOK_NS 100000

/* The usual work of a hook is measured once in so many times, for all of them:
   it takes another reading of the clock. */
#define MEASURED_HOOKS 16

/* The counter of what hooks take is behind by so much, at the most. */
#define MAX_UNCOUNTED_NS 1000000


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
        return;         // not read, or earlier than last, or it has ended
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
    _Py_atomic_store_uint64_relaxed(&a->cpu_ns, cpu_ns);  // the clock reads
    a->cpu_read_wall_ns = wall_ns;
    a->off_since_read_ns = 0;
    a->hooks_since_read_ns = 0;
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
        .axes.random = _PySampling_RandomSeed(thread),
    };
    _Py_atomic_store_uint64_relaxed(&thread->attached_ns, wall_ns);
    thread->run_end_ns = 0;
}

int
_PySampling_AccountWantsCpu(const _PySampling_Thread *thread,
                            uint64_t wall_ns)
{
    uint64_t interval_ns = Py_MIN(
        CPU_READ_PERIODS * _PySampling_PeriodNow(), MAX_CPU_READ_NS);
    return wall_ns >= thread->account.cpu_read_wall_ns + interval_ns;
}

uint64_t
_PySampling_AccountUnread(const _PySampling_Thread *thread)
{
    const struct _sampling_account *a = &thread->account;
    uint64_t read_ns = a->cpu_read_wall_ns + a->off_since_read_ns;
    return a->wall_ns > read_ns ? a->wall_ns - read_ns : 0;
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


/* Intervals off the GIL. */

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
    // Giving it up includes waiting until another thread has it, however long
    // the kernel lets that one wait for a CPU.
    if (thread->is_yielding || (*wait_ns != 0 && *blocked_ns < YIELD_NS)) {
        *wait_ns += *blocked_ns;
        *blocked_ns = 0;
    }
}

/* Now and then: counting is atomic.  Work that is not the program's is counted
   apart, or not at all. */
static void
count_hooks(_PySampling_Thread *thread)
{
    uint64_t took_ns = take(&thread->account.uncounted_ns);
    if (!thread->excluded) {
        _PySampling_COUNT(overhead_hooks_ns, took_ns);
    }
}

/* Counts what a hook has done since then, which is its usual work. */
static void
count_usual_work(_PySampling_Thread *thread, uint64_t from_ns)
{
    struct _sampling_account *a = &thread->account;
    if (a->num_hooks % MEASURED_HOOKS == 1) {
        a->uncounted_ns += MEASURED_HOOKS * Py_MIN(
            _PySampling_WallNow() - from_ns, MAX_HOOK_NS / MEASURED_HOOKS);
    }
}

/* What lies before the moment was the profiler's own work.  A thread that only
   yields does not block: there it is running time. */
static void
carry_hook(_PySampling_Thread *thread, uint64_t wall_ns)
{
    struct _sampling_account *a = &thread->account;
    uint64_t took_ns = wall_ns - Py_MIN(a->wall_ns, wall_ns);
    a->uncounted_ns += Py_MIN(
        took_ns - Py_MIN(take(&thread->drained_ns), took_ns), MAX_HOOK_NS);
    if (a->uncounted_ns >= MAX_UNCOUNTED_NS) {
        count_hooks(thread);
    }
    if (thread->is_yielding) {
        carry_run_wall(a, wall_ns);
        return;
    }
    a->hook_ns += took_ns;
    a->off_since_read_ns += took_ns;
    a->hooks_since_read_ns += took_ns;
    advance(a, wall_ns);
}

static void
carry_off_gil(struct _sampling_account *a, uint64_t now_ns,
              uint64_t blocked_ns, uint64_t wait_ns)
{
    a->off_since_read_ns += blocked_ns + wait_ns;
    a->gil_wait_ns += wait_ns;
    advance(a, now_ns);
}

int
_PySampling_AccountShort(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_account *a = &thread->account;
    uint64_t blocked_ns, wait_ns;
    split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
    if (blocked_ns + wait_ns >= CPU_READ_INTERVAL_NS
        || blocked_ns >= a->axes.blocked_to_go_ns
        || wait_ns >= a->axes.wait_to_go_ns)
    {
        return 0;
    }
    carry_off_gil(a, now_ns, blocked_ns, wait_ns);
    _PySampling_Carry(&a->axes.blocked_to_go_ns, &a->carried.blocked_ns,
                      blocked_ns);
    _PySampling_Carry(&a->axes.wait_to_go_ns, &a->carried.wait_ns, wait_ns);
    return 1;
}

void
_PySampling_AccountOffGIL(_PySampling_Thread *thread, uint64_t now_ns,
                          int all, struct _sampling_off_gil *off)
{
    struct _sampling_account *a = &thread->account;
    struct _sampling_carries *c = &a->carried;
    uint64_t blocked_ns, wait_ns;
    split_off_gil(thread, now_ns, &blocked_ns, &wait_ns);
    uint64_t asked_ns = now_ns - wait_ns;
    carry_off_gil(a, now_ns, blocked_ns, wait_ns);

    uint64_t period_ns = _PySampling_PeriodNow();
    int blocked_is_exact = all || _PySampling_IsLong(blocked_ns, period_ns);
    int wait_is_exact = all || _PySampling_IsLong(wait_ns, period_ns);
    *off = (struct _sampling_off_gil){
        .blocked_ns = blocked_is_exact ? blocked_ns
            : _PySampling_Cover(&a->axes.blocked_to_go_ns, &c->blocked_ns,
                                blocked_ns, period_ns, &a->axes.random),
        .blocked_until_ns = asked_ns,
        .is_block_exact = blocked_is_exact,
        .wait_from_ns = asked_ns,
        .wait_until_ns = now_ns,
        // A thread that only yields is between two instructions.
        .is_in_c = blocked_ns != 0 && !thread->is_yielding,
    };
    if (wait_is_exact) {
        off->wait_ns = wait_ns;
    }
    else {
        uint64_t to_go_ns = a->axes.wait_to_go_ns;
        off->wait_ns = _PySampling_Cover(
            &a->axes.wait_to_go_ns, &c->wait_ns, wait_ns, period_ns,
            &a->axes.random);
        off->wait_from_ns += Py_MIN(to_go_ns, wait_ns);
        off->wait_until_ns = off->wait_from_ns;
    }
    int is_recorded = off->blocked_ns != 0 || off->wait_ns != 0;
    uint64_t cpu_before_ns = c->off_cpu_ns;
    uint64_t hooks_ns = a->hooks_since_read_ns;
    if (is_recorded || blocked_ns + wait_ns >= CPU_READ_INTERVAL_NS) {
        carry_cpu(a, now_ns, _PySampling_CpuNow(thread));
    }
    uint64_t own_cpu_ns = c->off_cpu_ns - cpu_before_ns;
    own_cpu_ns -= Py_MIN(own_cpu_ns, hooks_ns);
    if (blocked_ns == 0) {
        // It has let others run, and goes on where it was: to wait costs CPU
        // time, too, and nothing else has burnt it.
        c->run.cpu_ns += own_cpu_ns;
        c->off_cpu_ns -= own_cpu_ns;
    }
    if (off->blocked_ns != 0 && blocked_is_exact) {
        off->cpu_ns = own_cpu_ns;
        c->off_cpu_ns -= own_cpu_ns;
    }
    else if (off->blocked_ns != 0) {
        // As dense as in the interval itself.
        off->cpu_span_ns = (uint64_t)(
            (double)Py_MIN(own_cpu_ns, blocked_ns) / (double)blocked_ns
            * (double)off->blocked_ns);
        if (off->cpu_span_ns != 0) {
            off->shared_cpu_ns = take(&c->off_cpu_ns);
        }
    }
}

int
_PySampling_AccountHooks(_PySampling_Thread *thread, uint64_t now_ns,
                         struct _sampling_off_gil *off)
{
    struct _sampling_account *a = &thread->account;
    carry_hook(thread, now_ns);
    uint64_t hook_ns = take(&a->hook_ns);
    if (hook_ns == 0) {
        return 0;
    }
    uint64_t period_ns = _PySampling_PeriodNow();
    uint64_t recorded_ns = hook_ns;
    if (!_PySampling_IsLong(hook_ns, period_ns)) {
        recorded_ns = _PySampling_Cover(
            &a->axes.hook_to_go_ns, &a->carried.hook_ns, hook_ns, period_ns,
            &a->axes.random);
    }
    if (recorded_ns == 0) {
        return 0;
    }
    count_hooks(thread);
    *off = (struct _sampling_off_gil){
        .blocked_ns = recorded_ns,
        .is_in_c = 1,
        .cpu_span_ns = recorded_ns,
        .shared_cpu_ns = take(&a->carried.off_cpu_ns),
    };
    return 1;
}

/* Several thread states on one OS thread. */

/* From now on the OS thread that both records share runs `to`.  What it did
   until `from` gave up its GIL is recorded or carried there; the time since
   then becomes an interval off the GIL of `to`. */
void
_PySampling_AccountHandOver(_PySampling_Thread *from, _PySampling_Thread *to)
{
    struct _sampling_account *f = &from->account;
    struct _sampling_account *t = &to->account;
    // Else all of it was recorded just now, maybe for the last time.
    if (f->cpu_read_wall_ns < f->wall_ns) {
        uint64_t now_ns = _PySampling_WallNow();
        f->off_since_read_ns += now_ns - f->wall_ns;
        carry_cpu(f, now_ns, _PySampling_CpuNow(from));
    }
    advance(t, f->wall_ns);
    t->detached_ns = f->wall_ns;
    t->cpu_ns = f->cpu_ns;
    to->manual_cpu_ns = from->manual_cpu_ns;
    t->cpu_read_wall_ns = f->cpu_read_wall_ns;
    t->off_since_read_ns = 0;
}


/* Work that is not the program's. */

/* The program's work and a subscriber's carry time apart. */
void
_PySampling_AccountSetAside(_PySampling_Thread *thread,
                            _PySampling_Exclusion excluded)
{
    struct _sampling_carries *c = &thread->account.carried;
    count_hooks(thread);
    if (!thread->excluded) {
        thread->set_aside = *c;
    }
    else {
        c->hook_ns += take(&thread->account.hook_ns);
    }
    if (thread->excluded == _PySampling_EXCLUDED) {
        _PySampling_COUNT(subscribers_wall_ns,
                          c->run.wall_ns + c->blocked_ns + c->wait_ns
                          + c->hook_ns);
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
        _PySampling_AccountSetAside(thread, excluded);
    }
}


/* Detach and attach. */

/* The profiler's own work is no part of a run: to clear the timer takes longer
   than many runs on a virtual machine, and as no tick is served meanwhile,
   what it takes would be shared by all that ran: a run ends before that. */
uint64_t
_PySampling_AccountRunEnd(_PySampling_Thread *thread)
{
    // Nothing is taken back from a record.
    return Py_MAX(thread->run_end_ns, thread->account.wall_ns);
}

void
_PySampling_AccountDetach(_PySampling_Thread *thread, int took_time)
{
    struct _sampling_account *a = &thread->account;
    uint64_t now_ns = _PySampling_AccountRunEnd(thread);
    carry_run_wall(a, now_ns);
    // The interval that begins may be short and recorded: it needs two
    // readings of its own.
    if (a->off_since_read_ns >= CPU_READ_INTERVAL_NS
        || a->axes.blocked_to_go_ns < CPU_READ_INTERVAL_NS
        || now_ns - a->cpu_read_wall_ns
           >= _PySampling_PeriodNow() / CPU_READS_PER_PERIOD)
    {
        carry_cpu(a, now_ns, _PySampling_CpuAt(thread, now_ns));
        took_time = 1;
    }
    a->num_hooks++;
    if (took_time) {
        carry_hook(thread, Py_MAX(now_ns, _PySampling_WallNow()));
    }
    else {
        // The interval begins with it.
        count_usual_work(thread, now_ns);
    }
    a->detached_ns = a->wall_ns;
}

void
_PySampling_AccountAttach(_PySampling_Thread *thread)
{
    thread->account.detached_ns = 0;
    count_usual_work(thread, thread->attached_ns);
}


int
_PySampling_ThreadTimes(PyThreadState *tstate, uint64_t *cpu_ns,
                        uint64_t *gil_wait_ns)
{
    _PySampling_Thread *thread = _PySampling_RECORD_OF(tstate);
    if (thread == NULL || !_PySampling_IN_EPOCH(thread)) {
        return 0;
    }
    *cpu_ns = _PySampling_CpuNow(thread);
    *gil_wait_ns = thread->account.gil_wait_ns;
    return 1;
}


/* What no tick will see any more. */

int
_PySampling_AccountIsLong(const _PySampling_Thread *thread, uint64_t now_ns)
{
    const struct _sampling_account *a = &thread->account;
    return a->detached_ns != 0
        && _PySampling_IsLong(now_ns - a->detached_ns,
                              _PySampling_PeriodNow());
}

int
_PySampling_AccountIsIdle(const _PySampling_Thread *thread, uint64_t now_ns)
{
    return now_ns - thread->attached_ns >= IDLE_NS;
}

void
_PySampling_AccountAdvance(_PySampling_Thread *thread, uint64_t now_ns)
{
    carry_run_wall(&thread->account, now_ns);
    carry_cpu(&thread->account, now_ns, _PySampling_CpuNow(thread));
}

_PySampling_Leftover
_PySampling_AccountTakeAll(_PySampling_Thread *thread)
{
    struct _sampling_account *a = &thread->account;
    struct _sampling_carries *c = &a->carried;
    count_hooks(thread);
    struct _sampling_leftover rest = {
        .run = take_time(&c->run),
        .off_cpu_ns = take(&c->off_cpu_ns),
        .blocked_ns = take(&c->blocked_ns) + take(&c->hook_ns)
            + take(&a->hook_ns),
        .wait_ns = take(&c->wait_ns),
    };
    return rest;
}
