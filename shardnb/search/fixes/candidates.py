"""Which edits are worth a look: other specs of inputs and results, constraints on values."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
from jax.sharding import AxisType

from shardnb.bugs import refusable
from shardnb.compiler import Program
from shardnb.report.model import Collective, Location, Report, Spec, Value
from shardnb.rewrite import hook
from shardnb.rewrite.closures import ClosureEdit
from shardnb.rewrite.composed import compose
from shardnb.rewrite.products import scattered_products
from shardnb.rewrite.program_edits import ConstraintEdit, Edit, InputEdit, OutputEdit
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.rewrite.rewrite_points import RewritePoint, hooked
from shardnb.rewrite.source_units import SourceUnit

# A training step has a kind of input, and a result, for each parameter and each moment of its
# optimizer. With more than these, specs of inputs come after the constraints and those of results
# are left out: they would be more than all other edits
# (test_the_constraint_on_the_embedding_of_a_training_step).
_MANY_FAMILIES = 12
# The specs that a value's collectives point at are the first two: where a collective starts and
# what it needs (test_constraints_come_first_where_a_collective_points).
_LIKELY = 2
# A value with many dimensions has thousands of combinations of specs, and each edit takes a trace
# and most of a compile (test_a_value_with_many_dimensions_has_few_specs).
_COMBINED = 64
_NUMBER = re.compile(r"\[\d+\]|\[FlattenedIndexKey\(\d+\)\]")


@dataclass(frozen=True)
class Ranked:
    """An edit with its turn: lower waves are tried first, as the time may be over before the rest.

    0: what a collective needs, on an input or on the first value of its shape. 1: other specs of
    few inputs, values at the lines of collectives, and products. 2: results, inputs that move among
    many, later values of a shape. 3: everything else. 4: replicated values.
    """

    wave: int
    edit: Edit


def axes_of(collectives: Iterable[Collective], sizes: Mapping[str, int]) -> list[str]:
    """List the mesh axes over which collectives send, those with the most bytes first."""
    sent = dict.fromkeys(sizes, 0)
    for collective in collectives:
        known = [axis.partition(":")[0] for axis in collective.axes or tuple(sizes)]
        for axis in known:
            sent[axis] += 1 + (collective.total_wire_bytes or 0)
    return sorted((axis for axis in sizes if sent[axis]), key=lambda axis: -sent[axis])


def other_specs(
    spec: Spec, shape: tuple[int, ...], axis: str, sizes: Mapping[str, int]
) -> list[Spec]:
    """List the specs that differ in one axis: gone, or on another dimension that it divides.

    >>> other_specs((("data",), ()), (8, 8), "data", {"data": 4})
    [((), ()), ((), ('data',))]
    """
    without = tuple(tuple(name for name in axes if name != axis) for axes in spec)
    specs = [without]
    for dim in range(len(shape)):
        axes = (*without[dim], axis)
        if shape[dim] % math.prod(sizes[name] for name in axes) == 0:
            specs.append((*without[:dim], axes, *without[dim + 1 :]))
    return [other for other in specs if other != spec]


@dataclass(frozen=True)
class Family:
    """Inputs of one kind, such as the same kernel of every layer: they are edited together."""

    label: str
    names: tuple[str, ...]
    value: Value

    def edit(self, spec: Spec) -> InputEdit:
        """Return the edit that places every member so."""
        return InputEdit(((self.label, self.names, spec),))


def families(inputs: Sequence[Value]) -> list[Family]:
    """Gather the inputs of one kind: the same path but for numbers, and the same type."""
    alike: dict[Any, list[Value]] = {}
    for value in inputs:
        if value.spec is None or value.closed_over or not value.shape or value.details:
            continue
        pattern = _NUMBER.sub("[*]", value.name)
        alike.setdefault((pattern, value.shape, value.dtype, value.spec), []).append(value)
    return [
        Family(
            values[0].name if len(values) == 1 else key[0],
            tuple(value.name for value in values),
            values[0],
        )
        for key, values in alike.items()
    ]


def input_edits(report: Report, collectives: Sequence[Collective]) -> Iterator[Ranked]:
    """Yield other specs of one kind of input: first those that a collective moves."""
    sizes, kinds = report.mesh.shape, families(report.inputs)
    few = len(kinds) <= _MANY_FAMILIES
    for family in kinds:
        moved = [c for c in collectives if _made_of(c, family)]
        for collective in moved:
            needed = collective.needed_spec
            if needed not in (None, family.value.spec) and fits(needed, family.value.shape, sizes):
                yield Ranked(0 if few else 1, family.edit(needed))
        for axis in axes_of(moved or collectives, sizes):
            for spec in other_specs(family.value.spec or (), family.value.shape, axis, sizes):
                yield Ranked(1 if few else 2 if moved else 3, family.edit(spec))


def _made_of(collective: Collective, family: Family) -> bool:
    """Whether a collective moves an input of a family, as it is or through a simple operation."""
    return (collective.producer or "").rpartition(" of ")[2] in family.names


def fits(spec: Spec | None, shape: tuple[int, ...], sizes: Mapping[str, int]) -> bool:
    """Whether a spec shards an array of a shape evenly, with each axis used once."""
    if spec is None or len(spec) != len(shape):
        return False
    names = [axis for axes in spec for axis in axes]
    if len(names) != len(set(names)) or not set(names) <= set(sizes):
        return False
    parts = [math.prod(sizes[axis] for axis in axes) for axes in spec]
    return all(size % count == 0 for size, count in zip(shape, parts, strict=True))


def pairs(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Combine two edits of different things, in the order of their places in the list."""
    for earlier, later in sorted(itertools.combinations(range(len(edits)), 2), key=sum):
        both = together(edits[earlier], edits[later])
        if both is not None:
            yield both


