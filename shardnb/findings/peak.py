"""What each device holds when most of its memory is in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from shardnb.findings.evidence import Evidence
from shardnb.findings.held_values import HeldValues
from shardnb.report.memory import Held, Memory, Peak, Use
from shardnb.texts.buffers import Allocation, Buffer, LiveRanges, at_the_peak, read_live_ranges
from shardnb.texts.instruction import HloValue, Instruction, parse_shape
from shardnb.views.sent import pattern

# Rows that a report keeps: of a thousand layers that are alike it needs a few, and a model of
# several thousand different arrays has its memory in the first of them.
_MOST = 100
# What takes less than a thousandth of the memory is not what anybody looks for.
_LEAST = 1000
_NO_VALUE = HloValue("")


def with_peak(evidence: Evidence) -> Memory | None:
    """Return what a program holds with what is alive at its peak, where XLA says when values are.

    Of a program with a part of its arguments on the host, CPU's list does not say which.
    """
    memory, main = evidence.memory, [each for each in evidence.allocations if each.is_main]
    ranges = read_live_ranges(evidence.dumps.live_ranges)
    if memory is None or not main or not ranges.ranges:
        return memory
    peak = _Reader(evidence, ranges).peak(main, memory.total // _LEAST)
    listed = sum(held.bytes for held in peak.held) + peak.others + peak.unused
    return replace(memory, peak=peak) if listed == memory.total else memory


class _Reader:
    def __init__(self, evidence: Evidence, ranges: LiveRanges) -> None:
        self.evidence, self.ranges = evidence, ranges
        self.values = HeldValues(evidence)

    def peak(self, main: Sequence[Allocation], least: int) -> Peak:
        arenas = [each for each in main if each.is_temporary]
        place = at_the_peak([b for arena in arenas for b in arena.buffers], self.ranges)
        held = [*self._edges(main), *(self._temporary(alike) for alike in place[1].values())]
        rows = sorted(_grouped(held), key=lambda row: (-row.bytes, row.use))
        named = [row for row in rows if row.name and row.bytes >= least][:_MOST]
        taken = sum(max(b.bytes for b in alike) for alike in place[1].values())
        node = self._node(place[0])
        return Peak(
            held=tuple(named),
            others=sum(row.bytes for row in rows) - sum(row.bytes for row in named),
            unused=sum(arena.bytes for arena in arenas) - taken,
            location=self.values.line(node) if node is not None else None,
            phase=self.values.phase(node) if node is not None else None,
        )

    def _edges(self, main: Sequence[Allocation]) -> Iterator[Held]:
        """Yield the arguments, and the results that reuse none of them."""
        for each in main:
            first = each.buffers[0] if each.buffers else Buffer(_NO_VALUE, "", each.bytes)
            if each.parameter is not None:
                name = self.values.argument(each.parameter)
                yield replace(_of(first, name, "argument"), bytes=each.bytes, reused=each.is_result)
            elif each.is_result:
                last = each.buffers[-1] if each.buffers else first
                yield replace(self._result(each, last), bytes=each.bytes)

    def _result(self, allocation: Allocation, last: Buffer) -> Held:
        for buffer in allocation.buffers:
            if name := self.values.results.get(buffer.value, ""):
                return _of(buffer, name, "output")
        return _of(last, "" if last.type.startswith("(") else last.value.name, "output")

    def _temporary(self, alike: Sequence[Buffer]) -> Held:
        """Describe values of one place: the loop's own say less than what it makes of them."""
        largest = max(alike, key=lambda buffer: buffer.bytes)
        if largest.type.startswith("("):
            return Held("", "temporary", largest.bytes)
        described = self.values.held(self._started(largest.value))
        sized = _of(largest, described.name, "temporary")
        return replace(described, bytes=sized.bytes, dtype=sized.dtype, shape=sized.shape)

    def _started(self, value: HloValue) -> HloValue:
        """Return the start of what runs asynchronously for its result, which has another name.

        The computation that it runs is not in the text; the schedule has it right before the start.
        """
        if value.name in self._by_name:
            return value
        following = self._by_name.get(self.ranges.order.get(self._at.get(value.name, -1) + 1, ""))
        starts = following is not None and following.opcode.endswith("-start")
        return following.value if following is not None and starts else value

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: at for at, name in self.ranges.order.items()}

    def _node(self, at: int) -> Instruction | None:
        return self._by_name.get(self.ranges.order.get(at, ""))

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        return {one.name: one for one in self.evidence.module.instructions()}


def _of(buffer: Buffer, name: str, use: Use) -> Held:
    arrays = parse_shape(buffer.type)
    dtype, shape = arrays[0] if len(arrays) == 1 else ("", ())
    return Held(name, use, buffer.bytes, dtype, shape)


def _grouped(held: Sequence[Held]) -> Iterator[Held]:
    """Add up what has one name, shape and line, and arguments whose names differ in numbers."""
    alike: dict[Held, list[Held]] = {}
    for each in held:
        name = each.name if each.use == "temporary" else pattern(each.name)
        alike.setdefault(replace(each, name=name, bytes=0), []).append(each)
    for key, same in alike.items():
        name = key.name if len(same) > 1 else same[0].name
        yield replace(key, name=name, bytes=sum(one.bytes for one in same), count=len(same))
