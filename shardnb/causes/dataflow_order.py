"""The order in which collectives follow from each other: optimization keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction


def in_order(module: Module, ones: Sequence[Instruction]) -> list[Instruction]:
    """Return collectives of one computation in the order in which each takes what another sent.

    Empty where two of them may as well be the other way round.
    """
    if len({one.computation for one in ones}) != 1:
        return []
    behind = _sent_before(module, module.graph_of(ones[0]))
    counts = [behind[one.name] for one in ones]
    if len(set(counts)) < len(counts):
        return []
    return sorted(ones, key=lambda one: behind[one.name])


def _sent_before(module: Module, graph: Graph) -> dict[str, int]:
    """Return how many collectives follow each other up to each instruction, with itself."""
    known: dict[str, int] = {}
    for node in graph.body:
        above = (known.get(operand.name, 0) for operand in graph.operands[node.name])
        known[node.name] = max(above, default=0) + _sends(module, node)
    return known


def _sends(module: Module, node: Instruction) -> bool:
    inside = (module.computations[name] for _, name in node.called if name in module.computations)
    return kind_of(node.opcode) is not None or any(
        kind_of(one.opcode) is not None for graph in inside for one in graph.body
    )
