# The files of the sampling profiler, for the Makefile, which includes this
# one.  configure copies the folders of tests, in testsubdirs.mk, into the
# Makefile itself, where test_tools reads them.

SAMPLING_OBJS= \
	Python/sampling/hooks.o \
	Python/sampling/objects.o \
	Python/sampling/tasks.o \
	Python/sampling/alloc/collections.o \
	Python/sampling/alloc/drain.o \
	Python/sampling/alloc/functions.o \
	Python/sampling/alloc/resident.o \
	Python/sampling/alloc/samples.o \
	Python/sampling/alloc/types.o \
	Python/sampling/alloc/words.o \
	Python/sampling/base/process.o \
	Python/sampling/base/time.o \
	Python/sampling/calls/count.o \
	Python/sampling/calls/edges.o \
	Python/sampling/clock/clock.o \
	Python/sampling/clock/deadlines.o \
	Python/sampling/clock/others.o \
	Python/sampling/clock/tick.o \
	Python/sampling/clock/probe.o \
	Python/sampling/clock/run.o \
	Python/sampling/clock/signal.o \
	Python/sampling/clock/wakeup.o \
	Python/sampling/native/callables.o \
	Python/sampling/native/depths.o \
	Python/sampling/native/find.o \
	Python/sampling/native/names.o \
	Python/sampling/native/operands.o \
	Python/sampling/native/operators.o \
	Python/sampling/native/safe_read.o \
	Python/sampling/native/types.o \
	Python/sampling/reach/client.o \
	Python/sampling/reach/copies.o \
	Python/sampling/reach/door.o \
	Python/sampling/reach/dump.o \
	Python/sampling/reach/frames.o \
	Python/sampling/reach/kernel.o \
	Python/sampling/reach/locks.o \
	Python/sampling/reach/parts.o \
	Python/sampling/reach/records.o \
	Python/sampling/reach/tasks.o \
	Python/sampling/reach/watch.o \
	Python/sampling/sample/account.o \
	Python/sampling/sample/buffer.o \
	Python/sampling/sample/capture.o \
	Python/sampling/sample/delays.o \
	Python/sampling/sample/holders.o \
	Python/sampling/sample/record.o \
	Python/sampling/sample/stack.o \
	Python/sampling/sample/walk.o \
	Python/sampling/sample/weights.o \
	Python/sampling/session/allocating.o \
	Python/sampling/session/autostart.o \
	Python/sampling/session/blocks.o \
	Python/sampling/session/counting.o \
	Python/sampling/session/ending.o \
	Python/sampling/session/engine.o \
	Python/sampling/session/flush.o \
	Python/sampling/session/fork.o \
	Python/sampling/session/profiles.o \
	Python/sampling/session/session.o \
	Python/sampling/session/sharing.o \
	Python/sampling/session/siblings.o \
	Python/sampling/session/threads.o \
	Python/sampling/sinks/dispatch.o \
	Python/sampling/sinks/filter.o \
	Python/sampling/sinks/sink.o \
	Python/sampling/tables/allocations.o \
	Python/sampling/tables/coroutines.o \
	Python/sampling/tables/extract.o \
	Python/sampling/tables/frames.o \
	Python/sampling/tables/labels.o \
	Python/sampling/tables/move.o \
	Python/sampling/tables/profile.o \
	Python/sampling/tables/store.o \
	Python/sampling/tables/tables.o \
	Python/sampling/task/awaits.o \
	Python/sampling/task/deadline.o \
	Python/sampling/task/life.o \
	Python/sampling/task/waits.o

SAMPLING_HEADERS= \
	$(srcdir)/Include/cpython/sampling.h \
	$(srcdir)/Include/internal/pycore_sampling.h \
	$(srcdir)/Include/internal/pycore_sampling_state.h \
	$(srcdir)/Python/sampling/alloc/alloc.h \
	$(srcdir)/Python/sampling/alloc/pymalloc.h \
	$(srcdir)/Python/sampling/base/axis.h \
	$(srcdir)/Python/sampling/base/common.h \
	$(srcdir)/Python/sampling/base/frame.h \
	$(srcdir)/Python/sampling/base/task.h \
	$(srcdir)/Python/sampling/base/thread.h \
	$(srcdir)/Python/sampling/calls/calls.h \
	$(srcdir)/Python/sampling/clock/clock.h \
	$(srcdir)/Python/sampling/clock/inside.h \
	$(srcdir)/Python/sampling/native/naming.h \
	$(srcdir)/Python/sampling/native/native.h \
	$(srcdir)/Python/sampling/reach/door.h \
	$(srcdir)/Python/sampling/reach/reach.h \
	$(srcdir)/Python/sampling/sample/buffer.h \
	$(srcdir)/Python/sampling/sample/sample.h \
	$(srcdir)/Python/sampling/sample/walk.h \
	$(srcdir)/Python/sampling/session/control.h \
	$(srcdir)/Python/sampling/session/session.h \
	$(srcdir)/Python/sampling/sinks/sinks.h \
	$(srcdir)/Python/sampling/tables/allocations.h \
	$(srcdir)/Python/sampling/tables/labels.h \
	$(srcdir)/Python/sampling/tables/move.h \
	$(srcdir)/Python/sampling/tables/profile.h \
	$(srcdir)/Python/sampling/tables/store.h \
	$(srcdir)/Python/sampling/tables/tables.h \
	$(srcdir)/Python/sampling/task/task.h

# What Modules/_asynciomodule.c includes.
MODULE__ASYNCIO_DEPS=$(srcdir)/Modules/_profile/asyncio_tasks.h

# The folders that "make install" copies.
SAMPLING_LIBSUBDIRS= \
	profile_sampling \
	profile_sampling/_cli \
	profile_sampling/_data \
	profile_sampling/_formats \
	profile_sampling/_formats/page \
	profile_sampling/_formats/pprof \
	profile_sampling/_page \
	profile_sampling/_live \
	profile_sampling/_reach \
	profile_sampling/_recording \
	profile_sampling/_subscribing \
	profile_sampling/_top \
	profile_sampling/middleware
