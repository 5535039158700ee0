/* Sampling profiler: rows that go on in other tables.

   Owns which of them are wanted.  Must not know what refers to them. */

#include "Python.h"

#include "move.h"
#include "store.h"

#define WANTED UINT32_MAX


void
_PySampling_MoveBegin(struct _sampling_move *move,
                      struct _sampling_tables *to,
                      const struct _sampling_tables *from)
{
    *move = (struct _sampling_move){
        .to = to,
        .from = from,
        .nodes = calloc(from->num_nodes, sizeof(uint32_t)),
        .frames = calloc((size_t)from->num_frames + 1, sizeof(uint32_t)),
        .labels = calloc(from->num_labels, sizeof(uint32_t)),
    };
    if (move->nodes == NULL || move->frames == NULL || move->labels == NULL) {
        _PySampling_MoveEnd(move);
    }
}

void
_PySampling_MoveEnd(struct _sampling_move *move)
{
    free(move->nodes);
    free(move->frames);
    free(move->labels);
    move->nodes = move->frames = move->labels = NULL;
}

/* With its parents. */
void
_PySampling_MoveWants(struct _sampling_move *move, uint32_t node)
{
    while (move->nodes != NULL && node != 0 && node != _PySampling_NO_NODE
           && move->nodes[node] != WANTED)
    {
        move->nodes[node] = WANTED;
        node = AT(move->from, node, node)->parent;
    }
}

static uint32_t
moved_frame(struct _sampling_move *move, uint32_t frame)
{
    uint32_t *row = &move->frames[frame];       // + 1
    if (*row == 0) {
        *row = _PySampling_CopyFrame(move->to, move->from, frame) + 1;
    }
    return *row - 1;
}

/* A parent has a lower number than what is below it. */
void
_PySampling_MoveNodes(struct _sampling_move *move)
{
    uint32_t num = move->nodes != NULL ? move->from->num_nodes : 0;
    for (uint32_t i = 1; i < num; i++) {
        if (move->nodes[i] == WANTED) {
            const struct _sampling_node_row *node = AT(move->from, node, i);
            move->nodes[i] = _PySampling_InternChild(
                move->to, move->nodes[node->parent],
                moved_frame(move, node->frame));
        }
    }
}

uint32_t
_PySampling_MovedNode(const struct _sampling_move *move, uint32_t node)
{
    uint32_t moved = move->nodes != NULL && node != _PySampling_NO_NODE
        ? move->nodes[node] : _PySampling_NO_NODE;
    return moved != _PySampling_NO_NODE ? moved : move->to->lost_node;
}

uint32_t
_PySampling_MovedLabels(struct _sampling_move *move, uint32_t labels)
{
    if (move->labels == NULL) {
        return move->to->lost_labels;
    }
    uint32_t *row = &move->labels[labels];
    if (*row == 0) {
        *row = _PySampling_CopyLabels(move->to, move->from, labels) + 1;
    }
    return *row - 1;
}

uint32_t
_PySampling_MovedThread(struct _sampling_move *move, uint32_t thread)
{
    const struct _sampling_thread_row *row = AT(move->from, thread, thread);
    uint32_t moved = _PySampling_TablesAddThread(
        move->to, row->ident, row->native_id, row->interpreter_id);
    _PySampling_TablesMoveName(move->to, moved, move->from, thread);
    return moved;
}
