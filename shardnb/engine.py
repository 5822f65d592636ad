"""The whole way from a function to its report."""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from shardnb.analysis import analyse, analyse_hlo
from shardnb.compiler import Program, build, private
from shardnb.mesh import Grid, make_grid
from shardnb.report import Mesh, Report, Source

Tree = Any


def explain(
    fn: Callable[..., Tree],
    *args: Tree,
    mesh: str | jax.sharding.Mesh | Grid | None = None,
    axes: str | None = None,
    on: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
    run: bool = False,
    fixes: bool | float = False,
    origins: bool | None = None,
    **jit_options: Any,
) -> Report:
    """Compile a function for a mesh and give the report of what it sends and holds.

    `args` are arrays, `jax.ShapeDtypeStruct`, or pytrees of them; what is no array stays as it
    is. `mesh` is a text such as `data=4,model=2` or a `jax.sharding.Mesh`; without it, the mesh
    in the arguments' shardings or the one of `jax.set_mesh`. `axes` is the type of its axes
    (auto, explicit, manual), `on` the devices (`cpu` emulates any number, `attached`).
    `in_specs` holds a spec, or a pytree prefix of specs, for each argument; `out_specs` for the
    result. `jit_options` are `jax.jit`'s, such as `donate_argnums`. Nothing is allocated or run,
    except with `run=True`. `fixes` looks for edits that remove inferred collectives, each of
    them compiled, for 20 seconds or the number that it gives (see `Collective.fixes`).
    `origins` says whether to seek where each sharding came from (None: unless the program is
    large, as Shardy then runs once more for a while).

    Raises `ValueError` where a spec does not fit its argument or the mesh, and what JAX raises.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> w = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
    >>> report = explain(
    ...     jnp.dot, x, w, mesh="data=4,model=2", in_specs=(P("data", "model"), P("model"))
    ... )
    >>> [(c.kind, c.axes, c.shape) for c in report.collectives]
    [('all-reduce', ('model',), (64, 1024))]
    """
    grid = make_grid(mesh, axes, on, args)
    call, arrays = _arrays_only(fn, args)
    names = _argument_names(fn, len(args))
    program, report = compile_and_analyse(
        call,
        dict(zip(names, arrays, strict=True)),
        grid,
        in_specs=_by_name(in_specs, names),
        out_specs=out_specs,
        title=getattr(fn, "__name__", type(fn).__name__),
        sources=_own_source(fn),
        files=_own_file(fn),
        names=_closure_names(fn),
        origins=origins,
        jit_options=jit_options,
    )
    if fixes:
        report = with_fixes(program, report, None if fixes is True else float(fixes))
    return ran(program, report)[1] if run else report


def with_fixes(program: Program, report: Report, seconds: float | None = None) -> Report:
    """Search for edits that remove inferred collectives, and show the progress of the search."""
    from shardnb.fixes import find_fixes, shown

    limit: dict[str, Any] = {} if seconds is None else {"seconds": seconds}
    with shown() as progress:
        return find_fixes(program, report, progress=progress, **limit)


