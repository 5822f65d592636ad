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
    """Give the jaxpr itself where its constants are closed over."""
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


def as_function(jaxpr: Any) -> Callable[..., list[Any]]:
    """Give a jaxpr with its constants as a function of its inputs."""

    def run(*args: Any) -> list[Any]:
        with jax.debug_nans(False):  # noqa: FBT003 - what is checked already in the user's trace
            return jax.core.eval_jaxpr(jaxpr, jaxpr.consts, *args)

    return run


def inner(equation: Any) -> Iterator[tuple[str, Any]]:
    """Give the jaxprs in an equation's parameters, each with the parameter's name."""
    for name, value in equation.params.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if is_jaxpr(part):
                yield name, bare(part)


def equations(jaxpr: Any) -> Iterator[Any]:
    """Give every equation of a jaxpr, those of its inner jaxprs behind their own."""
    for equation in bare(jaxpr).eqns:
        yield equation
        for _, part in inner(equation):
            yield from equations(part)
