"""One line that says what a collective moves, for whom, and why."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.analysis.causes.verdict import CARRY, DISAGREE, ELSEWHERE, NO_FORM, TWO_DIMS, Verdict
from shardnb.report.model import Collective, Spec
from shardnb.report.spec import spec_text


@dataclass(frozen=True)
class Facts:
    """What a sentence is made of. `spec` is where the producer lies, `other_spec` the operand
    that disagrees; `summed` are the producer's dimensions that the consumer sums over."""

    producer: str | None
    consumer: str | None
    spec: Spec | None
    own: bool
    line: int | None
    other: str | None = None
    other_spec: Spec | None = None
    summed: frozenset[int] = frozenset()


def sentence(collective: Collective, verdict: Verdict, facts: Facts) -> str:
    """Write the sentence of a collective."""
    head = f"{collective.kind}{_axes(collective)} of {facts.producer or 'a value'} {_size(collective)}"
    because = _because(collective, verdict, facts)
    return f"{head}{_target(facts)}: {because}." if because else f"{head}{_target(facts)}."


def _axes(collective: Collective) -> str:
    return f"[{','.join(collective.axes)}]" if collective.axes else ""


def _size(collective: Collective) -> str:
    dims = "x".join(map(str, collective.shape)) or "scalar"
    return f"({dims} {collective.dtype}, {_bytes(collective.bytes)})"


def _bytes(count: int) -> str:
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}".replace(".0 ", " ")


def _target(facts: Facts) -> str:
    place = f" at line {facts.line}" if facts.line is not None else ""
    if facts.own or facts.consumer is None:
        return place
    word = "for" if facts.consumer.startswith("the ") else "before"
    return f" {word} {facts.consumer}{place}"


def _because(collective: Collective, verdict: Verdict, facts: Facts) -> str:
    over = " and ".join(collective.axes or ()) or "the devices"
    dims = _dims(verdict, facts)
    lies = f"{facts.producer} is split over {over} on {dims}" if dims else f"{facts.producer} is split over {over}"
    asked = verdict.asked_by == "requested"
    if verdict.reason == "partial-sum":
        return f"each device has a partial result, as {facts.consumer} reduces over a dimension that is split over {over}"
    if verdict.reason == "conflict":
        return f"{lies}, {_conflict(verdict, facts, over)}"
    if verdict.reason == "output-spec":
        who = "a stated sharding puts it elsewhere" if asked else "its declared placement is another"
        return f"{lies}, {who}{_needed(verdict)}"
    if verdict.reason == "whole-axis":
        tail = f"the partitioner has no split form of {facts.consumer} here" if verdict.detail == NO_FORM else f"{facts.consumer} needs all of it"
        return f"{lies}, {tail}"
    if verdict.reason == "reshape":
        return f"{lies}, and the split does not fit the dimensions that a reshape joins or cuts"
    if verdict.reason == "uneven":
        return f"{lies}, and its size does not divide by the devices"
    if verdict.reason == "halo":
        return f"{lies}, and {facts.consumer} takes elements that other devices hold"
    return "why it is there is not known" if verdict.reason == "unknown" else ""


def _conflict(verdict: Verdict, facts: Facts, over: str) -> str:
    other = facts.other
    if verdict.detail == TWO_DIMS:
        return f"and {over} already splits another dimension of {other or 'what it meets'}"
    if verdict.detail == DISAGREE:
        return f"{other or 'the other operand'} {_state(facts.other_spec)}"
    if verdict.detail == ELSEWHERE:
        return f"the result lies elsewhere{_needed(verdict)}"
    return "and the loop carries it in another placement" if verdict.detail == CARRY else "another placement is wanted"


def _state(spec: Spec | None) -> str:
    if spec is None:
        return "lies otherwise"
    return f"lies as {spec_text(spec)}" if any(spec) else "is whole"


def _needed(verdict: Verdict) -> str:
    return f": {spec_text(verdict.needed)}" if verdict.needed is not None else ""


def _dims(verdict: Verdict, facts: Facts) -> str:
    if not verdict.dims:
        return ""
    if facts.summed and set(verdict.dims) <= facts.summed:
        return "its contracting dim"
    return "dim " + " and ".join(map(str, verdict.dims))
