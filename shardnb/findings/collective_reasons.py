"""What the reasons and the places of collectives say of a program."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.findings import state_unlike_parameters
from shardnb.findings.evidence import Evidence, location_of
from shardnb.report.model import Collective, Finding, Location, Mesh
from shardnb.report.spec import grid_of, padding_bytes, placed_value, spec_text
from shardnb.terms.findings import FindingKind
from shardnb.terms.roles import ROLES


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find what the reasons and places of collectives say, once for each line.

    Why state is resharded as the specs say, the finding about that state tells.
    """
    mesh = evidence.mesh
    of_state = {i for told in state_unlike_parameters.find(evidence) for i in told.collectives}
    alike: dict[tuple[FindingKind, str | None, Location | None], list[Collective]] = {}
    messages: dict[tuple[FindingKind, str | None, Location | None], str] = {}
    for one in evidence.collectives:
        for kind, message in _told(one, mesh):
            if kind == "output spec" and one.id in of_state:
                continue
            key = kind, one.producer, location_of(one)
            alike.setdefault(key, []).append(one)
            messages.setdefault(key, message)
    for key, members in alike.items():
        kind, _, location = key
        yield Finding(
            kind,
            messages[key],
            location,
            wasted_bytes=_padding(members[0], mesh) or None,
            collectives=tuple(member.id for member in members),
        )


def _told(one: Collective, mesh: Mesh) -> Iterator[tuple[FindingKind, str]]:
    producer, consumer = one.producer or "a value", one.consumer or "an operation"
    gathers = one.kind == "all-gather"
    in_steps = producer == f"a step of {consumer}"  # its steps are sharded (`cumsum_rows`)
    if one.reason == "whole-axis" and gathers and not in_steps:
        why = f"{consumer} needs the full dimension on each device"
        if one.detail:
            why = f"the partitioner does not keep {consumer} sharded here"
        yield "no partitioned form", f"{producer} is gathered, because {why}"
    if one.reason == "uneven":
        either = f"so the compiler pads it or gathers it{_padding_text(one, mesh)}"
        yield "uneven", f"{producer}: {one.detail}, {either}"
    typical = one.role is not None and ROLES[one.role].typical is not None
    requested = one.reason == "output-spec" and one.asked_by == "requested"
    if gathers and requested and not typical:
        lies = "sharded" if one.producer_spec is None else spec_text(one.producer_spec)
        yield "output spec", f"{producer} is {lies}, but {one.detail}"
    if "while condition" in one.within:
        often = "it runs once per step, and the loop waits for it"
        yield "loop condition", f"{one.kind} stands in the condition of a loop: {often}"


def _padding(one: Collective, mesh: Mesh) -> int:
    """Return the bytes of padding in the array that a collective moves, as far as that is known."""
    if one.reason != "uneven" or one.producer_shape is None or one.producer_spec is None:
        return 0
    lies = placed_value("", one.dtype, one.producer_shape, one.producer_spec, mesh)
    return padding_bytes(lies, mesh)


def _padding_text(one: Collective, mesh: Mesh) -> str:
    """Say how many places are padded: `: 30 over 8 parts is padded to 32`."""
    if not _padding(one, mesh):
        return ""
    lies = placed_value("", one.dtype, one.producer_shape or (), one.producer_spec or (), mesh)
    grid = grid_of(lies, mesh)
    sizes = zip(lies.shape, lies.shard_shape, grid, strict=True)
    uneven = [(size, parts, cut * parts) for size, cut, parts in sizes if size != cut * parts]
    said = (f"{size} over {parts} parts is padded to {whole}" for size, parts, whole in uneven)
    return f": {', '.join(said)}"
