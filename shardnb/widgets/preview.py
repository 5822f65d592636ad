"""Previews of a plan by Shardy, in a few milliseconds and without compiling."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from shardnb.compiler import Program, shardy_passes
from shardnb.jax_compat import mlir
from shardnb.jax_compat.parts import NotAvailable
from shardnb.propagation.matching import match
from shardnb.propagation.named import Lines
from shardnb.propagation.values import VALUE_LIMIT
from shardnb.report import Axis, Mesh, Report, Value
from shardnb.report.model import Spec
from shardnb.report.spec import grid_of
from shardnb.texts import shardy
from shardnb.widgets.plan import MeshPlan

IN_THE_TYPES = "with Explicit or Manual axes shardings are part of the types"


class NoPreview(Exception):
    """Shardy cannot preview a plan without a compile; the message says why."""


@dataclass(frozen=True)
class Base:
    """A compiled program whose module Shardy can propagate again with other specs."""

    plan: MeshPlan
    report: Report
    module: mlir.Module
    stated: shardy.Module
    """The contents of `module`, before propagation."""
    inputs: tuple[tuple[str, int], ...]
    """The names of the module's inputs in its order, each with its rank there."""
    values: tuple[int | None, ...]
    """The value of the module for each of `report.values`, if that is certain."""

    def preview(self, plan: MeshPlan, results: Mapping[int, Spec | None] | None = None) -> Report:
        """Return the shardings that a plan leads to, as a report without collectives.

        `results` has the specs of the results by their numbers, None where the compiler chooses;
        without it they are those that the program was compiled with. Raises `NoPreview`.
        """
        found = self._propagated(plan, self._changed(plan), results=results)
        mesh = _mesh(self.report.mesh, plan.axes)
        given = dict(plan.specs)
        inputs = [_placed(v, given.get(v.name, v.spec), mesh) for v in self.report.inputs]
        outputs = zip(self.report.outputs, found.outputs, strict=True)
        values = zip(self.report.values, self.values, strict=True)
        return Report(
            title=self.report.title,
            mesh=mesh,
            inputs=tuple(inputs),
            outputs=tuple(_placed(value, output.spec, mesh) for value, output in outputs),
            values=tuple(
                _placed(value, found.values[at].placed.spec, mesh)
                for value, at in values
                if at is not None
            ),
            sources=self.report.sources,
        )

    def carried(self, plan: MeshPlan, free: Collection[str]) -> dict[str, Spec]:
        """Return the specs of the inputs where Shardy may shard the arrays `free` further.

        Raises `NoPreview`.
        """
        specs = dict(plan.specs)
        given = {
            number: (*specs[name], *((),) * (rank - len(specs[name])))
            for number, (name, rank) in enumerate(self.inputs)
            if name in specs
        }
        numbers = [number for number in given if self.inputs[number][0] in free]
        inputs = self._propagated(plan, given, numbers).inputs
        # An axis of which a part shards a dimension further is named with that part.
        return {
            name: tuple(tuple(axis.partition(":(")[0] for axis in axes) for axes in value.spec)
            for (name, _), value in zip(self.inputs, inputs, strict=True)
            if value.spec is not None
        }

    def _propagated(
        self,
        plan: MeshPlan,
        specs: Mapping[int, Spec],
        free: Collection[int] = (),
        results: Mapping[int, Spec | None] | None = None,
    ) -> shardy.Module:
        if not plan.is_auto:
            raise NoPreview(IN_THE_TYPES)
        try:
            mesh_name, axes = next(iter(self.stated.meshes)), self._axes(plan, results)
            stated = None if results is None else self._results(results)
            return shardy_passes.preview(self.module, mesh_name, specs, axes, stated, free)
        except (ValueError, NotAvailable) as error:
            raise NoPreview(str(error)) from error

    def _changed(self, plan: MeshPlan) -> dict[int, Spec]:
        """Return the specs that differ from the module's own, by the number of its input."""
        before, now = dict(self.plan.specs), dict(plan.specs)
        moved = plan.axes != self.plan.axes
        return {
            number: (*now[name], *((),) * (rank - len(now[name])))
            for number, (name, rank) in enumerate(self.inputs)
            if name in now and (moved or now[name] != before[name])
        }

    def _results(self, results: Mapping[int, Spec | None]) -> dict[int, Spec | None]:
        """Return the specs of results with as many dimensions as these have in the module."""
        ranks = {n: len(self.stated.outputs[n].value.shape) for n in results}
        return {
            n: None if spec is None else (*spec, *((),) * (ranks[n] - len(spec)))
            for n, spec in results.items()
        }

    def _axes(
        self, plan: MeshPlan, results: Mapping[int, Spec | None] | None
    ) -> dict[str, int] | None:
        """Return the axes of a plan's mesh, None if it is the same one.

        Raises `NoPreview` if the other mesh changes more than that.
        """
        if plan.axes == self.plan.axes:
            return None
        mapped = any(op.kind == "sdy.manual_computation" for op in self.stated.ops)
        if len(self.stated.meshes) != 1 or mapped:
            raise NoPreview("on another mesh the body of a shard_map has other shapes")
        axes = {axis.name: axis.size for axis in plan.axes}
        used = self.stated.stated_axes if results is None else self.stated.axes_inside
        if missing := sorted(used - axes.keys()):
            raise NoPreview(f"the program itself uses {', '.join(missing)}")
        return axes


def base_of(plan: MeshPlan, program: Program, report: Report) -> Base | None:
    """Take a compiled program as the base of previews; None if it left no module."""
    dumps = program.dumps
    if not plan.is_auto or program.before is None or not dumps.stated_module.meshes:
        return None
    names = [report.inputs[number].name for number in program.parameters]
    try:
        module = shardy_passes.imported(dumps)
        stated = shardy.read(module)
        found = shardy_passes.preview(module, next(iter(stated.meshes)), {})
    except (ValueError, NotAvailable):
        return None
    if len(found.inputs) != len(names) or len(found.outputs) != len(report.outputs):
        return None
    sources = program.request.texts.located()
    named = Lines(program.before, sources).values[:VALUE_LIMIT]
    matched = match(found, program.before) if len(named) == len(report.values) else {}
    leaves = [value.leaf for value in named] if matched else [None] * len(report.values)
    values = [None if leaf is None else matched.get(leaf) for leaf in leaves]
    numbers = tuple(None if value is None else value.number for value in values)
    ranks = [len(value.shape) for value in found.inputs]
    return Base(plan, report, module, stated, tuple(zip(names, ranks, strict=True)), numbers)


def _mesh(mesh: Mesh, axes: Sequence[Axis]) -> Mesh:
    if tuple(axes) == mesh.axes:
        return mesh
    count = math.prod(axis.size for axis in axes)
    return replace(mesh, axes=tuple(axes), device_ids=tuple(range(count)), coords=None)


def _placed(value: Value, spec: Spec | None, mesh: Mesh) -> Value:
    """Return a value with another spec; Shardy's None means that it is replicated.

    A PRNG key has one dimension more in the module than it shows.
    """
    spec = ((),) * len(value.shape) if spec is None else spec[: len(value.shape)]
    moved = Value(value.name, value.dtype, value.shape, spec, (), location=value.location)
    parts = grid_of(moved, mesh)
    shard = tuple(-(-size // n) for size, n in zip(value.shape, parts, strict=True))
    return replace(moved, shard_shape=shard, op=value.op)
