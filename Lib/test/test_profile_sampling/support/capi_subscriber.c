/* A profiler written in C, for test_capi.py: a thread without any Python
   thread state drains batches and adds up what they weigh. */

#include "Python.h"
#include "cpython/sampling.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define MAX_NAMES 100000

static const PySampling_API *api;
static PySampling_Subscription *sub;
static pthread_t drainer;
static volatile int stop_draining;

/* Names by their numbers, which are those of strings. */
static uint32_t serial;
static char *names[MAX_NAMES];

static uint64_t flat_wall_ns[MAX_NAMES];
static uint64_t total_wall_ns, lost_wall_ns, moments_wall_ns;
static uint64_t gil_wait_ns, held_wall_ns;
static uint64_t holder_wall_ns[MAX_NAMES];
static uint64_t task_ns, delay_ns, class_waits_ns, running_ns, num_lives;
static uint64_t class_running_ns[MAX_NAMES], finished;
static unsigned long num_samples, num_batches, num_errors;
static unsigned long num_task_labels;

#define ROW(KIND, FIELD, I) PySampling_ROW(PySampling_##KIND, FIELD, (I))

static void
keep_names(const PySampling_Batch *batch)
{
    if (batch->serial != serial) {
        num_errors += serial != 0;      // no test has so many rows
        serial = batch->serial;
    }
    for (uint32_t i = 0; i < batch->strings.num; i++) {
        const PySampling_String *s = ROW(String, batch->strings, i);
        uint32_t number = batch->strings.numbers[i];
        if (names[number] == NULL) {
            names[number] = malloc(s->size + 1);
            memcpy(names[number], s->utf8, s->size);
            names[number][s->size] = '\0';
        }
        num_errors += strlen(names[number]) != s->size
                      || memcmp(names[number], s->utf8, s->size) != 0;
    }
}

static uint32_t
name_of(const PySampling_Batch *batch, uint32_t function)
{
    return batch->strings.numbers[
        ROW(Function, batch->functions, function)->qualname];
}

/* The name of the innermost Python frame; MAX_NAMES: none. */
static uint32_t
python_name(const PySampling_Batch *batch, uint32_t at)
{
    while (at != 0) {
        const PySampling_Node *node = ROW(Node, batch->nodes, at);
        uint32_t function = ROW(Frame, batch->frames, node->frame)->function;
        if (ROW(Function, batch->functions, function)->kind == 0) {
            return name_of(batch, function);
        }
        num_errors += node->parent >= at;   // parents come first
        at = node->parent;
    }
    return MAX_NAMES;
}

static void
add_holder(const PySampling_Batch *batch, const PySampling_Sample *sample)
{
    if (sample->state == PySampling_STATE_GIL_WAIT) {
        gil_wait_ns += sample->wall_ns;
    }
    if (sample->holder_node == 0) {
        return;
    }
    held_wall_ns += sample->wall_ns;
    num_errors += sample->state != PySampling_STATE_GIL_WAIT;
    uint32_t name = python_name(batch, sample->holder_node);
    if (name != MAX_NAMES) {
        holder_wall_ns[name] += sample->wall_ns;
    }
}

/* A sample as an extension would know it that was compiled when it had fewer
   fields. */
typedef struct {
    uint32_t node;
    uint32_t thread;
} ShortSample;

static void
add_tasks(const PySampling_Batch *batch)
{
    for (uint32_t i = 0; i < batch->labels.num; i++) {
        const PySampling_Label *label = ROW(Label, batch->labels, i);
        int has_class = label->task_class != PySampling_NO_CLASS;
        num_task_labels += has_class && !label->is_work;
        num_errors += has_class && label->key != PySampling_NO_STRING;
    }
    for (uint32_t i = 0; i < batch->task_classes.num; i++) {
        const PySampling_TaskClass *c =
            ROW(TaskClass, batch->task_classes, i);
        class_running_ns[name_of(batch, c->function)] += c->running_ns;
        running_ns += c->running_ns;
        class_waits_ns += c->awaiting_ns + c->loop_wait_ns;
        finished += c->finished;
        for (uint32_t bucket = 0; bucket < c->num_lives; bucket++) {
            num_lives += c->lives[bucket];
        }
    }
}

