"""The types of the public names; profiles/test_types.py holds it to them."""

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import Context
from types import TracebackType
from typing import (
    IO, Any, BinaryIO, ClassVar, Literal, ParamSpec, Protocol, Self, TextIO,
    TypeVar, final)

_P = ParamSpec('_P')
_R = TypeVar('_R')
_R_co = TypeVar('_R_co', covariant=True)
_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Pattern = str | re.Pattern[str]
_Patterns = _Pattern | Iterable[_Pattern]
_Mode = Literal['wall', 'cpu', 'alloc']
_Names = Literal['off', 'calls', 'opcodes', 'all']
_Calls = Literal['off', 'queries', 'python', 'all']

def start(mode: _Mode = 'wall', *, rate_hz: int = 1000,
          depth_frames: int | None = None, names: _Names | None = None,
          signal: int | None = None, defer: bool = False,
          timeline: bool = False, calls: _Calls | None = None,
          alloc_bytes: int | None = None) -> None: ...
def stop() -> Profile: ...
def snapshot(*, clear: bool = False) -> Profile: ...
def running() -> bool: ...
def stats() -> dict[str, int]: ...
def labels() -> dict[str, str]: ...
def sample(weight: int = 1, /, **labels: str) -> None: ...
def subscribe(callback: Callable[[Batch], object], *, rate_hz: int = 1000,
              depth_frames: int | None = None, names: _Names | None = None,
              signal: int | None = None, batch_samples: int = 1024,
              batch_seconds: float = 1.0, max_samples: int = 65536,
              threads: Iterable[int] | None = None,
              labels: dict[str, str] | None = None,
              all_interpreters: bool = False,
              tasks: bool = False,
              moments: bool = False,
              alloc_bytes: int | None = None) -> Subscription: ...
def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...

class _Block:
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]: ...

class _Profiled(Protocol[_P, _R_co]):
    profile: Profile | Any
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    def __get__(self, instance: Any, owner: Any = None
                ) -> Callable[..., _R_co]: ...

class profile(_Block):
    # None until the block has ended, which no caller has to ask.
    profile: Profile | Any
    def __init__(self, mode: _Mode | None = None, *,
                 rate_hz: int | None = None,
                 depth_frames: int | None = None,
                 names: _Names | None = None, signal: int | None = None,
                 out: _Path | None = None, timeline: bool = False,
                 calls: _Calls | None = None,
                 alloc_bytes: int | None = None) -> None: ...
    def __call__(self, function: Callable[_P, _R]) -> _Profiled[_P, _R]: ...

class region(_Block):
    def __init__(self) -> None: ...

class label(_Block):
    def __init__(self, /, **labels: str | None) -> None: ...
    def set(self) -> None: ...

class request(_Block):
    def __init__(self, /, **labels: str | None) -> None: ...
    def answered(self) -> None: ...

class CallCount:
    caller: Function | None
    line: int
    callee: Function
    route: str | None
    calls: int
    recursive: int
    resumes: int
    recursive_resumes: int
    deepest: int
    @property
    def key(self) -> tuple[Function | None, int, Function, str | None]: ...
    @property
    def numbers(self) -> tuple[int, int, int, int, int]: ...
    @property
    def outermost(self) -> int: ...

class Frame:
    function: Function
    line: int
    column: int
    instruction_offset: int
    opcode: int
    def __init__(self, function: Function,
                 line: int,
                 column: int,
                 instruction_offset: int,
                 opcode: int) -> None: ...
    @property
    def base_opname(self) -> str | None: ...
    @property
    def opname(self) -> str | None: ...

class Function:
    module: str | None
    qualname: str
    filename: str
    first_line: int
    kind: str
    def __init__(self, module: str | None,
                 qualname: str,
                 filename: str,
                 first_line: int,
                 kind: str) -> None: ...
    @property
    def name(self) -> str: ...

class GILHolder:
    thread: Thread | None
    function: Function
    line: int
    callee: Function | None
    site: Frame | None
    def __init__(self, thread: Thread | None,
                 function: Function,
                 line: int,
                 callee: Function | None,
                 site: Frame | None = None) -> None: ...
    @property
    def name(self) -> str: ...

