"""Which edits are worth a look: other specs of inputs and results, constraints on values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
from jax.sharding import AxisType

from shardnb.compiler import Program
from shardnb.fixes import hook
from shardnb.fixes.edits import ConstraintEdit, Edit, InputEdit, OutputEdit
from shardnb.fixes.marks import Place
from shardnb.fixes.retrace import quiet_retrace
from shardnb.fixes.units import Unit, units_of
from shardnb.report.model import Collective, Location, Report, Spec, Value

_MANY_FAMILIES = 12
_NUMBER = re.compile(r"\[\d+\]|\[FlattenedIndexKey\(\d+\)\]")


@dataclass(frozen=True)
class Ranked:
    """An edit with its turn: lower waves are tried first."""

    wave: int
    edit: Edit


def axes_of(collectives: Iterable[Collective], sizes: Mapping[str, int]) -> list[str]:
    """List the mesh axes over which collectives exchange, those with most bytes first."""
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
    found = [without]
    for dim in range(len(shape)):
        axes = (*without[dim], axis)
        if shape[dim] % math.prod(sizes[name] for name in axes) == 0:
            found.append((*without[:dim], axes, *without[dim + 1 :]))
    return [other for other in found if other != spec]


@dataclass(frozen=True)
class Family:
    """Inputs of one kind, such as the same kernel of every layer: they are edited together."""

    label: str
    names: tuple[str, ...]
    value: Value

    def edit(self, spec: Spec) -> InputEdit:
        """Give the edit that places every member so."""
        return InputEdit(((self.label, self.names, spec),))


def families(inputs: Sequence[Value]) -> list[Family]:
    """Gather the inputs of one kind: the same path but for numbers, and the same type."""
    found: dict[Any, list[Value]] = {}
    for value in inputs:
        if value.spec is None or value.closed_over or not value.shape or value.details:
            continue
        pattern = _NUMBER.sub("[*]", value.name)
        found.setdefault((pattern, value.shape, value.dtype, value.spec), []).append(value)
    return [
        Family(
            values[0].name if len(values) == 1 else key[0],
            tuple(value.name for value in values),
            values[0],
        )
        for key, values in found.items()
    ]


def input_edits(report: Report, collectives: Sequence[Collective]) -> Iterator[Ranked]:
    """Give other specs of one kind of input: first those that a collective moves."""
    sizes, kinds = report.mesh.shape, families(report.inputs)
    moved = {name: c for c in collectives for name in [c.producer] if name}
    for family in kinds:
        named = [moved[name] for name in family.names if name in moved]
        for collective in named:
            needed = collective.needed_spec
            if needed is not None and _fits(needed, family.value, sizes):
                yield Ranked(0, family.edit(needed))
        wave = 1 if named or len(kinds) <= _MANY_FAMILIES else 3
        for axis in axes_of(named or collectives, sizes):
            for spec in other_specs(family.value.spec or (), family.value.shape, axis, sizes):
                yield Ranked(wave, family.edit(spec))


def _fits(spec: Spec, value: Value, sizes: Mapping[str, int]) -> bool:
    if len(spec) != len(value.shape) or spec == value.spec:
        return False
    parts = [math.prod(sizes.get(axis, 0) for axis in axes) for axes in spec]
    return all(n and size % n == 0 for size, n in zip(value.shape, parts, strict=True))


def pairs(edits: Sequence[InputEdit]) -> Iterator[InputEdit]:
    """Combine two input edits of different inputs, in the order of their places in the list."""
    order = sorted(itertools.combinations(range(len(edits)), 2), key=sum)
    for one, other in order:
        first, second = edits[min(one, other)], edits[max(one, other)]
        if first.specs[0][0] != second.specs[0][0]:
            both = sorted((*first.specs, *second.specs), key=lambda item: item[0])
            yield InputEdit(tuple(both))


def output_edits(report: Report, collectives: Sequence[Collective]) -> Iterator[Ranked]:
    """Give other specs of a result, where there are few."""
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
    """A place that ran while tracing, with the shape of its first value there."""

    unit: Unit
    number: int
    shape: tuple[int, ...]

    @property
    def place(self) -> Place:
        """The place in the unit's text."""
        return self.unit.places[self.number]


