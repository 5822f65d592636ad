"""How often a loop runs, read from its counter if the compiler does not say it.

A TPU program has no trip counts in its text: there the trips are known if the loop counts from a
constant in constant steps up to a constant, as `lax.scan` does.
"""

from __future__ import annotations

from shardnb.bugs import Inconclusive
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COPIES, VIEWS

_SAME = VIEWS | COPIES
"""A counter is a scalar, so none of these changes it."""


def trip_count(module: Module, loop: Instruction) -> int | None:
    """Return how often the body of a `while` runs, or None if that is unknown."""
    if loop.trip_count is not None:
        return loop.trip_count
    body = module.computations.get(loop.calls("body"))
    condition = module.computations.get(loop.calls("condition"))
    if body is None or condition is None:
        return None
    try:
        return _Loop(module.graph_of(loop), loop.operands[0], body, condition).trips()
    except Inconclusive:  # its counter has another form
        return None


class _Loop:
    def __init__(self, outside: Graph, start: HloValue, body: Graph, condition: Graph) -> None:
        self.outside, self.start = outside, start
        self.body, self.condition = body, condition

    def trips(self) -> int:
        test = self.condition.root
        if test.opcode != "compare" or test.attribute("direction") != "LT":
            raise Inconclusive
        counter = self._element(self.condition, test.operands[0])
        end = self._number(self.condition, test.operands[1])
        if counter is None:
            raise Inconclusive
        first, step = self._constant(self.outside, self.start.at(counter)), self._step(counter)
        return max(0, -(-(end - first) // step))

    def _step(self, counter: int) -> int:
        add = self._maker(self.body, self.body.root.value.at(counter))
        if add.opcode != "add":
            raise Inconclusive
        for own, other in (add.operands, add.operands[::-1]):
            if self._element(self.body, own) == counter:
                step = self._number(self.body, other)
                if step > 0:
                    return step
        raise Inconclusive

    def _number(self, graph: Graph, value: HloValue) -> int:
        """Read a constant that is in the loop, or that it carries without changing it."""
        place = self._element(graph, value)
        if place is None:
            return self._constant(graph, value)
        if self._element(self.body, self.body.root.value.at(place)) != place:
            raise Inconclusive
        return self._constant(self.outside, self.start.at(place))

    @staticmethod
    def _source(graph: Graph, value: HloValue) -> HloValue:
        return graph.source(graph.resolve(value), _SAME)

    def _maker(self, graph: Graph, value: HloValue) -> Instruction:
        made = graph.maker(self._source(graph, value))
        if made is None:
            raise Inconclusive
        return made

    def _element(self, graph: Graph, value: HloValue) -> int | None:
        """Return which element of the computation's parameter a value is, else None."""
        source = self._source(graph, value)
        known = self._maker(graph, value).opcode == "parameter" and len(source.element) == 1
        return source.element[0] if known else None

    def _constant(self, graph: Graph, value: HloValue) -> int:
        found = self._maker(graph, value)
        text = found.operand_text.strip()
        if found.opcode != "constant" or not text.lstrip("-").isdigit():
            raise Inconclusive
        return int(text)
