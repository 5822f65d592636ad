"""Parameters that the forward pass gathers more than once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from shardnb.causes.dataflow import Dataflow, Moved
from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.spec_edits import constraint_text
from shardnb.report.edits import NewSpec, ProposedEdit
from shardnb.report.model import Collective, Finding
from shardnb.report.spec import axes_in
from shardnb.texts.opcodes import PARTS, VIEWS
from shardnb.views.formatting import size


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the gathers of one array of a parameter of which the first would do.

    A gather more in the backward pass, or where the forward pass is computed again, is what FSDP
    saves memory by. Slices of a parameter are not the same array, but two loops may each gather all
    slices of it (`stack_of_two_scans`).
    """
    dataflow = evidence.causes.dataflow
    groups: dict[object, list[Collective]] = defaultdict(list)
    for one in evidence.collectives if dataflow is not None else ():
        moved = dataflow.moved.get(one.id) if dataflow is not None else None
        if one.role == "parameter-gather" and one.phase == "forward" and moved is not None:
            source = moved.graph.name, moved.graph.source(moved.value, VIEWS)
            whole = dataflow is not None and _gathers_all_slices(dataflow, moved, one)
            groups[None if whole else source, one.axes, one.role_of].append(one)
    for members in groups.values():
        if len(members) > 1 and all(one.trips is not None for one in members):
            yield _finding(evidence, members)


def _gathers_all_slices(dataflow: Dataflow, moved: Moved, one: Collective) -> bool:
    """Whether a loop gathers each slice of a parameter in turn."""
    flows, graph = dataflow.training.flows, moved.graph
    number = flows.part_of(graph, moved.value)
    array = flows.entry.array(flows.entry.parameters[number]) if number is not None else None
    steps = (graph.maker(value) for value in graph.upward(moved.value, PARTS))
    sliced = any(node is not None and node.opcode == "dynamic-slice" for node in steps)
    if array is None or one.trips is None or not sliced:
        return False
    return one.trips > 1 and one.trips * math.prod(one.shape) == math.prod(array[1])


def _finding(evidence: Evidence, members: list[Collective]) -> Finding:
    sent = [one.least_wire_bytes for one in members]
    of, axes = members[0].role_of, members[0].axes or ()
    dtypes = dict.fromkeys(one.dtype for one in members)
    as_types = f", as {' and '.join(dtypes)}," if len(dtypes) > 1 else ""
    places = [place for place in map(location_of, members) if place is not None]
    return Finding(
        "repeated gather",
        f"{of} is gathered over {' and '.join(axes)} {len(members)} times in the forward pass"
        f"{as_types} and once would do: each device sends {size(sum(sent))} for it per run",
        location=places[0] if places else None,
        locations=tuple(dict.fromkeys(places)),
        wasted_bytes=sum(sent) - max(sent),
        wire_bytes=sum(sent),
        collectives=tuple(one.id for one in members),
        edits=tuple(_edits(evidence, members)),
    )


def _edits(evidence: Evidence, members: list[Collective]) -> Iterator[ProposedEdit]:
    """Yield the constraint that gathers an argument once, where the function begins."""
    name, gathered = members[0].role_of, set(members[0].axes or ())
    value = next((value for value in evidence.inputs if value.name == name), None)
    if any(one.trips != 1 for one in members):
        return  # outside of the loop, each device would hold all slices at once
    if value is None or value.spec is None or any(a.type != "auto" for a in evidence.mesh.axes):
        return
    if value.closed_over or not gathered <= axes_in(value.spec):
        return
    spec = tuple(tuple(axis for axis in held if axis not in gathered) for held in value.spec)
    text = f"where the function begins: {constraint_text(name, spec)}"
    yield ProposedEdit(text, (NewSpec("argument", name, spec),))