@dataclass
class _Probe:
    """Notes at which places arrays pass by; an array that passes again adds no place."""

    unit: Unit
    found: dict[int, Seen] = field(default_factory=dict)
    passed: dict[int, Any] = field(default_factory=dict)

    def __call__(self, number: int, value: Any) -> Any:
        if isinstance(value, jax.core.Tracer) and id(value) not in self.passed:
            self.passed[id(value)] = value
            shape = getattr(value, "shape", ())
            if shape and number not in self.found:
                self.found[number] = Seen(self.unit, number, tuple(shape))
        return value


def seen_places(program: Program, report: Report) -> list[Seen]:
    """Trace once more and list the named arrays of the user's texts, in the order they are made."""
    found: list[Seen] = []
    for unit in units_of(program, report.sources):
        probe = _Probe(unit)
        with quiet_retrace(), hook.handling(probe), unit.with_call(program.recipe.fn, None) as fn:
            replace(program.recipe, fn=fn).trace()
        inputs = set(program.args)
        found += [
            seen
            for seen in probe.found.values()
            if not (seen.place.kind == "argument" and seen.place.name in inputs)
        ]
    return found


def constraint_edits(
    program: Program, report: Report, collectives: Sequence[Collective], places: Sequence[Seen]
) -> Iterator[Ranked]:
    """Give constraints on named values: what a collective needs, then what inputs have."""
    split = _splits(report.inputs)
    for seen in places:
        location = locate(seen, report)
        near = [c for c in collectives if location and _stands_at(c, location, seen.place)]
        wanted = [s for c in near for s in (c.needed_spec, c.producer_spec) if s is not None]
        for wave, specs in (
            (0, [spec for spec in wanted if len(spec) == len(seen.shape)]),
            (1, _leading(seen.shape, split)),
            (2, _all_dims(seen.shape, split)),
            (4, [((),) * len(seen.shape)]),
        ):
            for spec in specs:
                explicit = _is_explicit(program, spec)
                if explicit is not None:
                    edit = ConstraintEdit(
                        seen.unit, seen.number, seen.place, spec, explicit, location
                    )
                    yield Ranked(wave, edit)


def _splits(inputs: Sequence[Value]) -> dict[int, list[tuple[str, ...]]]:
    """Say over which axes inputs split a dimension of a size, those of smaller inputs first."""
    found: dict[int, list[tuple[str, ...]]] = {}
    for value in sorted(inputs, key=lambda value: value.bytes):
        for size, axes in zip(value.shape, value.spec or (), strict=False):
            if axes and axes not in found.setdefault(size, []):
                found[size].append(axes)
    return found


def _leading(shape: tuple[int, ...], split: Mapping[int, list[tuple[str, ...]]]) -> list[Spec]:
    rest = ((),) * (len(shape) - 1)
    return [(axes, *rest) for axes in split.get(shape[0], [])]


def _all_dims(shape: tuple[int, ...], split: Mapping[int, list[tuple[str, ...]]]) -> list[Spec]:
    options = [[(), *split.get(size, [])] for size in shape]
    combined = itertools.islice(itertools.product(*options), 64)
    return [spec for spec in combined if any(spec) and _no_axis_twice(spec)]


def _no_axis_twice(spec: Spec) -> bool:
    names = [axis for axes in spec for axis in axes]
    return len(names) == len(set(names))


def _is_explicit(program: Program, spec: Spec) -> bool | None:
    """Whether a value takes this spec by `reshard`; None where its axes are of two types."""
    types = dict(zip(program.mesh.axis_names, program.mesh.axis_types, strict=True))
    used = {types[axis] for axes in spec for axis in axes} or set(types.values())
    if used == {AxisType.Auto}:
        return False
    return True if used == {AxisType.Explicit} else None


def locate(seen: Seen, report: Report) -> Location | None:
    """Say in which source of the report a place is, by the text of its line."""
    place = seen.place
    if not seen.unit.file:
        return Location(0, place.line, place.function)
    text = seen.unit.line(place.line)
    for number, source in enumerate(report.sources):
        if text and source.line(place.line).strip() == text:
            return Location(number, place.line, place.function)
    return None


def _stands_at(collective: Collective, location: Location, place: Place) -> bool:
    return any(
        frame.source == location.source and place.line <= frame.line <= place.last_line
        for frame in collective.frames
    )
