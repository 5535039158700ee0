/* Sampling profiler: WHAT a sample's stack is.

   Owns the signal handler, the buffer of the stacks that it copies, and the
   drain that turns copies into samples.  Must not know how the clock chooses
   its moments, a stack is walked (sampling_walk.c) or tables are laid out.

   A capture is taken in a signal handler on the thread that holds the GIL, so
   that (code, instruction) of every frame is exact: nothing moves while the
   handler runs.  It only copies pointers.  Naming them waits for the drain,
   which runs on the same thread at its next safepoint, before it gives up the
   GIL and before any code object or context dies; so the borrowed pointers
   are alive. */

#include "Python.h"

#include "pycore_ceval.h"             // _Py_set_eval_breaker_bit()
#include "pycore_code.h"              // _PyCode_DEF()
#include "pycore_frame.h"             // _PyInterpreterFrame
#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_pystate.h"           // _PyThreadState_GET()
#include "pycore_runtime.h"           // _PyRuntime
#include "pycore_sampling_clock.h"    // _PySampling_IsFromClock()
#include "pycore_sampling_events.h"
#include "pycore_sampling_labels.h"
#include "pycore_sampling_parts.h"
#include "pycore_sampling_walk.h"
#include "pycore_tstate.h"            // _PyThreadStateImpl

#ifdef _PySampling_SUPPORTED

#include <errno.h>
#include <signal.h>

/* Captures between two safepoints: straight-line code of operators, each of
   them longer than a tick.  More than this many wait for the next tick. */
#define MAX_PENDING 64

/* Room for that many frames, however small depth_frames is. */
#define MIN_BUFFER_FRAMES 4096

/* A walk of this many frames costs some ten microseconds; for each of them a
   tick is skipped, so that deep recursion is sampled thinner, not slowed
   down. */
#define FRAMES_PER_SKIPPED_TICK 4096

/* A capture: which frames, since when, how often.  Its frames lie in the
   buffer from `first` on, leaf first. */
struct capture {
    int first;
    int depth;
    int gc_generation;
    _PyInterpreterFrame *frame;     // compared, never followed
    _Py_CODEUNIT *instr;
    PyObject *context;              // borrowed
    uint64_t time_ns;               // of its last tick
    uint64_t count;
    struct _sampling_time span;     // what its ticks stand for
    struct _sampling_time spent;    // since the capture before
};

/* One per interpreter, used by whichever thread holds its GIL: a thread
   drains before it gives the GIL up, so the buffer is empty by then. */
struct _sampling_buffer {
    int depth_frames;
    int capacity;
    int used;
    int num_captures;
    unsigned int session;           // the captures are of that one
    struct _sampling_slots *slots;
    unsigned int slots_session;     // they are of that one
    struct capture captures[MAX_PENDING];
    // The stack interned last, root first: the next one mostly shares it.
    int path_depth;
    unsigned int path_version;      // of the tables' code_version
    unsigned int path_serial;       // of the tables
    _PySampling_Frame *path;
    uint32_t *path_nodes;
    _PySampling_Frame frames[];
};

/* The most entries that a stack takes: each frame may be in C code; and
   [truncated N+ frames], the mark of the leaf's opcode, and [GC genN] with the
   call of gc.collect(), whose frame may be left out. */
static int
max_entries(int depth_frames)
{
    return depth_frames * (1 + _PySampling_CALLEE_ENTRIES)
           + 3 + _PySampling_CALLEE_ENTRIES;
}

