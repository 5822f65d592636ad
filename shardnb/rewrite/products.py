"""A product whose partial sums are scattered: `shard_map` with the sum written out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from shardnb.compiler import Program
from shardnb.compiler.placement import partition_spec
from shardnb.report.model import Collective, Location, Spec
from shardnb.report.spec import spec_text
from shardnb.rewrite.program_edits import NotTried, lowered_with
from shardnb.rewrite.rewrite_points import RewritePoint
from shardnb.rewrite.source_units import SourceUnit


@dataclass(frozen=True)
class ProductEdit:
    """`a @ b` as a `shard_map` whose partial sums over `axes` are scattered along dimension `dim`.

    `spec` is the placement of the product without that.
    """

    unit: SourceUnit
    point: RewritePoint
    spec: Spec
    axes: tuple[str, ...]
    dim: int
    location: Location | None = None
    size: ClassVar[int] = 2  # it takes more of the user's time than a constraint

    @property
    def specs(self) -> tuple[Spec, Spec, Spec]:
        """The placements of the two operands and of the result."""
        *rows, columns = self.spec
        result = list(self.spec)
        result[self.dim] = (*result[self.dim], *self.axes)
        return (*rows, self.axes), (self.axes, columns), tuple(result)

    @property
    def text(self) -> str:
        """Return the expression that stands for the product."""
        left, right, result = map(spec_text, self.specs)
        axes = repr(self.axes[0] if len(self.axes) == 1 else self.axes)
        body = f"jax.lax.psum_scatter(a @ b, {axes}, scatter_dimension={self.dim}, tiled=True)"
        return (
            f"line {self.point.line}: in place of {self.point.name}, jax.shard_map(lambda a, b: "
            f"{body}, in_specs=({left}, {right}), out_specs={result})"
            f"({', '.join(self.point.operands)})"
        )

    def lowered(self, program: Program) -> Any:
        """Trace the edited text and lower it; raises `NotTried` where it is another product."""
        return lowered_with([self], program.request)

    def changed(self, a: Any, b: Any) -> Any:
        """Return the product of two matrices, or of matrices and one, with its sums scattered."""
        if b.ndim != 2 or a.ndim != len(self.spec):
            raise NotTried(self.text)
        left, right, result = map(partition_spec, self.specs)
        return jax.shard_map(self._scattered, in_specs=(left, right), out_specs=result)(a, b)

    def _scattered(self, a: Any, b: Any) -> Any:
        return jax.lax.psum_scatter(a @ b, self.axes, scatter_dimension=self.dim, tiled=True)


def scattered_products(
    collective: Collective,
    unit: SourceUnit,
    point: RewritePoint,
    location: Location | None,
    sizes: Mapping[str, int],
) -> Iterator[ProductEdit]:
    """Yield the edits of a product that an all-reduce of partial sums may come from."""
    spec, axes = collective.producer_spec, collective.axes or ()
    ours = collective.kind == "all-reduce" and collective.reason == "partial-sum"
    if not ours or not spec or not axes or not set(axes) <= set(sizes):
        return
    parts = math.prod(sizes[axis] for axis in axes)
    for dim, size in enumerate(collective.shape):
        if size % parts == 0 and len(spec) == len(collective.shape):
            yield ProductEdit(unit, point, spec, axes, dim, location)
