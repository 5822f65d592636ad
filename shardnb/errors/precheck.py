"""All that is wrong with the specs of a program, before anything is compiled or runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jax
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

    The function is traced on shapes, as compiling it would; nothing is compiled, moved or run. What
    only a trace shows is left out where the trace fails: that failure is another error.
    """
    sources = sources or Sources()
    mesh, sizes = request.mesh, dict(request.mesh.shape)
    inputs = list(_inputs(request.arguments, request.in_specs, mesh))
    problems = [*_mesh_problems(inputs, mesh)]
    good = [one for one in inputs if isinstance(one.spec, PartitionSpec)]
    stated = list(good)
    if not request.grid.manual:
        bad = {problem.name for problem in divisibility.check(good, sizes)}
        specs = {one.name: PartitionSpec() if one.name in bad else one.spec for one in good}
        stated += _traced(request, _shapes(request.arguments, specs, mesh), sources)
    problems += divisibility.check(stated, sizes)
    problems += committed(request)
    return tuple(dict.fromkeys(problems))


def _inputs(
    args: dict[str, Tree], specs: dict[str, Tree], mesh: jax.sharding.Mesh
) -> Iterator[Stated]:
    for name, leaf, spec in placement.stated(args, specs):
        own = placement.own_sharding(leaf, mesh).spec if spec is None else spec
        shape = tuple(leaf.shape)
        yield Stated(
            "input", name, shape, dtype_name(placement.dtype_of(leaf)), bare_spec(own, mesh)
        )


def _mesh_problems(inputs: list[Stated], mesh: jax.sharding.Mesh) -> Iterator[SpecProblem]:
    for one in inputs:
        if isinstance(one.spec, PartitionSpec):
            continue
        if isinstance(one.spec, NamedSharding):
            message = (
                f"the sharding given for {one.name} is on the mesh {dict(one.spec.mesh.shape)}, "
                f"and the program is on {dict(mesh.shape)}"
            )
            yield SpecProblem("mesh", one.where, one.name, message, one.shape)
        else:
            message = f"the placement of {one.name} is {one.spec!r}"
            fix = "say P('data', ...) or a NamedSharding"
            yield SpecProblem("no-spec", one.where, one.name, message, one.shape, fix=fix)


def _traced(request: Request, shapes: list[Tree], sources: Sources) -> list[Stated]:
    """Trace on the inputs that fit, and give the specs that the trace meets."""
    calls: list[tuple[Any, Any, tuple[Frame, ...]]] = []

    def note(specs: Any, values: Any) -> None:
        calls.append((specs, values, positions.of_here()))

    traced = None
    # The user's code runs here. The trace that the program is compiled from raises it again.
    with (
        suppress(Inconclusive),
        refusable(),
        jax.set_mesh(request.mesh),
        shard_map_arguments_checked_by(note),
        traced_apart(),
    ):
        traced = jax.jit(request.function).trace(*shapes)
    met = [one for call in calls for one in _mapped(*call, sources)]
    if traced is None:
        return met
    return [*met, *constraints(traced.jaxpr, sources), *_outputs(traced, request.out_specs)]


def _mapped(
    specs: Any, values: Any, stack: tuple[Frame, ...], sources: Sources
) -> Iterator[Stated]:
    """Give the arguments of a shard_map with the specs that its in_specs state."""
    here = next(iter(sources.locate(stack)), None)
    for number, (spec, value) in enumerate(zip(specs, values, strict=True)):
        name, kind = f"argument {number} of shard_map", dtype_name(value.dtype)
        yield Stated("in_spec", name, tuple(value.shape), kind, spec, here)


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
