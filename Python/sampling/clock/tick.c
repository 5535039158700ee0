/* Sampling profiler: a tick for a thread.

   Owns which threads get ticks, and what the sampler thread does to each.  Must
   not know when one is due (clock/clock.c) or what a capture is.

   A tick finds a thread in one of these situations (clock/run.c has the states
   and flags of its word).  What it stands for has one place each:

   the thread                   gets         what the tick stands for goes to
   RUNS                         a signal     the handler's capture
   - its run ends before the    nothing      an overdue tick, early in its next
     signal is sent                          run
   - its run ends before the    a signal     the same: the end of the run waits
     signal arrives                          for the signal
   - the last tick is not       nothing      the next capture (ticks_busy)
     answered yet
   - it sleeps in a system      a note       a record asleep_with_gil, at its
     call, with the GIL                      next safepoint or detach
   - it takes no signal         a note       the same, as it is then
                                             (captures_biased)
   DETACHED, WAITS              a note       records when it attaches, for all
                                             deadlines until then; it gets no
                                             ticks meanwhile
   INACTIVE                     nothing      the next capture or record: the
                                             profiler is at work

   All that is done to a thread is to set a flag in its word, if that is still
   the word that was read.  A tick of a run has two steps, since the kernel is
   asked in between: ASKED, then SENDING or NOTED.

   With runtime->sampling.mutex held. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../native/native.h"         // _PySampling_ReadSleeper()
#include "inside.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATE (&_PyRuntime.sampling)

/* After a sleep with the GIL a thread gets notes for that many ticks that find
   it awake: between probe and signal it may go to sleep again. */
#define SLEEPY_TICKS 4

/* Threads off their GIL that the kernel is asked about at a tick: it takes some
   microseconds of /proc for each. */
#define MAX_PROBES 8


/* Who gets ticks. */

static void
add_ticked(_PySampling_Thread *thread)
{
    if (!thread->is_ticked) {
        thread->is_ticked = 1;
        thread->prev_ticked = NULL;
        thread->next_ticked = STATE->ticked;
        if (STATE->ticked != NULL) {
            STATE->ticked->prev_ticked = thread;
        }
        STATE->ticked = thread;
    }
}

/* A thread adds itself once each time that it was noted: who notes one has
   taken it back before. */
static void
take_returned(void)
{
    _PySampling_Thread *thread = _Py_atomic_exchange_ptr(&STATE->returned, NULL);
    while (thread != NULL) {
        _PySampling_Thread *next = thread->next_returned;
        add_ticked(thread);
        thread = next;
    }
}

void
_PySampling_TicksBegin(_PySampling_Thread *thread)
{
    take_returned();
    add_ticked(thread);
    _PySampling_ClockWake();
}

static void
remove_ticked(_PySampling_Thread *thread)
{
    if (thread->is_ticked) {
        thread->is_ticked = 0;
        if (thread->prev_ticked != NULL) {
            thread->prev_ticked->next_ticked = thread->next_ticked;
        }
        else {
            STATE->ticked = thread->next_ticked;
        }
        if (thread->next_ticked != NULL) {
            thread->next_ticked->prev_ticked = thread->prev_ticked;
        }
    }
}

/* For good. */
void
_PySampling_TicksEnd(_PySampling_Thread *thread)
{
    take_returned();
    remove_ticked(thread);
}


/* A tick. */

/* Returns 0 if the state has changed.  A safepoint may have cleared PENDING, or
   set it. */
static int
set_word(_PySampling_Thread *thread, uint64_t *word, int off, int on)
{
    const uint64_t others = _PySampling_PENDING;
    for (;;) {
        uint64_t known = *word | others;
        uint64_t wanted = (*word & ~(uint64_t)off) | (uint64_t)on;
        if (_Py_atomic_compare_exchange_uint64(&thread->word, word, wanted)) {
            *word = wanted;
            return 1;
        }
        if ((*word | others) != known) {
            return 0;
        }
    }
}

static void
call_to_safepoint(_PySampling_Thread *thread)
{
    // The thread state lives: ThreadEnd needs the lock the caller holds.
    _Py_set_eval_breaker_bit(thread->tstate, _PY_SAMPLING_BIT);
}

/* Names what the thread sleeps in, if it sleeps on while its stack is read. */
static void
see_sleeper(_PySampling_Thread *thread, uint64_t cpu_ns)
{
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    // Pairs with the acquire fence in _PySampling_SleeperNode().
    _Py_atomic_fence_release();
    struct _PyInterpreterFrame *frame =
        _PySampling_ReadSleeper(thread->tstate, &thread->sleeper);
    if (frame != NULL && _PySampling_CpuNow(thread) == cpu_ns) {
        _Py_atomic_store_ptr_release(&thread->sleeper.frame, frame);
    }
}

