/* The cheapest ways to interrupt a thread at a rate, for on.py and
   services_cost.py: a thread that sleeps and sends, with a slice so short that
   it gets the CPU when it wakes; and a timer of the kernel's that is aimed at
   the thread.  The handler counts and does nothing else. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#  define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND_NS 1000000000L
#define SLICE_NS 100000

enum { BY_THREAD = 1, BY_TIMER = 2 };

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
    timer_t timer;
    long period_ns;
} bare;

static volatile long handled;

static void
count(int signum)
{
    handled++;
}

static void *
run(void *unused)
{
    prctl(PR_SET_TIMERSLACK, 1);
    struct slice slice = {.size = sizeof(slice), .runtime = SLICE_NS};
    /* Older kernels know no slices and ignore it. */
    (void)syscall(SYS_sched_setattr, 0, &slice, 0);
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    while (!bare.stop) {
        deadline.tv_nsec += bare.period_ns;
        if (deadline.tv_nsec >= SECOND_NS) {
            deadline.tv_nsec -= SECOND_NS;
            deadline.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
        (void)syscall(SYS_tgkill, getpid(), bare.target, SIGURG);
    }
    return NULL;
}

static int
start_thread(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&bare.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

static int
start_timer(void)
{
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGURG;
    event.sigev_notify_thread_id = bare.target;
    if (timer_create(CLOCK_MONOTONIC, &event, &bare.timer) != 0) {
        return errno;
    }
    struct timespec period = {.tv_nsec = bare.period_ns};
    struct itimerspec spec = {.it_interval = period, .it_value = period};
    if (timer_settime(bare.timer, 0, &spec, NULL) != 0) {
        int err = errno;
        timer_delete(bare.timer);
        return err;
    }
    return 0;
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
    return how == BY_THREAD ? start_thread() : start_timer();
}

/* Returns how many signals were handled. */
long
bare_stop(void)
{
    if (bare.how == BY_THREAD) {
        bare.stop = 1;
        pthread_join(bare.thread, NULL);
    }
    else {
        timer_delete(bare.timer);
    }
    signal(SIGURG, SIG_IGN);
    return handled;
}
