"""The values of a computation: what each is made of, and who uses it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache

from shardnb.texts.hlo import Array, Instruction, Module

Key = tuple[str, int]
"""What tells where an instruction came from: its op_name and its stack frame."""

_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_NO_KEY: Key = ("", 0)
_BARRIERS = ("opt-barrier", "optimization-barrier")
_PASSES = frozenset(("tuple", "get-tuple-element", *_BARRIERS))


def key_of(instruction: Instruction) -> Key:
    """Give the key of an instruction; without a name there is none."""
    text = instruction.attributes
    start = text.rfind("metadata={")
    return _key(text[start:]) if start >= 0 else _NO_KEY


@lru_cache(1 << 14)
def _key(metadata: str) -> Key:
    """Read a key; layers that are written out repeat it."""
    name = _NAME.search(metadata)
    if name is None or not name[1]:
        return _NO_KEY
    frame = _FRAME.search(metadata)
    return name[1], int(frame[1]) if frame else 0


class Graph:
    """One computation. A value is named as in HLO; `x#1` is an element of the tuple `x`.

    Elements of tuples that the computation makes itself are the values they were made of.
    """

    def __init__(self, name: str, body: list[Instruction]) -> None:
        """Index a computation's instructions."""
        self.name = name
        self.body = body
        self.nodes = {instruction.name: instruction for instruction in body}
        self.position = {instruction.name: at for at, instruction in enumerate(body)}
        self.keys = {instruction.name: key_of(instruction) for instruction in body}
        self._resolved: dict[str, str] = {}
        self._placed: dict[str, dict[str, list[int]]] = {}

    @cached_property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
        return next((i for i in self.body if i.is_root), self.body[-1])

    @cached_property
    def parameters(self) -> dict[int, str]:
        """Names of the parameters by their number."""
        return {int(i.operand_text): i.name for i in self.body if i.opcode == "parameter"}

    def resolve(self, value: str) -> str:
        """Look through tuples, their elements, and optimisation barriers."""
        known = self._resolved.get(value)
        if known is None:
            known = self._resolved[value] = self._look(value)
        return known

    def _look(self, value: str) -> str:
        name, mark, element = value.partition("#")
        node = self.nodes.get(name)
        if node is None:
            return value
        if node.opcode == "get-tuple-element":
            return self.resolve(f"{node.operands[0]}#{node.integer('index')}{mark}{element}")
        if node.opcode in _BARRIERS and node.operands:
            return self.resolve(node.operands[0] + mark + element)
        if node.opcode == "tuple" and mark:
            head, more, tail = element.partition("#")
            return self.resolve(node.operands[int(head)] + more + tail)
        return value

    @cached_property
    def operands(self) -> dict[str, tuple[str, ...]]:
        """The resolved operands of each instruction; a loop takes what its first tuple holds."""
        resolve = self.resolve
        found = {i.name: tuple(resolve(operand) for operand in i.operands) for i in self.body}
        for instruction in self.body:
            if instruction.opcode in ("while", "conditional"):
                found[instruction.name] = tuple(self._spread(found[instruction.name]))
        return found

    def _spread(self, operands: tuple[str, ...]) -> Iterator[str]:
        for operand in operands:
            node = self.nodes.get(operand)
            if node is not None and node.opcode == "tuple":
                yield from (self.resolve(element) for element in node.operands)
            else:
                yield operand

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The instructions that take each value, in order; tuples and barriers are no users."""
        users: dict[str, list[str]] = defaultdict(list)
        for instruction in self.body:
            if is_pass(instruction) and not instruction.is_root:
                continue
            for operand in dict.fromkeys(self.operands[instruction.name]):
                users[operand].append(instruction.name)
        return users

    def places(self, maker: Instruction) -> dict[str, list[int]]:
        """Give by value its places among the operands of a tuple."""
        if maker.name not in self._placed:
            places: dict[str, list[int]] = defaultdict(list)
            for at, operand in enumerate(maker.operands):
                places[self.resolve(operand)].append(at)
            self._placed[maker.name] = dict(places)
        return self._placed[maker.name]

    def whole_of(self, value: str) -> Iterator[str]:
        """Give a value, and what it was sliced or converted from, dimension by dimension."""
        yield value
        node = self.nodes.get(value)
        while node is not None and node.opcode in ("slice", "copy", "convert"):
            value = self.operands[node.name][0]
            yield value
            node = self.nodes.get(value)

    def node(self, value: str) -> Instruction:
        """Give the instruction that makes a value."""
        return self.nodes[value.partition("#")[0]]

    def array(self, value: str) -> Array | None:
        """Give the element type and shape of a value, None for a tuple."""
        name, mark, element = value.partition("#")
        arrays = self.nodes[name].arrays
        if not mark:
            return arrays[0] if len(arrays) == 1 else None
        return arrays[int(element)] if element.isdigit() and int(element) < len(arrays) else None


def is_pass(instruction: Instruction) -> bool:
    """Whether an instruction only hands values on."""
    return instruction.opcode in _PASSES


def graphs(module: Module) -> dict[str, Graph]:
    """Give the graph of each computation."""
    return {name: Graph(name, body) for name, body in module.computations.items()}
