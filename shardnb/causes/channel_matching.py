"""Which collective right after partitioning each member of an optimized collective was."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.causes.copies import Copies
from shardnb.causes.dataflow_order import in_order
from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.made_otherwise import is_made_otherwise, unrepeated_size
from shardnb.causes.member_matching import (
    Evidence,
    FlowMatching,
    StepMatching,
    by_channel,
    inlined_into,
    left_over,
    looks,
    may_become,
    sent_together,
    without_ones,
)
from shardnb.causes.merged_sums import Place, merged_sums
from shardnb.causes.sent_operands import SentOperands
from shardnb.causes.slice_matching import SliceSteps, first_steps, is_within_slices, size_of
from shardnb.collectives.fused import Fused, fused_collectives
from shardnb.collectives.transfers import BETWEEN_SLICES
from shardnb.report.model import Collective, Groups
from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import PARTS
from shardnb.texts.replica_groups import AxisFinder

_PAIRS = "source_target_pairs"

_ByShape = dict[tuple[int, ...], list[Instruction]]


@dataclass
class Matcher:
    """Finds members by channel, and those of combined collectives by shape, name and order.

    TPU gives some a new channel: these are found by what they move, up to the program's parameter.
    `likely` are those that a collective may have been, as the evidence is the same, or was all of.
    """

    optimized: Module
    made_from: EntryParameters
    finder: AxisFinder
    likely: dict[int, tuple[Instruction, ...]] = field(default_factory=dict)
    _by_channel: dict[int, list[Instruction]] = field(init=False)
    _final: dict[int, list[Instruction]] = field(init=False)
    _combined: set[int] = field(default_factory=set)
    _merged: Mapping[Place, tuple[Instruction, ...]] = field(default_factory=dict)
    _taken: set[tuple[str, str]] = field(default_factory=set)
    _homes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _groups_read: dict[tuple[str, str], Groups] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the collectives of both programs by their channels."""
        self._by_channel = by_channel(self.partitioned)
        self._final = by_channel(self.optimized)

    @property
    def partitioned(self) -> Module:
        """The program right after partitioning."""
        return self.made_from.module

    @property
    def made(self) -> list[Instruction]:
        """The collectives right after partitioning."""
        return [one for ones in self._by_channel.values() for one in ones]

    def match(self, collectives: Sequence[Collective]) -> dict[int, Instruction]:
        """Return for each id the instruction right after partitioning, where it is known."""
        self._merged = merged_sums(self.partitioned, collectives, self._groups_of)
        sliced = [one for one in collectives if one.algorithm == BETWEEN_SLICES]
        here = [one for one in collectives if one.algorithm != BETWEEN_SLICES]
        groups = [group for group in sent_together(here) if group[0].channel is not None]
        self._combined = {group[0].channel or 0 for group in groups if len(group) > 1}
        alone = [group[0] for group in groups if len(group) == 1]
        found = {one.id: made for one in alone if (made := self._single(one)) is not None}
        # What kept its channel says which loop the others stand in.
        for group in sorted(groups, key=lambda group: not self._kept(group[0])):
            if len(group) > 1:
                found |= self._members(group)
            elif group[0].id not in found and (made := self._other(group[0])) is not None:
                found[group[0].id] = made
        for group in groups:
            if (final := self._instruction(group[0])) is not None:
                likely = self._copies.match(final, group, found)
                self.likely |= {number: ones for number, ones in likely.items() if len(ones) > 1}
                found |= {number: ones[0] for number, ones in likely.items()}
        found |= left_over(alone, found, self._by_channel)
        for number, made in found.items():
            if ones := self._merged.get((made.computation, made.name), ()):
                self.likely[number] = made, *(one for one in ones if one != made)
        if sliced:
            every = ((one, at) for group in groups for at, one in enumerate(group))
            numbered = ((one.id, self._instruction(one), at) for one, at in every)
            finals = {number: (made, at) for number, made, at in numbered if made is not None}
            steps = SliceSteps(self.optimized, self.made, self.finder)
            found, likely = steps.match(sliced, finals, found, self.likely)
            self.likely |= likely
        return found

    def _take(self, made: Instruction) -> None:
        """Leave one to no other collective, nor what is sent as one with it."""
        place = made.computation, made.name
        self._taken |= {(one.computation, one.name) for one in self._merged.get(place, (made,))}

    def _is_left(self, made: Instruction) -> bool:
        """Whether a collective is not known to be another one."""
        return (made.computation, made.name) not in self._taken

    @cached_property
    def _copies(self) -> Copies:
        return Copies(self.optimized, self.made_from, self.finder, self.made, self._flow)

    def _single(self, collective: Collective) -> Instruction | None:
        """Return the collective of a channel; those that the program calls may share one."""
        final = self._instruction(collective)
        if final is not None and self._is_of_the_compiler(collective, final):
            return None
        made = self._of_channel(collective, final, self._by_channel[collective.channel or 0])
        if made is None or (final is not None and not self._agree(collective, final, made)):
            return None
        self._take(made)
        if final is not None:
            self._steps.add(final, 0, made)
            self._homes[self._place(final)].add(inlined_into(self.partitioned, made.computation))
        return made

    def _other(self, collective: Collective) -> Instruction | None:
        """Return what has another channel now, or that a permute of TPU's belongs to."""
        final = self._instruction(collective)
        if final is None:
            return None
        if self._is_of_the_compiler(collective, final):
            return self._whole(final)
        return self._renumbered(collective, final)

    def _place(self, final: Instruction) -> str:
        """Name the computation that a collective stands in, or the fusion around it."""
        part = self._fused.get(final.computation)
        return part.fusion.computation if part is not None else final.computation

    def _of_channel(
        self, collective: Collective, final: Instruction | None, made: Sequence[Instruction]
    ) -> Instruction | None:
        kind = collective.made_as or collective.kind
        ones = [one for one in made if kind_of(one.opcode) == kind]
        if not ones and len(made) == 1:
            return made[0]  # TPU sends it as another kind
        if len(ones) < 2:
            return ones[0] if ones else None
        if final is None:
            return None
        sizes = size_of(final), math.prod(collective.shape)
        ones = [one for one in ones if size_of(one) in sizes]
        same = [one for one in ones if one.name == final.name] or [
            one for one in ones if one.op_name and collective.op_name.endswith(one.op_name)
        ]
        return self._called(collective, final, same)

    def _called(
        self, collective: Collective, final: Instruction, ones: Sequence[Instruction]
    ) -> Instruction | None:
        """Tell apart what one `shard_map` calls: JAX gives all of it the same channel.

        First by JAX's name, which says the pass, by the lines and by the pairs of devices
        (`halo`, `ulysses`); then by what is sent: a part of an input, or what another
        one of them sent (`unrolled_ring`).
        """
        frames = self.optimized.frames(final)
        tests: tuple[Callable[[Instruction], bool], ...] = (
            lambda one: self.partitioned.path(one) == collective.op_name,
            lambda one: one.shapes[:1] == final.shapes[:1],
            lambda one: frames[: len(own := self.partitioned.frames(one))] == own,
            lambda one: one.attribute(_PAIRS) == final.attribute(_PAIRS),
        )
        for test in tests:
            ones = [one for one in ones if test(one)] or ones
        if len(ones) > 1:
            moved = [one for one in ones if self._move_alike(one, final)]
            return moved[0] if len(moved) == 1 else self._following(final, ones)
        return ones[0] if ones else None

    def _following(self, final: Instruction, ones: Sequence[Instruction]) -> Instruction | None:
        """Tell apart what follows from each other by the order (`stages_one_after_the_other`)."""
        every = self._final[final.channel or 0]
        finals = [one for one in every if looks(one) == looks(final)]
        made, left = in_order(self.partitioned, ones), in_order(self.optimized, finals)
        return made[left.index(final)] if made and len(made) == len(left) else None

    def _agree(self, collective: Collective, final: Instruction, made: Instruction) -> bool:
        """Whether what has a channel can be what had it: TPU may give it to another collective.

        What moves a loop's carry has no name at first, and later that of the copy that takes it,
        which a constraint is (`constraint_on_a_carry`).
        """
        name = collective.op_name
        if name and not made.op_name:
            users = self.partitioned.graph_of(made).users.get(made.value, ())
            copied = any(one.opcode == "copy" and one.op_name == name for one in users)
            return copied and size_of(final) == size_of(made)
        if not name and self._is_of_a_slice:
            return is_within_slices(collective, made, self.finder)
        if bool(name) != bool(made.op_name) or not name.endswith(made.op_name):
            return False
        return bool(name) or size_of(final) == size_of(made)

    @cached_property
    def _is_of_a_slice(self) -> bool:
        """Whether TPU compiled a program for each of several slices, which loses many names."""
        return self.optimized.num_partitions < self.partitioned.num_partitions

    def _move_alike(self, made: Instruction, final: Instruction) -> bool:
        """Whether both move a part of the same input, or what the same other one sent."""
        parameter = self._left_from.entering(final)
        if parameter is not None:
            return self.made_from.entering(made) == parameter
        started = self._left_from.starting(final)
        alike = started is not None and started == self.made_from.starting(made)
        return alike or self._steps.follows(made, final)

    def _instruction(self, collective: Collective) -> Instruction | None:
        name = collective.instruction.partition(" = ")[0].lstrip("%")
        finals = self._final[collective.channel or 0]
        return next((one for one in finals if one.name == name), None)

    def _is_of_the_compiler(self, collective: Collective, final: Instruction) -> bool:
        """Whether a permute is not a step of the program: TPU gives it a channel but no name."""
        if final.opcode.removesuffix("-start") != "collective-permute" or collective.op_name:
            return False
        made = self._by_channel[collective.channel or 0]
        return not any(
            kind_of(one.opcode) == "collective-permute" and not one.op_name for one in made
        )

    def _whole(self, permute: Instruction) -> Instruction | None:
        """Return the sum whose last rows a permute takes to the next device.

        TPU scatters a sum in blocks of a size that it likes, and corrects their bounds afterwards.
        """
        graph = self.optimized.graph_of(permute)
        node = graph.maker(graph.source(graph.operands[permute.name][0], PARTS))
        called = node.called if node is not None else ()
        parts = [self._fused[name] for _, name in called if name in self._fused]
        if len(parts) != 1 or parts[0].scattered() is None:
            return None
        made = [
            one
            for one in self._by_channel[parts[0].collective.channel or 0]
            if kind_of(one.opcode) == "all-reduce" and one.op_name == parts[0].fusion.op_name
        ]
        return made[0] if len(made) == 1 else None

    def _renumbered(self, collective: Collective, final: Instruction) -> Instruction | None:
        """Return what has another channel now, where only one can be meant.

        Of several that are alike it is what moves a part of the same input of the program, and of
        those what moves the same part (`scan_unrolled_over_sharded_layers`).
        """
        among_zeros = self._sent.is_among_zeros(final)
        alike = [
            one
            for one in self.made
            if self._is_left(one) and self._is_like(one, collective)
            if kind_of(one.opcode) != "all-gather" or collective.kind != "all-reduce" or among_zeros
        ]
        parameter = self._left_from.entering(final)
        moved = [(one, self.made_from.entering(one)) for one in alike]
        found = [one for one, other in moved if parameter is not None and other == parameter]
        found = found or [one for one, other in moved if parameter is None or other is None]
        part = self._left_from.part_entering(final)
        same = [one for one in found if self.made_from.part_entering(one) == part]
        found = same if same and part is not None and part.cuts else found
        places = {(one.computation, one.operands) for one in found}
        return found[0] if len(places) == 1 else None

    def _is_like(self, made: Instruction, collective: Collective) -> bool:
        """Whether two send as much between the same devices under the same name.

        TPU may send a gather as a sum among zeros. What a program scatters it may add up in whole,
        and under no name.
        """
        if self._groups_of(made) != collective.groups:
            return False
        size, kind = math.prod(collective.shape), collective.made_as or collective.kind
        summed = kind == "all-reduce" and collective.op_name != ""
        kinds = (kind, "all-gather") if summed else (kind,)
        if kind_of(made.opcode) in kinds and made.op_name == collective.op_name:
            return size in (size_of(made), unrepeated_size(self.partitioned, made, collective))
        if kind != "all-reduce" or kind_of(made.opcode) != "reduce-scatter" or collective.op_name:
            return False
        return size_of(made) * len(collective.groups[0]) == size

    def _groups_of(self, made: Instruction) -> Groups:
        key = made.computation, made.name
        if key not in self._groups_read:
            permute = kind_of(made.opcode) == "collective-permute"
            text = made.attribute(_PAIRS if permute else "replica_groups") or "{}"
            self._groups_read[key] = self.finder.groups(text, permute=permute)
        return self._groups_read[key]

    @cached_property
    def _steps(self) -> StepMatching:
        return StepMatching(self._left_from, self.made_from)

    @cached_property
    def _flow(self) -> FlowMatching:
        return FlowMatching(self.partitioned, self.optimized)

    @cached_property
    def _left_from(self) -> EntryParameters:
        return EntryParameters(self.optimized)

    @cached_property
    def _sent(self) -> SentOperands:
        return SentOperands(self.optimized, self._left_from, self._fused)

    @cached_property
    def _fused(self) -> dict[str, Fused]:
        return fused_collectives(self.optimized)

    def _members(self, group: list[Collective]) -> dict[int, Instruction]:
        channel = group[0].channel or 0
        final = self._instruction(group[0]) or self._final[channel][0]
        if self._copies.is_laid(final):
            return {}
        wanted = self._sent.evidence(final, len(group))
        zeros = [self._sent.is_among_zeros(final, at) for at in range(len(final.operands))]
        kind = group[0].made_as or group[0].kind
        kind = "all-gather" if kind == "all-reduce" and all(zeros) else kind
        pool = self._pool(group[0], kind, frozenset(one.name for one in wanted))
        found: dict[int, Instruction] = {}
        inputs = [self._sent.input(final, at) for at in range(len(group))]
        # What moves a part of an input is known best, so it leaves less to the others.
        for at in sorted(range(len(group)), key=lambda at: inputs[at] is None):
            member = group[at]
            if kind == "all-reduce" and any(zeros[at : at + 1]):
                found |= self._otherwise(member, final, at, wanted[at])
            if member.id in found or not (alike := self._alike(pool, member, final, at)):
                continue
            if inputs[at] is not None:
                alike = [one for one in alike if self.made_from.entering(one) == inputs[at]]
            alike = list(self._steps.alike(alike, final, at))
            for best in self._flow.likeliest(alike, final, at, wanted[at])[:1]:
                found[member.id] = best
                self._steps.add(final, at, best)
                self._take(best)
                home = inlined_into(self.partitioned, best.computation)
                self._homes[self._place(final)].add(home)
        for at, member in enumerate(group[: len(final.operands)]):
            if member.id not in found:
                found |= self._otherwise(member, final, at, wanted[at])
            if member.id not in found and self._is_of_a_slice:
                ones = first_steps(member, self.made, self.finder)
                step = self._flow.likeliest(ones, final, at, wanted[at])
                found |= {member.id: step[0]} if len(step) == 1 else {}
        return found

    def _alike(
        self, pool: _ByShape, member: Collective, final: Instruction, at: int
    ) -> list[Instruction]:
        """Return those of a pool that send as many elements as a member, to the same devices.

        TPU numbers the devices of each of several slices anew.
        """
        dtype, shape = final.arrays[at] if member.made_as else (member.dtype, member.shape)
        left = [one for one in pool[without_ones(shape)] if self._is_left(one)]
        alike = [one for one in left if may_become(one, dtype)]
        same = [one for one in alike if self._groups_of(one) == member.groups]
        return same if same or not self._is_of_a_slice else alike

    def _otherwise(
        self, member: Collective, final: Instruction, at: int, wanted: Evidence
    ) -> dict[int, Instruction]:
        """Return what a member may be that was made in another shape or as another kind."""
        among_zeros = self._sent.is_among_zeros(final, at)
        ones = [
            one
            for one in self.made
            if self._is_left(one)
            and self._groups_of(one) == member.groups
            and may_become(one, member.dtype)
            and is_made_otherwise(self.partitioned, one, member, among_zeros=among_zeros)
        ]
        found = self._flow.likeliest(ones, final, at, wanted)
        if len(found) == 1:
            self._take(found[0])
        if not found:
            return {}
        self.likely[member.id] = tuple(found)
        return {member.id: found[0]}

    def _pool(self, first: Collective, kind: str, names: frozenset[str]) -> _ByShape:
        """Return by shape the collectives that may have gone into a combined one, in order.

        Dimensions of size one do not count: XLA drops them of labels that are picked from logits
        (`test_labels_that_are_picked_from_logits_and_their_sum_are_told_apart`).
        TPU may give a channel of its own to what it makes, perhaps one that another had, and add up
        blocks among zeros in place of a gather.
        """
        pool: _ByShape = defaultdict(list)
        channel = first.channel or 0
        home = self._home(first, kind)
        for number, ones in self._by_channel.items():
            others = number != channel and number in self._combined
            for one in ones:
                taken = not self._is_left(one) or (others and one.op_name not in names)
                if inlined_into(self.partitioned, one.computation) != home or taken:
                    continue
                if kind_of(one.opcode) == kind:
                    pool[without_ones(one.arrays[0][1])].append(one)
                elif kind == "all-reduce" and kind_of(one.opcode) == "reduce-scatter":
                    # TPU sums in full what a program scatters, and slices it afterwards.
                    inner = self.partitioned.graph_of(one)
                    summed = inner.array(inner.operands[one.name][0])
                    pool[without_ones(summed[1] if summed is not None else ())].append(one)
        return pool

    def _kept(self, collective: Collective, kind: str = "") -> list[Instruction]:
        """Return what had the channel of a collective, and was of its kind."""
        kind = kind or collective.made_as or collective.kind
        made = self._by_channel[collective.channel or 0]
        return [one for one in made if kind_of(one.opcode) == kind]

    def _home(self, first: Collective, kind: str) -> str | None:
        """Name the computation right after partitioning that a combined collective was made in.

        It is that of what else stands beside it, of what had its channel, or the program's own.
        """
        beside = self._homes[self._place(self._final[first.channel or 0][0])]
        kept = self._kept(first, kind)
        home = inlined_into(self.partitioned, kept[0].computation) if kept else ""
        entered = first.within != () and home == self.partitioned.entry  # no loop takes one in
        if home and not entered and (not beside or home in beside):
            return home
        if len(beside) == 1:
            return next(iter(beside))
        # Products in steps, which TPU unrolled, stand beside it as well.
        outside = not first.within and (not beside or self.partitioned.entry in beside)
        return self.partitioned.entry if outside else None
