"""What a device's memory holds, by the compiler's own list of allocations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardnb.report.model import Finding, Location, Memory
from shardnb.texts.hlo import Frame, Instruction, Module, parse_shape

_ALLOCATION = re.compile(r"allocation \d+: size (\d+), (.*):$")
_VALUE = re.compile(
    r" value: <\d+ ([\w.\-]+)(?:\{[\d,]*\})? @\d+> \(size=(\d+),offset=(\d+)\): (.*)"
)
_NEEDED = re.compile(
    r"\(([\d.]+)([KMGT]?)\) exceeds available \w+ \(([\d.]+)([KMGT]?)\)"
    r"|Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?)"
)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LISTED, _SAID = 10, 3
_NOT_HELD = ("thread-local", "constant")

Locate = Callable[[tuple[Frame, ...]], tuple[Location, ...]]


@dataclass(frozen=True)
class Buffer:
    """A value that is held in memory: the instruction that makes it, its HLO type, its bytes."""

    name: str
    type: str
    bytes: int


@dataclass(frozen=True)
class Allocation:
    """A piece of memory, what it is for, and the values that lie in it."""

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
            # What lies in one place by turns is one buffer: the first says where it comes from.
            if not shape.startswith("("):
                values.setdefault(int(offset), Buffer(name, shape, int(size)))


def memory_of_compiled(compiled: Any) -> Memory | None:
    """Give what one device holds, as the analysis of a compiled stage says; None without one."""
    stats = compiled.memory_analysis()
    if stats is None:
        return None
    return Memory(
        arguments=stats.argument_size_in_bytes,
        outputs=stats.output_size_in_bytes,
        temporaries=stats.temp_size_in_bytes,
        aliased=stats.alias_size_in_bytes,
        code=stats.generated_code_size_in_bytes,
    )


def memory_of(allocations: Sequence[Allocation]) -> Memory:
    """Give what one device holds, as the compiler's analysis of a program would."""
    arguments = sum(a.bytes for a in allocations if "parameter" in a.use)
    outputs = sum(
        a.bytes for a in allocations if "maybe-live-out" in a.use and "parameter" not in a.use
    )
    total = sum(a.bytes for a in allocations if a.use.rpartition(", ")[2] not in _NOT_HELD)
    return Memory(arguments, outputs, total - arguments - outputs)


def out_of_memory(failure: str, text: str, module: Module, locate: Locate) -> Finding:
    """Say that a program does not fit into a device: needed, available, the largest buffers."""
    known = {one.name: one for one in module.instructions()}
    buffers = [buffer for a in read_allocations(text) for buffer in a.buffers]
    largest = sorted(buffers, key=lambda buffer: -buffer.bytes)[:_LISTED]
    told, first = [], None
    for buffer in largest:
        instruction = known.get(buffer.name)
        frames = locate(module.frames(instruction)) if instruction is not None else ()
        first = first or next(iter(frames), None)
        where = f" at line {frames[0].line}" if frames else ""
        told.append(
            f"{_size(buffer.bytes)} {_type(buffer)} of {_named(buffer, instruction)}{where}"
        )
    listed = f"; the largest buffers: {'; '.join(told[:_SAID])}" if told else ""
    return Finding("out-of-memory", _message(failure) + listed, first, details="\n".join(told))


def _message(failure: str) -> str:
    found = _NEEDED.search(failure)
    if found is None or "hbm" not in failure.lower():
        return failure.partition("\n")[0]
    needed, unit, available, other = (part for part in found.groups() if part is not None)
    return (
        "the program does not fit: a device needs "
        f"{_size(_bytes(needed, unit))} of memory and has {_size(_bytes(available, other))}"
    )


def _named(buffer: Buffer, instruction: Instruction | None) -> str:
    name = instruction.op_name if instruction is not None else ""
    return name.rpartition("/")[2] if name.startswith("jit(") else name or buffer.name


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit])


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"


def _type(buffer: Buffer) -> str:
    dtype, shape = parse_shape(buffer.type)[0]
    return f"{dtype}[{', '.join(map(str, shape))}]"
