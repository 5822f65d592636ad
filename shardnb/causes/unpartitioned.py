"""The program before partitioning: its values, their numbers, and where they lie."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.texts.graph import Graph, graphs
from shardnb.texts.hlo import Instruction, Module
from shardnb.texts.shardings import Layout, LayoutReader

_COMMUTATIVE = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))
_APPLIED = re.compile(r"to_apply=%?([\w.\-]+)")
_NOISE = (", sharding=", ", metadata=", ", frontend_attributes=", ", backend_config=")


@dataclass
class _Placed:
    """The shapes of an instruction's results, and where each lies."""

    shapes: tuple[tuple[int, ...], ...]
    leaves: tuple[Layout, ...]

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        pairs = zip(self.leaves, self.shapes, strict=True)
        return tuple(layout.shard_shape(shape) for layout, shape in pairs)


@dataclass
class Before:
    """The program before partitioning. Values are numbered so that equal ones are one."""

    module: Module
    reader: LayoutReader
    graphs: dict[str, Graph] = field(init=False)
    callers: dict[str, tuple[Graph, Instruction]] = field(init=False)
    _numbers: dict[str, dict[str, str]] = field(default_factory=dict)
    _placed: dict[Instruction, _Placed] = field(default_factory=dict)
    _texts: dict[tuple[str | None, str], _Placed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the computations."""
        self.graphs = graphs(self.module)
        self.callers = {
            called: (graph, instruction)
            for graph in self.graphs.values()
            for instruction in graph.body
            if instruction.opcode in ("while", "call", "conditional")
            for _, called in instruction.called
        }

    def inside(self, node: Instruction, at: int) -> tuple[Graph, str] | None:
        """Give what the operand `at` of a loop is called inside its body."""
        body = next((name for role, name in node.called if role == "body"), "")
        graph = self.graphs.get(body)
        if graph is None or 0 not in graph.parameters:
            return None
        return graph, f"{graph.parameters[0]}#{at}"

    def outside(self, graph: Graph, value: str) -> tuple[Graph, str] | None:
        """Follow a parameter of a called computation to what its caller hands in."""
        caller = self.callers.get(graph.name)
        if caller is None:
            return None
        outer, instruction = caller
        if instruction.opcode == "conditional":
            return self._into_branch(outer, instruction, graph, value)
        name, _, element = value.partition("#")
        operands = outer.operands[instruction.name]
        text = {"call": graph.nodes[name].operand_text, "while": element}
        number = text.get(instruction.opcode, "")
        at = int(number) if number.isdigit() else -1
        return (outer, operands[at]) if 0 <= at < len(operands) else None

    @staticmethod
    def _into_branch(
        outer: Graph, instruction: Instruction, graph: Graph, value: str
    ) -> tuple[Graph, str] | None:
        """Give what a conditional hands to a branch, behind what it decides by."""
        branches = [called for _, called in instruction.called]
        at = branches.index(graph.name) + 1
        if branches.count(graph.name) > 1 or at >= len(instruction.operands):
            return None
        _, mark, element = value.partition("#")
        return outer, outer.resolve(instruction.operands[at] + mark + element)

    def carried(self, graph: Graph, value: str) -> tuple[Graph, str] | None:
        """Give what the body of a loop hands to its next turn for a parameter."""
        caller, root = self.callers.get(graph.name), graph.root
        _, mark, element = value.partition("#")
        if caller is None or caller[1].opcode != "while" or not mark or root.opcode != "tuple":
            return None
        at = int(element) if element.isdigit() else len(root.operands)
        return (graph, graph.resolve(root.operands[at])) if at < len(root.operands) else None

    def is_kept(self, graph: Graph, value: str) -> bool:
        """Whether a loop hands a parameter of its body on as it is."""
        last = self.carried(graph, value)
        return last is not None and last[1] == value

    def numbers(self, graph: Graph) -> dict[str, str]:
        """Give for each value the first one that is computed alike."""
        if graph.name not in self._numbers:
            self._numbers[graph.name] = self._number(graph)
        return self._numbers[graph.name]

    def _number(self, graph: Graph) -> dict[str, str]:
        numbers: dict[str, str] = {}
        seen: dict[tuple[object, ...], str] = {}
        for instruction in graph.body:
            if instruction.opcode == "parameter":
                continue
            operands = tuple(numbers.get(o, o) for o in graph.operands[instruction.name])
            if instruction.opcode in _COMMUTATIVE:
                operands = tuple(sorted(operands))
            text = instruction.operand_text if not operands else ""
            code = (instruction.opcode, instruction.shape, self._code(instruction), text, operands)
            numbers[instruction.name] = seen.setdefault(code, instruction.name)
        return numbers

    def _code(self, instruction: Instruction) -> str:
        text = instruction.attributes
        ends = [at for noise in _NOISE if (at := text.find(noise)) >= 0]
        text = text[: min(ends)] if ends else text
        if "to_apply=" not in text:
            return text
        return _APPLIED.sub(self._applied, text)

    def _applied(self, match: re.Match[str]) -> str:
        graph = self.graphs.get(match[1])
        return f"to_apply={graph.root.opcode}" if graph and len(graph.body) == 3 else match[0]

    def is_constant(self, graph: Graph, value: str) -> bool:
        """Whether a value is made of constants alone, in one or two steps."""
        node = graph.nodes.get(value.partition("#")[0])
        for _ in range(4):
            if node is None:
                return False
            if node.opcode in ("constant", "iota"):
                return True
            operands = graph.operands[node.name]
            if node.opcode not in ("broadcast", "reshape", "convert", "copy") or not operands:
                return False
            node = graph.nodes.get(operands[0].partition("#")[0])
        return False

    def _place(self, instruction: Instruction) -> _Placed:
        """Say where the results of an instruction lie; equal texts are read once."""
        known = self._placed.get(instruction)
        if known is None:
            text = _sharding(instruction.attributes), instruction.shape
            if text not in self._texts:
                shapes = tuple(shape for _, shape in instruction.arrays)
                leaves = self.reader.leaves(text[0], tuple(map(len, shapes)))
                self._texts[text] = _Placed(shapes, leaves)
            known = self._placed[instruction] = self._texts[text]
        return known

    def layout(self, graph: Graph, value: str) -> Layout | None:
        """Give where a value lies, None for a tuple."""
        name, mark, element = value.partition("#")
        node = graph.nodes.get(name)
        if node is None:
            return None
        leaves = self._place(node).leaves
        if not mark:
            return leaves[0] if len(leaves) == 1 else None
        return leaves[int(element)] if element.isdigit() and int(element) < len(leaves) else None

    def shard_shapes(self, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
        """Give the shapes of one device's blocks of an instruction's results."""
        return self._place(instruction).blocks


def _sharding(attributes: str) -> str | None:
    """Give the text of a sharding out of an instruction's attributes, None where it has none."""
    start = attributes.find(", sharding=")
    if start < 0:
        return None
    start += len(", sharding=")
    ends = [at for noise in _NOISE[1:] if (at := attributes.find(noise, start)) >= 0]
    return attributes[start : min(ends, default=len(attributes))]
