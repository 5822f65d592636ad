"""Collectives in a loop of arrays that no step of it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.loops import bodies, in_loops
from shardnb.report.model import Collective, Finding
from shardnb.texts.hlo import Instruction

_CONSTANT = ("constant", "iota")
_EFFECTS = ("rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "recv", "custom-call")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find collectives in a loop of arrays that are the same in every step of it."""
    by_channel = in_loops(evidence)
    for body in bodies(evidence):
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
        f"changes: {trips or 'an unknown number'} are sent, and one before the loop would do",
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
