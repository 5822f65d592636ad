"""A moved operand and the operation that takes it: which of them could not stay as it was."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardnb.causes.origins import AxisFactors, Demand, Origins
from shardnb.causes.rule_factors import Factors, Split
from shardnb.causes.stated_shardings import is_of_the_compiler
from shardnb.causes.verdict import UNKNOWN, Uneven, Verdict
from shardnb.report.model import Spec
from shardnb.terms.causes import Detail
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ELEMENTWISE, WINDOWS
from shardnb.texts.shardings import Layout
from shardnb.texts.shardy_attributes import Rule

_SUMMED = {
    "convolution": "its contracting dimension",
    "dot": "its contracting dimension",
    "gather": "the dimension that the indices pick from",
}
"""What a dimension is that is in no result, by the operation that takes it."""


@dataclass(frozen=True)
class MovedOperand:
    """An operation `node` with a rule, and its operand `at`, from whose `dims` axes are moved.

    `producer` is that operand as it lay before. `permute` says that blocks change places, so that
    blocks move and nothing is gathered.
    """

    origins: Origins
    graph: Graph
    node: Instruction
    rule: Rule
    at: int
    producer: HloValue
    dims: Sequence[int]
    moved: AxisFactors
    permute: bool = False

    @property
    def _factors(self) -> Factors:
        return self.origins.factors

    @cached_property
    def _operands(self) -> tuple[HloValue, ...]:
        return self.graph.operands[self.node.name]

    @cached_property
    def _splits(self) -> list[Split]:
        return self._factors.operands(self.graph, self.node, self.rule)

    @cached_property
    def _results(self) -> list[Split]:
        return self._factors.results(self.graph, self.node, self.rule)

    @cached_property
    def _here(self) -> frozenset[str]:
        """The factors that the moved axes split in the operand."""
        names = {f for dim in self.dims for f in self.rule.operands[self.at][dim]}
        return frozenset(f for f in names if self.moved & set(self._mine.get(f, ())))

    @cached_property
    def _layout(self) -> Layout | None:
        return self._factors.program.layout(self.graph, self.producer)

    @cached_property
    def _mine(self) -> Split:
        return self._factors.split(self._layout, self.rule.operands[self.at], self.rule)

    @cached_property
    def _lost(self) -> AxisFactors:
        """The parts of axes that the operand loses: a permute may go over others as well.

        Those it is moved to may split another operand, which asks for nothing by that
        (`product_with_its_axes_exchanged`).
        """
        return self.moved & {part for factor in self._here for part in self._mine.get(factor, ())}

    @cached_property
    def _gathered(self) -> Spec:
        return self._factors.without((self._layout and self._layout.spec) or (), self.moved)

    @property
    def is_kept(self) -> bool:
        """Whether the result keeps what the moved axes split, as the operand has it."""
        made = {f for dims in self.rule.results for dim in dims for f in dim}
        return self._here <= made and not self._result_differs()

    def verdict(self) -> Verdict:
        """Return the reason by the kind of the factor: full, permuted, divided, or free."""
        if not self._here or any(self._is_lost(dim) for dim in self.dims):
            return Verdict("whole-axis", needed=self._gathered)
        verdict = self._bound()
        if verdict is not None:
            return verdict
        if self._is_alone:
            return Verdict("whole-axis", detail="no split form", needed=self._gathered)
        return self._free()

    def _bound(self) -> Verdict | None:
        """Judge a factor that the operation needs in full, or takes neighbours' elements along."""
        whole, permuted = (
            self.rule.need_replication & self._here,
            self.rule.permutation & self._here,
        )
        windows = self.node.opcode in WINDOWS
        made_by_compiler = is_of_the_compiler(self.node)
        if self.permute and (whole or permuted or windows):
            # Blocks of rows change places, though the axes shard columns: an all-to-all came before
            # (`running_sum_of_uneven_rows`).
            elsewhere = not (whole or permuted) and bool(self.rule.permutation)
            return Verdict("halo", layout_unknown=elsewhere)
        if windows and not made_by_compiler and (uneven := self._uneven()):
            return Verdict("uneven", needed=self._gathered, uneven=uneven)
        if whole:
            return Verdict("whole-axis", needed=self._gathered)
        if permuted:
            return exchange(self._factors, self.graph, self.node, self._gathered)
        return None

    def _uneven(self) -> Uneven | None:
        """Return a dimension of the result that the axes of the operand do not divide.

        The partitioner keeps the rows of a convolution sharded only if those of its result are
        divisible as well (`conv_to_ten_rows`).
        """
        spec = (self._layout and self._layout.spec) or ()
        for dim in self.dims:
            for at, other in self.rule.below[self.at][dim]:
                axes = (*((),) * other, spec[dim])
                uneven = self._factors.uneven(axes, self.node.arrays[at][1], of_result=True)
                if uneven is not None:
                    return uneven
        return None

    @cached_property
    def _is_alone(self) -> bool:
        """Whether no other array has these factors, and the operation does not sum over them.

        By such rules JAX's linear algebra says that a device needs the matrix in full
        (`singular_values_of_rows`).
        """
        arrays = (*self.rule.results, *self.rule.operands[: self.at])
        arrays += self.rule.operands[self.at + 1 :]
        shared = {name for dims in arrays for dim in dims for name in dim}
        return self._here.isdisjoint(shared | self.rule.reduction)

    def _is_lost(self, dim: int) -> bool:
        """Whether no dimension of a result goes with one; a reshape drops those of size one."""
        names = self.rule.operands[self.at][dim]
        return not names or (
            self.node.opcode == "reshape" and all(self.rule.sizes[name] == 1 for name in names)
        )

    def _is_cut(self) -> bool:
        """Whether a reshape cannot keep one of the dimensions split as it is."""
        return not all(self._fits(factor) for factor in self._here)

    def _fits(self, factor: str) -> bool:
        """Whether a dimension of the result can be sharded along a factor as the operand is.

        The factors before it in that dimension have to be divided into single elements.
        """
        dims = [dim for dim in self.rule.results[0] if factor in dim]
        return self.rule.sizes[factor] % self._count(factor) == 0 and any(
            all(self._count(one) == self.rule.sizes[one] for one in dim[: dim.index(factor)])
            for dim in dims
        )

    def _count(self, factor: str) -> int:
        """Return into how many parts a factor of the operand is divided."""
        return math.prod(size for _, _, size in self._mine.get(factor, ()))

    def _free(self) -> Verdict:
        """Judge a dimension that could have stayed split, had all agreed."""
        if self.node.opcode == "reshape" and self._is_cut():
            return Verdict("reshape", needed=self._gathered)
        for other in self._others:
            if self._wants(other):
                return self._conflict("two dimensions", other)
        unlike = [other for other in self._others if self._differs(other)]
        for other in unlike:
            if self._has_its_own(other):
                return self._conflict("operands disagree", other)
        if self._result_differs() or (self._result_wants() and not unlike):
            verdict = declared(self._declared_at(), self._needed())
            if verdict is not UNKNOWN:
                return verdict
        elif not unlike:
            return self._no_form()
        return self._conflict("operands disagree", unlike[0]) if unlike else UNKNOWN

    def _no_form(self) -> Verdict:
        """Judge what all agree on: element by element there is always a split form."""
        if self.permute or self.node.opcode in ELEMENTWISE:
            return UNKNOWN
        return Verdict("whole-axis", detail="no split form", needed=self._needed())

    def _conflict(self, detail: Detail, other: int) -> Verdict:
        names = (set(self.rule.operands[self.at][dim]) for dim in self.dims)
        summed = all(factors & self.rule.reduction for factors in names)
        return Verdict(
            "conflict",
            detail=detail,
            needed=self._needed(),
            other=(self.graph, self._operands[other]),
            shared=self._shared(other) if detail == "two dimensions" else (),
            role=_SUMMED.get(self.node.opcode, "") if summed else "",
        )

    @cached_property
    def _others(self) -> list[int]:
        """The operands whose placement is their own: no constants, not the same one again.

        An array that is both sides of a product is another operand on the other side.
        """
        program, dims = self._factors.program, self.rule.operands
        same = (self.producer, self._operands[self.at])
        return [
            number
            for number, operand in enumerate(self._operands[: len(dims)])
            if number != self.at
            and (operand not in same or dims[number] != dims[self.at])
            and not program.is_constant(self.graph, operand)
        ]

    def _wants(self, other: int) -> bool:
        """Whether another operand has the same axes on another dimension, and by itself."""
        return any(
            self.origins.grounded(self.graph, self._operands[other], dim, self._lost)
            for dim, names in enumerate(self.rule.operands[other])
            if self._here.isdisjoint(names)
        )

    def _shared(self, other: int) -> tuple[str, ...]:
        """Return which of the axes that are lost shard another dimension of an operand.

        Where samples are sharded over two axes, features may be over one of them
        (`layers_over_two_slices`).
        """
        dims = self.rule.operands[other]
        names = [f for dim in dims if self._here.isdisjoint(dim) for f in dim]
        parts = [p for f in names for p in self._splits[other].get(f, ()) if p in self._lost]
        return self._factors.spec([parts])[0]

    def _has_its_own(self, other: int) -> bool:
        """Whether another operand is sharded along the factors by itself.

        What is repeated along them has it from what takes it (`scaled_for_a_constraint`).
        """
        dims = self.rule.operands[other]
        parts = frozenset(p for f in self._here for p in self._splits[other].get(f, ()))
        return any(
            self.origins.grounded(self.graph, self._operands[other], dim, parts)
            for dim, names in enumerate(dims)
            if not self._here.isdisjoint(names)
        )

    def _differs(self, other: int) -> bool:
        """Whether an operand that shares the factors is sharded along them in another way."""
        split, names = self._splits[other], {f for dim in self.rule.operands[other] for f in dim}
        return any(f in names and split.get(f, ()) != self._mine.get(f, ()) for f in self._here)

    def _result_differs(self) -> bool:
        return any(
            split.get(factor, ()) != self._mine.get(factor, ())
            for split, dims in zip(self._results, self.rule.results, strict=False)
            for factor in self._here
            if any(factor in dim for dim in dims)
        )

    def _result_wants(self) -> bool:
        """Whether a result has the same axes on another dimension.

        Those that a permute goes over as well it may have there (`rows_of_a_table_added`).
        """
        return any(
            self._lost & set(parts)
            for split in self._results
            for factor, parts in split.items()
            if factor not in self._here
        )

    def _declared_at(self) -> Declared:
        asked = (self.origins, self.graph, self.node, self.rule, self._here, self.moved)
        return Declared(*asked, self._lost)

    def _needed(self) -> Spec | None:
        """Return the needed sharding: that of the result and the other operands.

        None where they want an axis along two dimensions, which no array can have: another axis is
        moved by a collective of its own then (`test_a_needed_spec_uses_an_axis_once`).
        """
        wanted: Split = {}
        others = (split for number, split in enumerate(self._splits) if number != self.at)
        for split in (*self._results, *others):
            for factor, parts in split.items():
                wanted.setdefault(factor, parts)
        kept = {f: parts for f, parts in self._mine.items() if f not in self._here}
        dims = [
            [part for f in dim for part in wanted.get(f, kept.get(f, ()))]
            for dim in self.rule.operands[self.at]
        ]
        every = [part for dim in dims for part in dim]
        return self._factors.spec(dims) if len(set(every)) == len(every) else None


