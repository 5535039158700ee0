/* Sampling profiler: exact calls as edges and as rows.

   Owns the records of functions, the edges between them, and what becomes of
   both when one dies.  Must not know which event is counted as what. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyInterpreterState_GET()

#include "../base/frame.h"
#include "../native/native.h"
#include "../tables/store.h"
#include "calls.h"

#define FIRST_EDGES 1024
/* What rows and names may take each. */
#define LIMIT_BYTES ((size_t)64 << 20)

static uint32_t
hash_row(const struct _sampling_total_row *row)
{
    return mix((uint64_t)row->caller << 32 | (uint32_t)row->line,
               (uint64_t)row->callee << 32 | row->route);
}

static uint32_t
hash_total_row(const struct _sampling_total_row *row)
{
    return row->hash;
}

DEFINE_ADD_ROW(calls, total)
DEFINE_INDEX_OF(calls, total, 0)

static void forget_code(void *record);

struct _sampling_calls *
_PySampling_CallsOf(PyInterpreterState *interp)
{
    if (interp->sampling.calls != NULL) {
        return interp->sampling.calls;
    }
    struct _sampling_calls *calls = calloc(1, sizeof(*calls));
    if (calls == NULL) {
        return NULL;
    }
    llist_init(&calls->records);
    calls->extra_index = PyUnstable_Eval_RequestCodeExtraIndex(forget_code);
    calls->limit_bytes = LIMIT_BYTES;
    interp->sampling.calls = calls;
    return calls;
}


/* Rows. */

/* The numbers of what has no space are on the row of other functions. */
static struct _sampling_total_row *
row_of(struct _sampling_calls *calls, struct _sampling_total_row key)
{
    key.hash = hash_row(&key);
    FOR_CANDIDATES(calls->total_index, key.hash, number) {
        struct _sampling_total_row *row =
            AT(calls, total, number);
        if (row->caller == key.caller && row->line == key.line
            && row->callee == key.callee && row->route == key.route)
        {
            return row;
        }
    }
    if (!RESERVE(calls, totals) || !reserve_total_index(calls)) {
        return NULL;
    }
    uint32_t number = add_total_row(calls, key);
    index_put(&calls->total_index, key.hash, number);
    return AT(calls, total, number);
}

static void
fold(struct _sampling_calls *calls, struct _sampling_edge *edge)
{
    if (edge->calls + edge->resumes == 0) {
        return;
    }
    struct _sampling_total_row *row = edge->row;
    if (row == NULL) {
        struct _sampling_total_row key = {
            .caller = NO_ROW, .callee = edge->callee->function,
            .route = edge->route};
        if (edge->caller != NULL) {
            PyCodeObject *code = edge->caller->code;
            key.caller = edge->caller->function;
            key.line = Py_MAX(0, PyCode_Addr2Line(
                code, (int)((char *)edge->site - (char *)_PyCode_CODE(code))));
        }
        row = row_of(calls, key);
        if (row == NULL) {
            row = AT(calls, total, 0);
        }
        edge->row = row;
    }
    row->calls += edge->calls;
    row->recursive += edge->recursive;
    row->resumes += edge->resumes;
    row->recursive_resumes += edge->recursive_resumes;
    row->deepest = Py_MAX(row->deepest, edge->callee->deepest);
    edge->calls = edge->recursive = 0;
    edge->resumes = edge->recursive_resumes = 0;
}

void
_PySampling_FoldEdges(struct _sampling_calls *calls)
{
    for (size_t i = 0; calls->edges != NULL && i <= calls->edge_mask; i++) {
        struct _sampling_edge *edge = calls->edges[i];
        for (; edge != NULL; edge = edge->next) {
            fold(calls, edge);
        }
    }
}


/* Edges. */

static inline size_t
slot_of(const struct _sampling_calls *calls, const void *site,
        const void *key, uint32_t route)
{
    uint64_t h = ((uintptr_t)site >> 1) * 0x9E3779B97F4A7C15u
        ^ ((uintptr_t)key >> 4) * 0xC2B2AE3D27D4EB4Fu ^ route;
    return (size_t)(h ^ h >> 29) & calls->edge_mask;
}

