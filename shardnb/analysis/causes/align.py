"""Which value of the program before partitioning each value after it stands for.

The partitioner visits the instructions one by one and writes for each one or several new ones.
What it writes keeps the key (op_name and stack frame) of the instruction, or of the value that is
moved for it. So a new instruction of the same kind and key that takes the same values *is* the old
one; others are helpers, which carry values along, or are steps on the way to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardnb.analysis.causes.graph import Graph, Key, is_pass
from shardnb.analysis.causes.program import Before
from shardnb.compiler.hlo import Instruction

Values = tuple[str, ...]

_DATA = {
    "dynamic-slice": 1,
    "slice": 1,
    "dynamic-update-slice": 2,
    "pad": 1,
    "reduce": 1,
    "gather": 1,
}
"""How many of the first operands carry data; the others say where."""

_MOVERS = frozenset(
    "slice dynamic-slice pad concatenate reshape transpose copy reverse select broadcast "
    "dynamic-update-slice convert".split()
)
"""What the partitioner also writes as a step of its own."""

COLLECTIVES = frozenset(
    "all-reduce all-gather all-to-all collective-permute reduce-scatter ragged-all-to-all "
    "collective-broadcast".split()
)


@dataclass
class Alignment:
    """What the values of one computation after partitioning are, in the one before.

    `carries` gives for each instruction the values before that it is, or is a part of.
    `own` names those that stand for an instruction before, `steps` those on the way to one.
    """

    before: Graph
    after: Graph
    carries: dict[str, Values] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    steps: dict[str, str] = field(default_factory=dict)

    def values(self, value: str) -> Values:
        """Give the values before that a value after carries."""
        name, mark, element = value.partition("#")
        carried = self.carries.get(name, ())
        if not mark or name not in self.own:
            return carried
        return tuple(self.before.resolve(f"{one}#{element}") for one in carried)

    def stands_for(self, name: str) -> str | None:
        """Give the instruction before that one after stands for."""
        return self.own.get(name)


def align(program: Before, before: Graph, after: Graph) -> Alignment:
    """Align a computation after partitioning with the one before."""
    return _Aligner(program, before, after).run()


class _Aligner:
    def __init__(self, program: Before, before: Graph, after: Graph) -> None:
        self.program = program
        self.before = before
        self.after = after
        self.found = Alignment(before, after)
        self.index: dict[Key, list[Instruction]] = defaultdict(list)
        for instruction in before.body:
            key = before.keys[instruction.name]
            if key[0] and not is_pass(instruction) and instruction.opcode != "parameter":
                self.index[key].append(instruction)

    def run(self) -> Alignment:
        for number, name in self.after.parameters.items():
            if number in self.before.parameters:
                self._set(name, self.before.parameters[number], True)
        for instruction in self.after.body:
            if not is_pass(instruction) and instruction.opcode != "parameter":
                self._place(instruction)
        return self.found

    def _set(self, name: str, value: str, exact: bool) -> None:
        self.found.carries[name] = (value,)
        self.found.own[name] = value
        if exact:
            self.found.exact.add(name)

    def _place(self, new: Instruction) -> None:
        taken = [self.found.values(operand) for operand in self.after.operands[new.name]]
        key = self.after.keys[new.name]
        olds = self.index.get(key, ()) if key[0] else ()
        if olds and (match := self._direct(new, taken, olds)):
            self._set(new.name, *match)
            return
        carried = self._carried(new, taken, olds)
        self.found.carries[new.name] = carried
        moves_own = new.opcode in COLLECTIVES and any(self._key(value) == key for value in carried)
        for old in olds:
            if old.name in carried or not self._feeds(carried, old):
                continue
            exact = self._is_shard(new, old)
            if old.opcode in _MOVERS and self._leaves(new, key, exact):
                self._set(new.name, old.name, exact)
            elif not moves_own:
                self.found.steps[new.name] = old.name
            return

    def _key(self, value: str) -> Key | None:
        return self.before.keys.get(value.partition("#")[0])

    def _direct(
        self, new: Instruction, taken: list[Values], olds: list[Instruction] | tuple[()]
    ) -> tuple[str, bool] | None:
        """Find the instruction of the same kind that takes the same values."""
        best: tuple[int, str, bool] | None = None
        for old in olds:
            if old.opcode != new.opcode or _is_generated(new):
                continue
            exact = self._is_shard(new, old)
            score = self._score(old, taken)
            if score is None or not self._trusted(new, old, exact):
                continue
            rank = 2 * score + exact
            if best is None or rank > best[0]:
                best = rank, old.name, exact
        return (best[1], best[2]) if best else None

    def _trusted(self, new: Instruction, old: Instruction, exact: bool) -> bool:
        if old.opcode not in _MOVERS:
            return True
        if len(self.before.operands[old.name]) > 1 and old.opcode in ("concatenate", "select"):
            return True
        return exact and not self._is_exchanged(new)

    def _is_exchanged(self, new: Instruction) -> bool:
        key = self.after.keys[new.name]
        users = (self.after.nodes[user] for user in self.after.users.get(new.name, ()))
        return any(
            user.opcode == "collective-permute" and self.after.keys[user.name] == key
            for user in users
        )

    def _score(self, old: Instruction, taken: list[Values]) -> int | None:
        """Count the operands that agree; None where one does not."""
        operands = self.before.operands[old.name]
        if len(operands) != len(taken):
            return None
        numbers, score = self.program.numbers(self.before), 0
        for operand, values in zip(operands, taken, strict=True):
            mine = numbers.get(operand, operand)
            if any(numbers.get(value, value) == mine for value in values):
                score += 1
            elif values or not self.program.is_constant(self.before, operand):
                return None
        return score

    def _is_shard(self, new: Instruction, old: Instruction) -> bool:
        return self.program.shard_shapes(old) == tuple(shape for _, shape in new.arrays)

    def _carried(
        self, new: Instruction, taken: list[Values], olds: list[Instruction] | tuple[()]
    ) -> Values:
        if new.opcode == "select":
            taken = taken[1:]
        count = _DATA.get(new.opcode, len(taken))
        values = tuple(dict.fromkeys(value for values in taken[:count] for value in values))
        mine = tuple(old.name for old in olds if old.name in values)
        return mine or values

    def _feeds(self, values: Values, old: Instruction) -> bool:
        numbers = self.program.numbers(self.before)
        wanted = {numbers.get(operand, operand) for operand in self._sources(old)}
        return any(numbers.get(value, value) in wanted for value in values)

    def _sources(self, old: Instruction) -> Iterator[str]:
        """Give the operands; those of slices too, which a concatenation may take in itself."""
        for operand in self.before.operands[old.name]:
            yield operand
            node = self.before.nodes.get(operand)
            if old.opcode == "concatenate" and node is not None and node.opcode == "slice":
                yield self.before.operands[node.name][0]

    def _leaves(self, new: Instruction, key: Key, exact: bool) -> bool:
        """Whether a value goes on to another operation, to be moved, or out of the computation."""
        if new.is_root:
            return True
        users = self.after.users.get(new.name, ())
        return any(self.after.keys[user] != key or (exact and self._moves(user)) for user in users)

    def _moves(self, user: str) -> bool:
        """Whether an instruction moves a whole block elsewhere, in one step or two."""
        opcode = self.after.nodes[user].opcode
        if opcode == "reshape":
            further = self.after.users.get(user, ())
            return any(self.after.nodes[name].opcode == "all-to-all" for name in further)
        return opcode in ("all-gather", "all-to-all")


def _is_generated(instruction: Instruction) -> bool:
    return instruction.opcode in COLLECTIVES and is_generated(instruction)


def is_generated(instruction: Instruction) -> bool:
    """Whether the partitioner made an instruction."""
    return 'is_spmd_generated="true"' in instruction.attributes
