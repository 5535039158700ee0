/* Sampling profiler: what the program says a sample belongs to.

   Owns the rows of labels and tasks.  Must not know stacks, clocks, which task
   is entered (tasks.c) or how a label set comes to be
   (Modules/_profile/labels.c).

   A label set is a path in a tree, as a stack is: a row adds one label to the
   set of its parent row, keys ascend along the path, and row 0 is the empty
   set.  A task is one more row, without a key, below the labels.

   Labels are read when a sample is recorded, from the context that the capture
   found; greenlets change a thread's context without a hook.  What
   waits to be recorded is recorded before a context's labels or the task
   change and before a context dies, so the labels are what they were when the
   sample was taken. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_eval_breaker_bit_is_set()
#include "pycore_context.h"           // PyContext
#include "pycore_hamt.h"              // _PyHamt_Find()
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_tstate.h"            // _PyThreadStateImpl

#include "../base/task.h"
#include "labels.h"
#include "move.h"
#include "store.h"

#define TASK_NAME_FORMAT "Task-%lld"    // as asyncio names its tasks


/* Rows. */

static uint32_t
hash_label(uint32_t parent, uint32_t key, uint32_t value, uint64_t task_id)
{
    return mix((uint64_t)key << 32 | value,
               (uint64_t)parent << 32 ^ task_id);
}

static uint32_t
hash_label_row(const struct _sampling_label_row *row)
{
    uint32_t kind = (uint32_t)row->coroutine << 1 | row->is_work;
    return hash_label(row->parent, row->key, row->value,
                      row->task_id ^ (uint64_t)kind << 32);
}

DEFINE_INDEX(label, row == 0)           // row 0 is the empty set

/* NO_ROW: there is none. */
static uint32_t
find_label(const struct _sampling_tables *tables,
           struct _sampling_label_row key)
{
    uint32_t hash = hash_label_row(&key);
    FOR_CANDIDATES(tables->label_index, hash, row) {
        const struct _sampling_label_row *label =
            AT(tables, label, row);
        if (label->parent == key.parent && label->key == key.key
            && label->value == key.value && label->task_id == key.task_id
            && label->coroutine == key.coroutine
            && label->is_work == key.is_work)
        {
            return row;
        }
    }
    return NO_ROW;
}

static uint32_t
find_or_add_label(struct _sampling_tables *tables,
                  struct _sampling_label_row key)
{
    uint32_t found = find_label(tables, key);
    if (found != NO_ROW) {
        return found;
    }
    int is_task = key.key == _PySampling_NO_STRING;
    uint32_t limit = is_task
        ? _PySampling_MAX_TASKS : _PySampling_MAX_LABEL_SETS;
    uint32_t used = is_task
        ? tables->num_tasks : tables->num_labels - tables->num_tasks;
    if (used >= limit || !RESERVE(tables, labels)
        || !reserve_label_index(tables))
    {
        return NO_ROW;
    }
    uint32_t row = add_label_row(tables, key);
    tables->num_tasks += is_task;
    tables->num_task_ids += key.task_id != 0;
    index_put(&tables->label_index, hash_label_row(&key), row);
    return row;
}

/* The row below `parent` with one more label, or the row of lost labels. */
uint32_t
_PySampling_LabelsBelow(struct _sampling_tables *tables, uint32_t parent,
                        uint32_t key, uint32_t value)
{
    if (parent == tables->lost_labels || key == NO_ROW || value == NO_ROW) {
        return tables->lost_labels;
    }
    uint32_t row = find_or_add_label(
        tables, (struct _sampling_label_row){
            .parent = parent, .key = key, .value = value});
    return row != NO_ROW ? row : tables->lost_labels;
}

/* Row 0, and the labels of samples whose own could not be kept. */
int
_PySampling_TablesInitLabels(struct _sampling_tables *tables)
{
    static const char key[] = "labels", value[] = "[lost]";
    if (!RESERVE(tables, labels)) {
        return 0;
    }
    (void)add_label_row(tables, (struct _sampling_label_row){
        .key = _PySampling_NO_STRING, .value = _PySampling_NO_STRING});
    tables->lost_labels = find_or_add_label(
        tables, (struct _sampling_label_row){
            .key = _PySampling_InternBytes(tables, key, sizeof(key) - 1),
            .value = _PySampling_InternBytes(tables, value,
                                             sizeof(value) - 1)});
    return tables->lost_labels != NO_ROW;
}

