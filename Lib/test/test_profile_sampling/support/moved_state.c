/* A thread state that one thread makes and another runs in. */

#include <Python.h>

#include <pthread.h>

typedef struct {
    PyThreadState *tstate;
    PyObject *job;
    int failed;
} Share;

static void *
work(void *arg)
{
    Share *share = arg;
    PyEval_RestoreThread(share->tstate);
    PyObject *result = PyObject_CallNoArgs(share->job);
    if (result == NULL) {
        PyErr_Clear();
        share->failed = 1;
    }
    Py_XDECREF(result);
    PyThreadState_Clear(share->tstate);
    PyThreadState_DeleteCurrent();
    return NULL;
}

/* run(job): in a thread that is not Python's, in a state of this one's. */
static PyObject *
run(PyObject *module, PyObject *job)
{
    Share share = {PyThreadState_New(PyInterpreterState_Get()), job, 0};
    pthread_t thread;
    if (share.tstate == NULL
        || pthread_create(&thread, NULL, work, &share) != 0)
    {
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS
    if (share.failed) {
        PyErr_SetString(PyExc_RuntimeError, "the job failed");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", run, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "moved_state",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_moved_state(void)
{
    return PyModule_Create(&module);
}
