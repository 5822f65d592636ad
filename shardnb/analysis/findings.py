"""What is worth knowing of a program beside its collectives, each at its line, with its price."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardnb.compiler.hlo import Instruction, Module
from shardnb.report.model import Collective, Finding, Location, Mesh, Spec, Value
from shardnb.report.spec import spec_text

_LARGE = 1 << 20
_ALIASED = re.compile(r"\((\d+), \{[\d, ]*\}")
_PASSED_ON = ("transpose", "reshape", "copy", "convert", "bitcast", "all-reduce")


def replicated_inputs(values: Sequence[Value], mesh: Mesh) -> Iterator[Finding]:
    """Find inputs of 1 MiB or more, and of half of all inputs, that each device holds whole."""
    total = sum(value.shard_bytes for value in values)
    for value in values:
        large = value.bytes >= _LARGE and 2 * value.bytes >= total
        if large and mesh.size > 1 and value.shard_shape == value.shape:
            yield Finding(
                "replicated",
                f"{value.name} is whole on each of {mesh.size} devices",
                wasted_bytes=value.bytes * (mesh.size - 1),
            )


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


def rematerialised(collectives: Sequence[Collective]) -> Iterator[Finding]:
    """Find the full rematerialisations that the compiler itself warned of, counted by line."""
    flagged = [c for c in collectives if c.full_remat]
    counts = Counter((c.producer, c.producer_spec, c.needed_spec) for c in flagged)
    first = {(c.producer, c.producer_spec, c.needed_spec): c for c in reversed(flagged)}
    for key, count in counts.items():
        one = first[key]
        times = f" ({count} collectives)" if count > 1 else ""
        yield Finding(
            "full rematerialisation",
            f"{one.producer or 'a value'} goes from {spec_text(one.producer_spec)} to "
            f"{spec_text(one.needed_spec)}, and the compiler found no better way than to make it "
            f"whole on each device first{times}",
            location=_location(one),
        )


_LINE_OF = {
    "no partitioned form": "{kind} of {producer} stands before {consumer}, which has no "
    "partitioned form here: it runs whole on each device",
    "uneven": "{producer} does not divide evenly: the compiler pads it or gives up its split",
    "output spec": "the output spec undoes a sharding: {producer} is {from_spec} and must be "
    "{to_spec}",
    "loop condition": "{kind} stands in the condition of a loop: it runs once a step, and the "
    "loop waits for it",
}


def of_collectives(collectives: Sequence[Collective]) -> Iterator[Finding]:
    """Find what the reasons and places of collectives say, once for each line."""
    groups: dict[tuple[str, str | None, Location | None], list[Collective]] = defaultdict(list)
    for collective in collectives:
        for kind in _kinds(collective):
            groups[kind, collective.producer, _location(collective)].append(collective)
    for (kind, _, location), members in groups.items():
        one = members[0]
        message = _LINE_OF[kind].format(
            kind=one.kind,
            producer=one.producer or "a value",
            consumer=one.consumer or "an operation",
            from_spec=spec_text(one.producer_spec),
            to_spec=spec_text(one.needed_spec),
        )
        yield Finding(kind, message, location)


def _kinds(collective: Collective) -> Iterator[str]:
    gathers = collective.kind == "all-gather"
    if collective.reason == "whole-axis" and gathers:
        yield "no partitioned form"
    if collective.reason == "uneven":
        yield "uneven"
    if collective.reason == "output-spec" and gathers and collective.asked_by == "requested":
        yield "output spec"
    if "while condition" in collective.within:
        yield "loop condition"


def _location(collective: Collective) -> Location | None:
    frames = collective.frames
    return next((frame for frame in frames if frame.source == 0), frames[0] if frames else None)


@dataclass(frozen=True)
class _Use:
    """The instructions that read each value of a computation."""

    readers: Mapping[str, list[Instruction]]

    @classmethod
    def of(cls, body: Sequence[Instruction]) -> _Use:
        readers: dict[str, list[Instruction]] = defaultdict(list)
        for instruction in body:
            for operand in instruction.operands:
                readers[operand].append(instruction)
        return cls(readers)

    def only(self, name: str) -> Instruction | None:
        """Give the one reader of a value, if there is just one."""
        found = self.readers.get(name, [])
        return found[0] if len(found) == 1 else None


def accumulated_in_loops(
    partitioned: Module, collectives: Sequence[Collective]
) -> Iterator[Finding]:
    """Find all-reduces in a loop whose results are only added up: one after the loop would do."""
    by_channel = {c.channel: c for c in collectives if "while" in c.within}
    for body in partitioned.computations.values():
        reduces = [i for i in body if i.opcode == "all-reduce" and not i.is_tuple]
        found = [i for i in reduces if i.integer("channel_id") in by_channel]
        if found:
            use = _Use.of(body)
            for reduce in found:
                if _only_added_up(reduce, body, use):
                    yield _accumulation(by_channel[reduce.integer("channel_id")])


def _accumulation(collective: Collective) -> Finding:
    trips = collective.trips
    saved = None if trips is None else collective.wire_bytes * (trips - 1)
    return Finding(
        "accumulation",
        f"all-reduce in a loop whose results are only added up: "
        f"{trips or 'an unknown number of'} are sent, and one after the loop would do "
        "(accumulate the partial sums unreduced)",
        _location(collective),
        wasted_bytes=saved,
    )


def _only_added_up(reduce: Instruction, body: Sequence[Instruction], use: _Use) -> bool:
    """Whether a value flows only into `carry + value`, the next value of that same carry."""
    reader, name = use.only(reduce.name), reduce.name
    while reader is not None and reader.opcode in _PASSED_ON:
        name, reader = reader.name, use.only(reader.name)
    if reader is None or reader.opcode != "add":
        return False
    carries = [operand for operand in reader.operands if operand != name]
    root = next((i for i in body if i.is_root), body[-1])
    if len(carries) != 1 or use.only(reader.name) is not root or root.opcode != "tuple":
        return False
    return _is_carry(carries[0], root.operands.index(reader.name), body, use)


def _is_carry(name: str, index: int, body: Sequence[Instruction], use: _Use) -> bool:
    parameter, _, element = name.partition("#")
    by_name = {i.name: i for i in body if i.opcode in ("parameter", "get-tuple-element")}
    found = by_name.get(parameter)
    if found is not None and found.opcode == "get-tuple-element":
        element = str(found.integer("index"))
    return element == str(index) and use.only(name) is not None
