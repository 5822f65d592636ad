"""Which reductions of a program belong to a softmax: its maximum, and its sum of exponentials.

`exp(x - max(x))` is summed over the dimensions that the maximum is over. So it is in JAX's softmax,
log_softmax and logsumexp, whatever they are called by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shardnb.collectives.find import reduction_of
from shardnb.texts.graph import Graph, is_constant
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ONE_OPERAND_STEPS

_GUARDS = ("maximum", "select")
"""With these JAX keeps a maximum finite, or above a number that the user gives."""

_THROUGH = ("convert", "copy")
"""Where axes are Explicit, the sharding of each value is stated by a copy."""

_STEPS = 12


@dataclass
class Softmaxes:
    """Finds the softmaxes of a module when it is first asked."""

    module: Module

    def operand(self, node: Instruction) -> HloValue | None:
        """Return what a softmax is taken of whose maximum or sum this is, None for another."""
        return self._operands.get((node.computation, node.name))

    @cached_property
    def _operands(self) -> dict[tuple[str, str], HloValue]:
        found: dict[tuple[str, str], HloValue] = {}
        for node in self.module.of_kind("reduce"):
            graph = self.module.graph_of(node)
            maximum = self._maximum(graph, node)
            if maximum is not None:
                taken = graph.operands[maximum.name][0]
                found[node.computation, node.name] = taken
                found[maximum.computation, maximum.name] = taken
        return found

    def _maximum(self, graph: Graph, total: Instruction) -> Instruction | None:
        """Return the maximum that a sum of exponentials is taken relative to."""
        if total.is_tuple or reduction_of(self.module, total) != "add":
            return None
        power = _made(graph, graph.operands[total.name][0], "exponential")
        shifted = _made(graph, graph.operands[power.name][0], "subtract") if power else None
        if shifted is None:
            return None
        taken, subtracted = graph.operands[shifted.name]
        maximum = _guarded(graph, subtracted)
        if maximum is None or reduction_of(self.module, maximum) != "maximum":
            return None
        same = graph.source(graph.operands[maximum.name][0], _THROUGH) == graph.source(
            taken, _THROUGH
        )
        over = total.attribute("dimensions") == maximum.attribute("dimensions")
        return maximum if same and over else None


def _made(graph: Graph, value: HloValue, opcode: str) -> Instruction | None:
    """Return the operation of a kind that makes a value, perhaps in another element type."""
    node = graph.maker(graph.source(value, _THROUGH))
    return node if node is not None and node.opcode == opcode else None


def _guarded(graph: Graph, value: HloValue) -> Instruction | None:
    """Return the reduction that a value repeats, after what keeps it finite."""
    for _ in range(_STEPS):
        node = graph.maker(graph.source(value, ONE_OPERAND_STEPS))
        if node is None or node.opcode == "reduce":
            return node
        operands = graph.operands[node.name][node.opcode == "select" :]
        others = [one for one in operands if not is_constant(graph, one)]
        if node.opcode not in _GUARDS or len(others) != 1:
            return None
        value = others[0]
    return None
