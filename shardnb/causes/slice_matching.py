"""Which collective right after partitioning a transfer between slices was, or is a part of.

TPU makes of a collective over several slices one within each slice and one between them, which it
hands to the hosts under another channel, and without a name of JAX's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from shardnb.collectives.transfers import rendezvous
from shardnb.report.model import Collective
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import COPIES, VIEWS
from shardnb.texts.replica_groups import AxisFinder

_LAID_OUT = VIEWS | COPIES | {"custom-call", "fusion", "recv-done", "send-done"}
"""What TPU lays out for the network, and for what follows; `ZeroCrop` fills up to a tile."""

Made = tuple[Instruction, ...]
Member = tuple[Instruction, int]
"""A collective of the optimized program, and which of those that it sends together."""


@dataclass(frozen=True)
class SliceSteps:
    """Tells what the steps of collectives over several slices were, by each other.

    One step joins the devices of a slice, the other those of one place in each.
    """

    optimized: Module
    made: Sequence[Instruction]
    finder: AxisFinder

    def match(
        self,
        transfers: Sequence[Collective],
        finals: Mapping[int, Member],
        found: Mapping[int, Instruction],
        likely: Mapping[int, Made],
    ) -> tuple[dict[int, Instruction], dict[int, Made]]:
        """Return what `finals` within slices and transfers were, and what each may have been."""
        packed = self._packed(finals, found)
        known = {number: made for number, made in found.items() if packed.get(number) != ()}
        alike = {number: ones for number, ones in packed.items() if ones}
        known |= {number: ones[0] for number, ones in alike.items()}
        every = {**likely, **alike}
        steps = {
            (final.name, at): every.get(number, (known[number],))
            for number, (final, at) in finals.items()
            if number in known
        }
        whole = self._transfers(transfers, steps)
        return known | {number: ones[0] for number, ones in whole.items()}, alike | whole

    def _packed(
        self, finals: Mapping[int, Member], found: Mapping[int, Instruction]
    ) -> dict[int, Made]:
        """Return for ids all sums that TPU joined end to end into one array, none if not known.

        It does so with small ones, as gradients of biases are (`layers_over_two_slices`). `found`
        is the one of them whose channel it kept.
        """
        joined = {}
        for number, (final, at) in finals.items():
            made, count = found.get(number), self._sent(final, at)
            if final.opcode != "all-reduce" or count in (None, made and size_of(made)):
                continue
            # The larger ones are beside it (`convolutions_over_two_slices`).
            others = {found.get(one) for one in finals if finals[one][0] == final and one != number}
            alike = [one for one in self.made if one.opcode == "all-reduce" and one not in others]
            groups = {_joined(one, self.finder) for one in ([made] if made else alike)}
            alike = [one for one in alike if _joined(one, self.finder) in groups]
            whole = len(groups) == 1 and sum(map(size_of, alike)) == count
            first = [made] if made else []
            joined[number] = (*first, *(one for one in alike if one != made)) if whole else ()
        return joined

    def _sent(self, final: Instruction, at: int = 0) -> int | None:
        """Return how many elements an operand had before they were filled up to a tile."""
        graph = self.optimized.graph_of(final)
        node = graph.maker(graph.source(graph.operands[final.name][at], VIEWS | COPIES))
        if node is None or "ZeroCrop" not in node.attributes:
            return None
        array = graph.array(graph.operands[node.name][0])
        return math.prod(array[1]) if array is not None else None

    def _transfers(
        self, transfers: Sequence[Collective], steps: Mapping[tuple[str, int], Made]
    ) -> dict[int, Made]:
        """Return for ids what transfers were, by themselves or by the other step.

        `steps` is what those within a slice were, by their names and members.
        """
        found = {}
        for one in transfers:
            send = self._send(one)
            found[one.id] = (
                self._together(one, send) or self._alone(one, send) or self._continued(one, steps)
            )
        return {number: made for number, made in found.items() if made}

    def _send(self, transfer: Collective) -> Instruction:
        name = transfer.instruction.partition(" = ")[0].lstrip("%")
        return next(one for one in self.optimized.of_kind("send") if one.name == name)

    def _together(self, transfer: Collective, send: Instruction) -> Made:
        """Return all that go between the same devices, where it has their elements end to end.

        So TPU sends the gradients of two matrices (`matrices_over_two_slices`).
        """
        wanted = frozenset(map(frozenset, transfer.groups))
        alike = [one for one in self.made if kind_of(one.opcode) == transfer.kind]
        alike = [one for one in alike if one.arrays and one.arrays[0][0] == transfer.dtype]
        alike = [one for one in alike if _joined(one, self.finder) == wanted]
        count = self._sent(send) or math.prod(transfer.shape)
        return tuple(alike) if len(alike) > 1 and sum(map(size_of, alike)) == count else ()

    def _alone(self, transfer: Collective, send: Instruction) -> Made:
        """Return what a transfer was by itself; nothing where it has another number of elements."""
        made = between_slices(transfer, self.made, self.finder)
        if made is None:
            return ()
        count, wanted = self._sent(send), frozenset(map(frozenset, transfer.groups))
        other = count not in (None, size_of(made)) and _joined(made, self.finder) == wanted
        return () if other else (made,)

    def _continued(self, transfer: Collective, steps: Mapping[tuple[str, int], Made]) -> Made:
        """Return what the other step was, where that goes between the slices as well."""
        other = steps.get(self._other_step(transfer), ())
        fits = all(
            kind_of(made.opcode) == transfer.kind and joins_within(transfer, made, self.finder)
            for made in other
        )
        return other if fits else ()

    def _other_step(self, transfer: Collective) -> tuple[str, int]:
        """Name the step within a slice that sends what is transferred, or takes it; "" for none."""
        send = self._send(transfer)
        graph = self.optimized.graph_of(send)
        value = graph.source(graph.operands[send.name][0], VIEWS | COPIES)
        before = graph.maker(value)
        if before is not None and kind_of(before.opcode) is not None:
            return before.name, value.element[0] if value.element else 0
        label = rendezvous(send.attributes)
        received = (one for one in self.optimized.of_kind("recv") if one.operands)
        ends = [one for one in received if rendezvous(one.attributes) == label]
        sizes = {math.prod(transfer.shape), self._sent(send) or 1, 1}
        return _taker(graph, ends[0].value, sizes) if len(ends) == 1 else ("", 0)


def _taker(graph: Graph, value: HloValue, sizes: Container[int]) -> tuple[str, int]:
    """Name the one collective that takes a value as it is, laid out anew; "" for none."""
    queue, seen, found = deque([value]), set[Instruction](), set[tuple[str, int]]()
    while queue:
        value = queue.popleft()
        for user in graph.users.get(value, ()):
            if kind_of(user.opcode) is not None:
                found.add((user.name, graph.operands[user.name].index(value)))
            elif user not in seen and user.opcode in _LAID_OUT:
                seen.add(user)
                alike = all(math.prod(shape) in sizes for _, shape in user.arrays)
                queue.extend(user.results if alike else ())
    return found.pop() if len(found) == 1 else ("", 0)


def between_slices(
    collective: Collective, made: Sequence[Instruction], finder: AxisFinder
) -> Instruction | None:
    """Return the one that a transfer can be: between the same devices, of as many elements.

    Else it is a part of one over more devices. Of several that are alike it is what the hosts'
    name for it says. None where several are left.
    """
    alike = [one for one in made if kind_of(one.opcode) == collective.kind]
    around = [one for one in alike if joins_within(collective, one, finder)]
    wanted = frozenset(map(frozenset, collective.groups))
    same = [
        one
        for one in around
        if _joined(one, finder) == wanted and size_of(one) == math.prod(collective.shape)
    ]
    fitting = same or around
    named = rendezvous(collective.instruction).rpartition("_")[0]
    if len(fitting) > 1:
        fitting = [one for one in fitting if one.name == named]
    return fitting[0] if len(fitting) == 1 else None


def is_within_slices(collective: Collective, made: Instruction, finder: AxisFinder) -> bool:
    """Whether what has the channel of one over several slices can be it, or a step of it.

    Of a sum over all slices TPU makes a reduce-scatter within each, a sum between them, and an
    all-gather within each. One of the same kind is as large, or larger where few elements are laid
    out in a tile.
    """
    if not joins_within(collective, made, finder):
        return False
    kind = collective.made_as or collective.kind
    gathered = (kind, made.opcode) == ("all-reduce", "all-gather")  # as a sum among zeros
    if kind_of(made.opcode) == kind or (gathered and math.prod(collective.shape) == size_of(made)):
        return True
    shards = len(collective.groups[0]) if kind == "reduce-scatter" else 1
    whole = math.prod(collective.shape) * shards == size_of(made)
    return made.opcode == "all-reduce" and kind in ("reduce-scatter", "all-gather") and whole


def first_steps(
    member: Collective, made: Sequence[Instruction], finder: AxisFinder
) -> list[Instruction]:
    """Return the sums over several slices whose step in each a member can be.

    What gathers one within a slice at the end has its channel (`convolutions_over_two_slices`).
    """
    return [
        one
        for one in made
        if one.shapes[:1] == (member.shape,) and one.arrays[0][0] == member.dtype
        if is_within_slices(member, one, finder)
    ]


def joins_within(collective: Collective, made: Instruction, finder: AxisFinder) -> bool:
    """Whether what was made joins, in each of its groups, all devices of some of a collective's."""
    joined = _joined(made, finder)
    groups = map(frozenset, collective.groups)
    return bool(collective.groups) and all(any(g <= other for other in joined) for g in groups)


def _joined(made: Instruction, finder: AxisFinder) -> frozenset[frozenset[int]]:
    kind = kind_of(made.opcode)
    permute = kind is not None and KINDS[kind].in_pairs
    name = "source_target_pairs" if permute else "replica_groups"
    groups = finder.groups(made.attribute(name) or "{}", permute=permute)
    return frozenset(map(frozenset, groups))


def size_of(made: Instruction) -> int:
    """Return how many elements a collective returns."""
    return sum(math.prod(shape) for _, shape in made.arrays)
