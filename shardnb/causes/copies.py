"""Which collective right after partitioning one with another channel was: a copy, or a part of it.

XLA for GPU writes the steps of a loop out, twice or all of them, takes a collective a step ahead,
and runs the first or the last step outside the loop. Each copy has a channel of its own. It makes a
reduce-scatter of an all-reduce whose result is sliced, and stores what it combines transposed, or
end to end. What is left then is the name and the lines of the operation, the devices, the number of
elements, and what is moved.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.member_matching import FlowMatching
from shardnb.causes.origin_lines import Origin, origins_of
from shardnb.collectives.flattened import pieces
from shardnb.report.model import Collective, Groups
from shardnb.report.op_names import joined_names
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue, Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import VIEWS
from shardnb.texts.replica_groups import AxisFinder

# How much each piece of evidence weighs: which input is moved says more than which operation made
# it, and that more than a name, which all gathers of a loop share
# (test_each_copy_has_the_cause_and_the_parameter_of_what_it_is_a_copy_of).
_INPUT, _ORIGIN, _NAME = 16, 8, 4


class _Sent(NamedTuple):
    """What a member of a collective sends: its name, where its operand comes from, which input.

    `is_joined` says that the name is the member's own, of those of all that are sent as one.
    """

    name: str
    origins: frozenset[Origin]
    parameter: int | None
    is_joined: bool = False


@dataclass
class Copies:
    """Finds what copies, combined sums and scattered sums were made of."""

    optimized: Module
    made_from: EntryParameters
    finder: AxisFinder
    made: Sequence[Instruction]
    flow: FlowMatching
    _described: dict[tuple[str, str], _Sent] = field(default_factory=dict)

    def is_laid(self, final: Instruction) -> bool:
        """Whether a collective sends several sums end to end, in no order of the program's."""
        return bool(pieces(self.optimized, final))

    def match(
        self, final: Instruction, members: Sequence[Collective], known: Mapping[int, Instruction]
    ) -> dict[int, tuple[Instruction, ...]]:
        """Return for the id of each member that is not known what it may have been.

        Several are left where the evidence is the same for all of them, the likeliest first.
        `members` are all that are sent as one, in their order.
        """
        uses = Counter(_place(known[member.id]) for member in members if member.id in known)
        found: dict[int, tuple[Instruction, ...]] = {}
        if len(members) == 1 and members[0].id not in known and (pairs := self._pairs(members[0])):
            return {members[0].id: tuple(one for pair in pairs for one in pair)}
        for at, sent in enumerate(self._members(final, len(members))):
            member = members[at]
            likely = [] if member.id in known else self._likely(member, sent, final, at)
            if likely:
                likely.sort(key=lambda one: uses[_place(one)])
                found[member.id] = tuple(likely)
                uses[_place(likely[0])] += 1
        return found

    def _pairs(self, member: Collective) -> list[tuple[Instruction, Instruction]]:
        """Return the two sums, one of the other's result, that XLA made one over both axes.

        It has the name of neither (`attention_of_one_product`). All pairs that it can have been.
        """
        wanted = frozenset(map(frozenset, member.groups))
        if member.kind != "all-reduce" or not wanted:
            return []
        sums = [one for one in self.made if kind_of(one.opcode) == "all-reduce"]
        by_place = {(one.computation, one.value): one for one in sums}
        found: list[tuple[Instruction, Instruction]] = []
        for outer in sums:
            inner = by_place.get((outer.computation, outer.operands[0]))
            alike = inner is not None and outer.shapes == (member.shape,) == inner.shapes
            if inner is not None and alike and self._joined(inner, outer) == wanted:
                found.append((inner, outer))
        return found

    def _joined(self, *sums: Instruction) -> frozenset[frozenset[int]]:
        """Return the devices that get a part of each other in one sum after another."""
        groups: list[frozenset[int]] = []
        for group in (frozenset(group) for one in sums for group in self._groups_of(one)):
            touched = [other for other in groups if other & group]
            groups = [other for other in groups if not other & group]
            groups.append(group.union(*touched))
        return frozenset(groups)

    def _likely(
        self, member: Collective, sent: _Sent, final: Instruction, at: int
    ) -> list[Instruction]:
        """Return those with the most evidence, in the order of the program."""
        alike = [one for one in self.made if self._can_be(one, member)]
        alike = alike or [inner for inner, _ in self._pairs(member)]
        if not alike and not member.within:
            alike = [one for one in self.made if self._is_of_each_step(one, member)]
        # Of one product for several a member has the name, and each slice that of the last.
        named = [one for one in alike if sent.is_joined and self._is_named(one, sent.name)]
        alike = named or alike
        if self.is_laid(final):
            reaching = list(self.flow.reaching(alike, final, at))
            if len(reaching) == 1 < len(alike):
                # Of one product for several all slices have the line of one (`context_parallel`).
                return reaching
            alike = reaching
        weighed = [(self._weight(one, sent), one) for one in alike]
        most = max((weight for weight, _ in weighed), default=0)
        likely = [one for weight, one in weighed if most and weight == most]
        return list(self.flow.alike(likely, final, at))

    def _is_of_each_step(self, made: Instruction, member: Collective) -> bool:
        """Whether a loop sums in each step what is summed once after it, stacked.

        So it is with gradients of what is small (`norms_of_layers`).
        """
        module, shapes = self.made_from.module, made.shapes
        return (
            kind_of(made.opcode) == "all-reduce" == member.kind
            and len(shapes) == 1
            and member.shape[1:] == shapes[0]
            and module.is_loop(module.graph_of(made))
            and self._groups_of(made) == member.groups
        )

    def _can_be(self, made: Instruction, member: Collective) -> bool:
        """Whether it joins the same devices, and its result has as many elements, or a shard's."""
        kind, size = kind_of(made.opcode), math.prod(member.shape)
        wanted = member.made_as or member.kind
        elements = sum(math.prod(shape) for _, shape in made.arrays)
        if kind == "all-reduce" and wanted == "reduce-scatter" and member.groups:
            size *= len(member.groups[0])
        elif kind != wanted:
            return False
        return elements == size and self._groups_of(made) == member.groups

    def _weight(self, made: Instruction, sent: _Sent) -> int:
        """Weigh the evidence that it is what a member was: 0 without any, or with some against."""
        was = self._of_made(made)
        if sent.parameter is not None and was.parameter is not None:
            if sent.parameter != was.parameter:
                return 0
            alike = _INPUT
        else:
            alike = 0
        named = self._is_named(made, sent.name)
        return alike + _ORIGIN * bool(sent.origins & was.origins) + _NAME * named

    def _is_named(self, made: Instruction, name: str) -> bool:
        return bool(name) and self._of_made(made).name.endswith(name)

    def _of_made(self, made: Instruction) -> _Sent:
        place = _place(made)
        if place not in self._described:
            module = self.made_from.module
            graph = module.graph_of(made)
            origins = set(_origins(module, (graph, graph.operands[made.name][0])))
            name = module.path(made)
            origins |= set(origins_of(module, made))
            parameter = self.made_from.entering(made)
            self._described[place] = _Sent(name, frozenset(origins), parameter)
        return self._described[place]

    def _members(self, final: Instruction, count: int) -> Iterator[_Sent]:
        module, graph = self.optimized, self.optimized.graph_of(final)
        joined = pieces(module, final)
        values: list[GraphValue] = [(piece.graph, piece.value) for piece in joined]
        values = values or [(graph, operand) for operand in graph.operands[final.name]]
        names = joined_names(final.op_name)
        for at in range(count):
            if at >= len(values):
                yield _Sent("", frozenset(), None)
                continue
            of = values[at]
            origins = set(_origins(module, of))
            if count == 1:
                origins.update(origins_of(module, final))
            name = names[at] if len(names) == count else "" if names else final.op_name
            parameter = self._left_from.of(of[0].name, of[1])
            yield _Sent(name, frozenset(origins), parameter, len(names) == count > 1)

    @cached_property
    def _left_from(self) -> EntryParameters:
        return EntryParameters(self.optimized)

    def _groups_of(self, made: Instruction) -> Groups:
        kind = kind_of(made.opcode)
        permute = kind is not None and KINDS[kind].in_pairs
        text = made.attribute("source_target_pairs" if permute else "replica_groups") or "{}"
        return self.finder.groups(text, permute=permute)


