"""The collective missing in a `shard_map`: which one, over which axis, where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax.sharding import PartitionSpec

from shardnb.compiler import placement
from shardnb.manual import varying
from shardnb.propagation.typed_view import line_of
from shardnb.report.spec import spec_text
from shardnb.report.types import MissingCollective
from shardnb.rewrite.source_expressions import expression_of
from shardnb.sources.source_texts import Sources
from shardnb.terms.primitives import Function


def state_of(
    jaxpr: Any, number: int, axis: str, in_entries: Sequence[Sequence[tuple[str, ...]]]
) -> varying.State:
    """Return the state of a body's result along an axis, from the entries of its in_specs.

    Arrays that the body closes over come first among the jaxpr's inputs and are replicated.
    """
    states = [_entry_state(entries, axis) for entries in in_entries]
    states = [*[varying.SAME] * (len(jaxpr.invars) - len(states)), *states]
    return varying.follow(jaxpr, axis, states)[number]


def result_name(number: int, count: int) -> str:
    """Return the name of one of a body's results in a sentence."""
    return "result" if count == 1 else f"result[{number}]"


def _entry_state(entries: Sequence[tuple[str, ...]], axis: str) -> varying.State:
    dims = [dim for dim, axes in enumerate(entries) if axis in axes]
    return varying.State("split", dims[0]) if dims else varying.SAME


def missing_collective(
    output: str,
    axis: str,
    state: varying.State,
    spec: PartitionSpec,
    aval: Any,
    *,
    names: Mapping[str, Any],
    sources: Sources,
) -> MissingCollective:
    """Say what would make a result the same along an axis that its spec omits."""
    text, location = "", None
    if state.origin is not None:
        expression = expression_of(state.origin, sources, names)
        text = expression.text if expression else ""
        location = line_of(state.origin, sources)
        used = expression_of(state.spender, sources, names) if state.spender is not None else None
        if text and used is not None and used.text == text:
            # A collective around the expression that makes and uses it would come too late.
            of = state.origin.primitive.name
            why = (
                f"{of} leaves each device along {axis!r} with a partial result, but {text} uses it "
                "before it is combined"
            )
            fix = f"{text} over all devices: combine the partial result of its {of} first"
            return MissingCollective(output, (axis,), None, why, fix, "", location, text)
    collective, why, fix, other = _ways(output, axis, state, spec, text or "...", aval)
    return MissingCollective(output, (axis,), collective, why, fix, other, location, text)


def _ways(
    output: str, axis: str, state: varying.State, spec: Any, text: str, aval: Any
) -> tuple[Function | None, str, str, str]:
    """Return the missing collective, the reason, and how to write it."""
    of = state.origin.primitive.name if state.origin is not None else ""
    if state.kind in ("partial", "spent") and state.reducer:
        call = f"jax.lax.{state.reducer}({text}, {axis!r})"
        why = f"{of} leaves each device along {axis!r} with a partial result"
        late = "; it is used before it is combined" if state.kind == "spent" else ""
        return state.reducer, why + late, call, ""
    if state.kind in ("partial", "spent") and state.dim is not None:
        why = (
            f"{of} sees only each device's own block along {axis!r}, but no collective of jax.lax "
            "combines its results"
        )
        gather = f"jax.lax.all_gather(..., {axis!r}, axis={state.dim}, tiled=True, to='invarying')"
        expression = of if text == "..." else text
        return None, why, f"{gather} on the operand of {expression}", ""
    if state.kind == "split" and state.dim is not None:
        entries = [*placement.entries(spec)]
        entries += [()] * (state.dim + 1 - len(entries))
        entries[state.dim] = (*entries[state.dim], axis)
        call = (
            f"jax.lax.all_gather({output}, {axis!r}, axis={state.dim}, tiled=True, to='invarying')"
        )
        why = f"each device along {axis!r} has its own block of dimension {state.dim}"
        return "all_gather", why, f"out_specs {spec_text(tuple(entries))}", call
    if state.kind == "gathered":
        why = "all_gather returns the same on all devices, but its type says that it may differ"
        start = (
            f"all_gather(..., {axis!r}" if text == "..." else text.removesuffix(")").rstrip(", ")
        )
        return "all_gather", why, f"{start}, to='invarying')", ""
    if state.kind == "same":
        why = f"its type says that it varies over {axis!r}, but nothing in the body makes it"
        # A mean of integers is a float; the maximum of equal values has their type.
        function: Function = "pmean" if jnp.issubdtype(aval.dtype, jnp.inexact) else "pmax"
        return function, why, f"jax.lax.{function}({output}, {axis!r})", ""
    why = f"it may differ along {axis!r}" + (f" since {of}" if of else "")
    fix = (
        f"a collective over {axis!r}: jax.lax.all_gather before, with to='invarying', or psum, "
        f"pmean, pmax or pmin of {output}. The body does not show which one is meant"
    )
    return None, why, fix, ""
