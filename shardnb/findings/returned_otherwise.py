"""State that comes out of a step with another sharding than it went in with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from shardnb.causes.dataflow import reached
from shardnb.findings.evidence import Evidence
from shardnb.findings.patterns import by_pattern, subject
from shardnb.findings.spec_edits import spec_edit
from shardnb.report.edits import ProposedEdit
from shardnb.report.model import Collective, Finding, Value
from shardnb.report.spec import received_bytes, spec_text


class Pair(NamedTuple):
    """An array as it goes in, and as it comes out as the result of a number."""

    before: Value
    after: Value
    result: int


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find state whose new value has another sharding, with what a device receives to undo it.

    What is state follows from the dataflow: the argument reaches the result element by element in
    a step of training, or where it is donated, or because the result is the argument with some
    elements replaced, as a cache is.
    """
    groups: dict[tuple[object, ...], list[Pair]] = defaultdict(list)
    for pair in _pairs(evidence):
        if None not in (pair.before.spec, pair.after.spec) and pair.before.spec != pair.after.spec:
            groups[pair.before.spec, pair.after.spec].append(pair)
    if groups:
        yield _finding(evidence, [pair for pairs in groups.values() for pair in pairs])


def _pairs(evidence: Evidence) -> Iterator[Pair]:
    training, outputs = evidence.training, evidence.outputs
    if training is None or len(outputs) != len(training.flows.results):
        return
    inputs = {value.name: value for value in evidence.inputs}
    renewed = dict(training.renewed)
    for at, number in training.handed_on(evidence.donated).items():
        renewed.setdefault(at, number)
    for at, number in training.written_into.items():
        renewed.setdefault(at, number)
    for at, number in sorted(renewed.items()):
        before = inputs.get(training.name(number))
        if before is not None and before.shape == outputs[at].shape:
            yield Pair(before, outputs[at], at)


def _finding(evidence: Evidence, pairs: list[Pair]) -> Finding:
    values = [pair.before for pair in pairs]
    due = [one for one in evidence.collectives if _is_due(evidence, one, pairs)]
    received = sum(
        received_bytes(pair.after, pair.before.spec or (), evidence.mesh) for pair in pairs
    )
    subject_of = subject(values)
    before, after, _ = max(pairs, key=lambda pair: pair.before.bytes)
    sent = sum(one.least_wire_bytes for one in due)
    several = f"{subject_of}: " if len(pairs) > 1 else ""
    example = ", for example," if len(pairs) > 1 else ""
    return Finding(
        "returned otherwise",
        f"{several}{before.name}{example} goes in as {spec_text(before.spec)} and comes out as "
        f"{spec_text(after.spec)}, so the next call has to reshard or to compile again",
        wire_bytes=received + sent or None,
        details="\n".join(by_pattern(values)),
        subject=subject_of,
        edits=tuple(_edits(evidence, pairs, subject_of)),
        collectives=tuple(one.id for one in due),
    )


def _edits(evidence: Evidence, pairs: list[Pair], subject_of: str) -> Iterator[ProposedEdit]:
    """Yield both ways to have the specs alike: results as the inputs, and inputs as the results."""
    if any(axis.type == "manual" for axis in evidence.mesh.axes):
        return
    results = {pair.after.name: pair.before.spec or () for pair in pairs}
    inputs = {pair.before.name: pair.after.spec or () for pair in pairs}
    same = f"the specs of {subject_of} in in_specs and out_specs"
    as_given, as_returned = f"{same}: those of in_specs", f"{same}: those of out_specs"
    if not all(name.startswith("result") for name in results):  # a cell's names
        as_given = f"the input specs of {subject_of}, as a tree after --out"
        as_returned = f"the output specs of {subject_of}, as specs of the inputs"
    yield spec_edit(evidence, {}, results, as_given)
    yield spec_edit(evidence, inputs, {}, as_returned)


def _is_due(evidence: Evidence, one: Collective, pairs: list[Pair]) -> bool:
    """Whether a collective brings one of the arrays to the sharding in which it comes out."""
    names = {pair.before.name for pair in pairs}
    if one.reason != "output-spec":
        return False
    if one.role in ("parameter-update", "optimizer-state"):
        return one.role_of in names
    dataflow = evidence.causes.dataflow
    moved = dataflow.moved.get(one.id) if dataflow is not None else None
    if dataflow is None or moved is None or moved.graph is not dataflow.training.flows.entry:
        return False
    ends = reached(moved.graph, moved.value)
    return any(
        pair.result in ends
        and moved.needed == pair.after.spec
        and moved.graph.array(moved.value) == moved.graph.array(moved.graph.results[pair.result])
        for pair in pairs
    )