/* The records of what is in C have as many slots. */
static int
reserve_edge(struct _sampling_calls *calls)
{
    size_t size = calls->edges != NULL ? calls->edge_mask + 1 : 0;
    if (calls->num_edges < size) {
        return 1;
    }
    struct _sampling_calls old = *calls;
    size_t wanted = size != 0 ? 2 * size : FIRST_EDGES;
    struct _sampling_edge **edges = calloc(wanted, sizeof(*edges));
    struct _sampling_counted **foreign = calloc(wanted, sizeof(*foreign));
    if (edges == NULL || foreign == NULL) {
        free(edges);
        free(foreign);
        return 0;
    }
    calls->edges = edges;
    calls->foreign = foreign;
    calls->edge_mask = wanted - 1;
    for (size_t i = 0; i < size; i++) {
        while (old.edges[i] != NULL) {
            struct _sampling_edge *edge = old.edges[i];
            old.edges[i] = edge->next;
            size_t slot = slot_of(calls, edge->site, edge->key, edge->route);
            edge->next = edges[slot];
            edges[slot] = edge;
        }
        while (old.foreign[i] != NULL) {
            struct _sampling_counted *record = old.foreign[i];
            old.foreign[i] = record->next_foreign;
            size_t slot = slot_of(calls, NULL, record->key, 0);
            record->next_foreign = foreign[slot];
            foreign[slot] = record;
        }
    }
    free(old.edges);
    free(old.foreign);
    return 1;
}

static void
remove_edge(struct _sampling_calls *calls, struct _sampling_edge *edge)
{
    fold(calls, edge);
    struct _sampling_edge **at = &calls->edges[
        slot_of(calls, edge->site, edge->key, edge->route)];
    while (*at != edge) {
        at = &(*at)->next;
    }
    *at = edge->next;
    calls->num_edges--;
    llist_remove(&edge->of_callee);
    if (edge->caller != NULL) {
        llist_remove(&edge->of_caller);
    }
    if (edge->callee->last == edge) {
        // Another function may come to be at the address of the caller.
        edge->callee->last = NULL;
        edge->callee->last_site = _PySampling_NO_SITE;
    }
    free(edge);
}


/* Records. */

static struct _sampling_counted *
new_record(struct _sampling_calls *calls, void *key, uint32_t function)
{
    struct _sampling_counted *record = calloc(1, sizeof(*record));
    if (record != NULL) {
        record->key = key;
        record->function =
            function != NO_ROW ? function : calls->other_function;
        record->last_site = _PySampling_NO_SITE;
        llist_init(&record->callers);
        llist_init(&record->callees);
        llist_insert_tail(&calls->records, &record->link);
    }
    return record;
}

void
_PySampling_ForgetParked(struct _sampling_counted *record)
{
    while (record->parked != NULL) {
        struct _sampling_parked_depth *parked = record->parked;
        record->parked = parked->next;
        free(parked);
    }
}

/* It dies: what was counted keeps its name. */
static void
free_record(struct _sampling_calls *calls, struct _sampling_counted *record)
{
    struct llist_node *node;
    llist_for_each_safe(node, &record->callers) {
        remove_edge(calls, llist_data(node, struct _sampling_edge, of_callee));
    }
    llist_for_each_safe(node, &record->callees) {
        remove_edge(calls, llist_data(node, struct _sampling_edge, of_caller));
    }
    _PySampling_ForgetParked(record);
    if (calls->last == record) {
        calls->last = NULL;
    }
    llist_remove(&record->link);
    free(record);
}

/* What code objects call when they die, and for the record that another one
   replaces. */
static void
forget_code(void *extra)
{
    struct _sampling_calls *calls = _PyInterpreterState_GET()->sampling.calls;
    struct _sampling_counted *record = extra;
    if (record != NULL && calls != NULL) {
        _PySampling_TablesForgetCode(calls->names, record->code);
        free_record(calls, record);
    }
}

/* Space for our number alone: when a code object dies that has space for those
   of others, too, their functions are called, with NULL, and may be gone. */
static int
set_extra(struct _sampling_calls *calls, PyCodeObject *code, void *record)
{
    PyInterpreterState *interp = _PyInterpreterState_GET();
    Py_ssize_t num_users = interp->co_extra_user_count;
    interp->co_extra_user_count = calls->extra_index + 1;
    int err = PyUnstable_Code_SetExtra((PyObject *)code, calls->extra_index,
                                       record);
    interp->co_extra_user_count = num_users;
    return err;
}

