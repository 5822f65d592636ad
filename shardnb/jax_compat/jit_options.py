"""What a function was jitted with, and the jitted function that a wrapper of a library calls."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import PartitionSpec, Sharding

from shardnb.jax_compat import parts
from shardnb.jax_compat.jaxprs import bare, is_literal
from shardnb.jax_compat.parts import NotAvailable

Tree = Any

OPTIONS = frozenset(inspect.signature(jax.jit).parameters) - {"fun"}
"""The names of the options of `jax.jit`."""

_JITTED = type(jax.jit(lambda: None))
# Where a program runs and how its arrays are laid out in memory: the mesh decides the first, and
# the second has no place in a report.
_NOT_READ = ("device", "backend", "in_layouts_leaves", "out_layouts_leaves")
_JIT = ("jit", "pjit")
_POSITIONS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")


@dataclass(frozen=True)
class Jitted:
    """A function without its `jax.jit`, and the options that it was jitted with.

    The shardings are pytree prefixes as `jax.jit` takes them, with None for what is not stated.
    `options` holds those that differ from the default.
    """

    function: Callable[..., Tree]
    in_shardings: Tree = None
    out_shardings: Tree = None
    options: Mapping[str, Any] = field(default_factory=dict)


def is_jitted(fn: object) -> bool:
    """Whether `jax.jit` made a function."""
    return isinstance(fn, _JITTED)


def jitted(fn: Callable[..., Tree]) -> Jitted | None:
    """Return the options of a function that `jax.jit` made, None for another function.

    Raises `ValueError` where it was jitted with an option that a report cannot honour.
    """
    if not is_jitted(fn):
        return None
    try:
        info = parts.JIT_INFO.get(fn)
        plain = parts.JITTED_FUNCTION.get(fn)
    except NotAvailable:
        return None
    for name in _NOT_READ:
        if any(value is not None for value in _leaves(getattr(info, name))):
            option = "a layout" if "layouts" in name else name
            raise ValueError(
                f"{getattr(fn, '__name__', 'the function')} is jitted with {option}, which is not "
                "read here: give the function without it"
            )
    options = {name: getattr(info, name) for name in _POSITIONS if getattr(info, name)}
    if info.keep_unused:
        options["keep_unused"] = True
    if info.compiler_options_kvs:
        options["compiler_options"] = dict(info.compiler_options_kvs)
    return Jitted(
        plain,
        _stated(info.in_shardings_treedef, info.in_shardings_leaves),
        _stated(info.out_shardings_treedef, info.out_shardings_leaves),
        options,
    )


def _leaves(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _stated(structure: Any, leaves: tuple[Any, ...]) -> Tree:
    known = [leaf if isinstance(leaf, Sharding | PartitionSpec) else None for leaf in leaves]
    return structure.unflatten(known) if any(leaf is not None for leaf in known) else None


@dataclass(frozen=True)
class InnerJit:
    """The one jitted call that a traced function consists of, all its values by position.

    `operands` says for each input of the call which input of the traced function it is, or gives
    its value. `results` are the numbers of those outputs that the function itself returns.
    """

    jaxpr: Any
    operands: tuple[int | Any, ...]
    results: tuple[int, ...]
    in_shardings: tuple[Sharding | None, ...]
    out_shardings: tuple[Sharding | None, ...]
    donated: tuple[bool, ...]
    name: str


@dataclass(frozen=True)
class Constant:
    """A value that a traced function hands to a call and does not take as an argument."""

    value: Any


def inner_jit(closed: Any) -> InnerJit | None:
    """Return the jitted call that a traced function is, None where it computes anything else.

    Wrappers such as `nnx.jit` and `eqx.filter_jit` take their arguments apart, call one jitted
    function and put its results together; the rest of what that returns they keep.
    """
    jaxpr = bare(closed)
    if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].primitive.name not in _JIT:
        return None
    (call,) = jaxpr.eqns
    inputs = {variable: at for at, variable in enumerate(jaxpr.invars)}
    constants = dict(zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True))
    made = {variable: at for at, variable in enumerate(call.outvars)}
    if any(is_literal(variable) or variable not in made for variable in jaxpr.outvars):
        return None
    params = call.params
    return InnerJit(
        params["jaxpr"],
        tuple(
            Constant(variable.val)
            if is_literal(variable)
            else inputs[variable]
            if variable in inputs
            else Constant(constants[variable])
            for variable in call.invars
        ),
        tuple(made[variable] for variable in jaxpr.outvars),
        _shardings(params["in_shardings"]),
        _shardings(params["out_shardings"]),
        tuple(params["donated_invars"]),
        params["name"],
    )


def _shardings(values: Any) -> tuple[Sharding | None, ...]:
    return tuple(value if isinstance(value, Sharding) else None for value in values)


@dataclass(frozen=True)
class JittedUse:
    """What jitted functions say of an input that nothing else uses.

    `sharding` is what all of them state, `donated` whether one of them takes its memory.
    """

    sharding: Sharding | None
    donated: bool


def jitted_uses(closed: Any) -> dict[int, JittedUse]:
    """Return what is said of each input of a traced function that only jitted functions use."""
    jaxpr = bare(closed)
    inputs = {variable: at for at, variable in enumerate(jaxpr.invars)}
    uses_of: dict[int, list[tuple[Sharding | None, bool]]] = defaultdict(list)
    others = {inputs[v] for v in jaxpr.outvars if not is_literal(v) and v in inputs}
    for equation in jaxpr.eqns:
        used = [inputs.get(v) if not is_literal(v) else None for v in equation.invars]
        if equation.primitive.name not in _JIT:
            others.update(at for at in used if at is not None)
            continue
        shardings = _shardings(equation.params["in_shardings"])
        parameters = zip(used, shardings, equation.params["donated_invars"], strict=True)
        for at, sharding, donated in parameters:
            if at is not None:
                uses_of[at].append((sharding, donated))
    return {
        at: JittedUse(
            uses[0][0] if len({sharding for sharding, _ in uses}) == 1 else None,
            any(donated for _, donated in uses),
        )
        for at, uses in uses_of.items()
        if at not in others
    }
