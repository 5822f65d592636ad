"""From the specs of a program's arguments to a sharding for each array."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler.plain_trees import prefixed
from shardnb.report.model import Spec

Tree = Any


def is_spec(value: object) -> bool:
    """Whether a value is a spec or a sharding."""
    return value is None or isinstance(value, PartitionSpec | jax.sharding.Sharding)


def dtype_of(leaf: Any) -> Any:
    """Return the dtype that an array has in a program: 64 bits only if JAX allows them."""
    extended = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)
    return leaf.dtype if extended else jax.dtypes.canonicalize_dtype(leaf.dtype)


def named_leaves(args: dict[str, Tree]) -> list[tuple[str, Any]]:
    """Yield each array of the arguments with its name, such as `params['w']`."""
    return [
        (f"{name}{jax.tree_util.keystr(path)}", leaf)
        for name, tree in args.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


def shardings(
    args: dict[str, Tree], specs: dict[str, Tree], mesh: jax.sharding.Mesh
) -> dict[str, Tree]:
    """Return a `NamedSharding` for each array of the arguments, in their structure.

    `specs` has a spec, a sharding or a pytree prefix of them for an argument. Without one an array
    keeps its own sharding if that is on this mesh, and is replicated otherwise. Raises `ValueError`
    that names the argument.
    """
    unknown = sorted(set(specs) - set(args))
    if unknown:
        raise ValueError(
            f"there is no argument {', '.join(unknown)}; the arguments are {', '.join(args)}"
        )
    return {name: _tree(name, tree, specs.get(name), mesh) for name, tree in args.items()}


def _tree(name: str, tree: Tree, spec: Tree, mesh: jax.sharding.Mesh) -> Tree:
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    stated = spread(name, tree, spec)
    placed = [
        _leaf(f"{name}{jax.tree_util.keystr(path)}", leaf, one, mesh)
        for (path, leaf), one in zip(paths, stated, strict=True)
    ]
    return jax.tree_util.tree_unflatten(structure, placed)


class SpecStructureError(ValueError):
    """Specs that do not fit the structure of their argument; the message names the argument."""


def spread(name: str, tree: Tree, prefix: Tree) -> list[Any]:
    """Return the spec for each array of an argument.

    Raises `SpecStructureError` if they do not fit its structure.
    """
    container = not is_spec(prefix) and not jax.tree_util.all_leaves([prefix])
    if container and jax.tree_util.all_leaves([tree]):
        raise SpecStructureError(no_spec(name, prefix))
    try:
        return prefixed(tree, prefix, is_spec)
    except ValueError as error:
        # Flax gives the specs of a module as a State or as dictionaries with its names. Of specs
        # in dictionaries for dictionaries, only the message is better: it names the array.
        if isinstance(prefix, Mapping):
            each = _by_path(name, tree, prefix)
            if not isinstance(tree, Mapping):
                return each
        raise SpecStructureError(
            f"the specs given for {name} do not fit its structure: {error}"
        ) from error


def _by_path(name: str, tree: Tree, specs: Mapping[Any, Any]) -> list[Any]:
    """Return the spec at the path of each array, or at a prefix of its path."""
    named = {
        step_names(path): (jax.tree_util.keystr(path), spec)
        for path, spec in jax.tree_util.tree_flatten_with_path(specs, is_leaf=is_spec)[0]
    }
    stated, used = [], set()
    for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]:
        names = step_names(path)
        at = next((n for k in range(len(names), 0, -1) if (n := names[:k]) in named), None)
        if at is None:
            array = f"{name}{jax.tree_util.keystr(path)}"
            raise SpecStructureError(
                f"the specs given for {name} have none for {array}: give one for each array, "
                f"such as {name}=jax.tree.map(lambda array: P(), {name})"
            )
        used.add(at)
        stated.append(named[at][1])
    for names, (text, _) in named.items():
        if names not in used:
            raise SpecStructureError(
                f"the specs given for {name} have an entry {text}, but {name} has no such array"
            )
    return stated


def step_names(path: tuple[Any, ...]) -> tuple[str, ...]:
    """Name the steps of a path, whether they are attributes, keys or positions."""
    parts = (getattr(key, "name", getattr(key, "key", getattr(key, "idx", key))) for key in path)
    return tuple(map(str, parts))


def no_spec(name: str, value: Any) -> str:
    """Return the message that a value is not a spec, with the spec that may be meant.

    >>> no_spec("x", "data")
    "expected a spec for x such as P('data'), got the str 'data'; did you mean P('data')?"
    """
    shown = " ".join(repr(value).split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    got = f"expected a spec for {name} such as P('data'), got the {type(value).__name__} {shown}"
    parts = value if isinstance(value, tuple | list) else (value,)
    if not all(part is None or isinstance(part, str | tuple) for part in parts):
        return got
    return f"{got}; did you mean P({', '.join(map(repr, parts))})?"


def _leaf(name: str, leaf: Any, spec: Any, mesh: jax.sharding.Mesh) -> NamedSharding:
    if spec is None:
        return own_sharding(leaf, mesh)
    kind = memory_kind(getattr(leaf, "sharding", None))
    if isinstance(spec, NamedSharding):
        if spec.mesh.shape != mesh.shape:
            raise ValueError(
                f"the sharding given for {name} is on the mesh {dict(spec.mesh.shape)}, "
                f"but the program is on {dict(mesh.shape)}"
            )
        spec, kind = spec.spec, memory_kind(spec)
    if not isinstance(spec, PartitionSpec):
        raise TypeError(no_spec(name, spec))
    check_spec(name, tuple(leaf.shape), spec, mesh)
    return NamedSharding(mesh, spec, memory_kind=kind)


def stated(args: dict[str, Tree], specs: dict[str, Tree]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each array with its name and its spec in `specs`, or None.

    Raises `ValueError` if the specs of an argument do not fit its structure.
    """
    for name, tree in args.items():
        paths = jax.tree_util.tree_flatten_with_path(tree)[0]
        for (path, leaf), spec in zip(paths, spread(name, tree, specs.get(name)), strict=True):
            yield f"{name}{jax.tree_util.keystr(path)}", leaf, spec


