"""Walks over jaxprs, with those inside their equations.

What a jaxpr is made of is known by its attributes: its classes are in `jax.extend.core`, and
importing any part of `jax.extend` adds settings to the keys of JAX's caches, so that every jitted
function of the user's would be compiled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

_PRIMITIVE = type(jax.lax.add_p)


@dataclass(frozen=True)
class PartialJaxpr:
    """The equations of a jaxpr up to some place, to be read as a jaxpr is."""

    constvars: Sequence[Any]
    invars: Sequence[Any]
    eqns: Sequence[Any]
    outvars: Sequence[Any]


def bare(jaxpr: Any) -> Any:
    """Return the jaxpr itself where its constants are closed over."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def is_jaxpr(value: Any) -> bool:
    """Whether a parameter of an equation is a jaxpr, with constants closed over or without."""
    return hasattr(bare(value), "eqns")


def is_literal(variable: Any) -> bool:
    """Whether an operand is a constant that stands in the equation."""
    return hasattr(variable, "val")


def is_dropped(variable: Any) -> bool:
    """Whether a result is not used: JAX writes it as `_`."""
    return type(variable).__name__ == "DropVar"


def is_primitive(value: Any) -> bool:
    """Whether a value is one of JAX's primitives."""
    return isinstance(value, _PRIMITIVE)


def only_in_jitted(jaxpr: Any) -> frozenset[int]:
    """Return the ids of closed-over arrays that only jitted functions use, inside themselves.

    These are called line by line. What such a function takes as an argument is an operand of its
    equation, and a loop that is run by itself takes all that its body closes over as operands.
    """
    inside, outside = set[int](), set[int]()
    for equation in bare(jaxpr).eqns:
        jitted = equation.primitive.name in ("jit", "pjit")
        outside.update(id(one.val) for one in equation.invars if is_literal(one))
        (inside if jitted else outside).update(_held(equation))
    return frozenset(inside - outside)


def _held(equation: Any) -> Iterator[int]:
    """Yield the ids of the arrays that stand in the jaxprs of an equation."""
    for value in equation.params.values():
        for part in value if isinstance(value, list | tuple) else (value,):
            for inner in bare(part).eqns if is_jaxpr(part) else ():
                yield from (id(one.val) for one in inner.invars if is_literal(one))
                yield from _held(inner)


def as_function(jaxpr: Any) -> Callable[..., list[Any]]:
    """Return a jaxpr with its constants as a function of its inputs."""

    def run(*args: Any) -> list[Any]:
        with jax.debug_nans(False):  # noqa: FBT003 - what is checked already in the user's trace
            return jax.core.eval_jaxpr(jaxpr, jaxpr.consts, *args)

    return run


def inner(equation: Any) -> Iterator[tuple[str, Any]]:
    """Yield the jaxprs in an equation's parameters, each with the parameter's name."""
    for name, value in equation.params.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if is_jaxpr(part):
                yield name, bare(part)


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield every equation of a jaxpr, those of its inner jaxprs after their own."""
    for equation in bare(jaxpr).eqns:
        yield equation
        for _, part in inner(equation):
            yield from equations(part)
