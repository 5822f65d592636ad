"""Which parameter of the program a value is, or a part of one, through loops and fusions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import GraphValue, Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COPIES, PARTS

_JOINS = 'custom_call_target="ConcatBitcast"'
"""TPU's join of the pieces in which it brought an array nearer."""

_STEPS = 64
"""A value that is this far from a parameter is not traced: no program was seen with half of it."""


class Part(NamedTuple):
    """A part of a parameter of the program: its number, and how it is sliced, last slice first."""

    number: int
    cuts: tuple[str, ...] = ()


class Sent(NamedTuple):
    """The result of a member of a collective: of the only one, or of one that others go with."""

    collective: Instruction
    member: int


@dataclass
class EntryParameters:
    """Follows values of a module up to the parameters of its entry computation."""

    module: Module
    _known: dict[tuple[str, HloValue], Part | None] = field(default_factory=dict)

    def entering(self, instruction: Instruction) -> int | None:
        """Return the number of the parameter whose part an instruction takes first, or None."""
        part = self.part_entering(instruction)
        return part.number if part is not None else None

    def starting(self, instruction: Instruction) -> int | None:
        """Return the number of the parameter that the carry of a loop starts as, or None.

        It is what an instruction of the loop takes first (`keys_and_values_around_a_ring`).
        """
        if not instruction.operands:
            return None
        graph = self.module.graph_of(instruction)
        value = graph.source(instruction.operands[0], PARTS)
        node, callers = graph.maker(value), self.module.callers.get(graph.name, ())
        if node is None or node.opcode != "parameter" or [c.opcode for c in callers] != ["while"]:
            return None
        outer = self.module.outside(graph, value)
        part = self._part(outer[0].name, outer[1]) if outer is not None else None
        return part.number if part is not None else None

    def part_entering(self, instruction: Instruction) -> Part | None:
        """Return the part of a parameter that an instruction takes first, or None."""
        if not instruction.operands:
            return None
        return self._part(instruction.computation, instruction.operands[0])

    def sent_by(self, instruction: Instruction, at: int = 0) -> Sent | None:
        """Return the collective whose result an instruction takes as operand `at`, as it was sent.

        With the number of the member whose result that is, where several are sent together.
        """
        if at >= len(instruction.operands):
            return None
        graph = self.module.graph_of(instruction)
        place: GraphValue | None = (graph, instruction.operands[at])
        for _ in range(_STEPS):
            if place is None:
                return None
            graph, value = place[0], place[0].resolve(place[1])
            node = graph.maker(value)
            if node is None:
                return None
            if kind_of(node.opcode) is not None:
                return Sent(node, value.element[0] if value.element else 0)
            done = node.opcode.endswith("-done")
            place = (graph, node.operands[0]) if done else self._above((graph, value), node)
        return None

    def of(self, computation: str, value: HloValue) -> int | None:
        """Return the number of the parameter that a value is a part of, None for another."""
        part = self._part(computation, value)
        return part.number if part is not None else None

    def _part(self, computation: str, value: HloValue) -> Part | None:
        place = computation, value
        if place not in self._known:
            self._known[place] = self._follow((self.module.computations[computation], value))
        return self._known[place]

    def _follow(self, start: GraphValue) -> Part | None:
        place: GraphValue | None = start
        cuts: tuple[str, ...] = ()
        for _ in range(_STEPS):
            if place is None:
                return None
            graph, value = place[0], place[0].resolve(place[1])
            node = graph.maker(value)
            if node is None:
                return None
            if node.opcode == "parameter" and graph.name == self.module.entry:
                return Part(node.number, cuts)
            if _JOINS in node.attributes:
                parts = [self._follow((graph, operand)) for operand in node.operands]
                numbers = {part.number if part is not None else None for part in parts}
                number = numbers.pop() if len(numbers) == 1 else None
                return Part(number, cuts) if number is not None else None
            if node.opcode == "slice":
                cuts = (*cuts, (node.attribute("slice") or "").replace(" ", ""))
            place = self._above((graph, value), node)
        return None

    def _above(self, place: GraphValue, node: Instruction) -> GraphValue | None:
        """Return what a value was before one step; None where that step computes."""
        graph, value = place
        if node.opcode in PARTS:
            return graph, node.operands[0]
        begun = graph.maker(node.operands[0]) if node.opcode == "fusion-done" else None
        node = begun or node
        if node.opcode in ("fusion", "fusion-start"):
            inner = self.module.computations.get(node.calls("calls"))
            return (inner, inner.root.value.at(*value.element)) if inner is not None else None
        if node.opcode == "while" and value.element:
            body = self.module.inside(node, value.element[0])
            kept = body is not None and self.module.is_kept(*body, COPIES)
            return (graph, node.operands[0].at(*value.element)) if kept else None
        return self._handed_in(place) if node.opcode == "parameter" else None

    def _handed_in(self, place: GraphValue) -> GraphValue | None:
        """Return what the one caller hands in for a parameter; a loop must not change it."""
        callers = self.module.callers.get(place[0].name, ())
        if len(callers) != 1:
            return None
        if callers[0].opcode == "while" and not self.module.is_kept(*place, COPIES):
            return None
        return self.module.outside(*place)