/* Returns 0 if the word has changed. */
static int
note(struct _sampling_proc *proc, _PySampling_Thread *thread, uint64_t *word,
     int off)
{
    if (!set_word(thread, word, off, _PySampling_NOTED)) {
        return 0;
    }
    uint64_t cpu_ns;
    if (_PySampling_STATE_OF(*word) == _PySampling_DETACHED) {
        // Who goes on before that is known was on a CPU.
        int is_asleep =
            _PySampling_Probe(proc, thread, &cpu_ns) >= _PySampling_ASLEEP;
        _Py_atomic_store_int(&thread->tick.is_asleep, is_asleep);
        _Py_atomic_store_uint64_relaxed(
            &thread->tick.sleeps,
            is_asleep ? 0 : _PySampling_ProbeSleeps(proc, thread));
        _Py_atomic_store_uint64_relaxed(&thread->tick.others_cpu_ns,
                                        _PySampling_OthersCpu());
    }
    else {
        cpu_ns = _PySampling_CpuNow(thread);
    }
    _Py_atomic_store_uint64(&thread->tick.cpu_ns, cpu_ns);
    if (_PySampling_STATE_OF(*word) == _PySampling_RUNS) {
        if (_Py_atomic_load_int_relaxed(&thread->tick.is_asleep)) {
            see_sleeper(thread, cpu_ns);
        }
        call_to_safepoint(thread);
        _PySampling_COUNT(ticks_noted, 1);
    }
    else {
        // It may be among those that are to get ticks again.
        remove_ticked(thread);
    }
    return 1;
}

static void
send_signal(struct _sampling_ticker *ticker, _PySampling_Thread *thread,
            uint64_t word)
{
    thread->tick.signal = STATE->signal;
    if (!set_word(thread, &word, _PySampling_ASKED, _PySampling_SENDING)) {
        return;         // its run ended: the tick is its own
    }
    if (syscall(SYS_tgkill, STATE->owner_pid, thread->native_id,
                thread->tick.signal) == 0)
    {
        _PySampling_COUNT(signals_sent, 1);
        return;
    }
    // A sandbox may forbid it, once and for all; of real-time signals no more
    // can be pending than RLIMIT_SIGPENDING says.
    ticker->is_refused = errno != EAGAIN && errno != ESRCH;
    _PySampling_COUNT(ticks_refused, 1);
    _PySampling_COUNT(ticks_no_signal, 1);
    if (!note(NULL, thread, &word, _PySampling_SENDING)) {
        _Py_atomic_store_int(&thread->signal_came, 1);     // it waits for that
    }
}

/* Does a thread sleep with the GIL, for all that is known, or has it done so
   lately? */
static int
is_sleepy(_PySampling_Thread *thread, _PySampling_Sleep sleep, uint64_t cpu_ns)
{
    if (sleep >= _PySampling_ASLEEP) {
        thread->sleepy_ticks = SLEEPY_TICKS;
        thread->is_probed = sleep == _PySampling_ASLEEP;
        return 1;
    }
    if (thread->sleepy_ticks == 0) {
        return 0;
    }
    // One that has had no CPU since is in that call still, maybe.
    thread->sleepy_ticks -= cpu_ns != thread->sleepy_cpu_ns;
    thread->sleepy_cpu_ns = cpu_ns;
    return 1;
}

static _PySampling_Sleep
probe(struct _sampling_ticker *ticker, _PySampling_Thread *thread,
      uint64_t *cpu_ns)
{
    if (STATE->options.manual) {
        *cpu_ns = _PySampling_CpuNow(thread);
        return _PySampling_ON_CPU;
    }
    return _PySampling_Probe(&ticker->proc, thread, cpu_ns);
}

static void
tick_run(struct _sampling_ticker *ticker, _PySampling_Thread *thread,
         uint64_t word)
{
    uint64_t cpu_ns;
    _PySampling_Sleep sleep = probe(ticker, thread, &cpu_ns);
    thread->tick.is_asleep = sleep == _PySampling_ASLEEP;
    if (is_sleepy(thread, sleep, cpu_ns)) {
        thread->tick.is_sleepy = thread->is_probed;
        _PySampling_COUNT(ticks_no_signal, !thread->is_probed);
        _PySampling_COUNT(ticks_unprobed, !thread->is_probed);
        (void)note(NULL, thread, &word, _PySampling_ASKED);
    }
    else {
        thread->tick.is_on_cpu = sleep == _PySampling_ON_CPU;
        _Py_atomic_store_uint64(&thread->tick.cpu_ns, cpu_ns);
        send_signal(ticker, thread, word);
    }
}

