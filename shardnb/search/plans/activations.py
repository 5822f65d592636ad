"""The activations that a program carries from layer to layer, and constraints on them.

A recipe places the arguments. In between the compiler may choose badly: with FSDP beside tensor
parallelism it gathers activations instead of parameters
(test_a_constraint_on_the_residuals_is_part_of_the_plan).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
from jax.sharding import AxisType

from shardnb.bugs import refusable
from shardnb.compiler import Program
from shardnb.report.model import Report, Spec
from shardnb.report.plans import Layout
from shardnb.rewrite import hook
from shardnb.rewrite.program_edits import ConstraintEdit
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.rewrite.rewrite_points import RewritePoint, hooked
from shardnb.rewrite.source_units import SourceUnit, units_of
from shardnb.search.fixes.candidates import fits, locate

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Activations:
    """Where the user's text makes the residuals of a model, and their shape.

    The first `leading` dimensions are those of the data: the batch, and the sequence if there are
    two.
    """

    places: tuple[tuple[SourceUnit, RewritePoint], ...]
    shape: Shape
    leading: int

    def constraints(self, spec: Spec, report: Report) -> tuple[ConstraintEdit, ...]:
        """Return the constraints that shard all of them so."""
        return tuple(
            ConstraintEdit(unit, point, spec, explicit=False, location=locate(unit, point, report))
            for unit, point in self.places
        )

    def specs(self, data: Spec, layout: Layout, sizes: Mapping[str, int]) -> Iterator[Spec]:
        """Yield the specs that an expert would try, by how the data is sharded.

        With the batch alone, parameters are gathered and not activations. Over the axes of tensor
        parallelism the sequence can be sharded besides, so that less is held between the layers.
        """
        rest = ((),) * (len(self.shape) - self.leading)
        kept = (*data[: self.leading], *rest)
        if set(layout.values()) & {"fsdp", "expert-parallel"}:
            yield kept
        tensor = tuple(axis for axis, recipe in layout.items() if recipe == "tensor-parallel")
        if tensor and self.leading > 1:
            order = list(sizes).index
            sequence = tuple(sorted((*data[1], *tensor), key=order))
            sharded = (data[0], sequence, *rest)
            if fits(sharded, self.shape, sizes):
                yield sharded


@dataclass
class _Probe:
    """Notes the shapes of the arrays at the points of a text, and which point comes first."""

    unit: SourceUnit
    shapes: dict[int, Shape] = field(default_factory=dict)
    floats: set[int] = field(default_factory=set)

    def __call__(self, number: int, value: Any) -> Any:
        if isinstance(value, jax.core.Tracer) and number not in self.shapes:
            self.shapes[number] = tuple(value.shape)
            if jax.dtypes.issubdtype(value.dtype, jax.numpy.floating):
                self.floats.add(number)
        return value

    def named(self, function: str, name: str) -> set[Shape]:
        """Return the shapes that a name has in a function."""
        points = ((self.unit.points[number], shape) for number, shape in self.shapes.items())
        return {s for p, s in points if (p.function, p.name) == (function, name)}


def activations_of(program: Program, data: Shape, *, tokens: bool) -> Activations | None:
    """Trace once more, and find where the residuals are made; None where none are.

    `data` is the shape of the data, whose last dimension is features unless it is `tokens`. The
    residuals have its other dimensions, then features: the first named value of such a shape
    counts, and each sum that adds to a value of that shape.
    """
    leading = data if tokens else data[:-1]
    if not leading or set(program.mesh.axis_types) != {AxisType.Auto}:
        return None
    probes = [_probed(program, unit) for unit in units_of(program, program.request.texts.sources)]
    for probe in probes:
        first = next(_made(probe, leading), None)
        if first is not None:
            shape = probe.shapes[first]
            places = [(probe.unit, probe.unit.points[first])]
            places += [place for each in probes for place in _sums(each, shape)]
            return Activations(tuple(dict.fromkeys(places)), shape, len(leading))
    return None


def _probed(program: Program, unit: SourceUnit) -> _Probe:
    probe, transform = _Probe(unit), partial(hooked, top=unit.cell is not None)
    request = program.request
    with (
        quiet_retrace(),
        hook.handling(probe),
        unit.edited(request.function, transform) as function,
        refusable(),
    ):
        replace(request, function=function).trace()
    return probe


def _made(probe: _Probe, leading: Shape) -> Iterator[int]:
    """Yield the points that make values of these dimensions and features, as they come."""
    for number, shape in probe.shapes.items():
        made = probe.unit.points[number].kind == "assigned" and number in probe.floats
        if made and shape[:-1] == leading:
            yield number


def _sums(probe: _Probe, shape: Shape) -> Iterator[tuple[SourceUnit, RewritePoint]]:
    """Yield the points that add to a value of a shape, such as `x = x + f(x)`."""
    for number, of in probe.shapes.items():
        point = probe.unit.points[number]
        added = {s for name in point.added for s in probe.named(point.function, name)}
        if of == shape and shape in added:
            yield probe.unit, point
