/* A thread state that one thread makes and others run in. */

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
    PyEval_SaveThread();
    return NULL;
}

/* run(job, times): each in a new thread that is not Python's, one after the
   other, all in one state of this one's. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    Share share = {0};
    int times;
    if (!PyArg_ParseTuple(args, "Oi:run", &share.job, &times)) {
        return NULL;
    }
    share.tstate = PyThreadState_New(PyInterpreterState_Get());
    if (share.tstate == NULL) {
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    for (int i = 0; i < times && !share.failed; i++) {
        pthread_t thread;
        share.failed = pthread_create(&thread, NULL, work, &share) != 0;
        if (!share.failed) {
            pthread_join(thread, NULL);
        }
    }
    Py_END_ALLOW_THREADS
    PyThreadState_Clear(share.tstate);
    PyThreadState_Delete(share.tstate);
    if (share.failed) {
        PyErr_SetString(PyExc_RuntimeError, "the job failed");
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
    .m_name = "moved_state",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_moved_state(void)
{
    return PyModule_Create(&module);
}
