"""A function of arrays as a compiled program, with the evidence that compiling it left."""

from __future__ import annotations

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
from shardnb.compiler.collector import collector_paused
from shardnb.compiler.compiling import LARGE, Compiled, compile_lowered
from shardnb.compiler.dumps import Dumps, recording
from shardnb.compiler.inner_call import with_jitted_calls
from shardnb.compiler.request import Request
from shardnb.jax_compat.devices import compile_only
from shardnb.jax_compat.error_wordings import OUT_OF_MEMORY
from shardnb.jax_compat.jaxprs import equations, only_in_jitted
from shardnb.jax_compat.lowering import closed_over, kept_arguments
from shardnb.progress import line_on
from shardnb.terms.collectives import KINDS
from shardnb.texts import hlo
from shardnb.views import activity
from shardnb.worker.process import WORKER, CompilerAborted

Tree = Any

# Seen with jaxlib 0.12: 256 CPU devices communicate; 512 wait for ever, with about 255 XLA threads,
# # and XLA ends the process. The limit is not documented.
MOST_THREADS = 256
_EXCHANGE = re.compile(rf"\b(?:{'|'.join(KINDS)})(?:-start)?\(")
_LISTED = 8  # specs that an error lists
_ONLY_COMPILED = "programs for a TPU topology or a GPU cluster are only compiled"


