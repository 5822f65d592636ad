"""XLA's buffer assignment and live ranges: what shares the memory of a device, and when."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardnb.texts.instruction import HloValue

# A number of more digits is none of XLA's; Python refuses to read one of thousands.
_ALLOCATION = re.compile(r"allocation \d{1,18}: size (\d{1,18}), (.*):$")
_VALUE = re.compile(
    r" value: <\d+ ([\w.\-]+)(?:\{([\d,]*)\})?(?: \(phi\))? @\d+> "
    r"\(size=(\d{1,18}),offset=(\d{1,18})\): (.*)"
)
_RANGE = re.compile(r"    ([\w.\-]+)\{([\d,]*)\}:(\d{1,18})-(\d{1,18})$")
_IN_ORDER = re.compile(r"    (\d{1,18}):([\w.\-]+)$")
_PARAMETER = re.compile(r"\bparameter (\d{1,9})\b")
_COLOR = re.compile(r"\bcolor (\d{1,9})\b")


@dataclass(frozen=True)
class Buffer:
    """A value that is held in memory: what makes it, its HLO type, its bytes and its offset."""

    value: HloValue
    type: str
    bytes: int
    offset: int = 0


@dataclass(frozen=True)
class Allocation:
    """A piece of memory, what it is for, and the values in it, which may share it in turn."""

    bytes: int
    use: str
    buffers: tuple[Buffer, ...] = ()

    @property
    def parameter(self) -> int | None:
        """The number of the parameter that is in it."""
        match = _PARAMETER.search(self.use)
        return int(match[1]) if match else None

    @property
    def is_result(self) -> bool:
        """Whether a result is in it at the end."""
        return "maybe-live-out" in self.use

    @property
    def is_temporary(self) -> bool:
        """Whether it holds the values that the program computes on the way."""
        return "preallocated-temp" in self.use

    @property
    def is_main(self) -> bool:
        """Whether it is in the device's main memory, not in a memory on the chip or the host's."""
        return _COLOR.search(self.use) is None

    @property
    def largest(self) -> tuple[Buffer, ...]:
        """At each of its offsets the first value: the others share its place in turn."""
        first: dict[int, Buffer] = {}
        for buffer in self.buffers:
            if not buffer.type.startswith("("):
                first.setdefault(buffer.offset, buffer)
        return tuple(first.values())


def read_allocations(text: str) -> tuple[Allocation, ...]:
    """Read XLA's buffer assignment, in the order of its text."""
    return tuple(_read(text))


def _read(text: str) -> Iterator[Allocation]:
    head: tuple[int, str] | None = None
    values: list[Buffer] = []
    for line in (*text.splitlines(), "allocation 0: size 0, end:"):
        if opened := _ALLOCATION.match(line):
            if head is not None:
                yield Allocation(*head, tuple(values))
            head, values = (int(opened[1]), opened[2]), []
        elif value := _VALUE.match(line):
            name, index, size, offset, shape = value.groups()
            values.append(Buffer(_value(name, index), shape, int(size), int(offset)))


def _value(name: str, index: str | None) -> HloValue:
    return HloValue(name, tuple(int(part) for part in (index or "").split(",") if part))


@dataclass(frozen=True)
class LiveRanges:
    """When each value is alive, by the instructions that run then: the first and the last.

    `order` names them by their place in the schedule, with those of loops in it.
    """

    ranges: Mapping[HloValue, tuple[int, int]]
    order: Mapping[int, str]


def read_live_ranges(text: str) -> LiveRanges:
    """Read XLA's live ranges; without a text there are none."""
    ranges: dict[HloValue, tuple[int, int]] = {}
    order: dict[int, str] = {}
    for line in text.splitlines():
        if found := _RANGE.match(line):
            first, last = int(found[3]), int(found[4])
            if first <= last:
                ranges[_value(found[1], found[2])] = first, last
        elif found := _IN_ORDER.match(line):
            order[int(found[1])] = found[2]
    return LiveRanges(ranges, order)


Places = dict[int, list[Buffer]]
"""The values that are alive at once, by their offset: those of one place are one in memory."""


def at_the_peak(arena: Sequence[Buffer], ranges: LiveRanges) -> tuple[int, Places]:
    """Return when most of an allocation is in use, the first time, and what is alive then.

    XLA gives all values that are alive at once a place of their own, apart from those that it has
    update each other in place, such as a loop's state and its result.
    """
    begin, end = defaultdict[int, list[Buffer]](list), defaultdict[int, list[Buffer]](list)
    for buffer in arena:
        if known := ranges.ranges.get(buffer.value):
            begin[known[0]].append(buffer)
            end[known[1]].append(buffer)
    alive, used = defaultdict[int, list[Buffer]](list), 0
    most, peak, held = -1, 0, Places()
    for time in sorted(begin.keys() | end.keys()):
        for buffer in begin[time]:
            used -= _room(alive[buffer.offset])
            alive[buffer.offset].append(buffer)
            used += _room(alive[buffer.offset])
        if used > most:
            most, peak = used, time
        for buffer in end[time]:
            used -= _room(alive[buffer.offset])
            alive[buffer.offset].remove(buffer)
            used += _room(alive[buffer.offset])
    for buffer in arena:
        first, last = ranges.ranges.get(buffer.value, (1, 0))
        if first <= peak <= last:
            held.setdefault(buffer.offset, []).append(buffer)
    return peak, held


def _room(buffers: Sequence[Buffer]) -> int:
    return max((buffer.bytes for buffer in buffers), default=0)
