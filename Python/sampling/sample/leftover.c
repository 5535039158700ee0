/* Sampling profiler: time that no tick will see any more.

   Owns what becomes of time that is carried or goes on when a thread ends, a
   session ends or a profile is taken.  Records are made as in sample/record.c.
   Must not know how time is measured (sample/account.c), shared
   (sample/weights.c) or kept (sinks/). */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../tables/labels.h"
#include "record.h"

/* Running time of a thread none of whose samples waits to share it. */
static void
record_unshared_run(const struct _sampling_place *root,
                    struct _sampling_time time)
{
    const _PySampling_Thread *thread = root->thread;
    struct _sampling_place place = *root;
    _PySampling_State state = _PySampling_RUNNING;
    if (thread->last_node != 0) {
        place.node = thread->last_node;
        place.labels = thread->last_labels;
    }
    else {
        place = _PySampling_PlaceBelow(root, _PySampling_PSEUDO_UNSAMPLED);
        state = _PySampling_UNSAMPLED;
    }
    _PySampling_Record(&place, state, 0, time.cpu_ns, time.wall_ns);
}

static void
record_unshared_block(const struct _sampling_place *root, uint64_t cpu_ns,
                      uint64_t wall_ns)
{
    const _PySampling_Thread *thread = root->thread;
    struct _sampling_place place = *root;
    if (thread->last_off_node != 0) {
        place.node = thread->last_off_node;
        place.labels = thread->last_off_labels;
    }
    _PySampling_RecordNoGIL(&place, 0, cpu_ns, cpu_ns, wall_ns);
}

/* The samples that wait take the time, if there are any. */
static void
share_out(_PySampling_Thread *thread, _PySampling_Window window,
          struct _sampling_time *time)
{
    if (_PySampling_WeighAll(thread, window, *time)) {
        *time = (struct _sampling_time){0};
    }
}

static void
record_leftover(struct _sampling_tables *tables, _PySampling_Thread *thread,
                struct _sampling_leftover *rest)
{
    struct _sampling_time off = {.cpu_ns = rest->off_cpu_ns};
    share_out(thread, _PySampling_OFF_GIL, &off);
    if (rest->blocked_ns == 0) {
        // No short interval is left that could have burnt it.
        rest->run.cpu_ns += off.cpu_ns;
        off.cpu_ns = 0;
    }
    rest->off_cpu_ns = off.cpu_ns;
    share_out(thread, _PySampling_ON_GIL, &rest->run);
    struct _sampling_place root = {
        .thread = thread,
        .node = thread->root_node,
        .labels = _PySampling_LabelsOf(tables, thread->tstate,
                                       thread->tstate->context),
    };
    if (rest->run.wall_ns != 0 || rest->run.cpu_ns != 0) {
        record_unshared_run(&root, rest->run);
    }
    if (rest->blocked_ns != 0 || rest->off_cpu_ns != 0) {
        record_unshared_block(&root, rest->off_cpu_ns, rest->blocked_ns);
    }
    if (rest->wait_ns != 0) {
        // Of many waits that no tick hit.
        struct _sampling_place leaf =
            _PySampling_PlaceBelow(&root, _PySampling_PSEUDO_GIL_WAIT);
        leaf.holder = _PySampling_HolderNotKnown();
        _PySampling_Record(&leaf, _PySampling_GIL_WAIT, 0, 0, rest->wait_ns);
    }
}

/* What is carried is the program's, even if the thread serves a subscriber
   now. */
static void
record_carried(_PySampling_Thread *thread)
{
    _PySampling_Exclusion excluded = thread->excluded;
    if (excluded) {
        _PySampling_AccountSetAside(thread, _PySampling_NOT_EXCLUDED);
    }
    struct _sampling_leftover rest = _PySampling_AccountTakeAll(thread);
    struct _sampling_tables *tables = _PySampling_OpenTables(thread);
    if (tables != NULL) {
        record_leftover(tables, thread, &rest);
        _PySampling_DelaysFlush(thread);
        _PySampling_CloseTables();
    }
    thread->residue_cpu_ns = rest.run.cpu_ns + rest.off_cpu_ns;
    thread->residue_wall_ns =
        rest.run.wall_ns + rest.blocked_ns + rest.wait_ns;
    if (excluded) {
        _PySampling_AccountSetAside(thread, excluded);
    }
}

void
_PySampling_RecordAll(_PySampling_Thread *thread, uint64_t now_ns)
{
    struct _sampling_account *a = &thread->account;
    _PySampling_ENTER_HOOK(thread);
    if (thread->shadowed) {
        // Another thread state has the OS thread's time since it detached.
    }
    else if (a->detached_ns != 0) {
        _PySampling_RecordOffGIL(thread->tstate, thread, now_ns, 1);
        a->detached_ns = now_ns;
    }
    else {
        _PySampling_AccountAdvance(thread, now_ns);
    }
    record_carried(thread);
    _PySampling_LEAVE_HOOK(thread);
}

void
_PySampling_RecordEnd(_PySampling_Thread *thread, uint64_t now_ns)
{
    _PySampling_RecordAll(thread, now_ns);
    if (thread->overdue.after_ns != 0) {
        // There is no next run in which that tick could be captured.
        thread->overdue = (struct _sampling_overdue){0};
        _PySampling_COUNT(signals_late, 1);
    }
}

static void
share_carried(_PySampling_Thread *thread)
{
    struct _sampling_carries *c = &thread->account.carried;
    if (_PySampling_OpenTables(thread) != NULL) {
        share_out(thread, _PySampling_ON_GIL, &c->run);
        struct _sampling_time off = {.cpu_ns = c->off_cpu_ns};
        share_out(thread, _PySampling_OFF_GIL, &off);
        c->off_cpu_ns = off.cpu_ns;
        _PySampling_CloseTables();
    }
}

void
_PySampling_RecordBlocked(_PySampling_Thread *thread, uint64_t now_ns)
{
    if (thread->shadowed || !_PySampling_AccountIsLong(thread, now_ns)) {
        return;
    }
    _PySampling_ENTER_HOOK(thread);
    _PySampling_RecordOffGIL(thread->tstate, thread, now_ns, 1);
    thread->account.detached_ns = now_ns;
    // What is carried, and where it goes, is a subscriber's meanwhile.
    if (!thread->excluded && _PySampling_AccountIsIdle(thread, now_ns)) {
        share_carried(thread);
    }
    _PySampling_LEAVE_HOOK(thread);
}