def together(first: Edit, second: Edit) -> Edit | None:
    """Return two edits as one, None where they change the same thing."""
    if isinstance(first, InputEdit) and isinstance(second, InputEdit):
        if {label for label, *_ in first.specs} & {label for label, *_ in second.specs}:
            return None
        return InputEdit(tuple(sorted((*first.specs, *second.specs), key=lambda item: item[0])))
    return compose((first, second))


def closure_edits(
    program: Program,
    report: Report,
    collectives: Sequence[Collective],
    units: Sequence[SourceUnit],
) -> Iterator[Ranked]:
    """Yield other placements of arrays that functions of the user's close over."""
    sizes = report.mesh.shape
    functions = tuple(function for unit in units for function in unit.functions)
    closed = [value for value in report.inputs if value.closed_over]
    for number, value in enumerate(closed):
        if value.spec is None or not value.shape or not value.name.isidentifier():
            continue
        moved = [c for c in collectives if (c.producer or "").endswith(value.name)]
        for axis in axes_of(moved or collectives, sizes):
            for spec in other_specs(value.spec, value.shape, axis, sizes):
                wave = 1 if len(closed) <= _MANY_FAMILIES else 3
                edit = ClosureEdit(number, value.name, spec, functions, program.request.in_jit)
                yield Ranked(wave, edit)


def output_edits(report: Report, collectives: Sequence[Collective]) -> Iterator[Ranked]:
    """Yield other specs of a result, where there are few."""
    sizes = report.mesh.shape
    if len(report.outputs) > _MANY_FAMILIES:
        return
    for number, value in enumerate(report.outputs):
        if value.spec is None or not value.shape:
            continue
        for axis in axes_of(collectives, sizes):
            for spec in other_specs(value.spec, value.shape, axis, sizes):
                yield Ranked(2, OutputEdit(number, value.name, spec))


@dataclass
class Seen:
    """A rewrite point that ran while tracing, with the shape of its first value there."""

    unit: SourceUnit
    point: RewritePoint
    shape: tuple[int, ...]


@dataclass
class _Probe:
    """Notes at which points arrays pass by; an array that passes again adds no point."""

    unit: SourceUnit
    seen: dict[int, Seen] = field(default_factory=dict)
    passed: dict[int, Any] = field(default_factory=dict)

    def __call__(self, number: int, value: Any) -> Any:
        if isinstance(value, jax.core.Tracer) and id(value) not in self.passed:
            self.passed[id(value)] = value
            shape = getattr(value, "shape", ())
            if shape and number not in self.seen:
                self.seen[number] = Seen(self.unit, self.unit.points[number], tuple(shape))
        return value


def seen_points(program: Program, units: Sequence[SourceUnit]) -> list[Seen]:
    """Trace once more and list the named arrays of the user's texts, in the order they are made."""
    listed: list[Seen] = []
    for unit in units:
        probe, transform = _Probe(unit), partial(hooked, top=unit.cell is not None)
        with (
            quiet_retrace(),
            hook.handling(probe),
            unit.edited(program.request.function, transform) as fn,
            refusable(),
        ):
            replace(program.request, function=fn).trace()
        inputs = set(program.arguments)
        listed += [
            seen
            for seen in probe.seen.values()
            if not (seen.point.kind == "argument" and seen.point.name in inputs)
        ]
    return listed


