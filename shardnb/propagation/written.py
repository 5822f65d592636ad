"""The user's names of values: the variable that a statement assigns, or the expression."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

from shardnb.propagation.named import Lines, op_word
from shardnb.sources.expressions import (
    Expressions,
    expressions,
    is_of_two,
    is_one_operation,
    is_product,
    operand_of,
    step_within,
    sums_in_a_row,
    text_of,
    within,
    written_as,
)
from shardnb.texts.extremes import extreme_of
from shardnb.texts.instruction import HloValue, Instruction, Key
from shardnb.texts.opcodes import ONE_OPERAND_STEPS

_JITTED = re.compile(r"jit\(_?(\w+)\)")


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
        path, expression = self._lines.module.path(instruction), self._written(instruction, name)
        text = text_of(expression) if expression is not None else ""
        if "rematted_computation" in path:
            return f"the recomputation of {text}" if text else ""
        if "transpose(" in path:
            # Of `a @ b @ c` the backward pass of both products is that of the outer one.
            outer = self._fitting(instruction, name)[:1]
            text = text_of(outer[0]) if outer and is_product(outer[0]) else ""
            return f"the backward pass of {text}" if text else ""
        shapes = self._alike[instruction.key, instruction.opcode]
        if (whole := self._sums_in_a_row(instruction, name)) is not None:
            text = text_of(whole)
            return f"{'the' if len(shapes) == 1 else 'a'} sum in {text}" if text else ""
        if isinstance(expression, ast.Call) and len({one.shape for one in shapes}) > 1:
            return ""  # `layer(x).sum()` may be either
        return text or step_within(name, self._around(instruction))

    def _of_value(self, instruction: Instruction) -> ast.expr | None:
        """Return the expression whose value an operation makes."""
        name = extreme_of(self._lines.module, instruction) or op_word(instruction)
        expression = self._written(instruction, name)
        if expression is None or self._may_be_derivative(instruction):
            return None
        if self._sums_in_a_row(instruction, name) is not None:
            return None
        alike = self._alike[instruction.key, instruction.opcode]
        several = is_of_two(expression) and len(self._fitting(instruction, name)) > 1
        repeated = len({one.shape for one in alike}) == 1 and is_one_operation(expression)
        return expression if several or repeated or len(alike) == 1 else None

    def _written(self, instruction: Instruction, name: str) -> ast.expr | None:
        """Return the expression that an operation is written as, None where that is not plain.

        Of several that begin at one place, as `a @ b` and `a @ b @ c` do, the inner one makes what
        the outer one takes.
        """
        fitting = self._fitting(instruction, name)
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        if not all(map(is_of_two, fitting)):
            return None
        depths = self._depths(instruction.key, instruction.opcode)
        turns = Counter(depth % len(fitting) for depth in depths.values())
        if len(turns) < len(fitting) or len(set(turns.values())) > 1:
            return None
        return fitting[::-1][depths[instruction] % len(fitting)]

    def _sums_in_a_row(self, instruction: Instruction, name: str) -> ast.expr | None:
        return sums_in_a_row(self._around(instruction)) if name == "reduce_sum" else None

    def _fitting(self, instruction: Instruction, name: str) -> list[ast.expr]:
        return written_as(name, self._around(instruction))

    def _around(self, instruction: Instruction) -> Sequence[ast.expr]:
        """Return the expressions at an operation's place, up to the jitted call it is made in."""
        inner = self._lines.module.path(instruction).partition("/")[2]  # the program is the first
        return within(self._nested(instruction), frozenset(_JITTED.findall(inner)))

    def _depths(self, key: Key, opcode: str) -> dict[Instruction, int]:
        """Return how many operations of one name and place each of them follows directly."""
        depths: dict[Instruction, int] = {}
        for one in self._alike[key, opcode]:
            graph = self._lines.module.graph_of(one)
            taken = (graph.source(value, ONE_OPERAND_STEPS) for value in graph.operands[one.name])
            inner = [depths[made] for value in taken if (made := graph.maker(value)) in depths]
            depths[one] = max(inner, default=-1) + 1
        return depths

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
    def _alike(self) -> dict[tuple[Key, str], list[Instruction]]:
        """What has one name and one place, by these, in the order of the program."""
        found: dict[tuple[Key, str], list[Instruction]] = defaultdict(list)
        for instruction in self._lines.module.instructions():
            found[instruction.key, instruction.opcode].append(instruction)
        return found