def on_mesh(leaf: Any) -> bool:
    """Whether an array, or its shape, has a sharding on a mesh."""
    return isinstance(getattr(leaf, "sharding", None), NamedSharding)


def own_sharding(leaf: Any, mesh: jax.sharding.Mesh) -> NamedSharding:
    """Return an array's own sharding if it is on this mesh, else a replicated one.

    A mesh of the same axes on other devices is this mesh: the program is compiled for emulated
    devices, or for hardware, that the array is not on.
    """
    own = getattr(leaf, "sharding", None)
    spec = PartitionSpec()
    if isinstance(own, NamedSharding) and own.mesh.shape == mesh.shape:
        spec = own.spec if _stands_for(own.mesh, mesh) else spec
    return NamedSharding(mesh, spec, memory_kind=memory_kind(own))


def memory_kind(sharding: Any) -> str | None:
    """Return the memory that a sharding names, such as `pinned_host`; None for the devices' own."""
    kind: str | None = getattr(sharding, "memory_kind", None)
    return None if kind == "device" else kind


def _stands_for(own: Any, mesh: jax.sharding.Mesh) -> bool:
    if isinstance(own, jax.sharding.AbstractMesh) or same_devices(own, mesh):
        return True
    return set(own.devices.flat).isdisjoint(mesh.devices.flat)


def same_devices(one: jax.sharding.Mesh, other: jax.sharding.Mesh) -> bool:
    """Whether two meshes have the same devices in the same order."""
    return one.devices.shape == other.devices.shape and bool((one.devices == other.devices).all())


def entries(spec: PartitionSpec) -> Iterator[tuple[str, ...]]:
    """Return the mesh axes of each entry of a spec."""
    for entry in spec.partitions:
        if entry is None or entry is PartitionSpec.UNCONSTRAINED:
            yield ()
        else:
            yield entry if isinstance(entry, tuple) else (entry,)


