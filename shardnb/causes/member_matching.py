"""Which of several collectives right after partitioning a member of a combined one was.

Shape, name and line tell most. Operations of a comprehension, of a loop that Python unrolls, or of
a library's layer that a model calls several times have one name and one line: then the program's
arguments that they take and its results that they reach tell them apart, which have the same
numbers in the partitioned and in the optimized program.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.flows import Flows
from shardnb.causes.origin_lines import Origin, origin_of
from shardnb.collectives.find import is_generated
from shardnb.report.model import Collective
from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import COPIES, VIEWS

_NARROW = ("bf16", "f16")


class Signature(NamedTuple):
    """The arguments that the operations which make a value take, and the results it reaches.

    It reaches a result element by element, as a gradient does the new value of its parameter.
    """

    arguments: frozenset[int]
    results: frozenset[int]


@dataclass
class _Signatures:
    """The signatures of one module's values; it is walked over when the first is asked for."""

    module: Module
    apart: bool = False
    _known: dict[tuple[str, str, int], Signature] = field(default_factory=dict)

    @cached_property
    def _flows(self) -> Flows:
        return Flows(self.module, self.apart)

    def of(self, node: Instruction, at: int) -> Signature:
        """Return the signature of an operand."""
        key = node.computation, node.name, at
        if key not in self._known:
            self._known[key] = self._of(node, at)
        return self._known[key]

    def of_piece(self, node: Instruction, at: int) -> frozenset[int] | None:
        """Return the results that a piece of what is sent end to end reaches, None for another."""
        piece = self._flows.piece(node, at)
        ends = (at for at, end in enumerate(self._flows.results) if end & piece)
        return frozenset(ends) if piece else None

    def returned(self, node: Instruction, at: int) -> frozenset[int]:
        """Return the results of the program that a member is, in another layout at most."""
        graph, found = self.module.graph_of(node), set[int]()
        queue = [node.results[at]] if graph is self._flows.entry and at < len(node.results) else []
        while queue:
            value = queue.pop()
            found.update(end for end, result in enumerate(graph.results) if result == value)
            users = (user for user in graph.users.get(value, ()) if user.opcode in VIEWS | COPIES)
            queue += (user.value for user in users)
        return frozenset(found)

    def _of(self, node: Instruction, at: int) -> Signature:
        flows, graph = self._flows, self.module.graph_of(node)
        mask, taken = flows.reaching(graph, graph.operands[node.name][at]), set[int]()
        for start in flows.started(mask):
            inside = self.module.graph_of(start)
            parts = (flows.part_of(inside, operand) for operand in inside.operands[start.name])
            taken.update(part for part in parts if part is not None)
        sums = mask >> flows.arguments + 1
        ends = (mask >> flows.arguments + 1 & sums for mask in flows.results)
        return Signature(frozenset(taken), frozenset(at for at, end in enumerate(ends) if end))


class Evidence(NamedTuple):
    """What is known of a member: its name, the origin of its operand, its element type."""

    name: str
    origin: Origin
    dtype: str


class FlowMatching:
    """Tells by their signatures which collective right after partitioning one of the end was."""

    def __init__(self, partitioned: Module, optimized: Module) -> None:
        """Take the program right after partitioning, and the optimized one."""
        self._partitioned = _Signatures(partitioned)
        self._optimized = _Signatures(optimized, apart=True)

    def likeliest(
        self, ones: Sequence[Instruction], final: Instruction, at: int, wanted: Evidence
    ) -> Sequence[Instruction]:
        """Return those that the evidence tells least from operand `at` of a collective.

        What it takes and reaches says more than a name and lines: a fusion has those of only one of
        its results (`norm_and_bias_of_a_convolution`).
        """
        if len(ones) < 2:
            return ones
        known = at < len(final.operands) and any(self._optimized.of(final, at))
        told = self.alike(ones, final, at) if known else ones
        module = self._partitioned.module
        scores = [_score(module, one, wanted) for one in told]
        most = [one for one, score in zip(told, scores, strict=True) if score == max(scores)]
        return most if known else self.alike(most, final, at)

    def alike(
        self, ones: Sequence[Instruction], final: Instruction, at: int
    ) -> Sequence[Instruction]:
        """Return those that send what a collective has as operand `at`.

        All of them where that does not tell (`three_projections_of_one_line`).
        """
        if len(ones) < 2 or at >= len(final.operands):
            return ones
        wanted = self._optimized.of(final, at)
        ones = [one for one in ones if self._partitioned.of(one, 0) == wanted] or ones
        # One gradient reaches the new value of a parameter and of both its moments
        # (`biases_gathered_after_adam`).
        ends = self._optimized.returned(final, at)
        same = [one for one in ones if ends and self._partitioned.returned(one, 0) == ends]
        return same or ones

    def reaching(
        self, ones: Sequence[Instruction], final: Instruction, at: int
    ) -> Sequence[Instruction]:
        """Return those that reach the results of a piece of what is sent end to end; all else.

        Its shape says little, as XLA stores some transposed (`filters_of_one_size`).
        """
        reached = self._optimized.of_piece(final, at) if len(ones) > 1 else None
        if reached is None:
            return ones
        return [one for one in ones if self._partitioned.of(one, 0).results == reached] or ones


