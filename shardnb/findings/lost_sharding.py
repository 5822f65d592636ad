"""A batch that a mesh axis shards, until a parameter takes the axis for another dimension."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from shardnb.causes.batch_dimensions import BatchDimensions, Loss, lies
from shardnb.causes.dataflow import Dataflow
from shardnb.causes.phase import phase_of
from shardnb.causes.stated_shardings import primitive
from shardnb.findings.evidence import Evidence
from shardnb.findings.spec_edits import constraint_text
from shardnb.propagation.named import Lines
from shardnb.report.bytes_sent import most_sent
from shardnb.report.edits import NewSpec, ProposedEdit
from shardnb.report.model import Collective, Finding
from shardnb.report.spec import axis_size, spec_text
from shardnb.texts.instruction import HloValue
from shardnb.views.formatting import count


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the axes that the batch loses to a parameter, with the collectives that follow from it.

    Each axis is said once, with all its lines; those of the forward pass come first.
    """
    dataflow = evidence.causes.dataflow
    if dataflow is None or evidence.before is None or not any(map(_is_moved, evidence.collectives)):
        return
    groups: dict[str, list[Loss]] = defaultdict(list)
    for loss in dataflow.batch.losses:
        groups[loss.axis].append(loss)
    for axis, losses in groups.items():
        # The gradient that tensor parallelism computes with the shards of a parameter has lost
        # nothing that the forward pass kept.
        if all(_is_of_a_strategy(dataflow, loss) for loss in losses):
            continue
        due = [one for one in evidence.collectives if is_due(dataflow, one, axis)]
        moves = {_move(dataflow, one) for one in due if one.reason != "partial-sum"}
        if due:
            losses.sort(key=_is_later)
            steps = (one for one in evidence.collectives if _move(dataflow, one) in moves)
            every = sorted({*due, *filter(_is_moved, steps)}, key=lambda one: one.id)
            yield _finding(evidence, dataflow, losses, every)


def is_due(dataflow: Dataflow, one: Collective, axis: str) -> bool:
    """Whether a collective moves the batch along an axis to where the axis does not shard it.

    Or from there; or it adds up partial products of a batch that the axis should shard.
    """
    moved = dataflow.moved.get(one.id)
    if moved is None or not _is_moved(one) or axis not in (one.axes or ()):
        return False
    graph, value, needed = moved.graph, moved.value, moved.needed
    batch = dataflow.batch.of(graph, value)
    at_start = [dim for dim, axes in batch.items() if axis in axes]
    if not at_start:
        return False
    leaves = needed is not None and all(axis not in needed[dim] for dim in at_start)
    return leaves or not lies(dataflow.batch, (graph, value), axis)


def _move(dataflow: Dataflow, one: Collective) -> tuple[object, ...] | None:
    """Identify a move: one that goes over another axis on its way has several collectives."""
    moved = dataflow.moved.get(one.id)
    return None if moved is None else (moved.graph.name, moved.value, moved.consumer)


def _is_moved(one: Collective) -> bool:
    """Whether a collective is the compiler's, and none that the strategy in use needs."""
    return one.asked_by == "inferred" and one.role in (None, "tensor-parallel-sum")


def _is_of_a_strategy(dataflow: Dataflow, loss: Loss) -> bool:
    known = loss.kept_by is not None and _is_later(loss)
    return known and dataflow.is_tensor_parallel(loss.kept_by or 0, [loss.axis])


def _is_later(loss: Loss) -> bool:
    return phase_of(loss.node.op_name, differentiated=False) != "forward"


def _finding(
    evidence: Evidence, dataflow: Dataflow, losses: list[Loss], due: list[Collective]
) -> Finding:
    loss, lines = losses[0], evidence.lines or Lines(evidence.module, evidence.sources)
    places = [place for place in (lines.location(one.node) for one in losses) if place]
    return Finding(
        "lost sharding",
        _message(dataflow, losses, lines),
        location=places[0] if places else None,
        locations=tuple(dict.fromkeys(places)),
        wire_bytes=most_sent(due),
        collectives=tuple(one.id for one in due),
        edits=tuple(_edits(dataflow.batch, loss, lines)),
    )


def _message(dataflow: Dataflow, losses: list[Loss], lines: Lines) -> str:
    """Say where the first loss is, and which parameter has the axis, or that the indices do not."""
    loss = losses[0]
    spec = dataflow.batch.spec(loss.graph, loss.node.value)
    others = {one.kept_by for one in losses} - {loss.kept_by, None}
    take = "takes" if len(others) == 1 else "take"
    later = f"; {count(len(others), 'other parameter')} {take} it later" if others else ""
    operation = primitive(loss.node.op_name) or loss.node.opcode
    result, backward = "the result", ""
    if phase_of(loss.node.op_name, differentiated=True) == "backward":
        result, backward = _differentiated(dataflow, loss, lines), " in the backward pass"
    before = f"the batch is sharded over {loss.axis} before {operation} and not after it{backward}"
    if loss.kept_by is None:
        array = loss.graph.array(loss.node.value)
        rows = array[1][loss.dimension] if array else "the"
        return (
            f"{before}: its indices are not sharded over {loss.axis}, so each device along "
            f"{loss.axis} gets all {rows} rows that are looked up"
        )
    return (
        f"{before}: {dataflow.training.name(loss.kept_by)} has {loss.axis} for dimension "
        f"{loss.dimension} of {result}, which is {spec_text(spec)}, as an axis shards one "
        f"dimension only{later}"
    )


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


def _edits(batch: BatchDimensions, loss: Loss, lines: Lines) -> Iterator[ProposedEdit]:
    """Yield a constraint that keeps the axis for the batch of what the line of a loss assigns."""
    if phase_of(loss.node.op_name, differentiated=False) != "forward":
        return
    graph, innermost = loss.graph, next(iter(lines.places(loss.node).items()), None)
    for value in lines.values:
        maker = value.instruction
        known = batch.of(graph, maker.value) if maker.computation == graph.name else {}
        if (value.call, value.location) != innermost or not known or not value.name.isidentifier():
            continue
        axes = {axis for kept in known.values() for axis in kept}
        spec = [
            [axis for axis in held if axis not in axes] for held in batch.spec(graph, maker.value)
        ]
        for dim, axes_of in known.items():
            spec[dim] = [axis for axis in batch.order if axis in axes_of]
        array, sizes = graph.array(maker.value), batch.factors.program.reader.mesh.shape
        parts = [math.prod(axis_size(axis, sizes) for axis in held) for held in spec]
        if array is None or any(size % by for size, by in zip(array[1], parts, strict=False)):
            continue  # the batch may be a later dimension there (`minibatches_of_one_statement`)
        kept = NewSpec("value", value.name, tuple(map(tuple, spec)))
        yield ProposedEdit(constraint_text(kept.name, kept.spec), (kept,))
        return
