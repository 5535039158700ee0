/* Sampling profiler: where captures wait for the drain.

   Owns the memory.  Must not know what is written there, or when. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "buffer.h"
#include "sample.h"

/* Space for that many frames, however small depth_frames is. */
#define MIN_BUFFER_FRAMES 4096

/* The most entries that a stack takes: each frame may be in C code; and
   [truncated N+ frames], the mark of the leaf's opcode, and [GC genN] with the
   call of gc.collect(), whose frame may be left out. */
int
_PySampling_MaxEntries(int depth_frames)
{
    return depth_frames * (1 + _PySampling_CALLEE_ENTRIES)
           + 3 + _PySampling_CALLEE_ENTRIES;
}

static struct _sampling_buffer *
new_buffer(int depth_frames)
{
    int capacity = Py_MAX(MIN_BUFFER_FRAMES,
                          4 * _PySampling_MaxEntries(depth_frames));
    size_t path_depth = (size_t)_PySampling_MaxEntries(depth_frames);
    size_t frames_bytes = (size_t)capacity * sizeof(_PySampling_Frame);
    size_t path_bytes = path_depth * sizeof(_PySampling_Frame);
    struct _sampling_buffer *buffer = calloc(
        1, sizeof(*buffer) + frames_bytes + path_bytes
           + path_depth * sizeof(uint32_t));
    if (buffer == NULL) {
        return NULL;
    }
    buffer->slots = _PySampling_SlotsNew();
    if (buffer->slots == NULL) {
        free(buffer);
        return NULL;
    }
    buffer->depth_frames = depth_frames;
    buffer->capacity = capacity;
    buffer->path = buffer->frames + capacity;
    buffer->path_nodes = (uint32_t *)(buffer->path + path_depth);
    return buffer;
}

struct _sampling_buffer *
_PySampling_BufferEnsure(struct _sampling_buffer *buffer)
{
    const struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    if (buffer != NULL
        && buffer->depth_frames != state->options.depth_frames)
    {
        _PySampling_BufferFree(buffer);
        buffer = NULL;
    }
    if (buffer == NULL) {
        buffer = new_buffer(state->options.depth_frames);
    }
    if (buffer != NULL && buffer->slots_epoch != _PySampling_EPOCH()) {
        // No hook said which code objects died while no session was running.
        _PySampling_SlotsClear(buffer->slots);
        buffer->slots_epoch = _PySampling_EPOCH();
    }
    return buffer;
}

void
_PySampling_BufferFree(struct _sampling_buffer *buffer)
{
    if (buffer != NULL) {
        _PySampling_SlotsFree(buffer->slots);
        free(buffer);
    }
}

size_t
_PySampling_BufferBytes(const struct _sampling_buffer *buffer)
{
    size_t path_depth = (size_t)_PySampling_MaxEntries(buffer->depth_frames);
    return sizeof(*buffer)
        + (size_t)buffer->capacity * sizeof(_PySampling_Frame)
        + path_depth * (sizeof(_PySampling_Frame) + sizeof(uint32_t))
        + _PySampling_SlotsBytes(buffer->slots);
}

void
_PySampling_BufferForgetCode(struct _sampling_buffer *buffer,
                             PyCodeObject *code)
{
    _PySampling_SlotsForget(buffer->slots, code);
}
