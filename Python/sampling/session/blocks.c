/* Sampling profiler: blocks of profile(), and regions.

   A block is profiled from its beginning to its end, whoever else profiles
   meanwhile.  Blocks may overlap in any order.  A deferred session samples
   while anybody is in a region, or in a block.  Must not know how the engine
   is turned on and off (session/engine.c). */

#include "Python.h"

#include "session.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)


/* Regions. */

static int
is_deferred(void)
{
    return STATE->session != NULL && STATE->session->options.is_deferred;
}

static _PySampling_Status
enter(PyThreadState *tstate)
{
    _PySampling_Status status = _PySampling_OK;
    STATE->num_regions++;
    if (STATE->num_regions == 1 && is_deferred()) {
        status = STATE->session->is_linked
            ? _PySampling_EngineReconfigure(tstate)
            : _PySampling_OpenSink(tstate, STATE->session);
        if (status != _PySampling_OK) {
            STATE->num_regions--;
        }
    }
    return status;
}

static _PySampling_Status
leave(PyThreadState *tstate)
{
    STATE->num_regions--;
    if (STATE->num_regions > 0 || !is_deferred()) {
        return _PySampling_OK;
    }
    if (_PySampling_IsLast(STATE->session)) {
        return _PySampling_EngineReconfigure(tstate);
    }
    // What is up to now is of it; the others go on.
    _PySampling_Status status = _PySampling_Flush(tstate)
        ? _PySampling_OK : _PySampling_ERR_NO_MEMORY;
    (void)_PySampling_CloseSink(tstate, STATE->session);
    return status;
}

_PySampling_Status
_PySampling_RegionEnter(PyThreadState *tstate, unsigned int *number)
{
    *number = STATE->num_forks;
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_OK;      // the program goes on, unsampled
    }
    _PySampling_LockControl();
    _PySampling_Status status = enter(tstate);
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_RegionLeave(PyThreadState *tstate, unsigned int number)
{
    _PySampling_Status status = _PySampling_OK;
    if (_PySampling_ForkedWithoutHooks()) {
        return status;
    }
    _PySampling_LockControl();
    if (number == STATE->num_forks && STATE->num_regions > 0) {
        status = leave(tstate);
    }
    _PySampling_UnlockControl();
    return status;
}


/* Begin. */

/* The options of the session, where none are asked for. */
static _PySampling_Status
join(const _PySampling_Options *asked, _PySampling_Options *options)
{
    *options = STATE->session_options;
    if ((asked->rate_hz != 0 && asked->rate_hz != options->rate_hz)
        || (asked->depth_frames != 0
            && asked->depth_frames != options->depth_frames)
        || (asked->names >= 0 && asked->names != options->names)
        || (asked->signal != 0
            && asked->signal != _PySampling_ClockSignal())
        || !_PySampling_AllocMayJoin(asked->alloc_bytes))
    {
        return _PySampling_ERR_OPTIONS;
    }
    if (asked->alloc_bytes != 0) {
        options->alloc_bytes = asked->alloc_bytes;
    }
    // Samples are the same in both modes.
    if (asked->mode != _PySampling_ANY_MODE) {
        options->mode = asked->mode;
    }
    return _PySampling_OK;
}

/* Those of subscribers, or the defaults. */
static _PySampling_Status
be_first(const _PySampling_Options *asked, _PySampling_Options *options)
{
    *options = *asked;
    if (options->mode == _PySampling_ANY_MODE) {
        options->mode = _PySampling_WALL;
    }
    if (options->rate_hz == 0) {
        options->rate_hz = _PySampling_DEFAULT_RATE_HZ;
    }
    _PySampling_FillOptions(options);
    _PySampling_Status status = _PySampling_TablesEnsureOrCheck(options);
    if (status == _PySampling_OK) {
        STATE->session_options = *options;
    }
    return status;
}

