"""Why a collective is there: producer, consumer and Shardy's rule, held against each other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from shardnb.analysis.causes.edges import Edges, primitive
from shardnb.analysis.causes.graph import Graph
from shardnb.analysis.causes.layouts import Layout, Piece, merged, pieces_of
from shardnb.analysis.causes.program import Before
from shardnb.analysis.causes.rules import AMBIGUOUS, ELEMENTWISE, Rule, Rules
from shardnb.analysis.causes.verdict import (
    CARRY,
    DISAGREE,
    ELSEWHERE,
    NO_FORM,
    TWO_DIMS,
    UNKNOWN,
    Verdict,
)
from shardnb.analysis.causes.walk import Move
from shardnb.compiler.hlo import Instruction
from shardnb.report.model import AskedBy, Spec

Split = dict[str, tuple[Piece, ...]]
"""For each factor the parts of axes that split it, major first."""

_WINDOWS = frozenset(("convolution", "reduce-window", "select-and-scatter"))
_NO_SPLIT_FORM = frozenset("custom-call sort topk rng rng-bit-generator triangular-solve cholesky fft".split())


@dataclass
class Judge:
    """Judges the moves of one program."""

    program: Before
    rules: Rules
    edges: Edges

    def judge(
        self, move: Move, axes: tuple[str, ...] | None, permuted: tuple[str, ...] = ()
    ) -> Verdict:
        """Give the reason of a move over these mesh axes; `UNKNOWN` where it does not fit.

        `permuted` are the axes of a permute that brought the blocks into another order before.
        """
        if axes is None or move.producer is None:
            return UNKNOWN
        shape = self.program.reader.mesh.shape
        moved = frozenset(pieces_of(axes, shape))
        layout = self.program.layout(move.graph, move.producer)
        if permuted and layout is not None and not self._dims(layout.spec or (), moved):
            moved = frozenset(pieces_of(permuted, shape))
        if move.again:
            return self._partial(move, moved)
        if move.collective.opcode in ("all-reduce", "reduce-scatter"):
            return self._partial(move, moved) if move.own else UNKNOWN
        verdict = self._reshard(move, moved)
        if layout is None or layout.spec is None or verdict is UNKNOWN:
            return verdict
        spec = verdict.actual or layout.spec
        return replace(verdict, dims=tuple(self._dims(spec, moved)))

    def _reshard(self, move: Move, moved: frozenset[Piece]) -> Verdict:
        if not self._is_block(move):
            return UNKNOWN
        if move.variant:
            return self._moved_result(move, moved)
        if move.result is not None:
            return self._result(move, moved)
        return self._operand(move, moved) if move.consumer else UNKNOWN

    def _is_block(self, move: Move) -> bool:
        """Whether what is sent can be a block of the producer: one of its size, or a part of it."""
        array = move.graph.array(move.producer or "")
        layout = self.program.layout(move.graph, move.producer or "")
        if array is None or layout is None or move.sent is None or move.variant:
            return array is not None
        size, whole = math.prod(move.sent), math.prod(layout.shard_shape(array[1]))
        steps = (move.collective, *move.chain)
        permuted = any(step.opcode == "collective-permute" for step in steps)
        return size <= whole if permuted else size == whole

    # Partial sums

    def _partial(self, move: Move, moved: frozenset[Piece]) -> Verdict:
        node = move.graph.nodes[move.consumer or ""]
        rule = self._rule(move.graph, node)
        if rule is None or rule is AMBIGUOUS:
            return UNKNOWN
        summed = rule.reductions or _lost(rule)
        found: set[Piece] = set()
        for split in self._operand_splits(move.graph, node, rule):
            found |= {piece for factor in summed for piece in split.get(factor, ())}
        if not moved <= found:
            return UNKNOWN
        return Verdict("partial-sum", self.edges.asked_for_sum(node))

    # An operand that is moved for its consumer

    def _operand(self, move: Move, moved: frozenset[Piece]) -> Verdict:
        graph, producer = move.graph, move.producer or ""
        node = graph.nodes[move.consumer or ""]
        layout = self.program.layout(graph, producer)
        if layout is None or layout.spec is None:
            return UNKNOWN
        if self.edges.is_edge(graph, node):
            return self._at_edge(graph, node, layout, moved)
        if node.opcode == "while":
            return self._into_loop(graph, node, producer)
        at = self._taken_at(graph, node, producer)
        if not at:
            return UNKNOWN
        rule = self._rule(graph, node)
        dims = self._dims(layout.spec, moved)
        if rule is AMBIGUOUS:
            return UNKNOWN
        if rule is None:
            return self._without_rule(node, layout, moved, dims)
        if not dims:
            return UNKNOWN
        return self._by_rule(move, node, rule, at[0], layout, moved, dims)

    def _into_loop(self, graph: Graph, node: Instruction, producer: str) -> Verdict:
        """Judge what a loop carries in another placement: whether a constraint inside says so."""
        operands = graph.operands[node.name]
        inner = self.program.inside(node, operands.index(producer)) if producer in operands else None
        if inner is None:
            return UNKNOWN
        layout = self.program.layout(*inner)
        needed = layout.spec if layout else None
        origin = self.edges.origin(*inner)
        if origin is not None and origin.stated:
            return Verdict("output-spec", "requested", CARRY, needed)
        return Verdict("conflict", detail=CARRY, needed=needed)

    def _taken_at(self, graph: Graph, node: Instruction, producer: str) -> list[int]:
        """Give the operands that are the producer, or a piece of it."""
        numbers = self.program.numbers(graph)
        wanted = numbers.get(producer, producer)
        return [
            at
            for at, operand in enumerate(graph.operands[node.name])
            if wanted in (numbers.get(o, o) for o in graph.whole_of(operand))
        ]

    def _without_rule(
        self, node: Instruction, layout: Layout, moved: frozenset[Piece], dims: list[int]
    ) -> Verdict:
        if not dims or layout.spec is None or node.opcode not in _NO_SPLIT_FORM:
            return UNKNOWN
        return Verdict("whole-axis", needed=self._without(layout.spec, moved))

    def _by_rule(
        self,
        move: Move,
        node: Instruction,
        rule: Rule,
        at: int,
        layout: Layout,
        moved: frozenset[Piece],
        dims: list[int],
    ) -> Verdict:
        graph = move.graph
        needed = self._without(layout.spec or (), moved)
        splits = list(self._operand_splits(graph, node, rule))
        mine = splits[at]
        here = [f for d in dims for f in rule.operands[at][d] if moved & set(mine.get(f, ()))]
        if not here or any(not rule.operands[at][d] for d in dims):
            return Verdict("whole-axis", needed=needed)
        bound = rule.whole | rule.exchanges
        permute = move.collective.opcode == "collective-permute"
        if permute and (bound & set(here) or node.opcode in _WINDOWS):
            return Verdict("halo")
        if rule.whole & set(here):
            return Verdict("whole-axis", needed=needed)
        if rule.exchanges & set(here):
            return self._exchange(move, node, needed)
        if node.opcode == "reshape" and any(len(rule.operands[at][d]) > 1 or self._joined(rule, f)
                                            for d in dims for f in rule.operands[at][d]):
            return Verdict("reshape", needed=needed)
        return self._compare(move, node, rule, at, here, splits, moved)

    @staticmethod
    def _joined(rule: Rule, factor: str) -> bool:
        return any(factor in dim and len(dim) > 1 for dims in rule.results for dim in dims)

    def _exchange(self, move: Move, node: Instruction, needed: Spec) -> Verdict:
        if node.opcode != "concatenate" and not all(self._divides(move.graph, node)):
            return Verdict("uneven", needed=needed)
        return Verdict("whole-axis", needed=needed)

    def _divides(self, graph: Graph, node: Instruction) -> Iterator[bool]:
        for index, (_, shape) in enumerate(node.arrays):
            value = f"{node.name}#{index}" if node.is_tuple else node.name
            layout = self.program.layout(graph, value)
            yield layout is None or layout.divides(shape)

    def _compare(
        self,
        move: Move,
        node: Instruction,
        rule: Rule,
        at: int,
        here: list[str],
        splits: list[Split],
        moved: frozenset[Piece],
    ) -> Verdict:
        graph = move.graph
        operands = graph.operands[node.name]
        results = list(self._result_splits(graph, node, rule))
        mine = splits[at]
        others = [
            (operands[i], rule.operands[i], split)
            for i, split in enumerate(splits)
            if i != at and self._stands_alone(graph, operands[i], move.producer or "")
        ]
        needed = self._needed(graph, rule, at, splits, results, mine, here, operands)
        summed = frozenset(
            d for d, factors in enumerate(rule.operands[at]) if set(factors) & rule.reductions
        )
        for other, _, split in others:
            if any(moved & set(parts) for f, parts in split.items() if f not in here):
                return Verdict("conflict", "inferred", TWO_DIMS, needed, other=other, summed=summed)
        for other, dims, split in others:
            names = {f for dim in dims for f in dim}
            if any(f in names and split.get(f, ()) != mine.get(f, ()) for f in here):
                return Verdict("conflict", "inferred", DISAGREE, needed, other=other, summed=summed)
        if all(split.get(f, ()) == mine.get(f, ()) for f in here for split in results if self._has(rule, f)):
            if node.opcode in ELEMENTWISE or move.collective.opcode == "collective-permute":
                return UNKNOWN
            return Verdict("whole-axis", detail=NO_FORM, needed=needed)
        return self._elsewhere(move, self._first_result(node), needed)

    @staticmethod
    def _first_result(node: Instruction) -> str:
        return f"{node.name}#0" if node.is_tuple else node.name

    @staticmethod
    def _has(rule: Rule, factor: str) -> bool:
        return any(factor in dim for dims in rule.results for dim in dims)

    def _stands_alone(self, graph: Graph, operand: str, producer: str) -> bool:
        """Whether an operand's placement is its own: no constant, and not made of the producer."""
        return not self.program.is_constant(graph, operand) and operand != producer

    def _needed(self, graph, rule, at, splits, results, mine, here, operands) -> Spec | None:  # type: ignore[no-untyped-def]
        wanted: dict[str, tuple[Piece, ...]] = {}
        for i, split in enumerate([*splits, *results]):
            if i == at:
                continue
            for factor, parts in split.items():
                wanted.setdefault(factor, parts)
        dims = rule.operands[at]
        shape = self.program.reader.mesh.shape
        spec = tuple(
            merged([p for f in dim for p in wanted.get(f, () if f in here else mine.get(f, ()))], shape)
            for dim in dims
        )
        return spec

    # Results that are moved

    def _elsewhere(self, move: Move, value: str, needed: Spec | None) -> Verdict:
        """Judge what only the declared result asks for: find what declared it."""
        origin = self.edges.origin(move.graph, value)
        if origin is None:
            return UNKNOWN
        if origin.stated:
            return Verdict("output-spec", "requested", ELSEWHERE, needed)
        return Verdict("conflict", detail=ELSEWHERE, needed=needed)

    def _moved_result(self, move: Move, moved: frozenset[Piece]) -> Verdict:
        """Judge a result that was computed in its operands' layout and then moved."""
        graph, producer = move.graph, move.producer or ""
        node = graph.node(producer)
        layout = self.program.layout(graph, producer)
        rule = self._rule(graph, node)
        if rule is AMBIGUOUS or layout is None:
            return UNKNOWN
        if rule is None:
            known = node.opcode in _NO_SPLIT_FORM
            return Verdict("whole-axis", needed=layout.spec, own=True) if known else UNKNOWN
        splits = [
            *self._operand_splits(graph, node, rule),
            *self._result_splits(graph, node, rule),
        ]
        found = {f for split in splits for f, parts in split.items() if moved & set(parts)}
        if not found:
            return UNKNOWN
        actual = self._actual(graph, producer, rule)
        verdict = self._own_verdict(move, node, rule, found, layout.spec)
        return replace(verdict, actual=actual) if verdict is not UNKNOWN else verdict

    def _own_verdict(
        self, move: Move, node: Instruction, rule: Rule, found: set[str], needed: Spec | None
    ) -> Verdict:
        if move.collective.opcode == "collective-permute" and (rule.whole | rule.exchanges) & found:
            return Verdict("halo", own=True)
        if found & rule.whole:
            return Verdict("whole-axis", needed=needed, own=True)
        if found & rule.exchanges:
            return replace(self._exchange(move, node, needed or ()), own=True)
        return self._elsewhere(move, move.producer or "", needed)

    def _actual(self, graph: Graph, producer: str, rule: Rule) -> Spec | None:
        """Give the layout that the operands of an instruction lend to its result."""
        node = graph.node(producer)
        lent: Split = {}
        for split in self._operand_splits(graph, node, rule):
            for factor, parts in split.items():
                lent[factor] = lent.get(factor) or parts
        element = producer.partition("#")[2]
        dims = rule.results[int(element) if element else 0]
        shape = self.program.reader.mesh.shape
        return tuple(merged([p for f in dim for p in lent.get(f, ())], shape) for dim in dims)

    def _result(self, move: Move, moved: frozenset[Piece]) -> Verdict:
        graph = move.graph
        layout = self.program.layout(graph, move.producer or "")
        if layout is None or layout.spec is None:
            return UNKNOWN
        if graph.name != self.program.module.entry:
            return Verdict("conflict", detail=CARRY)
        if not self._dims(layout.spec, moved):
            return UNKNOWN
        needed = self._without(layout.spec, moved)
        if self.edges.is_stated_result(move.result or 0):
            return self._as_stated(self.edges.result_asked_by, needed)
        array = graph.array(move.producer or "")
        if array and not layout.divides(array[1]):
            return Verdict("uneven", needed=needed)
        if any(":(" in axis for dim in layout.spec for axis in dim):
            return Verdict("reshape", needed=needed)
        return UNKNOWN

    def _at_edge(
        self, graph: Graph, node: Instruction, layout: Layout, moved: frozenset[Piece]
    ) -> Verdict:
        wanted = self.program.layout(graph, node.name)
        if wanted is None or wanted.spec is None or wanted.spec == layout.spec:
            return UNKNOWN
        return self._as_stated(self.edges.asked_by(node), wanted.spec)

    @staticmethod
    def _as_stated(asked_by: AskedBy, needed: Spec) -> Verdict:
        """Judge what a placement asks for that the user stated, or JAX for an Explicit type."""
        if asked_by == "requested":
            return Verdict("output-spec", "requested", needed=needed)
        return Verdict("conflict", detail=ELSEWHERE, needed=needed)

    # Helpers

    def _rule(self, graph: Graph, node: Instruction) -> Rule | None:
        shapes = []
        for operand in graph.operands[node.name]:
            array = graph.array(operand)
            if array is None:
                return None
            shapes.append(array[1])
        return self.rules.of(node, tuple(shapes))

    def _operand_splits(self, graph: Graph, node: Instruction, rule: Rule) -> Iterator[Split]:
        for operand, dims in zip(graph.operands[node.name], rule.operands, strict=False):
            yield self._split(self.program.layout(graph, operand), dims, rule)

    def _result_splits(self, graph: Graph, node: Instruction, rule: Rule) -> Iterator[Split]:
        for index, dims in enumerate(rule.results):
            value = f"{node.name}#{index}" if node.is_tuple else node.name
            yield self._split(self.program.layout(graph, value), dims, rule)

    def _split(
        self, layout: Layout | None, dims: tuple[tuple[str, ...], ...], rule: Rule
    ) -> Split:
        split: Split = {}
        if layout is None or layout.spec is None:
            return split
        shape = self.program.reader.mesh.shape
        for factors, axes in zip(dims, layout.spec, strict=False):
            parts = iter(pieces_of(axes, shape))
            for number, factor in enumerate(factors):
                last = number == len(factors) - 1
                split[factor] = tuple(parts) if last else tuple(_take(parts, rule.size(factor)))
        return split

    def _dims(self, spec: Spec, moved: frozenset[Piece]) -> list[int]:
        shape = self.program.reader.mesh.shape
        return [d for d, axes in enumerate(spec) if moved & set(pieces_of(axes, shape))]

    def _without(self, spec: Spec, moved: frozenset[Piece]) -> Spec:
        shape = self.program.reader.mesh.shape
        return tuple(
            merged([p for p in pieces_of(axes, shape) if p not in moved], shape) for axes in spec
        )


def _take(parts: Iterator[Piece], size: int) -> Iterator[Piece]:
    """Take parts of axes until they cut a factor of this size into single elements."""
    product = 1
    while product < size:
        part = next(parts, None)
        if part is None:
            return
        product *= part[2]
        yield part


def _lost(rule: Rule) -> frozenset[str]:
    """Give the factors of operands that no result has."""
    kept = {f for dims in rule.results for dim in dims for f in dim}
    return frozenset(f for dims in rule.operands for dim in dims for f in dim if f not in kept)


__all__ = ["Judge"]
_ = (math, deque, Callable, islice, primitive)
