"""One file of a trace: the programs in it, and the lines of events that operations are on.

The numbers are those of XSpace (`xplane.proto`) and of HloProto (`hlo.proto`), which do not change:
files of older versions stay readable.
"""

from __future__ import annotations

import itertools
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from shardnb.compiler.dumps import captured_fd2
from shardnb.jax_compat.profiling import events_of
from shardnb.jax_compat.xla import hlo_text
from shardnb.profiles.wire import CUT_OFF, Field, after_fields, fields, tagged, varints
from shardnb.report.invalid_input import InvalidInput
from shardnb.texts.opcodes import NO_WORK

_PLANE = 1  # of XSpace
_NAME, _LINE, _EVENT_METADATA, _STAT_METADATA, _PLANE_STATS = 2, 3, 4, 5, 6  # of XPlane
_EVENT = 4  # of XLine
_KEY, _VALUE = 1, 2  # of an entry of a map
_STATS = 5  # of XEventMetadata
_STAT, _UNSIGNED, _SIGNED, _TEXT, _BYTES = 1, 3, 4, 5, 6  # of XStat
_MODULE = 1  # of HloProto
_MODULE_NAME, _ASSIGNMENT = 1, 15  # of HloModuleProto
_REPLICAS, _PARTITIONS, _COMPUTATION = 1, 2, 3  # of DeviceAssignmentProto

_METADATA = "/host:metadata"
HOST = "/host:CPU"
_DEVICE = re.compile(r"/device:(TPU|GPU):(\d+)")
_MADE = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = ", re.MULTILINE)
MODULES, OPS, ASYNC_OPS = _TPU_LINES = ("XLA Modules", "XLA Ops", "Async XLA Ops")
_GPU_LINE = "Stream"
# ProfileData takes about ten times the bytes of a file in memory: a 200 MB trace is read in parts,
# so that it stays below 2 GiB (bench_profile.py).
_PART = 1 << 25


def names_in(text: str) -> str:
    """Return a digest of the names of a program's instructions, by which it is known again.

    Its text in a trace has other tables and headers than in a dump, and may take tuples apart in
    other places (test_dumps_in_the_folder_of_a_saved_trace_are_taken).
    """
    names = (name for name in _MADE.findall(text) if name.partition(".")[0] not in NO_WORK)
    return sha256(" ".join(sorted(names)).encode()).hexdigest()


@dataclass(frozen=True)
class TracedProgram:
    """A program in a trace: the id and the name that events have, and its serialized HLO module."""

    id: int
    name: str
    proto: bytes = field(repr=False)

    def text(self) -> str:
        """Return its HLO text, with the number of devices, which a module's proto has elsewhere.

        Raises `InvalidInput` where XLA cannot read it.
        """
        with captured_fd2():  # XLA writes a stack of its own where it refuses a program
            try:
                text, refused = hlo_text(self.proto), None
            except (RuntimeError, UnicodeDecodeError) as error:
                text, refused = "", error
        if refused is not None:
            why = str(refused).partition("\n")[0]
            raise InvalidInput(f"{self.name}: XLA cannot read this program: {why}") from refused
        replicas, partitions, _ = self._assignment
        head, newline, rest = text.partition("\n")
        for name, count in (("num_partitions", partitions), ("replica_count", replicas)):
            if count > 1 and f"{name}=" not in head:
                head += f", {name}={count}"
        return head + newline + rest

    @property
    def devices(self) -> int:
        """On how many devices it runs."""
        replicas, partitions, _ = self._assignment
        return replicas * partitions

    @property
    def device_ids(self) -> tuple[int, ...]:
        """The ids of the devices that it runs on, by partition; empty where that is not known."""
        replicas, partitions, ids = self._assignment
        return ids if replicas == 1 and len(ids) == partitions else ()

    @property
    def _assignment(self) -> tuple[int, int, tuple[int, ...]]:
        """The number of replicas and partitions, and the device of each partition."""
        replicas, partitions, ids = 1, 1, list[int]()
        for module in fields(memoryview(self.proto)):
            if module.number == _ASSIGNMENT:
                for part in fields(module.message):
                    if part.number == _REPLICAS:
                        replicas = part.integer
                    elif part.number == _PARTITIONS:
                        partitions = part.integer
                    elif part.number == _COMPUTATION:
                        ids += _numbers(part.message)
        return replicas, partitions, tuple(ids)


