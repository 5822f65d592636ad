"""Whether a report that comes from elsewhere says something that can be: what is read is checked.

So no view meets an axis that the mesh does not have, a line of a source that is not there, or a
number that no program has. A report is checked once, where it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from shardnb.report import dtypes
from shardnb.report.invalid_input import (
    MOST_DEVICES,
    InvalidInput,
    check_devices,
    place,
    shown_number,
)
from shardnb.report.model import Collective, Location, Mesh, Report, Spec, Value
from shardnb.terms.collectives import KINDS

_MOST = 1 << 62
"""Above all bytes and counts of a program, and below what JSON holds."""
_SIGNED = {"number", "memory_bytes"}
"""Fields that may be negative, as what changed has either direction."""
_MOST_DIMENSIONS = 64
"""More than XLA takes; each takes room in a picture."""


def check(report: Report) -> Report:
    """Return a report back; raises `InvalidInput` with what does not fit."""
    with place("its mesh"):
        _mesh(report.mesh)
    checker = _Checker(report)
    checker.numbers(report)
    findings = (value for finding in report.findings for value in finding.values)
    for value in (*report.inputs, *report.outputs, *report.values, *findings):
        with place(f"the array {_name(value.name)}"):
            checker.value(value)
    for one in report.collectives:
        with place(f"collective {one.id}"):
            checker.collective(one)
    checker.typed()
    with place("its timeline"):
        checker.timeline()
    return report


def _name(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _expected(what: str, got: object) -> InvalidInput:
    return InvalidInput(f"expected {what}, got {got}")


def _mesh(mesh: Mesh) -> None:
    check_devices(mesh.size)
    names = [axis.name for axis in mesh.axes]
    if len(set(names)) < len(names):
        raise _expected("axes of different names", ", ".join(map(_name, names)))
    for axis in mesh.axes:
        check_devices(axis.size)
    devices = math.prod(axis.size for axis in mesh.axes)
    if mesh.axes and devices != mesh.size:
        raise _expected(f"the {shown_number(devices)} devices of its axes", mesh.size)
    for name, listed in (
        ("coordinates", mesh.coords),
        ("cores", mesh.cores),
        ("slices", mesh.slices),
        ("hosts", mesh.hosts),
        ("domains", mesh.domains),
    ):
        if listed is not None and len(listed) != mesh.size:
            raise _expected(f"{name} of {mesh.size} devices", len(listed))
    if mesh.coords is not None and len({len(chip) for chip in mesh.coords}) > 1:
        raise InvalidInput("expected coordinates of as many dimensions for each device")


class _Checker:
    """Checks the parts of one report; what is shared by many is checked once."""

    def __init__(self, report: Report) -> None:
        self.report, self.mesh = report, report.mesh
        self._specs: set[Spec] = set()
        self._groups: dict[int, tuple[object, int | None]] = {}
        self._ids = {one.id for one in report.collectives}
        if len(self._ids) < len(report.collectives):
            raise InvalidInput("expected collectives with different ids")

    def numbers(self, thing: Any) -> None:
        """Check every number, line and step of a part of the report, apart from groups."""
        for item in fields(thing):
            value = getattr(thing, item.name)
            if is_dataclass(value):
                self.numbers(value)
            elif isinstance(value, tuple) and value and item.name != "groups":
                self._all(value, item.name)
            elif isinstance(value, dict):
                self._all(value.values(), item.name)
            else:
                self._number(value, item.name)
        if isinstance(thing, Location):
            self._location(thing)

    def _all(self, values: Iterable[Any], name: str) -> None:
        for value in values:
            if is_dataclass(value):
                self.numbers(value)
            elif isinstance(value, tuple):
                self._all(value, name)
            else:
                self._number(value, name)

    @staticmethod
    def _number(value: Any, name: str) -> None:
        least = -_MOST if name in _SIGNED else 0
        if isinstance(value, int) and not least <= value <= _MOST:
            raise _expected(f"a number from 0 to 2^62 for {name}", shown_number(value))
        if isinstance(value, float) and not 0 <= value < math.inf:
            raise _expected(f"a number from 0 for {name}", value)

    def _location(self, location: Location) -> None:
        if location.source >= len(self.report.sources):
            there = len(self.report.sources)
            raise _expected(f"one of {there} sources for a line", location.source)

    def value(self, value: Value) -> None:
        _array(value.dtype, value.shape)
        if len(value.shard_shape) != len(value.shape):
            ranks = len(value.shape), len(value.shard_shape)
            raise _expected(f"a block of {ranks[0]} dimensions", ranks[1])
        for spec in (value.spec, value.requested, value.propagated):
            if spec is not None:
                self._spec(spec, len(value.shape))
        if value.spec is None:
            self._blocks(value)
        for origin in value.origins:
            if origin.after is not None and origin.after >= len(self.report.values):
                raise _expected("an array of the report for an origin", origin.after)

    def _blocks(self, value: Value) -> None:
        grid = value.grid or (1,) * len(value.shape)
        if len(grid) != len(value.shape) or 0 in grid:
            raise _expected(f"a grid of {len(value.shape)} dimensions", grid[:_MOST_DIMENSIONS])
        blocks, total = value.blocks or (0,), math.prod(grid)
        if value.blocks is not None and len(value.blocks) != self.mesh.size:
            raise _expected(f"the blocks of {self.mesh.size} devices", len(value.blocks))
        if max(blocks) >= total:
            raise _expected(f"one of {shown_number(total)} blocks", max(blocks))

    def _spec(self, spec: Spec, rank: int) -> None:
        if len(spec) != rank:
            raise _expected(f"a spec of {rank} dimensions", len(spec))
        if spec not in self._specs:
            for axis in (axis for entry in spec for axis in entry):
                self._axis(axis)
            blocks = math.prod(self._size(axis) for entry in spec for axis in entry)
            if blocks > MOST_DEVICES:
                raise _expected(f"at most {MOST_DEVICES:,} blocks", shown_number(blocks))
            self._specs.add(spec)

    def _axis(self, axis: str) -> None:
        name, part, _ = axis.partition(":(") if axis not in self.mesh.shape else (axis, "", "")
        if name not in self.mesh.shape:
            there = ", ".join(map(_name, self.mesh.shape)) or "none"
            raise _expected(f"an axis of the mesh ({there})", _name(axis))
        if not part:
            return
        before, close, size = axis.rpartition(":(")[2].partition(")")
        numbers = [int(text) for text in (before, size) if text.isdecimal() and len(text) < 20]
        if not close or len(numbers) < 2 or 0 in numbers:
            raise _expected(f"a part of an axis, such as {name}:(2)4", _name(axis))
        if self.mesh.shape[name] % math.prod(numbers):
            raise _expected(f"a part of {name}={self.mesh.shape[name]}", _name(axis))

    def _size(self, axis: str) -> int:
        if axis in self.mesh.shape:
            return self.mesh.shape[axis]
        return int(axis.rpartition(")")[2])

    def collective(self, one: Collective) -> None:
        _array(one.dtype, one.shape)
        for axis in one.axes or ():
            self._axis(axis)
        highest = self._highest(one)
        if highest >= self.mesh.size:
            devices = f"positions of {self.mesh.size} devices in its groups"
            raise _expected(devices, shown_number(highest))
        if KINDS[one.kind].in_pairs and any(len(pair) != 2 for pair in one.groups):
            raise InvalidInput("expected pairs of a source and a target")
        if not set(one.combined_with) <= self._ids:
            raise _expected("collectives of the report in combined_with", one.combined_with[:9])
        self._moved(one)

    def _moved(self, one: Collective) -> None:
        """Check what is said of the array that a collective moves."""
        if one.producer_shape is not None:
            _array(one.dtype, one.producer_shape)
        for spec in (one.producer_spec, one.needed_spec):
            if spec is not None:
                self._spec(spec, len(spec if one.producer_shape is None else one.producer_shape))

    def _highest(self, one: Collective) -> int:
        """Return the highest position in a collective's groups; the JSON shares them."""
        known = self._groups.get(id(one.groups))
        if known is None:
            known = one.groups, self._found(one)
            self._groups[id(one.groups)] = known
        return known[1] or 0

    @staticmethod
    def _found(one: Collective) -> int:
        positions = [position for group in one.groups for position in group]
        if min(positions, default=0) < 0 or not all(one.groups):
            raise InvalidInput("expected groups of positions of devices")
        return max(positions, default=0)

    def timeline(self) -> None:
        """Check that each span has a start and an end, and its collective and device exist."""
        for line in self.report.profile.timeline if self.report.profile else ():
            if len(line.computing) % 2 or len(line.communicating) != 2 * len(line.ids):
                raise InvalidInput("expected a start and an end of each span")
            if not set(line.ids) <= self._ids:
                raise _expected("collectives of the report", line.ids[:9])
            if line.position is not None and line.position >= self.mesh.size:
                raise _expected(f"positions of {self.mesh.size} devices", line.position)

    def typed(self) -> None:
        """Check the lines of the typed view."""
        for line in self.report.typed:
            for bound in line.binds:
                with place(f"the binder {_name(bound.name)}"):
                    if len(bound.spec) != len(bound.shape):
                        raise _expected(f"a spec of {len(bound.shape)} dimensions", len(bound.spec))


def _array(dtype: str, shape: tuple[int, ...]) -> None:
    """Check an array's element type, and that its bytes can be counted."""
    if len(shape) > _MOST_DIMENSIONS:
        raise _expected(f"at most {_MOST_DIMENSIONS} dimensions", len(shape))
    size = dtypes.size_in_bytes(dtype, shape)
    if size > _MOST:
        raise _expected("an array of at most 2^62 bytes", shown_number(size))