static struct _sampling_counted *
counted_of(struct _sampling_calls *calls, PyCodeObject *code,
           PyObject *globals)
{
    void *known;
    (void)PyUnstable_Code_GetExtra((PyObject *)code, calls->extra_index,
                                   &known);
    if (known != NULL) {
        return known;
    }
    struct _sampling_counted *record = new_record(
        calls, code, _PySampling_TablesFunction(calls->names, code, globals));
    if (record == NULL) {
        return NULL;
    }
    record->code = code;
    if (set_extra(calls, code, record) < 0) {
        forget_code(record);
        return NULL;
    }
    return record;
}

struct _sampling_counted *
_PySampling_CountedOf(struct _sampling_calls *calls,
                      _PyInterpreterFrame *frame)
{
    return counted_of(calls, _PySampling_FrameCode(frame),
                      _PySampling_FrameGlobals(frame));
}

struct _sampling_counted *
_PySampling_CountedOfFunction(struct _sampling_calls *calls,
                              PyFunctionObject *function)
{
    return counted_of(calls, (PyCodeObject *)function->func_code,
                      function->func_globals);
}

static struct _sampling_counted **
find_foreign(struct _sampling_calls *calls, void *key)
{
    struct _sampling_counted **at =
        &calls->foreign[slot_of(calls, NULL, key, 0)];
    while (*at != NULL && (*at)->key != key) {
        at = &(*at)->next_foreign;
    }
    return at;
}

/* Objects that are called by way of their type are all called as that: one
   could die, and another take its address. */
static uint32_t
name_callable(struct _sampling_calls *calls, void *key, PyObject *callable)
{
    PyInterpreterState *interp = _PyInterpreterState_GET();
    uint32_t frame = NO_ROW;
    if (key == Py_TYPE(callable)) {
        frame = _PySampling_TablesTypeFrame(calls->names, key);
    }
    else {
        _PySampling_Frame words[_PySampling_CALLEE_ENTRIES];
        if (_PySampling_FindCallee(interp, callable, words) != 0) {
            frame = _PySampling_InternCallee(calls->names, interp, words[0],
                                             words[1]);
        }
    }
    return frame != NO_ROW ? AT(calls->names, frame, frame)->function : NO_ROW;
}

static struct _sampling_counted *
foreign_record(struct _sampling_calls *calls, void *key, PyObject *callable)
{
    struct _sampling_counted **at = find_foreign(calls, key);
    if (*at == NULL) {
        *at = new_record(calls, key, name_callable(calls, key, callable));
    }
    return *at;
}

struct _sampling_edge *
_PySampling_FindEdge(struct _sampling_calls *calls,
                     _PyInterpreterFrame *caller, _Py_CODEUNIT *site,
                     void *key, struct _sampling_counted *callee,
                     PyObject *callable, uint32_t route)
{
    struct _sampling_edge *edge =
        calls->edges[slot_of(calls, site, key, route)];
    for (; edge != NULL; edge = edge->next) {
        if (edge->site == site && edge->key == key && edge->route == route) {
            return edge;
        }
    }
    // A caller that has no record could die unnoticed.
    struct _sampling_counted *calling =
        caller != NULL ? _PySampling_CountedOf(calls, caller) : NULL;
    if (callee == NULL) {
        callee = foreign_record(calls, key, callable);
    }
    if (callee == NULL || (caller != NULL && calling == NULL)
        || !reserve_edge(calls) || (edge = malloc(sizeof(*edge))) == NULL)
    {
        calls->num_lost++;
        return NULL;
    }
    size_t slot = slot_of(calls, site, key, route);
    *edge = (struct _sampling_edge){
        .site = site, .key = key, .route = route,
        .next = calls->edges[slot], .caller = calling, .callee = callee};
    calls->edges[slot] = edge;
    calls->num_edges++;
    llist_insert_tail(&callee->callers, &edge->of_callee);
    if (calling != NULL) {
        llist_insert_tail(&calling->callees, &edge->of_caller);
    }
    return edge;
}

