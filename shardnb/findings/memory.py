"""What a device's memory holds, by the compiler's own list of allocations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shardnb.report.model import UNUSED, Memory, Value

_ALLOCATION = re.compile(r"allocation \d+: size (\d+), (.*):$")
_VALUE = re.compile(
    r" value: <\d+ ([\w.\-]+)(?:\{[\d,]*\})? @\d+> \(size=(\d+),offset=(\d+)\): (.*)"
)


@dataclass(frozen=True)
class Buffer:
    """A value that is held in memory: the instruction that makes it, its HLO type, its bytes."""

    name: str
    type: str
    bytes: int


@dataclass(frozen=True)
class Allocation:
    """A piece of memory, what it is for, and the values in it."""

    bytes: int
    use: str
    buffers: tuple[Buffer, ...]


def read_allocations(text: str) -> tuple[Allocation, ...]:
    """Read XLA's buffer assignment: the allocations in the device's main memory."""
    return tuple(_read(text))


def _read(text: str) -> Iterator[Allocation]:
    head: tuple[int, str] | None = None
    values: dict[int, Buffer] = {}
    for line in (*text.splitlines(), "allocation 0: size 0, end:"):
        if opened := _ALLOCATION.match(line):
            if head is not None and "color" not in head[1]:
                yield Allocation(*head, tuple(values.values()))
            head, values = (int(opened[1]), opened[2]), {}
        elif value := _VALUE.match(line):
            name, size, offset, shape = value.groups()
            # Values that share a place in turn are one buffer: the first says where it comes from.
            if not shape.startswith("("):
                values.setdefault(int(offset), Buffer(name, shape, int(size)))


def memory_of_compiled(compiled: Any) -> Memory | None:
    """Return what one device holds, as the analysis of a compiled stage says; None without one."""
    stats = compiled.memory_analysis()
    if stats is None:
        return None
    return Memory(
        arguments=stats.argument_size_in_bytes,
        outputs=stats.output_size_in_bytes,
        temporaries=stats.temp_size_in_bytes,
        aliased=stats.alias_size_in_bytes,
        code=stats.generated_code_size_in_bytes,
        host=stats.host_argument_size_in_bytes
        + stats.host_output_size_in_bytes
        + stats.host_temp_size_in_bytes
        - stats.host_alias_size_in_bytes,
    )


def with_host(memory: Memory, inputs: Sequence[Value], outputs: Sequence[Value]) -> Memory:
    """Return what is on the host apart where the compiler counts it with the rest: CPU has one."""
    taken, given = (
        sum(value.shard_bytes for value in values if value.memory and value.details != UNUSED)
        for values in (inputs, outputs)
    )
    if memory.host or not taken + given:
        return memory
    left, kept = memory.arguments - taken, memory.outputs - given
    return replace(memory, arguments=left, outputs=kept, host=taken + given)


def memory_of(allocations: Sequence[Allocation]) -> Memory:
    """Return what one device holds, as the compiler's analysis of a program does."""

    def total(*parts: str) -> int:
        return sum(a.bytes for a in allocations if all(part in a.use for part in parts))

    inputs, results = "parameter", "maybe-live-out"
    return Memory(total(inputs), total(results), total("preallocated-temp"), total(inputs, results))
