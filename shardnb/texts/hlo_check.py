"""Whether an HLO module that comes from elsewhere can be what XLA wrote.

A text that was cut or edited is refused here, so that what reads a module can rely on it: each
value is defined before it is used, tuples have the elements that are taken, and no computation
runs itself.
"""

from __future__ import annotations

import math
import re

from shardnb.report import dtypes
from shardnb.report.invalid_input import InvalidInput, check_devices, place, shown_number
from shardnb.terms.collectives import KINDS
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction, split

_COUNT = re.compile(r"\b(num_partitions|replica_count)=(\d+)")
_COMMENT = re.compile(r"/\*.*?\*/")
_MOST_BYTES = 1 << 62
_MOST_NESTED = 100
"""Calls within calls: more than any program has, and less than what Python can follow."""
_OPERANDS = {
    **dict.fromkeys(("add", "compare", "dot", "dynamic-update-slice", "multiply", "pad"), 2),
    **dict.fromkeys(("conditional", "get-tuple-element", "while", "transpose", "reshape"), 1),
    **dict.fromkeys(("bitcast", "broadcast", "convert", "copy", "slice", "dynamic-slice"), 1),
    **dict.fromkeys(("copy-start", "copy-done", "slice-start", "slice-done", "opt-barrier"), 1),
    **dict.fromkeys(("reduce", "optimization-barrier", "gather", *KINDS), 1),
}
"""The least operands of those opcodes whose operands are followed by their place."""


def check(module: Module) -> Module:
    """Return a module back; raises `InvalidInput` with what cannot be."""
    with place(f"the header of {module.name}"):
        check_devices(math.prod(int(count) for _, count in _COUNT.findall(module.header)))
    for graph in module.computations.values():
        with place(f"the computation {graph.name}"):
            _Computation(graph).check()
    _check_calls(module)
    return module


class _Computation:
    """Checks the instructions of one computation in the order of the text."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.defined: dict[str, Instruction] = {}
        self.parameters: set[int] = set()

    def check(self) -> None:
        if not self.graph.body:
            raise InvalidInput("expected instructions, got none")
        for instruction in self.graph.body:
            with place(f"the instruction {instruction.name}"):
                self._check(instruction)
            self.defined[instruction.name] = instruction

    def _check(self, one: Instruction) -> None:
        if one.name in self.defined:
            raise InvalidInput("expected a name that is not taken")
        if one.opcode == "parameter":
            self._parameter(one)
        for dtype, shape in one.arrays:
            size = dtypes.size_in_bytes(dtype, shape)
            if size > _MOST_BYTES:
                raise InvalidInput(f"expected less than 2^62 bytes, got {shown_number(size)}")
        for operand in one.operands:
            self._operand(operand)
        least = _OPERANDS.get(one.opcode.removesuffix("-start"), 0)
        if len(one.operands) < least:
            raise InvalidInput(
                f"expected {least} operands of {one.opcode}, got {len(one.operands)}"
            )
        if not one.is_tuple and len(one.arrays) != 1:
            raise InvalidInput(f"expected a shape such as f32[8,16], got {one.shape[:80]!r}")
        if one.opcode == "get-tuple-element":
            index = one.integer("index")
            if index is None:
                raise InvalidInput("expected an index")
            self._element(one.operands[0].at(index))

    def _parameter(self, one: Instruction) -> None:
        text = one.operand_text.strip()
        number = int(text) if text.isdecimal() else -1
        if number < 0 or number in self.parameters:
            raise InvalidInput(f"expected a parameter's own number, got {text[:80]!r}")
        self.parameters.add(number)

    def _operand(self, operand: HloValue) -> None:
        if operand.name not in self.defined:
            raise InvalidInput(f"expected operands that stand before it, got {operand.name!r}")
        self._element(operand)

    def _element(self, value: HloValue) -> None:
        """Check that a value has the element that is taken of it."""
        shape = _COMMENT.sub("", self.defined[value.name].shape) if value.element else ""
        for index in value.element:
            elements = split(shape.strip()[1:-1]) if shape.strip().startswith("(") else []
            if index >= len(elements):
                raise InvalidInput(f"expected element {index} of {value.name}, got {shape[:80]!r}")
            shape = elements[index]


def _check_calls(module: Module) -> None:
    """Refuse computations that run themselves, or that are nested deeper than Python follows."""
    depth: dict[str, int] = {}

    def enter(name: str, above: int) -> None:
        if above > _MOST_NESTED:
            raise InvalidInput(f"the computation {name}: expected no calls of itself")
        if depth.get(name, -1) >= above:
            return
        depth[name] = above
        for instruction in module.body(name):
            for _, called in instruction.called:
                enter(called, above + 1)

    for name in module.computations:
        enter(name, 0)
