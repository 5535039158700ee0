/* An embedding program for test_embedding.py: initialises Python, runs a text,
   and finalises it, several times in one process.

   usage: embedding ROUNDS C_THREADS OPTION TEXT PATH...

   OPTION goes behind -X, "" for none.  Each of the threads in C attaches once,
   and then computes and sleeps by turns.  None of them is told to end: at
   finalization they are where they are, as daemon threads may be.  They end
   when they ask for the GIL; before that Python cannot be initialised again,
   so the program waits for it between two rounds. */

#include <Python.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int attached;

static void *
compute(void *arg)
{
    useconds_t pause_us = 100 * (useconds_t)(1 + (long)arg);
    PyGILState_Ensure();
    atomic_fetch_add(&attached, 1);
    for (;;) {
        PyRun_SimpleString("sorted(range(300), key=str)");
        Py_BEGIN_ALLOW_THREADS
        usleep(pause_us);
        Py_END_ALLOW_THREADS
    }
    return NULL;
}

static void
start_threads(int count)
{
    atomic_store(&attached, 0);
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, compute, (void *)i) != 0) {
            perror("pthread_create");
            exit(3);
        }
        pthread_detach(thread);
    }
    while (atomic_load(&attached) < count) {
        Py_BEGIN_ALLOW_THREADS
        usleep(100);
        Py_END_ALLOW_THREADS
    }
}

static void
add(PyWideStringList *list, const char *text)
{
    wchar_t *wide = Py_DecodeLocale(text, NULL);
    PyStatus status = PyWideStringList_Append(list, wide);
    if (PyStatus_Exception(status)) {
        Py_ExitStatusException(status);
    }
    PyMem_RawFree(wide);
}

static void
initialize(const char *option, char **paths)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.pathconfig_warnings = 0;         // it is no Python installation
    config.module_search_paths_set = 1;
    for (; *paths != NULL; paths++) {
        add(&config.module_search_paths, *paths);
    }
    if (*option != '\0') {
        add(&config.xoptions, option);
    }
    PyStatus status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        Py_ExitStatusException(status);
    }
}

static int
count_threads(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL) {
        perror("/proc/self/task");
        exit(3);
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL; ) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

static void
wait_for_threads(int left)
{
    for (int i = 0; count_threads() > left; i++) {
        if (i == 60 * 1000) {
            fprintf(stderr, "embedding: a thread has not ended\n");
            exit(4);
        }
        usleep(1000);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "embedding: too few arguments\n");
        return 2;
    }
    int rounds = atoi(argv[1]);
    int threads = count_threads();
    for (int i = 0; i < rounds; i++) {
        initialize(argv[3], argv + 5);
        start_threads(atoi(argv[2]));
        if (PyRun_SimpleString(argv[4]) != 0 || Py_FinalizeEx() != 0) {
            fprintf(stderr, "embedding: failed in round %d\n", i);
            return 1;
        }
        if (i + 1 < rounds) {
            wait_for_threads(threads);
        }
    }
    printf("%d rounds\n", rounds);
    return 0;
}
