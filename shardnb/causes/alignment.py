"""Which value of the program before partitioning each value after it stands for.

The partitioner visits the instructions one by one and writes for each one or several new ones.
What it writes keeps the key (op_name and stack frame) of the instruction, or of the value that is
moved for it. So a new instruction of the same kind and key that takes the same values *is* the old
one; others are helpers, which carry values along. Keys repeat, so several old instructions may fit:
then the one that nothing stands for yet comes first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.instruction_index import Index, Values
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.collectives.find import is_generated
from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction, Key
from shardnb.texts.opcodes import STEPS, TUPLES

_VIEWS = ("broadcast", "convert", "reshape", "transpose")
"""Neighbours send no edges for one that starts with these (`rows_by_split_indices`)."""

_LIMIT = 8
"""A helper that carries more values than this says nothing; `cumsum_scan` has more than two."""

_STEM = re.compile(r"(?:\.clone)?(?:\.\d+)?$")
_RANGE = re.compile(r"\[(\d+:\d+(?::\d+)?)\]")
_CLONE = re.compile(r"\.clone(?:\.\d+)?$")


@dataclass
class Alignment:
    """What the values of one computation after partitioning are, in the one before.

    `carries` gives for each instruction the values before that it is, or holds a part of.
    `stands_for` says which instruction before it stands for; those in `exact` have their declared
    sharding.
    """

    index: Index
    after: Graph
    carries: dict[str, Values] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)

    @property
    def program(self) -> Unpartitioned:
        """The program before."""
        return self.index.program

    @property
    def before(self) -> Graph:
        """The computation before."""
        return self.index.graph

    @cached_property
    def standing(self) -> frozenset[str]:
        """The instructions before that something after stands for."""
        return frozenset(self.stands_for.values())

    def named(self, value: HloValue, key: Key) -> HloValue | None:
        """Return the instruction of a key that computes a value, which may keep another's key."""
        number = self.index.number(HloValue(value.name))
        for old in self.index.by_key.get(key, ()):
            if self.index.number(old.value) == number:
                return old.value.at(*value.element)
        return None

    def shard_shape(self, value: HloValue) -> tuple[int, ...] | None:
        """Return the shape of the declared block of a value before."""
        array, layout = self.before.array(value), self.program.layout(self.before, value)
        return layout.shard_shape(array[1]) if array and layout else None

    def values(self, value: HloValue) -> Values:
        """Return the values before that a value after carries."""
        carried = self.carries.get(value.name, ())
        if not value.element or value.name not in self.stands_for:
            return carried
        return tuple(self.before.resolve(one.at(*value.element)) for one in carried)


def align(program: Unpartitioned, before: Graph, after: Graph) -> Alignment:
    """Align a computation after partitioning with the one before."""
    return _Aligner(Index(program, before), after).run()


class _Fit(NamedTuple):
    """How well a new instruction fits an old one: operands that agree, then the declared shape."""

    agree: int
    exact: bool
    old: Instruction


