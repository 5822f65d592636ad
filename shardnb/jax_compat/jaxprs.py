"""Walks over jaxprs, with those inside their equations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardnb.jax_compat.private import core


@dataclass(frozen=True)
class Part:
    """The equations of a jaxpr up to some place, to be read as a jaxpr is."""

    constvars: Sequence[Any]
    invars: Sequence[Any]
    eqns: Sequence[Any]
    outvars: Sequence[Any]


def bare(jaxpr: Any) -> Any:
    """Give the jaxpr itself where its constants are closed over."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def inner(equation: Any) -> Iterator[tuple[str, Any]]:
    """Give the jaxprs in an equation's parameters, each with the parameter's name."""
    for name, value in equation.params.items():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(bare(part), core.Jaxpr):
                yield name, bare(part)


def equations(jaxpr: Any) -> Iterator[Any]:
    """Give every equation of a jaxpr, those of its inner jaxprs behind their own."""
    for equation in bare(jaxpr).eqns:
        yield equation
        for _, part in inner(equation):
            yield from equations(part)
