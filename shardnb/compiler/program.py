"""A function of arrays as a compiled program, with the evidence that compiling it left."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.compiler.dumps import Dumps, pass_on, recording
from shardnb.jax_compat import private
from shardnb.terms.collectives import KINDS
from shardnb.texts import shardy

Tree = Any

# Seen with jaxlib 0.12: 256 CPU devices exchange data; 512 wait for ever, with about 255 threads of
# XLA's, and it ends the process. No document says where the limit lies.
MOST_THREADS = 256
_EXCHANGE = re.compile(rf"\b(?:{'|'.join(KINDS)})(?:-start)?\(")
_TOPOLOGY = "a TPU topology is only compiled for"


@dataclass(frozen=True)
class Recipe:
    """What a program is made of, as `build` takes it; `dataclasses.replace` gives a variant."""

    fn: Callable[..., Tree]
    args: dict[str, Tree]
    mesh: jax.sharding.Mesh
    manual: frozenset[str] = frozenset()
    in_specs: dict[str, Tree] = field(default_factory=dict)
    out_specs: Tree = None
    jit_options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def shardings(self) -> dict[str, Tree]:
        """The placement of each array of `args`, in their structure."""
        return placement.shardings(self.args, self.in_specs, self.mesh)

    def trace(self) -> Any:
        """Give JAX's traced stage; the arrays that `fn` closes over stay apart."""
        fn, out_specs = self.fn, self.out_specs
        if self.manual:
            body = _named(fn, list(self.args))
            fn = _per_device(body, self.shardings, self.mesh, self.manual, out_specs)
            out_specs = out_specs if self.manual < set(self.mesh.axis_names) else None
        call = _named(fn, list(self.args))
        abstract = jax.tree_util.tree_map(_abstract, self.args, self.shardings)
        with jax.set_mesh(self.mesh), private.constants_kept_apart():
            placed = _resolved(out_specs, self.mesh)
            jitted = jax.jit(call, out_shardings=placed, **self.jit_options)
            return jitted.trace(*(abstract[name] for name in self.args))

    def lower(self, traced: Any) -> Any:
        """Give JAX's lowered stage of what `trace` gave."""
        with jax.set_mesh(self.mesh):
            return private.lower(traced)


@dataclass
class Program:
    """A compiled program: JAX's own stages, and what XLA wrote on the way.

    `traced`, `lowered` and `compiled` are JAX's stages. `compiled` is None where the program does
    not fit into the memory of a device; `failure` then has the compiler's words.
    """

    recipe: Recipe
    traced: Any
    lowered: Any
    compiled: Any
    dumps: Dumps
    trace_seconds: float
    compile_seconds: float
    closed_over: tuple[Any, ...] = field(default=())
    failure: str = ""

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The mesh that it was compiled for."""
        return self.recipe.mesh

    @property
    def manual(self) -> frozenset[str]:
        """The axes over which its function is the body of one device."""
        return self.recipe.manual

    @property
    def args(self) -> dict[str, Tree]:
        """The arguments by name."""
        return self.recipe.args

    @property
    def shardings(self) -> dict[str, Tree]:
        """The placement of each array of the arguments, in their structure."""
        return self.recipe.shardings

    @property
    def out_specs(self) -> Tree:
        """What was stated for the result; None where nothing was, or where `shard_map` has it."""
        return None if self.manual else self.recipe.out_specs

    @cached_property
    def optimized(self) -> str:
        """The text of the program as the devices run it."""
        text: str = self.compiled.as_text() if self.compiled else self.dumps.optimized
        return text

    @cached_property
    def output_shardings(self) -> Tree:
        """The placement of each array of the result; Shardy's where nothing was compiled."""
        if self.compiled:
            return self.compiled.output_shardings
        leaves, structure = jax.tree_util.tree_flatten(self.lowered.out_info)
        specs = shardy.result_specs(self.dumps.propagated) or (None,) * len(leaves)
        placed = [NamedSharding(self.mesh, PartitionSpec(*(spec or ()))) for spec in specs]
        return jax.tree_util.tree_unflatten(structure, placed)

    @property
    def compile_only(self) -> bool:
        """Whether it is for devices of a topology, where nothing runs."""
        return private.compile_only(self.mesh.devices.flat[0])

    @cached_property
    def hindrance(self) -> str | None:
        """Why it cannot run on its devices, or None where it can."""
        if self.compile_only:
            return _TOPOLOGY
        devices = self.mesh.devices
        if devices.flat[0].platform != "cpu" or devices.size <= MOST_THREADS:
            return None
        if not _EXCHANGE.search(self.optimized):
            return None
        return (
            f"XLA can hang, and end the kernel, where more than {MOST_THREADS} CPU devices "
            f"exchange data, and the mesh has {devices.size:,}; a smaller mesh runs"
        )

    @property
    def abstract(self) -> bool:
        """Whether an argument has a shape only, so that the program cannot run."""
        leaves = jax.tree_util.tree_leaves(self.args)
        return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)

    def run(self) -> Tree:
        """Place the arguments on the mesh and run; gives the function's result.

        Raises `ValueError` where an argument has a shape only, where the devices cannot run it
        (see `hindrance`), and where it does not fit into their memory.
        """
        if self.hindrance:
            raise ValueError(f"nothing can run: {self.hindrance}")
        if self.abstract:
            raise ValueError("an argument is a ShapeDtypeStruct: there is nothing to run on")
        if not self.compiled:
            raise ValueError(self.failure)
        placed = jax.tree_util.tree_map(_placed, self.args, self.shardings)
        return self.compiled(*(placed[name] for name in self.args))