class Process:
    pid: int
    host: str
    start_ns: int
    def __init__(self, pid: int,
                 host: str,
                 start_ns: int) -> None: ...

class Thread:
    ident: int
    native_id: int
    name: str | None
    interpreter_id: int
    process: Process | None
    def __init__(self, ident: int,
                 native_id: int,
                 name: str | None,
                 interpreter_id: int,
                 process: Process | None = None) -> None: ...

class ValueType:
    name: str
    kind: str
    unit: str
    adds: str
    of: str
    def __init__(self, name: str,
                 kind: str,
                 unit: str,
                 adds: str = 'sum',
                 of: str = 'threads') -> None: ...

class _Valued:
    value_types: tuple[ValueType, ...]
    # Each value by its name: wall_ns, self_wall_ns, ...
    def __getattr__(self, name: str) -> int: ...

class AwaitedRow:
    function: Function | None
    awaiting_ns: int

class CallRow(_Valued):
    function: Function | None
    values: tuple[int, ...]

class CallSiteRow:
    function: Function
    line: int
    called: str
    total: int
    states: dict[str, int]
    margin: float | None

class CalleeRow(_Valued):
    function: Function
    values: tuple[int, ...]

class DiffRow:
    name: str | None
    function: Function | None
    line: int
    called: str
    before: float
    after: float
    margin: float | None
    runs_before: tuple[float, ...]
    runs_after: tuple[float, ...]
    @property
    def change(self) -> float: ...
    @property
    def is_clear(self) -> bool: ...
    @property
    def relative(self) -> float | None: ...

class FunctionRow(_Valued):
    function: Function
    self_values: tuple[int, ...]
    cum_values: tuple[int, ...]

class GILHolderRow(_Valued):
    thread: Thread
    function: Function | None
    line: int
    holder: GILHolder
    values: tuple[int, ...]

class Gate:
    target: str
    least: float
    row: DiffRow
    verdict: str
    least_bytes: int | None

class InstructionRow(_Valued):
    function: Function
    line: int
    column: int
    instruction_offset: int
    base_opcode: int
    self_values: tuple[int, ...]
    specialized_count: int
    unspecialized_count: int
    opnames: tuple[tuple[str, int], ...]
    callees: tuple[CalleeRow, ...]
    @property
    def base_opname(self) -> str | None: ...
    @property
    def deoptimized_count(self) -> int: ...

class LabelRow(_Valued):
    value: str | None
    values: tuple[int, ...]

class LineRow(_Valued):
    function: Function
    line: int
    self_values: tuple[int, ...]
    cum_values: tuple[int, ...]

class LoopHolderRow:
    task_class: str | None
    function: Function | None
    line: int
    callee: Function | None
    delay_ns: int
    is_gil_wait: bool

class RequestTimes:
    count: int
    mean_ns: int
    running_ns: int
    loop_wait_ns: int
    gil_wait_ns: int
    waiting_ns: int

class SlowRequestsRow:
    value: str | None
    slowest: RequestTimes
    others: RequestTimes

class TaskLabelRow:
    value: str | None
    running_ns: int
    loop_wait_ns: int
    awaiting_ns: int
    spawned_ns: int
    count: int | None
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    longest_ns: int | None
    awaited: tuple[AwaitedRow, ...]
    @property
    def life_ns(self) -> int: ...
    @property
    def name(self) -> str | None: ...

class TaskRow:
    name: str | None
    function: Function | None
    running_ns: int
    loop_wait_ns: int
    awaiting_ns: int
    finished: int | None
    cancelled: int | None
    steps: int | None
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    longest_ns: int | None
    longest_step_ns: int | None
    awaited: tuple[AwaitedRow, ...]
    @property
    def life_ns(self) -> int: ...

class Record:
    kind: str
    time_ns: int
    thread: Thread | None
    count: int
    cpu_ns: int
    wall_ns: int

class Sample:
    thread: Thread
    state: str
    stack: tuple[Frame, ...]
    labels: dict[str, str]
    task_name: str | None
    task_id: int | None
    task_class: str | None
    gil_holder: GILHolder | None
    values: tuple[int, ...]
    # Each value by its name: count, wall_ns, ...
    def __getattr__(self, name: str) -> int: ...

