"""The instructions before partitioning, found by their key, their kind, and what they take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from shardnb.causes.stated_shardings import is_shard_map_edge
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction, Key
from shardnb.texts.opcodes import STEPS, TUPLES

Values = tuple[HloValue, ...]
Numbers = dict[HloValue, None]
"""The numbers of the values that an operand may be, in order; see `Unpartitioned.numbers`."""

_ALL_CONSTANT: tuple[int, HloValue] = -1, HloValue("")
_DEPTH = 8


class Index:
    """Finds instructions of a computation before partitioning; those without a key are left out."""

    def __init__(self, program: Unpartitioned, graph: Graph) -> None:
        """Index the instructions of a computation."""
        self.program, self.graph = program, graph
        self.numbers = program.numbers(graph)
        self.by_key: dict[Key, list[Instruction]] = defaultdict(list)
        self._of_kind: dict[tuple[Key, str], list[Instruction]] = defaultdict(list)
        self._taking: dict[tuple[Key, str, int, HloValue], list[Instruction]] = defaultdict(list)
        self._fed: dict[tuple[Key, HloValue], list[Instruction]] = defaultdict(list)
        for instruction in graph.body:
            if instruction.key[0] and instruction.opcode not in (*TUPLES, "parameter"):
                self._enter(instruction.key, instruction)

    def _enter(self, key: Key, old: Instruction) -> None:
        # The partitioner writes a copy for what goes into a shard_map or out of it
        # (`shard_map_after_another`).
        opcode = "copy" if is_shard_map_edge(old) else old.opcode
        self.by_key[key].append(old)
        self._of_kind[key, opcode].append(old)
        self._taking[key, opcode, *self._first(old)].append(old)
        if old.opcode in STEPS:
            for source in dict.fromkeys(map(self.number, self.graph.operands[old.name])):
                self._fed[key, source].append(old)

    def _first(self, old: Instruction) -> tuple[int, HloValue]:
        """Return the first operand that is not a constant, `_ALL_CONSTANT` where all are."""
        for at, operand in enumerate(self.graph.operands[old.name]):
            if not self.program.is_constant(self.graph, operand):
                return at, self._repeated(operand)
        return _ALL_CONSTANT

    def _repeated(self, value: HloValue) -> HloValue:
        """Return the number that an array repeats; of another value the first computed alike.

        Blocks of arrays of different shapes that repeat one number are one value after partitioning
        (`messages_along_sharded_edges`, `factored_state_is_gathered`).
        """
        node = self.graph.maker(value)
        if node is not None and node.opcode == "broadcast":
            operand = self.graph.operands[node.name][0]
            array = self.graph.array(operand)
            value = operand if array is not None and not array[1] else value
        return self.number(value)

    def number(self, value: HloValue) -> HloValue:
        """Return the first value that is computed as this one is."""
        return self.numbers.get(value, value)

    def of_kind(self, key: Key, opcode: str) -> Sequence[Instruction]:
        """Return the instructions of a key and a kind."""
        return self._of_kind.get((key, opcode), ())

    def fed(self, key: Key, values: Values) -> list[Instruction]:
        """Return what moves one of these values under a key."""
        numbers = dict.fromkeys(map(self.number, values))
        return [old for number in numbers for old in self._fed.get((key, number), ())]

    def taking(
        self, key: Key, opcode: str, taken: Sequence[Values]
    ) -> Iterator[tuple[Instruction, int]]:
        """Yield what takes these values, operand by operand, and how many operands agree.

        An operand of which nothing is known agrees with a constant only, and is not counted.
        """
        numbers = [dict.fromkeys(map(self._repeated, values)) for values in taken]
        for old in self._likely(key, opcode, numbers):
            agree = self._agree(old, numbers)
            if agree is not None:
                yield old, agree

    def _likely(self, key: Key, opcode: str, taken: list[Numbers]) -> Iterator[Instruction]:
        """Yield the instructions whose first non-constant operand is one of the values."""
        yield from self._taking.get((key, opcode, *_ALL_CONSTANT), ())
        for at, numbers in enumerate(taken):
            for number in numbers:
                yield from self._taking.get((key, opcode, at, number), ())

    def _agree(self, old: Instruction, taken: list[Numbers]) -> int | None:
        operands = self.graph.operands[old.name]
        if len(operands) != len(taken):
            return None
        agree = 0
        for operand, numbers in zip(operands, taken, strict=True):
            if self._repeated(operand) in numbers:
                agree += 1
            elif numbers or not self.program.is_constant(self.graph, operand):
                return None
        return agree
