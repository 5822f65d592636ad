"""A function that a library jits, as the one jitted call that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from shardnb.compiler import placement
from shardnb.compiler.plain_trees import with_leaves
from shardnb.compiler.request import Request
from shardnb.jax_compat.jaxprs import as_function
from shardnb.jax_compat.jit_options import Constant, InnerJit, inner_jit

Tree = Any


def of_inner_call(request: Request) -> Request:
    """Give the jitted call that a function of a library's makes, with what it is jitted with.

    `nnx.jit` and `eqx.filter_jit` take their arguments apart, call what they jitted, and keep a
    part of what that returns, such as the new state of a module. A function that does anything
    else besides stays as it is.
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


def _by_input(request: Request, call: InnerJit, values: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Give what the call says of each array of the arguments, None where it is not one of its."""
    said = {at: value for at, value in zip(call.operands, values, strict=True) if type(at) is int}
    found, number = {}, 0
    for name, tree in request.arguments.items():
        count = len(jax.tree_util.tree_leaves(tree))
        found[name] = [said.get(at) for at in range(number, number + count)]
        number += count
    return found


def _in_specs(request: Request, call: InnerJit) -> dict[str, Tree]:
    """Give the specs that are stated for the arguments, by the user or by the call."""
    specs = dict(request.in_specs)
    for name, own in _by_input(request, call, call.in_shardings).items():
        if not any(own):
            continue
        given = placement.spread(name, request.arguments[name], specs.get(name))
        if any(
            mine is not None and spec is not None for mine, spec in zip(own, given, strict=True)
        ):
            raise ValueError(
                f"{call.name} is jitted with in_shardings, and in_specs places {name} too: leave "
                "it out, or give the function without its jit"
            )
        both = [spec or mine for spec, mine in zip(given, own, strict=True)]
        specs[name] = with_leaves(request.arguments[name], both)
    return specs


def _donated(request: Request, call: InnerJit) -> dict[str, Any]:
    found = _by_input(request, call, call.donated)
    numbers = tuple(at for at, said in enumerate(found.values()) if said and all(said))
    partly = [name for name, said in found.items() if any(said) and not all(said)]
    if partly:
        raise ValueError(
            f"{call.name} donates a part of {', '.join(partly)}: give the parts as arguments of "
            "their own"
        )
    return {"donate_argnums": numbers} if numbers else {}
