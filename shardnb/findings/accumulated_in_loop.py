"""All-reduces in a loop whose results are only added up."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.collectives.find import reduction_of
from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.loops import in_loops, with_loops
from shardnb.report.model import Collective, Finding
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import VIEWS


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find all-reduces in a loop whose results are only added up: one after the loop would do."""
    by_channel, module = in_loops(evidence), with_loops(evidence)
    for reduce in module.of_kind("all-reduce"):
        found = by_channel.get(reduce.channel) if not reduce.is_tuple else None
        # The maximum of partial maxima, added up, is not the sum of maxima.
        summed = reduction_of(module, reduce) == "add"
        if found is not None and summed and _only_added_up(reduce, module.graph_of(reduce)):
            yield _accumulation(found)


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


def _only_added_up(reduce: Instruction, graph: Graph) -> bool:
    """Whether a value flows only into `carry + value`, the next value of that same carry."""
    value, reader = reduce.value, _only_reader(graph, reduce.value)
    while reader is not None and reader.opcode in VIEWS | {"all-reduce"}:
        value, reader = reader.value, _only_reader(graph, reader.value)
    if reader is None or reader.opcode != "add":
        return False
    carries = [operand for operand in graph.operands[reader.name] if operand != value]
    root = _only_reader(graph, reader.value)
    if len(carries) != 1 or root is not graph.root or root.opcode != "tuple":
        return False
    index, carry = graph.results.index(reader.value), graph.maker(carries[0])
    same = carry is not None and carry.opcode == "parameter" and carries[0].element == (index,)
    return same and _only_reader(graph, carries[0]) is not None


def _only_reader(graph: Graph, value: HloValue) -> Instruction | None:
    """Return the one instruction that reads a value, once, if there is just one."""
    readers = graph.users.get(value, [])
    once = len(readers) == 1 and graph.operands[readers[0].name].count(value) == 1
    return readers[0] if once else None