static _PySampling_Status
begin_locked(PyThreadState *tstate, const _PySampling_Options *asked,
             struct _sampling_sink **result)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status != _PySampling_OK) {
        return status;
    }
    _PySampling_Options options;
    status = _PySampling_IsRunning() ? join(asked, &options)
                                     : be_first(asked, &options);
    if (status != _PySampling_OK) {
        return status;
    }
    options.has_timeline = asked->has_timeline;
    struct _sampling_sink *block = _PySampling_SinkNew(&options);
    status = block != NULL ? enter(tstate) : _PySampling_ERR_NO_MEMORY;
    int has_entered = status == _PySampling_OK;
    if (has_entered) {
        status = _PySampling_OpenSink(tstate, block);
    }
    if (status == _PySampling_OK) {
        *result = block;
        return status;
    }
    int saved_errno = errno;
    if (has_entered) {
        (void)leave(tstate);
    }
    _PySampling_SinkFree(block);
    (void)_PySampling_EngineReconfigure(tstate);
    errno = saved_errno;
    return status;
}

_PySampling_Status
_PySampling_BlockBegin(PyThreadState *tstate,
                       const _PySampling_Options *asked,
                       struct _sampling_sink **result)
{
    *result = NULL;
    _PySampling_LockControl();
    _PySampling_Status status = begin_locked(tstate, asked, result);
    _PySampling_UnlockControl();
    return status;
}


/* End. */

static void
close_block(PyThreadState *tstate, struct _sampling_sink *block)
{
    (void)_PySampling_CloseSink(tstate, block);
    (void)leave(tstate);
}

typedef _PySampling_Status (*take_function)(PyThreadState *tstate,
                                            struct _sampling_sink *block,
                                            struct _sampling_taken *taken);

// Hand over what a block has, unless it is closed, by one of these.
static _PySampling_Status
hand_over(PyThreadState *tstate, struct _sampling_sink *block,
          take_function take, struct _sampling_profile **result)
{
    *result = NULL;
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_OK;
    }
    struct _sampling_taken taken;
    _PySampling_LockControl();
    int is_open = block->is_open;
    _PySampling_Status status =
        is_open ? take(tstate, block, &taken) : _PySampling_OK;
    _PySampling_UnlockControl();
    return is_open && status == _PySampling_OK
        ? _PySampling_HandOver(&taken, result) : status;
}

static _PySampling_Status
end_locked(PyThreadState *tstate, struct _sampling_sink *block,
           struct _sampling_taken *taken)
{
    uint64_t end_ns = _PySampling_SinkEnd(tstate, block);
    _PySampling_TakeAll(
        block, end_ns != 0 ? end_ns : _PySampling_FlushedNow(), taken);
    close_block(tstate, block);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_BlockEnd(PyThreadState *tstate, struct _sampling_sink *block,
                     struct _sampling_profile **result)
{
    return hand_over(tstate, block, end_locked, result);
}

static _PySampling_Status
renew_locked(PyThreadState *tstate, struct _sampling_sink *block,
             struct _sampling_taken *taken)
{
    if (!_PySampling_Flush(tstate)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    uint64_t end_ns = _PySampling_FlushedNow();
    if (!_PySampling_TakeSoFar(block, end_ns, taken)) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_BeginSinkAnew(block, end_ns);
    return _PySampling_OK;
}

_PySampling_Status
_PySampling_BlockRenew(PyThreadState *tstate, struct _sampling_sink *block,
                       struct _sampling_profile **result)
{
    return hand_over(tstate, block, renew_locked, result);
}

void
_PySampling_BlockFree(PyThreadState *tstate, struct _sampling_sink *block)
{
    if (_PySampling_ForkedWithoutHooks()) {
        _PySampling_SinkFree(block);
        return;
    }
    _PySampling_LockControl();
    if (block->is_open) {
        close_block(tstate, block);
    }
    _PySampling_SinkFree(block);
    _PySampling_UnlockControl();
}

void
_PySampling_BlocksEnd(PyThreadState *tstate)
{
    _PySampling_LockControl();
    struct _sampling_sink *block = STATE->sinks;
    while (block != NULL && !_PySampling_ForkedWithoutHooks()) {
        struct _sampling_sink *next = block->next;
        if (block != STATE->session && !block->is_subscription) {
            close_block(tstate, block);
        }
        block = next;
    }
    _PySampling_UnlockControl();
}