static void
add_sample(const PySampling_Batch *batch, const PySampling_Sample *sample)
{
    num_errors += sample->thread >= batch->threads.num
                  || sample->labels >= batch->labels.num;
    num_errors += sample->task_ns != 0
                  && sample->state != PySampling_STATE_AWAITING
                  && sample->state != PySampling_STATE_LOOP_WAIT;
    num_samples += sample->count;
    task_ns += sample->task_ns;
    delay_ns += sample->delay_ns;
    total_wall_ns += sample->wall_ns;
    if (sample->state == PySampling_STATE_LOST) {
        lost_wall_ns += sample->wall_ns;
    }
    uint32_t name = python_name(batch, sample->node);
    if (name != MAX_NAMES) {
        flat_wall_ns[name] += sample->wall_ns;
    }
    add_holder(batch, sample);
}

static void
add(const PySampling_Batch *batch)
{
    keep_names(batch);
    add_tasks(batch);
    num_batches++;
    num_errors += !PySampling_HAS(batch->samples.stride, PySampling_Sample,
                                  delay_ns);
    for (uint32_t i = 0; i < batch->samples.num; i++) {
        const PySampling_Sample *sample = ROW(Sample, batch->samples, i);
        num_errors += PySampling_ROW(ShortSample, batch->samples, i)->thread
                      != sample->thread;
        add_sample(batch, sample);
    }
    for (uint32_t i = 0; i < batch->moments.num; i++) {
        const PySampling_Moment *moment = ROW(Moment, batch->moments, i);
        moments_wall_ns += moment->wall_ns;
        num_errors += moment->sample >= batch->samples.num
                      || moment->time_ns
                         > ROW(Sample, batch->samples,
                               moment->sample)->time_ns;
    }
}

static void
drain_all(void)
{
    PySampling_Batch *batch;
    int result;
    while ((result = api->drain(sub, &batch)) > 0) {
        num_errors += batch->size != sizeof(*batch);
        add(batch);
        api->release(batch);
    }
    num_errors += result < 0;
}

