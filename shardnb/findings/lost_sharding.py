"""A batch that a mesh axis shards, until a parameter takes the axis for another dimension."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from shardnb.causes.batch_dimensions import Batch, BatchDimensions, Loss, lies
from shardnb.causes.dataflow import Dataflow
from shardnb.causes.phase import phase_of
from shardnb.findings.evidence import Evidence
from shardnb.findings.loss_sentence import divided, message
from shardnb.findings.spec_edits import constraint_text
from shardnb.propagation.named import Lines
from shardnb.report.bytes_sent import most_sent
from shardnb.report.edits import NewSpec, ProposedEdit
from shardnb.report.model import Collective, Finding, Spec
from shardnb.report.spec import axis_size, mesh_axis
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue


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
    if moved is None or not _is_moved(one) or axis not in map(mesh_axis, one.axes or ()):
        return False
    graph, value, needed = moved.graph, moved.value, moved.needed
    if any(moved.consumer is loss.node for loss in dataflow.batch.losses if loss.axis == axis):
        return True
    batch = dataflow.batch.of(graph, value)
    at_start = [dim for dim, axes in batch.items() if axis in axes]
    if not at_start:
        return False
    # A shuffle by indices that the axis shards needs all rows, and keeps the axis
    # (`test_a_batch_that_sharded_indices_shuffle_is_lost_in_the_loop_alone`).
    keeps = moved.consumer is not None and dataflow.batch.keeps(graph, moved.consumer, axis)
    leaves = needed is not None and all(axis not in needed[dim] for dim in at_start) and not keeps
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
    made = (place for one in losses if (place := divided(dataflow, one)) is not None)
    nodes = [*(graph.node(value) for graph, value in made), *(one.node for one in losses)]
    places = [place for place in map(lines.location, nodes) if place]
    return Finding(
        "lost sharding",
        message(dataflow, losses, lines),
        location=places[0] if places else None,
        locations=tuple(dict.fromkeys(places)),
        wire_bytes=most_sent(due),
        collectives=tuple(one.id for one in due),
        edits=tuple(_edits(dataflow, loss, lines)),
    )


def _edits(dataflow: Dataflow, loss: Loss, lines: Lines) -> Iterator[ProposedEdit]:
    """Yield a constraint that keeps the axis for the batch of what the line of a loss assigns.

    Of a batch that was divided for a loop, this is the line that divides it.
    """
    if phase_of(loss.node.op_name, differentiated=False) != "forward":
        return
    batch, place = dataflow.batch, divided(dataflow, loss)
    graph, node = (place[0], place[0].node(place[1])) if place else (loss.graph, loss.node)
    innermost = next(iter(lines.places(node).items()), None)
    for value in lines.values:
        maker = value.instruction
        known = batch.of(graph, maker.value) if maker.computation == graph.name else {}
        if place is not None and known:
            known = batch.rest(graph, maker.value)
        if (value.call, value.location) != innermost or not known or not value.name.isidentifier():
            continue
        spec = _spec(batch, graph, maker.value, known)
        if spec is None:
            continue  # the batch may be a later dimension there (`minibatches_of_one_statement`)
        kept = NewSpec("value", value.name, spec)
        yield ProposedEdit(constraint_text(kept.name, kept.spec), (kept,))
        return


def _spec(batch: BatchDimensions, graph: Graph, value: HloValue, known: Batch) -> Spec | None:
    """Return the spec that shards these dimensions alone over their axes, None if it does not."""
    axes = {axis for kept in known.values() for axis in kept}
    spec = [
        [axis for axis in held if mesh_axis(axis) not in axes] for held in batch.spec(graph, value)
    ]
    for dim, axes_of in known.items():
        spec[dim] = [axis for axis in batch.order if axis in axes_of]
    array, sizes = graph.array(value), batch.factors.program.reader.mesh.shape
    parts = [math.prod(axis_size(axis, sizes) for axis in held) for held in spec]
    if array is None or any(size % by for size, by in zip(array[1], parts, strict=False)):
        return None
    return tuple(map(tuple, spec))
