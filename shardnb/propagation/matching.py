"""Matches each value of the HLO after propagation with a value of Shardy's module.

Both are numbered the same way: a value's number follows from its op, its type and its operands, so
equal numbers are equal values. If several values of a module share a number, they are paired in
order, provided that there are as many on the other side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from shardnb.texts import hlo
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.shardy import Module, Op, Value

Leaf = tuple[str, int]
"""A value of HLO: the instruction's name, and which element of its result."""

# XLA takes these out of the program, or makes a `copy` of them: their value is their operand's.
_SAME = ("sharding-constraint", "reshard", "data-flow-edge", "copy", "optimization-barrier")


@dataclass
class _Numbers:
    """Assigns the same number to the same key."""

    _known: dict[Hashable, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def of(self, *key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))

    def next(self, kind: str) -> int:
        self.counts[kind] += 1
        return self.counts[kind]

    def restart(self) -> None:
        self.counts.clear()


def match(stated: Module, before: hlo.Module) -> dict[Leaf, Value]:
    """Return the value of Shardy's module for each value of HLO for which it is certain."""
    numbers = _Numbers()
    left = _Stated(stated, numbers)
    left.run()
    numbers.restart()
    right = _Before(before, numbers)
    right.run()
    matched: dict[Leaf, Value] = {}
    for number, leaves in right.found.items():
        values = left.found.get(number, [])
        if len(leaves) == len(values):
            matched.update(zip(leaves, values, strict=True))
        elif len({value.placed.spec for value in values}) == 1:
            matched.update((leaf, values[0]) for leaf in leaves)
    return matched


class _Stated:
    def __init__(self, module: Module, numbers: _Numbers) -> None:
        self.module, self.numbers = module, numbers
        self.known: dict[Value, int] = {}
        self.found: dict[int, list[Value]] = defaultdict(list)
        self.manual: dict[Value, Value] = {}

    def run(self) -> None:
        for number, value in enumerate(self.module.inputs):
            self._is(value, self.numbers.of("input", number))
        for op in self.module.ops:
            self._number(op)

    def _is(self, value: Value, number: int) -> None:
        self.known[value] = number
        self.found[number].append(value)

    def _number(self, op: Op) -> None:
        opcode = op.opcode
        operands = [self.known.get(value, -1) for value in op.operands]
        if opcode == "while":
            self._while(op, operands)
        elif opcode == "manual-computation":
            for value, number in zip(op.arguments[0], operands, strict=False):
                self._is(value, self.numbers.of("to shard", number))
            self.manual.update(zip(op.results, op.returned[0], strict=False))
        elif opcode == "data-flow-edge" and op.operands[0] in self.manual:
            inner = self.known.get(self.manual[op.operands[0]], -1)
            self._is(op.results[0], self.numbers.of("to full", inner))
        elif opcode in _SAME:
            for value, number in zip(op.results, operands, strict=False):
                self.known[value] = number
                if opcode != "data-flow-edge":
                    self.found[self.numbers.of("copy", number)].append(value)
        else:
            types = tuple((value.dtype, value.shape) for value in op.results)
            key = _key(self.numbers, opcode, types, operands)
            for index, value in enumerate(op.results):
                self._is(value, self.numbers.of(key, index))

    def _while(self, op: Op, operands: list[int]) -> None:
        key = self.numbers.of("while", self.numbers.next("while"))
        (condition, carried), returned = op.arguments, op.returned[-1]
        for index, value in enumerate(op.results):
            self._is(value, self.numbers.of("result", key, index))
        for index, value in enumerate(carried):
            passed = index < len(returned) and returned[index] == value
            number = operands[index] if passed else self.numbers.of("carry", key, index)
            self.known[value] = self.known[condition[index]] = number
            if not passed:
                self.found[number].append(value)


