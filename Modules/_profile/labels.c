/* The _profile module: label sets, the context variable that holds the current
   one, and requests under way.

   Owns how a set is made from another, and how long a request is in its list.  The core reads sets
   (tables/labels.c); it must not know how they come to be.  Needs no profiler,
   so it is there in every build.

   A label set is immutable.  Sets are remembered by what they hold, so that a
   program which uses the same labels again and again makes no new ones. */

#ifndef Py_BUILD_CORE_BUILTIN
#  define Py_BUILD_CORE_MODULE 1
#endif

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime

#include "_profile.h"

/*[clinic input]
module _profile
[clinic start generated code]*/
/*[clinic end generated code: output=da39a3ee5e6b4b0d input=c968e7bb6e08bc3b]*/

#include "clinic/labels.c.h"

/* How many sets are remembered, however they came about; then it begins anew.
   A server may label each request with a number of its own. */
#define MAX_KNOWN_SETS 4096


/* The type. */

static void
label_set_dealloc(PyObject *op)
{
    _PySampling_LabelSet *self = (_PySampling_LabelSet *)op;
    PyTypeObject *type = Py_TYPE(op);
    Py_XDECREF(self->pairs);
    type->tp_free(op);
    Py_DECREF(type);
}

// No cycle can come about: it holds texts.
static PyType_Slot label_set_slots[] = {
    {Py_tp_dealloc, label_set_dealloc},
    {0, NULL}
};

static PyType_Spec label_set_spec = {
    .name = "_profile.LabelSet",
    .basicsize = sizeof(_PySampling_LabelSet),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION
             | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = label_set_slots,
};

/* Steals `pairs`. */
static PyObject *
new_set(profile_state *state, PyObject *pairs)
{
    if (pairs == NULL) {
        return NULL;
    }
    PyTypeObject *type = state->label_set_type;
    _PySampling_LabelSet *self =
        (_PySampling_LabelSet *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_DECREF(pairs);
        return NULL;
    }
    self->pairs = pairs;
    return (PyObject *)self;
}


/* A set with one change. */

/* `text` is the new value, or None: the set is to be without the key. */
static PyObject *
changed_pairs(PyObject *pairs, PyObject *key, PyObject *text)
{
    Py_ssize_t size = PyTuple_GET_SIZE(pairs);
    Py_ssize_t at = 0;
    while (at < size
           && PyUnicode_Compare(PyTuple_GET_ITEM(pairs, at), key) < 0)
    {
        at += 2;
    }
    int has_key =
        at < size && PyUnicode_Compare(PyTuple_GET_ITEM(pairs, at), key) == 0;
    Py_ssize_t rest = has_key ? at + 2 : at;
    int adds = text != Py_None;
    PyObject *changed = PyTuple_New(at + 2 * adds + size - rest);
    if (changed == NULL) {
        return NULL;
    }
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < at; i++) {
        PyTuple_SET_ITEM(changed, n++, Py_NewRef(PyTuple_GET_ITEM(pairs, i)));
    }
    if (adds) {
        PyTuple_SET_ITEM(changed, n++, Py_NewRef(key));
        PyTuple_SET_ITEM(changed, n++, Py_NewRef(text));
    }
    for (Py_ssize_t i = rest; i < size; i++) {
        PyTuple_SET_ITEM(changed, n++, Py_NewRef(PyTuple_GET_ITEM(pairs, i)));
    }
    return changed;
}

static PyObject *
with_change(profile_state *state, PyObject *op, PyObject *key, PyObject *text)
{
    PyObject *pairs =
        changed_pairs(((_PySampling_LabelSet *)op)->pairs, key, text);
    if (pairs == NULL) {
        return NULL;
    }
    PyObject *changed;
    if (PyDict_GetItemRef(state->known_sets, pairs, &changed) == 0) {
        changed = new_set(state, Py_NewRef(pairs));
        if (changed != NULL) {
            if (PyDict_GET_SIZE(state->known_sets) >= MAX_KNOWN_SETS) {
                PyDict_Clear(state->known_sets);
            }
            if (PyDict_SetItem(state->known_sets, pairs, changed) < 0) {
                Py_CLEAR(changed);
            }
        }
    }
    Py_DECREF(pairs);
    return changed;
}

