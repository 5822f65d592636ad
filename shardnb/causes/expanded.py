"""Operations that the compiler writes out as many steps, all under one name.

TPU does so with linear algebra before it partitions: a factorization becomes products and updates
of blocks. For GPUs the partitioner computes a running sum of each device's block, and one of the
blocks' totals. What is sent between the steps is for the operation itself; which step needs it the
texts do not tell, as the steps have one name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from shardnb.causes.data_movement import unmasked, unmasked_part
from shardnb.causes.stated_shardings import primitive
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import UNKNOWN, Verdict
from shardnb.terms.collectives import reduces
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import Instruction
from shardnb.texts.opcodes import PRODUCTS, SUMS

_FACTORIZATIONS = (
    "cholesky eig eigh geqp3 geqrf hessenberg householder_product lu qr schur svd "
    "triangular_solve tridiagonal tridiagonal_solve"
)
LINEAR_ALGEBRA = frozenset(_FACTORIZATIONS.split())
"""What JAX calls its operations of linear algebra."""

_ALGORITHM = re.compile(r"jit\((_svd_tall_and_square_input|qdwh)\)")
"""Functions of JAX's for TPU that write a factorization out; a polar one is a part of an svd."""

_ALGORITHMS = {"_svd_tall_and_square_input": "svd", "qdwh": "polar"}

_UPDATES = PRODUCTS | {"while"}
"""What updates blocks by others. A factorization that the compiler keeps has none beside it."""
_IN_BLOCKS = ("scan", "custom-call")


@dataclass
class Expanded:
    """Knows which operations of a program were written out as steps."""

    program: Unpartitioned

    @cached_property
    def names(self) -> frozenset[str]:
        """The op_names of the operations that are steps before partitioning already."""
        updates = self.program.module.of_kind(*_UPDATES)
        return frozenset(one.op_name for one in updates if primitive(one.op_name) in LINEAR_ALGEBRA)

    @cached_property
    def _in_blocks(self) -> frozenset[str]:
        """The op_names of running sums, which HLO calls scans, and of custom calls, as top_k is."""
        found = self.program.module.of_kind(*_IN_BLOCKS)
        return frozenset(one.op_name for one in found if one.op_name) - self.names

    def between_steps(self, after: Graph, made: Instruction) -> Verdict:
        """Judge what is sent from one step to others; `UNKNOWN` where it is not that."""
        users = after.users.get(made.value, ())
        of_blocks = made.op_name in self._in_blocks and _is_of_a_block(after, made)
        known = of_blocks or made.op_name in self.names
        if not known or any(one.key != made.key for one in users):
            return UNKNOWN
        operand = after.operands[made.name][0]
        maker = after.maker(operand)
        masked = unmasked(after, operand) or unmasked_part(after, operand) != operand
        if reduces(made.opcode) and not masked:
            summed = maker is not None and maker.key == made.key and maker.opcode in SUMS
            return Verdict("partial-sum") if summed else UNKNOWN
        return self.of(made.opcode) if users else UNKNOWN

    @staticmethod
    def of(opcode: str) -> Verdict:
        """Judge what a step needs of other devices, by how it is sent."""
        permute = opcode.startswith("collective-permute")
        return Verdict("halo" if permute else "whole-axis", detail="in blocks", layout_unknown=True)


def algorithm(op_name: str) -> str:
    """Return the factorization that JAX writes out with an operation, "" for another one.

    >>> algorithm("jit(f)/jit(svd)/jit(_svd_tall_and_square_input)/jit(qdwh)/while/body/geqrf")
    'svd'
    """
    found = _ALGORITHM.search(op_name)
    return _ALGORITHMS[found[1]] if found else ""


def _is_of_a_block(after: Graph, made: Instruction) -> bool:
    """Whether what is sent was computed of a block: its total, or its largest elements.

    What the operation takes is moved under its name too (`sum_over_columns`). Two of one line may
    share the first step, so names are compared and not columns (`two_sums_of_one_line`).
    """
    node = after.maker(after.operands[made.name][0])
    while node is not None and node.op_name == made.op_name:
        if node.opcode in _IN_BLOCKS:
            return True
        operands = after.operands[node.name]
        node = after.maker(operands[0]) if operands else None
    return False
