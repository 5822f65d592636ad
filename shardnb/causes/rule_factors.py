"""How the arrays of an operation are sharded, by the factors of its rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import Uneven
from shardnb.report.model import Spec
from shardnb.texts.axis_factors import Piece, merged, pieces_of
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import Instruction
from shardnb.texts.sharding_rules import AMBIGUOUS, Rules
from shardnb.texts.shardings import Layout
from shardnb.texts.shardy_attributes import Rule

Split = dict[str, tuple[Piece, ...]]
"""For each factor the parts of axes that split it, major first."""


@dataclass
class Factors:
    """Looks up rules, and reads layouts by them."""

    program: Unpartitioned
    rules: Rules
    _rules: dict[tuple[str, str], Rule | None] = field(default_factory=dict)
    _pieces: dict[tuple[str, ...], tuple[Piece, ...]] = field(default_factory=dict)
    _split_by: dict[Spec, tuple[frozenset[Piece], ...]] = field(default_factory=dict)

    def rule(self, graph: Graph, node: Instruction) -> Rule | None:
        """Return the rule of an instruction; see `Rules.of`."""
        key = graph.name, node.name
        if key not in self._rules:
            arrays = [graph.array(operand) for operand in graph.operands[node.name]]
            shapes = tuple(array[1] for array in arrays if array is not None)
            known = len(shapes) == len(arrays)
            self._rules[key] = self.rules.of(node, shapes) if known else None
        return self._rules[key]

    def known(self, graph: Graph, node: Instruction) -> Rule | None:
        """Return the rule of an instruction where there is exactly one."""
        rule = self.rule(graph, node)
        return None if rule is AMBIGUOUS else rule

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return self.program.reader.mesh.shape

    def pieces(self, axes: tuple[str, ...]) -> tuple[Piece, ...]:
        """Divide axes into parts that cannot be divided further."""
        if axes not in self._pieces:
            self._pieces[axes] = tuple(pieces_of(axes, self._sizes))
        return self._pieces[axes]

    def split_by(self, spec: Spec) -> tuple[frozenset[Piece], ...]:
        """Return the parts of axes that split each dimension."""
        if spec not in self._split_by:
            self._split_by[spec] = tuple(frozenset(self.pieces(axes)) for axes in spec)
        return self._split_by[spec]

    def dims(self, spec: Spec, moved: frozenset[Piece]) -> list[int]:
        """Return the dimensions that any of these parts split."""
        return [dim for dim, parts in enumerate(self.split_by(spec)) if moved & parts]

    def spec(self, dims: Iterable[Iterable[Piece]]) -> Spec:
        """Write the parts that split each dimension as mesh axes."""
        return tuple(merged(parts, self._sizes) for parts in dims)

    def without(self, spec: Spec, moved: frozenset[Piece]) -> Spec:
        """Return a spec less some parts of axes."""
        return self.spec([p for p in self.pieces(axes) if p not in moved] for axes in spec)

    def uneven(
        self, spec: Spec, shape: tuple[int, ...], *, of_result: bool = False
    ) -> Uneven | None:
        """Return the first dimension whose size is not divisible by the devices along its axes.

        These are complete axes, also where the compiler left a part of one on the dimension.
        """
        for dim, (size, parts) in enumerate(zip(shape, spec, strict=False)):
            axes = tuple(dict.fromkeys(axis.partition(":")[0] for axis in parts))
            devices = math.prod(self._sizes[axis] for axis in axes)
            if size % devices:
                return Uneven(dim, size, devices, axes, of_result)
        return None

    def operands(self, graph: Graph, node: Instruction, rule: Rule) -> list[Split]:
        """Return the split of each operand."""
        return [
            self.split(self.program.layout(graph, operand), dims, rule)
            for operand, dims in zip(graph.operands[node.name], rule.operands, strict=False)
        ]

    def results(self, graph: Graph, node: Instruction, rule: Rule) -> list[Split]:
        """Return the split of each result."""
        return [
            self.split(self.program.layout(graph, value), dims, rule)
            for value, dims in zip(node.results, rule.results, strict=False)
        ]

    def split(self, layout: Layout | None, dims: tuple[tuple[str, ...], ...], rule: Rule) -> Split:
        """Return for each factor the parts of axes that split it in an array."""
        split: Split = {}
        if layout is None or layout.spec is None:
            return split
        for factors, axes in zip(dims, layout.spec, strict=False):
            parts = iter(self.pieces(axes))
            for number, factor in enumerate(factors):
                last = number == len(factors) - 1
                split[factor] = tuple(parts) if last else tuple(_take(parts, rule.sizes[factor]))
        return split


def _take(parts: Iterator[Piece], size: int) -> Iterator[Piece]:
    """Take parts of axes until they cut a factor of this size into single elements."""
    product = 1
    while product < size:
        part = next(parts, None)
        if part is None:
            return
        product *= part[2]
        yield part
