"""The sharding constraints of a traced program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.sharding import NamedSharding

from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.jax_compat.jaxprs import equations
from shardnb.sources import positions
from shardnb.sources.source_texts import Sources


def constraints(jaxpr: Any, sources: Sources) -> Iterator[Stated]:
    """Return the sharding constraints of a traced program, each at its line."""
    for equation in equations(jaxpr):
        if equation.primitive.name == "sharding_constraint":
            sharding, value = equation.params["sharding"], equation.invars[0].aval
            if isinstance(sharding, NamedSharding):
                frames = positions.lines(positions.of_equation(equation))
                yield Stated(
                    "constraint",
                    "the constrained value",
                    tuple(value.shape),
                    dtype_name(value.dtype),
                    sharding.spec,
                    next(iter(sources.locate(frames)), None),
                    padded=True,
                )
