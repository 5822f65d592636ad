"""What takes a mesh axis from the batch, in words."""

from __future__ import annotations

import math

from shardnb.causes.batch_dimensions import Loss
from shardnb.causes.dataflow import Dataflow
from shardnb.causes.phase import phase_of
from shardnb.causes.stated_shardings import primitive
from shardnb.propagation.named import Lines
from shardnb.report.spec import axis_size, mesh_axis, spec_text
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import HloValue
from shardnb.texts.opcodes import COPIES
from shardnb.views.formatting import count


def message(dataflow: Dataflow, losses: list[Loss], lines: Lines) -> str:
    """Say where the first loss is, and what takes the axis there."""
    loss = losses[0]
    operation = primitive(loss.node.op_name) or loss.node.opcode
    around = f"before {operation} and not after it"
    if loss.cause == "slice" and _is_in_loop(dataflow, loss):
        around = "before the loop and not in it"
    if _is_of_gradient(loss):
        around += " in the backward pass"
    start = f"the batch is sharded over {loss.axis} {around}: "
    if loss.cause == "parameter":
        return start + _of_parameter(dataflow, losses, lines)
    if loss.cause == "slice":
        return start + _of_slice(dataflow, loss, lines)
    value = loss.operand if loss.cause == "reshape" else loss.node.value
    rows, each = _size(loss.graph, value, loss.dimension), f"each device along {loss.axis} gets all"
    if loss.cause == "indices":
        return (
            f"{start}its indices are not sharded over {loss.axis}, so {each} {rows} rows that are "
            f"looked up"
        )
    return f"{start}it divides the {rows} rows otherwise than {loss.axis} does, so {each} of them"


def divided(dataflow: Dataflow, loss: Loss) -> GraphValue | None:
    """Return the reshape that left an axis on a dimension which a loop takes apart, if one did."""
    graph, value = _outside(dataflow, loss.graph, loss.operand)
    divides = loss.cause == "slice" and graph.node(value).opcode == "reshape"
    return (graph, value) if divides else None


def _of_parameter(dataflow: Dataflow, losses: list[Loss], lines: Lines) -> str:
    loss = losses[0]
    spec = dataflow.batch.spec(loss.graph, loss.node.value)
    others = {one.kept_by for one in losses} - {loss.kept_by, None}
    take = "takes" if len(others) == 1 else "take"
    later = f"; {count(len(others), 'other parameter')} {take} it later" if others else ""
    result = _differentiated(dataflow, loss, lines) if _is_of_gradient(loss) else "the result"
    return (
        f"{dataflow.training.name(loss.kept_by or 0)} has {loss.axis} for dimension "
        f"{loss.dimension} of {result}, which is {spec_text(spec)}, as an axis shards one "
        f"dimension only{later}"
    )


def _of_slice(dataflow: Dataflow, loss: Loss, lines: Lines) -> str:
    """Say what is taken along the sharded dimension, and how many devices compute the same."""
    dim, in_loop = loss.dimension, _is_in_loop(dataflow, loss)
    before, after = _size(loss.graph, loss.operand, dim), 1
    if loss.node.opcode != "gather":  # which drops a dimension of which it takes one element
        after = _size(loss.graph, loss.node.value, dim)
    name = _name(dataflow, loss, lines)
    has = f"{name} has {loss.axis} on dimension {dim}"
    if divided(dataflow, loss) is not None:
        has = f"the reshape leaves {loss.axis} on dimension {dim} of {name}"
    takes = f"of which each device needs the same {after}"
    if in_loop:
        takes = "which the loop takes " + ("one by one" if after == 1 else f"{after} at a time")
    batch = dataflow.batch.of(loss.graph, loss.node.value)
    rows = math.prod(_size(loss.graph, loss.node.value, at) for at in batch)
    same = f"the same {rows} rows" if batch else "the same part of it"
    devices = _devices(dataflow, loss)
    every = devices == dataflow.batch.factors.program.reader.mesh.shape[loss.axis]
    who = f"{'all' if every else 'every'} {devices} devices along {loss.axis}"
    effect = f"in each iteration {who} work on {same}" if in_loop else f"{who} get {same}"
    return f"{has} (size {before}), {takes}, so {effect}"


def _devices(dataflow: Dataflow, loss: Loss) -> int:
    """Return how many devices along the axis have the same of what is taken."""
    batch, graph, node = dataflow.batch, loss.graph, loss.node
    parts = batch.lost_parts(graph, node, loss.dimension, batch.of(graph, node.value))
    sizes = batch.factors.program.reader.mesh.shape
    return math.prod(axis_size(part, sizes) for part in parts if mesh_axis(part) == loss.axis)


def _differentiated(dataflow: Dataflow, loss: Loss, lines: Lines) -> str:
    """Name the gradient that lost an axis: that of what the forward pass multiplies."""
    array, sources = loss.graph.array(loss.node.value), set[HloValue]()
    for node, number in dataflow.training.products:
        graph = dataflow.training.flows.module.graph_of(node)
        if number != loss.kept_by or "transpose(" in node.op_name or graph is not loss.graph:
            continue
        others = [
            value
            for value in graph.operands[node.name][:2]
            if dataflow.training.flows.part_of(graph, value) != number
        ]
        sources.update(value for value in others if graph.array(value) == array)
    named = [value for value in lines.values if value.instruction.value in sources]
    names = {value.name for value in named if value.instruction.computation == loss.graph.name}
    return f"the gradient of {names.pop()}" if len(names) == len(sources) == 1 else "the result"


def _name(dataflow: Dataflow, loss: Loss, lines: Lines) -> str:
    """Name what a loop or a slice takes apart: an argument, or what a statement assigns."""
    graph, value = divided(dataflow, loss) or _outside(dataflow, loss.graph, loss.operand)
    maker = graph.node(value)
    if maker.opcode == "parameter" and graph is dataflow.training.flows.entry:
        return dataflow.training.name(maker.number)
    made = (one for one in lines.values if one.instruction is maker and one.name.isidentifier())
    assigned = next(made, None)
    if assigned is not None:
        return assigned.name
    return "its result" if maker.opcode == "reshape" else "what it takes"


def _outside(dataflow: Dataflow, graph: Graph, value: HloValue) -> GraphValue:
    """Follow what a loop takes to the value that enters it."""
    module = dataflow.training.flows.module
    outer: GraphValue | None = (graph, value)
    while outer is not None:
        graph, value = outer[0], outer[0].source(outer[1], COPIES)
        outer = module.outside(graph, value) if graph.node(value).opcode == "parameter" else None
    return graph, value


def _is_in_loop(dataflow: Dataflow, loss: Loss) -> bool:
    return dataflow.training.flows.module.is_loop(loss.graph)


def _is_of_gradient(loss: Loss) -> bool:
    return phase_of(loss.node.op_name, differentiated=True) == "backward"


def _size(graph: Graph, value: HloValue, dim: int) -> int:
    array = graph.array(value)
    return array[1][dim] if array is not None else 0
