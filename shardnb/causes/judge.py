"""Why a collective is there: producer, consumer and Shardy's rule, held against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from shardnb.causes.data_movement import Movement
from shardnb.causes.operand_conflict import Declared, MovedOperand, clash, declared, exchange
from shardnb.causes.origins import AxisFactors, Origins
from shardnb.causes.rule_factors import Factors, Split
from shardnb.causes.stated_shardings import StatedShardings
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import NOT_THE_PRODUCER, RETURNED, UNKNOWN, Statement, Verdict
from shardnb.report.model import Spec
from shardnb.report.spec import axis_size
from shardnb.terms.causes import AskedBy, Detail
from shardnb.terms.collectives import reduces
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import NOT_PARTITIONED, SAME_DIMENSIONS, SUMS
from shardnb.texts.replica_groups import parse_groups
from shardnb.texts.sharding_rules import AMBIGUOUS, Rules
from shardnb.texts.shardings import Layout
from shardnb.texts.shardy_attributes import Rule


class Judge:
    """Judges the moves of one program."""

    def __init__(self, program: Unpartitioned, rules: Rules, stated: StatedShardings) -> None:
        """Take the program, Shardy's rules, and what the user stated."""
        self.program = program
        self.stated = stated
        self.factors = Factors(program, rules)
        self.origins = Origins(self.factors, stated)

    def judge(
        self, move: Movement, axes: tuple[str, ...] | None, permuted: tuple[str, ...] = ()
    ) -> Verdict:
        """Return the reason of a move over these mesh axes; `UNKNOWN` where it does not fit.

        `permuted` are the axes of a permute that belongs to the same move, before or after.
        """
        if axes is None or move.producer is None:
            return UNKNOWN
        layout = self.program.layout(move.graph, move.producer)
        moved = frozenset(self.factors.pieces(axes))
        if permuted and layout is not None and not self.factors.dims(layout.spec or (), moved):
            moved = frozenset(self.factors.pieces(permuted))
        if layout is not None and layout.alone:
            return Verdict("conflict", detail="on one device", layout_unknown=True)
        if move.completes_consumer:
            return self._partial(move, moved)
        whole = math.prod(piece[2] for piece in moved)
        cut = bool(permuted)
        if reduces(move.collective.opcode) or not self._is_block(move, whole, cut=cut):
            return NOT_THE_PRODUCER
        verdict = self._moved(move, layout, moved)
        if verdict is UNKNOWN and permuted:  # a part of one move with the permute before it
            return self._moved(move, layout, moved | frozenset(self.factors.pieces(permuted)))
        return verdict

    def _moved(self, move: Movement, layout: Layout | None, moved: AxisFactors) -> Verdict:
        """Judge what is moved and not summed; say which dimensions and axes sharded it."""
        verdict = self._as_written(move, self._reshard(move, moved))
        if layout is None or layout.spec is None or verdict is UNKNOWN or verdict.layout_unknown:
            return verdict
        spec = verdict.actual or layout.spec
        dims = tuple(self.factors.dims(spec, moved))
        # In an all-to-all the axes go to another dimension, which the operation did not ask for.
        untold = move.collective.opcode == "all-to-all" and verdict.reason == "whole-axis"
        parts = ([p for p in self.factors.pieces(spec[dim]) if p in moved] for dim in dims)
        split_by = tuple(axis for named in self.factors.spec(parts) for axis in named)
        needed = None if untold else verdict.needed
        return replace(verdict, dims=dims, axes=split_by, needed=needed)

    def _is_block(self, move: Movement, parts: int, *, cut: bool) -> bool:
        """Whether what is sent can be a block of the producer.

        In a permute, or where it is `cut` for one in the same move, it can be a part of one, and
        before it is divided into `parts` it may be padded.
        """
        array = move.graph.array(move.value)
        layout = self.program.layout(move.graph, move.value)
        if array is None or layout is None or move.sent is None or move.not_in_declared_layout:
            return array is not None
        block = layout.shard_shape(array[1])
        size, whole = math.prod(move.sent), math.prod(block)
        padded = [whole // dim * (-(-dim // parts) * parts) for dim in block if dim]
        steps = (move.collective, *move.chain)
        if cut or any(step.opcode == "collective-permute" for step in steps):
            return size <= max((whole, *padded))
        return size == whole or size in padded

    def _reshard(self, move: Movement, moved: AxisFactors) -> Verdict:
        if move.not_in_declared_layout:
            verdict = self._moved_result(move, moved)
            layout = self.program.layout(move.graph, move.value)
            spec = layout.spec if layout is not None else None
            # It has come to its declared layout by then (`blocks_beside_and_below`).
            arrived = verdict is UNKNOWN and move.consumer and spec and self._is_sent(move, spec)
            return self._operand(move, moved) if arrived else verdict
        if move.result is not None:
            verdict = self._arrived(move, moved) if self._arrives(move) else UNKNOWN
            return verdict if verdict is not UNKNOWN else self._result(move, moved)
        if not move.consumer:
            return UNKNOWN
        verdict = self._operand(move, moved)
        permute = move.collective.opcode == "collective-permute"
        if verdict is UNKNOWN and permute and self._sums(move.graph, move.producer):
            return self._arrived(move, moved)
        return verdict

    def _arrived(self, move: Movement, moved: AxisFactors) -> Verdict:
        """Judge blocks on their way to where a result is declared: who stated it, or what clashed.

        What merely meets the result says nothing of why it was computed elsewhere.
        """
        verdict = self._moved_result(move, moved)
        node = move.graph.node(move.value)
        rule = self.factors.known(move.graph, node)
        if verdict.reason != "conflict" or rule is None:
            return verdict
        asked = Declared(self.origins, move.graph, node, rule, rule.reduction, moved, moved)
        return clash(asked, None)

    @staticmethod
    def _sums(graph: Graph, value: HloValue | None) -> bool:
        return value is not None and graph.node(value).opcode in SUMS

    def _as_written(self, move: Movement, verdict: Verdict) -> Verdict:
        """Say that the user asked for what an operation needs that was given an `out_sharding`."""
        if verdict is UNKNOWN or verdict.asked_by != "inferred":
            return verdict
        name = verdict.consumer or move.consumer or move.value.name
        return replace(verdict, asked_by=self.stated.asked_within(move.graph.nodes[name]))

    def _arrives(self, move: Movement) -> bool:
        """Whether blocks are permuted to where a result is declared, so computed elsewhere."""
        if move.collective.opcode != "collective-permute":
            return False
        root = move.graph.root
        place = root.value.at(move.result or 0) if root.is_tuple else root.value
        wanted = self.program.layout(move.graph, place)
        return wanted == self.program.layout(move.graph, move.value)

    def _partial(self, move: Movement, moved: AxisFactors) -> Verdict:
        """Prove a partial sum: the operation's contracting dimension is sharded over these axes.

        Or its own parts enter the sum as they are: as a whole result they would be added twice.
        """
        node = self._computes(move.graph, move.graph.nodes[move.consumer or ""])
        rule = self.factors.known(move.graph, node)
        if rule is None or node.opcode == "reshape":
            return UNKNOWN
        summed = rule.reduction or _lost(rule)
        splits = self.factors.operands(move.graph, node, rule)
        found = {p for split in splits for factor in summed for p in split.get(factor, ())}
        if not moved <= found and not (move.unreduced_operand and node.opcode in SUMS):
            return UNKNOWN
        verdict = Verdict("partial-sum", self.stated.asked_within(node))
        return self._before_it_is_cut(verdict, move, moved)

    def _before_it_is_cut(self, verdict: Verdict, move: Movement, moved: AxisFactors) -> Verdict:
        """Judge a sum whose declared sharding uses its own axes: it is sliced afterwards."""
        layout = self.program.layout(move.graph, move.value)
        array = move.graph.array(move.value)
        if layout is None or not layout.spec or array is None:
            return verdict
        whole = self.factors.without(layout.spec, moved)
        kept = math.prod(layout.shard_shape(array[1]))
        summed = math.prod(move.collective.arrays[0][1]) if move.collective.arrays else kept
        parts = math.prod(piece[2] for piece in moved)
        known = reduces(move.collective.opcode) and whole != layout.spec
        return replace(verdict, actual=whole) if known and summed == kept * parts else verdict

    @staticmethod
    def _computes(graph: Graph, node: Instruction) -> Instruction:
        """Return what computes a value that one step of JAX's reshapes at its end."""
        while node.opcode == "reshape":
            source = graph.maker(graph.operands[node.name][0])
            if source is None or source.key != node.key:
                break
            node = source
        return node

    # An operand that is moved for its consumer

    def _operand(self, move: Movement, moved: AxisFactors) -> Verdict:
        graph, producer = move.graph, move.value
        node = graph.nodes[move.consumer or ""]
        layout = self.program.layout(graph, producer)
        if layout is None or layout.spec is None:
            return UNKNOWN
        if self.stated.states_sharding(graph, node):
            return self._at_edge(graph, node, layout)
        if node.opcode == "while":
            return self._into_loop(graph, node, producer, moved)
        if self.stated.is_inserted(graph, node):
            return self._at_inserted(move, node, layout.spec, moved)
        return self._taken(move, node, layout.spec, moved)

    def _at_inserted(
        self, move: Movement, node: Instruction, spec: Spec, moved: AxisFactors
    ) -> Verdict:
        """Judge a copy that the compiler put after an operation, or before one, to move it."""
        graph, producer = move.graph, move.value
        made, wanted = graph.node(producer), self.program.layout(graph, node.value)
        rule = self.factors.known(graph, made)
        if rule is not None and wanted is not None and wanted.spec is not None:
            dims = self.factors.dims(wanted.spec, moved)
            here = frozenset(f for dim in dims for f in rule.results[0][dim])
            verdict = self._own(move, made, rule, here, wanted.spec)
            if verdict is not UNKNOWN:
                return verdict
        takers = graph.users.get(node.value, ())
        if len(takers) != 1:
            return UNKNOWN
        taker = takers[0]
        verdict = self._taken(move, taker, spec, moved)
        return verdict if verdict is UNKNOWN else replace(verdict, consumer=taker.name)

    def _taken(self, move: Movement, node: Instruction, spec: Spec, moved: AxisFactors) -> Verdict:
        places = self._taken_at(move.graph, node, move.value)
        dims = self.factors.dims(spec, moved)
        rule = self.factors.rule(move.graph, node)
        if not places or not dims or rule is AMBIGUOUS:
            return UNKNOWN
        if rule is None:
            return _without_rule(node, self.factors.without(spec, moved))
        operands_moved = [
            MovedOperand(
                self.origins, move.graph, node, rule, at, move.value, dims, moved, move.exchanges
            )
            for at in places
        ]
        return next((one for one in operands_moved if not one.is_kept), operands_moved[0]).verdict()

    def _taken_at(self, graph: Graph, node: Instruction, producer: HloValue) -> list[int]:
        """Return the operands that are the producer, or a piece of it."""
        numbers = self.program.numbers(graph)
        wanted = numbers.get(producer, producer)
        return [
            at
            for at, operand in enumerate(graph.operands[node.name])
            for pieces in [graph.upward(operand, SAME_DIMENSIONS)]
            if any(numbers.get(one, one) == wanted for one in pieces)
        ]

    def _into_loop(
        self, graph: Graph, node: Instruction, producer: HloValue, moved: AxisFactors
    ) -> Verdict:
        """Judge what a loop carries in another placement: whether a constraint inside says so."""
        operands = graph.operands[node.name]
        at = operands.index(producer) if producer in operands else -1
        inner = self.program.module.inside(node, at) if at >= 0 else None
        layout = self.program.layout(*inner) if inner else None
        if inner is None or layout is None or layout.spec is None:
            return UNKNOWN
        for dim in self.factors.dims(layout.spec, moved):
            origin = self.origins.of(*inner, dim, moved, split=True)
            if origin is not None and origin.asked_by == "requested":
                return Verdict(
                    "output-spec", "requested", "loop carry", layout.spec, stated=origin.stated
                )
        return Verdict("conflict", detail="loop carry", needed=layout.spec)

    def _at_edge(self, graph: Graph, node: Instruction, layout: Layout) -> Verdict:
        wanted = self.program.layout(graph, node.value)
        if wanted is None or wanted.spec is None or wanted.spec == layout.spec:
            return UNKNOWN
        if self.stated.is_of_jaxs_shard_map(node):
            return UNKNOWN
        statement = self.stated.statement(graph, node)
        return _as_stated(self.stated.asked_by(node), statement, wanted.spec)

    # A result that is declared elsewhere

    def _moved_result(self, move: Movement, moved: AxisFactors) -> Verdict:
        """Judge a result that was computed in its operands' layout and then moved."""
        graph, producer = move.graph, move.value
        node = graph.node(producer)
        layout = self.program.layout(graph, producer)
        rule = self.factors.rule(graph, node)
        if rule is AMBIGUOUS or layout is None:
            return UNKNOWN
        if rule is None:
            verdict = _without_rule(node, layout.spec)
            return (
                verdict
                if verdict is UNKNOWN
                else replace(verdict, needed_by_producer=True, layout_unknown=True)
            )
        splits = [
            *self.factors.operands(graph, node, rule),
            *self.factors.results(graph, node, rule),
        ]
        here = frozenset(f for split in splits for f, parts in split.items() if moved & set(parts))
        verdict = self._own(move, node, rule, here, layout.spec) if here else UNKNOWN
        asked = Declared(self.origins, graph, node, rule, here, moved, moved)
        if verdict is not UNKNOWN and not self._takes_along(move, node, rule, moved):
            # An operation that needs a dimension in full had it so: what the user wrote for the
            # result shards that (`sorted_rows_that_are_transposed`).
            wanted = declared(asked, layout.spec)
            verdict = wanted if wanted.reason == "output-spec" else verdict
        if verdict is UNKNOWN and here and not _agree(splits, here):
            verdict = declared(asked, layout.spec)
            verdict = clash(asked, layout.spec) if verdict is UNKNOWN else verdict
            if verdict is UNKNOWN and node.opcode == "gather":
                # The rows that the indices pick from were swapped for columns, so that each
                # device picks columns of its own (`rows_of_a_sharded_table`).
                verdict = Verdict("conflict", detail="elsewhere", needed=layout.spec)
        if verdict is UNKNOWN:
            return UNKNOWN
        actual = self._before_permute(move, layout) or self._actual(graph, producer, rule)
        axes = [axis for dim in actual for axis in dim]
        twice = len(set(axes)) < len(axes)
        known = self.factors.dims(actual, moved) and self._is_sent(move, actual)
        if verdict.needed_by_producer or twice or not known:
            return replace(verdict, layout_unknown=True)
        return replace(verdict, actual=actual)

    def _before_permute(self, move: Movement, declared: Layout) -> Spec | None:
        """Return the layout of what a permute brings to its declared one, by who sends to whom."""
        array, text = move.graph.array(move.value), move.collective.attribute("source_target_pairs")
        if array is None or text is None:
            return None
        if [shape for _, shape in move.collective.arrays] != [declared.shard_shape(array[1])]:
            return None
        reader = self.program.reader
        before = reader.before_permute(declared, parse_groups(text, reader.mesh.size))
        return None if before is None else before.spec

    def _is_sent(self, move: Movement, spec: Spec) -> bool:
        """Whether what is sent can be the block of the producer in a layout."""
        array, sizes = move.graph.array(move.value), self.program.reader.mesh.shape
        if array is None or move.sent is None:
            return True
        parts = (math.prod(axis_size(axis, sizes) for axis in axes) for axes in spec)
        block = (-(-size // count) for size, count in zip(array[1], parts, strict=True))
        return math.prod(block) == math.prod(move.sent)

    def _takes_along(
        self, move: Movement, node: Instruction, rule: Rule, moved: AxisFactors
    ) -> bool:
        """Whether an operand is sharded along what an operation needs in full, or permutes."""
        bound = rule.need_replication | rule.permutation
        splits = self.factors.operands(move.graph, node, rule)
        return any(moved & set(split.get(one, ())) for split in splits for one in bound)

    def _own(
        self,
        move: Movement,
        node: Instruction,
        rule: Rule,
        here: frozenset[str],
        needed: Spec | None,
    ) -> Verdict:
        bound = here & (rule.need_replication | rule.permutation)
        if not bound:
            return UNKNOWN
        if move.exchanges:
            return Verdict("halo", needed_by_producer=True)
        at = move.value.element[0] if move.value.element else 0
        full = tuple(d for d, names in enumerate(rule.results[at]) if not bound.isdisjoint(names))
        verdict = Verdict("whole-axis", needed=needed)
        if not here & rule.need_replication:
            verdict = exchange(self.factors, move.graph, node, needed)
        return replace(verdict, needed_by_producer=True, full=full)

    def _actual(self, graph: Graph, producer: HloValue, rule: Rule) -> Spec:
        """Return the layout that the operands of an instruction lend to its result.

        An axis stands in it twice where two of them lend it to different dimensions.
        """
        lent: Split = {}
        for split in self.factors.operands(graph, graph.node(producer), rule):
            for factor, parts in split.items():
                lent[factor] = lent.get(factor) or parts
        dims = rule.results[producer.element[0] if producer.element else 0]
        return self.factors.spec([p for f in dim for p in lent.get(f, ())] for dim in dims)

    def _result(self, move: Movement, moved: AxisFactors) -> Verdict:
        """Judge what is moved for a result of the program, or for the next turn of a loop."""
        graph, producer = move.graph, move.value
        layout = self.program.layout(graph, producer)
        if layout is None or layout.spec is None:
            return UNKNOWN
        if graph.name != self.program.module.entry:
            caller = self.program.module.caller(graph)
            returned = RETURNED.get(caller.opcode) if caller is not None else None
            return Verdict("conflict", detail=returned) if returned else UNKNOWN
        if not self.factors.dims(layout.spec, moved):
            return UNKNOWN
        number = move.result or 0
        if self.stated.is_stated_result(number):
            statement = self.stated.result_statement(number)
            return _as_stated(self.stated.result_asked_by, statement, statement.spec)
        return self._shrunk(graph, producer, layout.spec, moved)

    def _shrunk(self, graph: Graph, value: HloValue, spec: Spec, moved: AxisFactors) -> Verdict:
        """Judge a result without a requested sharding, and that cannot keep its sharding.

        A part of an axis is what a reshape leaves of it, or rows that the whole axis does not
        divide (`conv_to_ten_rows`).
        """
        needed, array = self.factors.without(spec, moved), graph.array(value)
        uneven = self.factors.uneven(spec, array[1]) if array else None
        if not uneven:
            return UNKNOWN
        dims = self.factors.dims(spec, moved)
        if any(self.origins.is_reshaped(graph, value, dim) for dim in dims):
            return Verdict("reshape", needed=needed)
        return Verdict("uneven", needed=needed, uneven=uneven)


def _agree(splits: Sequence[Split], factors: frozenset[str]) -> bool:
    """Whether all arrays are sharded alike along factors: then the compiler's choice moves them.

    It adds up rows of a table in another layout, where what they are added to has other axes on
    another dimension (`rows_of_a_table_added`).
    """
    along = [[split[one] for split in splits if one in split] for one in factors]
    return all(len(parts) > 1 and len(set(parts)) == 1 for parts in along)


def _without_rule(node: Instruction, needed: Spec | None) -> Verdict:
    """Judge what each device computes in full: whether it needs that, no rule says.

    What is sent to a host is.
    """
    detail: Detail | None = None if node.opcode == "send" else "no split form"
    known = node.opcode in NOT_PARTITIONED
    return Verdict("whole-axis", detail=detail, needed=needed) if known else UNKNOWN


def _as_stated(asked_by: AskedBy, statement: Statement, needed: Spec | None) -> Verdict:
    """Judge what a placement asks for that the user stated, or JAX for an Explicit type."""
    if asked_by == "requested":
        return Verdict("output-spec", "requested", needed=needed, stated=statement)
    return Verdict("conflict", detail="elsewhere", needed=needed)


def _lost(rule: Rule) -> frozenset[str]:
    """Return the factors of operands that no result has."""
    kept = {f for dims in rule.results for dim in dims for f in dim}
    return frozenset(f for dims in rule.operands for dim in dims for f in dim if f not in kept)
