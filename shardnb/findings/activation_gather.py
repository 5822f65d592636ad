"""Activations that are gathered in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardnb.causes.batch_dimensions import lies
from shardnb.causes.dataflow import Dataflow, Moved
from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.lost_sharding import is_due
from shardnb.report.bytes_sent import most_sent
from shardnb.report.model import Collective, Finding
from shardnb.report.spec import axes_in, mesh_axis, spec_text
from shardnb.views.formatting import size

# Of all that a device sends: what is less is a mask or a count, and no mistake worth a look.
_LEAST_SHARE = 0.1


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the activations that each device gets in full, where nothing asks for it.

    Where two batches are compared, each device needs all of one of them, and so it is with the keys
    of attention along a sharded sequence; what follows from a sharding that was lost, another
    finding says.
    """
    dataflow = evidence.causes.dataflow
    if dataflow is None:
        return
    total = most_sent(evidence.collectives)
    for one in evidence.collectives:
        inferred = one.asked_by == "inferred" and one.reason in ("conflict", "reshape")
        gathers = one.kind == "all-gather" and one.role is None and inferred
        heavy = one.least_wire_bytes >= max(1, _LEAST_SHARE * total)
        moved = dataflow.moved.get(one.id)
        if not gathers or not heavy or moved is None or moved.needed is None:
            continue
        if not _is_in_full(one, evidence.collectives):
            continue
        axes = _batch_axes(dataflow, moved, one)
        if _is_whole(dataflow, moved, one) if axes else _is_lost(dataflow, moved, one):
            yield _finding(one, "all of its batch" if axes else _all_of(one))


def _is_in_full(one: Collective, collectives: Sequence[Collective]) -> bool:
    """Whether no axis shards a gathered dimension still, once the whole movement is made."""
    moved = (one.producer, one.consumer, one.line)
    ones = (other for other in collectives if (other.producer, other.consumer, other.line) == moved)
    gathered = {axis for other in ones for axis in other.axes or ()}
    held = [set(axes) for axes in one.producer_spec or () if gathered & set(axes)]
    return all(axes <= gathered for axes in held)


def _batch_axes(dataflow: Dataflow, moved: Moved, one: Collective) -> set[str]:
    """Return the axes of a gather that shard the batch of what is gathered."""
    batch = dataflow.batch
    return {
        axis
        for held in batch.of(moved.graph, moved.value).values()
        for axis in held & set(one.axes or ())
        if lies(batch, (moved.graph, moved.value), axis)
    }


def _is_whole(dataflow: Dataflow, moved: Moved, one: Collective) -> bool:
    """Whether a gather makes the batch whole, and what takes it does not keep it sharded."""
    batch, axes = dataflow.batch, _batch_axes(dataflow, moved, one)
    if moved.consumer is None or axes & axes_in(moved.needed or ()):
        return False
    if dataflow.training.flows.part_of(moved.graph, moved.value) is not None:
        return False
    lost = {loss.axis for loss in batch.losses}
    said = any(axis in lost and is_due(dataflow, one, axis) for axis in axes)
    # A shuffle indexes one batch by another one, and keeps that one's sharding.
    indexed = moved.consumer.opcode == "gather"
    kept = not indexed and any(batch.keeps(moved.graph, moved.consumer, axis) for axis in axes)
    return not said and not kept


def _is_lost(dataflow: Dataflow, moved: Moved, one: Collective) -> bool:
    """Whether an activation loses axes on other dimensions, and the result does not have them.

    With the axes of a parameter the result has them, as in tensor parallelism along a sequence.
    """
    axes = {mesh_axis(axis) for axis in one.axes or ()}
    if moved.consumer is None or not dataflow.is_activation(moved.graph, moved.value):
        return False
    lost = {loss.axis for loss in dataflow.batch.losses}
    if any(axis in lost and is_due(dataflow, one, axis) for axis in axes):
        return False
    result = dataflow.batch.spec(moved.graph, moved.consumer.value)
    held = {mesh_axis(axis) for axis in axes_in(result) | axes_in(moved.needed or ())}
    return not axes & held


def _all_of(one: Collective) -> str:
    axes = set(one.axes or ())
    dims = [str(dim) for dim, held in enumerate(one.producer_spec or ()) if axes & set(held)]
    return f"all of dimension {dims[0]}" if len(dims) == 1 else "all of it"


def _finding(one: Collective, share: str) -> Finding:
    axes = " and ".join(one.axes or ())
    return Finding(
        "activation gather",
        f"{one.producer}, an activation, is gathered in full over {axes} for {one.consumer}: it is "
        f"{spec_text(one.producer_spec)}, and each device gets {share}, "
        f"{size(one.bytes)} of {one.dtype}",
        location=location_of(one),
        wire_bytes=one.least_wire_bytes,
        collectives=(one.id,),
    )
