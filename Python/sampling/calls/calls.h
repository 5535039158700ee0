/* Sampling profiler: exact calls, beside the samples.  How often each function
   was called, from which line, how deep, and how often it went on.

   sys.monitoring says when a function begins, goes on and leaves, and what is
   called.  A hook in its dispatch brings these events here before arguments
   for a callback are made.  What is counted is an edge, a pair of the caller's
   instruction and the callee; only when somebody reads, or one of the two
   dies, the edge becomes a row of names and lines.

   Everything here needs the GIL of the interpreter that counts, and no lock:
   each interpreter has counters of its own. */

#ifndef Py_SAMPLING_CALLS_H
#define Py_SAMPLING_CALLS_H

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_llist.h"             // struct llist_node
#include "../tables/tables.h"

typedef enum {
    _PySampling_COUNT_OFF = 0,
    _PySampling_COUNT_QUERIES,      // of watched functions alone
    _PySampling_COUNT_PYTHON,       // and of all functions in Python
    _PySampling_COUNT_ALL,          // and of C functions
} _PySampling_CountMode;

/* Edges that are no queries have no route. */
#define _PySampling_NO_QUERY 0
#define _PySampling_NO_ROUTE 1          // others are a string + 2

/* What is read: calls of one line. */
struct _sampling_total_row {
    uint32_t hash;
    uint32_t caller;            // function; UINT32_MAX: no Python called it
    int32_t line;               // of it, 0: not known
    uint32_t callee;            // function
    uint32_t route;             // of a query, or _PySampling_NO_QUERY
    uint64_t calls;
    uint64_t recursive;         // of these, within another call of the callee
    uint64_t resumes;
    uint64_t recursive_resumes; // of these, likewise
    uint64_t deepest;           // calls of the callee on one stack
};

struct _sampling_counted;
struct _sampling_edge;

struct _sampling_calls {
    _PySampling_CountMode mode;
    PyObject **tool_slot;       // of interp->monitoring_tool_names
    PyObject *tool_name;        // what is in it while the id is ours
    uint64_t taken_ns;          // when it was seen not to be; 0: never
    struct _sampling_counted *last;     // function of the last event, or NULL
    unsigned int serial;        // rises when all is forgotten
    int num_users[_PySampling_COUNT_ALL + 1];
    Py_ssize_t extra_index;     // of code objects; -1: not asked for yet
    struct llist_node records;
    struct _sampling_edge **edges;
    struct _sampling_counted **foreign;     // records of what is in C
    size_t edge_mask;
    size_t num_edges;
    // Functions and strings that rows refer to.
    struct _sampling_tables *names;
    uint32_t other_function;    // of what names have no space for
    struct _sampling_total_row *totals[_PySampling_NUM_CHUNKS];
    uint32_t num_totals;
    struct _sampling_index total_index;
    size_t bytes;
    size_t limit_bytes;
    uint64_t num_lost;          // events that memory was lacking for
    PyObject *libraries;        // tuple: folders whose code is not mine
    PyObject *on_import;        // called when a module has been imported
};

_PySampling_DEFINE_AT(calls, total)

/* A function that is called or calls.  What each event needs comes first, to
   be in one line of the CPU's cache; so below. */
struct _sampling_counted {
    // The caller that was last: it calls again, mostly.
    _Py_CODEUNIT *last_site;
    struct _sampling_edge *last;
    // On the stack of one thread; those of others wait.
    uint64_t thread;
    uint64_t depth;
    uint64_t deepest;
    void *key;                  // the code object, or what identifies it
    char is_watched;            // calls of it are queries
    char is_import;             // when it returns, a module is imported
    enum {_PySampling_UNKNOWN, _PySampling_MINE, _PySampling_NOT_MINE} origin;
    PyCodeObject *code;         // NULL: it is in C
    uint32_t function;          // row of names
    struct _sampling_parked_depth {
        struct _sampling_parked_depth *next;
        uint64_t thread;
        uint64_t depth;
    } *parked;
    struct llist_node link;     // in calls->records
    struct llist_node callers;  // edges
    struct llist_node callees;
    struct _sampling_counted *next_foreign;
};

struct _sampling_edge {
    _Py_CODEUNIT *site;         // NULL: no Python called it
    void *key;                  // the callee's
    struct _sampling_edge *next;        // of the same slot
    uint32_t route;
    struct _sampling_total_row *row;    // NULL: it has none yet
    uint64_t calls;
    uint64_t recursive;
    uint64_t resumes;
    uint64_t recursive_resumes;
    struct _sampling_counted *caller;   // NULL, or with the code of the site
    struct _sampling_counted *callee;
    struct llist_node of_caller;
    struct llist_node of_callee;
};

/* --- calls/edges.c */

// Made if there is none.  NULL: no memory.
extern struct _sampling_calls *_PySampling_CallsOf(PyInterpreterState *interp);
// Makes ready to count; returns 0 if there is no memory.
extern int _PySampling_CallsBegin(struct _sampling_calls *calls);
// Begins anew at 0.
extern void _PySampling_CallsReset(struct _sampling_calls *calls);
// Forgets all that was counted, and for whom.
extern void _PySampling_CallsClear(struct _sampling_calls *calls);
// When nothing of the interpreter runs any more.
extern void _PySampling_CallsFree(PyInterpreterState *interp);
// A type is being deallocated: another may take its address.
extern void _PySampling_CallsForgetType(PyTypeObject *type);

// Where no site is.
#define _PySampling_NO_SITE ((_Py_CODEUNIT *)1)

// The record of a code object that runs in `frame`, made if there is none.
// NULL: no memory.
extern struct _sampling_counted *
_PySampling_CountedOf(struct _sampling_calls *calls,
                      struct _PyInterpreterFrame *frame);
extern struct _sampling_counted *
_PySampling_CountedOfFunction(struct _sampling_calls *calls,
                              PyFunctionObject *function);
extern void _PySampling_ForgetParked(struct _sampling_counted *record);
// The edge, made if there is none; `caller`: the frame of the site, or NULL.
// NULL: no memory, or the callee is in C and not to be counted.
extern struct _sampling_edge *
_PySampling_FindEdge(struct _sampling_calls *calls,
                     struct _PyInterpreterFrame *caller, _Py_CODEUNIT *site,
                     void *key, struct _sampling_counted *callee,
                     PyObject *callable, uint32_t route);
// Adds what the edges have to their rows, and sets them to 0.
extern void _PySampling_FoldEdges(struct _sampling_calls *calls);

/* --- calls/count.c */

// Has another tool taken the id, by freeing it?
static inline int
_PySampling_CountLost(const struct _sampling_calls *calls)
{
    return *calls->tool_slot != calls->tool_name;
}
extern void _PySampling_CountEndLost(PyInterpreterState *interp);

// Reads the stacks of all threads if calls begin to be counted.
extern void _PySampling_CountSetMode(PyThreadState *tstate,
                                     struct _sampling_calls *calls,
                                     _PySampling_CountMode mode);

#endif  // !Py_SAMPLING_CALLS_H