class _Aligner:
    def __init__(self, index: Index, after: Graph) -> None:
        self.index, self.after = index, after
        self.program, self.before = index.program, index.graph
        self.found = Alignment(index, after)
        self.claimed: set[str] = set()

    def run(self) -> Alignment:
        for number, value in self.after.parameters.items():
            if number in self.before.parameters:
                self._set(value.name, (self.before.parameters[number],), exact=True)
        for instruction in self.after.body:
            if instruction.opcode == "constant":
                self._constant(instruction)
            elif instruction.opcode not in TUPLES and instruction.opcode != "parameter":
                self._place(instruction)
        return self.found

    def _set(self, name: str, values: Values, *, exact: bool, taken: Sequence[Values] = ()) -> None:
        self.found.carries[name] = values
        sliced = self.after.nodes[name].opcode == "slice"
        if exact and taken and (sliced or self._is_unnamed_copy(values[0])):
            # A slice that is also a step to another one was merged with it, and so was the part of
            # a parameter that a loop takes and its update too (`features_over_the_batch_axis`).
            self.found.carries[name] += taken[0]
        self.found.stands_for[name] = values[0].name
        self.claimed.add(values[0].name)
        if exact:
            self.found.exact.add(name)

    def _is_unnamed_copy(self, value: HloValue) -> bool:
        """Whether a value is a copy that the compiler made, with the name of what it copies."""
        node = self.before.node(value)
        if node.opcode != "copy":
            return False
        return self.before.node(self.before.operands[node.name][0]).op_name == node.op_name

    def _constant(self, new: Instruction) -> None:
        """A constant keeps its name, followed by `.clone`."""
        old = self.before.nodes.get(_CLONE.sub("", new.name))
        if old is not None and old.opcode == "constant" and old.operand_text == new.operand_text:
            self._set(new.name, (old.value,), exact=True)

    def _place(self, new: Instruction) -> None:
        taken = [self.found.values(operand) for operand in self.after.operands[new.name]]
        key = new.key
        fits = [] if _is_moved(new) or not key[0] else self._fits(new, taken, key)
        if fits:
            values = self._ordered([fit.old for fit in fits])
            self._set(new.name, values, exact=fits[0].exact, taken=taken)
            return
        carried = self._carried(new, taken)
        self.found.carries[new.name] = carried
        if kind_of(new.opcode) is None and key[0]:
            self._last_step(new, key, carried)

    def _last_step(self, new: Instruction, key: Key, carried: Values) -> None:
        """Let the last step of a key stand for what left no instruction of its kind."""
        fed = [old for old in self.index.fed(key, carried) if old.value not in carried]
        fed = [old for old in fed if self._is_shard(new, old)]
        if fed and self._leaves(new, key):
            self._set(new.name, self._ordered(fed), exact=True, taken=(carried,))

    def _ordered(self, olds: list[Instruction]) -> Values:
        """Put first what no other instruction stands for."""
        ordered = sorted(dict.fromkeys(olds), key=lambda old: old.name in self.claimed)
        return tuple(old.value for old in ordered)

    def _fits(self, new: Instruction, taken: list[Values], key: Key) -> list[_Fit]:
        """Return the instructions of the same kind that take the same values, best ones only."""
        if new.opcode == "scan":
            return self._running(new, taken, key)
        fits = []
        for old, agree in self.index.taking(key, new.opcode, taken):
            exact = self._is_shard(new, old)
            if self._trusted(new, old, exact=exact) and self._takes_the_same(new, old):
                fits.append(_Fit(agree, exact, old))
        if not fits:
            return self._only(new, key, taken)
        best = max(fit[:2] for fit in fits)
        return [fit for fit in fits if fit[:2] == best]

    def _running(self, new: Instruction, taken: list[Values], key: Key) -> list[_Fit]:
        """Fit what sums up a device's block of the same values, from the blocks before it on.

        What it begins with is another value than before. The other scans of its name are steps:
        of a block without its first element, and of the blocks' totals (`returns_over_the_last`).
        """
        olds = (one for one in self.index.of_kind(key, new.opcode) if self._is_shard(new, one))
        fits = (one for one in olds if self.before.operands[one.name][0] in taken[0])
        return [_Fit(1, exact=True, old=one) for one in fits]

    def _only(self, new: Instruction, key: Key, taken: list[Values]) -> list[_Fit]:
        """Fit a copy whose operands were lost on the way, where only one can be meant."""
        olds = self.index.of_kind(key, new.opcode)
        if len(olds) > _LIMIT:
            return []
        stem = _STEM.sub("", new.name)
        named = (old for old in olds if stem in (_STEM.sub("", old.name), old.opcode))
        left = [old for old in named if old.name not in self.claimed]
        if new.opcode == "concatenate" and len(left) > 1:
            left = [old for old in left if self._joins_slices_of(new, old, taken)][:1]
        if len(left) != 1 or len(self.before.operands[left[0].name]) != len(taken):
            return []
        exact = self._is_shard(new, left[0])
        return [_Fit(0, exact, left[0])] if self._trusted(new, left[0], exact=exact) else []

    def _joins_slices_of(self, new: Instruction, old: Instruction, taken: list[Values]) -> bool:
        """Whether two concatenations join, along the same dimension, slices of the same values.

        All shifts of a loop in Python have one name and line (`shifts_along_all_dimensions`).
        """
        held = {self.index.number(value) for values in taken for value in values}
        sources = (self.before.source(one, ("slice",)) for one in self.before.operands[old.name])
        along = new.attribute("dimensions") == old.attribute("dimensions")
        return along and held.issuperset(map(self.index.number, sources))

    def _trusted(self, new: Instruction, old: Instruction, *, exact: bool) -> bool:
        if old.opcode not in STEPS:
            return True
        if len(self.before.operands[old.name]) > 1 and old.opcode in ("concatenate", "select"):
            return True
        if exact and old.opcode in _VIEWS:
            return True
        if exact:
            return not self._is_step(new, old)
        if old.opcode in ("dynamic-update-slice", "slice"):
            return self._is_in_operands_layout(new, old)
        return old.opcode == "reshape" and self._is_other_block(new, old)

    def _is_in_operands_layout(self, new: Instruction, old: Instruction) -> bool:
        """Whether an instruction computes in its operand's layout what is moved afterwards.

        So it is with a cache that is updated and then constrained (`updated_cache`). A slice takes
        the same elements along each dimension that it cuts.
        """
        operand = self.before.operands[old.name][0]
        layout, array = self.program.layout(self.before, operand), self.before.array(operand)
        if layout is None or array is None or new.shapes != (layout.shard_shape(old.shapes[0]),):
            return False
        taken = [re.findall(r"\[[\d:]+\]", one.attribute("slice") or "") for one in (new, old)]
        cuts = zip(*taken, old.shapes[0], array[1], strict=False)
        return all(part == full for part, full, size, whole in cuts if size != whole)

    def _is_step(self, new: Instruction, old: Instruction) -> bool:
        """Whether a slice is only taken for its own key, which the old one is not."""
        if old.opcode != "slice":
            return False
        taken = (user.key == new.key for user in self.before.users.get(old.value, ()))
        return not self._leaves(new, new.key) and not any(taken)

    def _takes_the_same(self, new: Instruction, old: Instruction) -> bool:
        """Whether two slices take the same elements of each dimension that is not sharded.

        All parts of a split have one name (`keys_of_a_split`).
        """
        if new.opcode != "slice":
            return True
        part = self.after.array(self.after.operands[new.name][0])
        full = self.before.array(self.before.operands[old.name][0])
        taken, wanted = _RANGE.findall(new.attributes), _RANGE.findall(old.attributes)
        if part is None or full is None or len(part[1]) != len(full[1]):
            return True
        sizes = zip(taken, wanted, part[1], full[1], strict=False)
        return all(one == other for one, other, here, whole in sizes if here == whole)

    def _is_other_block(self, new: Instruction, old: Instruction) -> bool:
        """Whether a reshape gives a block of the old one's result in another layout."""
        (_, part), (_, full) = new.arrays[0], old.arrays[0]
        if len(part) != len(full) or any(f % p for f, p in zip(full, part, strict=True) if p):
            return False
        return not self._enters_all_to_all(new)

    def _is_shard(self, new: Instruction, old: Instruction) -> bool:
        return self.program.shard_shapes(old) == new.shapes

    def _carried(self, new: Instruction, taken: list[Values]) -> Values:
        if new.opcode == "select":
            taken = taken[1:]
        values = dict.fromkeys(value for values in taken for value in values)
        data = [v for v in values if not self.program.is_constant(self.before, v)]
        return tuple(data or values)[:_LIMIT]

    def _leaves(self, new: Instruction, key: Key) -> bool:
        """Whether a value goes on to another operation, or out of the computation.

        TPU writes a concatenation as the maximum of pads, all under its name: each pad ends
        where the maximum takes it (`running_maximum_by_halves`). A collective that moves the value
        has its name too: the operation that takes it then says (`keys_of_a_split`).
        """
        return new.is_root or any(
            self._leaves(user, key)
            if user.key == key and _is_moved(user)
            else user.key != key or self._computes(user)
            for user in self.after.users.get(new.value, ())
        )

    def _computes(self, new: Instruction) -> bool:
        """Whether an instruction is not a step, and of a kind that its name had before."""
        return new.opcode not in STEPS and bool(self.index.of_kind(new.key, new.opcode))

    def _enters_all_to_all(self, new: Instruction) -> bool:
        return any(user.opcode == "all-to-all" for user in self.after.users.get(new.value, ()))


def _is_moved(new: Instruction) -> bool:
    """Whether the partitioner moves a value."""
    return kind_of(new.opcode) is not None and is_generated(new)
