"""The operations that devices executed, as columns: of each program, on each device.

What events look like was seen for CPU. For TPU and GPU it follows XProf's and XLA's sources: a
TPU's programs are on a line of their own, and its operations, named by their HLO, run within them;
a GPU's kernels have stats that name the operation and the program.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardnb.profiles.xplane import ASYNC_OPS, MODULES, Plane, TraceFile, unsigned

# `%all-reduce.1 = f32[8] all-reduce(...)`, of which an event may have the name alone.
_INSTRUCTION = re.compile(r"%?([\w.\-]+)")
# `jit_step(1234)`, the name of a program with its id.
_PROGRAM = re.compile(r"(.*)\((\d+)\)")
# Events of the host's threads that are of no operation: of Python, ends, and the thread pool's.
_NOT_OPERATIONS = ("$", "end: ", "Threadpool")


class Device(NamedTuple):
    """A device in a trace: its host, its platform, and its number on the host."""

    host: str
    platform: str
    number: int


class ProgramKey(NamedTuple):
    """What events say of their program; ids differ from host to host."""

    host: str
    id: int


@dataclass
class Operations:
    """The operations of a program on one device, in the order of their starts.

    `names` are instructions, `name` has the place of each operation's in it; `start` and `end` are
    in seconds. `run` numbers the runs of the program on this device from 0. `asynchronous` marks
    events that span an operation from its start to its end, beside the operations of the program.
    """

    names: tuple[str, ...]
    name: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    run: NDArray[np.int64]
    asynchronous: NDArray[np.bool_]

    @property
    def runs(self) -> int:
        """How often the device ran the program."""
        return int(self.run.max(initial=-1)) + 1


Executed = dict[ProgramKey, dict[Device, Operations]]


@dataclass
class _Columns:
    """The events of one program on one device, as they come."""

    names: dict[str, int] = field(default_factory=dict)
    name: array[int] = field(default_factory=lambda: array("q"))
    start: array[float] = field(default_factory=lambda: array("d"))
    end: array[float] = field(default_factory=lambda: array("d"))
    run: array[int] = field(default_factory=lambda: array("q"))
    asynchronous: array[int] = field(default_factory=lambda: array("b"))

    def add(self, name: str, event: Any, run: int = 0) -> None:
        """Add an event of an operation."""
        start = event.start_ns
        self.name.append(self.names.setdefault(name, len(self.names)))
        self.start.append(start)
        self.end.append(start + event.duration_ns)
        self.run.append(run)
        self.asynchronous.append(0)

    def add_all(self, events: Iterable[Any], *, asynchronous: bool) -> None:
        """Add events that are named by their operations: a TPU has millions."""
        names = self.names
        rows = [(names.setdefault(e.name, len(names)), e.start_ns, e.duration_ns) for e in events]
        if not rows:
            return
        name, start, length = zip(*rows, strict=True)
        self.name.extend(name)
        self.start.extend(start)
        self.end.extend((np.array(start) + np.array(length)).tolist())
        self.run.extend([0] * len(rows))
        self.asynchronous.extend([asynchronous] * len(rows))

    def operations(self) -> Operations:
        """Return them in the order of their starts, with their runs as the trace names them."""
        start = np.array(self.start)
        order = np.argsort(start, kind="stable")
        return Operations(
            names=tuple(self.names),
            name=np.array(self.name)[order],
            start=start[order] * 1e-9,
            end=np.array(self.end)[order] * 1e-9,
            run=np.array(self.run)[order],
            asynchronous=np.array(self.asynchronous, dtype=bool)[order],
        )


def executed_in(file: TraceFile) -> Executed:
    """Return what the devices of a host executed, by program and device."""
    found: Executed = defaultdict(dict)
    for plane in file.planes:
        for key, device, operations in _of_plane(file.host, plane):
            found[key][device] = operations
    return dict(found)


def _of_plane(host: str, plane: Plane) -> Iterator[tuple[ProgramKey, Device, Operations]]:
    if plane.device is None:
        yield from _of_threads(host, plane)
        return
    device = Device(host, *plane.device)
    of_device = _of_streams(plane) if device.platform == "gpu" else _of_lines(plane)
    for program, operations in of_device:
        yield ProgramKey(host, program), device, operations


# CPU


def _of_threads(host: str, plane: Plane) -> Iterator[tuple[ProgramKey, Device, Operations]]:
    """Read the threads of a host: each event says its operation, program, run and device."""
    columns: dict[tuple[int, int], _Columns] = defaultdict(_Columns)
    for event in _each(plane):
        if event.name.startswith(_NOT_OPERATIONS):
            continue
        stats = _stats(event)
        if "hlo_op" in stats and "program_id" in stats:
            key = unsigned(int(stats["program_id"])), int(stats.get("device_ordinal", 0))
            columns[key].add(str(stats["hlo_op"]), event, int(stats.get("run_id", 0)))
    for (program, number), column in columns.items():
        operations = column.operations()
        operations.run = _numbered(operations.run)
        yield ProgramKey(host, program), Device(host, "cpu", number), operations


def _numbered(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number runs by their ids, in the order of their first operations."""
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


