"""Which parameter of the program a value is, or a part of one, through loops and fusions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Instruction, Module

_MOVES = frozenset(
    (
        "bitcast",
        "convert",
        "copy",
        "copy-done",
        "copy-start",
        "dynamic-slice",
        "reshape",
        "slice",
        "slice-done",
        "slice-start",
        "transpose",
    )
)
"""What hands on its first operand, or a part of it."""

_JOINS = 'custom_call_target="ConcatBitcast"'
"""TPU's join of the pieces in which it brought an array nearer."""

_CALLERS = ("while", "fusion", "call")
_STEPS = 64

_Place = tuple[str, str]
"""A computation, and a value in it."""


@dataclass
class Parameters:
    """Follows values of a module up to the parameters of the program."""

    module: Module
    _graphs: dict[str, Graph] = field(default_factory=dict)
    _known: dict[_Place, int | None] = field(default_factory=dict)

    def entering(self, instruction: Instruction) -> int | None:
        """Give the number of the parameter whose part an instruction takes first, or None."""
        if not instruction.operands:
            return None
        return self.of(instruction.computation, instruction.operands[0])

    def of(self, computation: str, value: str) -> int | None:
        """Give the number of the parameter that a value is a part of, None for another."""
        place = computation, value
        if place not in self._known:
            self._known[place] = self._follow(place)
        return self._known[place]

    def _follow(self, start: _Place) -> int | None:
        place: _Place | None = start
        for _ in range(_STEPS):
            if place is None:
                return None
            graph = self._graph(place[0])
            value = graph.resolve(place[1])
            node = graph.nodes.get(value.partition("#")[0])
            if node is None:
                return None
            if node.opcode == "parameter" and graph.name == self.module.entry:
                return int(node.operand_text)
            if _JOINS in node.attributes:
                parts = {self._follow((graph.name, operand)) for operand in node.operands}
                return parts.pop() if len(parts) == 1 else None
            place = self._above(graph, node, value)
        return None

    def _above(self, graph: Graph, node: Instruction, value: str) -> _Place | None:
        """Give what a value was before one step; None where that step computes."""
        if node.opcode in _MOVES:
            return graph.name, node.operands[0]
        if node.opcode == "fusion":
            return self._made(node, value)
        if node.opcode == "while":
            return self._left(node, value)
        return self._handed_in(graph, node, value) if node.opcode == "parameter" else None

    def _made(self, fusion: Instruction, value: str) -> _Place | None:
        name = next((name for role, name in fusion.called if role == "calls"), "")
        if name not in self.module.computations:
            return None
        _, mark, element = value.partition("#")
        return name, self._graph(name).root.name + mark + element

    def _left(self, loop: Instruction, value: str) -> _Place | None:
        """Give what entered a loop as a value that it did not change."""
        body = next((name for role, name in loop.called if role == "body"), "")
        if body not in self.module.computations:
            return None
        _, mark, element = value.partition("#")
        inner = f"{self._graph(body).parameters.get(0)}{mark}{element}"
        kept = mark and self._is_kept(self._graph(body), inner, element)
        return (loop.computation, f"{loop.operands[0]}#{element}") if kept else None

    def _handed_in(self, graph: Graph, node: Instruction, value: str) -> _Place | None:
        """Give what the caller hands in for a parameter; a loop must not change it."""
        callers = self._callers.get(graph.name, [])
        if len(callers) != 1:
            return None
        caller = callers[0]
        if caller.opcode != "while":
            return caller.computation, caller.operands[int(node.operand_text)]
        _, mark, element = value.partition("#")
        kept = mark and self._is_kept(graph, value, element)
        return (caller.computation, f"{caller.operands[0]}#{element}") if kept else None

    def _is_kept(self, graph: Graph, value: str, element: str) -> bool:
        last = graph.resolve(f"{graph.root.name}#{element}")
        for _ in range(_STEPS):
            if last == value:
                return True
            node = graph.nodes.get(last.partition("#")[0])
            if node is None or node.opcode not in ("copy", "copy-done", "copy-start"):
                return False
            last = graph.resolve(node.operands[0])
        return False

    def _graph(self, name: str) -> Graph:
        if name not in self._graphs:
            self._graphs[name] = Graph(name, self.module.computations[name])
        return self._graphs[name]

    @cached_property
    def _callers(self) -> dict[str, list[Instruction]]:
        found: dict[str, list[Instruction]] = {}
        for one in self.module.instructions():
            for role, name in one.called if one.opcode in _CALLERS else ():
                if role != "condition":
                    found.setdefault(name, []).append(one)
        return found
