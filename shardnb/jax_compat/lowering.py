"""Lowering with closed-over arrays as arguments, and which arguments a program uses."""

from __future__ import annotations

from typing import Any

import jax

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.tracing import constants_kept_apart


def lower(traced: Any) -> Any:
    """Lower what was traced with `constants_kept_apart`; arrays closed over become arguments.

    Where JAX cannot do that, or cannot list them afterwards, they stay constants.
    """
    try:
        parameters = parts.LOWERING_PARAMETERS.call(hoist_constants_as_args=True)
        with constants_kept_apart():
            lowered = traced.lower(_private_parameters=parameters)
        parts.CLOSED_OVER.get(lowered)
    except NotAvailable:
        return traced.lower()
    return lowered


def closed_over(lowered: Any) -> tuple[Any, ...]:
    """Give the arrays that `lower` made into arguments; they come before all others."""
    if isinstance(lowered, jax.stages.Compiled):
        return ()
    try:
        return tuple(parts.CLOSED_OVER.get(lowered))
    except NotAvailable:
        return ()


def kept_arguments(lowered: Any, compiled: Any) -> tuple[int, ...]:
    """Give the numbers of the arguments that the program uses, closed-over arrays first.

    Raises `NotAvailable` where JAX has no list of them and there is no compiled program.
    """
    if lowered is not compiled:
        try:
            return tuple(sorted(parts.KEPT_ARGUMENTS.get(lowered)["kept_var_idx"]))
        except (NotAvailable, KeyError):
            if compiled is None:
                raise parts.KEPT_ARGUMENTS.gone() from None
    lifted = len(closed_over(lowered))
    # JAX gives no sharding for an argument that it dropped.
    shardings = compiled.in_tree.flatten_up_to(compiled.input_shardings)
    used = (number for number, sharding in enumerate(shardings, lifted) if sharding is not None)
    return (*range(lifted), *used)
