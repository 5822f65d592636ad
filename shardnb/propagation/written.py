"""The user's names of values: the variable that a statement assigns, or the expression."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cached_property

from shardnb.propagation.named import Lines, op_word
from shardnb.sources.expressions import Expressions, expression_of, expressions
from shardnb.sources.source_texts import whole_file
from shardnb.texts.instruction import HloValue, Instruction, Key


class WrittenNames:
    """Names values of one program as its user does."""

    def __init__(self, lines: Lines) -> None:
        """Take the user's lines of a program."""
        self._lines = lines
        self._expressions: dict[str, Expressions] = {}

    def variable(self, computation: str, value: HloValue) -> tuple[str, int]:
        """Return the variable that a statement assigns a value to, and its line; "" for none."""
        return self._variables.get((computation, value), ("", 0))

    @cached_property
    def _variables(self) -> dict[tuple[str, HloValue], tuple[str, int]]:
        found: dict[tuple[str, HloValue], tuple[str, int]] = {}
        for named in self._lines.values:
            made = named.instruction
            value = made.value.at(named.leaf[1]) if made.is_tuple else made.value
            if named.name.isidentifier() and not self._may_be_derivative(made):
                found.setdefault((made.computation, value), (named.name, named.location.line))
        return found

    def expression(self, instruction: Instruction) -> str:
        """Return the expression that an operation is written as, "" where that is not plain.

        A call may return several arrays, so only what is alone under its name is named.
        """
        alike = self._alike[instruction.key, instruction.opcode]
        if alike > 1 or self._may_be_derivative(instruction):
            return ""
        frames = itertools.takewhile(
            lambda frame: not self._lines.sources.is_own(frame.file),
            self._lines.module.frames(instruction),
        )
        for frame in frames:
            if self._lines.sources.locate((frame,)):
                if frame.file not in self._expressions:
                    self._expressions[frame.file] = expressions(whole_file(frame.file))
                begun = self._expressions[frame.file].get((frame.line, frame.column), ())
                return expression_of(op_word(instruction), begun)
        return ""

    def _may_be_derivative(self, instruction: Instruction) -> bool:
        """Whether an operation may be a gradient or a tangent, which is not what its line says.

        A tangent has the name of what it is of. Where a line has a backward pass too, its tangents
        were transposed, and what is left under that name is the forward pass.
        """
        path = self._lines.module.path(instruction)
        if "transpose(" in path or path.count("jvp(") > 1:
            return True
        return "jvp(" in path and instruction.key[1] not in self._transposed

    @cached_property
    def _transposed(self) -> frozenset[int]:
        module = self._lines.module
        every = module.instructions()
        return frozenset(one.key[1] for one in every if "transpose(" in module.path(one))

    @cached_property
    def _alike(self) -> Counter[tuple[Key, str]]:
        every = self._lines.module.instructions()
        return Counter((instruction.key, instruction.opcode) for instruction in every)
