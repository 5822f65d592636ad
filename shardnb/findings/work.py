"""What one device computes in one call, as the compiler's own cost analysis counts it.

XLA counts the body of a loop once. Each body is counted apart, and times its trips.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shardnb.bugs import Inconclusive
from shardnb.collectives.trips import trip_count
from shardnb.findings.least_traffic import least_traffic
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import cost_counts
from shardnb.report.cost import Work
from shardnb.texts import hlo
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction

_START = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
_FRAME = re.compile(r" ?\bstack_frame_id=\d+")
_CALLERS = ("call", "async-start")
_KNOWN = re.compile(
    r'custom_call_target="(Sharding|SPMD\w*|AllocateBuffer|ConcatBitcast|annotate_device_placement|MoveTo\w+'
    r'|PinToDevice|AssumeGatherIndicesInBound|xla\.sdy\.\w+)"'
)


def work_of(text: str, module: Module | None = None, compiled: Any = None) -> Work | None:
    """Count the work in the text of an optimized program.

    The stage `compiled`, where there is one, is faster for what is outside loops. None where
    the trips of a loop are not known, a loop is in a branch, or the compiler cannot count.
    """
    program = _Program(text, module or hlo.parse(text), compiled)
    try:
        flops, accessed = program.total(program.module.entry)
    except (Inconclusive, ValueError, NotAvailable):
        return None
    if flops <= 0 and accessed <= 0:
        return None
    least = min(float(least_traffic(program.module)), accessed)
    return Work(max(flops, 0.0), accessed, program.uncounted, least)


@dataclass(frozen=True)
class _Program:
    """An optimized program as text and as data."""

    text: str
    module: Module
    compiled: Any = None
    _known: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def uncounted(self) -> int:
        """The number of custom calls whose work the compiler does not know."""
        calls = self.module.of_kind("custom-call")
        return sum(not _KNOWN.search(call.attributes) for call in calls)

    def total(self, name: str) -> tuple[float, float]:
        """Return the operations and the bytes of a computation, loops times their trips."""
        flops, accessed = self._once(name)
        for loop in self._loops(name):
            trips = trip_count(self.module, loop)
            if trips is None:
                raise Inconclusive
            for _, part in loop.called:
                once, whole = self._once(part), self.total(part)
                flops += trips * whole[0] - once[0]
                accessed += trips * whole[1] - once[1]
        return flops, accessed

    def _loops(self, name: str) -> Iterator[Instruction]:
        """Yield the loops of a computation, and of what it calls."""
        for instruction in self.module.body(name):
            if instruction.opcode == "while":
                yield instruction
            elif instruction.opcode == "conditional":
                if any(list(self._loops(branch)) for _, branch in instruction.called):
                    raise Inconclusive
            elif instruction.opcode in _CALLERS:
                for _, called in instruction.called:
                    yield from self._loops(called)

    def _once(self, name: str) -> tuple[float, float]:
        if name not in self._known:
            counts = self._whole() if name == self.module.entry else None
            counts = counts or cost_counts(self._alone(name))
            self._known[name] = counts.get("flops", 0.0), counts.get("bytes accessed", 0.0)
        return self._known[name]

    def _whole(self) -> Mapping[str, float] | None:
        with suppress(Exception):  # a backend that does not count may raise anything
            return dict(self.compiled.cost_analysis()) if self.compiled is not None else None
        return None

    def _alone(self, name: str) -> str:
        """Write a computation as a module of its own."""
        if name == self.module.entry:
            return self.text
        needed = self._needed(name)
        blocks = [
            f"ENTRY {block.removeprefix('ENTRY ')}" if one == name else block
            for one, block in self._blocks.items()
            if one in needed
        ]
        return "\n\n".join(("HloModule part", *blocks))

    def _needed(self, name: str) -> set[str]:
        found, left = {name}, [name]
        while left:
            for instruction in self.module.body(left.pop()):
                fresh = {called for _, called in instruction.called} - found
                found |= fresh
                left += fresh
        return found

    @cached_property
    def _blocks(self) -> dict[str, str]:
        """The text of each computation."""
        blocks: dict[str, str] = {}
        lines: list[str] = []
        name = ""
        for line in self.text.splitlines():
            if not name and (match := _START.match(line)):
                name, lines = match[2], []
            if name:
                lines.append(_FRAME.sub("", line))
            if name and line.startswith("}"):
                blocks[name], name = "\n".join(lines), ""
        return blocks
