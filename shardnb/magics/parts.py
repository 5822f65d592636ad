"""Specs of parts of the inputs, as `%%shard params['w']=P('data')` gives them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.compiler.spec_rules import Like, Logical, resolved, rules
from shardnb.magics.cell import CellError

Tree = Any


def with_rules(
    specs: Mapping[str, Tree], line_rules: Mapping[tuple[str, str], Any], inputs: Mapping[str, Tree]
) -> tuple[dict[str, Tree], tuple[str, ...]]:
    """Return specs with those that rules give, and what the report says of the rules.

    `line_rules` has specs by name and pattern. Raises `CellError` for what is not a spec.
    """
    try:
        return resolved(ruled(specs, line_rules), inputs)
    except placement.SpecStructureError:
        raise
    except ValueError as error:
        raise CellError(str(error)) from error


def ruled(specs: Mapping[str, Tree], line_rules: Mapping[tuple[str, str], Any]) -> dict[str, Tree]:
    """Return specs with the rules of a line, as `explain` takes them; raises `CellError`."""
    whole = dict(specs)
    for name in dict.fromkeys(name for name, _ in line_rules):
        pairs = [(pattern, spec) for (at, pattern), spec in line_rules.items() if at == name]
        if isinstance(whole.get(name), Like | Logical):
            raise CellError(f"{name} has rules for its arrays and a spec as a whole")
        try:
            whole[name] = replace(rules(pairs), rest=whole.get(name))
        except TypeError as error:
            raise CellError(str(error)) from error
    return whole


def with_parts(
    specs: Mapping[str, Tree], parts: Mapping[str, PartitionSpec], inputs: Mapping[str, Tree]
) -> dict[str, Tree]:
    """Return the specs of names, with those of parts in them; other arrays keep theirs.

    `parts` has specs by the paths of arrays, or of what holds some. Raises `CellError` for a path
    at which there is none.

    >>> inputs = {"params": {"w": jax.ShapeDtypeStruct((8, 4), "float32"), "b": 1.0}}
    >>> with_parts({}, {"params['w']": PartitionSpec("data")}, inputs)
    {'params': {'b': None, 'w': P('data',)}}
    """
    whole = dict(specs)
    for part, spec in parts.items():
        name = next(name for name in inputs if _is_in(part, name))
        paths, structure = jax.tree.flatten_with_path(inputs[name])
        each = placement.spread(name, inputs[name], whole.get(name))
        named = [f"{name}{jax.tree_util.keystr(path)}" for path, _ in paths]
        held = [_is_in(array, part) for array in named]
        if not any(held):
            near = difflib.get_close_matches(part, named, 1) or named[:1]
            hint = f"; it has {near[0]}, for example" if near else ""
            raise CellError(f"the spec of {part}: {name} has no array there{hint}")
        if not isinstance(spec, PartitionSpec | NamedSharding):
            raise CellError(placement.no_spec(part, spec))
        each = [spec if here else given for here, given in zip(held, each, strict=True)]
        whole[name] = jax.tree.unflatten(structure, each)
    return whole


def _is_in(path: str, whole: str) -> bool:
    """Whether a path is another one, or in it; a star stands for any number."""
    start = re.escape(whole).replace(r"\[\*\]", r"\[\d+\]")
    return re.match(start + r"(?=[.\[]|$)", path) is not None
