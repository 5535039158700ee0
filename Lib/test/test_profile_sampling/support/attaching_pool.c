/* A pool of threads that are not Python's, each of which attaches through
   PyGILState for every single job and detaches again. */

#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>

#define MAX_THREADS 16

typedef struct {
    int jobs;
    PyObject *job;
    atomic_int *failures;
} Share;

static void *
work(void *arg)
{
    Share *share = arg;
    for (int i = 0; i < share->jobs; i++) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyObject *result = PyObject_CallNoArgs(share->job);
        if (result == NULL) {
            PyErr_Clear();
            atomic_fetch_add(share->failures, 1);
        }
        Py_XDECREF(result);
        PyGILState_Release(state);
    }
    return NULL;
}

/* run(threads, jobs, job, stack_bytes): all of them do their part of the
   jobs.  A stack of 0 bytes: of the usual size. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    int count, jobs;
    PyObject *job;
    Py_ssize_t stack_bytes = 0;
    if (!PyArg_ParseTuple(args, "iiO|n:run", &count, &jobs, &job,
                          &stack_bytes))
    {
        return NULL;
    }
    if (count < 1 || count > MAX_THREADS) {
        PyErr_SetString(PyExc_ValueError, "threads");
        return NULL;
    }
    atomic_int failures = 0;
    Share share = {jobs / count, job, &failures};
    pthread_t threads[MAX_THREADS];
    int started = 0, err = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes != 0) {
        err = pthread_attr_setstacksize(&attributes, (size_t)stack_bytes);
    }
    Py_BEGIN_ALLOW_THREADS
    while (started < count && err == 0) {
        err = pthread_create(&threads[started], &attributes, work, &share);
        started += err == 0;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    Py_END_ALLOW_THREADS
    pthread_attr_destroy(&attributes);
    if (err != 0 || failures != 0) {
        PyErr_Format(PyExc_RuntimeError, "error %d, %d failures", err,
                     failures);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "attaching_pool",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_attaching_pool(void)
{
    return PyModule_Create(&module);
}
