"""Which value of the program before partitioning each value after it stands for.

The partitioner visits the instructions one by one and writes for each one or several new ones.
What it writes keeps the key (op_name and stack frame) of the instruction, or of the value that is
moved for it. So a new instruction of the same kind and key that takes the same values *is* the old
one; others are helpers, which carry values along. Keys repeat, so that several old instructions
may fit at first; what takes the value later tells which one it was, in a second pass.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from shardnb.analysis.causes.graph import Graph, Key, is_pass
from shardnb.analysis.causes.program import Before
from shardnb.analysis.collectives import KINDS
from shardnb.compiler.hlo import Instruction, parse_shape

Values = tuple[str, ...]

COLLECTIVES = frozenset(KINDS)
_DATA = {"dynamic-slice": 1, "slice": 1, "dynamic-update-slice": 2, "pad": 1, "reduce": 1}
"""How many of the first operands of a helper carry data; the others say where."""

_STEPS = (
    "broadcast concatenate convert copy dynamic-slice dynamic-update-slice iota pad reshape "
    "reverse select slice transpose"
)
_MOVERS = frozenset(_STEPS.split())
"""What the partitioner also writes as a step of its own."""

_SINGLE_STEPS = frozenset(("broadcast", "convert", "copy", "reshape", "slice", "transpose"))
"""Those that hand one value on."""

_STEM = re.compile(r"(?:\.clone)?(?:\.\d+)?$")
_CLONE = re.compile(r"\.clone(?:\.\d+)?$")


@dataclass
class Alignment:
    """What the values of one computation after partitioning are, in the one before.

    `carries` gives for each instruction the values before that it is, or holds a part of.
    `own` says which instruction before it stands for; those in `exact` lie as declared.
    """

    program: Before
    before: Graph
    after: Graph
    carries: dict[str, Values] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    by_key: dict[Key, list[Instruction]] = field(default_factory=dict)

    @cached_property
    def standing(self) -> frozenset[str]:
        """The instructions before that something after stands for."""
        return frozenset(self.own.values())

    def named(self, value: str, key: Key) -> str | None:
        """Give the instruction of a key that computes a value, which may keep another's key."""
        numbers = self.program.numbers(self.before)
        name, mark, element = value.partition("#")
        for old in self.by_key.get(key, ()) if key[0] else ():
            if numbers.get(old.name, old.name) == numbers.get(name, name):
                return old.name + mark + element
        return None

    def shard_shape(self, value: str) -> tuple[int, ...] | None:
        """Give the shape of the declared block of a value before."""
        array, layout = self.before.array(value), self.program.layout(self.before, value)
        return layout.shard_shape(array[1]) if array and layout else None

    def values(self, value: str) -> Values:
        """Give the values before that a value after carries."""
        name, mark, element = value.partition("#")
        carried = self.carries.get(name, ())
        if not mark or name not in self.own:
            return carried
        return tuple(self.before.resolve(f"{one}#{element}") for one in carried)


def align(program: Before, before: Graph, after: Graph) -> Alignment:
    """Align a computation after partitioning with the one before."""
    return _Aligner(program, before, after).run()


class _Fit(NamedTuple):
    """An old instruction that a new one may be: how many operands agree, and its shape."""

    old: Instruction
    agree: int
    exact: bool

    @property
    def rank(self) -> tuple[int, bool]:
        return self.agree, self.exact


