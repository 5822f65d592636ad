"""All-reduces in a loop whose results are only added up."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.collectives.find import reduction_of
from shardnb.findings.evidence import Evidence, location_of
from shardnb.findings.loops import in_loops, with_loops
from shardnb.report.model import Collective, Finding
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import VIEWS


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find all-reduces in a loop whose results are only added up: one after the loop would do.

    Those of one line and one loop are one finding.
    """
    module = with_loops(evidence)
    alike: dict[tuple[object, ...], list[Collective]] = {}
    for one, reduce in in_loops(evidence):
        single = reduce.opcode.removesuffix("-start") == "all-reduce" and not reduce.is_tuple
        # The maximum of partial maxima, added up, is not the sum of maxima.
        summed = single and reduction_of(module, reduce) == "add"
        if summed and _only_added_up(reduce, module):
            alike.setdefault((location_of(one), one.trips, reduce.computation), []).append(one)
    yield from map(_accumulation, alike.values())


def _accumulation(members: list[Collective]) -> Finding:
    trips = members[0].trips
    kind, one = ("all-reduce", "one") if len(members) == 1 else ("all-reduces", "one of each")
    saved = None if trips is None else sum(one.wire_bytes for one in members) * (trips - 1)
    return Finding(
        "accumulation",
        f"{kind} in a loop whose results are only added up: "
        f"{trips or 'an unknown number'} are sent, and {one} after the loop would do "
        "(accumulate the partial sums unreduced)",
        location_of(members[0]),
        wasted_bytes=saved,
        wire_bytes=saved,
        collectives=tuple(one.id for one in members),
    )


def _only_added_up(reduce: Instruction, module: Module) -> bool:
    """Whether a value flows only into `carry + value`, the next value of that same carry.

    On the way it may be scaled: a mean is a sum that is divided by the number of its elements.
    """
    graph = module.graph_of(reduce)
    value, reader = reduce.value, _only_reader(graph, reduce.value)
    while reader is not None and _keeps_sums(reader, value, module):
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


def _keeps_sums(reader: Instruction, value: HloValue, module: Module) -> bool:
    """Whether an operation on a sum is the sum of that operation on the summands.

    The gradient of a bias is summed twice, over the batch and over a dimension of size one.
    """
    graph = module.graph_of(reader)
    if reader.opcode == "reduce":
        first = graph.maker(graph.operands[reader.name][-1])
        zero = first is not None and first.operand_text == "0"
        return zero and reduction_of(module, reader) == "add"
    if reader.opcode not in ("divide", "multiply"):
        return reader.opcode in VIEWS | {"all-reduce", "negate"}
    left, right = graph.operands[reader.name]
    scale = graph.maker(graph.source(left if right == value else right, VIEWS | {"broadcast"}))
    scaled = reader.opcode == "multiply" or left == value
    return scaled and scale is not None and scale.opcode == "constant"


def _only_reader(graph: Graph, value: HloValue) -> Instruction | None:
    """Return the one instruction that reads a value, once, if there is just one."""
    readers = graph.users.get(value, [])
    once = len(readers) == 1 and graph.operands[readers[0].name].count(value) == 1
    return readers[0] if once else None
