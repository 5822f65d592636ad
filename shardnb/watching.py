"""`sn.watch`: what a block of code compiles, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.watched_programs import WatchedProgram, watched_programs
from shardnb.findings import report_of_text
from shardnb.findings.each import explain_each
from shardnb.findings.text_evidence import declared_mesh
from shardnb.mesh import Grid, make_grid
from shardnb.report import InvalidInput, Mesh, Report
from shardnb.report.programs import Programs


@dataclass
class Watched:
    """What a block of `sn.watch` compiled; empty until the block has ended."""

    programs: Programs = field(default_factory=Programs)

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of the large programs, or of all if none is large."""
        return self.programs.reports

    def __str__(self) -> str:
        """Return the reports and what else was compiled as text for a terminal."""
        return str(self.programs)


@contextmanager
def watch(
    mesh: str | jax.sharding.Mesh | None = None,
    *,
    only: str | None = None,
    first: int | None = None,
) -> Iterator[Watched]:
    """Report on each large program that the code of a block compiles: a training loop, a test.

    The code runs unchanged. A program that JAX has compiled before, or has in its persistent cache,
    is not compiled again, so it is not seen.

    Args:
        mesh: describes the devices of the programs that have its axes. None: the one of
            `jax.set_mesh`; a program names its axes in any case.
        only: a pattern such as `*train_step*` for the names of the programs, which are then
            explained also where they are small.
        first: how many programs are explained at most.

    Yields:
        `Watched`, whose `reports` are there once the block has ended, also by an exception.

    Raises:
        InvalidInput: no program has the name, or `first` is not positive.

    >>> import jax, jax.numpy as jnp
    >>> with watch() as watched:
    ...     x = jax.jit(lambda x: x + 1)(jnp.ones(3))
    >>> [report.collectives for report in watched.reports]
    []
    """
    given = None if mesh is None else make_grid(mesh)
    watched, programs = Watched(), list[WatchedProgram]()

    def explain(program: WatchedProgram) -> Report:
        return explain_watched(program, _meshes(given), SourceTexts())

    try:
        with watched_programs() as programs:
            yield watched
    except BaseException:  # of any class: it is raised again
        with suppress(InvalidInput):
            watched.programs = explain_each(programs, explain, only=only, first=first)
        raise
    watched.programs = explain_each(programs, explain, only=only, first=first)


def _meshes(given: Grid | None) -> Iterator[Grid]:
    if given is not None:
        yield given
    ambient = jax.sharding.get_mesh()
    if not ambient.empty:
        yield make_grid(ambient)


def explain_watched(program: WatchedProgram, meshes: Iterable[Grid], texts: SourceTexts) -> Report:
    """Report on a program that the user's own code compiled.

    Of the `meshes`, the one is taken that has the axes which the program names; of a program that
    names none, the one with as many devices.
    """
    declared = declared_mesh(program.optimized.partition("\n")[0], program.dumps.stated)
    if declared is None:
        found = report_of_text(program.optimized, None, texts, own=True)
        if not found.collectives:
            return found
        # A module does not say how many devices it runs on: the highest number in a group does.
        size = 1 + max(n for c in found.collectives for group in c.groups for n in group)
        mesh = next((grid.describe() for grid in meshes if grid.mesh.devices.size == size), None)
        mesh = mesh or Mesh((), tuple(range(size)), target="unknown", kind="unknown")
    else:
        described = (grid.describe() for grid in meshes)
        mesh = next((each for each in described if each.shape == declared.shape), declared)
    return report_of_text(program.optimized, mesh, texts, own=True, dumps=program.dumps)
