/* The yardstick of on.py: a thread that interrupts another one at a rate, with
   a handler that does nothing.  It keeps time as the profiler's clock does
   (absolute deadlines, jitter of a quarter period to both sides), so what the
   profiler costs beyond it is the profiler's own work. */

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

#define SECOND_NS 1000000000u
#define MAX_LATE_PERIODS 2

static struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wakeup;
    int stop;
    pid_t target;
    uint64_t period_ns;
    long sent;
} ticker;

static void
do_nothing(int signum, siginfo_t *info, void *context)
{
}

static uint64_t
now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

static int
sleep_until(uint64_t deadline_ns)
{
    struct timespec ts = {
        .tv_sec = (time_t)(deadline_ns / SECOND_NS),
        .tv_nsec = (long)(deadline_ns % SECOND_NS),
    };
    pthread_mutex_lock(&ticker.mutex);
    while (!ticker.stop
           && pthread_cond_timedwait(&ticker.wakeup, &ticker.mutex, &ts)
              != ETIMEDOUT)
    {
    }
    int stop = ticker.stop;
    pthread_mutex_unlock(&ticker.mutex);
    return stop;
}

static void *
run(void *unused)
{
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t random = now_ns() | 1;
    uint64_t deadline_ns = now_ns();
    for (;;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        deadline_ns += ticker.period_ns * 3 / 4
                       + random % (ticker.period_ns / 2 + 1);
        if (sleep_until(deadline_ns)) {
            return NULL;
        }
        if (syscall(SYS_tgkill, getpid(), ticker.target, SIGURG) == 0) {
            ticker.sent++;
        }
        uint64_t late_after = deadline_ns
                              + MAX_LATE_PERIODS * ticker.period_ns;
        if (now_ns() > late_after) {
            deadline_ns = now_ns();
        }
    }
}

/* Interrupts the calling thread from now on.  0, or an errno. */
int
ticker_start(int rate_hz)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = do_nothing;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGURG, &action, NULL) != 0) {
        return errno;
    }
    ticker.target = (pid_t)syscall(SYS_gettid);
    ticker.period_ns = SECOND_NS / (unsigned)rate_hz;
    ticker.stop = 0;
    ticker.sent = 0;
    pthread_mutex_init(&ticker.mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ticker.wakeup, &attr);
    pthread_condattr_destroy(&attr);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&ticker.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

/* Returns how many signals were sent. */
long
ticker_stop(void)
{
    pthread_mutex_lock(&ticker.mutex);
    ticker.stop = 1;
    pthread_cond_signal(&ticker.wakeup);
    pthread_mutex_unlock(&ticker.mutex);
    pthread_join(ticker.thread, NULL);
    pthread_cond_destroy(&ticker.wakeup);
    pthread_mutex_destroy(&ticker.mutex);
    signal(SIGURG, SIG_DFL);
    return ticker.sent;
}
