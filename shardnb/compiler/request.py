"""A request to compile: a function of arrays, its specs and options, its texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.jax_compat.jaxprs import as_function, only_in_jitted
from shardnb.jax_compat.lowering import lower
from shardnb.jax_compat.tracing import constants_kept_apart, deep_stacks
from shardnb.mesh import Grid
from shardnb.report.model import Source
from shardnb.sources.quotable import Quotable, any_file
from shardnb.sources.source_texts import Sources

Tree = Any


@dataclass(frozen=True)
class SourceTexts:
    """The texts that a program was written in, the explained one first.

    `title` names the program. `files` maps a file name in a stack frame to an index of `sources`.
    `names` are the user's names for arrays that the program closes over, by their `id`. `may_quote`
    says of which other files lines are shown.
    """

    title: str = ""
    sources: tuple[Source, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    may_quote: Quotable = any_file

    def located(self) -> Sources:
        """Return an object that finds the lines of these texts in stacks of frames."""
        return Sources(self.sources, self.files, self.may_quote)


@dataclass(frozen=True)
class Request:
    """Everything that a program is compiled from; `dataclasses.replace` makes a variant.

    `arguments` are pytrees of arrays, or of their shapes, by the names of the parameters in their
    order; values that are not arrays are bound in `function` (see `call.read_call`). `in_specs` and
    `out_specs` are specs or shardings (see `placement.shardings`); over the manual axes of `grid`,
    `function` is written for one device and they are those of `shard_map`. `jit_options` are the
    other options of `jax.jit`, such as `donate_argnums`. `in_jit` says that the user's own
    `jax.jit` is around the function: a cell has none, and the jitted functions that it calls run
    separately. `apart` has it compiled by another process, whatever its size (see `compiling`).
    `placed_in_trace` gives specs that the function states while it is traced, as torch's
    `mark_sharding` does. With `deep_stacks` the program keeps more of each stack of frames than JAX
    does by default: between a line of torch code and JAX there are many.
    `notes` are what the report says of the specs.
    """

    function: Callable[..., Tree]
    arguments: dict[str, Tree]
    grid: Grid
    in_specs: dict[str, Tree] = field(default_factory=dict)
    out_specs: Tree = None
    jit_options: Mapping[str, Any] = field(default_factory=dict)
    texts: SourceTexts = field(default_factory=SourceTexts)
    in_jit: bool = True
    apart: bool = False
    placed_in_trace: Callable[[], dict[str, Tree]] | None = None
    deep_stacks: bool = False
    notes: tuple[str, ...] = ()

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The mesh to compile for."""
        return self.grid.mesh

    @cached_property
    def shardings(self) -> dict[str, Tree]:
        """The placement of each array of the arguments, in their structure."""
        return placement.shardings(self.arguments, self.in_specs, self.mesh)

    def trace(self) -> Any:
        """Return JAX's traced stage; arrays that the function closes over are kept apart."""
        fn, out_specs, manual = self.function, self.out_specs, self.grid.manual
        if manual:
            fn = _per_device(self)
            out_specs = out_specs if manual < set(self.mesh.axis_names) else None
        call = _named(fn, list(self.arguments))
        abstract = jax.tree_util.tree_map(_abstract, self.arguments, self.shardings)
        with jax.set_mesh(self.mesh), constants_kept_apart():
            placed = _resolved(out_specs, self.mesh)
            jitted = jax.jit(call, out_shardings=placed, **self.jit_options)
            return jitted.trace(*(abstract[name] for name in self.arguments))

    def replayed(self, jaxpr: Any, result: Any) -> Request:
        """Return the request with a traced function, so that the user's Python does not run again.

        `result` is the structure of its result.
        """
        run = as_function(jaxpr)

        def call(*args: Tree) -> Tree:
            return jax.tree_util.tree_unflatten(result, run(*jax.tree_util.tree_leaves(args)))

        call.__name__ = getattr(self.function, "__name__", "program")
        return replace(self, function=call)

    def as_placed(self, traced: Any) -> tuple[Request, Any]:
        """Place arrays as the function said while it was traced; no Python of the user's runs."""
        stated = self.placed_in_trace() if self.placed_in_trace else {}
        specs = {**self.in_specs, **stated}
        if specs == self.in_specs:
            return self, traced
        result = jax.tree_util.tree_structure(traced.out_info)
        changed = replace(self, in_specs=specs).replayed(traced.jaxpr, result)
        return changed, changed.trace()

    def lower(self, traced: Any) -> Any:
        """Return JAX's lowered stage of a traced stage.

        The user's `jax.jit` makes arrays that the function closes over constants on each device,
        whatever their sharding. Outside of it this is so of the arrays that only jitted functions
        use, each inside itself.
        """
        constants = None if self.in_jit else only_in_jitted(traced.jaxpr)
        with jax.set_mesh(self.mesh), deep_stacks() if self.deep_stacks else nullcontext():
            return lower(traced, NamedSharding(self.mesh, PartitionSpec()), constants)


def _named(fn: Callable[..., Tree], names: list[str]) -> Callable[..., Tree]:
    """Return a function whose arguments have these names, in HLO as in errors."""

    def call(*args: Tree) -> Tree:
        return fn(*args)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    call.__wrapped__ = fn  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = getattr(fn, "__name__", "program")
    return call


def _per_device(request: Request) -> Callable[..., Tree]:
    """Return the `shard_map` of a request's function over the manual axes."""
    manual = request.grid.manual
    in_specs = tuple(
        jax.tree_util.tree_map(lambda sharding: _only(sharding.spec, manual), tree)
        for tree in request.shardings.values()
    )
    out_specs = jax.tree_util.tree_map(
        lambda spec: None if spec is None else _only(getattr(spec, "spec", spec), manual),
        request.out_specs,
        is_leaf=placement.is_spec,
    )
    body = _named(request.function, list(request.arguments))
    return jax.shard_map(
        body, mesh=request.mesh, in_specs=in_specs, out_specs=out_specs, axis_names=manual
    )


def _only(spec: Any, manual: frozenset[str]) -> PartitionSpec:
    kept = (tuple(axis for axis in axes if axis in manual) for axes in placement.entries(spec))
    return PartitionSpec(*(axes or None for axes in kept))


def _resolved(specs: Tree, mesh: jax.sharding.Mesh) -> Tree:
    def resolve(spec: Any) -> Any:
        if isinstance(spec, NamedSharding) and spec.mesh.shape == mesh.shape:
            return NamedSharding(mesh, spec.spec, memory_kind=placement.memory_kind(spec))
        return NamedSharding(mesh, spec) if isinstance(spec, PartitionSpec) else spec

    return jax.tree_util.tree_map(resolve, specs, is_leaf=placement.is_spec)


def _abstract(leaf: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    weak = bool(getattr(leaf, "weak_type", False))
    dtype = placement.dtype_of(leaf)
    return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=sharding, weak_type=weak)
