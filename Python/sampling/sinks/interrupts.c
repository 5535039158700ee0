/* Sampling profiler: signal handlers of the program beside subscribers.

   Owns which exceptions of handlers interrupt a subscriber's callback, and when
   handlers have to wait.  Must not know what subscribers are given. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "sinks.h"

// A callback may live through any number of them; those it is ended by are
// among the last.
#define MAX_INTERRUPTS 16

// In sampling.signals of a thread.
enum {
    TAKEN,                      // handlers run as they do without a profiler
    PUT_OFF,
    WAITING,                    // put off, and some signal has come
};

/* It may be a subscriber that was interrupted by it.  Owned, so that no other
   exception gets its address before the subscriber has returned. */
void
_PySampling_AfterHandlerRaised(PyThreadState *tstate)
{
    PyObject *interrupts = ((_PyThreadStateImpl *)tstate)->sampling.interrupts;
    if (interrupts == NULL) {
        return;
    }
    PyObject *exc = PyErr_GetRaisedException();
    if (PyList_Append(interrupts, exc) < 0
        || (PyList_GET_SIZE(interrupts) > MAX_INTERRUPTS
            && PyList_SetSlice(interrupts, 0, 1, NULL) < 0))
    {
        PyErr_Clear();      // no memory: it is taken for the subscriber's own
    }
    PyErr_SetRaisedException(exc);
}

int
_PySampling_PutsOffSignals(PyThreadState *tstate)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    if (impl->sampling.signals == TAKEN) {
        return 0;
    }
    impl->sampling.signals = WAITING;
    return 1;
}

int
_PySampling_PutOffSignals(PyThreadState *tstate, int put_off)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;
    int before = impl->sampling.signals;
    if (!put_off) {
        impl->sampling.signals = TAKEN;
        if (before == WAITING) {
            _Py_set_eval_breaker_bit(tstate, _PY_SIGNALS_PENDING_BIT);
        }
    }
    else if (before == TAKEN) {
        impl->sampling.signals = PUT_OFF;
    }
    return before != TAKEN;
}
