"""A user's call of a function, read into a `Request`: its arrays by name, its specs, its texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from shardnb.compiler.request import Request, SourceTexts
from shardnb.mesh import Grid
from shardnb.report import Source

Tree = Any


def read_call(
    fn: Callable[..., Tree],
    args: tuple[Tree, ...],
    grid: Grid,
    *,
    in_specs: Tree = None,
    out_specs: Tree = None,
    jit_options: Mapping[str, Any] | None = None,
) -> Request:
    """Take a call apart into a function of arrays and these arrays by name.

    `in_specs` is one spec for all arguments, one for each, or by name. `jit_options` are those of
    `jax.jit`; its static arguments stay as they are, inside the function. Raises `ValueError` where
    there are not as many specs as arguments.

    Everything that a user may call has to be understood here: the options that a jitted function
    brings along, keyword arguments, stages that are lowered already.
    """
    names = _argument_names(fn, len(args))
    options = dict(jit_options or {})
    static = _static(options, names)
    call, arrays = _arrays_only(fn, args, static)
    return Request(
        function=call,
        arguments=dict(zip(names, arrays, strict=True)),
        grid=grid,
        in_specs=_by_name(in_specs, names),
        out_specs=out_specs,
        jit_options=options,
        texts=texts_of(fn),
    )


def texts_of(fn: Callable[..., Tree]) -> SourceTexts:
    """Give the text that a function was written in, and the names that it closes over."""
    title = getattr(fn, "__name__", type(fn).__name__)
    return SourceTexts(title, _own_source(fn), _own_file(fn), _closure_names(fn))


def _static(options: dict[str, Any], names: Sequence[str]) -> frozenset[int]:
    """Take the static arguments out of options of `jax.jit`; gives their positions."""
    found: list[int | str] = []
    for option in ("static_argnums", "static_argnames"):
        stated = options.pop(option, None)
        if stated is not None:
            found += [stated] if isinstance(stated, int | str) else list(stated)
    count = len(names)
    return frozenset(
        at for at, name in enumerate(names) if {at, at - count, name}.intersection(found)
    )


def _arrays_only(
    fn: Callable[..., Tree], args: tuple[Tree, ...], static: frozenset[int]
) -> tuple[Callable[..., Tree], tuple[Tree, ...]]:
    """Split arguments into their arrays and the rest, and give `fn` as a function of the arrays."""
    leaves, structure = jax.tree_util.tree_flatten(args)
    owners = [at for at, arg in enumerate(args) for _ in jax.tree_util.tree_leaves(arg)]
    arrays = [
        None if owner in static else _as_array(leaf)
        for owner, leaf in zip(owners, leaves, strict=True)
    ]
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
