"""Why a value of a `shard_map` body differs along a mesh axis, and what would make it the same.

A value's state along an axis is followed through the body: the same on all devices, sharded on one
of its dimensions, a partial result that is still to be combined, or otherwise different.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shardnb.jax_compat.jaxprs import bare, inner, is_literal
from shardnb.terms.primitives import FUNCTIONS, Function, primitive_of


@dataclass(frozen=True)
class State:
    """The state of a value along one axis; `origin` is the equation that made it so.

    `dim` is the dimension that is sharded. For a partial result without a `reducer`, such as an
    argmax, it is the operand's dimension, of which each device saw only its own block. `spender` is
    the equation that used a partial result before it was combined.
    """

    kind: str = "same"
    dim: int | None = None
    reducer: Function | None = None
    origin: Any = None
    spender: Any = None


SAME = State()
_REDUCERS: dict[str, Function | None] = {
    **dict.fromkeys(("argmax", "argmin", "reduce_prod")),  # no function combines their results
    **{reduction: row.name for row in FUNCTIONS.values() for reduction in row.combines},
}
# Operations along a dimension that keep it: on blocks they give another result.
_ALONG: dict[str, Callable[[Any], tuple[int, ...]]] = {
    "sort": lambda e: (e.params["dimension"],),
    "rev": lambda e: tuple(e.params["dimensions"]),
    "top_k": lambda e: (e.params.get("axis", e.invars[0].aval.ndim - 1),),
    "fft": lambda e: tuple(range(e.invars[0].aval.ndim))[-len(e.params["fft_lengths"]) :],
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), lambda e: (e.params["axis"],)
    ),
}
_LINEAR = {"neg", "convert_element_type", "copy", "copy_p", "reduce_precision", "real", "imag"}
_LINEAR |= {"slice", "dynamic_slice", "gather", "rev", "concatenate", "pad"}
_SCALED = {"mul", "div"}
_COMBINED = {"add", "sub", "add_any"}


def follow(jaxpr: Any, axis: str, states: Sequence[State]) -> list[State]:
    """Return the states of a jaxpr's results along an axis, from those of its inputs."""
    jaxpr = bare(jaxpr)
    known: dict[Any, State] = dict(zip(jaxpr.invars, states, strict=True))

    def state_of(variable: Any) -> State:
        return SAME if is_literal(variable) else known.get(variable, SAME)

    for equation in jaxpr.eqns:
        results = _step(equation, axis, [state_of(variable) for variable in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [state_of(variable) for variable in jaxpr.outvars]


def _step(equation: Any, axis: str, given: list[State]) -> list[State]:
    name, outvars = equation.primitive.name, equation.outvars
    axes = equation.params.get("axis_name", equation.params.get("axes", ()))
    if axis in (axes if isinstance(axes, tuple) else (axes,)):
        return [_collective(name, equation, given)] * len(outvars)
    if all(state.kind == "same" for state in given):
        return [SAME] * len(outvars)
    if name in _SPECIAL:
        return _SPECIAL[name](equation, axis, given)
    return [_elementwise(equation, given, variable) for variable in outvars]


def _collective(name: str, equation: Any, given: list[State]) -> State:
    if name == "pvary":
        known = given[0].kind != "same" or not is_literal(equation.invars[0])
        return given[0] if known else State(origin=equation)
    row = primitive_of(name)
    if row is not None and row.makes_equal:
        return SAME
    if name == "all_gather":
        return State("gathered", origin=equation)
    if name == "reduce_scatter":
        return State("split", equation.params["scatter_dimension"], origin=equation)
    if name == "ppermute":
        return given[0] if given[0].kind == "split" else State("differs", origin=equation)
    return State("differs", origin=equation)


def _elementwise(equation: Any, given: list[State], result: Any) -> State:
    """Combine operands of one shape, as far as a partial result stays one under the operation."""
    pairs = zip(given, equation.invars, strict=True)
    changed = [(state, variable.aval.shape) for state, variable in pairs if state.kind != "same"]
    first, name = changed[0][0], equation.primitive.name
    if any(_key(state) != _key(first) for state, _ in changed):
        return State("differs", origin=equation)
    if first.kind == "split" and first.dim in _ALONG.get(name, lambda _: ())(equation):
        return State("partial", first.dim, origin=equation)
    if first.kind == "split":
        dim, new = first.dim or 0, result.aval.shape
        kept = all(len(old) == len(new) and old[dim] == new[dim] for _, old in changed)
        return first if kept else State("differs", origin=equation)
    if first.kind != "partial":
        return first
    scaled = name in _SCALED and len(changed) == 1 and given[0].kind == "partial"
    both = name in _COMBINED and len(changed) == len(given)
    if scaled:
        return _divided(first, equation, given[1])
    return first if name in _LINEAR or both else _spent(first, equation)


def _spent(state: State, equation: Any) -> State:
    """Return the state of a value computed from a partial result before it was combined."""
    return replace(state, kind="spent", origin=state.origin or equation, spender=equation)


def _divided(state: State, equation: Any, by: State) -> State:
    """Return the state of a partial sum that is divided: by its count it becomes a mean."""
    divisor, origin = equation.invars[1], state.origin
    divisor = by.origin.invars[0] if by.kind == "same" and by.origin is not None else divisor
    if equation.primitive.name != "div" or state.reducer != "psum":
        return state
    if not is_literal(divisor) or origin.primitive.name != "reduce_sum":
        return state
    shape = origin.invars[0].aval.shape
    count = math.prod(shape[axis] for axis in origin.params["axes"])
    return replace(state, reducer="pmean") if float(divisor.val) == count else state


def _key(state: State) -> tuple[str, int | None, Function | None]:
    return state.kind, state.dim, state.reducer


def _dot_general(equation: Any, axis: str, given: list[State]) -> list[State]:
    del axis
    (contracting, batch), states = equation.params["dimension_numbers"], given[:2]
    splits = [state.dim if state.kind == "split" else None for state in states]
    if any(state.kind not in ("same", "split") for state in states):
        return [_through_product(states, equation)]
    if any(dim is not None and dim in dims for dim, dims in zip(splits, contracting, strict=True)):
        return [State("partial", reducer="psum", origin=equation)]
    places = {_placed(equation, side, dim, contracting, batch) for side, dim in enumerate(splits)}
    places -= {None}
    return [State("split", places.pop()) if len(places) == 1 else State("differs", origin=equation)]


def _through_product(states: list[State], equation: Any) -> State:
    partial = [state for state in states if state.kind == "partial"]
    if len(partial) == 1 and all(state.kind in ("partial", "same") for state in states):
        linear = partial[0].reducer == "psum"
        return partial[0] if linear else _spent(partial[0], equation)
    return State("differs", origin=equation)


def _placed(equation: Any, side: int, dim: int | None, contracting: Any, batch: Any) -> int | None:
    """Return the result's dimension that an operand's dimension becomes."""
    if dim is None:
        return None
    if dim in batch[side]:
        return list(batch[side]).index(dim)
    left, right = (
        [d for d in range(equation.invars[s].aval.ndim) if d not in (*contracting[s], *batch[s])]
        for s in (0, 1)
    )
    free = len(left) + right.index(dim) if side else left.index(dim)
    return len(batch[0]) + free


def _reduction(equation: Any, axis: str, given: list[State]) -> list[State]:
    del axis
    state, axes = given[0], equation.params["axes"]
    reducer = _REDUCERS[equation.primitive.name]
    if state.kind == "split" and state.dim is not None:
        if state.dim in axes:
            dim = state.dim if reducer is None else None
            return [State("partial", dim, reducer, origin=equation)]
        return [
            State("split", state.dim - sum(dim < state.dim for dim in axes), origin=state.origin)
        ]
    linear = state.kind == "partial" and state.reducer == reducer
    return [state if linear or state.kind != "partial" else _spent(state, equation)]


def _moved(find: Callable[[Any, int], int | None]) -> Callable[..., list[State]]:
    """Make a rule for an operation that moves the dimension that is sharded."""

    def rule(equation: Any, axis: str, given: list[State]) -> list[State]:
        del axis
        state = given[0]
        if state.kind != "split" or state.dim is None:
            return [state]
        dim = find(equation, state.dim)
        moved = State("split", dim, origin=state.origin)
        return [moved if dim is not None else State("differs", origin=equation)]

    return rule


def _reshaped(equation: Any, dim: int) -> int | None:
    """Return the dimension that starts where an old one starts and does not end within a block."""
    old, new = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    before, at = math.prod(old[:dim]), 0
    while at < len(new) and math.prod(new[:at]) < before:
        at += 1
    fits = at < len(new) and math.prod(new[:at]) == before
    return at if fits and (new[at] % old[dim] == 0 or old[dim] % max(new[at], 1) == 0) else None


def _call(equation: Any, axis: str, given: list[State]) -> list[State]:
    bodies = [body for _, body in inner(equation)]
    if not bodies or len(bodies[0].invars) != len(given):
        return [State("differs", origin=equation)] * len(equation.outvars)
    return follow(bodies[0], axis, given)


def _scan(equation: Any, axis: str, given: list[State]) -> list[State]:
    """Follow a loop's body until its carry's state is stable; scanned arrays lose a dimension."""
    (_, body), *_ = inner(equation)
    carried = _unchanged(equation.outvars, body.outvars)
    scanned = len(given) - _unchanged(equation.invars, body.invars)
    consts = len(given) - scanned - carried
    head, carry = given[:consts], given[consts : consts + carried]
    rows = [_shifted(state, -1) for state in given[consts + carried :]]
    # From "the same" to the body's state, then to "differs": three iterations reach the end.
    for _ in range(3):
        out = follow(body, axis, [*head, *carry, *rows])
        merged = [
            new
            if old.kind == "same" or _key(old) == _key(new)
            else State("differs", origin=equation)
            for old, new in zip(carry, out[:carried], strict=True)
        ]
        if [_key(state) for state in merged] == [_key(state) for state in carry]:
            break
        carry = merged
    return [*carry, *(_shifted(state, 1) for state in out[carried:])]


def _unchanged(outer: Sequence[Any], body: Sequence[Any]) -> int:
    """Count the variables that a loop does not scan; scanned ones have a dimension more."""
    return sum(a.aval.shape == b.aval.shape for a, b in zip(outer, body, strict=True))


def _cond(equation: Any, axis: str, given: list[State]) -> list[State]:
    """Follow every branch; a result on which they disagree differs."""
    branches = [follow(body, axis, given[1:]) for _, body in inner(equation)]
    agreed = given[0].kind == "same"
    return [
        states[0]
        if agreed and all(_key(state) == _key(states[0]) for state in states)
        else State("differs", origin=equation)
        for states in zip(*branches, strict=True)
    ]


def _shifted(state: State, by: int) -> State:
    if state.kind != "split" or state.dim is None:
        return state
    dim = state.dim + by
    return State("split", dim, origin=state.origin) if dim >= 0 else State("differs")


_SPECIAL: dict[str, Callable[[Any, str, list[State]], list[State]]] = {
    "dot_general": _dot_general,
    "reshape": _moved(_reshaped),
    "squeeze": _moved(lambda e, dim: dim - sum(gone < dim for gone in e.params["dimensions"])),
    "transpose": _moved(lambda e, dim: list(e.params["permutation"]).index(dim)),
    "broadcast_in_dim": _moved(lambda e, dim: e.params["broadcast_dimensions"][dim]),
    "scan": _scan,
    "cond": _cond,
    # A while loop may run for a different number of iterations on each device.
    "while": lambda e, _axis, _given: [State("differs", origin=e)] * len(e.outvars),
    **dict.fromkeys(("jit", "pjit", "closed_call", "remat", "checkpoint", "remat2"), _call),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), _call),
    **dict.fromkeys(_REDUCERS, _reduction),
}