@dataclass
class Program:
    """A compiled program: JAX's stages, and the dumps that XLA wrote.

    `traced`, `lowered` and `compiled` are JAX's stages. `traced` is None if the user lowered it,
    and `lowered` is `compiled` if the user compiled it. `compiled` is None if the program does not
    fit into the memory of a device; `failure` then has the compiler's message. `load` gives the
    stage that can run where another process compiled it.
    """

    request: Request
    traced: Any
    lowered: Any
    compiled: Any
    dumps: Dumps
    trace_seconds: float
    compile_seconds: float
    closed_over: tuple[Any, ...] = field(default=())
    failure: str = ""
    load: Callable[[], Any] | None = field(default=None, repr=False)

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The mesh that it was compiled for."""
        return self.request.mesh

    @property
    def manual(self) -> frozenset[str]:
        """The axes over which its function is written for one device."""
        return self.request.grid.manual

    @property
    def arguments(self) -> dict[str, Tree]:
        """The arguments by name."""
        return self.request.arguments

    @property
    def shardings(self) -> dict[str, Tree]:
        """The sharding of each array of the arguments, in their structure."""
        return self.request.shardings

    @property
    def out_specs(self) -> Tree:
        """The out_specs; None if there are none, or if `shard_map` has them."""
        return None if self.manual else self.request.out_specs

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """For each parameter of the compiled program, in order, the number of its input.

        Inputs are numbered as in `Report.inputs`: arguments first, then what it closes over. JAX
        passes the latter first, and leaves out arguments that the program does not use.
        """
        arguments, lifted = len(jax.tree_util.tree_leaves(self.arguments)), len(self.closed_over)
        kept = kept_arguments(self.lowered, self.compiled)
        return tuple(n - lifted if n >= lifted else arguments + n for n in kept)

    def is_constant(self, array: Any) -> bool:
        """Whether `jax.jit` makes a constant of each device of an array that is closed over."""
        return self.request.in_jit or id(array) in self._only_in_jitted

    @cached_property
    def _only_in_jitted(self) -> frozenset[int]:
        return only_in_jitted(self.traced.jaxpr) if self.traced else frozenset()

    @cached_property
    def optimized(self) -> str:
        """The text of the program as the devices run it."""
        text: str = self.compiled.as_text() if self.compiled else self.dumps.optimized
        return text

    @cached_property
    def module(self) -> hlo.Module:
        """The program as the devices run it, as data."""
        return hlo.parse(self.optimized)

    @cached_property
    def before(self) -> hlo.Module | None:
        """The program right before partitioning, if it was kept."""
        return hlo.parse(self.dumps.before) if self.dumps.before else None

    @cached_property
    def partitioned(self) -> hlo.Module | None:
        """The program right after partitioning, if it was kept."""
        return hlo.parse(self.dumps.partitioned) if self.dumps.partitioned else None

    @cached_property
    def output_shardings(self) -> Tree:
        """The sharding of each array of the result; Shardy's if nothing was compiled."""
        if self.compiled:
            return self.compiled.output_shardings
        leaves, structure = jax.tree_util.tree_flatten(self.lowered.out_info)
        results = self.dumps.after_propagation.results
        specs = [one.constrained_spec for one in results] or [None] * len(leaves)
        placed = [NamedSharding(self.mesh, PartitionSpec(*(spec or ()))) for spec in specs]
        return jax.tree_util.tree_unflatten(structure, placed)

    @property
    def compile_only(self) -> bool:
        """Whether it is for devices that can only be compiled for."""
        return compile_only(self.mesh.devices.flat[0])

    @cached_property
    def hindrance(self) -> str | None:
        """Why it cannot run on its devices, or None if it can."""
        if self.compile_only:
            return _ONLY_COMPILED
        devices = self.mesh.devices
        if devices.flat[0].platform != "cpu" or devices.size <= MOST_THREADS:
            return None
        if not _EXCHANGE.search(self.optimized):
            return None
        return (
            f"XLA can hang, and end the kernel, if more than {MOST_THREADS} CPU devices "
            f"communicate, and the mesh has {devices.size:,}; a smaller mesh runs"
        )

    @property
    def abstract(self) -> bool:
        """Whether an argument is only a shape, so that the program cannot run."""
        return _abstract(self.arguments)

    @cached_property
    def _runnable(self) -> Any:
        return self.load() if self.load else self.compiled

    def run(self) -> Tree:
        """Place the arguments on the mesh and run; returns the function's result.

        Raises as `placed` does.
        """
        return self.execute(self.placed())

    def placed(self) -> dict[str, Tree]:
        """Return the arguments on the mesh; an array that is there already is the caller's own.

        Raises `ValueError` if an argument is only a shape, if the devices cannot run the program
        (see `hindrance`), or if it does not fit into their memory.
        """
        if self.hindrance:
            raise ValueError(f"nothing can run: {self.hindrance}")
        if self.abstract:
            raise ValueError("an argument is a ShapeDtypeStruct, so there is no data to run on")
        if not self.compiled:
            raise ValueError(self.failure)
        placed: dict[str, Tree] = jax.tree_util.tree_map(_placed, self.arguments, self.shardings)
        return placed

    def execute(self, placed: Mapping[str, Tree]) -> Tree:
        """Run the program on arguments that are placed; those that it donates are gone then."""
        with jax.disable_jit(disable=False):  # else JAX refuses a program that is compiled already
            return self._runnable(*(placed[name] for name in self.arguments))

    def undonated(self, placed: Mapping[str, Tree]) -> dict[str, Tree]:
        """Return the arguments with copies of those that the program donates, so that these stay.

        Nothing is compiled for that.
        """
        given = tuple(placed[name] for name in self.arguments)
        leaves, structure = jax.tree_util.tree_flatten(given)
        infos = jax.tree_util.tree_leaves(self.lowered.args_info)
        kept = [
            jax.device_put(leaf, leaf.sharding, may_alias=False) if info.donated else leaf
            for leaf, info in zip(leaves, infos, strict=True)
        ]
        copied = jax.tree_util.tree_unflatten(structure, kept)
        return dict(zip(self.arguments, copied, strict=True))


