/* A pool of threads that are not Python's, for test_churn.py: each attaches
   through PyGILState for every single job and detaches again. */

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

/* run(threads, jobs, job): all of them do their part of the jobs. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    int count, jobs;
    PyObject *job;
    if (!PyArg_ParseTuple(args, "iiO:run", &count, &jobs, &job)) {
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
    Py_BEGIN_ALLOW_THREADS
    while (started < count && err == 0) {
        err = pthread_create(&threads[started], NULL, work, &share);
        started += err == 0;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    Py_END_ALLOW_THREADS
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
