"""What the causes of a program's collectives left for its findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.batch_dimensions import BatchDimensions
from shardnb.causes.rule_factors import Factors
from shardnb.causes.stated_shardings import is_shard_map_edge
from shardnb.causes.training import Training
from shardnb.report.model import Spec
from shardnb.report.spec import mesh_axis
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue, Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CALLERS, ELEMENTWISE, MOVES


class Moved(NamedTuple):
    """What a collective moves, and which instruction takes it; all before partitioning."""

    graph: Graph
    value: HloValue
    consumer: Instruction | None
    needed: Spec | None


@dataclass
class Dataflow:
    """What a program trains, what its collectives move by their ids, and where its batch goes."""

    training: Training
    factors: Factors
    moved: dict[int, Moved] = field(default_factory=dict)

    @cached_property
    def batch(self) -> BatchDimensions:
        """Where the batch goes; followed when it is first asked for."""
        return BatchDimensions(self.factors, self.training)

    @cached_property
    def data(self) -> frozenset[int]:
        """The arguments that are neither parameters nor state, nor leaves beside a parameter.

        Beside one can be what is applied as parameters are and is not known to be one, as integers
        that are scaled. Empty where nothing tells what is a parameter.
        """
        training = self.training
        roots = {training.root(number) for number in training.parameters} - {""}
        others = training.flows.entry.parameters.keys() - training.parameters - set(training.owners)
        known = (number for number in others if training.root(number) not in roots)
        return frozenset(known if training.parameters else ())

    def is_activation(self, graph: Graph, value: HloValue) -> bool:
        """Whether a value is computed from data, and not after the backward pass has begun."""
        flows = self.training.flows
        array = graph.array(value)
        if array is None or not array[0].startswith(("f", "bf")):
            return False
        if flows.reaching(graph, value) & flows.after_backward:
            return False
        return flows.part_of(graph, value) is None and self._is_made_of_data(graph, value)

    def _is_made_of_data(self, graph: Graph, value: HloValue) -> bool:
        entry, stack, seen = self.training.flows.entry, [(graph, value)], set[GraphValue]()
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            node = place[0].node(place[1])
            if node.opcode == "parameter" and place[0] is entry:
                if node.number in self.data:
                    return True
            else:
                stack += _made_of(self.training.flows.module, *place)
        return False

    def is_tensor_parallel(self, number: int, axes: Iterable[str]) -> bool:
        """Whether a product of the forward pass computes with the shards of a parameter.

        Then another operand, or the result, is sharded alike over one of these axes. A parameter
        that FSDP gathers leaves the axes to the batch.
        """
        names = {mesh_axis(axis) for axis in axes}
        return any(
            names & self._computed_with(node, number)
            for node, taken in self.training.products
            if taken == number and "transpose(" not in node.op_name
        )

    def _computed_with(self, node: Instruction, number: int) -> set[str]:
        """Return the axes over which a product has a parameter sharded as another of its arrays."""
        graph = self.training.flows.module.graph_of(node)
        rule = self.factors.known(graph, node)
        if rule is None:
            return set()
        operands = self.factors.operands(graph, node, rule)
        results, found = self.factors.results(graph, node, rule), set[str]()
        for at, value in enumerate(graph.operands[node.name][: len(operands)]):
            if self.training.flows.part_of(graph, value) != number:
                continue
            others = [*operands[:at], *operands[at + 1 :], *results]
            for factor, parts in operands[at].items():
                alike = {part[0] for other in others for part in other.get(factor, ())}
                found |= alike & {part[0] for part in parts}
        return found


def _made_of(module: Module, graph: Graph, value: HloValue) -> Iterator[GraphValue]:
    """Yield the values that one is computed from, in loops and calls as well."""
    node = graph.node(value)
    places: list[GraphValue | None] = []
    if node.opcode == "parameter":
        places = [module.outside(graph, value), module.carried(graph, value)]
    elif node.opcode == "while" and value.element:
        at = value.element[0]
        inner = module.inside(node, at)
        places = [(graph, graph.operands[node.name][at])]
        places += [module.carried(*inner) if inner is not None else None]
    elif node.opcode in CALLERS:
        called = (module.computations.get(name) for _, name in node.called)
        ends = ((inner, inner.root.value) for inner in called if inner is not None)
        places = [(inner, inner.resolve(end.at(*value.element))) for inner, end in ends]
    else:
        places = [(graph, operand) for operand in graph.operands[node.name]]
    yield from (place for place in places if place is not None)


def carries(node: Instruction) -> bool:
    """Whether the elements of an operand reach the result of an operation unmixed."""
    return node.opcode in ELEMENTWISE or node.opcode in MOVES or is_shard_map_edge(node)


def reached(graph: Graph, value: HloValue) -> set[int]:
    """Return the results of a computation that a value reaches element by element."""
    found, seen, left = set[int](), {value}, [value]
    while left:
        value = left.pop()
        found.update(at for at, result in enumerate(graph.results) if result == value)
        for user in graph.users.get(value, ()):
            if carries(user) and user.value not in seen:
                seen.add(user.value)
                left.append(user.value)
    return found


def returned(module: Module, graph: Graph, value: HloValue) -> set[int]:
    """Return the results of a program that a value reaches so, perhaps out of a `shard_map`."""
    ends = reached(graph, value)
    caller = module.caller(graph)
    if graph.name == module.entry or caller is None:
        return ends if graph.name == module.entry else set()
    if caller.opcode != "call":
        return set()
    outer = module.graph_of(caller)
    values = (caller.value.at(at) if caller.is_tuple else caller.value for at in ends)
    return {end for given in values for end in returned(module, outer, given)}