class CallNode:
    function: Function | None
    line: int
    value_types: tuple[ValueType, ...]
    self_values: tuple[int, ...]
    cum_values: tuple[int, ...]
    children: list[CallNode]
    def walk(self) -> Iterator[tuple[int, CallNode]]: ...
    # Each value by its name: self_wall_ns, cum_count, ...
    def __getattr__(self, name: str) -> int: ...

class Finding:
    rule: str
    title: str
    parts: tuple[Any, ...]
    ns: int
    share: float
    go: str
    @property
    def text(self) -> str: ...

class Timeline:
    time_ns: Sequence[int]
    sample: Sequence[int]
    count: Sequence[int]
    cpu_ns: Sequence[int]
    wall_ns: Sequence[int]
    resolution_ns: int
    is_stale: bool
    def __len__(self) -> int: ...

class Profile:
    def __init__(self) -> None: ...
    @classmethod
    def load(cls, path: _Path | BinaryIO, *,
             max_bytes: int | None = None) -> Self: ...
    @classmethod
    def merge(cls, *profiles: Profile,
              max_bytes: int | None = None) -> Self: ...
    def save(self, path: _Path | BinaryIO, format: str | None = None, *,
             source: bool | str | Sequence[str] = True,
             idle: bool = False) -> None: ...
    def report(self, file: TextIO | IO[str] | None = None, *,
               sort: Literal['self', 'cum', 'calls', 'per-call'] | None = None,
               top: int | None = None, width: int | None = None,
               color: Literal['auto', 'always', 'never'] = 'auto',
               mine: _Patterns = (), all: bool = False,
               idle: bool = False) -> None: ...
    mode: str
    names: str
    rate_hz: int
    depth_frames: int
    start_time_ns: int
    duration_ns: int
    python_version: str
    pid: int | None
    meta: dict[str, str]
    stats: dict[str, int]
    threads: tuple[Thread, ...]
    samples: Sequence[Sample]
    value_type: ValueType
    value_types: tuple[ValueType, ...]
    label_keys: tuple[str, ...]
    timeline: Timeline | None
    calls: tuple[CallCount, ...] | None
    queries: tuple[CallCount, ...]
    total_count: int
    total_cpu_ns: int
    total_wall_ns: int
    def total(self, value: str) -> int: ...
    def functions(self, *, idle: bool = False) -> list[FunctionRow]: ...
    def lines(self, *, idle: bool = False) -> list[LineRow]: ...
    def call_sites(self, *, mine: _Patterns = (), all: bool = False,
                   idle: bool = False) -> list[CallSiteRow]: ...
    def findings(self, *, mine: _Patterns = (),
                 idle: bool = False) -> list[Finding]: ...
    def quality(self) -> dict[str, float | None]: ...
    def instructions(self, *, idle: bool = False) -> list[InstructionRow]: ...
    def label_values(self, key: str, *,
                     idle: bool = False) -> list[LabelRow]: ...
    def gil_holders(self) -> list[GILHolderRow]: ...
    def tasks(self) -> list[TaskRow]: ...
    def tasks_by(self, key: str) -> list[TaskLabelRow]: ...
    def slow_requests(self, key: str,
                      share: float = 0.01) -> list[SlowRequestsRow]: ...
    def loop_holders(self) -> list[LoopHolderRow]: ...
    def call_tree(self, inverted: bool = False, *,
                  by: Literal['function', 'line'] = 'function',
                  idle: bool = False) -> CallNode: ...
    def callers(self, function: str | _Pattern | Function, *,
                idle: bool = False) -> list[CallRow]: ...
    def callees(self, function: str | _Pattern | Function, *,
                idle: bool = False) -> list[CallRow]: ...
    def tables(self) -> dict[str, dict[str, array[int] | list[str | None]]]: ...
    def columns(self, what: str, *, idle: bool = False
                ) -> dict[str, list[Any]]: ...
    def filter(self, *, function: _Pattern | Function | None = None,
               file: _Pattern | None = None,
               state: str | Iterable[str] | None = None,
               thread: str | int | Thread | None = None,
               task: str | None = None,
               labels: dict[str, str | None] | None = None) -> Profile: ...
    def focus(self, pattern: _Pattern) -> Profile: ...
    def ignore(self, pattern: _Pattern) -> Profile: ...
    def hide(self, pattern: _Pattern) -> Profile: ...
    def fold(self, *what: str) -> Profile: ...
    def collapse(self, pattern: _Pattern) -> Profile: ...
    def root(self, pattern: _Pattern) -> Profile: ...
    def where(self, key: str, pattern: _Pattern) -> Profile: ...
    def by_value(self, value: str) -> Profile: ...
    def in_use(self, *, min_age_s: float = 0) -> Profile: ...
    def between(self, begin_ns: int, end_ns: int) -> Profile: ...
    def group_by(self, key: str) -> dict[Any, Profile]: ...
    def diff(self, base: Profile, **options: Any) -> ProfileDiff: ...
    def __add__(self, other: Profile) -> Profile: ...
    def __radd__(self, other: int) -> Profile: ...
    def __sub__(self, other: Profile) -> ProfileDiff: ...

