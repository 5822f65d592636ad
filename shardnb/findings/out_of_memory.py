"""Programs that do not fit into the memory of a device."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.cost import find_hardware
from shardnb.findings.evidence import Evidence
from shardnb.jax_compat.error_wordings import MEMORY_NEEDED
from shardnb.report.model import Finding
from shardnb.texts.buffers import Buffer
from shardnb.texts.instruction import Instruction, parse_shape

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LISTED, _SAID = 10, 3


def find(evidence: Evidence) -> Iterator[Finding]:
    """Say that a program does not fit into a device: needed, available, the largest buffers."""
    message = _message(evidence.failure) if evidence.failure else _on_gpu(evidence)
    if not message:
        return
    module, locate = evidence.module, evidence.sources.locate_anywhere
    known = {one.name: one for one in module.instructions()}
    buffers = [buffer for a in evidence.allocations if a.is_main for buffer in a.largest]
    largest = sorted(buffers, key=lambda buffer: -buffer.bytes)[:_LISTED]
    told, first = [], None
    for buffer in largest:
        instruction = known.get(buffer.value.name)
        frames = locate(module.frames(instruction)) if instruction is not None else ()
        first = first or next(iter(frames), None)
        where = f" at line {frames[0].line}" if frames else ""
        dtype, shape = parse_shape(buffer.type)[0]
        name = _named(buffer, instruction)
        told.append(f"{_size(buffer.bytes)} {dtype}{list(shape)} of {name}{where}")
    listed = f"; the largest buffers: {'; '.join(told[:_SAID])}" if told else ""
    yield Finding("out-of-memory", message + listed, first, details="\n".join(told))


def _on_gpu(evidence: Evidence) -> str:
    """Say what a GPU needs and has, where it is too little: the compiler for GPUs refuses nothing.

    "" where the program fits, or where that is not known.
    """
    mesh, memory = evidence.mesh, evidence.memory
    hardware = None if mesh.emulated or memory is None else find_hardware(mesh.kind)
    if memory is None or hardware is None or hardware.dims or not hardware.memory:
        return ""
    return _sentence(memory.total, hardware.memory) if memory.total > hardware.memory else ""


def _sentence(needed: int, available: int) -> str:
    return (
        "the program does not fit: a device needs "
        f"{_size(needed)} of memory and has {_size(available)}"
    )


def _message(failure: str) -> str:
    found = MEMORY_NEEDED.search(failure)
    if found is None or "hbm" not in failure.lower():
        return failure.partition("\n")[0]
    needed, unit, available, other = (part for part in found.groups() if part is not None)
    return _sentence(_bytes(needed, unit), _bytes(available, other))


def _named(buffer: Buffer, instruction: Instruction | None) -> str:
    name = instruction.op_name if instruction is not None else ""
    return name.rpartition("/")[2] if name.startswith("jit(") else name or buffer.value.name


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit])


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"
