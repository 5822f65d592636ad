"""Collectives in a loop of arrays that no step of it changes."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.loops import in_loops, with_loops
from shardnb.report.model import Collective, Finding
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CONSTANTS, EFFECTS


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find collectives in a loop of arrays that are the same in every step of it."""
    module, unchanging = with_loops(evidence), dict[str, set[str]]()
    for one, instruction in in_loops(evidence):
        body = instruction.computation
        if body not in unchanging:
            unchanging[body] = {found.name for found in _unchanging(module.computations[body])}
        if instruction.name in unchanging[body] and one.trips != 1:
            yield _once_before(one)


def _once_before(collective: Collective) -> Finding:
    trips = collective.trips
    saved = None if trips is None else collective.wire_bytes * (trips - 1)
    return Finding(
        "loop",
        f"{collective.kind} in a loop of {collective.producer or 'an array'}, which no step "
        f"changes: {trips or 'an unknown number'} are sent, and one before the loop would do",
        location_of(collective),
        wasted_bytes=saved,
        wire_bytes=saved,
        collectives=(collective.id,),
    )


def _unchanging(graph: Graph) -> Iterator[Instruction]:
    """Yield the collectives of a loop's body whose operands only depend on what is passed on."""
    if graph.root.opcode != "tuple":
        return
    carry = graph.parameters.get(0, HloValue(""))
    same = {value for at, value in enumerate(graph.results) if value == carry.at(at)}
    for instruction in graph.body:
        operands = graph.operands[instruction.name]
        known = operands or instruction.opcode in CONSTANTS
        if not known or instruction.opcode in EFFECTS or not same.issuperset(operands):
            continue
        same.update((instruction.value, *instruction.results))
        if instruction.channel is not None:
            yield instruction
