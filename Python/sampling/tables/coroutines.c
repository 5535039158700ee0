/* Sampling profiler: what tasks run.

   Owns the rows of coroutines.  Must not know what their tasks did
   (tables/profile.c), when a task is in which state (task/life.c), or how a
   stack is walked. */

#include "Python.h"

#include "store.h"


static uint32_t
hash_coroutine_row(const struct _sampling_coroutine_row *row)
{
    return mix(row->function, 0);
}

DEFINE_INDEX(coroutine, 0)

/* When there are too many: the last row is for all that follow. */
static uint32_t
function_of_others(struct _sampling_tables *tables)
{
    uint32_t frame = _PySampling_InternPseudo(
        tables, _PySampling_PSEUDO_OTHER_TASKS, 0);
    return frame == NO_ROW
        ? NO_ROW : AT(tables, frame, frame)->function;
}

static uint32_t
find_coroutine(const struct _sampling_tables *tables, uint32_t function)
{
    FOR_CANDIDATES(tables->coroutine_index, mix(function, 0), row) {
        if (AT(tables, coroutine, row)->function == function) {
            return row;
        }
    }
    return NO_ROW;
}

uint32_t
_PySampling_TablesCoroutine(struct _sampling_tables *tables,
                            uint32_t function)
{
    if (function == NO_ROW) {
        return NO_ROW;
    }
    uint32_t found = find_coroutine(tables, function);
    if (found != NO_ROW) {
        return found;
    }
    if (tables->num_coroutines >= _PySampling_MAX_COROUTINES) {
        function = function_of_others(tables);
        found = find_coroutine(tables, function);
        if (found != NO_ROW || function == NO_ROW) {
            return found;
        }
    }
    if (!RESERVE(tables, coroutines) || !reserve_coroutine_index(tables)) {
        return NO_ROW;
    }
    uint32_t row = add_coroutine_row(
        tables, (struct _sampling_coroutine_row){.function = function});
    index_put(&tables->coroutine_index,
              hash_coroutine_row(AT(tables, coroutine, row)), row);
    return row;
}
