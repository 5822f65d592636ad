"""The user's names of values: the variable that a statement assigns, or the expression."""

from __future__ import annotations

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

from shardnb.propagation.named import Lines, op_word
from shardnb.sources.expressions import (
    Expressions,
    expressions,
    is_one_operation,
    is_product,
    operand_of,
    sum_within,
    text_of,
    written_as,
)
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

        A call may make several arrays, so its name is that of the only one. What a loop of Python
        repeats is written alike.
        """
        expression = self._of_value(instruction)
        return "" if expression is None else text_of(expression)

    def operand(self, instruction: Instruction, at: int) -> str:
        """Return what an operand is written as, "" where that is not plain."""
        expression = self._of_value(instruction)
        return "" if expression is None else operand_of(expression, at)

    def operation(self, instruction: Instruction, name: str) -> str:
        """Return what an operation of JAX's is written as, also one that autodiff made of that.

        Of what has a backward pass, only a product leaves operations of its own kind there.
        """
        nested = self._nested(instruction)
        expression, path = written_as(name, nested), self._lines.module.path(instruction)
        text = text_of(expression) if expression is not None else ""
        if "rematted_computation" in path:
            return f"the recomputation of {text}" if text else ""
        if "transpose(" in path:
            known = text and expression is not None and is_product(expression)
            return f"the backward pass of {text}" if known else ""
        shapes = self._alike[instruction.key, instruction.opcode]
        if isinstance(expression, ast.Call) and len(shapes) > 1:
            return ""  # `layer(x).sum()` may be either
        return text or sum_within(name, nested)

    def _of_value(self, instruction: Instruction) -> ast.expr | None:
        """Return the expression whose value an operation makes."""
        expression = written_as(op_word(instruction), self._nested(instruction))
        if expression is None or self._may_be_derivative(instruction):
            return None
        shapes = self._alike[instruction.key, instruction.opcode]
        repeated = len(shapes) == 1 and is_one_operation(expression)
        return expression if repeated or shapes.total() == 1 else None

    def _nested(self, instruction: Instruction) -> Sequence[ast.expr]:
        """Return the expressions that begin where an operation stands in the user's text."""
        frames = itertools.takewhile(
            lambda frame: not self._lines.sources.is_own(frame.file),
            self._lines.module.frames(instruction),
        )
        for frame in frames:
            if self._lines.sources.locate((frame,)):
                if frame.file not in self._expressions:
                    self._expressions[frame.file] = expressions(
                        self._lines.sources.whole_file(frame.file)
                    )
                return self._expressions[frame.file].get((frame.line, frame.column), ())
        return ()

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
    def _alike(self) -> dict[tuple[Key, str], Counter[str]]:
        """The shapes of what has one name and one line, by these."""
        found: dict[tuple[Key, str], Counter[str]] = defaultdict(Counter)
        for instruction in self._lines.module.instructions():
            found[instruction.key, instruction.opcode][instruction.shape] += 1
        return found
