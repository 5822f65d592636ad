"""Collectives that TPU sends in another shape or as another kind: after a loop, or among zeros."""

from __future__ import annotations

import math

from shardnb.report.model import Collective
from shardnb.terms.collectives import kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import VIEWS


def is_made_otherwise(
    module: Module, made: Instruction, member: Collective, *, among_zeros: bool
) -> bool:
    """Whether a member may be a collective of another shape or kind right after partitioning.

    Sums of a loop's turns are completed once, after the loop. Of what was gathered, TPU stores
    blocks `among_zeros`, end to end, and adds them up (`experts_by_a_constraint`).
    """
    if among_zeros:
        size = sum(math.prod(shape) for _, shape in made.arrays)
        return kind_of(made.opcode) == "all-gather" and size == math.prod(member.shape)
    summed = kind_of(made.opcode) == member.kind == "all-reduce"
    return summed and _over_turns(module, made) == member.shape


def unrepeated_size(module: Module, made: Instruction, member: Collective) -> int | None:
    """Return the size of a gather of what is repeated, where TPU gathers it before.

    So it does with the gradient of a mean (`mean_over_tokens`). None where nothing is repeated.
    """
    graph = module.graph_of(made)
    source = graph.maker(graph.operands[made.name][0])
    if kind_of(made.opcode) != "all-gather" or source is None or source.opcode != "broadcast":
        return None
    array = graph.array(graph.operands[source.name][0])
    return math.prod(array[1]) * len(member.groups[0]) if array is not None else None


def _over_turns(module: Module, made: Instruction) -> tuple[int, ...] | None:
    """Return the shape in which a loop stacks a sum, or adds it up; None where it does neither.

    The gradients of a layer norm are stacked so by a scan over layers
    (`layers_with_a_norm_scanned`).
    """
    graph, value = module.graph_of(made), made.value
    users = list(graph.users.get(value, ())) if module.is_loop(graph) else []
    while len(users) == 1 and users[0].opcode in VIEWS:
        value = users[0].value
        users = list(graph.users.get(value, ()))
    if len(users) != 1:
        return None
    stacks = users[0].opcode == "dynamic-update-slice" and users[0].operands[1] == value
    return users[0].arrays[0][1] if stacks or users[0].opcode == "add" else None
