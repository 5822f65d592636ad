"""The values of a computation: their operands and their users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from functools import cached_property

from shardnb.texts.instruction import Array, HloValue, Instruction
from shardnb.texts.opcodes import BARRIERS, CONSTANTS, ONE_OPERAND_STEPS, TUPLES


class Graph:
    """One computation: `body` has its instructions in the order of the text.

    Elements of tuples that the computation builds are the values in them. Each index is built when
    it is first needed, once for all readers of the module.
    """

    def __init__(self, name: str) -> None:
        """Start a computation; its instructions are appended to `body` as they are read."""
        self.name = name
        self.body: list[Instruction] = []
        self._resolved: dict[HloValue, HloValue] = {}
        self._places: dict[str, dict[HloValue, list[int]]] = {}

    @cached_property
    def nodes(self) -> dict[str, Instruction]:
        """The instructions by name."""
        return {instruction.name: instruction for instruction in self.body}

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each instruction in the text, by its name."""
        return {instruction.name: at for at, instruction in enumerate(self.body)}

    @cached_property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
        return next((i for i in self.body if i.is_root), self.body[-1])

    @cached_property
    def results(self) -> tuple[HloValue, ...]:
        """The values that it returns: those in its final tuple, or the one result."""
        root = self.root
        returned = root.operands if root.opcode == "tuple" else (root.value,)
        return tuple(map(self.resolve, returned))

    @cached_property
    def parameters(self) -> dict[int, HloValue]:
        """The parameters by their number."""
        return {i.number: i.value for i in self.body if i.opcode == "parameter"}

    def resolve(self, value: HloValue) -> HloValue:
        """Look through tuples, their elements, and optimization barriers."""
        known = self._resolved.get(value)
        if known is None:
            known = self._resolved[value] = self._look(value)
        return known

    def _look(self, value: HloValue) -> HloValue:
        node = self.nodes.get(value.name)
        if node is None:
            return value
        if node.opcode not in TUPLES or not node.operands:
            # Always the same object, which dicts find faster than an equal one.
            return value if value.element else node.value
        if node.opcode == "get-tuple-element":
            index = node.integer("index")
            return self.resolve(node.operands[0].at(index or 0, *value.element))
        if node.opcode in BARRIERS:
            return self.resolve(node.operands[0].at(*value.element))
        if not value.element:
            return value
        first, *rest = value.element
        return self.resolve(node.operands[first].at(*rest))

    @cached_property
    def operands(self) -> dict[str, tuple[HloValue, ...]]:
        """The resolved operands of each instruction; those of a loop are in its first tuple."""
        resolve, known = self.resolve, self._resolved.get
        found = {
            i.name: tuple([known(value) or resolve(value) for value in i.operands])
            for i in self.body
        }
        for instruction in self.body:
            if instruction.opcode in ("while", "conditional"):
                found[instruction.name] = tuple(self._spread(found[instruction.name]))
        return found

    def _spread(self, operands: tuple[HloValue, ...]) -> Iterator[HloValue]:
        for operand in operands:
            node = self.maker(operand)
            if node is not None and node.opcode == "tuple":
                yield from map(self.resolve, node.operands)
            else:
                yield operand

    @cached_property
    def users(self) -> dict[HloValue, list[Instruction]]:
        """The instructions that use each value, in order; tuples and barriers do not count."""
        users: dict[HloValue, list[Instruction]] = defaultdict(list)
        for instruction in self.body:
            if instruction.opcode in TUPLES and not instruction.is_root:
                continue
            for operand in dict.fromkeys(self.operands[instruction.name]):
                users[operand].append(instruction)
        return users

    def places(self, maker: Instruction) -> dict[HloValue, list[int]]:
        """Return by value its positions among the operands of a tuple."""
        if maker.name not in self._places:
            places: dict[HloValue, list[int]] = defaultdict(list)
            for at, operand in enumerate(maker.operands):
                places[self.resolve(operand)].append(at)
            self._places[maker.name] = dict(places)
        return self._places[maker.name]

    def upward(self, value: HloValue, through: Container[str]) -> Iterator[HloValue]:
        """Yield a value and its chain of first operands, as long as these opcodes made it."""
        yield value
        node = self.nodes.get(value.name)
        while node is not None and node.opcode in through and self.operands[node.name]:
            operand = self.operands[node.name][0]
            value = self.resolve(operand.at(*value.element)) if value.element else operand
            yield value
            node = self.nodes.get(value.name)

    def source(self, value: HloValue, through: Container[str]) -> HloValue:
        """Return the first value in that chain that none of these opcodes made."""
        for made_of in self.upward(value, through):
            value = made_of
        return value

    def maker(self, value: HloValue) -> Instruction | None:
        """Return the instruction that makes a value, None if it is not in this computation."""
        return self.nodes.get(value.name)

    def node(self, value: HloValue) -> Instruction:
        """Return the instruction that makes a value."""
        return self.nodes[value.name]

    def array(self, value: HloValue) -> Array | None:
        """Return the element type and shape of a value, None for a tuple."""
        arrays = self.nodes[value.name].arrays
        if not value.element:
            return arrays[0] if len(arrays) == 1 else None
        index = value.element[0]
        return arrays[index] if len(value.element) == 1 and index < len(arrays) else None


def is_constant(graph: Graph, value: HloValue) -> bool:
    """Whether a value repeats, casts or rearranges a constant."""
    node = graph.maker(graph.source(value, ONE_OPERAND_STEPS))
    return node is not None and node.opcode in CONSTANTS