@dataclass(frozen=True)
class Declared:
    """The results of an operation whose declared placement asks for axes, or for none, `here`.

    `lost` are the parts of the moved axes that split what is moved; a permute goes over others too.
    """

    origins: Origins
    graph: Graph
    node: Instruction
    rule: Rule
    here: frozenset[str]
    moved: AxisFactors
    lost: AxisFactors


def declared(asked: Declared, needed: Spec | None) -> Verdict:
    """Judge what only the declared result asks for: find what declared it."""
    results = asked.origins.factors.results(asked.graph, asked.node, asked.rule)
    returned: Detail | None = None
    for value, dims, split in zip(asked.node.results, asked.rule.results, results, strict=False):
        for dim, names in enumerate(dims):
            taken = any(asked.moved & set(split.get(name, ())) for name in names)
            if not taken and asked.here.isdisjoint(names):
                continue
            origin = asked.origins.of(asked.graph, value, dim, asked.moved, split=taken)
            if origin is not None and origin.asked_by == "requested":
                return Verdict(
                    "output-spec", "requested", "elsewhere", needed, stated=origin.stated
                )
            if origin is not None and not origin.returned:
                other = None if origin.asked_by else (origin.graph, origin.value)
                detail: Detail = _detail(asked, origin) if other else "elsewhere"
                return Verdict(
                    "conflict", "inferred", detail, needed, other=other, met_by=origin.met_by
                )
            # Another dimension may tell more than that a loop carries the result as it is.
            returned = returned or (origin.returned if origin is not None else None)
    return Verdict("conflict", detail=returned, needed=needed) if returned else UNKNOWN


