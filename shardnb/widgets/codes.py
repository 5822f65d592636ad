"""The code that gives a plan: a cell of `%%shard`, `in_shardings`, a `shard_map`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.sharding import PartitionSpec

from shardnb.compiler import Program, placement
from shardnb.report.spec import spec_text
from shardnb.terms.axis_types import AXIS_TYPES
from shardnb.widgets.exploration import Subject
from shardnb.widgets.plan import Plan, in_specs

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


def codes_of(subject: Subject, plan: Plan, program: Program) -> tuple[dict[str, str], ...]:
    """Give each text that gives a plan, with its title; those that cannot be written are missing.

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
    texts = _Texts(subject, plan, specs, outs)
    return tuple({"title": title, "text": text} for title, text in texts.all(manual=program.manual))


class _Texts:
    def __init__(
        self, subject: Subject, plan: Plan, specs: dict[str, str], outs: str | None
    ) -> None:
        self.subject, self.plan, self.specs, self.outs = subject, plan, specs, outs
        self.call = {"fn": subject.request.texts.title, "args": ", ".join(specs)}

    def all(self, *, manual: frozenset[str]) -> Iterator[tuple[str, str]]:
        yield "%%shard", self._cell()
        if not manual:
            yield "jax.jit", self._jit()
        elif self.outs is not None:
            yield "jax.shard_map", self._map(manual)

    def _cell(self) -> str:
        target = self.subject.request.grid.target
        on = [] if target == "cpu" else ["--on", target]
        specs = [f"{name}={spec}" for name, spec in self.specs.items()]
        out = [] if self.outs is None else ["--out", f"y={self.outs}"]
        line = " ".join(["%%shard", "--mesh", self.plan.mesh, *on, *specs, *out])
        return "{line}\ny = {fn}({args})\n".format(line=line, **self.call)

    def _jit(self) -> str:
        outs = "" if self.outs is None else f", out_shardings={self.outs}"
        return self._head() + _JIT.format(specs=self._tuple(), outs=outs, **self.call)

    def _map(self, manual: frozenset[str]) -> str:
        axes = "{" + ", ".join(map(repr, sorted(manual))) + "}"
        parts = {"specs": self._tuple(), "outs": self.outs, "axes": axes}
        return self._head() + _MAP.format(**parts, **self.call)

    def _head(self) -> str:
        sizes = tuple(axis.size for axis in self.plan.axes)
        names = tuple(axis.name for axis in self.plan.axes)
        kinds = [AXIS_TYPES[axis.type].of_mesh for axis in self.plan.axes]
        types = ", ".join(f"AxisType.{kind}" for kind in kinds)
        trail = "," if len(kinds) == 1 else ""
        mesh = f"jax.make_mesh({sizes}, {names}, axis_types=({types}{trail}))"
        return _HEAD.format(mesh=mesh)

    def _tuple(self) -> str:
        return ", ".join(self.specs.values()) + ("," if len(self.specs) == 1 else "")


def written(tree: Tree) -> str:
    """Write a pytree of specs as Python; a part whose specs are alike becomes one spec.

    Raises `ValueError` for a container that has no literal.

    >>> from jax.sharding import PartitionSpec as P
    >>> written({"w": P(None, "model"), "layers": [P("data"), P("data")]})
    "{'w': P(None, 'model'), 'layers': P('data')}"
    """
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=placement.is_spec)
    if leaves and all(isinstance(leaf, PartitionSpec) for leaf in leaves):
        texts = {_spec(leaf) for leaf in leaves}
        if len(texts) == 1:
            return texts.pop()
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return "{" + ", ".join(f"{key!r}: {written(part)}" for key, part in tree.items()) + "}"
    if type(tree) is list:
        return f"[{', '.join(map(written, tree))}]"
    if type(tree) is tuple:
        return f"({', '.join(map(written, tree))}{',' if len(tree) == 1 else ''})"
    if tree is None:
        return "None"
    raise ValueError(f"{type(tree).__name__} has no literal")


def _spec(spec: PartitionSpec) -> str:
    return spec_text(tuple(placement.entries(spec)))
