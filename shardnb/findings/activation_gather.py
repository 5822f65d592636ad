"""Activations whose batch is gathered in full."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.causes.batch_dimensions import lies
from shardnb.causes.dataflow import Dataflow
from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.lost_sharding import is_due
from shardnb.report.bytes_sent import most_sent
from shardnb.report.model import Collective, Finding
from shardnb.report.spec import axes_in, spec_text
from shardnb.views.formatting import size

# Of all that a device sends: what is less is a mask or a count, and no mistake worth a look.
_LEAST_SHARE = 0.1


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the activations that each device gets with the whole batch, where nothing asks for it.

    Where two batches are compared, each device needs all of one of them; and what follows from a
    sharding that was lost, another finding says.
    """
    dataflow = evidence.causes.dataflow
    if dataflow is None:
        return
    total = most_sent(evidence.collectives)
    for one in evidence.collectives:
        inferred = one.asked_by == "inferred" and one.reason in ("conflict", "reshape")
        gathers = one.kind == "all-gather" and one.role is None and inferred
        heavy = one.least_wire_bytes >= max(1, _LEAST_SHARE * total)
        if gathers and heavy and _is_whole(dataflow, one):
            yield _finding(one)


def _is_whole(dataflow: Dataflow, one: Collective) -> bool:
    """Whether a gather makes the batch whole, and what takes it does not keep it sharded."""
    moved, batch = dataflow.moved.get(one.id), dataflow.batch
    if moved is None or moved.needed is None or moved.consumer is None:
        return False
    if dataflow.training.flows.part_of(moved.graph, moved.value) is not None:
        return False
    axes = {
        axis
        for dim, held in batch.of(moved.graph, moved.value).items()
        for axis in held & set(one.axes or ())
        if lies(batch, (moved.graph, moved.value), axis)
    }
    lost = {loss.axis for loss in batch.losses}
    said = any(axis in lost and is_due(dataflow, one, axis) for axis in axes)
    # A shuffle indexes one batch by another one, and keeps that one's sharding.
    indexed = moved.consumer.opcode == "gather"
    kept = not indexed and any(batch.keeps(moved.graph, moved.consumer, axis) for axis in axes)
    return bool(axes) and not said and not kept and not axes & axes_in(moved.needed)


def _finding(one: Collective) -> Finding:
    axes = " and ".join(one.axes or ())
    return Finding(
        "activation gather",
        f"{one.producer}, an activation, is gathered in full over {axes} for {one.consumer}: it is "
        f"{spec_text(one.producer_spec)}, and each device gets all of its batch, "
        f"{size(one.bytes)} of {one.dtype}",
        location=location_of(one),
        wire_bytes=one.least_wire_bytes,
        collectives=(one.id,),
    )
