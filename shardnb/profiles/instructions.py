"""Which instructions of a program communicate, and for which collective: by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from shardnb.collectives.fused import Fused, Key, fused_collectives
from shardnb.report.model import Collective
from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import ASYNC_CALLERS, NO_WORK

_NAME = re.compile(r"%?([\w.\-]+) = ")
# A loop, a branch or a call lasts as long as what it runs, which has events of its own; a transfer
# only waits.
_NOT_COMPUTING = NO_WORK | {"while", "conditional", "call", "send", "recv"}
_BESIDE = ("-start", "-done", "-update")


@dataclass(frozen=True)
class Communicating:
    """Instructions that communicate.

    `begins` has for each instruction that is or starts a collective the first id of the report's
    collectives that it sends, `ends` the same for the one that waits for it. `computing` are those
    that compute, `once` those that run once per run, in their order.
    """

    begins: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    computing: frozenset[str] = frozenset()
    once: tuple[str, ...] = ()


def communicating(module: Module, collectives: Sequence[Collective]) -> Communicating:
    """Find the instructions of a program that are those of the report's collectives."""
    ids: dict[str, int] = {}
    for each in collectives:
        if match := _NAME.match(each.instruction):
            ids.setdefault(match[1], each.id)
    begins, ends, computing = dict[str, int](), dict[str, int](), set[str]()
    fused = fused_collectives(module)
    by_key = {part.key: part.collective.name for part in reversed(fused.values())}
    for one in module.instructions():
        if _computes(one):
            computing.add(one.name)
        part = fused.get(one.calls("calls")) if one.opcode == "fusion" else None
        if part is not None:
            _add_fused(one, part, by_key, ids, (begins, ends))
        elif one.opcode.endswith(("-done", "-update")):
            if (started := _started_by(module, one)) in begins:
                ends[one.name] = begins[started]
        elif (name := _collective_of(module, one)) in ids:
            begins[one.name] = ids[name]
    once = tuple(one.name for one in module.body(module.entry) if one.opcode not in NO_WORK)
    return Communicating(begins, ends, frozenset(computing - set(begins) - set(ends)), once)


def _computes(one: Instruction) -> bool:
    """Whether an instruction computes, and does not only contain others, or wait for them."""
    if one.opcode.endswith(_BESIDE):
        return one.opcode in ASYNC_CALLERS
    return one.opcode not in _NOT_COMPUTING


def _add_fused(
    fusion: Instruction,
    part: Fused,
    by_key: dict[Key | None, str],
    ids: dict[str, int],
    into: tuple[dict[str, int], dict[str, int]],
) -> None:
    """Add a fusion that sends a collective, or starts or ends one; a step in between computes."""
    name = part.collective.name if part.key is None else by_key[part.key]
    number = ids.get(name, ids.get(part.collective.name))
    if number is None:
        return
    begins, ends = into
    if part.ends and not part.starts:
        ends[fusion.name] = number
    elif part.starts or not _in_steps(part, by_key):
        begins[fusion.name] = number


def _in_steps(part: Fused, by_key: dict[Key | None, str]) -> bool:
    """Whether other fusions start and end the collective of this one."""
    return part.key is not None and by_key[part.key] != part.collective.name


def _collective_of(module: Module, one: Instruction) -> str:
    """Return the collective that an instruction is, or that what it starts is; else ""."""
    if kind_of(one.opcode) or one.opcode == "send":
        return one.name
    if not one.opcode.endswith("-start"):
        return ""
    bodies = (module.body(name) for _, name in one.called)
    return next((each.name for body in bodies for each in body if kind_of(each.opcode)), "")


def _started_by(module: Module, done: Instruction) -> str:
    """Return the start that a `-done` waits for, through its updates."""
    graph, one = module.graph_of(done), done
    while one.opcode.endswith(("-done", "-update")) and one.operands:
        started = graph.maker(one.operands[0])
        if started is None or started is one:
            return ""
        one = started
    return one.name
