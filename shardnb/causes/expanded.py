"""Operations that the compiler writes out as many steps, all under one name.

TPU does so with linear algebra before it partitions: a factorization becomes products and updates
of blocks. For GPUs the partitioner computes a running sum of each device's block, and one of the
blocks' totals. What is sent between the steps is for the operation itself; which step needs it the
texts do not tell, as the steps have one name.
"""

from __future__ import annotations

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

_LINEAR_ALGEBRA = (
    "cholesky eig eigh geqp3 geqrf hessenberg householder_product lu qr schur svd "
    "triangular_solve tridiagonal tridiagonal_solve"
)
_NAMES = frozenset(_LINEAR_ALGEBRA.split())
_UPDATES = PRODUCTS | {"while"}
"""What updates blocks by others. A factorization that the compiler keeps has none beside it."""


@dataclass
class Expanded:
    """Knows which operations of a program were written out as steps."""

    program: Unpartitioned

    @cached_property
    def names(self) -> frozenset[str]:
        """The op_names of these operations."""
        updates = self.program.module.of_kind(*_UPDATES)
        factors = (one.op_name for one in updates if primitive(one.op_name) in _NAMES)
        return frozenset((*factors, *self._running))

    @cached_property
    def _running(self) -> frozenset[str]:
        """The op_names of running sums, products and maxima, which HLO calls scans."""
        return frozenset(one.op_name for one in self.program.module.of_kind("scan") if one.op_name)

    def between_steps(self, after: Graph, made: Instruction) -> Verdict:
        """Judge what is sent from one step to others; `UNKNOWN` where it is not that."""
        users = after.users.get(made.value, ())
        if made.op_name not in self.names or any(one.key != made.key for one in users):
            return UNKNOWN
        operand = after.operands[made.name][0]
        maker = after.maker(operand)
        if made.op_name in self._running:
            # What is summed may be moved under this name too.
            total = after.maker(after.source(operand, ("reshape",)))
            if total is None or total.opcode != "scan":
                return UNKNOWN
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
