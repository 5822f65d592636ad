"""`--watch`: a cell that runs unchanged, and reports on the programs it compiles.

A program that JAX has compiled before is not compiled again, so it is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import jax

from shardnb.compiler.watched_programs import WatchedProgram, watched_programs
from shardnb.cost import on_hardware
from shardnb.jax_compat.parts import NotAvailable
from shardnb.magics import options, shown_errors, sources
from shardnb.magics.cell import CellError
from shardnb.magics.meshes import mesh_value
from shardnb.magics.options import MagicLine
from shardnb.magics.session import ProgramText, Session, show
from shardnb.mesh import Grid, make_grid, mesh_of
from shardnb.report import Report
from shardnb.watching import explain_watched

_NOTHING = (
    "Nothing was compiled. A program that JAX has compiled before is not compiled again, so it "
    "is not seen: jax.clear_caches() forgets them."
)


def run_watched(session: Session, text: ProgramText, line: MagicLine) -> Any:
    """Run a cell unchanged and report each program with collectives that it compiles.

    Returns the value of the last expression. Raises `CellError` if the line has specs.
    """
    if line.placed or line.out:
        raise CellError("--watch runs the cell unchanged and takes no name=SPEC")
    code = session.code(text)
    with session.errors(text.file):
        programs: list[WatchedProgram] | None = None
        try:
            with watching() as programs:
                value = code.run(session.namespace)
        finally:
            if programs is not None:
                reports = [_explained(session, text, line, program) for program in programs]
                _show(session, line, reports)
        words = line.words(options.FORBID)
        broken = [c for report in reports for c in report.collectives if c.is_among(words)]
        if broken:
            raise shown_errors.ForbiddenCollectives(words, broken)
        return value


@contextmanager
def watching() -> Iterator[list[WatchedProgram]]:
    """Collect the programs that the block compiles.

    Raises `CellError`, before the block runs, if JAX cannot collect them.
    """
    with ExitStack() as stack:
        try:
            programs = stack.enter_context(watched_programs())
        except NotAvailable as error:
            raise CellError(f"--watch is not available: {error}") from error
        yield programs


def _explained(
    session: Session, text: ProgramText, line: MagicLine, program: WatchedProgram
) -> Report:
    texts = session.cells.texts(text.file)
    report = explain_watched(program, _grids(session, line), texts)
    hardware = session.hardware(line, report.mesh) if report.collectives else None
    report = report if hardware is None else on_hardware(report, hardware)
    return sources.tidied(report)


def _grids(session: Session, line: MagicLine) -> Iterator[Grid]:
    """Yield the meshes that a program of the notebook may be for, the most likely first."""
    stated = line.text(options.MESH)
    if stated is not None:
        mesh = mesh_value(stated, session.namespace)
        yield make_grid(mesh, line.text(options.AXES), line.text(options.ON))
    values = [value for name, value in session.namespace.items() if not name.startswith("_")]
    yield from (make_grid(value) for value in values if isinstance(value, jax.sharding.Mesh))
    placed = mesh_of([value for value in values if isinstance(value, jax.Array)])
    if placed is not None:
        yield make_grid(placed)
    notebooks = session.mesh.grid()
    if notebooks is not None:
        yield notebooks
    ambient = jax.sharding.get_mesh()
    if not ambient.empty:
        yield make_grid(ambient)


def _show(session: Session, line: MagicLine, reports: Sequence[Report]) -> None:
    shown = [report for report in reports if report.collectives]
    for report in shown:
        session.last = report
        show(report, line.text(options.VIEW) or "full")
    name = line.text(options.SAVE)
    if name is not None:
        session.namespace[name] = shown
    if not reports:
        print(_NOTHING)  # noqa: T201
    elif len(shown) < len(reports):
        rest = len(reports) - len(shown)
        programs = "program was" if rest == 1 else "programs were"
        print(f"{rest} {'other ' if shown else ''}{programs} compiled, without collectives.")  # noqa: T201