def text(spec: PartitionSpec) -> str:
    """Write a spec as a user would: `P('data')`, without a trailing comma."""
    parts = [_entry(entry) for entry in spec.partitions]
    for key in ("unreduced", "reduced"):
        axes = sorted(getattr(spec, key, ()))
        parts += [f"{key}={{{', '.join(map(repr, axes))}}}"] if axes else []
    return f"P({', '.join(parts)})"


def _entry(entry: Any) -> str:
    if isinstance(entry, tuple) and len(entry) == 1:
        return repr(entry[0])
    return "P.UNCONSTRAINED" if entry is PartitionSpec.UNCONSTRAINED else repr(entry)


def dims_of(spec: PartitionSpec, rank: int) -> Spec:
    """Return the mesh axes of each dimension of an array of this rank."""
    axes = tuple(entries(spec))
    return axes + ((),) * (rank - len(axes))


def partition_spec(spec: Spec) -> PartitionSpec:
    """Return a spec as JAX has it, without the replicated dimensions at its end."""
    parts = [axes[0] if len(axes) == 1 else axes or None for axes in spec]
    while parts and parts[-1] is None:
        parts.pop()
    return PartitionSpec(*parts)


def specs_like(args: dict[str, Tree], specs: Iterable[Spec]) -> dict[str, Tree]:
    """Return specs, one for each array, in the structure of the arguments."""
    each = iter(specs)

    def following(_: Any) -> PartitionSpec:
        return partition_spec(next(each))

    return {name: jax.tree_util.tree_map(following, tree) for name, tree in args.items()}


def check_spec(
    name: str, shape: tuple[int, ...], spec: PartitionSpec, mesh: jax.sharding.Mesh
) -> None:
    """Check a spec against an array and a mesh; raises `ValueError` that names the problem."""
    said = f"{text(spec)} of {name}"
    if len(spec) > len(shape):
        raise ValueError(too_long(said, spec, name, shape))
    _check_axes(said, [axis for axes in entries(spec) for axis in axes], mesh)
    for dim, axes in enumerate(entries(spec)):
        parts = math.prod(mesh.shape[axis] for axis in axes)
        if shape[dim] % parts:
            below, above = shape[dim] // parts * parts, -(-shape[dim] // parts) * parts
            raise ValueError(
                f"the spec {said} does not fit: {indivisible(dim, shape[dim], parts, axes)}; "
                f"{f'{below} or {above}' if below else above} is"
            )


def too_long(said: str, spec: PartitionSpec, name: str, shape: tuple[int, ...]) -> str:
    """Say that a spec has more entries than its array has dimensions.

    >>> too_long("P('data') of count", PartitionSpec("data"), "count", ())
    "the spec P('data') of count has 1 entry, but count is a scalar, whose spec is P()"
    """
    has = f"the spec {said} has {len(spec)} {'entry' if len(spec) == 1 else 'entries'}"
    if not shape:
        return f"{has}, but {name} is a scalar, whose spec is P()"
    dimensions = "dimension" if len(shape) == 1 else "dimensions"
    return f"{has}, but {name} has {len(shape)} {dimensions}: {list(shape)}"


def indivisible(dim: int, size: int, parts: int, axes: Iterable[str]) -> str:
    """Say that a dimension has another size than its mesh axes need.

    >>> indivisible(0, 17, 8, ["data"])
    'dimension 0 (17) is not divisible by the 8 devices along `data`'
    """
    along = " and ".join(f"`{axis}`" for axis in dict.fromkeys(axes))
    return f"dimension {dim} ({size}) is not divisible by the {parts} devices along {along}"


def _check_axes(said: str, axes: list[str], mesh: jax.sharding.Mesh) -> None:
    for axis in axes:
        if axis not in mesh.shape:
            known, near = ", ".join(mesh.shape), difflib.get_close_matches(axis, mesh.shape, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"the spec {said} names the mesh axis {axis!r}; the axes are {known}{hint}"
            )
        if axes.count(axis) > 1:
            raise ValueError(f"the spec {said} uses the mesh axis {axis!r} twice")
