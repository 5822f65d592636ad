"""Jitted functions that a function calls: their jit options apply to its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from shardnb.compiler import placement
from shardnb.compiler.plain_trees import with_leaves
from shardnb.compiler.request import Request
from shardnb.jax_compat.jaxprs import as_function
from shardnb.jax_compat.jit_options import Constant, InnerJit, inner_jit, jitted_uses

Tree = Any


def of_inner_call(request: Request) -> Request:
    """Return the jitted call inside a library's function, with its jit options.

    `nnx.jit` and `eqx.filter_jit` take their arguments apart, call what they jitted, and keep a
    part of what that returns, such as the new state of a module. A function that does anything else
    is not changed.
    """
    traced = request.trace()
    call = inner_jit(traced.jaxpr)
    if call is None:
        return request
    run, result = as_function(call.jaxpr), jax.tree_util.tree_structure(traced.out_info)
    kept = [at for at in range(len(call.jaxpr.out_avals)) if at not in call.results]

    def function(*given: Tree) -> Tree:
        leaves = jax.tree_util.tree_leaves(given)
        operands = (o.value if isinstance(o, Constant) else leaves[o] for o in call.operands)
        values = run(*operands)
        returned = jax.tree_util.tree_unflatten(result, [values[at] for at in call.results])
        return {"result": returned, "state": [values[at] for at in kept]} if kept else returned

    function.__name__ = call.name
    shardings = [call.out_shardings[at] for at in call.results]
    out_specs = jax.tree_util.tree_unflatten(result, shardings)
    state = [call.out_shardings[at] for at in kept]
    specs = {"result": out_specs, "state": state} if kept else out_specs
    return replace(
        request,
        function=function,
        in_specs=_in_specs(request, call),
        out_specs=specs if any(call.out_shardings) else request.out_specs,
        jit_options={**request.jit_options, **_donated(request, call)},
    )


def takes_numbers(request: Request, numbers: Sequence[complex]) -> bool:
    """Whether a library's jit traces these Python numbers: then its inner call takes each."""
    call = inner_jit(request.trace().jaxpr)
    taken = [] if call is None else [one.value for one in call.operands if type(one) is Constant]
    left = [value for value in taken if np.ndim(value) == 0]
    for number in numbers:
        alike = [at for at, value in enumerate(left) if np.result_type(value).type(number) == value]
        if not alike:
            return False
        del left[alike[0]]
    return True


def _by_input[Said](request: Request, said: Mapping[Any, Said]) -> dict[str, list[Said | None]]:
    """Return the options for each array of the arguments, by their numbers; else None."""
    found, number = {}, 0
    for name, tree in request.arguments.items():
        count = len(jax.tree_util.tree_leaves(tree))
        found[name] = [said.get(at) for at in range(number, number + count)]
        number += count
    return found


def _in_specs(request: Request, call: InnerJit) -> dict[str, Tree]:
    """Return the specs for the arguments, from the user or from the call."""
    specs = dict(request.in_specs)
    said = dict(zip(call.operands, call.in_shardings, strict=True))
    for name, own in _by_input(request, said).items():
        if not any(own):
            continue
        given = placement.spread(name, request.arguments[name], specs.get(name))
        if any(
            mine is not None and spec is not None for mine, spec in zip(own, given, strict=True)
        ):
            raise ValueError(
                f"{call.name} is jitted with in_shardings, but in_specs has {name} too: leave "
                "it out, or pass the function without its jit"
            )
        both = [spec or mine for spec, mine in zip(given, own, strict=True)]
        specs[name] = with_leaves(request.arguments[name], both)
    return specs


def _donated(request: Request, call: InnerJit) -> dict[str, Any]:
    found = _by_input(request, dict(zip(call.operands, call.donated, strict=True)))
    numbers = tuple(at for at, said in enumerate(found.values()) if said and all(said))
    partly = [name for name, said in found.items() if any(said) and not all(said)]
    if partly:
        raise ValueError(
            f"{call.name} donates a part of {', '.join(partly)}: pass the parts as separate "
            "arguments"
        )
    return {"donate_argnums": numbers} if numbers else {}


def with_jitted_calls(request: Request, traced: Any) -> tuple[Request, Any]:
    """Shard and donate arrays as the only jitted functions that use them do; trace again.

    A cell runs line by line: an array that is not on a mesh goes to a jitted function with its
    `in_shardings`, and is deleted afterwards if it is donated. None of the user's Python runs.
    """
    uses = _by_input(request, jitted_uses(traced.jaxpr))
    specs, donated = dict(request.in_specs), []
    for number, (name, said) in enumerate(uses.items()):
        tree = request.arguments[name]
        leaves = jax.tree_util.tree_leaves(tree)
        given = placement.spread(name, tree, specs.get(name))
        own = [
            use.sharding if use and spec is None and not placement.on_mesh(leaf) else None
            for use, spec, leaf in zip(said, given, leaves, strict=True)
        ]
        if any(own):
            both = [spec or mine for spec, mine in zip(given, own, strict=True)]
            specs[name] = with_leaves(tree, both)
        if said and all(use is not None and use.donated for use in said):
            donated.append(number)
    options = {"donate_argnums": tuple(donated)} if donated else {}
    if specs == request.in_specs and not options:
        return request, traced
    changed = replace(request, in_specs=specs, jit_options={**request.jit_options, **options})
    result = jax.tree_util.tree_structure(traced.out_info)
    return changed, changed.replayed(traced.jaxpr, result).trace()
