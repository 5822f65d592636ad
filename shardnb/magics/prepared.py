"""A cell that is ready to be compiled: its function of arrays, its mesh, its specs, its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
from jax.sharding import NamedSharding

from shardnb import engine
from shardnb.compiler import Program, placement
from shardnb.magics import sources
from shardnb.magics.function import CellFunction
from shardnb.mesh import Grid
from shardnb.report import Report, Source
from shardnb.report.types import ExplicitPlan
from shardnb.search import explicit

Tree = Any


@dataclass(frozen=True)
class Prepared:
    """A cell on a mesh. `out` are the placements behind `--out`, `names` those of arrays by id."""

    function: CellFunction
    grid: Grid
    title: str
    in_specs: Mapping[str, Tree]
    out: Mapping[str, Tree]
    known: tuple[Source, ...]
    files: Mapping[str, int]
    names: Mapping[int, str]

    def compiled(self) -> tuple[Program, Report]:
        """Compile it and explain it; raises what JAX raises, explained where that is known."""
        program, report = engine.compile_and_analyse(
            self.function,
            self.function.arguments(),
            self.grid,
            title=self.title,
            in_specs=self.in_specs,
            out_specs=self.out_specs,
            sources=self.known,
            files=self.files,
            names=self.names,
        )
        return program, sources.tidied(report)

    def to_explicit(self) -> ExplicitPlan:
        """Find the annotations with which Explicit axes accept the cell."""
        plan = explicit.to_explicit(
            self.function,
            self.function.arguments(),
            self.grid,
            in_specs=self.in_specs,
            out_specs=self.out_specs,
            title=self.title,
            sources=self.known,
            files=self.files,
        )
        return replace(plan, texts=tuple(self._as_written(text) for text in plan.texts))

    def _as_written(self, text: Source) -> Source:
        """Give an annotated cell the lines back that stand as comments before its Python."""
        if not self.known or text.name != Path(self.function.file).name:
            return text
        own = self.known[0]
        lines = text.text.splitlines()
        for i, raw in enumerate(own.text.splitlines()):
            if i < len(lines) and lines[i] == f"# {raw}":
                lines[i] = raw
        return replace(own, text="\n".join(lines))

    @property
    def out_specs(self) -> Tree:
        """The placement of each output, as `shardnb.compiler.build` takes it."""
        if self.function.manual:
            return {name: _spec_alone(tree) for name, tree in self.out.items()}
        possible = self.function.possible
        return {name: self.out.get(name) for name in possible} if self.out else None


def _spec_alone(tree: Tree) -> Tree:
    """Give specs for shardings: `shard_map` takes no others."""
    return jax.tree_util.tree_map(
        lambda spec: spec.spec if isinstance(spec, NamedSharding) else spec,
        tree,
        is_leaf=placement.is_spec,
    )