/* Of a run that may get no signal. */
static int
is_blind(const struct _sampling_ticker *ticker,
         const _PySampling_Thread *thread)
{
    int mask = _Py_atomic_load_int(&thread->mask);
    int is_refused = ticker->signal.is_gone || ticker->is_refused;
    if (mask == _PySampling_TAKES_SIGNAL && !is_refused) {
        return 0;
    }
    _PySampling_COUNT(ticks_no_signal, 1);
    _PySampling_COUNT(ticks_blocked, mask == _PySampling_BLOCKS_SIGNAL);
    _PySampling_COUNT(ticks_refused, is_refused);
    return 1;
}

/* It was noted when it slept with the GIL or took no signal, and has not come
   to a safepoint since. */
static void
tick_noted(struct _sampling_ticker *ticker, _PySampling_Thread *thread,
           uint64_t word)
{
    if (!thread->tick.is_sleepy) {
        return;
    }
    uint64_t cpu_ns;
    _PySampling_Sleep sleep = probe(ticker, thread, &cpu_ns);
    thread->tick.is_on_cpu = 0;     // since when is not known
    if (!is_sleepy(thread, sleep, cpu_ns) && !is_blind(ticker, thread)) {
        send_signal(ticker, thread, word);
    }
}

static void
begin_tick(_PySampling_Thread *thread, uint64_t now_ns)
{
    _Py_atomic_store_uint64_relaxed(&thread->tick.number, STATE->tick_number);
    _Py_atomic_store_uint64_relaxed(&thread->tick.at_ns, now_ns);
    _Py_atomic_store_int_relaxed(&thread->tick.is_asleep, 0);
    thread->tick.is_sleepy = 0;
    _Py_atomic_store_uint64_relaxed(&thread->tick.cpu_ns, 0);
    _Py_atomic_store_uint64_relaxed(&thread->tick.others_cpu_ns, 0);
    _Py_atomic_store_uint64_relaxed(&thread->tick.sleeps, 0);
    thread->waiting_since_sleeps = 0;
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    _Py_atomic_store_uint64_relaxed(&thread->waiting_since_ns, 0);
    _Py_atomic_store_uint64_relaxed(&thread->waiting_since_tick, 0);
}

/* Of threads off their GIL that are noted at one tick the kernel is asked about
   some.  Others count as asleep if their CPU clocks stand still. */
static struct _sampling_proc *
files_for(struct _sampling_ticker *ticker, int state)
{
    return state == _PySampling_DETACHED
        && ticker->num_probes++ < MAX_PROBES ? &ticker->proc : NULL;
}

static void
tick_thread(struct _sampling_ticker *ticker, _PySampling_Thread *thread)
{
    uint64_t word = _PySampling_WORD(thread);
    for (;;) {
        int state = _PySampling_STATE_OF(word);
        if (state == _PySampling_INACTIVE) {
            return;
        }
        if ((word & _PySampling_NOTED) && state != _PySampling_RUNS) {
            remove_ticked(thread);
            return;
        }
        uint64_t now_ns = _PySampling_WallNow();
        if (word & (_PySampling_ASKED | _PySampling_SENDING)) {
            uint64_t at_ns =
                _Py_atomic_load_uint64_relaxed(&thread->tick.at_ns);
            if (now_ns - at_ns >= _PySampling_ANSWER_NS) {
                call_to_safepoint(thread);
            }
            _PySampling_COUNT(ticks_busy, 1);
            return;
        }
        if (word & _PySampling_NOTED) {
            tick_noted(ticker, thread, word);
            return;
        }
        begin_tick(thread, now_ns);
        if (state != _PySampling_RUNS || is_blind(ticker, thread)) {
            if (note(files_for(ticker, state), thread, &word, 0)) {
                return;
            }
        }
        else if (set_word(thread, &word, 0, _PySampling_ASKED)) {
            tick_run(ticker, thread, word);
            return;
        }
        // Its state has changed just now: what counts is the new one.
    }
}

int
_PySampling_TickAll(struct _sampling_ticker *ticker)
{
    _Py_atomic_store_uint64_relaxed(&STATE->tick_number,
                                    STATE->tick_number + 1);
    take_returned();
    ticker->num_probes = 0;
    int num_ticked = 0;
    for (_PySampling_Thread *next, *thread = STATE->ticked;
         thread != NULL; thread = next)
    {
        next = thread->next_ticked;
        if (!_PySampling_IN_EPOCH(thread) || thread->inactive_on_os_thread) {
            remove_ticked(thread);
            continue;
        }
        tick_thread(ticker, thread);
        num_ticked++;
    }
    return num_ticked;
}

void
_PySampling_TickStill(_PySampling_Thread *thread, uint64_t now_ns)
{
    take_returned();
    uint64_t word = _PySampling_WORD(thread);
    while (_PySampling_STATE_OF(word) >= _PySampling_DETACHED
           && !(word & _PySampling_NOTED))
    {
        begin_tick(thread, now_ns);
        (void)note(NULL, thread, &word, 0);
    }
}
