"""Sums that the program adds up at once: XLA adds the parts of each device first, and sends one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace

from shardnb.report.model import Collective, Groups
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import VIEWS

_STEPS = VIEWS | {"dynamic-slice"}
"""What a sum goes through before it is added to others: it may be scattered."""

Place = tuple[str, str]
"""The computation of a collective, and its name."""

_Class = tuple[int, Groups]
"""The number of elements that are summed, and the devices that do it."""


def merged_sums(
    partitioned: Module,
    collectives: Sequence[Collective],
    groups_of: Callable[[Instruction], Groups],
) -> Mapping[Place, tuple[Instruction, ...]]:
    """Return for each of these sums all that are sent as one with it, as what they add up to.

    So it is with what the projections to queries, keys and values make of one input's gradient
    (`projections_of_one_input`). That XLA did it shows in how many of their shape are left.
    """
    sums = [one for one in partitioned.collectives if kind_of(one.opcode) == "all-reduce"]
    made = Counter((_size(one), groups_of(one)) for one in sums)
    kept = Counter((_whole(one), one.groups) for one in collectives)
    added: dict[_Class, list[tuple[Instruction, ...]]] = {}
    for ones in _added_up(partitioned, groups_of):
        added.setdefault((_size(ones[0]), groups_of(ones[0])), []).append(ones)
    return {
        (one.computation, one.name): ones
        for kind, sets in added.items()
        if kept[kind] == made[kind] - sum(len(ones) - 1 for ones in sets)
        for ones in sets
        for one in ones
    }


def of_all_norms(
    collectives: tuple[Collective, ...],
    made: Sequence[Instruction],
    matched: Mapping[int, Instruction],
) -> tuple[Collective, ...]:
    """Leave out whose gradient a norm is of, where XLA merged sums of scalars.

    It adds the local norms of several gradients first, and sends the sum in the name of one.
    """
    kept = {(one.computation, one.name) for one in matched.values()}
    lost = [one for one in made if (one.computation, one.name) not in kept]
    if not any(one.shapes == ((),) for one in lost):
        return collectives
    return tuple(
        replace(one, role_of="") if one.role == "gradient-norm" else one for one in collectives
    )


def _size(made: Instruction) -> int:
    return sum(math.prod(shape) for _, shape in made.arrays)


def _whole(collective: Collective) -> int:
    """Return how many elements a collective sums, 0 if it sums none."""
    if not KINDS[collective.kind].reduces:
        return 0
    scattered = collective.kind == "reduce-scatter" and collective.groups
    return math.prod(collective.shape) * (len(collective.groups[0]) if scattered else 1)


def _added_up(
    module: Module, groups_of: Callable[[Instruction], Groups]
) -> Iterator[tuple[Instruction, ...]]:
    """Yield the sums that nothing takes but a chain of additions of such sums."""
    for graph in module.computations.values():
        known: dict[str, tuple[Instruction, ...]] = {}
        for node in graph.body:
            if kind_of(node.opcode) == "all-reduce" and len(node.operands) == 1:
                known[node.name] = (node,)
            elif node.opcode == "add":
                names = [_term(graph, operand, known) for operand in graph.operands[node.name]]
                every = [one for name in names if name for one in known[name]]
                if None in names or len(set(names)) < 2 or len(set(map(groups_of, every))) > 1:
                    continue
                known = {name: ones for name, ones in known.items() if name not in names}
                known[node.name] = tuple(every)
        yield from (ones for ones in known.values() if len(ones) > 1)


def _term(graph: Graph, operand: HloValue, known: Container[str]) -> str | None:
    """Name the sum, or what adds up sums, that a value is, where only one operation takes it."""
    for value in graph.upward(operand, _STEPS):
        if len(graph.users.get(value, ())) != 1:
            return None
        if value.name in known:
            return value.name
    return None
