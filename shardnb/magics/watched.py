"""`--watch`: a cell that runs unchanged, and reports on the programs it compiles.

XLA passes each program to a hook, which is always removed again. A program that JAX has compiled
before is not compiled again, so it is not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import jax

from shardnb import engine
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import compiled_modules
from shardnb.magics import options, shown_errors, sources
from shardnb.magics.cell import CellError
from shardnb.magics.meshes import mesh_value
from shardnb.magics.options import MagicLine
from shardnb.magics.session import ProgramText, Session, show
from shardnb.mesh import Grid, make_grid, mesh_of
from shardnb.report import Mesh, Report

_NUMBERS = itertools.count(1)
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
        with watching() as protos:
            try:
                value = code.run(session.namespace)
            finally:
                reports = [_explained(session, text, line, proto) for proto in protos]
                _show(session, line, reports)
        words = line.words(options.FORBID)
        broken = [c for report in reports for c in report.collectives if c.is_among(words)]
        if broken:
            raise shown_errors.ForbiddenCollectives(words, broken)
        return value


@contextmanager
def watching() -> Iterator[list[bytes]]:
    """Collect the serialized HLO module of each program that the block compiles.

    Raises `CellError`, before the block runs, if JAX cannot collect them.
    """
    protos: list[bytes] = []
    with ExitStack() as stack:
        try:
            # A separate name for each hook: a watched cell may run another one.
            name = f"shardnb-watch-{next(_NUMBERS)}"
            stack.enter_context(compiled_modules(name, lambda proto: protos.append(bytes(proto))))
        except NotAvailable as error:
            raise CellError(f"--watch is not available: {error}") from error
        yield protos


def _explained(session: Session, text: ProgramText, line: MagicLine, proto: bytes) -> Report:
    texts = session.cells.texts(text.file)
    report = engine.explain_watched(proto, None, texts)
    if report.collectives:
        # A module does not say how many devices it runs on: the highest number in a group does.
        highest = max(n for c in report.collectives for group in c.groups for n in group)
        mesh = _mesh_of_size(session, line, 1 + highest)
        report = engine.explain_watched(proto, mesh, texts)
    return sources.tidied(report)


def _mesh_of_size(session: Session, line: MagicLine, size: int) -> Mesh:
    for grid in _grids(session, line):
        if grid.mesh.devices.size == size:
            return grid.describe()
    return Mesh((), tuple(range(size)), target="unknown", kind="unknown")


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
