"""Collectives in loops that would do once: what they add up, and what never changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardnb.findings.whole_program import location_of
from shardnb.report.model import Collective, Finding
from shardnb.texts.hlo import Instruction, Module

_PASSED_ON = ("transpose", "reshape", "copy", "convert", "bitcast", "all-reduce")
_CONSTANT = ("constant", "iota")
_EFFECTS = ("rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "recv", "custom-call")


@dataclass(frozen=True)
class _Use:
    """The instructions that read each value of a computation."""

    readers: Mapping[str, list[Instruction]]

    @classmethod
    def of(cls, body: Sequence[Instruction]) -> _Use:
        readers: dict[str, list[Instruction]] = defaultdict(list)
        for instruction in body:
            for operand in instruction.operands:
                readers[operand].append(instruction)
        return cls(readers)

    def only(self, name: str) -> Instruction | None:
        """Give the one reader of a value, if there is just one."""
        found = self.readers.get(name, [])
        return found[0] if len(found) == 1 else None


def accumulated_in_loops(
    partitioned: Module, collectives: Sequence[Collective]
) -> Iterator[Finding]:
    """Find all-reduces in a loop whose results are only added up: one after the loop would do."""
    by_channel = {c.channel: c for c in collectives if "while" in c.within}
    for body in partitioned.computations.values():
        reduces = [i for i in body if i.opcode == "all-reduce" and not i.is_tuple]
        found = [i for i in reduces if i.integer("channel_id") in by_channel]
        if found:
            use = _Use.of(body)
            for reduce in found:
                if _only_added_up(reduce, body, use):
                    yield _accumulation(by_channel[reduce.integer("channel_id")])


def _accumulation(collective: Collective) -> Finding:
    trips = collective.trips
    saved = None if trips is None else collective.wire_bytes * (trips - 1)
    return Finding(
        "accumulation",
        f"all-reduce in a loop whose results are only added up: "
        f"{trips or 'an unknown number of'} are sent, and one after the loop would do "
        "(accumulate the partial sums unreduced)",
        location_of(collective),
        wasted_bytes=saved,
    )


def _only_added_up(reduce: Instruction, body: Sequence[Instruction], use: _Use) -> bool:
    """Whether a value flows only into `carry + value`, the next value of that same carry."""
    reader, name = use.only(reduce.name), reduce.name
    while reader is not None and reader.opcode in _PASSED_ON:
        name, reader = reader.name, use.only(reader.name)
    if reader is None or reader.opcode != "add":
        return False
    carries = [operand for operand in reader.operands if operand != name]
    root = next((i for i in body if i.is_root), body[-1])
    if len(carries) != 1 or use.only(reader.name) is not root or root.opcode != "tuple":
        return False
    return _is_carry(carries[0], root.operands.index(reader.name), body, use)


def _is_carry(name: str, index: int, body: Sequence[Instruction], use: _Use) -> bool:
    parameter, _, element = name.partition("#")
    by_name = {i.name: i for i in body if i.opcode in ("parameter", "get-tuple-element")}
    found = by_name.get(parameter)
    if found is not None and found.opcode == "get-tuple-element":
        element = str(found.integer("index"))
    return element == str(index) and use.only(name) is not None


def unchanging_in_loops(
    partitioned: Module, collectives: Sequence[Collective]
) -> Iterator[Finding]:
    """Find collectives in a loop of arrays that are the same in every step of it."""
    by_channel = {c.channel: c for c in collectives if "while" in c.within}
    for body in partitioned.computations.values():
        if any(i.integer("channel_id") in by_channel for i in body):
            for one in _unchanging(body):
                found = by_channel.get(one.integer("channel_id"))
                if found is not None and found.trips != 1:
                    yield _once_before(found)


def _once_before(collective: Collective) -> Finding:
    trips = collective.trips
    return Finding(
        "loop",
        f"{collective.kind} in a loop of {collective.producer or 'an array'}, which no step "
        f"changes: {trips or 'an unknown number of'} are sent, and one before the loop would do",
        location_of(collective),
        wasted_bytes=None if trips is None else collective.wire_bytes * (trips - 1),
    )


def _unchanging(body: Sequence[Instruction]) -> Iterator[Instruction]:
    """Give the collectives of a loop's body whose operands only depend on what is passed on."""
    root = next((i for i in body if i.is_root), body[-1])
    if root.opcode != "tuple":
        return
    carries = {
        i.name
        for i in body
        if i.opcode == "get-tuple-element" and _is_passed_on(i, root) and i.operands
    }
    same = set(carries)
    for instruction in body:
        known = instruction.operands or instruction.opcode in _CONSTANT
        steady = all(operand.partition("#")[0] in same for operand in instruction.operands)
        if known and steady and instruction.opcode not in (*_EFFECTS, "parameter"):
            same.add(instruction.name)
            if instruction.integer("channel_id") is not None:
                yield instruction


def _is_passed_on(element: Instruction, root: Instruction) -> bool:
    index = element.integer("index")
    return index is not None and index < len(root.operands) and root.operands[index] == element.name