def constraint_edits(
    program: Program, report: Report, collectives: Sequence[Collective], points: Sequence[Seen]
) -> Iterator[Ranked]:
    """Yield constraints on named values.

    First come the specs that collectives start from or need, on the first value of each shape
    and on values at their lines; then those in which an input of the same size is sharded.
    """
    chooser = _Chooser(report, collectives)
    for seen in points:
        location = locate(seen.unit, seen.point, report)
        for wave, spec in chooser.choose(seen, location):
            explicit = _is_explicit(program, spec)
            if explicit is not None:
                edit = ConstraintEdit(seen.unit, seen.point, spec, explicit, location)
                yield Ranked(wave, edit)


def product_edits(
    program: Program, report: Report, collectives: Sequence[Collective], units: Sequence[SourceUnit]
) -> Iterator[Ranked]:
    """Yield products whose partial sums are scattered, where all mesh axes are Auto."""
    if set(program.mesh.axis_types) != {AxisType.Auto}:
        return
    for unit in units:
        for point in unit.points:
            location = locate(unit, point, report) if point.kind == "product" else None
            for collective in collectives if location else ():
                if location is not None and _stands_at(collective, location, point):
                    sizes = report.mesh.shape
                    for edit in scattered_products(collective, unit, point, location, sizes):
                        yield Ranked(1, edit)


class _Chooser:
    """Chooses specs for values, the likeliest first."""

    def __init__(self, report: Report, collectives: Sequence[Collective]) -> None:
        self._sizes = report.mesh.shape
        self._collectives = collectives
        self._sharded = _sharded_sizes(report.inputs)
        self._shapes: set[tuple[int, ...]] = set()
        self._votes: dict[tuple[int, ...], Counter[Spec]] = {}
        for c in collectives:
            votes = self._votes.setdefault(c.producer_shape or (), Counter())
            for spec in (c.producer_spec, c.needed_spec):
                if spec is not None:
                    votes[spec] += 1 + (c.total_wire_bytes or 0)

    def choose(self, seen: Seen, location: Location | None) -> Iterator[tuple[int, Spec]]:
        """Yield the specs for a value, each with its wave."""
        shape, first = seen.shape, seen.shape not in self._shapes
        self._shapes.add(shape)
        near = {
            spec
            for c in self._collectives
            if location is not None and _stands_at(c, location, seen.point)
            for spec in (c.needed_spec, c.producer_spec)
        }
        for rank, spec in enumerate(self._ordered(shape)):
            likely = rank < _LIKELY
            yield (0 if first else 2) if likely else 1 if spec in near else 3, spec
        yield 4, ((),) * len(shape)

    def _ordered(self, shape: tuple[int, ...]) -> list[Spec]:
        voted = [spec for spec, _ in self._votes.get(shape, Counter()).most_common()]
        rest = ((),) * (len(shape) - 1)
        leading = [(axes, *rest) for axes in self._sharded.get(shape[0], [])]
        options = [[(), *self._sharded.get(size, [])] for size in shape]
        combined = itertools.islice(itertools.product(*options), _COMBINED)
        specs = dict.fromkeys((*voted, *leading, *combined))
        return [spec for spec in specs if any(spec) and fits(spec, shape, self._sizes)]


def _sharded_sizes(inputs: Sequence[Value]) -> dict[int, list[tuple[str, ...]]]:
    """Say over which axes dimensions of a size are sharded in inputs, the smallest inputs first.

    An activation often has a dimension of the batch's size, and the batch is a small input.
    """
    sharded: dict[int, list[tuple[str, ...]]] = {}
    for value in sorted(inputs, key=lambda value: value.bytes):
        for size, axes in zip(value.shape, value.spec or (), strict=False):
            if axes and axes not in sharded.setdefault(size, []):
                sharded[size].append(axes)
    return sharded


def _is_explicit(program: Program, spec: Spec) -> bool | None:
    """Whether a value takes this spec by `reshard`; None where its axes are of two types."""
    types = dict(zip(program.mesh.axis_names, program.mesh.axis_types, strict=True))
    used = {types[axis] for axes in spec for axis in axes} or set(types.values())
    if used == {AxisType.Auto}:
        return False
    return True if used == {AxisType.Explicit} else None


def locate(unit: SourceUnit, point: RewritePoint, report: Report) -> Location | None:
    """Say in which source of the report a point is, by the text of its line."""
    if unit.cell is not None:
        return Location(0, point.line, point.function)
    text = unit.line(point.line)
    for number, source in enumerate(report.sources):
        if text and source.line(point.line).strip() == text:
            return Location(number, point.line, point.function)
    return None


def _stands_at(collective: Collective, location: Location, point: RewritePoint) -> bool:
    return any(
        frame.source == location.source and point.line <= frame.line <= point.last_line
        for frame in collective.frames
    )
