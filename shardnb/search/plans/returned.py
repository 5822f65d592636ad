"""Results that are the new value of an argument, such as parameters after a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import jax

from shardnb.causes.training import Training
from shardnb.compiler import Program
from shardnb.compiler.placement import is_spec, named_leaves


def returned_arrays(program: Program, training: Training | None) -> dict[int, int]:
    """Return the array of the arguments whose new value each result is, by the result's number.

    A result that the user placed is left out.
    """
    infos = jax.tree_util.tree_leaves(program.lowered.out_info)
    if training is None or len(infos) != len(training.flows.results):
        return {}
    leaves = [leaf for _, leaf in named_leaves(program.arguments)]
    stated = _stated_results(program, len(infos))
    found = {}
    for at, parameter in {**training.written_into, **training.renewed}.items():
        number = program.parameters[parameter]
        if number < len(leaves) and _is_alike(leaves[number], infos[at]):
            found[at] = number
    found |= _of_one_tree(program, found)
    return {at: number for at, number in found.items() if not stated[at]}


def _of_one_tree(program: Program, known: Mapping[int, int]) -> dict[int, int]:
    """Pair all leaves of a result with those of the argument that it has the structure of.

    The new value of a counter carries no gradient: it is known by what it is counted beside.
    """
    found: dict[int, int] = {}
    starts = _starts(program.arguments.values())
    for at, result in _starts(_parts(program.lowered.out_info)):
        for number, tree in starts:
            leaves, infos = jax.tree_util.tree_leaves(tree), jax.tree_util.tree_leaves(result)
            pairs = [known.get(at + n, number + n) == number + n for n in range(len(infos))]
            paired = [at + n in known for n in range(len(infos))]
            structures: list[Any] = [jax.tree_util.tree_structure(each) for each in (tree, result)]
            same = structures[0] == structures[1]
            if same and any(paired) and all(pairs) and all(map(_is_alike, leaves, infos)):
                found |= {at + n: number + n for n in range(len(infos))}
    return found


def _parts(result: Any) -> list[Any]:
    return list(result) if type(result) in (tuple, list) else [result]


def _starts(trees: Iterable[Any]) -> list[tuple[int, Any]]:
    """Return each tree with the number of its first leaf."""
    found, number = [], 0
    for tree in trees:
        found.append((number, tree))
        number += len(jax.tree_util.tree_leaves(tree))
    return found


def _stated_results(program: Program, count: int) -> list[bool]:
    specs = program.request.out_specs
    if specs is None:
        return [False] * count
    stated = jax.tree_util.tree_map(
        lambda spec, part: [spec is not None] * len(jax.tree_util.tree_leaves(part)),
        specs,
        program.lowered.out_info,
        is_leaf=is_spec,
    )
    return jax.tree_util.tree_leaves(stated)


def _is_alike(one: Any, other: Any) -> bool:
    return (tuple(one.shape), one.dtype) == (tuple(other.shape), other.dtype)


def donatable(program: Program, returned: Collection[int]) -> tuple[int, ...]:
    """Return the arguments, by number, that are donated: those whose every array comes back.

    The user's own choice stands.
    """
    if any(option.startswith("donate") for option in program.request.jit_options):
        return ()
    found, number = [], 0
    for at, tree in enumerate(program.arguments.values()):
        count = len(jax.tree_util.tree_leaves(tree))
        if count and set(range(number, number + count)) <= set(returned):
            found.append(at)
        number += count
    return tuple(found)