/* None, or a str of exactly that type. */
static PyObject *
text_of(PyObject *value)
{
    if (value == Py_None || PyUnicode_CheckExact(value)) {
        return Py_NewRef(value);
    }
    // What has no stable value makes no label.
    if (PyObject_Hash(value) == -1) {
        return NULL;
    }
    PyObject *text = PyObject_Str(value);
    if (text != NULL && !PyUnicode_CheckExact(text)) {
        Py_SETREF(text, PyUnicode_FromObject(text));
    }
    return text;
}

/* `text` is new, or NULL: an exception is set. */
static PyObject *
with_text(profile_state *state, PyObject *set, PyObject *key, PyObject *text)
{
    if (text == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    if (PyUnicode_Check(key)) {
        result = with_change(state, set, key, text);
    }
    else {
        PyErr_Format(PyExc_TypeError,
                     "the name of a label must be str, not %T", key);
    }
    Py_DECREF(text);
    return result;
}

static PyObject *
with_changes(profile_state *state, PyObject *set, PyObject *changes)
{
    PyObject *result = Py_NewRef(set);
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (result != NULL && PyDict_Next(changes, &pos, &key, &value)) {
        // str() may do anything, to `changes` too.
        Py_INCREF(key);
        Py_INCREF(value);
        Py_SETREF(result, with_text(state, result, key, text_of(value)));
        Py_DECREF(value);
        Py_DECREF(key);
    }
    return result;
}


/* The current set. */

static PyObject *
current_set(profile_state *state)
{
    PyObject *set;
    if (PyContextVar_Get(state->label_var, state->empty_labels, &set) < 0) {
        return NULL;
    }
    if (!Py_IS_TYPE(set, state->label_set_type)) {
        // Somebody found the variable in a context and set it.
        Py_SETREF(set, Py_NewRef(state->empty_labels));
    }
    return set;
}

/*[clinic input]
_profile.enter_labels

    changes: object(subclass_of='&PyDict_Type')
    /

Change the labels of this context; return what exit_labels() wants.
[clinic start generated code]*/

static PyObject *
_profile_enter_labels_impl(PyObject *module, PyObject *changes)
/*[clinic end generated code: output=c3f52243941c18be input=9ec4595bbf397ad1]*/
{
    profile_state *state = get_profile_state(module);
    PyObject *set = current_set(state);
    if (set == NULL) {
        return NULL;
    }
    Py_SETREF(set, with_changes(state, set, changes));
    if (set == NULL) {
        return NULL;
    }
    _PySampling_DrainBeforeContextChange(_PyThreadState_GET());
    PyObject *token = PyContextVar_Set(state->label_var, set);
    Py_DECREF(set);
    return token;
}

/*[clinic input]
_profile.exit_labels

    token: object
    /

Bring the labels back that enter_labels() changed.
[clinic start generated code]*/

static PyObject *
_profile_exit_labels(PyObject *module, PyObject *token)
/*[clinic end generated code: output=89952680b5f88a78 input=a84b278db1ac1296]*/
{
    profile_state *state = get_profile_state(module);
    _PySampling_DrainBeforeContextChange(_PyThreadState_GET());
    if (PyContextVar_Reset(state->label_var, token) < 0) {
        // A generator that is closed in another context than it ran in: the
        // labels were those of the other one.
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

/*[clinic input]
_profile.labels

Return the labels of this context as a dict.
[clinic start generated code]*/

static PyObject *
_profile_labels_impl(PyObject *module)
/*[clinic end generated code: output=5b8ccdf594d6c9dd input=d79023a359fbc291]*/
{
    PyObject *set = current_set(get_profile_state(module));
    PyObject *labels = set != NULL ? PyDict_New() : NULL;
    if (labels != NULL) {
        PyObject *pairs = ((_PySampling_LabelSet *)set)->pairs;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i += 2) {
            if (PyDict_SetItem(labels, PyTuple_GET_ITEM(pairs, i),
                               PyTuple_GET_ITEM(pairs, i + 1)) < 0)
            {
                Py_CLEAR(labels);
                break;
            }
        }
    }
    Py_XDECREF(set);
    return labels;
}

PyObject *
_PyProfile_PairsWith(profile_state *state, PyObject *changes)
{
    PyObject *set = current_set(state);
    if (set != NULL) {
        Py_SETREF(set, with_changes(state, set, changes));
    }
    if (set == NULL) {
        return NULL;
    }
    PyObject *pairs = Py_NewRef(((_PySampling_LabelSet *)set)->pairs);
    Py_DECREF(set);
    return pairs;
}


/* Requests under way. */

static void
request_dealloc(PyObject *op)
{
    _PySampling_Request *self = (_PySampling_Request *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->at != NULL) {
        *self->at = self->next;
        if (self->next != NULL) {
            self->next->at = self->at;
        }
    }
    Py_XDECREF(self->labels);
    type->tp_free(op);
    Py_DECREF(type);
}

// No cycle can come about: it holds texts.
static PyType_Slot request_slots[] = {
    {Py_tp_dealloc, request_dealloc},
    {0, NULL}
};

static PyType_Spec request_spec = {
    .name = "_profile.Request",
    .basicsize = sizeof(_PySampling_Request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION
             | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = request_slots,
};

/*[clinic input]
_profile.begin_request

    labels: object(subclass_of='&PyDict_Type')
    begin_ns: unsigned_long_long
    task: object
    /

Return what stands for a request under way, as long as it is referred to.
[clinic start generated code]*/

static PyObject *
_profile_begin_request_impl(PyObject *module, PyObject *labels,
                            unsigned long long begin_ns, PyObject *task)
/*[clinic end generated code: output=4f33317a21abb91f input=f8a279e717a48a10]*/
{
    PyTypeObject *type = get_profile_state(module)->request_type;
    _PySampling_Request *self =
        (_PySampling_Request *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    PyThreadState *tstate = _PyThreadState_GET();
    self->labels = Py_NewRef(labels);
    self->begin_ns = begin_ns;
    self->native_id = tstate->native_thread_id;
    self->task = task == Py_None ? 0 : (uintptr_t)task;
    self->num_forks = _PyRuntime.sampling.num_forks;
    struct _sampling_interpreter_state *s = &tstate->interp->sampling;
    self->next = s->requests;
    self->at = &s->requests;
    if (self->next != NULL) {
        self->next->at = &self->next;
    }
    s->requests = self;
    return (PyObject *)self;
}


PyMethodDef _PyProfile_LabelMethods[] = {
    _PROFILE_BEGIN_REQUEST_METHODDEF
    _PROFILE_ENTER_LABELS_METHODDEF
    _PROFILE_EXIT_LABELS_METHODDEF
    _PROFILE_LABELS_METHODDEF
    {NULL, NULL}
};


/* Life. */

int
_PyProfile_InitLabels(PyObject *module, profile_state *state)
{
    state->label_var = PyContextVar_New("profile_sampling.labels", NULL);
    state->label_set_type = (PyTypeObject *)PyType_FromModuleAndSpec(
        module, &label_set_spec, NULL);
    state->request_type = (PyTypeObject *)PyType_FromModuleAndSpec(
        module, &request_spec, NULL);
    state->known_sets = PyDict_New();
    if (state->request_type == NULL || state->label_var == NULL || state->label_set_type == NULL
        || state->known_sets == NULL)
    {
        return -1;
    }
    state->empty_labels = new_set(state, PyTuple_New(0));
    if (state->empty_labels == NULL) {
        return -1;
    }
    struct _sampling_interpreter_state *s =
        &_PyInterpreterState_GET()->sampling;
    s->label_set_type = state->label_set_type;
    s->label_var = state->label_var;
    return 0;
}

int
_PyProfile_TraverseLabels(profile_state *state, visitproc visit, void *arg)
{
    Py_VISIT(state->label_var);
    Py_VISIT(state->label_set_type);
    Py_VISIT(state->request_type);
    Py_VISIT(state->empty_labels);
    Py_VISIT(state->known_sets);
    return 0;
}

void
_PyProfile_ClearLabels(profile_state *state)
{
    // The core must not read what is about to be freed.
    struct _sampling_interpreter_state *s =
        &_PyInterpreterState_GET()->sampling;
    if (state->label_var != NULL && s->label_var == state->label_var) {
        s->label_var = NULL;
        s->label_set_type = NULL;
    }
    Py_CLEAR(state->label_var);
    Py_CLEAR(state->label_set_type);
    Py_CLEAR(state->request_type);
    Py_CLEAR(state->empty_labels);
    Py_CLEAR(state->known_sets);
}
