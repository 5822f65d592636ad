"""The program before partitioning: its values, their numbers, and their shardings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COMMUTATIVE, CONSTANTS, ONE_OPERAND_STEPS
from shardnb.texts.shardings import Layout, LayoutReader

_MAY_BE_CONSTANT = CONSTANTS | ONE_OPERAND_STEPS
_FEW = 4
"""As many steps as JAX writes between a literal and the array that it fills, and one more."""

_APPLIED = re.compile(r"to_apply=%?([\w.\-]+)")
_NOISE = (", sharding=", ", metadata=", ", frontend_attributes=", ", backend_config=")


@dataclass
class _Placed:
    """The shapes of an instruction's results, and their shardings."""

    shapes: tuple[tuple[int, ...], ...]
    leaves: tuple[Layout, ...]

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        pairs = zip(self.leaves, self.shapes, strict=True)
        return tuple(layout.shard_shape(shape) for layout, shape in pairs)


@dataclass
class Unpartitioned:
    """The program before partitioning. Values are numbered so that equal ones are one."""

    module: Module
    reader: LayoutReader
    _numbers: dict[str, dict[HloValue, HloValue]] = field(default_factory=dict)
    _placed: dict[Instruction, _Placed] = field(default_factory=dict)
    _texts: dict[tuple[str | None, str], _Placed] = field(default_factory=dict)

    def numbers(self, graph: Graph) -> dict[HloValue, HloValue]:
        """Return for each value the first one that is computed alike."""
        if graph.name not in self._numbers:
            self._numbers[graph.name] = self._number(graph)
        return self._numbers[graph.name]

    def _number(self, graph: Graph) -> dict[HloValue, HloValue]:
        numbers: dict[HloValue, HloValue] = {}
        seen: dict[tuple[object, ...], HloValue] = {}
        for instruction in graph.body:
            if instruction.opcode == "parameter":
                continue
            operands = tuple(numbers.get(o, o) for o in graph.operands[instruction.name])
            if instruction.opcode in COMMUTATIVE:
                operands = tuple(sorted(operands))
            text = instruction.operand_text if not operands else ""
            code = (instruction.opcode, instruction.shape, self._code(instruction), text, operands)
            numbers[instruction.value] = seen.setdefault(code, instruction.value)
        return numbers

    def _code(self, instruction: Instruction) -> str:
        text = instruction.attributes
        ends = [at for noise in _NOISE if (at := text.find(noise)) >= 0]
        text = text[: min(ends)] if ends else text
        if "to_apply=" not in text:
            return text
        return _APPLIED.sub(self._applied, text)

    def _applied(self, match: re.Match[str]) -> str:
        graph = self.module.computations.get(match[1])
        return f"to_apply={graph.root.opcode}" if graph and len(graph.body) == 3 else match[0]

    @staticmethod
    def is_constant(graph: Graph, value: HloValue) -> bool:
        """Whether a value is made of constants alone, in a few steps."""
        if (node := graph.maker(value)) is None or node.opcode not in _MAY_BE_CONSTANT:
            return False
        made = map(graph.maker, islice(graph.upward(value, ONE_OPERAND_STEPS), _FEW))
        return any(node is not None and node.opcode in CONSTANTS for node in made)

    def _place(self, instruction: Instruction) -> _Placed:
        """Return the shardings of an instruction's results; equal texts are read once."""
        known = self._placed.get(instruction)
        if known is None:
            text = _sharding(instruction.attributes), instruction.shape
            if text not in self._texts:
                shapes = instruction.shapes
                leaves = self.reader.leaves(text[0], tuple(map(len, shapes)))
                self._texts[text] = _Placed(shapes, leaves)
            known = self._placed[instruction] = self._texts[text]
        return known

    def layout(self, graph: Graph, value: HloValue) -> Layout | None:
        """Return a value's layout, None for a tuple."""
        node = graph.maker(value)
        if node is None:
            return None
        leaves = self._place(node).leaves
        if not value.element:
            return leaves[0] if len(leaves) == 1 else None
        index = value.element[0]
        return leaves[index] if len(value.element) == 1 and index < len(leaves) else None

    def shard_shapes(self, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of one device's blocks of an instruction's results."""
        return self._place(instruction).blocks


def _sharding(attributes: str) -> str | None:
    """Return the text of a sharding out of an instruction's attributes, None where it has none."""
    start = attributes.find(", sharding=")
    if start < 0:
        return None
    start += len(", sharding=")
    ends = [at for noise in _NOISE[1:] if (at := attributes.find(noise, start)) >= 0]
    return attributes[start : min(ends, default=len(attributes))]