static struct _sampling_buffer *
new_buffer(int depth_frames)
{
    int capacity = Py_MAX(MIN_BUFFER_FRAMES, 4 * max_entries(depth_frames));
    size_t path_depth = (size_t)max_entries(depth_frames);
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
_PySampling_BufferFit(struct _sampling_buffer *buffer)
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
    if (buffer != NULL && buffer->slots_session != _PySampling_SESSION()) {
        // Nobody told which code objects died while no session was running.
        _PySampling_SlotsClear(buffer->slots);
        buffer->slots_session = _PySampling_SESSION();
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
    size_t path_depth = (size_t)max_entries(buffer->depth_frames);
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


/* Capture. */

_PySampling_Time
_PySampling_TakeSpan(_PySampling_Thread *thread)
{
    return (struct _sampling_time){
        .wall_ns = _Py_atomic_exchange_uint64(&thread->span.wall_ns, 0),
        .cpu_ns = _Py_atomic_exchange_uint64(&thread->span.cpu_ns, 0),
    };
}

/* At the first safepoint of a run that began in C: the call is over, but what
   is due is due since it was under way.  NULL: the leaf is in no such call. */
static const struct _sampling_call *
call_that_was_resumed(const _PySampling_Thread *thread,
                      const _PyInterpreterFrame *frame,
                      const _Py_CODEUNIT *instr, int is_in_c)
{
    return !is_in_c && frame != NULL && thread->resumed.frame == frame
        && thread->resumed.instr == instr ? &thread->resumed : NULL;
}

/* Runs in the signal handler, on the thread, or at a safepoint. */
int
_PySampling_Capture(PyThreadState *tstate, _PySampling_Thread *thread,
                    uint64_t wall_ns, uint64_t cpu_ns, int is_in_c)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    _PyInterpreterFrame *frame = tstate->current_frame;
    _Py_CODEUNIT *instr = NULL;
    if (frame != NULL && frame->owner != FRAME_OWNED_BY_CSTACK) {
        instr = frame->instr_ptr;
    }

    struct capture *last = NULL;
    if (buffer->session != thread->session) {
        // What is left of another session may refer to dead code objects.
        buffer->session = thread->session;
        buffer->num_captures = 0;
        buffer->used = 0;
    }
    if (buffer->num_captures > 0) {
        last = &buffer->captures[buffer->num_captures - 1];
        if (last->frame != frame || last->instr != instr
            || last->context != tstate->context
            || last->gc_generation != thread->gc_generation)
        {
            last = NULL;
        }
    }
    if (last == NULL) {
        if (buffer->num_captures == MAX_PENDING
            || buffer->capacity - buffer->used
               < max_entries(buffer->depth_frames))
        {
            _PySampling_COUNT(captures_no_room, 1);
            return 0;
        }
        last = &buffer->captures[buffer->num_captures];
        *last = (struct capture){
            .first = buffer->used,
            .gc_generation = thread->gc_generation,
            .frame = frame,
            .instr = instr,
            .context = tstate->context,
        };
        const struct _sampling_call *call = call_that_was_resumed(
            thread, frame, instr, is_in_c);
        struct _sampling_walk w = {
            .interp = tstate->interp,
            .slots = buffer->slots,
            .names = _PyRuntime.sampling.options.names,
            .call = call,
            .out = buffer->frames + buffer->used,
        };
        int walked =
            _PySampling_Walk(&w, thread, frame, buffer->depth_frames,
                             is_in_c || call != NULL);
        assert(w.num_entries <= max_entries(buffer->depth_frames));
        last->depth = w.num_entries;
        thread->skip_ticks = walked / FRAMES_PER_SKIPPED_TICK;
        buffer->used += last->depth;
        buffer->num_captures++;
        _PySampling_COUNT(captures, 1);
    }
    else {
        _PySampling_COUNT(captures_merged, 1);
    }
    _PySampling_AddTime(&last->spent,
                        _PySampling_AccountRun(thread, wall_ns, cpu_ns));
    _PySampling_AddTime(&last->span, _PySampling_TakeSpan(thread));
    last->time_ns = thread->account.wall_ns;
    last->count++;
    _Py_set_eval_breaker_bit(tstate, _PY_SAMPLING_BIT);
    return 1;
}

/* If the signal took long, the thread stood at the instruction that the handler
   finds: the time since the tick is of that instruction. */
static void
capture_tick(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t wall_ns = _Py_atomic_load_uint64_relaxed(&thread->tick_wall_ns);
    uint64_t cpu_ns = _Py_atomic_load_uint64_relaxed(&thread->tick_cpu_ns);
    if (now_ns - wall_ns > _PySampling_LATE_NS
        && !_PyRuntime.sampling.options.manual)
    {
        wall_ns = now_ns;
        cpu_ns = _PySampling_CpuNow(thread);
    }
    _PySampling_Capture(tstate, thread, wall_ns, cpu_ns, 1);
    _PySampling_COUNT(overhead_capture_ns,
                      _PySampling_MonotonicNow() - now_ns);
}

/* The signal meets a thread that gives the GIL up: in the microseconds that a
   signal takes, its run has come to an end.  All ticks reach a thread that much
   later than the clock looked, so this one is due in the thread's next run, as
   long after its beginning as the signal came after the end of this one.  Else
   the ends of runs would be sampled too often, and their beginnings never. */
static void
put_off_tick(_PySampling_Thread *thread)
{
    thread->overdue_ns = thread->settling_ns + 1;
    _PySampling_COUNT(signals_overdue, 1);
}

int
_PySampling_CaptureOverdue(PyThreadState *tstate, _PySampling_Thread *thread,
                           int is_in_c)
{
    uint64_t now_ns = _PySampling_WallNow();
    if (now_ns < thread->attached_ns + thread->overdue_ns) {
        return 0;
    }
    thread->overdue_ns = 0;
    _PySampling_Capture(tstate, thread, now_ns, _PySampling_CpuNow(thread),
                        is_in_c);
    return 1;
}

/* The thread's own timer is late, or could not be in time.  At a safepoint. */
void
_PySampling_CaptureDue(PyThreadState *tstate, _PySampling_Thread *thread)
{
    uint64_t now_ns = _PySampling_WallNow();
    if (_PySampling_TimerTakeDue(thread, now_ns)) {
        _PySampling_Capture(tstate, thread, now_ns,
                            _PySampling_CpuNow(thread), 0);
    }
}

/* The same at the end of its run, when no signal comes any more. */
void
_PySampling_CaptureLast(PyThreadState *tstate, _PySampling_Thread *thread,
                        int is_in_c)
{
    uint64_t now_ns = _PySampling_WallNow();
    if (_PySampling_TimerTakeLast(thread, now_ns)) {
        _PySampling_Capture(tstate, thread, now_ns,
                            _PySampling_CpuNow(thread), is_in_c);
    }
}

/* May this signal capture the thread?  Counts why not. */
static int
may_capture(_PySampling_Thread *thread)
{
    if (thread->in_hook) {
        _PySampling_COUNT(captures_in_hook, 1);
        return 0;
    }
    if (thread->skip_ticks > 0) {
        thread->skip_ticks--;
        _PySampling_COUNT(captures_skipped, 1);
        return 0;
    }
    return 1;
}

/* The clock has asked. */
static void
handle_question(PyThreadState *tstate, _PySampling_Thread *thread)
{
    if (!may_capture(thread)) {
        // What the tick stands for goes to the next capture.
    }
    else if (thread->is_settling) {
        put_off_tick(thread);
    }
    else {
        capture_tick(tstate, thread);
    }
    if (!thread->is_settling) {
        // A long run need not be looked at for ever.
        (void)_PySampling_TimerBegin(thread, thread->tick_wall_ns + 1);
    }
}

/* The thread's own timer has fired. */
static void
handle_timer(PyThreadState *tstate, _PySampling_Thread *thread, void *context)
{
    uint64_t now_ns = _PySampling_MonotonicNow();
    uint64_t deadline_ns = _PySampling_TimerHear(thread, now_ns);
    if (deadline_ns == 0) {
        return;
    }
    _PySampling_MetCall met = _PySampling_SignalMet(context);
    if (met != _PySampling_NO_CALL) {
        _PySampling_TimersNoMore();
    }
    if (met == _PySampling_CALL_CUT) {
        _PySampling_COUNT(calls_interrupted, 1);
    }
    if (may_capture(thread)) {
        _PySampling_Capture(tstate, thread, now_ns,
                            _PySampling_CpuNow(thread), 1);
    }
    _PySampling_TimerGoOn(thread, deadline_ns, now_ns);
    _PySampling_COUNT(overhead_capture_ns,
                      _PySampling_MonotonicNow() - now_ns);
}

/* Runs on whatever thread the signal reached.  No lock, no allocation, no
   system call but clock_gettime(), sigaction() and those of timers. */
void
_PySampling_SignalHandler(int signum, void *siginfo, void *context)
{
    int saved_errno = errno;
    const siginfo_t *info = siginfo;
    PyThreadState *tstate = _PyThreadState_GET();
    if (tstate == NULL) {
        _PySampling_COUNT(signals_late, 1);
        return;
    }
    _PySampling_Thread *thread = ((_PyThreadStateImpl *)tstate)->sampling;
    int is_timer = info->si_code == SI_TIMER;
    if (thread == NULL || !_PySampling_IsFromClock(info)
        || (!is_timer && _Py_atomic_load_int_acquire(&thread->asked)
                         == _PySampling_NOT_ASKED))
    {
        _PySampling_COUNT(signals_stray, 1);
        errno = saved_errno;
        return;
    }
    if (!_PySampling_ACTIVE()
        || !_PySampling_IN_SESSION(thread))
    {
        _PySampling_COUNT(signals_late, 1);
    }
    else if (is_timer) {
        handle_timer(tstate, thread, context);
    }
    else {
        handle_question(tstate, thread);
    }
    if (!is_timer) {
        _Py_atomic_store_int_release(&thread->asked, _PySampling_NOT_ASKED);
    }
    errno = saved_errno;
}


/* Drain. */

/* How far up the stack a frame of the same file is looked for. */
#define MAX_GLOBALS_FRAMES 64

/* The globals of a frame that still runs `code`.  A leaf that has returned
   meanwhile is of the same module as any frame whose code came from the same
   compilation: those share one object as their file name.  NULL: none. */
static PyObject *
globals_of(PyThreadState *tstate, PyCodeObject *code)
{
    int steps = 0;
    for (_PyInterpreterFrame *frame = tstate->current_frame;
         frame != NULL && steps < MAX_GLOBALS_FRAMES;
         frame = frame->previous, steps++)
    {
        if (!_PySampling_IsArtificial(frame)
            && _PyFrame_GetCode(frame)->co_filename == code->co_filename)
        {
            return frame->f_globals;
        }
    }
    return NULL;
}

/* The node of one entry, whose caller's is `node`.  A mark says more about the
   entry that follows and has no node of its own; nor has C code that is not
   to be named. */
static uint32_t
intern_entry(struct _sampling_tables *tables, PyThreadState *tstate,
             uint32_t node, const _PySampling_Frame *entry, int has_mark)
{
    if (_PySampling_IsMark(*entry)) {
        return node;
    }
    if (_PySampling_IsCallee(*entry)) {
        uint32_t frame = _PySampling_TablesCallee(tables, tstate->interp,
                                                  entry[0], entry[1]);
        return frame == UINT32_MAX
            ? node : _PySampling_TablesChild(tables, node, frame);
    }
    int opcode = has_mark ? _PySampling_OpcodeOfMark(entry[1]) : 0;
    PyObject *globals = NULL;
    if (_PySampling_TablesWantsModule(tables, entry->code)) {
        globals = globals_of(tstate, entry->code);
    }
    return _PySampling_TablesChild(
        tables, node,
        _PySampling_TablesFrame(tables, *entry, opcode, globals));
}

/* How many entries of a stack say what the leaf frame does. */
static int
entries_above_leaf(const _PySampling_Frame *frames, int depth)
{
    int n = 0;
    while (n < depth && (frames[n].code == NULL
                         || _PySampling_IsCallee(frames[n])))
    {
        n++;
    }
    return n;
}

/* The node of a stack given leaf first.  What it shares with the last stack,
   from the root on, is not looked up again. */
static uint32_t
intern_stack(struct _sampling_tables *tables, struct _sampling_buffer *buffer,
             PyThreadState *tstate, const _PySampling_Frame *frames,
             int depth)
{
    if (buffer->path_serial != tables->serial
        || buffer->path_version != tables->code_version)
    {
        buffer->path_serial = tables->serial;
        buffer->path_version = tables->code_version;
        buffer->path_depth = 0;
    }
    int shared = Py_MIN(depth, buffer->path_depth);
    int i = 0;
    const _PySampling_Frame *entry = frames + depth - 1;
    while (i < shared && entry->code == buffer->path[i].code
           && entry->instr == buffer->path[i].instr)
    {
        i++;
        entry--;
    }
    if (depth > 0 && i == depth && tables->functions_without_module != 0) {
        int leaf = entries_above_leaf(frames, depth);
        if (leaf < depth
            && _PySampling_TablesWantsModule(tables, frames[leaf].code))
        {
            // Give it another chance to tell its module.
            i = depth - 1 - leaf;
            entry = frames + leaf;
        }
    }
    uint32_t node = i > 0 ? buffer->path_nodes[i - 1] : 0;
    for (; i < depth; i++, entry--) {
        int has_mark = i > 0 && _PySampling_IsMark(entry[1]);
        node = intern_entry(tables, tstate, node, entry, has_mark);
        if (node == _PySampling_NO_NODE) {
            break;
        }
        buffer->path[i] = *entry;
        buffer->path_nodes[i] = node;
    }
    buffer->path_depth = i;
    return node;
}

/* Turns the captures that wait into samples.  Runs on the thread, which is
   attached, at a safepoint; allocates no Python object. */
void
_PySampling_Drain(PyThreadState *tstate, _PySampling_Thread *thread)
{
    struct _sampling_runtime_state *state = &_PyRuntime.sampling;
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    if (buffer == NULL || buffer->num_captures == 0
        || buffer->session != thread->session)
    {
        return;
    }
    assert(thread->in_hook);
    uint64_t before_ns = _PySampling_MonotonicNow();
    PyMutex_LockFlags(&state->tables_mutex, _Py_LOCK_DONT_DETACH);
    struct _sampling_tables *tables = _PySampling_TABLES_OF(thread);
    for (int i = 0; tables != NULL && i < buffer->num_captures; i++) {
        const struct capture *capture = &buffer->captures[i];
        uint32_t node = intern_stack(tables, buffer, tstate,
                                     buffer->frames + capture->first,
                                     capture->depth);
        uint32_t labels =
            _PySampling_LabelsOf(tables, tstate, capture->context);
        _PySampling_Weigh(thread, _PySampling_ON_GIL,
                          &(struct _sampling_pending){
            .time_ns = capture->time_ns,
            .count = capture->count,
            .span = capture->span,
            .node = node,
            .labels = labels,
            .state = capture->gc_generation >= 0
                ? _PySampling_GC : _PySampling_RUNNING,
        }, capture->spent);
        _PySampling_HoldersSaw(thread, node, capture->time_ns);
        if (node != _PySampling_NO_NODE && capture->gc_generation < 0
            && !thread->excluded)
        {
            thread->last_node = node;
            thread->last_labels = labels;
        }
    }
    PyMutex_Unlock(&state->tables_mutex);
    buffer->num_captures = 0;
    buffer->used = 0;
    _PySampling_SlotsKeep(buffer->slots);
    _PySampling_COUNT(overhead_drain_ns,
                      _PySampling_MonotonicNow() - before_ns);
}

/* Frames that tell what a thread is for: those of threading.Thread, and the
   target that it calls. */
#define OUTERMOST_FRAMES 4

static uint32_t
walk_node(PyThreadState *tstate, _PySampling_Thread *thread,
          _PyInterpreterFrame *frame, int names, int is_in_c, int max_depth,
          const struct _sampling_call *call)
{
    struct _sampling_buffer *buffer = tstate->interp->sampling.buffer;
    assert(buffer->num_captures == 0
           || buffer->session != thread->session);
    struct _sampling_walk w = {
        .interp = tstate->interp,
        .slots = buffer->slots,
        .names = names,
        .call = call,
        .out = buffer->frames,
    };
    _PySampling_Walk(&w, thread, frame, buffer->depth_frames, is_in_c);
    _PySampling_SlotsKeep(buffer->slots);
    int skip = w.num_entries > max_depth ? w.num_entries - max_depth : 0;
    return intern_stack(_PyRuntime.sampling.tables, buffer, tstate,
                        buffer->frames + skip, w.num_entries - skip);
}

uint32_t
_PySampling_WalkNode(PyThreadState *tstate, _PySampling_Thread *thread,
                     int is_in_c)
{
    return walk_node(tstate, thread, tstate->current_frame,
                     _PyRuntime.sampling.options.names, is_in_c, INT_MAX,
                     NULL);
}

uint32_t
_PySampling_SleeperNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _PyInterpreterFrame *frame = tstate->current_frame;
    int is_known = frame != NULL
        && _Py_atomic_load_ptr_acquire(&thread->sleeper.frame) == frame
        && thread->sleeper.instr == frame->instr_ptr;
    struct _sampling_call call = thread->sleeper;
    _Py_atomic_store_ptr_relaxed(&thread->sleeper.frame, NULL);
    return walk_node(tstate, thread, frame,
                     _PyRuntime.sampling.options.names, is_known, INT_MAX,
                     is_known ? &call : NULL);
}

uint32_t
_PySampling_CallerNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    _PyInterpreterFrame *frame = tstate->current_frame;
    while (frame != NULL && _PySampling_IsArtificial(frame)) {
        frame = frame->previous;
    }
    return walk_node(tstate, thread, frame != NULL ? frame->previous : NULL,
                     _PyRuntime.sampling.options.names, 0, INT_MAX, NULL);
}

uint32_t
_PySampling_RootNode(PyThreadState *tstate, _PySampling_Thread *thread)
{
    return walk_node(tstate, thread, tstate->current_frame, 0, 0,
                     OUTERMOST_FRAMES, NULL);
}

#endif  // _PySampling_SUPPORTED
