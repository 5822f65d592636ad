"""Why a collective is there: producer, consumer and Shardy's rule, held against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardnb.analysis.causes.edges import Edges
from shardnb.analysis.causes.factors import Factors, Split, results_of
from shardnb.analysis.causes.graph import Graph
from shardnb.analysis.causes.layouts import Layout
from shardnb.analysis.causes.origins import Origins, Pieces
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

_WINDOWS = frozenset(("convolution", "reduce-window", "select-and-scatter"))
_NO_SPLIT_FORM = frozenset(
    "custom-call sort topk rng rng-bit-generator triangular-solve cholesky fft".split()
)


class Judge:
    """Judges the moves of one program."""

    def __init__(self, program: Before, rules: Rules, edges: Edges) -> None:
        """Take the program, Shardy's rules, and what the user stated."""
        self.program = program
        self.edges = edges
        self.factors = Factors(program, rules)
        self.origins = Origins(self.factors, edges)

    def judge(
        self, move: Move, axes: tuple[str, ...] | None, permuted: tuple[str, ...] = ()
    ) -> Verdict:
        """Give the reason of a move over these mesh axes; `UNKNOWN` where it does not fit.

        `permuted` are the axes of a permute that brought the blocks into another order before.
        """
        if axes is None or move.producer is None:
            return UNKNOWN
        moved = frozenset(self.factors.pieces(axes))
        layout = self.program.layout(move.graph, move.producer)
        if permuted and layout is not None and not self.factors.dims(layout.spec or (), moved):
            moved = frozenset(self.factors.pieces(permuted))
        if move.own:
            return self._partial(move, moved)
        if move.collective.opcode in ("all-reduce", "reduce-scatter") or not self._is_block(move):
            return UNKNOWN
        verdict = self._reshard(move, moved)
        if layout is None or layout.spec is None or verdict is UNKNOWN:
            return verdict
        return replace(
            verdict, dims=tuple(self.factors.dims(verdict.actual or layout.spec, moved))
        )

    def _reshard(self, move: Move, moved: Pieces) -> Verdict:
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

    def _partial(self, move: Move, moved: Pieces) -> Verdict:
        """Prove a partial sum: what the operation sums over is split over exactly these axes."""
        node = move.graph.nodes[move.consumer or ""]
        rule = self.factors.known(move.graph, node)
        if rule is None:
            return UNKNOWN
        summed = rule.reductions or _lost(rule)
        splits = self.factors.operands(move.graph, node, rule)
        found = {p for split in splits for factor in summed for p in split.get(factor, ())}
        if not moved <= found:
            return UNKNOWN
        return Verdict("partial-sum", self.edges.asked_for_sum(node))

    # An operand that is moved for its consumer

    def _operand(self, move: Move, moved: Pieces) -> Verdict:
        graph, producer = move.graph, move.producer or ""
        node = graph.nodes[move.consumer or ""]
        layout = self.program.layout(graph, producer)
        if layout is None or layout.spec is None:
            return UNKNOWN
        if self.edges.is_edge(graph, node):
            return self._at_edge(graph, node, layout)
        if node.opcode == "while":
            return self._into_loop(graph, node, producer, moved)
        at = self._taken_at(graph, node, producer)
        dims = self.factors.dims(layout.spec, moved)
        if at is None or not dims:
            return UNKNOWN
        rule = self.factors.rule(graph, node)
        if rule is AMBIGUOUS:
            return UNKNOWN
        needed = self.factors.without(layout.spec, moved)
        if rule is None:
            known = node.opcode in _NO_SPLIT_FORM
            return Verdict("whole-axis", needed=needed) if known else UNKNOWN
        return self._by_rule(move, node, rule, at, moved, dims)

    def _taken_at(self, graph: Graph, node: Instruction, producer: str) -> int | None:
        """Give the operand that is the producer, or a piece of it."""
        numbers = self.program.numbers(graph)
        wanted = numbers.get(producer, producer)
        for at, operand in enumerate(graph.operands[node.name]):
            if any(numbers.get(one, one) == wanted for one in graph.whole_of(operand)):
                return at
        return None

    def _into_loop(
        self, graph: Graph, node: Instruction, producer: str, moved: Pieces
    ) -> Verdict:
        """Judge what a loop carries in another placement: whether a constraint inside says so."""
        operands = graph.operands[node.name]
        inner = self.program.inside(node, operands.index(producer)) if producer in operands else None
        layout = self.program.layout(*inner) if inner else None
        if inner is None or layout is None or layout.spec is None:
            return UNKNOWN
        for dim in self.factors.dims(layout.spec, moved):
            origin = self.origins.of(*inner, dim, moved, split=True)
            if origin is not None and origin.stated:
                return Verdict("output-spec", "requested", CARRY, layout.spec)
        return Verdict("conflict", detail=CARRY, needed=layout.spec)

    def _by_rule(
        self, move: Move, node: Instruction, rule: Rule, at: int, moved: Pieces, dims: list[int]
    ) -> Verdict:
        graph = move.graph
        layout = self.program.layout(graph, move.producer or "")
        needed = self.factors.without((layout and layout.spec) or (), moved)
        splits = self.factors.operands(graph, node, rule)
        names = {f for dim in dims for f in rule.operands[at][dim]}
        here = frozenset(f for f in names if moved & set(splits[at].get(f, ())))
        if not here or any(not rule.operands[at][dim] for dim in dims):
            return Verdict("whole-axis", needed=needed)
        bound = rule.whole | rule.exchanges
        permute = move.collective.opcode == "collective-permute"
        if permute and (bound & here or node.opcode in _WINDOWS):
            return Verdict("halo")
        if rule.whole & here:
            return Verdict("whole-axis", needed=needed)
        if rule.exchanges & here:
            return self._exchange(graph, node, needed)
        if node.opcode == "reshape" and _is_cut(rule, at, dims):
            return Verdict("reshape", needed=needed)
        return self._compare(move, node, rule, at, here, splits, moved)

    def _exchange(self, graph: Graph, node: Instruction, needed: Spec | None) -> Verdict:
        if node.opcode != "concatenate" and not self._divides(graph, node):
            return Verdict("uneven", needed=needed)
        return Verdict("whole-axis", needed=needed)

    def _divides(self, graph: Graph, node: Instruction) -> bool:
        layouts = [self.program.layout(graph, value) for value in results_of(node)]
        pairs = zip(layouts, node.arrays, strict=False)
        return all(layout is None or layout.divides(shape) for layout, (_, shape) in pairs)

    def _compare(
        self,
        move: Move,
        node: Instruction,
        rule: Rule,
        at: int,
        here: frozenset[str],
        splits: list[Split],
        moved: Pieces,
    ) -> Verdict:
        """Hold an operand against the others and the result, all of which could have agreed."""
        graph = move.graph
        results = self.factors.results(graph, node, rule)
        needed = self._needed(rule, at, splits, results, here)
        summed = frozenset(
            dim for dim, names in enumerate(rule.operands[at]) if set(names) & rule.reductions
        )
        others = self._others(graph, node, at, move.producer or "")
        for other in others:
            if self._wants(graph, node, rule, other, here, moved):
                value = graph.operands[node.name][other]
                return Verdict(
                    "conflict", "inferred", TWO_DIMS, needed, other=value, summed=summed
                )
        unlike = [o for o in others if _differs(rule.operands[o], splits[o], splits[at], here)]
        for other in unlike:
            if any(splits[other].get(factor) for factor in here):
                value = graph.operands[node.name][other]
                return Verdict(
                    "conflict", "inferred", DISAGREE, needed, other=value, summed=summed
                )
        if self._result_differs(rule, results, splits[at], here):
            verdict = self._declared(graph, node, rule, results, here, moved, needed)
            if verdict is not UNKNOWN:
                return verdict
        elif not unlike:
            usual = node.opcode in ELEMENTWISE or move.collective.opcode == "collective-permute"
            return UNKNOWN if usual else Verdict("whole-axis", detail=NO_FORM, needed=needed)
        if unlike:
            value = graph.operands[node.name][unlike[0]]
            return Verdict("conflict", "inferred", DISAGREE, needed, other=value, summed=summed)
        return UNKNOWN

    def _others(self, graph: Graph, node: Instruction, at: int, producer: str) -> list[int]:
        """Give the operands whose placement is their own: no constants, not the producer again."""
        return [
            number
            for number, operand in enumerate(graph.operands[node.name])
            if number != at
            and operand != producer
            and not self.program.is_constant(graph, operand)
        ]

    def _wants(
        self,
        graph: Graph,
        node: Instruction,
        rule: Rule,
        other: int,
        here: frozenset[str],
        moved: Pieces,
    ) -> bool:
        """Whether another operand has the same axes on another dimension, and by itself."""
        if other >= len(rule.operands):
            return False
        operand = graph.operands[node.name][other]
        return any(
            self.origins.grounded(graph, operand, dim, moved)
            for dim, names in enumerate(rule.operands[other])
            if not here & set(names)
        )

    @staticmethod
    def _result_differs(
        rule: Rule, results: Sequence[Split], mine: Split, here: frozenset[str]
    ) -> bool:
        return any(
            split.get(factor, ()) != mine.get(factor, ())
            for split, dims in zip(results, rule.results, strict=False)
            for factor in here
            if any(factor in dim for dim in dims)
        )

    def _needed(
        self,
        rule: Rule,
        at: int,
        splits: Sequence[Split],
        results: Sequence[Split],
        here: frozenset[str],
    ) -> Spec:
        """Give where the consumer needs its operand: as the result and the other operands lie."""
        wanted: Split = {}
        for split in [*results, *(s for i, s in enumerate(splits) if i != at)]:
            for factor, parts in split.items():
                wanted.setdefault(factor, parts)
        mine = splits[at]
        return self.factors.spec(
            [p for f in dim for p in wanted.get(f, () if f in here else mine.get(f, ()))]
            for dim in rule.operands[at]
        )

    # Results that are declared elsewhere

    def _declared(
        self,
        graph: Graph,
        node: Instruction,
        rule: Rule,
        results: Sequence[Split],
        here: frozenset[str],
        moved: Pieces,
        needed: Spec | None,
    ) -> Verdict:
        """Judge what only the declared result asks for: find what declared it."""
        for value, dims, split in zip(results_of(node), rule.results, results, strict=False):
            for dim, names in enumerate(dims):
                taken = any(moved & set(split.get(name, ())) for name in names)
                if not taken and not here & set(names):
                    continue
                origin = self.origins.of(graph, value, dim, moved, split=taken)
                if origin is None:
                    continue
                if origin.stated:
                    return Verdict("output-spec", "requested", ELSEWHERE, needed)
                return Verdict("conflict", "inferred", TWO_DIMS, needed, other=origin.value)
        return UNKNOWN

    def _moved_result(self, move: Move, moved: Pieces) -> Verdict:
        """Judge a result that was computed in its operands' layout and then moved."""
        graph, producer = move.graph, move.producer or ""
        node = graph.node(producer)
        layout = self.program.layout(graph, producer)
        rule = self.factors.rule(graph, node)
        if rule is AMBIGUOUS or layout is None:
            return UNKNOWN
        if rule is None:
            known = node.opcode in _NO_SPLIT_FORM
            return Verdict("whole-axis", needed=layout.spec, own=True) if known else UNKNOWN
        results = self.factors.results(graph, node, rule)
        splits = [*self.factors.operands(graph, node, rule), *results]
        here = frozenset(f for split in splits for f, parts in split.items() if moved & set(parts))
        if not here:
            return UNKNOWN
        verdict = self._own(move, node, rule, here, layout)
        if verdict is UNKNOWN:
            verdict = self._declared(graph, node, rule, results, here, moved, layout.spec)
        if verdict is UNKNOWN:
            return UNKNOWN
        return replace(verdict, actual=self._actual(graph, producer, rule))

    def _own(
        self, move: Move, node: Instruction, rule: Rule, here: frozenset[str], layout: Layout
    ) -> Verdict:
        permute = move.collective.opcode == "collective-permute"
        if permute and (rule.whole | rule.exchanges) & here:
            return Verdict("halo", own=True)
        if here & rule.whole:
            return Verdict("whole-axis", needed=layout.spec, own=True)
        if here & rule.exchanges:
            return replace(self._exchange(move.graph, node, layout.spec), own=True)
        return UNKNOWN

    def _actual(self, graph: Graph, producer: str, rule: Rule) -> Spec | None:
        """Give the layout that the operands of an instruction lend to its result."""
        lent: Split = {}
        for split in self.factors.operands(graph, graph.node(producer), rule):
            for factor, parts in split.items():
                lent[factor] = lent.get(factor) or parts
        element = producer.partition("#")[2]
        dims = rule.results[int(element) if element else 0]
        return self.factors.spec([p for f in dim for p in lent.get(f, ())] for dim in dims)

    def _result(self, move: Move, moved: Pieces) -> Verdict:
        """Judge what is moved for a result of the program, or for the next turn of a loop."""
        graph = move.graph
        layout = self.program.layout(graph, move.producer or "")
        if layout is None or layout.spec is None:
            return UNKNOWN
        if graph.name != self.program.module.entry:
            return Verdict("conflict", detail=CARRY)
        if not self.factors.dims(layout.spec, moved):
            return UNKNOWN
        needed = self.factors.without(layout.spec, moved)
        if self.edges.is_stated_result(move.result or 0):
            return _as_stated(self.edges.result_asked_by, needed)
        array = graph.array(move.producer or "")
        if array and not layout.divides(array[1]):
            return Verdict("uneven", needed=needed)
        if any(":(" in axis for dim in layout.spec for axis in dim):
            return Verdict("reshape", needed=needed)
        return UNKNOWN

    def _at_edge(self, graph: Graph, node: Instruction, layout: Layout) -> Verdict:
        wanted = self.program.layout(graph, node.name)
        if wanted is None or wanted.spec is None or wanted.spec == layout.spec:
            return UNKNOWN
        return _as_stated(self.edges.asked_by(node), wanted.spec)


