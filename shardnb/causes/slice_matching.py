"""Which collective right after partitioning a transfer between slices was, or is a part of.

TPU makes of a collective over several slices one within each slice and one between them, which it
hands to the hosts under another channel, and without a name of JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardnb.collectives.transfers import rendezvous
from shardnb.report.model import Collective
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts.instruction import Instruction
from shardnb.texts.replica_groups import AxisFinder


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
        if _joined(one, finder) == wanted and _size(one) == math.prod(collective.shape)
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
    if kind_of(made.opcode) == kind:
        return True
    shards = len(collective.groups[0]) if kind == "reduce-scatter" else 1
    whole = math.prod(collective.shape) * shards == _size(made)
    return made.opcode == "all-reduce" and kind in ("reduce-scatter", "all-gather") and whole


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


def _size(made: Instruction) -> int:
    return sum(math.prod(shape) for _, shape in made.arrays)