static uint32_t
add_pairs(struct _sampling_tables *tables, PyObject *pairs)
{
    uint32_t labels = 0;
    for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(pairs); i += 2) {
        uint32_t key = _PySampling_InternText(
            tables, PyTuple_GET_ITEM(pairs, i));
        uint32_t value = _PySampling_InternText(
            tables, PyTuple_GET_ITEM(pairs, i + 1));
        labels = _PySampling_LabelsBelow(tables, labels, key, value);
    }
    return labels;
}


/* The label set of a context. */

/* As _PyHamt_Find().  Context variables are compared by identity, which runs
   no code of the program, but takes a level of C recursion: without one left,
   an exception would be raised. */
static int
find_in_context(PyContext *context, PyObject *variable, PyObject **value)
{
    PyThreadState *tstate = _PyThreadState_GET();
    int remaining = tstate->c_recursion_remaining;
    tstate->c_recursion_remaining = Py_MAX(remaining, 1);
    int found = _PyHamt_Find(context->ctx_vars, variable, value);
    tstate->c_recursion_remaining = remaining;
    return found;
}

/* NULL: the context has none, or the collector has cleared it already. */
static _PySampling_LabelSet *
set_of_context(PyThreadState *tstate, PyObject *context)
{
    struct _sampling_interpreter_state *s = &tstate->interp->sampling;
    PyObject *value;
    if (s->label_var == NULL || context == NULL
        || !PyContext_CheckExact(context)       // a task may have any object
        || ((PyContext *)context)->ctx_vars == NULL
        || find_in_context((PyContext *)context, s->label_var, &value) != 1
        // Whoever copies a context can see the variable, and set it.
        || !Py_IS_TYPE(value, s->label_set_type))
    {
        return NULL;
    }
    return (_PySampling_LabelSet *)value;
}

PyObject *
_PySampling_PairsOf(PyThreadState *tstate, PyObject *context)
{
    _PySampling_LabelSet *set = set_of_context(tstate, context);
    return set != NULL ? set->pairs : NULL;
}

static uint32_t
row_of_set(struct _sampling_tables *tables, _PySampling_LabelSet *set)
{
    if (set->serial != tables->serial) {
        set->row = add_pairs(tables, set->pairs);
        set->serial = tables->serial;
    }
    if (set->row == tables->lost_labels) {
        _PySampling_COUNT(lost_labels, 1);
    }
    return set->row;
}


/* Tasks. */

/* Tasks come without end in a server: the first have rows of their own, then
   all that run the same share one, but for the names that the program gives. */
static int
may_tell_apart(const struct _sampling_tables *tables)
{
    return tables->num_task_ids < _PySampling_MAX_TASK_IDS;
}

/* asyncio keeps the number of a task that nobody has named, and makes a str
   of it when asked. */
static uint32_t
intern_task_name(struct _sampling_tables *tables, PyObject *name)
{
    if (!PyLong_CheckExact(name)) {
        return _PySampling_InternText(tables, name);
    }
    char text[sizeof(TASK_NAME_FORMAT) + 20];
    int size = snprintf(text, sizeof(text), TASK_NAME_FORMAT,
                        PyLong_AsLongLong(name));
    return may_tell_apart(tables)
        ? _PySampling_InternBytes(tables, text, (uint32_t)size)
        : _PySampling_FindBytes(tables, text, (uint32_t)size);
}

static PyObject *
name_of(const _PySampling_TaskInfo *info)
{
    return info->layout != NULL
        ? _PySampling_TaskObject(info, info->layout->name) : NULL;
}

/* What the task runs, if it is known in these tables: row + 1. */
static uint32_t
coroutine_of(const struct _sampling_tables *tables,
             const _PySampling_TaskInfo *info)
{
    const struct _sampling_task *task = _PySampling_RecordOfTask(info);
    return task != NULL && task->serial == tables->serial
        ? task->coroutine + 1 : 0;
}

static struct _sampling_work
work_of_task(struct _sampling_tables *tables, const _PySampling_TaskInfo *task)
{
    struct _sampling_work work = {
        .serial = tables->serial,
        .name = _PySampling_NO_STRING,
        .coroutine = coroutine_of(tables, task),
        .task_id = (uintptr_t)task->task,
    };
    PyObject *name = name_of(task);
    if (name != NULL) {
        work.name = intern_task_name(tables, name);
    }
    return work;
}

