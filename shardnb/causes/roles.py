"""What a collective does for the user, as far as the program's dataflow shows that."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.data_movement import Movement
from shardnb.causes.dataflow import Dataflow, Moved, carries, reached, returned
from shardnb.causes.softmax import Softmaxes
from shardnb.causes.training import Training
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import Verdict
from shardnb.collectives.find import reduction_of
from shardnb.report.model import Collective, Spec
from shardnb.report.spec import axes_in, mesh_axis
from shardnb.terms.collectives import reduces
from shardnb.terms.roles import Role
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import MOVES, ONE_OPERAND_STEPS, PRODUCTS, VIEWS

_NUMBERS = re.compile(r"\d+")
_GATHERS = ("all-gather", "all-reduce")
"""Kinds that make an array whole; TPU adds blocks up among zeros."""


class Purpose(NamedTuple):
    """What a collective does, and for which parameter, state or value."""

    role: Role | None = None
    of: str = ""


@dataclass
class Roles:
    """Reads what collectives do off the program before partitioning."""

    program: Unpartitioned
    dataflow: Dataflow

    @cached_property
    def softmaxes(self) -> Softmaxes:
        """The softmaxes of the program."""
        return Softmaxes(self.program.module)

    @property
    def training(self) -> Training:
        """What the program trains."""
        return self.dataflow.training

    def inserted(self, collective: Collective, move: Movement, verdict: Verdict) -> Purpose:
        """Return what a collective does that the partitioner made."""
        producer, graph, flows = move.producer, move.graph, self.training.flows
        if producer is None:
            return Purpose()
        consumer = graph.nodes.get(verdict.consumer or move.consumer or "")
        self.dataflow.moved[collective.id] = Moved(graph, producer, consumer, verdict.needed)
        if verdict.reason == "partial-sum":
            found = self.sum(collective, graph, producer)
        else:
            found = self._moved(collective, move, producer)
        requested = verdict.reason == "output-spec" and verdict.asked_by == "requested"
        axes = {mesh_axis(axis) for axis in collective.axes or ()}
        kept = found.role is not None and not (
            found.role == "parameter-gather" and not axes & self._axes_of_data
        )
        if requested and not kept:
            return Purpose("requested-reshard", self._name(flows.part_of(graph, producer)))
        return found

    @cached_property
    def _axes_of_data(self) -> set[str]:
        """The axes that shard what is not trained, as the batch is.

        A parameter that the user gathers over others is not gathered for that, as FSDP does
        (`columns_gathered_by_a_constraint`).
        """
        known = self.training.parameters | set(self.training.owners)
        others = self.training.flows.entry.parameters.keys() - known
        return {axis for number in others for axis in self._axes_of_argument(number)}

    def sent(
        self, collective: Collective, graph: Graph, operand: HloValue, node: Instruction
    ) -> Purpose:
        """Return what a collective does that stands in the program itself and sends an operand."""
        if not reduces(node.opcode):
            found = self._parameter(collective, graph, operand)
            if found.role is not None:
                return found
            ends = returned(self.program.module, graph, node.value)
            return self._after_backward(collective, graph, operand, ends)
        if reduction_of(self.program.module, node) != "add":
            return Purpose()
        found = self._gradient(collective, graph, operand)
        # As in `sum`, what a layer takes has its gradient by a sum over that layer's shards.
        if found.role is None or (found.role == "gradient" and self._computes(collective)):
            product = self._local_product(collective, graph, operand)
            found = product if product.role is not None else found
        if found.role == "gradient" and self._sums_frozen_shards(collective, graph, operand):
            return Purpose()
        if found.role is None and not self._is_transposed(node):
            found = self._returned(graph, operand)
        return found

    def sum(self, collective: Collective, graph: Graph, value: HloValue) -> Purpose:
        """Return what a collective does that completes the partial sums of a value."""
        found = self._gradient(collective, graph, value)
        if found.role in (None, "gradient"):
            # The gradient of what a layer takes is a sum over the shards of that layer.
            product = self._product(collective, graph, graph.node(value))
            if not self._sums_over_shards(collective, graph, graph.node(value)):
                product = Purpose()
            found = product if product.role is not None else found
        if found.role is None:
            found = self._softmax(collective, graph, graph.node(value))
        if found.role is None:
            found = self._picked(collective, graph, graph.node(value))
        return found if found.role is not None else self._scalar(graph, graph.node(value))

    # Sums

    def _gradient(self, collective: Collective, graph: Graph, value: HloValue) -> Purpose:
        flows = self.training.flows
        mask = flows.reaching(graph, value)
        sums = mask & flows.backward
        # What the backward pass goes on with is the cotangent of an activation.
        if not sums or mask & (flows.after_backward - 1) or sums & flows.taken_in_backward:
            return Purpose()
        number = self.training.gradient_of(sums)
        if number is None:
            return Purpose()
        # The CPU compiler keeps an all-reduce, and each device cuts its shard out of the sum.
        kept = self._kept(graph, value)
        cut = bool(collective.axes) and set(collective.axes or ()) <= kept
        scatters = cut or collective.kind == "reduce-scatter"
        return Purpose("gradient-scatter" if scatters else "gradient", self.training.name(number))

    def _local_product(self, collective: Collective, graph: Graph, value: HloValue) -> Purpose:
        """A called sum of what each device multiplies with its shard of a parameter."""
        node = graph.maker(graph.source(value, VIEWS))
        for number, _ in self._summed_shards(collective, node) if node is not None else ():
            if number in self.training.parameters:
                return Purpose("tensor-parallel-sum", self._name(number))
        return Purpose()

    def _summed_shards(
        self, collective: Collective, node: Instruction
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield the arguments whose shards over a collective's axes a product sums over.

        Each with the dimensions that the product sums over.
        """
        graph = self.program.module.graph_of(node)
        for at, side in enumerate(("lhs", "rhs") if node.opcode == "dot" else ()):
            number = self.training.flows.part_of(graph, graph.operands[node.name][at])
            spec = self._spec_of_shard(node, at)
            if number is None or spec is None:
                continue
            dims = [*map(int, _NUMBERS.findall(node.attribute(f"{side}_contracting_dims") or ""))]
            axes = axes_in(tuple(spec[dim] for dim in dims if dim < len(spec)))
            if axes == set(collective.axes or ()):
                yield number, dims

    def _sums_frozen_shards(self, collective: Collective, graph: Graph, value: HloValue) -> bool:
        """Whether a gradient is a sum over the shards of what may be a layer that is not trained.

        Data is sharded by its first dimension; an argument that is sharded by another one is a
        matrix of which each device multiplies with its columns (`copied_into_a_frozen_layer`).
        """
        sums = self.training.flows.reaching(graph, value) & self.training.flows.backward
        return any(
            number not in self.training.parameters and 0 not in dims
            for node in self.training.flows.started(sums)
            for number, dims in self._summed_shards(collective, node)
        )

    def _spec_of_shard(self, node: Instruction, at: int) -> Spec | None:
        """Return the sharding of the argument whose shard a product in a `shard_map` takes."""
        graph = self.program.module.graph_of(node)
        operand, entry = graph.operands[node.name][at], self.training.flows.entry
        number, local = self.training.flows.part_of(graph, operand), graph.array(operand)
        if number is None or local is None:
            return None
        array = entry.array(entry.parameters[number])
        layout = self.program.layout(entry, entry.parameters[number])
        if layout is None or layout.spec is None or array is None:
            return None
        return layout.spec if local[1] == layout.shard_shape(array[1]) else None

    def _computes(self, collective: Collective) -> bool:
        """Whether a layer of a `shard_map` computes with shards over a collective's axes.

        Such axes do not shard the batch, and a sum over them is not one over samples
        (`gradient_of_what_column_shards_take`).
        """
        axes = set(collective.axes or ())
        specs = (
            self._spec_of_shard(node, at)
            for node, number in self.training.layers
            for at in (0, 1)
            if node.opcode == "dot" and number in self.training.parameters
        )
        return any(spec is not None and axes <= axes_in(spec) for spec in specs)

    def _product(self, collective: Collective, graph: Graph, node: Instruction) -> Purpose:
        """A product with a parameter, or a look-up in it, of which each device has a shard."""
        taken = graph.operands[node.name]
        if node.opcode not in PRODUCTS:
            taken = taken[:1] if node.opcode == "gather" else ()
        numbers = {self.training.flows.part_of(graph, operand) for operand in taken}
        axes = {mesh_axis(axis) for axis in collective.axes or ()}
        known = [
            n
            for n in numbers
            if n in self.training.parameters and axes and axes <= self._axes_of_argument(n)
        ]
        if not known:
            return Purpose()
        return Purpose("tensor-parallel-sum", self._name(known[0] if len(known) == 1 else None))

    def _sums_over_shards(self, collective: Collective, graph: Graph, node: Instruction) -> bool:
        """Whether its axes shard what a product sums over in a parameter, as far as is known.

        A parameter that was made whole is no longer a sum's (`columns_gathered_by_a_constraint`).
        """
        axes = {mesh_axis(axis) for axis in collective.axes or ()}
        for operand, side in zip(graph.operands[node.name], ("lhs", "rhs"), strict=False):
            layout = self.program.layout(graph, operand)
            if node.opcode != "dot" or self.training.flows.part_of(graph, operand) is None:
                continue
            if layout is None or layout.spec is None:
                return True
            dims = map(int, _NUMBERS.findall(node.attribute(f"{side}_contracting_dims") or ""))
            summed = axes_in(tuple(layout.spec[dim] for dim in dims if dim < len(layout.spec)))
            if axes <= {mesh_axis(axis) for axis in summed}:
                return True
        return node.opcode != "dot"

    def _softmax(self, collective: Collective, graph: Graph, node: Instruction) -> Purpose:
        """The maximum or the sum of a softmax, perhaps of what a sharded parameter makes."""
        taken = self.softmaxes.operand(node)
        if taken is None:
            return Purpose()
        names = {purpose.of for purpose in self._made_by(collective, graph, taken)}
        return Purpose("softmax", names.pop() if len(names) == 1 else "")

    def _picked(self, collective: Collective, graph: Graph, node: Instruction) -> Purpose:
        """What labels pick from the product with a sharded parameter, as in a cross entropy.

        By their numbers, or by a sum that a mask leaves one element of (`with_one_hot_labels`).
        """
        if node.opcode == "gather":
            taken = graph.operands[node.name][0]
        else:
            masked = graph.maker(graph.operands[node.name][0]) if node.opcode == "reduce" else None
            if masked is None or masked.opcode != "multiply":
                return Purpose()
            masks = [self._is_mask(graph, one) for one in graph.operands[masked.name]]
            if sum(masks) != 1:
                return Purpose()
            taken = graph.operands[masked.name][masks.index(False)]
        made = {purpose for purpose in self._made_by(collective, graph, taken) if purpose.role}
        return made.pop() if len(made) == 1 else Purpose()

    @staticmethod
    def _is_mask(graph: Graph, value: HloValue) -> bool:
        node = graph.maker(graph.source(value, ONE_OPERAND_STEPS))
        return node is not None and node.opcode == "compare"

    def _made_by(self, collective: Collective, graph: Graph, value: HloValue) -> list[Purpose]:
        """Return what the products are for that a value is made by, element by element."""
        return [
            self._product(collective, self.program.module.graph_of(one), one)
            for one in self.training.flows.started(self.training.flows.reaching(graph, value))
            if one.opcode in PRODUCTS
        ]

    def _scalar(self, graph: Graph, node: Instruction) -> Purpose:
        """A sum of all elements: of squared gradients, or one that the program returns."""
        flows = self.training.flows
        if node.opcode == "dot" and node.shapes == ((),) and not self._is_transposed(node):
            return self._returned(graph, node.value)  # as `jnp.vdot` sums all elements
        if node.opcode != "reduce" or node.shapes != ((),):
            return Purpose()
        # The largest of all elements, or whether any is true, is not a sum.
        if reduction_of(self.program.module, node) != "add":
            return Purpose()
        squared = self._squared(graph, graph.operands[node.name][0])
        if squared is not None:
            mask = flows.reaching(graph, squared)
            gradient = mask & flows.backward and not mask & (flows.after_backward - 1)
            if gradient and self._is_scaled(graph, squared):
                return Purpose("gradient-norm", self._name(self.training.gradient_of(mask)))
        return Purpose() if self._is_transposed(node) else self._returned(graph, node.value)

    def _is_scaled(self, graph: Graph, value: HloValue) -> bool:
        """Whether a value is a gradient, perhaps times numbers.

        What adafactor makes of a gradient and its factored moments is an update.
        """
        flows, queue, seen = self.training.flows, [value], set[HloValue]()
        while queue:
            node = graph.maker(queue.pop())
            if node is None or not carries(node):
                continue
            for operand in graph.operands[node.name]:
                if flows.reaching(graph, operand) & flows.backward:
                    queue += [] if operand in seen else [operand]
                    seen.add(operand)
                    continue
                array = graph.array(graph.source(operand, ONE_OPERAND_STEPS))
                if array is None or array[1]:
                    return False
        return True

    def _is_transposed(self, node: Instruction) -> bool:
        return "transpose(" in self.program.module.path(node)

    def _returned(self, graph: Graph, value: HloValue) -> Purpose:
        """A number that reaches a result of the program."""
        flows = self.training.flows
        array, sums = graph.array(value), flows.reaching(graph, value) >> flows.arguments + 1
        returned = any(mask >> flows.arguments + 1 & sums for mask in flows.results)
        return Purpose("loss") if array is not None and array[1] == () and returned else Purpose()

    @staticmethod
    def _squared(graph: Graph, value: HloValue) -> HloValue | None:
        node = graph.maker(graph.source(value, MOVES | {"convert", "copy"}))
        if node is None or node.opcode != "multiply":
            return None
        left, right = graph.operands[node.name]
        return left if left == right else None

    # Arrays that are moved

    def _moved(self, collective: Collective, move: Movement, producer: HloValue) -> Purpose:
        graph = move.graph
        if self.training.flows.part_of(graph, producer) is not None:
            return self._parameter(collective, graph, producer)
        if graph is not self.training.flows.entry:
            return Purpose()
        return self._after_backward(collective, graph, producer, self._ends(collective, move))

    def _ends(self, collective: Collective, move: Movement) -> set[int]:
        """Return the results of the program that take what was moved, element by element."""
        consumer = self.dataflow.moved[collective.id].consumer
        if consumer is not None:
            # A product with what is moved is another value: with the cotangent of a layer's result
            # it is the gradient that reaches the new value.
            return reached(move.graph, consumer.value) if carries(consumer) else set()
        return set() if move.result is None else {move.result}

    def _parameter(self, collective: Collective, graph: Graph, value: HloValue) -> Purpose:
        number = self.training.flows.part_of(graph, value)
        if number is None:
            return Purpose()
        name = self.training.name(number)
        if number in self.training.owners:
            return Purpose("optimizer-state", name)
        gathers = collective.kind in _GATHERS and number in self.training.parameters
        # What is repeated before it is gathered costs more than the parameter (`masked_patches`).
        gathers = gathers and not self._is_repeated(graph, value, number)
        if gathers and not self.dataflow.is_tensor_parallel(number, collective.axes or ()):
            return Purpose("parameter-gather", name)
        return Purpose()

    def _is_repeated(self, graph: Graph, value: HloValue, number: int) -> bool:
        """Whether a value holds elements of an argument more than once."""
        entry = self.training.flows.entry
        arrays = graph.array(value), entry.array(entry.parameters[number])
        sizes = [math.prod(array[1]) for array in arrays if array is not None]
        return len(sizes) == 2 and sizes[0] > sizes[1]

    def _after_backward(
        self, collective: Collective, graph: Graph, value: HloValue, ends: set[int]
    ) -> Purpose:
        """A gradient, an update or a new value that the update needs elsewhere.

        `ends` are the results of the program that take what is moved, element by element.
        """
        flows, training = self.training.flows, self.training
        mask = flows.reaching(graph, value)
        if not mask & flows.after_backward or mask & flows.taken_in_backward & flows.backward:
            return Purpose()
        if mask & flows.backward and not mask & (flows.after_backward - 1):
            number = training.gradient_of(mask)
            return Purpose() if number is None else Purpose("gradient-reshard", self._name(number))
        renewed = {training.renewed.get(at) for at in ends}
        number = renewed.pop() if len(renewed) == 1 else None
        if number is None:
            return Purpose()
        if number not in training.parameters:
            return Purpose("optimizer-state", training.name(number))
        if "all-gather" in (collective.kind, collective.made_as):
            return Purpose("parameter-update", training.name(number))
        # What is moved from shards to other shards has the sharding of the state that it is
        # computed of.
        states = [one for one in training.owners if mask >> one & 1]
        return Purpose("optimizer-state", self._name(states[0] if len(states) == 1 else None))

    # Arguments

    def _name(self, number: int | None) -> str:
        return "" if number is None else self.training.name(number)

    def _axes_of_argument(self, number: int) -> set[str]:
        entry = self.training.flows.entry
        return {mesh_axis(axis) for axis in self._axes(entry, entry.parameters[number])}

    def _kept(self, graph: Graph, value: HloValue) -> set[str]:
        """Return the axes that shard a value, or what alone takes it: a reshard of the user's."""
        axes, users = self._axes(graph, value), graph.users.get(value, ())
        while len(users) == 1 and users[0].opcode in VIEWS:
            axes |= self._axes(graph, users[0].value)
            users = graph.users.get(users[0].value, ())
        return axes

    def _axes(self, graph: Graph, value: HloValue) -> set[str]:
        """Return the mesh axes that a value is sharded over."""
        layout = self.program.layout(graph, value)
        return axes_in(layout.spec) if layout is not None and layout.spec else set()
