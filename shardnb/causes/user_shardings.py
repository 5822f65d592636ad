"""What the user stated on a mesh with Explicit axes, read out of the jaxpr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.sharding import AxisType

from shardnb.causes.stated_shardings import UserShardings
from shardnb.jax_compat.frames import is_jaxs_own, lines
from shardnb.jax_compat.jaxprs import bare
from shardnb.sources.source_texts import is_of_torch
from shardnb.terms.primitives import primitive_of
from shardnb.texts.hlo import Frame

_PARAMETERS = ("out_sharding", "sharding")

_Frame = tuple[str, str, int]
"""A file, a function, a line."""

_IN_WINDOWS = {
    "cumsum": "reduce_window_sum",
    "cummax": "reduce_window_max",
    "cummin": "reduce_window_min",
    "cumprod": "reduce_window",
    "cumlogsumexp": "reduce_window",
}
"""What JAX makes of running sums for TPU, whose lines are not in the compiler's texts."""


def read_user_shardings(jaxpr: Any, *, explicit: bool, results: bool) -> UserShardings:
    """Find the operations whose `out_sharding` was given, and keep whether results were stated."""
    operations = frozenset(_operations(jaxpr)) if explicit else frozenset()
    transposable = frozenset(_transposable(jaxpr))
    return UserShardings(explicit, results, operations, transposable, _placed(jaxpr))


def _placed(jaxpr: Any) -> dict[str, tuple[Frame, ...]]:
    """Return the lines of windows by their names, where all of a name are in one place."""
    places: dict[str, set[tuple[Frame, ...]]] = {}
    for equation, call in _with_calls(jaxpr, None):
        name = _IN_WINDOWS.get(equation.primitive.name, equation.primitive.name)
        if name.startswith("reduce_window"):
            found = (Frame(file, line, function) for file, function, line in lines(call))
            frames = tuple(frame for frame in found if not is_jaxs_own(frame.file))
            places.setdefault(name, set()).add(frames)
    return {name: frames.pop() for name, frames in places.items() if len(frames) == 1}


def _with_calls(jaxpr: Any, call: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every equation with the outermost call that it stands in, else itself.

    JAX traces what is jitted once, and keeps the stack of the first call.
    """
    for equation in bare(jaxpr).eqns:
        around = call or (equation if equation.primitive.name in ("jit", "pjit") else None)
        yield equation, around or equation
        for inner in _inner(equation):
            yield from _with_calls(inner, around)


def _transposable(jaxpr: Any) -> Iterator[tuple[str, int]]:
    """Yield the lines at which the forward pass has what autodiff transposes to a collective.

    That is a collective, a cast to varying, or a `shard_map` itself, which without `check_vma`
    adds up the gradients of what it has on all devices.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        if _is_transposed(equation):
            continue
        name, frame = equation.primitive.name, _frame(equation)
        if frame is not None and (name == "shard_map" or primitive_of(name) is not None):
            yield frame[0], frame[2]
        for inner in _inner(equation):
            yield from _transposable(inner)


def _is_transposed(equation: Any) -> bool:
    return "transpose(" in str(equation.source_info.name_stack)


def _inner(equation: Any) -> Iterator[Any]:
    """Yield the jaxprs that an equation runs."""
    for value in equation.params.values():
        for inner in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(inner, "eqns") or hasattr(getattr(inner, "jaxpr", None), "eqns"):
                yield inner


def _operations(
    jaxpr: Any, given: Any = None, around: Any = None
) -> Iterator[tuple[str, str, int]]:
    """Yield the operations that were given one: all, where the call `given` of them was.

    `around` is the call that they stand in; JAX's own functions have no lines of their own.
    Autodiff fills in what it transposes, also in functions of JAX's (`mean_of_log_softmax`).
    """
    body = [one for one in getattr(jaxpr, "jaxpr", jaxpr).eqns if not _is_transposed(one)]
    places = {_frame(equation) for equation in body if _ends_auto(equation)}
    for equation in body:
        frame, call = _frame(equation), given
        here = around if frame is None and around is not None else equation
        if given is None and frame in places and not _is_explicit(equation):
            call = here
        if call is not None or any(equation.params.get(name) is not None for name in _PARAMETERS):
            yield from _lines(equation, call or here)
        for inner in _inner(equation):
            yield from _operations(inner, call, here)


def _ends_auto(equation: Any) -> bool:
    """Whether a value comes out of a part that JAX runs with Auto axes, for its `out_sharding`."""
    if equation.primitive.name != "reshard":
        return False
    (source,), (result,) = (_types(values) for values in (equation.invars, equation.outvars))
    return AxisType.Explicit in result and any(
        before == AxisType.Auto and after == AxisType.Explicit
        for before, after in zip(source, result, strict=False)
    )


def _is_explicit(equation: Any) -> bool:
    return any(AxisType.Explicit in types for types in _types(equation.outvars))


def _types(variables: Any) -> list[tuple[Any, ...]]:
    """Return the axis types of the meshes of values."""
    shardings = (getattr(variable.aval, "sharding", None) for variable in variables)
    return [() if one is None else tuple(one.mesh.axis_types) for one in shardings]


def _frame(equation: Any) -> _Frame | None:
    """Return where an operation is called, outside of JAX."""
    outside = (line for line in lines(equation) if not is_jaxs_own(line[0]))
    return next((line for line in outside if not is_of_torch(line[0])), None)


def _lines(equation: Any, call: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the name of an operation with the line that it was called from."""
    stack = str(equation.source_info.name_stack)
    name = f"{stack}/{equation.primitive.name}" if stack else equation.primitive.name
    if (frame := _frame(call)) is not None:
        yield name, frame[0], frame[2]