def _as_stated(asked_by: AskedBy, needed: Spec) -> Verdict:
    """Judge what a placement asks for that the user stated, or JAX for an Explicit type."""
    if asked_by == "requested":
        return Verdict("output-spec", "requested", needed=needed)
    return Verdict("conflict", detail=ELSEWHERE, needed=needed)


def _differs(
    dims: tuple[tuple[str, ...], ...], split: Split, mine: Split, here: frozenset[str]
) -> bool:
    """Whether an operand that shares these factors is split along them in another way."""
    names = {name for dim in dims for name in dim}
    return any(f in names and split.get(f, ()) != mine.get(f, ()) for f in here)


def _is_cut(rule: Rule, at: int, dims: Sequence[int]) -> bool:
    """Whether a reshape joins or cuts one of these dimensions."""
    names = {f for dim in dims for f in rule.operands[at][dim]}
    joined = any(len(dim) > 1 and names & set(dim) for result in rule.results for dim in result)
    return joined or any(len(rule.operands[at][dim]) > 1 for dim in dims)


def _lost(rule: Rule) -> frozenset[str]:
    """Give the factors of operands that no result has."""
    kept = {f for dims in rule.results for dim in dims for f in dim}
    return frozenset(f for dims in rule.operands for dim in dims for f in dim if f not in kept)
