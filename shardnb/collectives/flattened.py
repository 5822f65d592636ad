"""Sums that XLA for GPU joined into one array of one dimension, to send them as one."""

from __future__ import annotations

from typing import NamedTuple

from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue, Module
from shardnb.texts.instruction import Array, HloValue, Instruction

# A reshape of the same elements in the same order, as XLA lays sums end to end.
_SAME_ORDER = frozenset(("bitcast", "copy", "reshape"))


class Piece(NamedTuple):
    """One of the sums: the computation that it is in, the value, its element type and shape."""

    graph: Graph
    value: HloValue
    array: Array


def pieces(module: Module, collective: Instruction) -> tuple[Piece, ...]:
    """Return what an all-reduce of one flat array sends, in order; empty for any other collective.

    A concatenation of the user's has a name of JAX's, and XLA's own has none
    (`test_sums_that_were_joined_into_one_flat_array_are_counted_each`).
    """
    operands = collective.operands
    if kind_of(collective.opcode) != "all-reduce" or len(operands) != 1:
        return ()
    graph = module.graph_of(collective)
    made = graph.maker(graph.operands[collective.name][0])
    if made is None or len(made.arrays) != 1 or len(made.arrays[0][1]) != 1:
        return ()
    inner = module.computations.get(made.calls("calls")) if made.opcode == "fusion" else graph
    joined = inner.root if inner is not None and inner is not graph else made
    if inner is None or joined.opcode != "concatenate" or joined.op_name:
        return ()
    parts = [_outside(graph, made, inner, operand) for operand in inner.operands[joined.name]]
    return tuple(_piece(*part) for part in parts)


def _outside(graph: Graph, fusion: Instruction, inner: Graph, value: HloValue) -> GraphValue:
    """Return what a fusion takes for a value in it, the value itself where it is made there."""
    node = inner.maker(value)
    if inner is graph or node is None or node.opcode != "parameter":
        return inner, value
    return graph, graph.operands[fusion.name][node.number]


def _piece(graph: Graph, value: HloValue) -> Piece:
    source = graph.source(value, _SAME_ORDER)
    array = graph.array(source) or graph.array(value) or ("", ())
    return Piece(graph, source, array)
