"""Optimizer state and gradients that are less sharded than the parameters that they belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from shardnb.findings.evidence import Evidence
from shardnb.findings.patterns import by_pattern, steps, subject
from shardnb.findings.spec_edits import spec_edit
from shardnb.report.bytes_sent import most_sent
from shardnb.report.edits import ProposedEdit
from shardnb.report.model import Collective, Finding, Mesh, Value
from shardnb.report.spec import axes_in, mesh_axis, placed_value, spec_text
from shardnb.views.formatting import size

# A hundredth of what a device's inputs take: biases are left replicated by everybody, and beside
# their matrices that costs nothing.
_LEAST_SHARE = 0.01


class _Unlike(NamedTuple):
    """An array, its parameter, and the axes that shard a dimension of the parameter alone.

    `elsewhere` says that they shard another dimension of the array.
    """

    value: Value
    parameter: Value
    axes: tuple[str, ...]
    noun: str
    elsewhere: bool

    def saved(self, mesh: Mesh) -> int:
        """Give the bytes that a device would hold less, were the array sharded as its parameter."""
        value, spec = self.value, self.parameter.spec or ()
        alike = placed_value(value.name, value.dtype, value.shape, spec, mesh)
        return value.shard_bytes - alike.shard_bytes


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find state, and gradients that are returned, that axes do not shard as their parameter.

    State that is sharded further than its parameter is so on purpose (ZeRO).
    """
    groups: dict[tuple[object, ...], list[_Unlike]] = defaultdict(list)
    for found in unlike(evidence):
        groups[found.noun, found.axes, found.elsewhere].append(found)
    total = sum(value.shard_bytes for value in evidence.inputs)
    for members in groups.values():
        saved = sum(found.saved(evidence.mesh) for found in members)
        due = [one for one in evidence.collectives if _is_due(one, members)]
        if members[0].elsewhere and due:
            finding = _elsewhere(members, due)
        elif saved >= max(1, _LEAST_SHARE * total):
            finding = _replicated(members, due, saved)
        else:
            continue
        yield replace(finding, edits=tuple(_edits(evidence, members)))


def unlike(evidence: Evidence) -> Iterator[_Unlike]:
    """Yield the arrays that lack an axis on a dimension on which it shards their parameter."""
    training = evidence.training
    if training is None:
        return
    inputs = {value.name: value for value in evidence.inputs}
    pairs = [
        (inputs.get(training.name(number)), owner, "optimizer state")
        for number, owner in training.owners.items()
    ]
    if len(evidence.outputs) == len(training.flows.results):
        returned = training.returned.items()
        pairs += [(evidence.outputs[at], owner, "gradients") for at, owner in returned]
    for value, owner, noun in pairs:
        parameter = None if owner is None else inputs.get(training.name(owner))
        if value is None or parameter is None or value.shape != parameter.shape:
            continue
        if value.spec is None or parameter.spec is None:
            continue
        pairs_of_dims = zip(parameter.spec, value.spec, strict=True)
        missed = {axis for theirs, held in pairs_of_dims for axis in theirs if axis not in held}
        if missed:
            axes = tuple(axis.name for axis in evidence.mesh.axes if axis.name in missed)
            yield _Unlike(value, parameter, axes, noun, missed <= axes_in(value.spec))


def _replicated(members: list[_Unlike], due: list[Collective], saved: int) -> Finding:
    values = [found.value for found in members]
    parameter = max(members, key=lambda found: found.value.shard_bytes).parameter
    before = sum(value.shard_bytes for value in values)
    be, like = (
        ("is", "its parameter, it") if len(values) == 1 else ("are", "their parameters, they")
    )
    axes = members[0].axes
    shard = "shards" if len(axes) == 1 else "shard"
    message = (
        f"{members[0].noun}: {subject(values)} {be} replicated over {' and '.join(axes)}, which "
        f"{shard} the parameters, such as {parameter.name} {spec_text(parameter.spec)}: "
        f"sharded like {like} would take {size(before - saved)} per device instead of "
        f"{size(before)}"
    )
    return replace(_with_bytes(message, values, due), wasted_bytes=saved)


def _elsewhere(members: list[_Unlike], due: list[Collective]) -> Finding:
    largest = max(members, key=lambda found: found.value.shard_bytes)
    values, parameter = [found.value for found in members], largest.parameter
    be = "is" if len(values) == 1 else "are"
    message = (
        f"{members[0].noun}: {subject(values)} {be} sharded over {' and '.join(largest.axes)} on "
        f"another dimension than the parameters, so each update is resharded: {largest.value.name} "
        f"is {spec_text(largest.value.spec)}, but {parameter.name} is {spec_text(parameter.spec)}"
    )
    return _with_bytes(message, values, due)


def _edits(evidence: Evidence, members: list[_Unlike]) -> Iterator[ProposedEdit]:
    """Yield the edit that gives arrays, and the results that renew them, the parameters' specs."""
    training = evidence.training
    if training is None or any(axis.type == "manual" for axis in evidence.mesh.axes):
        return
    specs = {found.value.name: found.parameter.spec or () for found in members}
    of = f"give {subject([m.value for m in members])} the specs of "
    in_words = of + steps(members[0].parameter.name)[0]
    if members[0].noun == "gradients":
        yield spec_edit(evidence, {}, specs, in_words)
        return
    results = {}
    if len(evidence.outputs) == len(training.flows.results):
        for at, number in training.renewed.items():
            spec = specs.get(training.name(number))
            if spec is not None and evidence.outputs[at].spec != spec:
                results[evidence.outputs[at].name] = spec
    yield spec_edit(evidence, specs, results, in_words)


def _with_bytes(message: str, values: list[Value], due: list[Collective]) -> Finding:
    return Finding(
        "state unlike parameters",
        message,
        subject=subject(values),
        details="\n".join(by_pattern(values)),
        wire_bytes=most_sent(due) or None,
        collectives=tuple(one.id for one in due),
    )


def _is_due(one: Collective, members: list[_Unlike]) -> bool:
    """Whether a collective moves one of the arrays, or what is computed of it for its parameter."""
    names = {found.value.name for found in members}
    updated = {found.parameter.name for found in members if found.noun == "optimizer state"}
    axes = {mesh_axis(axis) for axis in one.axes or ()}
    along = any(axes.intersection(found.axes) for found in members)
    moved = one.role == "optimizer-state" and one.role_of in names
    return along and (moved or (one.role == "parameter-update" and one.role_of in updated))