def _place(made: Instruction) -> tuple[str, str]:
    return made.computation, made.name


def _origins(module: Module, place: GraphValue) -> Iterator[Origin]:
    """Yield the names and lines of what made a value, through what only arranges it anew.

    What a loop hands to its next step, or out, was made in the step before (`pipelined`). A member
    of a combined collective is what its operand is: the name is that of the first
    (`test_sums_within_hosts_that_are_summed_between_them_keep_their_parameters`).
    """
    before: GraphValue | None = place
    seen: set[tuple[str, HloValue]] = set()  # a loop may hand values around in a circle
    while before is not None and (before[0].name, before[1]) not in seen:
        graph, start = before
        seen.add((graph.name, start))
        chain = list(graph.upward(start, VIEWS))
        joined = _member(graph, chain[-1])
        for value in chain if joined is None else chain[:-1]:
            for node in _makers(module, graph, value):
                yield from origins_of(module, node)
        before = _step_before(module, graph, chain[-1]) if joined is None else (graph, joined)


def _makers(module: Module, graph: Graph, value: HloValue) -> Iterator[Instruction]:
    """Yield what makes a value; of a fusion, which may be named after another step, its end too."""
    node = graph.maker(value)
    if node is None:
        return
    yield node
    if (fused := _fused(module, graph, value)) is not None:
        yield fused[1]