static uint32_t
add_task(struct _sampling_tables *tables, uint32_t labels,
         struct _sampling_work task, int is_work)
{
    struct _sampling_label_row key = {
        .parent = labels,
        .key = _PySampling_NO_STRING,
        .value = task.name,
        .coroutine = task.coroutine,
        .is_work = (uint32_t)is_work,
        .task_id = task.task_id};
    if (!may_tell_apart(tables) && find_label(tables, key) == NO_ROW) {
        key.task_id = 0;
    }
    uint32_t row = find_or_add_label(tables, key);
    if (row == NO_ROW) {
        _PySampling_COUNT(lost_tasks, 1);
        return labels;
    }
    return row;
}

/* What the thread works for is forgotten with the tables. */
static int
works_in(const struct _sampling_tables *tables,
         const struct _sampling_work *work)
{
    return work->serial == tables->serial;
}

static int
is_in_task(const struct _sampling_thread_state *t)
{
    return t->entered.task != NULL && !_PySampling_IsAbandoned(&t->entered);
}

static uint32_t
in_task(struct _sampling_tables *tables, uint32_t labels,
        PyThreadState *tstate)
{
    const struct _sampling_thread_state *t =
        &((_PyThreadStateImpl *)tstate)->sampling;
    if (is_in_task(t)) {
        return add_task(tables, labels, work_of_task(tables, &t->entered), 0);
    }
    return works_in(tables, &t->work)
        ? add_task(tables, labels, t->work, 1) : labels;
}

struct _sampling_work
_PySampling_WorkOf(struct _sampling_tables *tables, PyThreadState *tstate)
{
    const struct _sampling_thread_state *t =
        &((_PyThreadStateImpl *)tstate)->sampling;
    return is_in_task(t) ? work_of_task(tables, &t->entered) : t->work;
}

uint32_t
_PySampling_LabelsOf(struct _sampling_tables *tables, PyThreadState *tstate,
                     PyObject *context)
{
    _PySampling_LabelSet *set = set_of_context(tstate, context);
    return in_task(tables, set != NULL ? row_of_set(tables, set) : 0, tstate);
}

/* One row for all tasks that run the same, unless the program has named
   them. */
uint32_t
_PySampling_LabelsOfWait(struct _sampling_tables *tables,
                         PyThreadState *tstate,
                         const _PySampling_TaskInfo *task)
{
    _PySampling_LabelSet *set = set_of_context(
        tstate, _PySampling_TaskObject(task, task->layout->context));
    struct _sampling_label_row key = {
        .parent = set != NULL ? row_of_set(tables, set) : 0,
        .key = _PySampling_NO_STRING,
        .value = _PySampling_NO_STRING,
        .coroutine = coroutine_of(tables, task),
    };
    PyObject *name = name_of(task);
    if (name != NULL && PyUnicode_Check(name)) {
        key.value = _PySampling_InternText(tables, name);
    }
    uint32_t row = find_or_add_label(tables, key);
    if (row == NO_ROW) {
        _PySampling_COUNT(lost_tasks, 1);
        return key.parent;
    }
    return row;
}

uint32_t
_PySampling_LabelsWith(struct _sampling_tables *tables, PyThreadState *tstate,
                       PyObject *pairs)
{
    return in_task(tables, add_pairs(tables, pairs), tstate);
}


/* In other tables. */

static uint32_t
copied_coroutine(struct _sampling_tables *to,
                 const struct _sampling_tables *from, uint32_t coroutine)
{
    if (coroutine == 0) {
        return 0;
    }
    return 1 + _PySampling_TablesCoroutine(to, _PySampling_CopyFunction(
        to, from, AT(from, coroutine, coroutine - 1)->function));
}

uint32_t
_PySampling_CopyLabels(struct _sampling_tables *to,
                       const struct _sampling_tables *from, uint32_t labels)
{
    if (labels == 0 || labels == from->lost_labels) {
        return labels == 0 ? 0 : to->lost_labels;
    }
    const struct _sampling_label_row *row = AT(from, label, labels);
    uint32_t parent = _PySampling_CopyLabels(to, from, row->parent);
    if (row->key != _PySampling_NO_STRING) {
        return _PySampling_LabelsBelow(
            to, parent, _PySampling_CopyString(to, from, row->key),
            _PySampling_CopyString(to, from, row->value));
    }
    uint32_t task = find_or_add_label(to, (struct _sampling_label_row){
        .parent = parent,
        .key = _PySampling_NO_STRING,
        .value = _PySampling_CopyString(to, from, row->value),
        .coroutine = copied_coroutine(to, from, row->coroutine),
        .is_work = row->is_work,
    });
    return task != NO_ROW ? task : parent;
}
