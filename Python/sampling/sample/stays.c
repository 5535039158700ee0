/* Sampling profiler: which ticks find a thread where the ticks before did.

   Owns what two stacks have in common, as rows of a report ask for it: the
   same leaf, the same line, the same call.  Owns which two ticks were the last.
   Must not know what is made of it: how far the sum of a row may be off depends
   on how long its visits are, and ticks that stayed are all that a profile
   knows of that (InternalDocs/profile_sampling/accounting.md).

   A row is of many nodes, since each instruction has its own.  So where stacks
   part they are compared by function and line.  What is taken for another visit
   and is none (of a function that was called from another line meanwhile, of
   one task after another) makes a margin too wide, never too narrow. */

#include "Python.h"

#include "book.h"
#include "../sinks/sinks.h"

static const struct _sampling_frame_row *
frame_of(const struct _sampling_tables *tables, uint32_t node)
{
    return &tables->frames[tables->nodes[node].frame];
}

static int
is_same_function(const struct _sampling_tables *tables, uint32_t a, uint32_t b)
{
    return tables->nodes[a].parent == tables->nodes[b].parent
        && frame_of(tables, a)->function == frame_of(tables, b)->function;
}

/* The innermost Python frame of a stack; 0: it has none. */
static uint32_t
innermost_python(const struct _sampling_tables *tables, uint32_t node)
{
    while (node != 0
           && tables->functions[frame_of(tables, node)->function].kind
              != _PySampling_KIND_PYTHON)
    {
        node = tables->nodes[node].parent;
    }
    return node;
}

/* Are two stacks on one line, whatever they call there? */
static int
is_same_line(const struct _sampling_tables *tables, uint32_t a, uint32_t b)
{
    uint32_t python_a = innermost_python(tables, a);
    uint32_t python_b = innermost_python(tables, b);
    if (python_a == 0 || python_b == 0) {
        return a == b;
    }
    return python_a == python_b
        || (is_same_function(tables, python_a, python_b)
            && frame_of(tables, python_a)->line
               == frame_of(tables, python_b)->line);
}

/* The node of `b` with all calls that `a` has, too: they were under way all the
   time, as far as ticks can tell.  0: none. */
static uint32_t
calls_in_common(const struct _sampling_tables *tables, uint32_t a, uint32_t b)
{
    uint32_t below_a = 0, below_b = 0;
    // Nodes come after their parents.
    while (a != b) {
        if (a > b) {
            below_a = a;
            a = tables->nodes[a].parent;
        }
        else {
            below_b = b;
            b = tables->nodes[b].parent;
        }
    }
    return below_a != 0 && below_b != 0
        && is_same_function(tables, below_a, below_b) ? below_b : b;
}

/* What a tick has of an earlier one: on its own record, and on the call that
   went on, if that is another place. */
struct found {
    struct _sampling_likeness own;
    uint32_t call;              // 0: none, or its own
};

static struct found
compare(const struct _sampling_tables *tables,
        const struct _sampling_place *place, uint32_t node, uint32_t labels)
{
    struct found found = {0};
    if (node == 0 || place->node == 0 || labels != place->labels) {
        return found;
    }
    found.own.line = is_same_line(tables, node, place->node);
    uint32_t call = calls_in_common(tables, node, place->node);
    if (call == place->node) {
        found.own.call = 1;
        found.own.leaf = node == call || is_same_function(tables, node, call);
    }
    else {
        found.call = call;
    }
    return found;
}

static void
saw_tick(struct _sampling_tables *tables, const struct _sampling_place *place)
{
    _PySampling_Thread *thread = place->thread;
    struct found last = compare(tables, place, thread->last_node,
                                thread->last_labels);
    struct found second = compare(tables, place, thread->second_node,
                                  thread->second_labels);
    struct _sampling_stays on_last = {.last.call = 1};
    struct _sampling_stays on_second = {.second.call = 1};
    if (last.call == second.call) {
        on_last.second.call = 1;
        second.call = 0;
    }
    _PySampling_EmitStays(thread, place->node, place->labels,
                          &(struct _sampling_stays){last.own, second.own});
    _PySampling_EmitStays(thread, last.call, place->labels, &on_last);
    _PySampling_EmitStays(thread, second.call, place->labels, &on_second);
    thread->second_node = thread->last_node;
    thread->second_labels = thread->last_labels;
    thread->last_node = place->node;
    thread->last_labels = place->labels;
}

void
_PySampling_StaysSaw(struct _sampling_tables *tables,
                     const struct _sampling_place *place, uint64_t count)
{
    // From the third on all are like the two before.
    for (uint64_t i = 0; i < Py_MIN(count, 2); i++) {
        saw_tick(tables, place);
    }
    if (count > 2) {
        struct _sampling_likeness all = {count - 2, count - 2, count - 2};
        _PySampling_EmitStays(place->thread, place->node, place->labels,
                              &(struct _sampling_stays){all, all});
    }
}
