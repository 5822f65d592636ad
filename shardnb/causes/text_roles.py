"""Roles of collectives in a program of which nothing but its own text is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardnb.bugs import contained
from shardnb.causes.dataflow import Dataflow
from shardnb.causes.flows import Flows
from shardnb.causes.roles import Purpose, Roles
from shardnb.causes.rule_factors import Factors
from shardnb.causes.training import Training
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.report.model import Collective, Mesh
from shardnb.texts.hlo import Module
from shardnb.texts.sharding_rules import Rules
from shardnb.texts.shardings import LayoutReader


def with_roles(
    collectives: Sequence[Collective], module: Module, mesh: Mesh
) -> tuple[Collective, ...]:
    """Return collectives with the roles that the text of their own program shows.

    Each takes what is sent at its place in the text. What a sum adds up is not known there, so only
    gradients, gathers of parameters and returned numbers have a role.
    """
    with contained("what the collectives are for"):
        program = Unpartitioned(module, LayoutReader(mesh))
        training = Training(Flows(module))
        roles = Roles(program, Dataflow(training, Factors(program, Rules({}))))
        return tuple(_with_role(roles, collectives, module))
    return tuple(collectives)


def _with_role(
    roles: Roles, collectives: Sequence[Collective], module: Module
) -> Iterator[Collective]:
    instructions = {one.name: one for one in module.collectives}
    members = Counter[str]()
    for one in collectives:
        name = one.instruction.partition(" = ")[0].lstrip("%")
        instruction, at = instructions.get(name), members[name]
        members[name] += 1
        if instruction is None:
            yield one
            continue
        graph = module.graph_of(instruction)
        operands = graph.operands[name]
        purpose = roles.sent(one, graph, operands[at if at < len(operands) else 0], instruction)
        # A fusion may have lost the name that says which pass reads an argument: no sign of state.
        known = purpose if purpose.role != "optimizer-state" else Purpose()
        role = "called" if known.role is None and one.generated is False else known.role
        yield replace(one, role=role, role_of=known.of)
