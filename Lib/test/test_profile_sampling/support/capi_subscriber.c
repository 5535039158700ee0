/* A profiler written in C, for test_capi.py: a thread without any Python
   thread state drains batches and adds up what they weigh. */

#include "Python.h"
#include "cpython/sampling.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define MAX_FUNCTIONS 100000
#define MAX_FRAMES 100000
#define MAX_NODES 100000
#define MAX_STRINGS 100000

static const PySampling_API *api;
static PySampling_Subscription *sub;
static pthread_t drainer;
static volatile int stop_draining;

/* What the numbers in batches stand for. */
static uint32_t serial;
static char *strings[MAX_STRINGS];
static PySampling_Function functions[MAX_FUNCTIONS];
static PySampling_Frame frames[MAX_FRAMES];
static PySampling_Node nodes[MAX_NODES];

static uint64_t flat_wall_ns[MAX_FUNCTIONS];
static uint64_t total_wall_ns, lost_wall_ns;
static uint64_t gil_wait_ns, held_wall_ns;
static uint64_t holder_wall_ns[MAX_FUNCTIONS];
static uint64_t task_ns, delay_ns, class_waits_ns, running_ns, num_lives;
static uint64_t class_running_ns[MAX_FUNCTIONS], finished;
static unsigned long num_samples, num_batches, num_errors;
static unsigned long num_task_labels;

#define ROW(KIND, FIELD, I) PySampling_ROW(PySampling_##KIND, FIELD, (I))

static void
keep_rows(const PySampling_Batch *batch)
{
    if (batch->serial != serial) {
        serial = batch->serial;
        num_errors += batch->strings.first != 0;
    }
    for (uint32_t i = 0; i < batch->strings.num; i++) {
        const PySampling_String *s = ROW(String, batch->strings, i);
        char *copy = malloc(s->size + 1);
        memcpy(copy, s->utf8, s->size);
        copy[s->size] = '\0';
        strings[batch->strings.first + i] = copy;
    }
    for (uint32_t i = 0; i < batch->functions.num; i++) {
        functions[batch->functions.first + i] =
            *ROW(Function, batch->functions, i);
    }
    for (uint32_t i = 0; i < batch->changed_functions.num; i++) {
        functions[batch->changed_function_rows[i]] =
            *ROW(Function, batch->changed_functions, i);
    }
    for (uint32_t i = 0; i < batch->frames.num; i++) {
        frames[batch->frames.first + i] = *ROW(Frame, batch->frames, i);
    }
    for (uint32_t i = 0; i < batch->nodes.num; i++) {
        nodes[batch->nodes.first + i] = *ROW(Node, batch->nodes, i);
    }
}

/* The function of the innermost Python frame; MAX_FUNCTIONS: none. */
static uint32_t
python_function(uint32_t node)
{
    while (node != 0
           && functions[frames[nodes[node].frame].function].kind != 0)
    {
        node = nodes[node].parent;
    }
    return node != 0 ? frames[nodes[node].frame].function : MAX_FUNCTIONS;
}

static void
add_holder(const PySampling_Record *record)
{
    if (record->state == PySampling_STATE_GIL_WAIT) {
        gil_wait_ns += record->wall_ns;
    }
    if (record->holder_node == 0) {
        return;
    }
    held_wall_ns += record->wall_ns;
    num_errors += record->state != PySampling_STATE_GIL_WAIT;
    uint32_t function = python_function(record->holder_node);
    if (function != MAX_FUNCTIONS) {
        holder_wall_ns[function] += record->wall_ns;
    }
}

/* A record as an extension would know it that was compiled when it had fewer
   fields. */
typedef struct {
    uint64_t time_ns;
    uint32_t node;
} ShortRecord;

/* Counters are whole in each batch. */
static void
keep_tasks(const PySampling_Batch *batch)
{
    for (uint32_t i = 0; i < batch->labels.num; i++) {
        const PySampling_Label *label = ROW(Label, batch->labels, i);
        num_task_labels += label->task_function != PySampling_NO_FUNCTION
                           && !label->is_work;
        num_errors += label->task_function != PySampling_NO_FUNCTION
                      && label->key != PySampling_NO_STRING;
    }
    class_waits_ns = running_ns = finished = num_lives = 0;
    for (uint32_t i = 0; i < batch->task_classes.num; i++) {
        const PySampling_TaskClass *c =
            ROW(TaskClass, batch->task_classes, i);
        class_running_ns[c->function] = c->running_ns;
        running_ns += c->running_ns;
        class_waits_ns += c->awaiting_ns + c->loop_wait_ns;
        finished += c->finished;
        for (uint32_t bucket = 0; bucket < c->num_lives; bucket++) {
            num_lives += c->lives[bucket];
        }
    }
}

static void
add(const PySampling_Batch *batch)
{
    keep_rows(batch);
    keep_tasks(batch);
    num_batches++;
    num_errors += !PySampling_HAS(batch->records.stride, PySampling_Record,
                                  holder_node);
    for (uint32_t i = 0; i < batch->records.num; i++) {
        const PySampling_Record *record = ROW(Record, batch->records, i);
        num_errors += PySampling_ROW(ShortRecord, batch->records, i)->node
                      != record->node;
        if (record->kind == PySampling_LOST) {
            lost_wall_ns += record->wall_ns;
        }
        if (record->kind == PySampling_TASK) {
            task_ns += record->wall_ns;
            num_errors += record->state != PySampling_STATE_AWAITING
                          && record->state != PySampling_STATE_LOOP_WAIT;
        }
        if (record->kind == PySampling_DELAY) {
            delay_ns += record->wall_ns;
        }
        if (record->kind != PySampling_SAMPLE) {
            continue;
        }
        num_samples += record->count;
        total_wall_ns += record->wall_ns;
        uint32_t function = python_function(record->node);
        if (function != MAX_FUNCTIONS) {
            flat_wall_ns[function] += record->wall_ns;
        }
        add_holder(record);
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
                          &options.max_records, &flags))
    {
        return NULL;
    }
    options.flags = flags;
    options.interpreter_id = 0;
    total_wall_ns = lost_wall_ns = 0;
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
    for (uint32_t i = 0; dict != NULL && i < MAX_FUNCTIONS; i++) {
        if (wall_ns[i] != 0) {
            PyObject *ns = PyLong_FromUnsignedLongLong(wall_ns[i]);
            if (ns == NULL
                || PyDict_SetItemString(dict, strings[functions[i].qualname],
                                        ns) < 0)
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
        "({s:K,s:K,s:k,s:k,s:K,s:K,s:k}NN)",
        "wall_ns", total_wall_ns, "lost_wall_ns", lost_wall_ns,
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
    {"MAX_RECORDS", OFFSET(max_records)},
    {"FLAGS", OFFSET(flags)},
    {"WITH_TASKS", PySampling_WITH_TASKS},
    {NULL, 0}
};

PyMODINIT_FUNC
PyInit_capi_subscriber(void)
{
    api = PyCapsule_Import(PySampling_CAPSULE_NAME, 0);
    if (api == NULL) {
        return NULL;
    }
    if (api->version < 1
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