def build(
    fn: Callable[..., Tree],
    args: Mapping[str, Tree],
    *,
    mesh: jax.sharding.Mesh,
    manual: frozenset[str] = frozenset(),
    in_specs: Mapping[str, Tree] | None = None,
    out_specs: Tree = None,
    **jit_options: Any,
) -> Program:
    """Trace, lower and compile `fn(*args.values())` for a mesh; nothing is allocated or run.

    `args` holds pytrees of arrays by name. `in_specs` and `out_specs` say placements (see
    `placement.shardings`); over the axes `manual`, `fn` is the body of one device, and they are
    `shard_map`'s. A program that does not fit into a device's memory has no `compiled` stage.
    Raises what JAX raises.
    """
    recipe = Recipe(fn, dict(args), mesh, manual, dict(in_specs or {}), out_specs, jit_options)
    return build_traced(recipe, recipe.trace)


def build_traced(recipe: Recipe, trace: Callable[[], Any]) -> Program:
    """Lower and compile what `trace` gives for a recipe; as `build`."""
    start = time.perf_counter()
    traced = trace()
    traced_at = time.perf_counter()
    lowered = recipe.lower(traced)
    with jax.set_mesh(recipe.mesh), private.without_compilation_cache(), recording() as recorder:
        compiled, failure = _compiled(lowered, recorder.options)
    if failure and not recorder.dumps.optimized:
        pass_on(recorder.dumps.warnings)
        raise failure
    return Program(
        recipe=recipe,
        traced=traced,
        lowered=lowered,
        compiled=compiled,
        dumps=recorder.dumps,
        trace_seconds=traced_at - start,
        compile_seconds=time.perf_counter() - traced_at,
        closed_over=private.closed_over(lowered),
        failure=str(failure or ""),
    )


def _compiled(
    lowered: Any, options: Mapping[str, str | bool]
) -> tuple[Any, jax.errors.JaxRuntimeError | None]:
    """Compile, or give the error of a program that is too large for a device."""
    try:
        return lowered.compile(compiler_options=options), None
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return None, error


def _named(fn: Callable[..., Tree], names: list[str]) -> Callable[..., Tree]:
    """Give a function whose arguments JAX calls by `names`, in HLO as in errors."""

    def call(*args: Tree) -> Tree:
        return fn(*args)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    call.__wrapped__ = fn  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = getattr(fn, "__name__", "program")
    return call


def _per_device(
    fn: Callable[..., Tree],
    shardings: dict[str, Tree],
    mesh: jax.sharding.Mesh,
    manual: frozenset[str],
    out_specs: Tree,
) -> Callable[..., Tree]:
    in_specs = tuple(
        jax.tree_util.tree_map(lambda sharding: _only(sharding.spec, manual), tree)
        for tree in shardings.values()
    )
    out_specs = jax.tree_util.tree_map(
        lambda spec: None if spec is None else _only(getattr(spec, "spec", spec), manual),
        out_specs,
        is_leaf=placement.is_spec,
    )
    return jax.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=manual)


def _only(spec: Any, manual: frozenset[str]) -> PartitionSpec:
    kept = (tuple(axis for axis in axes if axis in manual) for axes in placement.entries(spec))
    return PartitionSpec(*(axes or None for axes in kept))


def _resolved(specs: Tree, mesh: jax.sharding.Mesh) -> Tree:
    def resolve(spec: Any) -> Any:
        return NamedSharding(mesh, spec) if isinstance(spec, PartitionSpec) else spec

    return jax.tree_util.tree_map(resolve, specs, is_leaf=placement.is_spec)


def _abstract(leaf: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    weak = bool(getattr(leaf, "weak_type", False))
    dtype = placement.dtype_of(leaf)
    return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=sharding, weak_type=weak)


def _placed(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if getattr(leaf, "sharding", None) == sharding:
        array: jax.Array = leaf
        return array
    host = isinstance(leaf, np.ndarray) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    placed: jax.Array = jax.device_put(leaf if host else np.asarray(leaf), sharding)
    return placed
