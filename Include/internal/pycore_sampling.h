/* Sampling profiler: the hooks that the interpreter calls.  What it keeps is
   in pycore_sampling_state.h.

   They are in hooks.c, objects.c and tasks.c of Python/sampling, and call its
   parts, whose order is in base/common.h: clock/ decides WHEN to sample,
   sample/ says WHAT a sample is and what it weighs, tables/ keep WHERE, sinks/
   pass it on.  This header must not know how any of them works. */

#ifndef Py_INTERNAL_SAMPLING_H
#define Py_INTERNAL_SAMPLING_H
#ifdef __cplusplus
extern "C" {
#endif

#ifndef Py_BUILD_CORE
#  error "this header requires Py_BUILD_CORE define"
#endif

#include "pycore_code.h"          // _Py_CODEUNIT
#include "pycore_sampling_state.h"

/* configure decides whether there is a profiler: the clock needs tgkill(),
   per-thread CPU clocks and exactly one running thread per interpreter.  Where
   there is none, Python/sampling/stubs.c takes the place of the engine and
   Modules/_profile/unsupported.c that of the module, and who asks for samples
   gets this message. */
#ifndef WITH_SAMPLING_PROFILER
#  ifndef __linux__
#    define _PySampling_MISSING \
        "the sampling profiler needs Linux; run the program there, profiles " \
        "can be loaded and reported here"
#  elif defined(Py_GIL_DISABLED)
#    define _PySampling_MISSING \
        "the sampling profiler needs the GIL, and this is a free-threaded " \
        "build of Python; run the program with a build that has the GIL"
#  else
#    define _PySampling_MISSING \
        "this Python was built --without-sampling-profiler; run the program " \
        "with one that was built with it"
#  endif
#endif

/* Bit 7 of tstate->eval_breaker: "a capture waits to be drained". */
#define _PY_SAMPLING_BIT (1U << 7)

/* Keeps the compiler from moving a store to tstate->current_frame across the
   stores that make the frame valid.  The only reader is a signal handler on
   the same thread, so this costs no instruction. */
#ifdef WITH_SAMPLING_PROFILER
#  define _PySampling_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#  define _PySampling_FENCE() ((void)0)
#endif

/* --- Hooks.  Each is called with the GIL unless it says otherwise, leaves
   --- errno alone and creates no Python object.  Only those of tasks may run
   --- Python code: they drop references to the program's tasks. */

// Of a hook that is a macro, too: one compare while nobody profiles.
#define _PySampling_IF_ACTIVE(CALL) (_PySampling_ACTIVE() ? (CALL) : (void)0)

#ifdef WITH_SAMPLING_PROFILER

// Is a session running?  A plain load of what another thread may be storing:
// by the letter of C a data race.  It is so on purpose, as in
// FT_ATOMIC_LOAD_*() of builds with the GIL: whoever holds the GIL of the
// thread that stored it has seen the store, a thread of another GIL or of none
// may see it late, which only means that it joins or leaves late, and a byte
// is loaded whole.  It compiles to one compare with memory, which an atomic
// load does not, nor does an int with gcc; but ThreadSanitizer wants to see an
// atomic load.
#ifdef _Py_THREAD_SANITIZER
#  define _PySampling_ACTIVE() \
    _Py_atomic_load_uint8_relaxed(&_PyRuntime.sampling.active)
#else
#  define _PySampling_ACTIVE() (_PyRuntime.sampling.active)
#endif

// Of the session that runs, or of the last one; 0: there was none.
#define _PySampling_EPOCH() \
    _Py_atomic_load_uint_relaxed(&_PyRuntime.sampling.epoch)

// Where tasks keep what there is to ask.
#define _PySampling_NoteTaskLayout(LAYOUT) \
    (_PyRuntime.sampling.task_layout != NULL ? (void)0 \
     : (void)(_PyRuntime.sampling.task_layout = (LAYOUT)))

// At a safepoint of the eval loop, with _PY_SAMPLING_BIT set.
extern void _PySampling_Safepoint(PyThreadState *tstate);

// Before anything changes that the samples which wait belong to: they are
// recorded.
extern void _PySampling_BeforeChange(PyThreadState *tstate);

// A context is about to change or to die.
static inline void
_PySampling_DrainBeforeContextChange(PyThreadState *tstate)
{
    if (_Py_atomic_load_uintptr_relaxed(&tstate->eval_breaker)
        & _PY_SAMPLING_BIT)
    {
        _PySampling_BeforeChange(tstate);
    }
}

// A loop of this thread is about to run a task, inside a task of another loop
// maybe; or has run it, so that the outer one is the thread's again; or goes
// over from one to another.  What they point to is copied.
// Export for '_asyncio' shared extension.
PyAPI_FUNC(void) _PySampling_EnterTask(const _PySampling_TaskInfo *task);
// NULL: it is not known which.
PyAPI_FUNC(void) _PySampling_LeaveTask(const _PySampling_TaskInfo *task);
PyAPI_FUNC(void) _PySampling_SwapTask(const _PySampling_TaskInfo *left,
                                      const _PySampling_TaskInfo *entered);
// Before the first session of the process nothing is reported.  After one a
// thread may still be in a task that it entered then.
#define _PySampling_EnterTask(TASK) \
    (_PySampling_EPOCH() != 0 ? _PySampling_EnterTask(TASK) : (void)0)
#define _PySampling_LeaveTask(TASK) \
    (_PySampling_EPOCH() != 0 ? _PySampling_LeaveTask(TASK) : (void)0)
#define _PySampling_SwapTask(LEFT, ENTERED) \
    (_PySampling_EPOCH() != 0 ? _PySampling_SwapTask(LEFT, ENTERED) : (void)0)

// A task's loop is to run it soon: it is new, or what it waited for happened.
// Export for '_asyncio' shared extension.
PyAPI_FUNC(void) _PySampling_TaskWoken(const _PySampling_TaskInfo *task);

// The task is done for, or never to run again: its fields are cleared.
// Export for '_asyncio' shared extension.
PyAPI_FUNC(void) _PySampling_TaskEnd(struct _sampling_task **record);
#define _PySampling_TaskEnd(RECORD) \
    (*(RECORD) != NULL ? _PySampling_TaskEnd(RECORD) : (void)0)

// The thread has no task any more.
extern void _PySampling_ForgetTasks(PyThreadState *tstate);

// The eval breaker is about to give up the GIL because another thread wants
// it: this thread is in no C function.
extern void _PySampling_BeforeYield(PyThreadState *tstate);
#define _PySampling_BeforeYield(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_BeforeYield(TSTATE))

// The thread is about to give up the GIL.
extern void _PySampling_BeforeDetach(PyThreadState *tstate);
#define _PySampling_BeforeDetach(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_BeforeDetach(TSTATE))

// The thread asks for the GIL, and another thread has it.  Called without the
// GIL but with gil->mutex, which the holder needs to give the GIL up: takes no
// lock and does not wait.  It may be called several times in one wait.
extern void _PySampling_BeforeGILWait(PyThreadState *tstate);

// The interpreter has a GIL, its own or that of others.
#define _PySampling_AfterInitGIL(INTERP) \
    _Py_atomic_store_ptr_release(&(INTERP)->sampling.gil, (INTERP)->ceval.gil)

// The thread has the GIL.
extern void _PySampling_AfterAttach(PyThreadState *tstate);
#define _PySampling_AfterAttach(TSTATE) \
    _PySampling_IF_ACTIVE(_PySampling_AfterAttach(TSTATE))

// The thread state is its OS thread's from now on.
extern void _PySampling_AfterBind(PyThreadState *tstate);

// This thread is about to start another, which is to be left out as well if
// this one serves subscribers.
extern void _PySampling_ThreadStart(PyThreadState *tstate);

// The thread state is being cleared; it may belong to another thread.
extern void _PySampling_ThreadEnd(PyThreadState *tstate);

// The interpreter's memory is about to go.
extern void _PySampling_InterpreterEnd(PyInterpreterState *interp);

// The garbage collector starts (and ends) a collection.
extern void _PySampling_GCStart(PyThreadState *tstate, int generation);
#define _PySampling_GCStart(TSTATE, GENERATION) \
    _PySampling_IF_ACTIVE(_PySampling_GCStart(TSTATE, GENERATION))
extern void _PySampling_GCEnd(PyThreadState *tstate, Py_ssize_t freed,
                              Py_ssize_t uncollectable);
#define _PySampling_GCEnd(TSTATE, FREED, UNCOLLECTABLE) \
    _PySampling_IF_ACTIVE(_PySampling_GCEnd(TSTATE, FREED, UNCOLLECTABLE))

// A code object is being deallocated: captures borrow code pointers.
extern void _PySampling_CodeEnd(PyCodeObject *code);
#define _PySampling_CodeEnd(CODE) \
    _PySampling_IF_ACTIVE(_PySampling_CodeEnd(CODE))

// A type is being deallocated: captures borrow pointers to types.
extern void _PySampling_TypeEnd(PyTypeObject *type);
#define _PySampling_TypeEnd(TYPE) \
    _PySampling_IF_ACTIVE(_PySampling_TypeEnd(TYPE))

// An event of sys.monitoring, before arguments for a callback of it are made.
// `callable`: what is called, of an event CALL; `tools`: those that want it.
// Returns whether nobody else does.
extern int _PySampling_CountCall(PyThreadState *tstate, int event,
                                 struct _PyInterpreterFrame *frame,
                                 _Py_CODEUNIT *instr, PyObject *callable,
                                 uint8_t tools);
#define _PySampling_CountCall(TSTATE, ...) \
    ((TSTATE)->interp->sampling.calls_tool != 0 \
     && (_PySampling_CountCall)((TSTATE), __VA_ARGS__))

// A library reports a block of its own to tracemalloc, or its end.  Called
// with or without a GIL.
extern void _PySampling_BlockTracked(unsigned int domain, uintptr_t block,
                                     size_t size_bytes);
#define _PySampling_BlockTracked(DOMAIN, BLOCK, SIZE_BYTES) \
    (_PyRuntime.sampling.alloc != NULL \
     ? (_PySampling_BlockTracked)((DOMAIN), (BLOCK), (SIZE_BYTES)) : (void)0)
extern void _PySampling_BlockUntracked(unsigned int domain, uintptr_t block);
#define _PySampling_BlockUntracked(DOMAIN, BLOCK) \
    (_PyRuntime.sampling.alloc != NULL \
     ? (_PySampling_BlockUntracked)((DOMAIN), (BLOCK)) : (void)0)

// The program is about to set what a signal does.
extern void _PySampling_BeforeUseOfSignal(int signum);
// The same.  Returns what to set.
extern PyOS_sighandler_t _PySampling_BeforeSetSignal(
    int signum, PyOS_sighandler_t handler);
// The program asks for a signal's handler, which is `handler`: returns its own
// where that is the profiler's.
extern PyOS_sighandler_t _PySampling_HandlerOfProgram(
    int signum, PyOS_sighandler_t handler);

// The program has changed which signals this thread blocks.
extern void _PySampling_AfterSignalMask(void);
#define _PySampling_AfterSignalMask() \
    _PySampling_IF_ACTIVE(_PySampling_AfterSignalMask())

// Around exec: a signal on its way would outlive the handler, and the profile
// of -X is written.  `path` is what is to be run, or NULL.  Runs Python code.
// Export for '_posixsubprocess' shared extension.
PyAPI_FUNC(void) _PySampling_BeforeExec(const char *path);
extern void _PySampling_AfterFailedExec(void);

extern void _PySampling_BeforeFork(void);
extern void _PySampling_AfterForkParent(void);
extern void _PySampling_AfterForkChild(void);

// Threads of this process that are the profiler's own: os.fork() does not
// warn about them.
extern int _PySampling_CountProfilerThreads(void);

/* --- Start-up, children and exit of the process (session/autostart.c). */

// In the child of a fork, when it is a whole process again: the session that
// -X started in the parent begins anew.
extern void _PySampling_ContinueInChild(PyThreadState *tstate);

// Ends the session; writes the profile if -X started it.  Never raises.  Runs
// Python code.
extern void _PySampling_Finalize(PyThreadState *tstate);

// The same in a process that is about to end at once (session/ending.c).
// Gives the GIL up if there is a profile to write.
extern void _PySampling_BeforeExit(void);

// Methods of _thread: _set_sampled_name(ident, name) passes what
// threading.Thread calls the thread; _for_sampled_task(function) returns a
// function that does the same as the task's that the thread is in, or the
// function itself if it is in none or nobody profiles.
extern PyObject *_PySampling_SetThreadName(PyObject *module, PyObject *args);
extern PyObject *_PySampling_ForTask(PyObject *module, PyObject *function);
#define _PySampling_THREAD_METHODS \
    {"_set_sampled_name", _PySampling_SetThreadName, METH_VARARGS, NULL}, \
    {"_for_sampled_task", _PySampling_ForTask, METH_O, NULL},

#else  // no profiler: no hook costs an instruction

#define _PySampling_ACTIVE() 0
#define _PySampling_Safepoint(TSTATE) ((void)(TSTATE))
#define _PySampling_NoteTaskLayout(LAYOUT) ((void)(LAYOUT))
#define _PySampling_DrainBeforeContextChange(TSTATE) ((void)(TSTATE))
// What is reported of a task is not made, either.
#define _PySampling_EnterTask(TASK) _PySampling_IF_ACTIVE((void)(TASK))
#define _PySampling_LeaveTask(TASK) _PySampling_IF_ACTIVE((void)(TASK))
#define _PySampling_SwapTask(LEFT, ENTERED) \
    _PySampling_IF_ACTIVE(((void)(LEFT), (void)(ENTERED)))
#define _PySampling_TaskWoken(TASK) _PySampling_IF_ACTIVE((void)(TASK))
#define _PySampling_TaskEnd(RECORD) ((void)(RECORD))
#define _PySampling_ForgetTasks(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeYield(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeDetach(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeGILWait(TSTATE) ((void)(TSTATE))
#define _PySampling_AfterAttach(TSTATE) ((void)(TSTATE))
#define _PySampling_AfterInitGIL(INTERP) ((void)(INTERP))
#define _PySampling_ThreadStart(TSTATE) ((void)(TSTATE))
#define _PySampling_ThreadEnd(TSTATE) ((void)(TSTATE))
#define _PySampling_InterpreterEnd(INTERP) ((void)(INTERP))
#define _PySampling_GCStart(TSTATE, GENERATION) \
    ((void)(TSTATE), (void)(GENERATION))
#define _PySampling_GCEnd(TSTATE, FREED, UNCOLLECTABLE) ((void)(TSTATE))
#define _PySampling_CodeEnd(CODE) ((void)(CODE))
#define _PySampling_TypeEnd(TYPE) ((void)(TYPE))
#define _PySampling_CountCall(TSTATE, ...) 0
#define _PySampling_AfterBind(TSTATE) ((void)(TSTATE))
#define _PySampling_BlockTracked(DOMAIN, BLOCK, SIZE_BYTES) ((void)0)
#define _PySampling_BlockUntracked(DOMAIN, BLOCK) ((void)0)
#define _PySampling_BeforeUseOfSignal(SIGNUM) ((void)(SIGNUM))
#define _PySampling_BeforeSetSignal(SIGNUM, HANDLER) (HANDLER)
#define _PySampling_HandlerOfProgram(SIGNUM, HANDLER) (HANDLER)
#define _PySampling_AfterSignalMask() ((void)0)
#define _PySampling_BeforeExec(PATH) ((void)(PATH))
#define _PySampling_AfterFailedExec() ((void)0)
#define _PySampling_BeforeFork() ((void)0)
#define _PySampling_AfterForkParent() ((void)0)
#define _PySampling_AfterForkChild() ((void)0)
#define _PySampling_CountProfilerThreads() 0
#define _PySampling_ContinueInChild(TSTATE) ((void)(TSTATE))
#define _PySampling_Finalize(TSTATE) ((void)(TSTATE))
#define _PySampling_BeforeExit() ((void)0)
#define _PySampling_THREAD_METHODS

#endif  // !WITH_SAMPLING_PROFILER

// Reads -X sampleprof and PYTHONSAMPLEPROF and starts a session if asked.
// Returns an exit status of 2, after a message on stderr, for a bad text.
extern PyStatus _PySampling_InitFromConfig(PyThreadState *tstate);

#ifdef __cplusplus
}
#endif
#endif  // !Py_INTERNAL_SAMPLING_H