class ProfileDiff:
    before: tuple[Profile, ...]
    after: tuple[Profile, ...]
    value_type: ValueType
    method: Literal['sampling', 'runs']
    total: DiffRow
    rows: tuple[DiffRow, ...]
    gates: tuple[Gate, ...]
    verdict: str | None
    def __init__(self, before: Profile | Iterable[Profile],
                 after: Profile | Iterable[Profile], *, by: str = 'line', cum: bool = False,
                 value: str | None = None, share: bool = False,
                 per: str | None = None, gates: _Patterns = (),
                 mine: _Patterns = (), all: bool = False,
                 idle: bool = False) -> None: ...
    def save(self, path: _Path | BinaryIO, format: str | None = None, *,
             source: bool | str | Sequence[str] = True) -> None: ...

class Rows:
    serial: int
    functions: dict[int, tuple[Any, ...]]
    frames: dict[int, tuple[int, ...]]
    nodes: dict[int, tuple[int, int]]
    labels: dict[int, tuple[Any, ...]]
    threads: dict[int, tuple[Any, ...]]
    def thread(self, number: int) -> Thread: ...
    def stack(self, node: int) -> tuple[Frame, ...]: ...
    def label_set(self, row: int
                  ) -> tuple[dict[str, str], str | None, int | None]: ...
    def gil_holder(self, thread: int, node: int) -> GILHolder | None: ...

class _Keyed:
    thread: Thread
    stack: tuple[Frame, ...]
    labels: dict[str, str]
    task_name: str | None
    task_id: int | None
    task_class: str | None
    key: tuple[Any, ...]

class SampleRecord(_Keyed):
    time_ns: int
    count: int
    cpu_ns: int
    wall_ns: int
    state: str
    gil_holder: GILHolder | None
    gil_wait_ns: int
    callee: Function | None
    opname: str | None
    is_merged: bool
    is_residue: bool

class AllocationRecord(_Keyed):
    allocated_ns: int
    freed_ns: int | None
    objects: int
    bytes: int
    margin_bytes: int

class Batch:
    STATES: ClassVar[tuple[str, ...]]
    rows: Rows
    stats: dict[str, int]
    subscription: Subscription | None
    records: list[Record]
    task_classes: list[Any] | None
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[SampleRecord]: ...
    def task_waits(self) -> Iterator[SampleRecord]: ...
    def delays(self) -> Iterator[SampleRecord]: ...
    def allocations(self) -> Iterator[AllocationRecord]: ...
    def samples(self) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]: ...
    def moments(self
                ) -> list[tuple[int, tuple[int, ...], int, int, int]]: ...

class Subscription:
    start_time_ns: int
    start_ns: int
    closed: bool
    ended_by_fork: bool
    rate_hz: int
    def set_rate(self, rate_hz: int) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None,
                 traceback: TracebackType | None) -> None: ...

@final
class Task:
    def __new__(cls, coroutine: Any, /, *, name: str | None = None,
                context: Context | None = None) -> Self: ...
    def woken(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self, *, skip_frames: int = 1) -> None: ...
    def end(self, *, cancelled: bool = False) -> None: ...
