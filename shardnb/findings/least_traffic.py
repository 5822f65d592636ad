"""The bytes that one device reads and writes in its memory at least: arguments and results.

An argument starts in memory and a result ends there. Counted is an argument that an operation takes
in full, and a result that an operation computes in full; what is sliced, looked up, updated in
place or carried through a loop may be touched in part only, so it does not count.
"""

from __future__ import annotations

from shardnb.report.dtypes import size_in_bytes
from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ELEMENTWISE, PRODUCTS

# The same bytes under another shape: nothing is read yet.
_SAME_BYTES = frozenset(("bitcast", "reshape"))
_IN_PART = frozenset(
    ("dynamic-slice", "dynamic-update-slice", "gather", "scatter", "select-and-scatter", "slice")
)
_IN_FULL = (
    ELEMENTWISE
    | PRODUCTS
    | {"broadcast", "concatenate", "copy-start", "pad", "reduce", "transpose"}
)
_WITHIN_FUSIONS = _IN_FULL | _SAME_BYTES | {"constant", "iota", "parameter", "tuple"}


def least_traffic(module: Module) -> int:
    """Return the bytes of the arguments and results that are surely read or written in full."""
    entry = module.computations[module.entry]
    read = [node for node in entry.body if node.opcode == "parameter" and _is_read(module, node)]
    written = {value for value in entry.results if _is_written(module, entry, value)}
    arrays = [array for node in read for array in node.arrays]
    arrays += [array for value in written if (array := entry.array(value)) is not None]
    return sum(size_in_bytes(*array) for array in arrays)


def _is_read(module: Module, parameter: Instruction) -> bool:
    """Whether an operation takes an argument in full."""
    graph, values = module.graph_of(parameter), [parameter.value]
    while values:
        for user in graph.users.get(values.pop(), ()):
            if user.opcode in _SAME_BYTES:
                values.append(user.value)
            elif _touches_in_full(module, user):
                return True
    return False


def _touches_in_full(module: Module, node: Instruction) -> bool:
    """Whether an operation reads its operands in full, and writes its result in full."""
    if node.opcode != "fusion":
        return node.opcode in _IN_FULL or kind_of(node.opcode) is not None
    inner = module.computations.get(node.calls("calls"))
    return inner is not None and all(one.opcode in _WITHIN_FUSIONS for one in inner.body)


def _is_written(module: Module, graph: Graph, value: HloValue) -> bool:
    """Whether an operation computes a result in full: not an argument that is only handed on."""
    made = graph.maker(graph.source(value, _SAME_BYTES))
    if made is None or made.opcode in _IN_PART:
        return False
    done = made.opcode.endswith("-done") and kind_of(f"{made.opcode[:-5]}-start") is not None
    return done or _touches_in_full(module, made)
