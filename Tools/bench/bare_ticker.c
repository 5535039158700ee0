/* The cheapest ways to interrupt a thread at a rate, for on.py and
   services_cost.py: a thread that sleeps and sends, with a slice so short that
   it gets the CPU when it wakes; a timer of the kernel's that is aimed at the
   thread; and two of these, of which one is set while the other is due before
   it.  Two more that not everybody may use: a sender with real-time priority,
   and perf's clock of the thread's own CPU time.  The handler counts, and sets
   the timer of a pair; it does nothing else. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#  define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND_NS 1000000000L
#define SLICE_NS 100000

enum { BY_THREAD = 1, BY_TIMER, BY_PAIR, BY_REAL_TIME_THREAD, BY_TASK_CLOCK };

/* What sched_setattr() takes; older C libraries do not declare it. */
struct slice {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

static struct {
    int how;
    volatile int stop;
    pthread_t thread;
    pid_t target;
    timer_t timers[2];
    int num_timers;
    int task_clock;             /* a file descriptor */
    long period_ns;
    struct timespec last;       /* of the moments that the pair is set for */
} bare;

static volatile long handled;

static struct timespec
period_after(struct timespec moment)
{
    moment.tv_nsec += bare.period_ns;
    if (moment.tv_nsec >= SECOND_NS) {
        moment.tv_nsec -= SECOND_NS;
        moment.tv_sec++;
    }
    return moment;
}

/* After the other timer's. */
static int
set_next(int i)
{
    bare.last = period_after(bare.last);
    struct itimerspec spec = {.it_value = bare.last};
    return timer_settime(bare.timers[i], TIMER_ABSTIME, &spec, NULL);
}

static void
count(int signum)
{
    if (bare.how == BY_PAIR) {
        (void)set_next(handled % 2);
    }
    handled++;
}

static void
be_prompt(void)
{
    prctl(PR_SET_TIMERSLACK, 1);
    if (bare.how == BY_THREAD) {
        struct slice slice = {.size = sizeof(slice), .runtime = SLICE_NS};
        /* Older kernels know no slices and ignore it. */
        (void)syscall(SYS_sched_setattr, 0, &slice, 0);
    }
}

static void *
run(void *unused)
{
    be_prompt();
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    while (!bare.stop) {
        deadline = period_after(deadline);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
        (void)syscall(SYS_tgkill, getpid(), bare.target, SIGURG);
    }
    return NULL;
}

static int
start_thread(void)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (bare.how == BY_REAL_TIME_THREAD) {
        struct sched_param lowest = {
            .sched_priority = sched_get_priority_min(SCHED_FIFO)};
        pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
        pthread_attr_setschedparam(&attr, &lowest);
    }
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&bare.thread, &attr, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return err;
}

static int
is_thread(void)
{
    return bare.how == BY_THREAD || bare.how == BY_REAL_TIME_THREAD;
}

static int
create_timers(int count)
{
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGURG;
    event.sigev_notify_thread_id = bare.target;
    bare.num_timers = 0;
    while (bare.num_timers < count) {
        if (timer_create(CLOCK_MONOTONIC, &event,
                         &bare.timers[bare.num_timers]) != 0) {
            return errno;
        }
        bare.num_timers++;
    }
    return 0;
}

static void
delete_timers(void)
{
    while (bare.num_timers > 0) {
        timer_delete(bare.timers[--bare.num_timers]);
    }
}

static int
set_timers(void)
{
    if (bare.how == BY_PAIR) {
        clock_gettime(CLOCK_MONOTONIC, &bare.last);
        return set_next(0) == 0 && set_next(1) == 0 ? 0 : errno;
    }
    struct timespec period = {.tv_nsec = bare.period_ns};
    struct itimerspec spec = {.it_interval = period, .it_value = period};
    return timer_settime(bare.timers[0], 0, &spec, NULL) == 0 ? 0 : errno;
}

static int
start_timers(void)
{
    int err = create_timers(bare.how == BY_PAIR ? 2 : 1);
    if (err == 0) {
        err = set_timers();
    }
    if (err != 0) {
        delete_timers();
    }
    return err;
}

/* Signals that come while the kernel works for the thread, too: without these
   it would not be the same clock, and any user may have it. */
static int
start_task_clock(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_period = (uint64_t)bare.period_ns;
    attr.wakeup_events = 1;
    attr.disabled = 1;
    bare.task_clock = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
                                   PERF_FLAG_FD_CLOEXEC);
    if (bare.task_clock < 0) {
        return errno;
    }
    struct f_owner_ex owner = {F_OWNER_TID, bare.target};
    if (fcntl(bare.task_clock, F_SETFL, O_ASYNC) == 0
        && fcntl(bare.task_clock, F_SETSIG, SIGURG) == 0
        && fcntl(bare.task_clock, F_SETOWN_EX, &owner) == 0
        && ioctl(bare.task_clock, PERF_EVENT_IOC_ENABLE, 0) == 0)
    {
        return 0;
    }
    int err = errno;
    close(bare.task_clock);
    return err;
}

/* Interrupts the calling thread from now on, at more than 1 Hz.  0, or an
   errno. */
int
bare_start(int how, int rate_hz)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = count;
    action.sa_flags = SA_RESTART;
    if (sigaction(SIGURG, &action, NULL) != 0) {
        return errno;
    }
    bare.how = how;
    bare.stop = 0;
    bare.target = (pid_t)syscall(SYS_gettid);
    bare.period_ns = SECOND_NS / rate_hz;
    handled = 0;
    return is_thread() ? start_thread()
        : how == BY_TASK_CLOCK ? start_task_clock() : start_timers();
}

/* Returns how many signals were handled. */
long
bare_stop(void)
{
    if (is_thread()) {
        bare.stop = 1;
        pthread_join(bare.thread, NULL);
    }
    else if (bare.how == BY_TASK_CLOCK) {
        close(bare.task_clock);
    }
    else {
        delete_timers();
    }
    signal(SIGURG, SIG_IGN);
    return handled;
}
