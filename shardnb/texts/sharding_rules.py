"""Shardy's rule of an HLO instruction: which dimensions of its arrays correspond."""

from __future__ import annotations

import re
from itertools import accumulate
from operator import mul

from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import ELEMENTWISE
from shardnb.texts.shardy_attributes import Dims, Numbers, Rule
from shardnb.texts.shardy_results import RulesBySignature, Shape

# `dimensions={1,0}`, and `slice={[0:4:2], [0:4]}` (tests/texts/test_sharding_rules.py).
_DIGITS = re.compile(r"-?\d+")
_SLICED = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")

AMBIGUOUS = Rule((), ())
"""The rule of operations that cannot be told apart."""


class Rules:
    """The rules of a module's operations, found by opcode and shapes, never by name."""

    def __init__(self, found: RulesBySignature) -> None:
        """Take the rules of a module after propagation; some rules are known without one."""
        self._found = found

    def of(self, instruction: Instruction, operands: tuple[Shape, ...]) -> Rule | None:
        """Return the rule of an HLO instruction with operands of these shapes.

        None if Shardy has none, `AMBIGUOUS` if several operations could be meant.
        """
        results = instruction.shapes
        found = self._found.get((instruction.opcode, results, operands), {})
        rules = list(found)
        if len(rules) > 1:
            numbers = _numbers(instruction)
            rules = [rule for rule in rules if numbers in found[rule]]
        if len(rules) > 1:
            return AMBIGUOUS
        return rules[0] if rules else _plain(instruction, operands, results)


def _numbers(instruction: Instruction) -> Numbers:
    """Return the numbers that tell operations of one kind and shape apart (`shardy.Op.numbers`)."""
    if instruction.opcode == "dot":
        of = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
        return tuple(_listed(instruction, f"{name}_dims") for name in of)
    if instruction.opcode == "convolution":
        arrays = re.split("_|->", instruction.attribute("dim_labels") or "")
        named = ("b", "f"), ("i", "o"), ("b", "f")
        return tuple(
            tuple(labels.find(end) for end in of) for labels, of in zip(arrays, named, strict=False)
        )
    if instruction.opcode == "slice":
        sliced = _SLICED.findall(instruction.attribute("slice") or "")
        ends = [(int(start), int(limit), int(step or 1)) for start, limit, step in sliced]
        return tuple(zip(*ends, strict=True)) or ((), (), ())
    if instruction.opcode in _WITH_DIMENSIONS:
        return (_listed(instruction, "dimensions"),)
    return ()


# Operations of equal shapes that differ in these alone have different rules, such as two transposes
# of a square (test_transposes_of_equal_shapes_are_told_by_their_dimensions).
_WITH_DIMENSIONS = ("transpose", "broadcast", "reverse", "reduce", "concatenate", "sort")


def _listed(instruction: Instruction, name: str) -> tuple[int, ...]:
    return tuple(map(int, _DIGITS.findall(instruction.attribute(name) or "")))


def _plain(
    instruction: Instruction, operands: tuple[Shape, ...], results: tuple[Shape, ...]
) -> Rule | None:
    """Return the rule of an operation with only one: elementwise, transpose, broadcast, reshape."""
    opcode = instruction.opcode
    if len(results) != 1:
        return None
    result = results[0]
    names = tuple((f"i_{dim}",) for dim in range(len(result)))
    sizes = {f"i_{dim}": size for dim, size in enumerate(result)}
    if opcode in ELEMENTWISE and all(shape in (result, ()) for shape in operands):
        return Rule(tuple(names if shape else () for shape in operands), (names,), sizes)
    if opcode in ("transpose", "broadcast") and len(operands) == 1:
        dims = _listed(instruction, "dimensions")
        if opcode == "transpose":
            return Rule((tuple(names[dims.index(d)] for d in range(len(dims))),), (names,), sizes)
        return Rule((tuple(names[dim] for dim in dims),), (names,), sizes)
    if opcode == "reshape" and len(operands) == 1:
        return _reshape(operands[0], result)
    return _pad(instruction, names, operands[0]) if opcode == "pad" else None


def _pad(instruction: Instruction, names: Dims, source: Shape) -> Rule:
    """Return the rule of a pad, which TPU makes itself: elements of padded dimensions move."""
    ends = (instruction.attribute("padding") or "").split("x")
    moved = {name for (name,), end in zip(names, ends, strict=False) if end.strip("_0")}
    sizes = {name: size for (name,), size in zip(names, source, strict=True)}
    return Rule((names, ()), (names,), sizes, permutation=frozenset(moved))


def _reshape(source: Shape, result: Shape) -> Rule | None:
    """Factor the dimensions that a reshape merges or splits; None if the sizes do not divide."""
    ends = sorted({*accumulate(source, mul), *accumulate(result, mul)})
    sizes: list[int] = []
    before = 1
    for end in ends:
        if before == 0 or end % before:
            return None
        sizes += [end // before] if end > before else []
        before = end
    named = tuple((f"i_{number}", size) for number, size in enumerate(sizes))
    return Rule((_assigned(source, named),), (_assigned(result, named),), dict(named))


def _assigned(shape: Shape, named: tuple[tuple[str, int], ...]) -> Dims:
    """Return the factors of each dimension."""
    left = iter(named)
    dims: list[tuple[str, ...]] = []
    for size in shape:
        factors: list[str] = []
        product = 1
        while product < size:
            name, factor = next(left)
            factors.append(name)
            product *= factor
        dims.append(tuple(factors))
    return tuple(dims)
