"""The mesh axes of an op's operands that did not reach its result, and what stopped each.

Only what Shardy's rule and the shardings prove is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from shardnb.propagation.chains import Chains, flat
from shardnb.report.model import Blocked, Spec
from shardnb.report.spec import axis_size, spec_text
from shardnb.terms.origins import Stop
from shardnb.texts.shardy import Op, Value
from shardnb.texts.shardy_attributes import Rule


def blocked_axes(
    chains: Chains, value: Value, names: Callable[[Value], str], sizes: Mapping[str, int]
) -> Iterator[Blocked]:
    """Return the axes that stopped at the op of a value; `sizes` are those of the mesh."""
    op = value.maker
    if op is None or op.rule is None:
        return
    here = _Result(chains, op, op.rule, value, names=names, sizes=sizes)
    known: set[str] = set()
    for index, operand in enumerate(op.operands):
        for stop in here.stopped(index, operand):
            if stop.axis not in known:
                known.add(stop.axis)
                yield stop


class _Result:
    """One result of an op, and the axes that its rule lets through."""

    def __init__(
        self,
        chains: Chains,
        op: Op,
        rule: Rule,
        value: Value,
        *,
        names: Callable[[Value], str],
        sizes: Mapping[str, int],
    ) -> None:
        self.chains, self.op, self.rule, self.names, self.sizes = chains, op, rule, names, sizes
        self.dims = rule.results[value.index]
        self.value = value.placed
        self.spec: Spec = self.value.spec or ((),) * len(self.value.shape)

    def stopped(self, index: int, operand: Value) -> Iterator[Blocked]:
        spec = operand.placed.spec or ()
        if index >= len(self.rule.operands):
            return
        for dim, (axes, factors) in enumerate(zip(spec, self.rule.operands[index], strict=False)):
            for axis in axes:
                if axis not in self._kept(factors):
                    why = self._why(axis, dim, factors, self.names(operand))
                    if why is not None:
                        yield Blocked(axis, self.names(operand), *why)

    def _kept(self, factors: tuple[str, ...]) -> list[str]:
        """Return the axes of the result's dimensions that these factors lead to."""
        return [
            axis
            for dim, axes in zip(self.dims, self.spec, strict=False)
            for axis in axes
            if set(dim) & set(factors)
        ]

    def _why(
        self, axis: str, dim: int, factors: tuple[str, ...], name: str
    ) -> tuple[Stop, str] | None:
        if len(factors) != 1:
            return self._part(factors)
        (factor,) = factors
        if factor in self.rule.reduction:
            dot = self.op.kind.startswith("stablehlo.dot")
            how, held = ("contracted", "sum") if dot else ("reduced", "result")
            why = f"dimension {dim} of {name} is {how}, so each device holds a partial {held}"
            return "reduction", why
        target = next((d for d, found in enumerate(self.dims) if found == factors), None)
        if target is None or target >= len(self.spec):
            return self._part(factors)
        return self._taken(axis, target, factor) or self._stated(axis, target)

    def _taken(self, axis: str, target: int, factor: str) -> tuple[Stop, str] | None:
        other = next((d for d, axes in enumerate(self.spec) if axis in axes), None)
        if other is not None:
            return "conflict", f"{axis} already shards its dimension {other}"
        if factor in self.rule.need_replication:
            return "whole-axis", f"the op needs the full dimension {target}"
        for other_axes, other_name in self._others(axis, factor):
            held = ", ".join(other_axes)
            if other_axes == self.spec[target]:
                return "conflict", f"its dimension {target} follows {held} of {other_name}"
            if not self.spec[target]:
                return "conflict", f"{other_name} has {held} on that dimension, and neither wins"
        return None

    def _others(self, axis: str, factor: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Return the operands that have other axes on a factor, with these axes."""
        for operand, dims in zip(self.op.operands, self.rule.operands, strict=False):
            spec = operand.placed.spec or ()
            for factors, axes in zip(dims, spec, strict=False):
                if factors == (factor,) and axes and axis not in axes:
                    yield axes, self.names(operand)

    def _stated(self, axis: str, target: int) -> tuple[Stop, str] | None:
        """Name the constraint that fixes a dimension."""
        op = self.chains.constrained.get(self.value)
        closed = self.value.sharding.closed if self.value.sharding else ()
        if op is None or axis in flat(self.spec) or not closed or not closed[target]:
            return None
        spec = spec_text(op.results[0].spec)
        return "constraint", f"the constraint {spec} states dimension {target}"

    def _part(self, factors: tuple[str, ...]) -> tuple[Stop, str] | None:
        """A reshape can shard a merged dimension only from its first part on, without a gap."""
        if self.op.kind != "stablehlo.reshape" or not factors:
            return None
        for target, joined in enumerate(self.dims):
            if factors[0] not in joined[1:]:
                continue
            before = math.prod(self.rule.sizes[f] for f in joined[: joined.index(factors[0])])
            parts = math.prod(axis_size(axis, self.sizes) for axis in self.spec[target])
            if parts < before:
                return "reshape", (
                    f"it would shard the inner part of dimension {target}, whose outer part of "
                    f"{before} is sharded only {parts} ways: the blocks would not be contiguous"
                )
        return None
