"""Code for a plan: a `%%shard` cell, `in_shardings`, a `shard_map`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
from jax.sharding import PartitionSpec

from shardnb.compiler import Program, placement
from shardnb.report.spec import spec_text
from shardnb.terms.axis_types import AXIS_TYPES
from shardnb.widgets.exploration import Subject
from shardnb.widgets.plan import MeshPlan, in_specs

Tree = Any
_HEAD = """\
import jax
from jax.sharding import AxisType, PartitionSpec as P

mesh = {mesh}
"""
_JIT = """\
with jax.set_mesh(mesh):
    jitted = jax.jit({fn}, in_shardings=({specs}){outs})
    y = jitted({args})
"""
_MAP = """\
with jax.set_mesh(mesh):
    mapped = jax.shard_map(
        {fn}, in_specs=({specs}), out_specs={outs}, axis_names={axes}
    )
    y = jax.jit(mapped)({args})
"""


def codes_of(subject: Subject, plan: MeshPlan, program: Program) -> tuple[dict[str, str], ...]:
    """Return each code for a plan, with its title; what cannot be written is left out.

    The texts call the function by its name, with the arguments' names.
    """
    if (
        not subject.request.texts.title.isidentifier()
        or subject.statics
        or subject.request.jit_options
    ):
        return ()
    try:
        specs = {name: written(tree) for name, tree in in_specs(plan, subject.shapes).items()}
        outs = None if subject.request.out_specs is None else written(subject.request.out_specs)
    except ValueError:
        return ()
    call = {"fn": subject.request.texts.title, "args": ", ".join(specs)}
    target = subject.request.grid.target
    on = [] if target == "cpu" else ["--on", target]
    out = [] if outs is None else ["--out", f"y={outs}"]
    placed = [f"{name}={spec}" for name, spec in specs.items()]
    line = " ".join(["%%shard", "--mesh", plan.mesh, *on, *placed, *out])
    texts = {"%%shard": "{line}\ny = {fn}({args})\n".format(line=line, **call)}
    listed = _listed(specs.values())
    if not program.manual:
        result = "" if outs is None else f", out_shardings={outs}"
        texts["jax.jit"] = _head(plan) + _JIT.format(specs=listed, outs=result, **call)
    elif outs is not None:
        axes = "{" + ", ".join(map(repr, sorted(program.manual))) + "}"
        body = _MAP.format(specs=listed, outs=outs, axes=axes, **call)
        texts["jax.shard_map"] = _head(plan) + body
    return tuple({"title": title, "text": text} for title, text in texts.items())


def _head(plan: MeshPlan) -> str:
    sizes = tuple(axis.size for axis in plan.axes)
    names = tuple(axis.name for axis in plan.axes)
    types = _listed(f"AxisType.{AXIS_TYPES[axis.type].of_mesh}" for axis in plan.axes)
    return _HEAD.format(mesh=f"jax.make_mesh({sizes}, {names}, axis_types=({types}))")


def _listed(parts: Iterable[str]) -> str:
    """Write the inside of a tuple: a single part needs a comma."""
    items = list(parts)
    return ", ".join(items) + ("," if len(items) == 1 else "")


def written(tree: Tree) -> str:
    """Write a pytree of specs as Python; a subtree with equal specs becomes one spec.

    Raises `ValueError` for a container that has no literal.

    >>> from jax.sharding import PartitionSpec as P
    >>> written({"w": P(None, "model"), "layers": [P("data"), P("data")]})
    "{'w': P(None, 'model'), 'layers': P('data')}"
    """
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=placement.is_spec)
    if leaves and all(isinstance(leaf, PartitionSpec) for leaf in leaves):
        texts = {spec_text(tuple(placement.entries(leaf))) for leaf in leaves}
        if len(texts) == 1:
            return texts.pop()
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return "{" + ", ".join(f"{key!r}: {written(part)}" for key, part in tree.items()) + "}"
    if type(tree) is list:
        return f"[{', '.join(map(written, tree))}]"
    if type(tree) is tuple:
        return f"({_listed(map(written, tree))})"
    if tree is None:
        return "None"
    raise ValueError(f"{type(tree).__name__} has no literal")
