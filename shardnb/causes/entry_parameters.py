"""Which parameter of the program a value is, or a part of one, through loops and fusions."""

from __future__ import annotations

from dataclasses import dataclass, field

from shardnb.texts.hlo import GraphValue, Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COPIES, PARTS

_JOINS = 'custom_call_target="ConcatBitcast"'
"""TPU's join of the pieces in which it brought an array nearer."""

_STEPS = 64
"""A value that is this far from a parameter is not traced: no program was seen with half of it."""


@dataclass
class EntryParameters:
    """Follows values of a module up to the parameters of its entry computation."""

    module: Module
    _known: dict[tuple[str, HloValue], int | None] = field(default_factory=dict)

    def entering(self, instruction: Instruction) -> int | None:
        """Give the number of the parameter whose part an instruction takes first, or None."""
        if not instruction.operands:
            return None
        return self.of(instruction.computation, instruction.operands[0])

    def of(self, computation: str, value: HloValue) -> int | None:
        """Give the number of the parameter that a value is a part of, None for another."""
        place = computation, value
        if place not in self._known:
            self._known[place] = self._follow((self.module.computations[computation], value))
        return self._known[place]

    def _follow(self, start: GraphValue) -> int | None:
        place: GraphValue | None = start
        for _ in range(_STEPS):
            if place is None:
                return None
            graph, value = place[0], place[0].resolve(place[1])
            node = graph.maker(value)
            if node is None:
                return None
            if node.opcode == "parameter" and graph.name == self.module.entry:
                return node.number
            if _JOINS in node.attributes:
                parts = {self._follow((graph, operand)) for operand in node.operands}
                return parts.pop() if len(parts) == 1 else None
            place = self._above((graph, value), node)
        return None

    def _above(self, place: GraphValue, node: Instruction) -> GraphValue | None:
        """Give what a value was before one step; None where that step computes."""
        graph, value = place
        if node.opcode in PARTS:
            return graph, node.operands[0]
        if node.opcode == "fusion":
            inner = self.module.computations.get(node.calls("calls"))
            return (inner, inner.root.value.at(*value.element)) if inner is not None else None
        if node.opcode == "while" and value.element:
            body = self.module.inside(node, value.element[0])
            kept = body is not None and self.module.is_kept(*body, COPIES)
            return (graph, node.operands[0].at(*value.element)) if kept else None
        return self._handed_in(place) if node.opcode == "parameter" else None

    def _handed_in(self, place: GraphValue) -> GraphValue | None:
        """Give what the one caller hands in for a parameter; a loop must not change it."""
        callers = self.module.callers.get(place[0].name, ())
        if len(callers) != 1:
            return None
        if callers[0].opcode == "while" and not self.module.is_kept(*place, COPIES):
            return None
        return self.module.outside(*place)
