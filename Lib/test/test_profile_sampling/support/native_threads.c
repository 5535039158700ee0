/* A thread that never runs Python: it computes, and waits for the end of the
   process. */

#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default")))
extern int compute_in_a_thread(long cpu_ms);

static long wanted_ms;
static sem_t is_done;

static void *
compute(void *arg)
{
    struct timespec now;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < wanted_ms);
    sem_post(&is_done);
    for (;;) {
        pause();
    }
    return arg;
}

/* Returns 0 when a thread has computed for so long. */
int
compute_in_a_thread(long cpu_ms)
{
    pthread_t thread;
    wanted_ms = cpu_ms;
    sem_init(&is_done, 0, 0);
    if (pthread_create(&thread, NULL, compute, NULL) != 0) {
        return -1;
    }
    return sem_wait(&is_done);
}