class _Aligner:
    def __init__(self, program: Before, before: Graph, after: Graph) -> None:
        self.program = program
        self.before = before
        self.after = after
        self.numbers = program.numbers(before)
        self.found = Alignment(program, before, after)
        self.fixed: dict[str, str] = {}
        self.claimed: set[str] = set()
        self.memory: dict[str, tuple[list[Values], list[_Fit]]] = {}
        self.index: dict[tuple[Key, str], list[Instruction]] = defaultdict(list)
        self.taking: dict[tuple[Key, str, int, str], list[Instruction]] = defaultdict(list)
        self.fed: dict[tuple[Key, str], list[Instruction]] = defaultdict(list)
        self.by_key: dict[Key, list[Instruction]] = defaultdict(list)
        for instruction in before.body:
            key = before.keys[instruction.name]
            if key[0] and not is_pass(instruction) and instruction.opcode != "parameter":
                self._enter(key, instruction)

    def _enter(self, key: Key, old: Instruction) -> None:
        """Index an instruction by its key, its kind, and the values that it takes."""
        self.index[key, old.opcode].append(old)
        self.by_key[key].append(old)
        at, number = self._first(old)
        self.taking[key, old.opcode, at, number].append(old)
        if old.opcode in _MOVERS:
            for source in dict.fromkeys(map(self._number, self._sources(old))):
                self.fed[key, source].append(old)

    def _first(self, old: Instruction) -> tuple[int, str]:
        """Give the first operand that is no constant, (-1, "") where all are."""
        for at, operand in enumerate(self.before.operands[old.name]):
            if not self.program.is_constant(self.before, operand):
                return at, self._number(operand)
        return -1, ""

    def run(self) -> Alignment:
        for _ in range(_PASSES):
            self._pass()
            if all(self._is_told(new, old) for new, old in self.fixed.items()):
                break
        return self.found

    def _is_told(self, new: str, old: str) -> bool:
        """Whether an instruction already stands for what was told of it, or for an equal one."""
        own = self.found.own.get(new)
        return own is not None and self._number(own) == self._number(old)

    def _pass(self) -> None:
        """Place every instruction, with what an earlier pass told."""
        self.found = Alignment(self.program, self.before, self.after, by_key=self.by_key)
        self.claimed = set()
        for number, name in self.after.parameters.items():
            if number in self.before.parameters:
                self._set(name, (self.before.parameters[number],), exact=True)
        for instruction in self.after.body:
            if instruction.opcode == "constant":
                self._constant(instruction)
            elif not is_pass(instruction) and instruction.opcode != "parameter":
                self._place(instruction)

    def _set(self, name: str, values: Values, *, exact: bool, taken: Sequence[Values] = ()) -> None:
        self.found.carries[name] = values
        if taken and self.after.nodes[name].opcode == "slice":
            # A slice that is also a step to another one was merged with it.
            self.found.carries[name] += taken[0]
        self.found.own[name] = values[0]
        self.claimed.add(values[0])
        if exact:
            self.found.exact.add(name)

    def _constant(self, new: Instruction) -> None:
        """A constant keeps its name, with `.clone` behind it."""
        old = self.before.nodes.get(_CLONE.sub("", new.name))
        if old is not None and old.opcode == "constant" and old.operand_text == new.operand_text:
            self._set(new.name, (old.name,), exact=True)

    def _place(self, new: Instruction) -> None:
        taken = [self.found.values(operand) for operand in self.after.operands[new.name]]
        key = self.after.keys[new.name]
        fits = [] if _is_generated(new) or not key[0] else self._remembered(new, taken, key)
        if fits:
            values = self._ordered(new, [fit.old.name for fit in fits])
            if len({self._number(value) for value in values}) == 1:
                self._tell(self.before.operands[values[0]], self.after.operands[new.name])
            self._set(new.name, values, exact=fits[0].exact, taken=taken)
            return
        carried = self._carried(new, taken, key)
        self.found.carries[new.name] = carried
        if new.opcode not in COLLECTIVES and key[0]:
            self._last_step(new, key, carried)

    def _last_step(self, new: Instruction, key: Key, carried: Values) -> None:
        """Let the last step of a key stand for what left no instruction of its kind."""
        numbers = dict.fromkeys(map(self._number, carried))
        olds = [old for number in numbers for old in self.fed.get((key, number), ())]
        fed = [old for old in olds if old.name not in carried]
        exact = [old for old in fed if self._is_shard(new, old)]
        fed = exact or [old for old in fed if _may_be_block(new, old)]
        if not fed or not self._leaves(new, key, exact=bool(exact)):
            return
        names = self._ordered(new, [old.name for old in fed])
        self._set(new.name, names, exact=bool(exact), taken=(carried,))

    def _ordered(self, new: Instruction, names: list[str]) -> Values:
        """Put first what an instruction is known to be, then what no other one stands for."""
        fixed = self.fixed.get(new.name)
        if fixed in names:
            return (fixed,)
        return tuple(sorted(dict.fromkeys(names), key=lambda name: name in self.claimed))

    def _number(self, value: str) -> str:
        return self.numbers.get(value, value)

    def _remembered(self, new: Instruction, taken: list[Values], key: Key) -> list[_Fit]:
        """Give what fitted in an earlier pass, if the same values were taken there."""
        known = self.memory.get(new.name)
        if known is None or known[0] != taken or not known[1]:
            known = self.memory[new.name] = taken, self._fits(new, taken, key)
        return known[1]

    def _fits(self, new: Instruction, taken: list[Values], key: Key) -> list[_Fit]:
        """Give the instructions of the same kind that take the same values, best ones only."""
        fits = []
        numbers = [frozenset(map(self._number, values)) for values in taken]
        for old in self._likely(new, numbers, key):
            agree = self._agree(old, numbers)
            if agree is None:
                continue
            exact = self._is_shard(new, old)
            if self._trusted(new, old, exact=exact):
                fits.append(_Fit(old, agree, exact))
        if not fits:
            return self._through_steps(new, taken, key) or self._only(new, key, taken)
        best = max(fit.rank for fit in fits)
        return [fit for fit in fits if fit.rank == best]

    def _likely(
        self, new: Instruction, numbers: Sequence[frozenset[str]], key: Key
    ) -> Iterator[Instruction]:
        """Give the instructions of the same kind that take one of the same values first."""
        yield from self.taking.get((key, new.opcode, -1, ""), ())
        for at, taken in enumerate(numbers):
            for number in taken:
                yield from self.taking.get((key, new.opcode, at, number), ())

    def _through_steps(self, new: Instruction, taken: list[Values], key: Key) -> list[_Fit]:
        """Fit an instruction one of whose operands was reached by other steps than before."""
        values = dict.fromkeys(value for carried in taken for value in carried)
        users = dict.fromkeys(user for v in values for user in self.before.users.get(v, ()))
        fits = []
        for old in map(self.before.nodes.__getitem__, users):
            alike = old.opcode == new.opcode and self.before.keys[old.name] == key
            if alike and self._is_shard(new, old) and self._agrees_through_steps(old, taken):
                fits.append(_Fit(old, 0, exact=True))
        return fits if len(fits) == 1 and fits[0].old.opcode not in _MOVERS else []

    def _agrees_through_steps(self, old: Instruction, taken: list[Values]) -> bool:
        operands = self.before.operands[old.name]
        return len(operands) == len(taken) and all(
            self._comes_from(operand, set(map(self._number, values)))
            for operand, values in zip(operands, taken, strict=True)
        )

    def _comes_from(self, operand: str, numbers: set[str]) -> bool:
        """Whether a value is one of these, moved on by steps that compute nothing."""
        for _ in range(_LIMIT):
            if self._number(operand) in numbers:
                return True
            node = self.before.nodes.get(_name(operand))
            if node is None or node.opcode not in _SINGLE_STEPS:
                return False
            operand = self.before.operands[node.name][0]
        return False

    def _only(self, new: Instruction, key: Key, taken: list[Values]) -> list[_Fit]:
        """Fit a copy whose operands were lost on the way, where only one can be meant."""
        olds = self.index.get((key, new.opcode), ())
        if len(olds) > _LIMIT:
            return []
        left = [old for old in olds if old.name not in self.claimed and self._is_like(new, old)]
        if len(left) != 1 or len(self.before.operands[left[0].name]) != len(taken):
            return []
        exact = self._is_shard(new, left[0])
        return [_Fit(left[0], 0, exact)] if self._trusted(new, left[0], exact=exact) else []

    def _is_like(self, new: Instruction, old: Instruction) -> bool:
        stem = _STEM.sub("", new.name)
        return stem in (_STEM.sub("", old.name), old.opcode)

    def _trusted(self, new: Instruction, old: Instruction, *, exact: bool) -> bool:
        if old.opcode not in _MOVERS:
            return True
        if len(self.before.operands[old.name]) > 1 and old.opcode in ("concatenate", "select"):
            return True
        if exact:
            return not self._is_exchanged(new) and not self._is_step(new, old)
        return old.opcode == "reshape" and self._is_other_block(new, old)

    def _is_step(self, new: Instruction, old: Instruction) -> bool:
        """Whether a slice is only taken for its own key, which the old one is not."""
        if old.opcode != "slice":
            return False
        key = self.after.keys[new.name]
        taken = (self.before.keys[user] == key for user in self.before.users.get(old.name, ()))
        return not self._leaves(new, key, exact=True) and not any(taken)

    def _is_other_block(self, new: Instruction, old: Instruction) -> bool:
        """Whether a reshape gives a block of the old one's result in another layout."""
        (_, part), (_, full) = new.arrays[0], old.arrays[0]
        if len(part) != len(full) or any(f % p for f, p in zip(full, part, strict=True) if p):
            return False
        return not any(
            self.after.nodes[user].opcode == "all-to-all"
            for user in self.after.users.get(new.name, ())
        )

    def _is_exchanged(self, new: Instruction) -> bool:
        """Whether a block is on its way to neighbours, for its own key's operation."""
        key = self.after.keys[new.name]
        users = (self.after.nodes[user] for user in self.after.users.get(new.name, ()))
        return any(
            user.opcode == "collective-permute" and self.after.keys[user.name] == key
            for user in users
        )

    def _agree(self, old: Instruction, numbers: Sequence[frozenset[str]]) -> int | None:
        """Count the operands that agree; None where one does not."""
        operands = self.before.operands[old.name]
        if len(operands) != len(numbers):
            return None
        agree = 0
        for operand, taken in zip(operands, numbers, strict=True):
            if self.numbers.get(operand, operand) in taken:
                agree += 1
            elif taken or not self.program.is_constant(self.before, operand):
                return None
        return agree

    def _tell(self, olds: Values, news: Values) -> None:
        """Note what the operands of an instruction were, now that it is known."""
        for old, new in zip(olds, news, strict=False):
            name = new.partition("#")[0]
            carried = self.found.carries.get(name, ())
            wanted = old.partition("#")[0]
            if len(carried) > 1 and name in self.found.own and wanted in carried:
                self.fixed[name] = wanted

    def _is_shard(self, new: Instruction, old: Instruction) -> bool:
        return self.program.shard_shapes(old) == _shapes(new.shape)

    def _carried(self, new: Instruction, taken: list[Values], key: Key) -> Values:
        if new.opcode == "select":
            taken = taken[1:]
        count = _DATA.get(new.opcode, len(taken))
        values = tuple(dict.fromkeys(value for values in taken[:count] for value in values))
        mine = (v for v in values if key[0] and self.before.keys.get(_name(v)) == key)
        data = tuple(v for v in values if not self.program.is_constant(self.before, v))
        return tuple(dict.fromkeys((*mine, *(data or values))))[:_LIMIT]

    def _sources(self, old: Instruction) -> Iterator[str]:
        """Give the operands; those of slices too, which a concatenation may take in itself."""
        for operand in self.before.operands[old.name]:
            yield operand
            node = self.before.nodes.get(operand)
            if old.opcode == "concatenate" and node is not None and node.opcode == "slice":
                yield self.before.operands[node.name][0]

    def _leaves(self, new: Instruction, key: Key, *, exact: bool) -> bool:
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


_PASSES = 3
_LIMIT = 8
"""A helper that carries more values than this says nothing."""


@lru_cache(4096)
def _shapes(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(shape for _, shape in parse_shape(text))


def _may_be_block(new: Instruction, old: Instruction) -> bool:
    """Whether a result may be a block of another one, in some layout: no dimension is longer."""
    (_, part), (_, full) = new.arrays[0], old.arrays[0]
    return len(part) == len(full) and all(p <= max(f, 1) for p, f in zip(part, full, strict=True))


def _name(value: str) -> str:
    return value.partition("#")[0]


def _is_generated(instruction: Instruction) -> bool:
    return instruction.opcode in COLLECTIVES and is_generated(instruction)


def is_generated(instruction: Instruction) -> bool:
    """Whether the partitioner made an instruction."""
    return 'is_spmd_generated="true"' in instruction.attributes
