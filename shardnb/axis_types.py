"""Functions about mesh axis types: from Auto to Explicit, and the check of a `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from shardnb.compiler import build
from shardnb.compiler.call import read_call, texts_of
from shardnb.errors import explain_error
from shardnb.findings import report_of_program
from shardnb.manual import checker
from shardnb.manual.checker import ShardMapCall
from shardnb.mesh import make_grid
from shardnb.report.types import ErrorReport, ExplicitPlan, ShardMapCheck
from shardnb.search import explicit
from shardnb.tracebacks import with_users_frames

Tree = Any


@with_users_frames
def to_explicit(
    fn: Callable[..., Tree],
    *args: Tree,
    mesh: Any = None,
    on: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
) -> ExplicitPlan:
    """Find the annotations that a function needs to run on Explicit axes as it does on Auto axes.

    The arguments are those of `explain`. Each annotation is a line with the `out_sharding` or the
    `reshard` that propagation chose there. The function with all annotations is compiled, and the
    plan says whether it has the same collectives. Nothing runs, and the function itself is not
    changed. Raises what JAX raises if the function does not compile with Auto axes.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> w = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
    >>> plan = to_explicit(jnp.tanh, x, mesh="data=4", in_specs=P("data"))
    >>> plan.annotations, plan.same_collectives
    ((), True)
    """
    call = read_call(fn, args)
    grid = make_grid(mesh, None, on, call.placed)
    return explicit.to_explicit(call.request(grid, in_specs, out_specs))


@with_users_frames
def check_shard_map(
    fn: Callable[..., Tree],
    *args: Tree,
    in_specs: Tree,
    out_specs: Tree,
    mesh: Any = None,
    on: str | None = None,
    axis_names: AbstractSet[str] = frozenset(),
    check_vma: bool = True,
) -> ShardMapCheck:
    """Check a `shard_map` of `fn` over a mesh, without running it.

    `in_specs`, `out_specs`, `axis_names` and `check_vma` are those of `jax.shard_map`, `args` are
    arrays or `jax.ShapeDtypeStruct`. JAX itself decides: an error that it raises is returned in the
    check, with its cause, and not raised. Raises `ValueError` for a mesh that cannot be read.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> check = check_shard_map(jnp.sum, x, mesh="data=4", in_specs=P("data"), out_specs=P())
    >>> check.accepted, check.missing[0].collective
    (False, 'psum')
    """
    call = ShardMapCall(
        function=fn,
        arguments=args,
        grid=make_grid(mesh, None, on, args),
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=frozenset(axis_names),
        check_vma=check_vma,
        texts=texts_of(fn),
    ).of_shapes()
    return replace(checked(call), again=call)


def checked(call: ShardMapCall, *, compiled: bool = True) -> ShardMapCheck:
    """Check a `shard_map`, and compile it where JAX accepts it, unless `compiled` is False."""

    def explain(error: Exception) -> ErrorReport | None:
        return explain_error(error, texts=call.texts, grid=call.grid)

    check = checker.check_shard_map(call, explain)
    if not (compiled and check.accepted):
        return check
    program = build(checker.request_of(call))
    region = checker.region_of(program.lowered.as_text())
    return replace(check, region=region, report=report_of_program(program))