def _key(
    numbers: _Numbers, opcode: str, types: tuple[Hashable, ...], operands: Iterable[int]
) -> int:
    if opcode == "conditional":
        return numbers.of(opcode, types, numbers.next(opcode))
    return numbers.of(opcode, types, tuple(operands))


class _Before:
    def __init__(self, module: hlo.Module, numbers: _Numbers) -> None:
        self.module, self.numbers = module, numbers
        self.known: dict[str, list[int]] = {}
        self.found: dict[int, list[Leaf]] = defaultdict(list)

    def run(self) -> None:
        self._computation(self.module.entry, None)

    def _computation(self, name: str, arguments: list[list[int]] | None) -> list[int]:
        """Number a computation; `arguments` are those of its parameters, None for the entry's."""
        last: list[int] = []
        for instruction in self.module.body(name):
            number = self._parameter if instruction.opcode == "parameter" else self._number
            leaves = number(instruction, arguments)
            self.known[instruction.name] = leaves
            last = leaves if instruction.is_root else last
        return last

    def _parameter(self, it: Instruction, arguments: list[list[int]] | None) -> list[int]:
        if arguments is None:
            leaves = [self.numbers.of("input", it.number)]
            self._found(it, leaves)
            return leaves
        known = it.number < len(arguments)
        return arguments[it.number] if known else [-1] * len(it.arrays)

    def _found(self, it: Instruction, leaves: list[int]) -> None:
        for index, number in enumerate(leaves):
            self.found[number].append((it.name, index))

    def _operand(self, value: HloValue) -> list[int]:
        leaves = self.known.get(value.name, [-1])
        if not value.element:
            return leaves
        at = value.element[0]
        return [leaves[at]] if at < len(leaves) else [-1]

    def _number(self, it: Instruction, _: object) -> list[int]:
        operands = [number for value in it.operands for number in self._operand(value)]
        if it.opcode in ("tuple", "opt-barrier"):
            return operands
        if it.opcode == "get-tuple-element":
            index = it.integer("index") or 0
            return [operands[index]] if index < len(operands) else [-1]
        if it.opcode == "copy":
            self.found[self.numbers.of("copy", operands[0])].append((it.name, 0))
            return operands
        leaves = self._result(it, operands)
        self._found(it, leaves)
        return leaves

    def _result(self, it: Instruction, operands: list[int]) -> list[int]:
        if it.opcode == "while":
            return self._while(it, operands)
        if it.opcode == "call":
            return self._computation(it.calls("to_apply"), [self._operand(v) for v in it.operands])
        if it.opcode == "custom-call" and "SPMD" in it.attributes:
            way = "to shard" if "SPMDFullToShardShape" in it.attributes else "to full"
            return [self.numbers.of(way, operands[0])]
        key = _key(self.numbers, it.opcode, it.arrays, operands)
        if it.opcode == "conditional":
            for (_, name), argument in zip(it.called, it.operands[1:], strict=False):
                self._computation(name, [self._operand(argument)])
        return [self.numbers.of(key, index) for index in range(len(it.arrays))]

    def _while(self, it: Instruction, operands: list[int]) -> list[int]:
        key = self.numbers.of("while", self.numbers.next("while"))
        body = self.module.computations.get(it.calls("body"))
        passed = _passed(body) if body is not None else set()
        carry = [
            number if index in passed else self.numbers.of("carry", key, index)
            for index, number in enumerate(operands)
        ]
        for parameter in body.parameters.values() if body is not None else ():
            for index, number in enumerate(carry):
                if index not in passed:
                    self.found[number].append((parameter.name, index))
        for role in ("condition", "body"):
            self._computation(it.calls(role), [carry])
        return [self.numbers.of("result", key, index) for index in range(len(operands))]


def _passed(body: Graph) -> set[int]:
    """Return the elements of a loop's carry that its body returns unchanged."""
    carry = body.parameters.get(0, HloValue(""))
    results = body.results if body.root.opcode == "tuple" else ()
    return {index for index, value in enumerate(results) if value == carry.at(index)}