def build(request: Request, trace: Callable[[], Any] | None = None) -> Program:
    """Trace, lower and compile a request; nothing is allocated or run.

    `trace` returns the traced stage if `request.trace` must not run the user's Python again. A
    program that does not fit into a device's memory has no `compiled` stage. Raises what JAX
    raises.
    """
    start = time.perf_counter()
    if request.apart or request.grid.compile_only:
        WORKER.prepare()
    title = request.texts.title or getattr(request.function, "__name__", "program")
    with line_on() as say:
        say(activity.tracing(title))
        with collector_paused():
            traced = (trace or request.trace)()
        if not request.in_jit:
            request, traced = with_jitted_calls(request, traced)
        request, traced = request.as_placed(traced)
        traced_at = time.perf_counter()
        number = sum(1 for _ in equations(traced.jaxpr))
        if number >= LARGE:  # it will be compiled apart: an equation is at least a line
            WORKER.prepare()
        say(activity.lowering(title, number))
        lowered = request.lower(traced)
        say(activity.sized(title, number))
        runs = not request.grid.compile_only and not _abstract(request.arguments)
        try:
            with jax.set_mesh(request.mesh):
                result = compiled_with_dumps(lowered, apart=request.apart, runs=runs)
        except CompilerAborted as error:
            error.jaxpr, error.placed = traced.jaxpr, _written(request)
            raise
    compiled, dumps, failure = result
    return Program(
        request=request,
        traced=traced,
        lowered=lowered,
        compiled=compiled.stage,
        load=compiled.load,
        dumps=dumps,
        trace_seconds=traced_at - start,
        compile_seconds=time.perf_counter() - traced_at,
        closed_over=closed_over(lowered),
        failure=str(failure or ""),
    )


def _written(request: Request) -> str:
    """Write the mesh and the specs of a request, such as `data=4, with x=P('data'), w=P()`."""
    specs = {name: sharding.spec for name, sharding in placement.named_leaves(request.shardings)}
    shown = [f"{name}={str(spec).replace('PartitionSpec', 'P')}" for name, spec in specs.items()]
    rest = [f"and {len(shown) - _LISTED} more"] if len(shown) > _LISTED else []
    mesh = ",".join(f"{name}={size}" for name, size in request.mesh.shape.items())
    return f"{mesh}, with {', '.join([*shown[:_LISTED], *rest])}"


def compiled_with_dumps(
    lowered: Any, *, apart: bool = False, runs: bool = False
) -> tuple[Compiled, Dumps, jax.errors.JaxRuntimeError | None]:
    """Compile, with XLA's dumps; or return the error of a program too large for a device.

    `apart` and `runs` are those of `compile_lowered`.
    """
    compiled, failure = Compiled(None), None
    with recording() as recorder:
        try:
            compiled = compile_lowered(lowered, recorder.options, apart=apart, runs=runs)
        except jax.errors.JaxRuntimeError as error:
            if not OUT_OF_MEMORY.search(str(error)):
                raise
            failure = error
    if failure and not recorder.dumps.optimized:
        raise failure
    recorder.dumps.warnings = compiled.warnings
    if compiled.problem:
        recorder.dumps.problems.append(compiled.problem)
    return compiled, recorder.dumps, failure


def _abstract(arguments: Tree) -> bool:
    """Whether an argument has a shape only."""
    leaves = jax.tree_util.tree_leaves(arguments)
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)


def finished(result: Tree) -> Tree:
    """Wait for the arrays of a result, so that an interrupt ends the wait; the devices go on."""
    start = time.perf_counter()
    for leaf in jax.tree_util.tree_leaves(result):
        is_ready = getattr(leaf, "is_ready", lambda: True)
        while not is_ready():
            # A hundredth of the time that it took so far, so that the time is right to that.
            time.sleep(min(0.01, max(1e-5, (time.perf_counter() - start) / 100)))
    return jax.block_until_ready(result)


def _placed(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if getattr(leaf, "sharding", None) == sharding:
        array: jax.Array = leaf
        return array
    host = isinstance(leaf, np.ndarray) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    placed: jax.Array = jax.device_put(leaf if host else np.asarray(leaf), sharding)
    return placed