static void *
run_drainer(void *arg)
{
    (void)arg;
    while (!stop_draining) {
        drain_all();
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    return NULL;
}

static PyObject *
start(PyObject *module, PyObject *args)
{
    PySampling_Options options = PySampling_OPTIONS_INIT;
    unsigned long long flags = 0;
    if (!PyArg_ParseTuple(args, "iI|K", &options.rate_hz,
                          &options.max_samples, &flags))
    {
        return NULL;
    }
    options.flags = flags;
    options.interpreter_id = 0;
    total_wall_ns = lost_wall_ns = moments_wall_ns = 0;
    serial = 0;
    for (int i = 0; i < MAX_NAMES; i++) {
        free(names[i]);
        names[i] = NULL;
    }
    num_samples = num_batches = num_errors = 0;
    gil_wait_ns = held_wall_ns = 0;
    task_ns = delay_ns = class_waits_ns = running_ns = 0;
    finished = num_lives = num_task_labels = 0;
    memset(class_running_ns, 0, sizeof(class_running_ns));
    memset(flat_wall_ns, 0, sizeof(flat_wall_ns));
    memset(holder_wall_ns, 0, sizeof(holder_wall_ns));
    sub = api->subscribe(&options);
    if (sub == NULL) {
        return NULL;
    }
    stop_draining = 0;
    if (pthread_create(&drainer, NULL, run_drainer, NULL) != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

/* subscribe(size, at, value): with default options of that many bytes, but for
   the int at that offset, which may lie beyond all that the header knows, or
   the interpreter_id there. */
static PyObject *
subscribe(PyObject *module, PyObject *args)
{
    union { PySampling_Options options; char bytes[4096]; } larger = {
        .bytes = {0}};
    unsigned int size, at;
    int value;
    if (!PyArg_ParseTuple(args, "IIi", &size, &at, &value)) {
        return NULL;
    }
    larger.options = (PySampling_Options)PySampling_OPTIONS_INIT;
    larger.options.size = size;
    if (at == offsetof(PySampling_Options, interpreter_id)) {
        larger.options.interpreter_id = value;
    }
    else if (at <= sizeof(larger) - sizeof(value)) {
        memcpy(larger.bytes + at, &value, sizeof(value));
    }
    PySampling_Subscription *made = api->subscribe(&larger.options);
    if (made == NULL || api->close(made) < 0) {
        return NULL;
    }
    api->free(made);
    Py_RETURN_NONE;
}

static PyObject *
set_rate(PyObject *module, PyObject *rate)
{
    int rate_hz = (int)PyLong_AsLong(rate);
    if (PyErr_Occurred() || api->set_rate(sub, rate_hz) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
by_name(const uint64_t *wall_ns)
{
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict != NULL && i < MAX_NAMES; i++) {
        if (wall_ns[i] != 0) {
            PyObject *ns = PyLong_FromUnsignedLongLong(wall_ns[i]);
            if (ns == NULL
                || PyDict_SetItemString(dict, names[i], ns) < 0)
            {
                Py_CLEAR(dict);
            }
            Py_XDECREF(ns);
        }
    }
    return dict;
}

/* Returns (totals, {name: flat wall nanoseconds}, {name: nanoseconds in which
   it held the GIL while others waited}). */
static PyObject *
stop(PyObject *module, PyObject *ignored)
{
    if (api->flush(sub) < 0 || api->close(sub) < 0) {
        return NULL;
    }
    stop_draining = 1;
    pthread_join(drainer, NULL);
    drain_all();
    api->free(sub);
    sub = NULL;
    PyObject *flat = by_name(flat_wall_ns);
    PyObject *held = by_name(holder_wall_ns);
    if (flat == NULL || held == NULL) {
        Py_XDECREF(flat);
        Py_XDECREF(held);
        return NULL;
    }
    return Py_BuildValue(
        "({s:K,s:K,s:K,s:k,s:k,s:K,s:K,s:k}NN)",
        "wall_ns", total_wall_ns, "lost_wall_ns", lost_wall_ns,
        "moments_wall_ns", moments_wall_ns,
        "samples", num_samples, "batches", num_batches,
        "gil_wait_ns", gil_wait_ns, "held_wall_ns", held_wall_ns,
        "errors", num_errors, flat, held);
}

/* Of what was stopped: (totals of tasks, {function: what its tasks ran}). */
static PyObject *
tasks(PyObject *module, PyObject *ignored)
{
    PyObject *running = by_name(class_running_ns);
    if (running == NULL) {
        return NULL;
    }
    return Py_BuildValue(
        "({s:K,s:K,s:K,s:K,s:K,s:K,s:k}N)",
        "task_ns", task_ns, "delay_ns", delay_ns,
        "class_waits_ns", class_waits_ns, "running_ns", running_ns,
        "finished", finished, "lives", num_lives,
        "labels", num_task_labels, running);
}

static PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, NULL},
    {"tasks", tasks, METH_NOARGS, NULL},
    {"subscribe", subscribe, METH_VARARGS, NULL},
    {"set_rate", set_rate, METH_O, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {NULL, NULL}
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "capi_subscriber",
    .m_size = -1,
    .m_methods = methods,
};

#define OFFSET(FIELD) (long)offsetof(PySampling_Options, FIELD)

static const struct {
    const char *name;
    long value;
} constants[] = {
    {"SIZE", (long)sizeof(PySampling_Options)},
    {"RATE_HZ", OFFSET(rate_hz)},
    {"DEPTH_FRAMES", OFFSET(depth_frames)},
    {"NAMES", OFFSET(names)},
    {"INTERPRETER_ID", OFFSET(interpreter_id)},
    {"MAX_SAMPLES", OFFSET(max_samples)},
    {"FLAGS", OFFSET(flags)},
    {"WITH_TASKS", PySampling_WITH_TASKS},
    {"WITH_MOMENTS", PySampling_WITH_MOMENTS},
    {NULL, 0}
};

PyMODINIT_FUNC
PyInit_capi_subscriber(void)
{
    api = PyCapsule_Import(PySampling_CAPSULE_NAME, 0);
    if (api == NULL) {
        return NULL;
    }
    if (api->version < 2
        || !PySampling_HAS(api->size, PySampling_API, free))
    {
        PyErr_SetString(PyExc_ImportError, "another version of the C API");
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_def);
    for (int i = 0; module != NULL && constants[i].name != NULL; i++) {
        if (PyModule_AddIntConstant(module, constants[i].name,
                                    constants[i].value) < 0)
        {
            Py_CLEAR(module);
        }
    }
    return module;
}