@dataclass
class StepMatching:
    """Tells steps of one sum over several axes by what they take: another step's result, or none.

    Sums of scalars over two axes are alike in all else (`adafactor_step`).
    """

    optimized: EntryParameters
    partitioned: EntryParameters
    _was: dict[tuple[str, int], Instruction] = field(default_factory=dict)

    def add(self, final: Instruction, at: int, made: Instruction) -> None:
        """Keep what a member of a collective was right after partitioning."""
        self._was[final.name, at] = made

    def follows(self, made: Instruction, final: Instruction, at: int = 0) -> bool:
        """Whether both take what the same other collective sent, right after partitioning."""
        before, was = self.optimized.sent_by(final, at), self.partitioned.sent_by(made)
        if before is None or was is None:
            return False
        return self._was.get((before.collective.name, before.member)) == was.collective

    def alike(
        self, ones: Sequence[Instruction], final: Instruction, at: int
    ) -> Sequence[Instruction]:
        """Return those that take what operand `at` of a collective is; all where none does."""
        if self.optimized.sent_by(final, at) is None:
            return [one for one in ones if self.partitioned.sent_by(one) is None] or ones
        return [one for one in ones if self.follows(one, final, at)] or ones


def sent_together(collectives: Sequence[Collective]) -> list[list[Collective]]:
    """Return the members of each collective, in their order; alone what is sent alone."""
    groups: dict[tuple[int, ...], list[Collective]] = defaultdict(list)
    for collective in collectives:
        groups[tuple(sorted((collective.id, *collective.combined_with)))].append(collective)
    return list(groups.values())


def may_become(made: Instruction, dtype: str) -> bool:
    """Whether a collective may have this element type in the end.

    CPU widens narrow floats; TPU rounds before it sends what only a product takes.
    """
    own = made.arrays[0][0]
    return own == dtype or (own in _NARROW and dtype == "f32") or (own, dtype) == ("f32", "bf16")


def left_over(
    alone: Sequence[Collective],
    found: Mapping[int, Instruction],
    made: Mapping[int, Sequence[Instruction]],
) -> dict[int, Instruction]:
    """Match what a `shard_map` calls by what is left, if one is left on both sides.

    All of it shares a channel, by which `made` has the collectives right after partitioning. One of
    the backward pass may have neither a name nor a line in the end
    (`ragged_exchange_differentiated`).
    """
    taken = {(one.computation, one.name) for one in found.values()}
    left: dict[tuple[int, str, int], list[Collective]] = defaultdict(list)
    for one in alone:
        if one.id not in found and not one.generated:
            left[one.channel or 0, one.kind, math.prod(one.shape)].append(one)
    matched = {}
    for (channel, kind, size), ones in left.items():
        alike = [
            one
            for one in made.get(channel, ())
            if kind_of(one.opcode) == kind and not is_generated(one)
            if sum(math.prod(shape) for _, shape in one.arrays) == size
            if (one.computation, one.name) not in taken
        ]
        if len(ones) == len(alike) == 1:
            matched[ones[0].id] = alike[0]
    return matched


def by_channel(module: Module) -> dict[int, list[Instruction]]:
    """Return a module's collectives by their channels."""
    found: dict[int, list[Instruction]] = defaultdict(list)
    for instruction in module.collectives:
        if instruction.channel is not None:
            found[instruction.channel].append(instruction)
    return found


def inlined_into(module: Module, computation: str) -> str:
    """Name the computation that the body of a shard_map is inlined into, or a loop's body."""
    callers = module.callers.get(computation, ())
    while len(callers) == 1 and callers[0].opcode == "call":
        computation = callers[0].computation
        callers = module.callers.get(computation, ())
    return computation


def _score(module: Module, made: Instruction, wanted: Evidence) -> int:
    """Weigh a candidate of the right shape: names, lines and the element type tell the rest."""
    mine = origin_of(module, made)
    named = bool(wanted.name) and mine[0].endswith(wanted.name)
    alike = bool(mine[0]) and mine[0] == wanted.origin[0]
    same = alike and mine == wanted.origin
    return 4 * named + 8 * same + 2 * alike + (made.arrays[0][0] == wanted.dtype)


def looks(one: Instruction) -> tuple[object, ...]:
    """Return what an instruction has in common with those that follow from each other.

    A `-start` has the shape of its operand first, and that of its result
    (`ring_whose_gradient_is_sent_back`).
    """
    return one.op_name, len(one.operands), one.shapes[:1]


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its dimensions of size one."""
    return tuple(size for size in shape if size != 1)