def _detail(asked: Declared, origin: Demand) -> Detail:
    """Say whether an array has the axes that are lost along another dimension, or others here."""
    layout = asked.origins.factors.program.layout(origin.graph, origin.value)
    spec = (layout.spec if layout is not None else None) or ()
    lost = asked.origins.factors.dims(spec, asked.lost)
    return "two dimensions" if lost else "operands disagree"


def clash(asked: Declared, needed: Spec | None) -> Verdict:
    """Judge a result that could not be computed where it is declared: two operands want its axes.

    One has them along a dimension of the result, another one along a factor of its own.
    """
    factors, graph, node = asked.origins.factors, asked.graph, asked.node
    made = {name for dims in asked.rule.results for dim in dims for name in dim}
    splits = factors.operands(graph, node, asked.rule)
    kept = [asked.moved & _parts(split, made) for split in splits]
    for at, dims in enumerate(asked.rule.operands):
        wanted = frozenset(part for one, parts in enumerate(kept) if one != at for part in parts)
        operand = graph.operands[node.name][at]
        own = (dim for dim, names in enumerate(dims) if made.isdisjoint(names))
        if wanted and any(asked.origins.grounded(graph, operand, dim, wanted) for dim in own):
            return Verdict(
                "conflict", detail="two dimensions", needed=needed, other=(graph, operand)
            )
    return UNKNOWN


def _parts(split: Split, names: Collection[str]) -> AxisFactors:
    return frozenset(part for name in names for part in split.get(name, ()))


def exchange(factors: Factors, graph: Graph, node: Instruction, needed: Spec | None) -> Verdict:
    """Judge what neighbouring devices would send, had the partitioner not gathered it.

    The sizes of what the compiler made itself are not the program's.
    """
    if node.opcode == "concatenate" or is_of_the_compiler(node):
        return Verdict("whole-axis", needed=needed)
    for value, (_, shape) in zip(node.results, node.arrays, strict=False):
        layout = factors.program.layout(graph, value)
        if layout is not None and not layout.divides(shape):
            uneven = factors.uneven(layout.spec or (), shape, of_result=True)
            return Verdict("uneven", needed=needed, uneven=uneven)
    return Verdict("whole-axis", needed=needed)