@dataclass(frozen=True)
class Plane:
    """A plane of a file: `name`, and its lines, each with all that ProfileData needs to read it."""

    name: str
    data: memoryview = field(repr=False)

    @property
    def device(self) -> tuple[str, int] | None:
        """The platform (`tpu`, `gpu`) and the number of the device that it is of; else None."""
        match = _DEVICE.fullmatch(self.name)
        return None if match is None else (match[1].lower(), int(match[2]))

    @property
    def kind(self) -> str:
        """What the trace calls a device of this kind, such as `TPU v5 lite`; "" if it does not."""
        names = dict(_stat_names(self.data))
        for stat in (f.message for f in fields(self.data) if f.number == _PLANE_STATS):
            value = {f.number: f for f in fields(stat)}
            name = names.get(value[_STAT].integer if _STAT in value else 0)
            if name == "device_type_string" and _TEXT in value:
                return value[_TEXT].text
        return ""

    @property
    def _head(self) -> bytes:
        """The plane without its lines."""
        return b"".join(bytes(f.raw) for f in fields(self.data) if f.number != _LINE)

    def lines(self) -> Iterator[tuple[str, Iterator[Iterable[Any]]]]:
        """Yield the name of each line that may hold operations, with its events part by part."""
        head = self._head
        wanted = (f.message for f in fields(self.data) if f.number == _LINE)
        for line in sorted(wanted, key=self._rank):
            if self._rank(line) >= 0:
                yield _name(line), self._events(head, line)

    def _rank(self, line: memoryview) -> int:
        """Return the place of a line, -1 for one without operations; programs come before them."""
        name = _name(line)
        if self.device is None:
            return 0
        if self.device[0] == "gpu":
            return 0 if name.startswith(_GPU_LINE) else -1
        return _TPU_LINES.index(name) if name in _TPU_LINES else -1

    @staticmethod
    def _events(head: bytes, line: memoryview) -> Iterator[Iterable[Any]]:
        for part in _parts(line):
            try:
                yield from events_of(tagged(_PLANE, head + tagged(_LINE, part)))
            except ValueError as error:
                raise InvalidInput(CUT_OFF) from error


@dataclass(frozen=True)
class TraceFile:
    """A file of a trace, which one host wrote: its programs, and the planes with operations."""

    host: str
    programs: tuple[TracedProgram, ...]
    planes: tuple[Plane, ...]


def read_file(path: Path) -> TraceFile:
    """Read a file; raises `InvalidInput` where it is damaged or not the profiler's."""
    with path.open("rb") as file:
        empty = path.stat().st_size == 0
        data = memoryview(b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return read_space(data, path.name.removesuffix(".xplane.pb"))


def read_space(data: memoryview, host: str = "") -> TraceFile:
    """Read a serialized XSpace of a host: files of several have different names."""
    planes, programs = list[Plane](), list[TracedProgram]()
    for each in fields(data):
        if each.number == _PLANE:
            plane = Plane(_name(each.message), each.message)
            if plane.name == _METADATA:
                programs += _programs(plane.data)
            elif plane.device or plane.name == HOST:
                planes.append(plane)
    devices = tuple(plane for plane in planes if plane.device)
    return TraceFile(host, tuple(programs), devices or tuple(planes))


def _name(message: memoryview) -> str:
    """Return the name of a plane or a line, which stands before its lines or events."""
    for each in fields(message):
        if each.number == _NAME:
            return each.text
        if each.number > _NAME + 1:
            break
    return ""


def _parts(line: memoryview) -> Iterator[bytes]:
    """Yield a line in parts, each with some of its events."""
    if len(line) <= _PART:
        yield bytes(line)
        return
    head = b"".join(bytes(f.raw) for f in itertools.takewhile(_is_before_events, fields(line)))
    start = len(head)
    while start < len(line):
        end = after_fields(line, start, _PART)
        yield head + bytes(line[start:end])
        start = end


def _is_before_events(each: Field) -> bool:
    return each.number != _EVENT


def _programs(plane: memoryview) -> Iterator[TracedProgram]:
    """Yield the programs of the metadata's plane: each is the metadata of an event, with its HLO.

    A program without a stat `program_id` has the number of its metadata as its id, as in XProf.
    """
    names = dict(_stat_names(plane))
    for entry in (f.message for f in fields(plane) if f.number == _EVENT_METADATA):
        inside = {f.number: f for f in fields(entry)}
        if _VALUE not in inside:
            continue
        number, proto = inside[_KEY].integer if _KEY in inside else 0, b""
        for stat in (f.message for f in fields(inside[_VALUE].message) if f.number == _STATS):
            value = {f.number: f for f in fields(stat)}
            name = names.get(value[_STAT].integer if _STAT in value else 0)
            if name == "Hlo Proto" and _BYTES in value:
                proto = _module(value[_BYTES])
            elif name == "program_id":
                # A zero is not written.
                given = value.get(_SIGNED) or value.get(_UNSIGNED)
                number = given.integer if given else 0
        if proto:
            yield TracedProgram(number, _module_name(proto), proto)


def _stat_names(plane: memoryview) -> Iterator[tuple[int, str]]:
    for entry in (f.message for f in fields(plane) if f.number == _STAT_METADATA):
        inside = {f.number: f for f in fields(entry)}
        if _VALUE in inside:
            yield inside[_KEY].integer if _KEY in inside else 0, _name(inside[_VALUE].message)


def _module(hlo: Field) -> bytes:
    return next((bytes(f.message) for f in fields(hlo.message) if f.number == _MODULE), b"")


def _module_name(proto: bytes) -> str:
    named = (f.text for f in fields(memoryview(proto)) if f.number == _MODULE_NAME)
    return next(named, "")


def _numbers(message: memoryview) -> list[int]:
    """Return the device ids of a computation: packed into bytes, or a field each."""
    found = list[int]()
    for each in fields(message):
        found += [each.integer] if isinstance(each.value, int) else varints(each.value)
    return found
