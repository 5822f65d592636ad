"""One file of a trace: the programs in it, and the lines of events that operations are on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from shardnb.compiler.dumps import captured_fd2
from shardnb.jax_compat.profiling import events_of
from shardnb.jax_compat.xla import hlo_text
from shardnb.profiles.messages import (
    CUT_OFF,
    Entry,
    HloModuleProto,
    HloProto,
    XLine,
    XPlane,
    XSpace,
    parsed,
)
from shardnb.report.invalid_input import InvalidInput
from shardnb.texts.opcodes import NO_WORK

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
        given = parsed(HloModuleProto, self.proto).device_assignment
        ids = (id_ for each in given.computation_devices for id_ in each.replica_device_ids)
        return given.replica_count or 1, given.computation_count or 1, tuple(ids)


@dataclass(frozen=True)
class Plane:
    """A plane of a file: `message` is its XPlane."""

    message: Any = field(repr=False)

    @property
    def name(self) -> str:
        """Its name, such as `/device:TPU:0`."""
        name: str = self.message.name
        return name

    @property
    def device(self) -> tuple[str, int] | None:
        """The platform (`tpu`, `gpu`) and the number of the device that it is of; else None."""
        match = _DEVICE.fullmatch(self.name)
        return None if match is None else (match[1].lower(), int(match[2]))

    @property
    def kind(self) -> str:
        """What the trace calls a device of this kind, such as `TPU v5 lite`; "" if it does not."""
        names = _stat_names(self.message)
        kinds = (
            stat.str_value
            for stat in self.message.stats
            if names.get(stat.metadata_id) == "device_type_string"
        )
        return next(kinds, "")

    def lines(self) -> Iterator[tuple[str, Iterator[Iterable[Any]]]]:
        """Yield the name of each line that may hold operations, with its events part by part."""
        plane = self.message
        # What events are called and have stats of, which ProfileData looks up.
        head = XPlane(event_metadata=plane.event_metadata, stat_metadata=plane.stat_metadata)
        names = head.SerializeToString()
        for line in sorted(plane.lines, key=self._rank):
            if self._rank(line) >= 0:
                yield line.name, _events(names, line)

    def _rank(self, line: Any) -> int:
        """Return the place of a line, -1 for one without operations; programs come before them."""
        name = line.name
        if self.device is None:
            return 0
        if self.device[0] == "gpu":
            return 0 if name.startswith(_GPU_LINE) else -1
        return _TPU_LINES.index(name) if name in _TPU_LINES else -1


def _events(names: bytes, line: Any) -> Iterator[Iterable[Any]]:
    """Yield the events of a line in parts, with the names of its plane."""
    most = max(1, len(line.events) * _PART // max(_PART, line.ByteSize()))
    for start in range(0, len(line.events), most):
        try:
            yield from events_of(_part(names, line, slice(start, start + most)))
        except ValueError as error:
            raise InvalidInput(CUT_OFF) from error


def _part(names: bytes, line: Any, which: slice) -> bytes:
    """Return a serialized XSpace with some events of a line."""
    part = XPlane(lines=[XLine(timestamp_ns=line.timestamp_ns, events=line.events[which])])
    # Messages one after the other are read as one message.
    space: bytes = XSpace(planes=[names + part.SerializeToString()]).SerializeToString()
    return space


@dataclass(frozen=True)
class TraceFile:
    """A file of a trace, which one host wrote: its programs, and the planes with operations."""

    host: str
    programs: tuple[TracedProgram, ...]
    planes: tuple[Plane, ...]


def read_file(path: Path) -> TraceFile:
    """Read a file; raises `InvalidInput` where it is damaged or not the profiler's."""
    return read_space(path.read_bytes(), path.name.removesuffix(".xplane.pb"))


def read_space(data: bytes, host: str = "") -> TraceFile:
    """Read a serialized XSpace of a host: files of several have different names."""
    planes, programs = list[Plane](), list[TracedProgram]()
    for each in parsed(XSpace, data).planes:
        plane = Plane(parsed(XPlane, each))
        if plane.name == _METADATA:
            programs += _programs(plane.message)
        elif plane.device or plane.name == HOST:
            planes.append(plane)
    devices = tuple(plane for plane in planes if plane.device)
    return TraceFile(host, tuple(programs), devices or tuple(planes))


def _programs(plane: Any) -> Iterator[TracedProgram]:
    """Yield the programs of the metadata's plane: each is the metadata of an event, with its HLO.

    A program without a stat `program_id` has the number of its metadata as its id, as in XProf.
    """
    names = _stat_names(plane)
    for entry in (parsed(Entry, each) for each in plane.event_metadata):
        number, proto = entry.key, b""
        for stat in entry.value.stats:
            name = names.get(stat.metadata_id)
            if name == "Hlo Proto":
                proto = parsed(HloProto, stat.bytes_value).hlo_module
            elif name == "program_id":
                number = stat.int64_value or stat.uint64_value
        if proto:
            yield TracedProgram(unsigned(number), parsed(HloModuleProto, proto).name, proto)


def unsigned(program_id: int) -> int:
    """Return the id of a program as names have it; as a number of metadata it is signed.

    >>> unsigned(-1) == 2**64 - 1
    True
    """
    return program_id % (1 << 64)


def _stat_names(plane: Any) -> dict[int, str]:
    entries = (parsed(Entry, each) for each in plane.stat_metadata)
    return {entry.key: entry.value.name for entry in entries}
