"""A cell that is ready to be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
from jax.sharding import NamedSharding

from shardnb import engine
from shardnb.compiler import Program, Request, placement
from shardnb.cost import Given, on_hardware
from shardnb.magics import sources
from shardnb.magics.cell_function import CellFunction
from shardnb.report import Report, Source
from shardnb.report.types import ExplicitPlan
from shardnb.search import explicit

Tree = Any


@dataclass(frozen=True)
class Prepared:
    """A cell on a mesh: its function, the request to compile it, and what its seconds are for."""

    function: CellFunction
    request: Request
    hardware: Given | None = None

    def compiled(self) -> tuple[Program, Report]:
        """Compile and explain the cell; raises what JAX raises, explained if the cause is known."""
        program, report = engine.compile_and_analyse(self.request)
        self.function.refuse_leaks()
        report = sources.tidied(self.completed(report))
        return program, report if self.hardware is None else on_hardware(report, self.hardware)

    def completed(self, report: Report) -> Report:
        """Return the report with what other programs show of this one."""
        return report

    def to_explicit(self) -> ExplicitPlan:
        """Find the annotations with which Explicit axes accept the cell."""
        plan = explicit.to_explicit(self.request)
        return replace(plan, texts=tuple(self._as_written(text) for text in plan.texts))

    def _as_written(self, text: Source) -> Source:
        """Restore the lines of an annotated cell that became comments before its Python."""
        known = self.request.texts.sources
        if not known or text.name != Path(self.function.file).name:
            return text
        own = known[0]
        lines = text.text.splitlines()
        for i, raw in enumerate(own.text.splitlines()):
            if i < len(lines) and lines[i] == f"# {raw}":
                lines[i] = raw
        return replace(own, text="\n".join(lines))


def out_specs_of(function: CellFunction, stated: Mapping[str, Tree]) -> Tree:
    """Return the out_spec of each output, from those after `--out`."""
    if not function.manual:
        return {name: stated.get(name) for name in function.possible} if stated else None
    # shard_map takes specs only, not shardings.
    return jax.tree_util.tree_map(
        lambda spec: spec.spec if isinstance(spec, NamedSharding) else spec,
        dict(stated),
        is_leaf=placement.is_spec,
    )
