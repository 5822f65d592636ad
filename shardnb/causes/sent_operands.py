"""What the optimized program says of each operand of a collective that sends several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.member_matching import Evidence
from shardnb.causes.origin_lines import NO_ORIGIN, Origin, origin_of
from shardnb.collectives.fused import Fused
from shardnb.report.op_names import joined_names
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COPIES, VIEWS


@dataclass(frozen=True)
class SentOperands:
    """Reads names, origins and inputs of operands; `fused` are the collectives within fusions."""

    optimized: Module
    left_from: EntryParameters
    fused: Mapping[str, Fused]

    def evidence(self, final: Instruction, count: int) -> list[Evidence]:
        """Return what is known of each member: its name, origin and element type."""
        graph = self.optimized.graph_of(final)
        origins = [self._origin(graph, operand) for operand in graph.operands[final.name]]
        origins += [NO_ORIGIN] * (count - len(origins))
        types = [dtype for dtype, _ in final.arrays] + [""] * (count - len(final.arrays))
        names = self._names(final, count)
        return [Evidence(*one) for one in zip(names, origins, types, strict=False)]

    def _names(self, final: Instruction, count: int) -> list[str]:
        """Return the op_name of each member: of the joined name, or of what takes each result."""
        joined = joined_names(final.op_name)
        if len(joined) == count:
            return joined
        part = self.fused.get(final.computation)
        sent = part.fusion if part is not None else final
        graph = self.optimized.graph_of(sent)
        done = (node for node in graph.body if node.opcode == f"{sent.opcode[:-6]}-done")
        ends = {sent.name, *(node.name for node in done if node.operands[0].name == sent.name)}
        names = [""] * count
        for node in graph.body:
            if node.opcode == "get-tuple-element" and node.operands[0].name in ends:
                at = node.integer("index")
                if at is not None and at < count:
                    names[at] = node.op_name
        return names

    def input(self, final: Instruction, at: int) -> int | None:
        """Return the number of the input that a member moves a part of, where that is known."""
        if at >= len(final.operands):
            return None
        operand, graph = final.operands[at], self.optimized.graph_of(final)
        block = _block_among_zeros(graph, graph.resolve(operand)) or operand
        return self.left_from.of(final.computation, block)

    def is_among_zeros(self, final: Instruction, at: int = 0) -> bool:
        """Whether TPU put a block into a whole before it adds it up, perhaps within a fusion.

        That may make several, which are copied to faster memory (`factored_state_is_gathered`).
        """
        graph = self.optimized.graph_of(final)
        value = graph.source(graph.operands[final.name][at], VIEWS | COPIES)
        node = graph.maker(value)
        while node is not None and node.opcode == "fusion":
            graph = self.optimized.computations[node.calls("calls")]
            made = graph.results[value.element[0] if value.element else 0]
            value = graph.source(made, VIEWS | COPIES)
            node = graph.maker(value)
        return node is not None and node.opcode == "dynamic-update-slice"

    def _origin(self, graph: Graph, operand: HloValue) -> Origin:
        """Return the origin of what made a value; of a view without one, of its operand."""
        made = (graph.maker(value) for value in graph.upward(operand, VIEWS))
        named = (node for node in made if node is not None and node.op_name)
        return next((origin_of(self.optimized, node) for node in named), NO_ORIGIN)


def _block_among_zeros(graph: Graph, operand: HloValue) -> HloValue | None:
    """Return the block of a value that TPU adds up in place of a gather, None for another."""
    node = graph.maker(operand)
    known = node is not None and node.opcode == "dynamic-update-slice"
    return graph.operands[node.name][1] if known and node is not None else None
