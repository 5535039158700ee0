/* Sampling profiler: blocks of profile(), and regions.

   A block is profiled from its beginning to its end, whoever else profiles
   meanwhile: all share the tables, and a block that was not the first has what
   they got since it began.  Blocks may overlap in any order.  A deferred
   session samples while anybody is in a region.  Must not know how the engine
   is turned on and off (session/engine.c), or how tables are subtracted
   (tables/mark.c). */

#include "Python.h"

#include "session.h"

#include <errno.h>

#define STATE (&_PyRuntime.sampling)


/* The list. */

static void
link_block(struct _sampling_block *block)
{
    _PySampling_LINK(STATE->blocks, block);
    block->is_open = 1;
}

static void
unlink_block(struct _sampling_block *block)
{
    _PySampling_UNLINK(STATE->blocks, block);
    block->is_open = 0;
}

void
_PySampling_BlocksEnd(PyThreadState *tstate)
{
    _PySampling_LockControl();
    if (STATE->blocks != NULL && !_PySampling_ForkedWithoutHooks()) {
        while (STATE->blocks != NULL) {
            unlink_block(STATE->blocks);
        }
        (void)_PySampling_EngineReconfigure(tstate);
    }
    _PySampling_UnlockControl();
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
            && asked->signal != _PySampling_ClockSignal()))
    {
        return _PySampling_ERR_OPTIONS;
    }
    // Samples are the same in both modes.
    if (asked->mode != _PySampling_ANY_MODE) {
        options->mode = asked->mode;
    }
    return _PySampling_OK;
}

/* Those of subscribers, or the defaults. */
static _PySampling_Status
be_first(PyThreadState *tstate, const _PySampling_Options *asked,
         _PySampling_Options *options)
{
    *options = *asked;
    if (options->mode == _PySampling_ANY_MODE) {
        options->mode = _PySampling_WALL;
    }
    if (options->rate_hz == 0) {
        options->rate_hz = _PySampling_DEFAULT_RATE_HZ;
    }
    _PySampling_FillOptions(options);
    _PySampling_Status status = _PySampling_ShareAnew(tstate, options);
    if (status == _PySampling_OK) {
        STATE->session_options = *options;
    }
    return status;
}

static _PySampling_Status
begin_locked(PyThreadState *tstate, const _PySampling_Options *asked,
             struct _sampling_block *block)
{
    _PySampling_Status status = _PySampling_MayBegin();
    if (status != _PySampling_OK) {
        return status;
    }
    int joins = _PySampling_IsRunning();
    status = joins ? join(asked, &block->options)
                   : be_first(tstate, asked, &block->options);
    if (status != _PySampling_OK) {
        return status;
    }
    link_block(block);
    status = _PySampling_EngineReconfigure(tstate);
    if (status == _PySampling_OK && joins) {
        block->begin = calloc(1, sizeof(*block->begin));
        if (block->begin == NULL || !_PySampling_Flush(tstate)
            || !_PySampling_EngineMark(block->begin, NULL))
        {
            status = _PySampling_ERR_NO_MEMORY;
        }
    }
    if (status != _PySampling_OK) {
        int saved_errno = errno;
        unlink_block(block);
        (void)_PySampling_EngineReconfigure(tstate);
        errno = saved_errno;
    }
    return status;
}

static void
free_block(struct _sampling_block *block)
{
    _PySampling_MarkFree(block->begin);
    free(block);
}

_PySampling_Status
_PySampling_BlockBegin(PyThreadState *tstate,
                       const _PySampling_Options *asked,
                       struct _sampling_block **result)
{
    struct _sampling_block *block = calloc(1, sizeof(*block));
    if (block == NULL) {
        return _PySampling_ERR_NO_MEMORY;
    }
    _PySampling_LockControl();
    _PySampling_Status status = begin_locked(tstate, asked, block);
    _PySampling_UnlockControl();
    if (status != _PySampling_OK) {
        free_block(block);
        block = NULL;
    }
    *result = block;
    return status;
}


/* End. */

static _PySampling_Status
end_locked(PyThreadState *tstate, struct _sampling_block *block,
           struct _sampling_tables **result)
{
    int goes_on = STATE->has_session || STATE->blocks != block
        || block->next != NULL;
    _PySampling_Status status =
        _PySampling_TakeTables(tstate, goes_on, result);
    unlink_block(block);
    if (STATE->tables != NULL) {
        int saved_errno = errno;
        _PySampling_Status fit = _PySampling_EngineReconfigure(tstate);
        if (status == _PySampling_OK) {
            status = fit;
        }
        errno = saved_errno;
    }
    return status;
}

_PySampling_Status
_PySampling_BlockEnd(PyThreadState *tstate, struct _sampling_block *block,
                     struct _sampling_tables **result)
{
    *result = NULL;
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_OK;
    }
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (block->is_open) {
        status = end_locked(tstate, block, result);
    }
    _PySampling_UnlockControl();
    if (*result == NULL) {
        return status;
    }
    (*result)->options = block->options;
    if (status == _PySampling_OK
        && !_PySampling_TablesFinish(*result, block->begin))
    {
        status = _PySampling_ERR_NO_MEMORY;
    }
    if (status != _PySampling_OK) {
        _PySampling_TablesFree(*result);
        *result = NULL;
    }
    return status;
}

void
_PySampling_BlockFree(PyThreadState *tstate, struct _sampling_block *block)
{
    if (!_PySampling_ForkedWithoutHooks()) {
        _PySampling_LockControl();
        if (block->is_open) {
            unlink_block(block);
            (void)_PySampling_EngineReconfigure(tstate);
        }
        _PySampling_UnlockControl();
    }
    free_block(block);
}


/* Regions. */

_PySampling_Status
_PySampling_RegionEnter(PyThreadState *tstate, unsigned int *number)
{
    *number = STATE->num_forks;
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_OK;      // the program goes on, unsampled
    }
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    STATE->num_regions++;
    if (STATE->num_regions == 1 && _PySampling_IsDeferred()) {
        status = _PySampling_EngineReconfigure(tstate);
        if (status != _PySampling_OK) {
            STATE->num_regions--;
        }
    }
    _PySampling_UnlockControl();
    return status;
}

_PySampling_Status
_PySampling_RegionLeave(PyThreadState *tstate, unsigned int number)
{
    if (_PySampling_ForkedWithoutHooks()) {
        return _PySampling_OK;
    }
    _PySampling_Status status = _PySampling_OK;
    _PySampling_LockControl();
    if (number == STATE->num_forks && STATE->num_regions > 0) {
        STATE->num_regions--;
        if (STATE->num_regions == 0 && _PySampling_IsDeferred()) {
            status = _PySampling_EngineReconfigure(tstate);
        }
    }
    _PySampling_UnlockControl();
    return status;
}
