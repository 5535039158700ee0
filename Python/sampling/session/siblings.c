/* Sampling profiler: thread states that take turns on one OS thread.

   _interpreters.exec() runs another interpreter on the caller's thread, and C
   code may swap thread states as it likes.  Each of them has a record, but the
   OS thread has one clock, so only one record at a time goes on with it: the
   one that attached last.  The others are *inactive* until they attach again.

   Owns the rings of records that share an OS thread.  Must not know how time
   is recorded. */

#include "Python.h"

#include "pycore_interp.h"            // PyInterpreterState.sampling
#include "pycore_runtime.h"           // _PyRuntime

#include "../clock/clock.h"
#include "../sample/sample.h"
#include "session.h"

/* The ring of `thread` is all records with its native id, or NULL if it is
   the only one.  Lock: runtime->sampling.mutex. */

static _PySampling_Thread *
find_sibling(_PySampling_Thread *thread)
{
    for (struct _sampling_interpreter_state *s =
             _PyRuntime.sampling.interpreters; s != NULL; s = s->next)
    {
        for (_PySampling_Thread *t = s->threads; t != NULL; t = t->next) {
            if (t != thread && t->native_id == thread->native_id) {
                return t;
            }
        }
    }
    return NULL;
}

/* A record enters an epoch.  `is_alone`: its OS thread is known to have no
   other thread state, which saves the search. */
void
_PySampling_SiblingsLink(_PySampling_Thread *thread, int is_alone)
{
    if (thread->sibling != NULL) {
        return;         // of an earlier epoch
    }
    _PySampling_Thread *other = is_alone ? NULL : find_sibling(thread);
    if (other == NULL) {
        return;
    }
    if (other->sibling == NULL) {
        other->sibling = other;
    }
    thread->sibling = other->sibling;
    other->sibling = thread;
    thread->inactive_on_os_thread = 1;
}

/* The record goes away. */
void
_PySampling_SiblingsUnlink(_PySampling_Thread *thread)
{
    _PySampling_Thread *next = thread->sibling;
    if (next == NULL) {
        return;
    }
    if (!thread->inactive_on_os_thread) {
        next->inactive_on_os_thread = 0;
        if (next->epoch == thread->epoch) {
            _PySampling_AccountHandOver(thread, next);
            (void)_PySampling_RunSet(next, _PySampling_DETACHED);
            _PySampling_TicksBegin(next);
        }
    }
    _PySampling_Thread *last = next;
    while (last->sibling != thread) {
        last = last->sibling;
    }
    last->sibling = last == next ? NULL : next;
    thread->sibling = NULL;
    thread->inactive_on_os_thread = 0;
}

/* The record goes on with the clock, and the others are inactive.  With the
   registry locked.  Returns the record that had the clock, or NULL. */
static _PySampling_Thread *
choose(_PySampling_Thread *thread)
{
    _PySampling_Thread *before = NULL;
    for (_PySampling_Thread *t = thread->sibling;
         t != NULL && t != thread; t = t->sibling)
    {
        if (!t->inactive_on_os_thread) {
            before = t;
            t->inactive_on_os_thread = 1;
            (void)_PySampling_RunSet(t, _PySampling_INACTIVE);
        }
    }
    thread->inactive_on_os_thread = 0;
    _PySampling_TicksBegin(thread);
    return before;
}

/* At the start of a session all records start alike: the one of the thread
   state that runs has the clock. */
void
_PySampling_SiblingsChoose(_PySampling_Thread *thread)
{
    (void)choose(thread);
}

/* The record's thread state runs now: it goes on from where the other one
   left the clock. */
void
_PySampling_SiblingsTakeOver(_PySampling_Thread *thread)
{
    _PySampling_LockRegistry();
    _PySampling_Thread *before = choose(thread);
    if (before != NULL && before->epoch == thread->epoch) {
        _PySampling_AccountHandOver(before, thread);
        // Both were off their GILs since, or one of them ran until just now:
        // as if a tick had noted it then.
        thread->tick = (struct _sampling_tick){
            .number = _Py_atomic_load_uint64_relaxed(
                          &_PyRuntime.sampling.tick_number) + 1,
            .at_ns = thread->account.wall_ns,
            .cpu_ns = thread->account.cpu_ns,
            .is_asleep = 1,
        };
        thread->waiting_since_ns = 0;
        // As whoever notes one does: it asks to get ticks again.
        _PySampling_TicksEnd(thread);
        (void)_PySampling_RunSet(
            thread, _PySampling_DETACHED | _PySampling_NOTED);
    }
    _PySampling_UnlockRegistry();
}
