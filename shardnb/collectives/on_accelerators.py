"""What TPU and GPU may send where the compiler for CPU sends more.

XLA for CPU computes narrow floats in `float32`, and so sends them. It also keeps an all-reduce
whose result each device cuts at once, of which XLA for TPU and GPU can make a reduce-scatter. The
program right after partitioning, which all of them start from, shows both; it does not show whether
they do so: XLA for TPU keeps a small all-reduce, and one in a loop whose sum is used in other ways.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shardnb.bugs import Inconclusive
from shardnb.collectives.wire_bytes import wire_bytes
from shardnb.report.dtypes import size_in_bytes
from shardnb.report.model import Collective, Groups, OnAccelerators
from shardnb.terms.collectives import Kind, kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import VIEWS

_NARROW = frozenset(("bf16", "f16"))
_NUMBER = re.compile(r"-?\d+")

Offsets = NDArray[np.int64]


def on_accelerators(
    collective: Collective, made: Instruction, graph: Graph
) -> OnAccelerators | None:
    """Return what TPU and GPU may make of a collective that was `made`; None if it is the same.

    `graph` is the computation right after partitioning that `made` stands in.
    """
    if len(made.arrays) != 1 or kind_of(made.opcode) != collective.kind:
        return None
    narrow = made.arrays[0][0]
    dtype = narrow if narrow in _NARROW and collective.dtype == "f32" else collective.dtype
    kind: Kind = collective.kind
    shape = collective.shape
    cut = scattered(graph, made, collective.groups) if kind == "all-reduce" else None
    if cut is not None:
        kind, shape = "reduce-scatter", cut
    if (kind, dtype) == (collective.kind, collective.dtype):
        return None
    group = len(collective.groups[0]) if collective.groups else 0
    sent = wire_bytes(kind, size_in_bytes(dtype, shape), group)
    return OnAccelerators(kind, dtype, shape, sent)


def scattered(graph: Graph, made: Instruction, groups: Groups) -> tuple[int, ...] | None:
    """Return the shape of the block that each device keeps of a sum; None where it keeps all.

    The first device of each group has to keep the first block, the second the second, and so on.
    """
    users = graph.users.get(made.value, ())
    if not groups or not users or made.is_root:
        return None
    if any(user.opcode != "dynamic-slice" for user in users):
        return None
    full, cut = made.arrays[0][1], users[0].arrays[0][1]
    dims = [dim for dim, size in enumerate(full) if size != cut[dim]]
    if len(dims) != 1 or full[dims[0]] != cut[dims[0]] * len(groups[0]):
        return None
    alike = all(user.arrays[0][1] == cut for user in users)
    starts = (graph.operands[user.name][1 + dims[0]] for user in users)
    one_each = all(_one_each(graph, start, cut[dims[0]], groups) for start in starts)
    return cut if alike and one_each else None


def _one_each(graph: Graph, start: HloValue, size: int, groups: Groups) -> bool:
    """Whether the devices of each group start to cut at one block after the other."""
    try:
        starts = _Starts(graph, max(map(max, groups)) + 1).of(start)
    except Inconclusive:
        return False
    wanted = np.arange(len(groups[0])) * size
    return all(np.array_equal(starts[list(group)], wanted) for group in groups)


@dataclass
class _Starts:
    """Computes where each of the devices starts to cut: from its number, tables and products."""

    graph: Graph
    devices: int
    _known: dict[HloValue, Offsets] = field(default_factory=dict)

    def of(self, value: HloValue) -> Offsets:
        """Give a number for each device. Raises `Inconclusive` where that is computed otherwise."""
        value = self.graph.resolve(value)
        if value not in self._known:
            self._known[value] = self._of(value)
        return self._known[value]

    def _of(self, value: HloValue) -> Offsets:
        node = self.graph.maker(value)
        if node is None:
            raise Inconclusive
        operands = self.graph.operands[node.name]
        if node.opcode == "partition-id":
            return np.arange(self.devices)
        if node.opcode == "constant" and math.prod(node.arrays[0][1]) == 1:
            return np.full(self.devices, self._table(node)[0])
        if node.opcode in VIEWS:
            return self.of(operands[0])
        if node.opcode in ("add", "multiply", "subtract"):
            left, right = map(self.of, operands)
            operations = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract}
            return np.asarray(operations[node.opcode](left, right))
        if node.opcode == "dynamic-slice" and len(operands) == 2:
            table = self.graph.maker(operands[0])
            if table is not None and table.opcode == "constant":
                numbers = self._table(table)
                return numbers[np.clip(self.of(operands[1]), 0, len(numbers) - 1)]
        raise Inconclusive

    @staticmethod
    def _table(node: Instruction) -> Offsets:
        numbers = np.array([int(number) for number in _NUMBER.findall(node.operand_text)])
        if len(numbers) != math.prod(node.arrays[0][1]):
            raise Inconclusive
        return numbers