def _fused(module: Module, graph: Graph, value: HloValue) -> tuple[Graph, Instruction] | None:
    """Return the computation of the fusion that makes a value, and its last step."""
    node = graph.maker(value)
    if node is not None and node.opcode == "fusion-done":
        node = graph.maker(node.operands[0])
    if node is None or node.opcode not in ("fusion", "fusion-start"):
        return None
    inner = module.computations.get(node.calls("calls"))
    if inner is None:
        return None
    end = inner.maker(inner.resolve(inner.root.value.at(*value.element)))
    return (inner, end) if end is not None else None


def _part_written(module: Module, graph: Graph, value: HloValue) -> GraphValue | None:
    """Return the part that an update in place writes, None for another value."""
    node = graph.maker(value)
    inner, end = _fused(module, graph, value) or (graph, node)
    if end is None or end.opcode != "dynamic-update-slice":
        return None
    part = inner.source(inner.operands[end.name][1], VIEWS)
    entered = inner.maker(part)
    if inner is graph or entered is None or entered.opcode != "parameter":
        return inner, part
    begun = graph.maker(node.operands[0]) if node and node.opcode == "fusion-done" else node
    return (graph, graph.operands[begun.name][entered.number]) if begun else None


def _member(graph: Graph, value: HloValue) -> HloValue | None:
    """Return what a combined collective sends as one of its results, None for another value."""
    node = graph.maker(value)
    if node is not None and node.opcode.endswith("-done"):
        node = graph.maker(node.operands[0])
    if node is None or kind_of(node.opcode) is None or not value.element:
        return None
    operands, at = graph.operands[node.name], value.element[-1]
    return operands[at] if 1 < len(operands) > at else None


def _step_before(module: Module, graph: Graph, value: HloValue) -> GraphValue | None:
    """Return what the last step of a loop handed on, for what it hands in or out.

    What a loop stacks was written by its last step as a part of the whole (`norms_of_layers`).
    """
    node = graph.maker(value)
    if (part := _part_written(module, graph, value)) is not None:
        return part
    if node is None or node.opcode != "while":
        return module.carried(graph, value)
    body = module.computations.get(node.calls("body"))
    if body is None or not value.element:
        return None
    return body, body.resolve(body.root.value.at(*value.element))
