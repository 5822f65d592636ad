"""All problems with the specs of a program, before anything is compiled or run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler import Request, divisibility, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.committed import bare_spec, committed
from shardnb.compiler.constraints import constraints
from shardnb.compiler.divisibility import Stated
from shardnb.jax_compat.tracing import shard_map_arguments_checked_by, traced_apart
from shardnb.report.types import SpecProblem
from shardnb.sources import positions
from shardnb.sources.source_texts import Sources
from shardnb.texts.hlo import Frame

Tree = Any


def precheck(request: Request, sources: Sources | None = None) -> tuple[SpecProblem, ...]:
    """Check the specs of a program's inputs, outputs, constraints and `shard_map`s.

    The function is traced on shapes, as for compiling; nothing is compiled, moved or run. If the
    trace fails, which is another error, checks that need it are left out.
    """
    sources = sources or Sources()
    mesh, sizes = request.mesh, dict(request.mesh.shape)
    inputs = []
    for name, leaf, spec in placement.stated(request.arguments, request.in_specs):
        given = placement.own_sharding(leaf, mesh).spec if spec is None else spec
        dtype = dtype_name(placement.dtype_of(leaf))
        inputs.append(Stated("input", name, tuple(leaf.shape), dtype, bare_spec(given, mesh)))
    problems = list(_no_specs(inputs, mesh))
    stated = [each for each in inputs if isinstance(each.spec, PartitionSpec)]
    if not request.grid.manual:
        bad = {problem.name for problem in divisibility.check(stated, sizes)}
        specs = {s.name: PartitionSpec() if s.name in bad else s.spec for s in stated}
        stated += _traced(request, specs, sources)
    problems += divisibility.check(stated, sizes)
    problems += committed(request)
    return tuple(dict.fromkeys(problems))


def _no_specs(inputs: list[Stated], mesh: jax.sharding.Mesh) -> Iterator[SpecProblem]:
    for given in inputs:
        if isinstance(given.spec, NamedSharding):
            message = (
                f"the sharding given for {given.name} is on the mesh {dict(given.spec.mesh.shape)},"
                f" but the program is on {dict(mesh.shape)}"
            )
            yield SpecProblem("mesh", given.where, given.name, message, given.shape)
        elif not isinstance(given.spec, PartitionSpec):
            message = f"the spec of {given.name} is {given.spec!r}"
            fix = "write P('data', ...) or a NamedSharding"
            yield SpecProblem("no-spec", given.where, given.name, message, given.shape, fix=fix)


def _traced(request: Request, specs: dict[str, Any], sources: Sources) -> list[Stated]:
    """Trace on the inputs that fit, and return the specs that the trace reaches."""
    calls: list[tuple[Any, Any, tuple[Frame, ...]]] = []

    def note(in_specs: Any, values: Any) -> None:
        calls.append((in_specs, values, positions.of_here()))

    traced = None
    # The user's code runs here. Its errors are raised again by the trace that is compiled.
    with (
        suppress(Inconclusive),
        refusable(),
        jax.set_mesh(request.mesh),
        shard_map_arguments_checked_by(note),
        traced_apart(),
    ):
        traced = jax.jit(request.function).trace(*_shapes(request.arguments, specs, request.mesh))
    met = [
        Stated(
            "in_spec",
            f"argument {number} of shard_map",
            tuple(value.shape),
            dtype_name(value.dtype),
            spec,
            next(iter(sources.locate(stack)), None),
        )
        for in_specs, values, stack in calls
        for number, (spec, value) in enumerate(zip(in_specs, values, strict=True))
        if isinstance(value, jax.Array | np.ndarray)  # a Python number has no dimension to shard
    ]
    if traced is None:
        return met
    return [*met, *constraints(traced.jaxpr, sources), *_outputs(traced, request.out_specs)]


def _shapes(args: dict[str, Tree], specs: dict[str, Any], mesh: jax.sharding.Mesh) -> list[Tree]:
    def shape(name: str, leaf: Any) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, specs.get(name, PartitionSpec()))
        return jax.ShapeDtypeStruct(leaf.shape, placement.dtype_of(leaf), sharding=sharding)

    return [
        jax.tree_util.tree_map_with_path(
            lambda path, leaf, name=name: shape(f"{name}{jax.tree_util.keystr(path)}", leaf), tree
        )
        for name, tree in args.items()
    ]


def _outputs(traced: Any, out_specs: Tree) -> Iterator[Stated]:
    if out_specs is None:
        return
    for name, leaf, spec in placement.stated({"result": traced.out_info}, {"result": out_specs}):
        bare = spec.spec if isinstance(spec, NamedSharding) else spec
        if isinstance(bare, PartitionSpec):
            yield Stated("output", name, tuple(leaf.shape), dtype_name(leaf.dtype), bare)
