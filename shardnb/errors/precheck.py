"""All that is wrong with the specs of a program, before anything is compiled or runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import divisibility, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.jax_compat import private
from shardnb.jax_compat.jaxprs import equations
from shardnb.mesh import Grid
from shardnb.report.model import Location
from shardnb.report.types import SpecProblem
from shardnb.sources import positions
from shardnb.sources.source_texts import Sources

Tree = Any


def precheck(
    fn: Callable[..., Tree],
    args: Mapping[str, Tree],
    grid: Grid,
    *,
    in_specs: Mapping[str, Tree] | None = None,
    out_specs: Tree = None,
    sources: Sources | None = None,
) -> tuple[SpecProblem, ...]:
    """Check the specs of a program's inputs, outputs, constraints and `shard_map`s.

    `fn`, `args`, `in_specs` and `out_specs` are as `shardnb.compiler.build` takes them. The
    function is traced on shapes, as compiling it would; nothing is compiled, moved or run. What
    only a trace shows is left out where the trace fails: that failure is another error.
    """
    sources = sources or Sources()
    args = dict(args)
    inputs = list(_inputs(args, dict(in_specs or {}), grid.mesh))
    sizes = dict(grid.mesh.shape)
    problems = [*_mesh_problems(inputs, grid.mesh)]
    good = [one for one in inputs if isinstance(one.spec, PartitionSpec)]
    stated = list(good)
    if not grid.manual:
        bad = {problem.name for problem in divisibility.check(good, sizes)}
        specs = {one.name: PartitionSpec() if one.name in bad else one.spec for one in good}
        stated += _traced(fn, _shapes(args, specs, grid.mesh), grid, out_specs, sources)
    problems += divisibility.check(stated, sizes)
    problems += committed(args, dict(in_specs or {}), grid.mesh)
    return tuple(dict.fromkeys(problems))


def _inputs(
    args: dict[str, Tree], specs: dict[str, Tree], mesh: jax.sharding.Mesh
) -> Iterator[Stated]:
    for name, leaf, spec in placement.stated(args, specs):
        own = placement.own_sharding(leaf, mesh).spec if spec is None else spec
        shape = tuple(leaf.shape)
        yield Stated("input", name, shape, dtype_name(placement.dtype_of(leaf)), _bare(own, mesh))


def _bare(spec: Any, mesh: jax.sharding.Mesh) -> Any:
    """Give the spec of a sharding on this mesh, and any other placement as it is."""
    on_this = isinstance(spec, NamedSharding) and spec.mesh.shape == mesh.shape
    return spec.spec if on_this else spec


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


def _traced(
    fn: Callable[..., Tree],
    shapes: list[Tree],
    grid: Grid,
    out_specs: Tree,
    sources: Sources,
) -> list[Stated]:
    """Trace on the inputs that fit, and give the specs that the trace meets."""
    met: list[Stated] = []

    def note(flat: Any, values: Any) -> None:
        here = next(iter(sources.locate(positions.of_here())), None)
        for number, (spec, value) in enumerate(zip(flat, values, strict=True)):
            kind = dtype_name(value.dtype)
            name = f"argument {number} of shard_map"
            met.append(Stated("in_spec", name, tuple(value.shape), kind, spec, here))

    try:
        with (
            jax.set_mesh(grid.mesh),
            private.shard_map_arguments_checked_by(note),
            private.traced_apart(),
        ):
            traced = jax.jit(fn).trace(*shapes)
    except Exception:  # noqa: BLE001 - whatever the user's code raises is told by the real trace
        return met
    return [*met, *_constraints(traced.jaxpr, sources), *_outputs(traced, out_specs)]


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


def padded_constraints(
    jaxpr: Any, mesh: jax.sharding.Mesh, sources: Sources
) -> tuple[SpecProblem, ...]:
    """Check the constraints of a program that JAX takes: XLA pads those that do not divide."""
    return divisibility.check(list(_constraints(jaxpr, sources)), dict(mesh.shape))


def _constraints(jaxpr: Any, sources: Sources) -> Iterator[Stated]:
    for equation in equations(jaxpr):
        if equation.primitive.name == "sharding_constraint":
            sharding, value = equation.params["sharding"], equation.invars[0].aval
            if isinstance(sharding, NamedSharding):
                yield Stated(
                    "constraint",
                    "the constrained value",
                    tuple(value.shape),
                    dtype_name(value.dtype),
                    sharding.spec,
                    _line(equation, sources),
                    padded=True,
                )


def _line(equation: Any, sources: Sources) -> Location | None:
    frames = positions.lines(positions.of_equation(equation))
    return next(iter(sources.locate(frames)), None)


def _outputs(traced: Any, out_specs: Tree) -> Iterator[Stated]:
    if out_specs is None:
        return
    for name, leaf, spec in placement.stated({"result": traced.out_info}, {"result": out_specs}):
        bare = spec.spec if isinstance(spec, NamedSharding) else spec
        if isinstance(bare, PartitionSpec):
            yield Stated("output", name, tuple(leaf.shape), dtype_name(leaf.dtype), bare)


def committed(
    args: dict[str, Tree], specs: dict[str, Tree], mesh: jax.sharding.Mesh
) -> Iterator[SpecProblem]:
    """Give the arrays that lie elsewhere than their spec says, with what moving them sends."""
    for name, leaf, spec in placement.stated(args, specs):
        own, bare = getattr(leaf, "sharding", None), _bare(spec, mesh)
        if not isinstance(leaf, jax.Array) or not isinstance(bare, PartitionSpec):
            continue
        if own is None or not getattr(leaf, "committed", True):
            continue
        one = Stated("input", name, tuple(leaf.shape), dtype_name(leaf.dtype), bare)
        if divisibility.check([one], dict(mesh.shape)):
            continue
        wanted = NamedSharding(mesh, bare)
        if not own.is_equivalent_to(wanted, leaf.ndim):
            yield _elsewhere(one, own, wanted)


def _elsewhere(one: Stated, own: Any, wanted: NamedSharding) -> SpecProblem:
    same_devices = own.device_set == wanted.device_set
    moved = divisibility.moved_bytes(one.shape, one.dtype, own, wanted)
    lies = divisibility.text(own.spec) if isinstance(own, NamedSharding) else "one device"
    what = _difference(own, wanted, same_devices=same_devices)
    message = (
        f"{one.name} lies as {lies} {what}, and the program takes it as "
        f"{divisibility.text(one.spec)}: moving it sends {moved} bytes in all"
    )
    where = f"NamedSharding(mesh, {divisibility.text(one.spec)})"
    return SpecProblem(
        kind="committed" if same_devices else "device",
        where=one.where,
        name=one.name,
        message=message,
        shape=one.shape,
        spec=divisibility.text(one.spec),
        moved_bytes=moved,
        fix=f"{one.name} = jax.device_put({one.name}, {where})",
        fatal=False,
    )


def _difference(own: Any, wanted: NamedSharding, *, same_devices: bool) -> str:
    if not same_devices:
        return f"on {len(own.device_set)} other device{'s' if len(own.device_set) > 1 else ''}"
    if not isinstance(own, NamedSharding):
        return "on the same devices"
    same = own.mesh == wanted.mesh
    return "on this mesh" if same else "on a mesh of the same devices in another order or shape"