void
_PySampling_CallsForgetType(PyTypeObject *type)
{
    struct _sampling_calls *calls = _PyInterpreterState_GET()->sampling.calls;
    if (calls == NULL || calls->names == NULL) {
        return;
    }
    _PySampling_TablesForgetType(calls->names, type);
    struct _sampling_counted **at = find_foreign(calls, type);
    if (*at != NULL) {
        struct _sampling_counted *record = *at;
        *at = record->next_foreign;
        free_record(calls, record);
    }
}


/* The whole. */

/* Row 0 has what there is no space for. */
static int
begin_names(struct _sampling_calls *calls)
{
    static const char other[] = "[other functions]";
    calls->names = _PySampling_TablesNew(LIMIT_BYTES);
    if (calls->names == NULL) {
        return 0;
    }
    uint32_t frame = _PySampling_InternNative(
        calls->names, _PySampling_NO_STRING,
        _PySampling_InternBytes(calls->names, other, sizeof(other) - 1),
        _PySampling_KIND_PSEUDO);
    if (frame == NO_ROW || !reserve_edge(calls)) {
        return 0;
    }
    calls->other_function = AT(calls->names, frame, frame)->function;
    return row_of(calls, (struct _sampling_total_row){
        .caller = NO_ROW, .callee = calls->other_function}) != NULL;
}

int
_PySampling_CallsBegin(struct _sampling_calls *calls)
{
    if (calls->names != NULL || begin_names(calls)) {
        return 1;
    }
    _PySampling_CallsClear(calls);
    return 0;
}

void
_PySampling_CallsReset(struct _sampling_calls *calls)
{
    _PySampling_FoldEdges(calls);
    for (uint32_t i = 0; i < calls->num_totals; i++) {
        struct _sampling_total_row *row = AT(calls, total, i);
        row->calls = row->recursive = row->deepest = 0;
        row->resumes = row->recursive_resumes = 0;
    }
    struct llist_node *node;
    llist_for_each(node, &calls->records) {
        struct _sampling_counted *record =
            llist_data(node, struct _sampling_counted, link);
        record->deepest = record->depth;
    }
    calls->num_lost = 0;
}

static void
free_rest(struct _sampling_calls *calls)
{
    free(calls->edges);
    free(calls->foreign);
    _PySampling_FreeChunks((void **)calls->totals);
    free(calls->total_index.slots);
    _PySampling_TablesFree(calls->names);
}

void
_PySampling_CallsClear(struct _sampling_calls *calls)
{
    struct llist_node *node;
    llist_for_each_safe(node, &calls->records) {
        struct _sampling_counted *record =
            llist_data(node, struct _sampling_counted, link);
        if (record->code == NULL) {
            free_record(calls, record);
        }
        else {
            // It frees the record.
            (void)PyUnstable_Code_SetExtra((PyObject *)record->code,
                                           calls->extra_index, NULL);
        }
    }
    assert(calls->num_edges == 0);
    free_rest(calls);
    Py_ssize_t extra_index = calls->extra_index;
    unsigned int serial = calls->serial + 1;
    Py_XDECREF(calls->libraries);
    Py_XDECREF(calls->on_import);
    memset(calls, 0, sizeof(*calls));
    llist_init(&calls->records);
    calls->extra_index = extra_index;
    calls->serial = serial;
    calls->limit_bytes = LIMIT_BYTES;
}

void
_PySampling_CallsFree(PyInterpreterState *interp)
{
    struct _sampling_calls *calls = interp->sampling.calls;
    if (calls == NULL) {
        return;
    }
    interp->sampling.calls_tool = 0;
    interp->sampling.calls = NULL;
    // Code objects that are still there are never looked at again.
    for (size_t i = 0; calls->edges != NULL && i <= calls->edge_mask; i++) {
        while (calls->edges[i] != NULL) {
            struct _sampling_edge *edge = calls->edges[i];
            calls->edges[i] = edge->next;
            free(edge);
        }
    }
    struct llist_node *node;
    llist_for_each_safe(node, &calls->records) {
        struct _sampling_counted *record =
            llist_data(node, struct _sampling_counted, link);
        _PySampling_ForgetParked(record);
        free(record);
    }
    free_rest(calls);
    free(calls);
}
