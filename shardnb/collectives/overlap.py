"""The operations scheduled between the start and the done of an asynchronous collective."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from shardnb.collectives.fused import Fused, Key
from shardnb.report.model import Overlap
from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import NO_WORK, WORK_OF_ANY_SIZE

_NAMED = 8
_NO_WORK_ENDS = ("-start", "-done", "-update")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_IS_SYNC = re.compile(r'\bis_sync\\?":\s*true')
_NUMBER = re.compile(r"[.\d]+$")


def overlaps(module: Module, fused: dict[str, Fused]) -> dict[str, Overlap]:
    """Return by the collective's name the operations between its start and its end.

    Empty if the order of the text is not a schedule.
    """
    if "is_scheduled=true" not in module.header:
        return {}
    starts = module.of_kind(*(code for code in module.opcodes if code.endswith("-start")))
    begun = [*starts, *(part.fusion for part in fused.values())]
    return {
        name: overlap
        for computation in dict.fromkeys(one.computation for one in begun)
        for name, overlap in _in_body(module, module.body(computation), fused)
    }


def _in_body(
    module: Module, body: Sequence[Instruction], fused: dict[str, Fused]
) -> Iterator[tuple[str, Overlap]]:
    begun: dict[str | Key, tuple[str, int]] = {}
    work: list[Instruction] = []
    for instruction in body:
        part = fused.get(instruction.calls("calls")) if instruction.opcode == "fusion" else None
        if part is not None and part.key is not None and part.starts:
            begun[part.key] = part.collective.name, len(work)
        elif part is not None and part.key in begun and part.ends:
            name, since = begun.pop(part.key)
            yield name, _overlap(work[since:])
        elif instruction.opcode.endswith("-start") and not _IS_SYNC.search(instruction.attributes):
            collective = _started(module, instruction)
            if collective is not None:
                begun[instruction.name] = collective.name, len(work)
        elif instruction.opcode.endswith(("-update", "-done")):
            started = instruction.operands[0].name if instruction.operands else ""
            before = begun.pop(started, None)
            if before is not None and instruction.opcode.endswith("-update"):
                # SparseCore is started early, and gets its operand in an update.
                late = len(instruction.operands) > 1
                begun[instruction.name] = (before[0], len(work)) if late else before
            elif before is not None:
                yield before[0], _overlap(work[before[1] :])
        elif begun and _is_work(instruction):
            work.append(instruction)


def _started(module: Module, start: Instruction) -> Instruction | None:
    """Return the collective of a start: itself, or the one in the computation it calls."""
    if kind_of(start.opcode):
        return start
    bodies = (module.body(name) for _, name in start.called)
    return next((one for body in bodies for one in body if kind_of(one.opcode)), None)


def _is_work(instruction: Instruction) -> bool:
    """Whether an instruction computes more than an index or a counter."""
    if instruction.opcode in NO_WORK or instruction.opcode.endswith(_NO_WORK_ENDS):
        return False
    single = all(math.prod(shape) == 1 for _, shape in instruction.arrays)
    return instruction.opcode in WORK_OF_ANY_SIZE or not single


def _overlap(work: Sequence[Instruction]) -> Overlap:
    names = dict.fromkeys(map(_named, work))
    cycles = [int(found[1]) for i in work if (found := _CYCLES.search(i.attributes))]
    return Overlap(len(work), tuple(names)[:_NAMED], sum(cycles) if cycles else None)


def _named(instruction: Instruction) -> str:
    """Name an operation as JAX does, else as HLO does."""
    name = instruction.op_name.rpartition("/")[2]
    if name and "jit(" in instruction.op_name:
        return name
    fusion = instruction.opcode == "fusion"
    return _NUMBER.sub("", instruction.name) if fusion else instruction.opcode
