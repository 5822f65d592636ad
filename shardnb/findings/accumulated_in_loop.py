"""All-reduces in a loop whose results are only added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.loops import bodies, in_loops
from shardnb.report.model import Collective, Finding
from shardnb.texts.hlo import Instruction

_PASSED_ON = ("transpose", "reshape", "copy", "convert", "bitcast", "all-reduce")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find all-reduces in a loop whose results are only added up: one after the loop would do."""
    by_channel = in_loops(evidence)
    for body in bodies(evidence):
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
        f"{trips or 'an unknown number'} are sent, and one after the loop would do "
        "(accumulate the partial sums unreduced)",
        location_of(collective),
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
