"""What is worth knowing of a program beside its collectives, each at its line, with its price."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from shardnb.report.model import UNUSED, Collective, Finding, Location, Mesh, Spec, Value
from shardnb.report.spec import grid_of, padding_bytes, placed_value, spec_text
from shardnb.report.types import SpecProblem
from shardnb.terms.findings import FindingKind
from shardnb.texts.hlo import Module

_LARGE = 1 << 20
_ALIASED = re.compile(r"\((\d+), \{[\d, ]*\}")


def replicated_inputs(values: Sequence[Value], mesh: Mesh) -> Iterator[Finding]:
    """Find inputs of 1 MiB or more, and of half of all inputs, of which devices hold copies."""
    used = [value for value in values if value.details != UNUSED]
    total = sum(value.shard_bytes for value in used)
    for value in used:
        large = value.shard_bytes >= _LARGE and 2 * value.shard_bytes >= total
        copies = mesh.size // max(1, math.prod(grid_of(value, mesh)))
        if large and copies > 1:
            whole = value.shard_shape == value.shape
            yield Finding(
                "replicated",
                f"{value.name} is whole on each of {mesh.size} devices"
                if whole
                else f"each block of {value.name} is on {copies} devices{_along(value, mesh)}",
                wasted_bytes=value.shard_bytes * (mesh.size - mesh.size // copies),
            )


def _along(value: Value, mesh: Mesh) -> str:
    """Say along which axes an array is copied, where whole axes say it."""
    if value.spec is None or any(":(" in axis for entry in value.spec for axis in entry):
        return ""
    free = [axis.name for axis in mesh.axes if axis.size > 1 and axis.name not in _axes(value.spec)]
    return f" along {', '.join(free)}"


def silent_replication(values: Sequence[Value], mesh: Mesh) -> Iterator[Finding]:
    """Find results that are less split than the spec that was stated for them."""
    for value in values:
        if value.requested is None or value.spec is None:
            continue
        lost = _axes(value.requested) - _axes(value.spec)
        if lost:
            parts = math.prod(mesh.shape[axis] for axis in lost if axis in mesh.shape)
            yield Finding(
                "silent replication",
                f"{value.name} was asked to be {spec_text(value.requested)} and is "
                f"{spec_text(value.spec)}{_uneven(value, mesh)}",
                location=value.location,
                wasted_bytes=value.shard_bytes - -(-value.shard_bytes // parts),
            )


def _axes(spec: Spec) -> set[str]:
    return {axis for entry in spec for axis in entry}


def _uneven(value: Value, mesh: Mesh) -> str:
    for size, axes in zip(value.shape, value.requested or (), strict=False):
        parts = math.prod(mesh.shape.get(axis, 1) for axis in axes)
        if size % parts:
            return f": {parts} parts do not divide {size}"
    return ""


def lost_donations(module: Module, donated: Mapping[int, Value]) -> Iterator[Finding]:
    """Find the donated inputs that no result reuses; `donated` has them by parameter number."""
    header = module.header.partition("input_output_alias={")[2].partition("entry_computation")[0]
    aliases = header.partition("buffer_donor=")[0]
    used = {int(number) for number in _ALIASED.findall(aliases)}
    for number, value in donated.items():
        if number not in used:
            yield Finding(
                "donation",
                f"{value.name} was donated and no result reuses its memory: "
                "none has its shape, type and placement",
                wasted_bytes=value.shard_bytes,
            )


def rematerialised(collectives: Sequence[Collective], mesh: Mesh) -> Iterator[Finding]:
    """Find the full rematerialisations that the compiler itself warned of, counted by line."""
    groups: dict[tuple[object, ...], list[Collective]] = defaultdict(list)
    for one in collectives:
        if one.full_remat:
            groups[one.producer, one.producer_spec, one.needed_spec, location_of(one)].append(one)
    for members in groups.values():
        one = members[0]
        times = f" ({len(members)} collectives)" if len(members) > 1 else ""
        yield Finding(
            "full rematerialisation",
            f"{one.producer or 'a value'} goes from {spec_text(one.producer_spec)} to "
            f"{spec_text(one.needed_spec)}, and the compiler found no better way than to make it "
            f"whole on each device first{times}",
            location=location_of(one),
            values=tuple(_both_ends(one, mesh)),
        )


def _both_ends(one: Collective, mesh: Mesh) -> Iterator[Value]:
    """Give the moved array as it lies, and as it is needed, where that is known."""
    for name, spec in (
        (f"{one.producer}, as it lies", one.producer_spec),
        (f"{one.producer}, as it is needed", one.needed_spec),
    ):
        if one.producer_shape is not None and spec is not None:
            yield placed_value(name, one.dtype, one.producer_shape, spec, mesh)


def moved_arguments(problems: Iterable[SpecProblem], *, emulated: bool) -> Iterator[Finding]:
    """Find the committed arguments that lie elsewhere than the program takes them, with the price.

    An array of the kernel's own devices goes to emulated ones in any case: that is no finding.
    """
    for problem in problems:
        if problem.kind == "committed" or not emulated:
            fix = f"; or move it once: {problem.fix}" if problem.fix else ""
            yield Finding("moved", f"{problem.message}{fix}", wasted_bytes=problem.moved_bytes)


def padded_constraints(
    problems: Iterable[SpecProblem], collectives: Sequence[Collective]
) -> Iterator[Finding]:
    """Find the constraints that XLA pads, at lines where no collective tells of it already."""
    told = {_line(location_of(one)) for one in collectives if one.reason == "uneven"}
    for one in problems:
        if one.kind == "uneven" and _line(one.location) not in told:
            yield Finding("uneven", one.message, one.location, wasted_bytes=one.padded_bytes)


def _line(place: Location | None) -> tuple[int, int] | None:
    return None if place is None else (place.source, place.line)


def of_collectives(collectives: Sequence[Collective], mesh: Mesh) -> Iterator[Finding]:
    """Find what the reasons and places of collectives say, once for each line."""
    known = set[tuple[FindingKind, str | None, Location | None]]()
    for one in collectives:
        location = location_of(one)
        for kind, message in _told(one, mesh):
            if (kind, one.producer, location) not in known:
                known.add((kind, one.producer, location))
                yield Finding(kind, message, location, wasted_bytes=_padding(one, mesh) or None)


def _told(one: Collective, mesh: Mesh) -> Iterator[tuple[FindingKind, str]]:
    producer, consumer = one.producer or "a value", one.consumer or "an operation"
    gathers = one.kind == "all-gather"
    if one.reason == "whole-axis" and gathers:
        before = f"{one.kind} of {producer} stands before {consumer}"
        why = "which has no partitioned form here: it runs whole on each device"
        yield "no partitioned form", f"{before}, {why}"
    if one.reason == "uneven":
        either = f"the compiler pads it or gives up its split{_padding_text(one, mesh)}"
        yield "uneven", f"{producer} does not divide evenly: {either}"
    if one.reason == "output-spec" and gathers and one.asked_by == "requested":
        lies, needed = map(spec_text, (one.producer_spec, one.needed_spec))
        both = f"{producer} is {lies} and must be {needed}"
        yield "output spec", f"the output spec undoes a sharding: {both}"
    if "while condition" in one.within:
        often = "it runs once a step, and the loop waits for it"
        yield "loop condition", f"{one.kind} stands in the condition of a loop: {often}"


def _padding(one: Collective, mesh: Mesh) -> int:
    """Give the bytes of padding in the array that a collective moves, as far as that is known."""
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


def location_of(collective: Collective) -> Location | None:
    """Give the line that a collective is told at: one of the explained text, else any."""
    frames = collective.frames
    return next((frame for frame in frames if frame.source == 0), frames[0] if frames else None)