# TPU


def _of_lines(plane: Plane) -> Iterator[tuple[int, Operations]]:
    """Read a TPU: the operations between start and end of a program are its own."""
    modules, columns = _Columns(), _Columns()
    for line, parts in plane.lines():
        for events in parts:
            (modules if line == MODULES else columns).add_all(
                events, asynchronous=line == ASYNC_OPS
            )
    operations, programs = _with_short_names(columns.operations()), modules.operations()
    if not len(programs.start):
        return
    # The clock counts picoseconds, and ProfileData nanoseconds.
    inside = np.searchsorted(programs.start, operations.start + 1e-9, side="right") - 1
    known = (inside >= 0) & (operations.start <= programs.end[inside])
    numbers = [int(m[2]) if (m := _PROGRAM.fullmatch(name)) else -1 for name in programs.names]
    for number in sorted(set(numbers) - {-1}):
        of_program = np.array([each == number for each in numbers])[programs.name]
        runs = np.cumsum(of_program) - 1
        picked = np.flatnonzero(known & of_program[inside])
        yield number, _picked(operations, picked, runs[inside[picked]])


def _stats(event: Any) -> dict[str, Any]:
    """Return the stats of an event; none where they have bytes that are not text."""
    try:
        return dict(event.stats)
    except UnicodeDecodeError:
        return {}


def _each(plane: Plane) -> Iterator[Any]:
    """Yield each event of a plane."""
    for _, parts in plane.lines():
        for events in parts:
            yield from events


def _with_short_names(operations: Operations) -> Operations:
    """Name operations by their instructions, of which events have the text."""
    short = [m[1] if (m := _INSTRUCTION.match(name)) else name for name in operations.names]
    places = {name: at for at, name in enumerate(dict.fromkeys(short))}
    at = np.array([places[name] for name in short], dtype=np.int64)
    return replace(operations, names=tuple(places), name=at[operations.name])


def _picked(operations: Operations, at: NDArray[np.int64], runs: NDArray[np.int64]) -> Operations:
    return Operations(
        operations.names,
        operations.name[at],
        operations.start[at],
        operations.end[at],
        runs,
        operations.asynchronous[at],
    )


# GPU


def _of_streams(plane: Plane) -> Iterator[tuple[int, Operations]]:
    """Read the streams of a GPU: kernels with the operation and the program that they are of.

    They do not say their run: see `with_runs`.
    """
    columns: dict[int, _Columns] = defaultdict(_Columns)
    for event in _each(plane):
        stats = _stats(event)
        if "hlo_op" in stats and "program_id" in stats:
            # An operation in a loop has the names of both: `while.1::fusion.2`.
            name = str(stats["hlo_op"]).rpartition("::")[2]
            columns[unsigned(int(stats["program_id"]))].add(name, event)
    for program, column in columns.items():
        yield program, column.operations()


def with_runs(operations: Operations, once: Iterable[str]) -> Operations:
    """Number the runs of operations that do not say theirs, as a GPU's.

    `once` are the operations that run once in each, in their order: the first that the trace has
    begins a run wherever it comes again. What came before is left out: its run is not complete.
    """
    begins = next((name for name in once if name in operations.names), None)
    if begins is None or operations.runs > 1:
        return operations
    again = operations.name == operations.names.index(begins)
    # Several kernels of one operation follow each other.
    again[1:] &= operations.name[1:] != operations.name[:-1]
    runs = np.cumsum(again) - 1
    at = np.flatnonzero(runs >= 0)
    return _picked(operations, at, runs[at])