def compile_and_analyse(
    fn: Callable[..., Tree],
    args: Mapping[str, Tree],
    grid: Grid,
    *,
    title: str,
    in_specs: Mapping[str, Tree] | None = None,
    out_specs: Tree = None,
    sources: Sequence[Source] = (),
    files: Mapping[str, int] | None = None,
    names: Mapping[int, str] | None = None,
    notes: Sequence[str] = (),
    origins: bool | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> tuple[Program, Report]:
    """Build a program of named pytrees of arrays, and read its evidence into a report."""
    program = build(
        fn,
        args,
        mesh=grid.mesh,
        manual=grid.manual,
        in_specs=in_specs,
        out_specs=out_specs,
        **(jit_options or {}),
    )
    start = time.perf_counter()
    with _collector_paused():
        report = analyse(
            program,
            grid.describe(),
            title=title,
            sources=sources,
            files=files,
            names=names,
            notes=notes,
            origins=origins,
        )
    seconds = time.perf_counter() - start
    return program, replace(report, run=replace(report.run, explain_seconds=seconds))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's garbage collector off: reading a program makes many objects, and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def explain_watched(
    proto: bytes,
    mesh: Mesh | None = None,
    *,
    sources: Sequence[Source] = (),
    files: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Give the report of a program that somebody else compiled, from its serialized HLO module.

    Its inputs and outputs are not known, and neither are the axes without a mesh.
    """
    text = private.hlo_text(proto)
    return analyse_hlo(text, mesh, sources=sources, files=files, notes=notes)


def ran(program: Program, report: Report) -> tuple[Tree, Report]:
    """Run a program; gives its result, and the report with the seconds that it took."""
    start = time.perf_counter()
    result = jax.block_until_ready(program.run())
    seconds = time.perf_counter() - start
    return result, replace(report, run=replace(report.run, run_seconds=seconds))


def _arrays_only(
    fn: Callable[..., Tree], args: tuple[Tree, ...]
) -> tuple[Callable[..., Tree], tuple[Tree, ...]]:
    """Split arguments into their arrays and the rest, and give `fn` as a function of the arrays."""
    leaves, structure = jax.tree_util.tree_flatten(args)
    arrays = [_as_array(leaf) for leaf in leaves]
    kept = [None if array is not None else leaf for leaf, array in zip(leaves, arrays, strict=True)]

    def call(*given: Tree) -> Tree:
        parts = jax.tree_util.tree_leaves(given, is_leaf=lambda leaf: leaf is None)
        whole = [rest if part is None else part for part, rest in zip(parts, kept, strict=True)]
        return fn(*jax.tree_util.tree_unflatten(structure, whole))

    call.__name__ = getattr(fn, "__name__", "program")
    return call, jax.tree_util.tree_unflatten(structure, arrays)


def _as_array(leaf: Any) -> Any:
    """Give an array or its shape, a number as JAX would trace it, and None for the rest."""
    if isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, np.generic):
        return np.asarray(leaf)
    if isinstance(leaf, int | float | complex) and not isinstance(leaf, bool):
        return jax.numpy.asarray(leaf)
    return None


def _argument_names(fn: Callable[..., Tree], count: int) -> list[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return [f"arg{i}" for i in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(count - len(names))]
        elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    return [*names, *(f"arg{i}" for i in range(len(names), count))][:count]


def _by_name(specs: Tree, names: list[str]) -> dict[str, Tree]:
    """Give each argument its part of `in_specs`: one for all, one for each, or by name."""
    if specs is None:
        return {}
    if isinstance(specs, Mapping) and set(specs) <= set(names):
        return dict(specs)
    if isinstance(specs, tuple | list):
        if len(specs) != len(names):
            raise ValueError(
                f"in_specs has {len(specs)} entries for {len(names)} arguments: {', '.join(names)}"
            )
        return dict(zip(names, specs, strict=True))
    return dict.fromkeys(names, specs)


def _own_source(fn: Callable[..., Tree]) -> tuple[Source, ...]:
    code = _code(fn)
    if code is None:
        return ()
    try:
        lines, first = inspect.getsourcelines(code)
    except OSError:
        return (Source(code.co_name, "", code.co_firstlineno),)
    return (Source(code.co_name, "".join(lines), first),)


def _own_file(fn: Callable[..., Tree]) -> dict[str, int]:
    code = _code(fn)
    return {code.co_filename: 0} if code is not None else {}


def _code(fn: Callable[..., Tree]) -> Any:
    return getattr(inspect.unwrap(fn), "__code__", None)


def _closure_names(fn: Callable[..., Tree]) -> dict[int, str]:
    try:
        found = inspect.getclosurevars(inspect.unwrap(fn))
    except (TypeError, ValueError):
        return {}
    return {
        id(leaf): f"{name}{jax.tree_util.keystr(path)}"
        for name, value in {**found.globals, **found.nonlocals}.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
    }
