"""`--watch`: a cell that runs as it stands, and the reports of what it compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import jax

from shardnb import engine
from shardnb.jax_compat.parts import NotAvailable
from shardnb.magics import errors, options, sources
from shardnb.magics.cell import CellError
from shardnb.magics.meshes import mesh_of, mesh_value
from shardnb.magics.options import Line
from shardnb.magics.session import Session, Text, show
from shardnb.magics.watch import watching
from shardnb.mesh import Grid, make_grid
from shardnb.report import Collective, Mesh, Report

NOTHING = (
    "Nothing was compiled. A program that JAX has compiled before is not compiled again, and so "
    "is not seen: jax.clear_caches() forgets them."
)


def run_watched(session: Session, text: Text, line: Line) -> Any:
    """Run a cell as it stands and report each program with collectives that it compiled.

    Gives the value of the last expression. Raises `CellError` where the line states specs.
    """
    if line.specs or line.out:
        raise CellError("--watch runs the cell as it stands, and takes no name=SPEC")
    code = session.code(text)
    with session.errors(text.file):
        with _watching() as protos:
            try:
                value = code.run(session.namespace)
            finally:
                reports = [_explained(session, text, line, proto) for proto in protos]
                _show(session, line, reports)
        _check(line, reports)
        return value


@contextmanager
def _watching() -> Iterator[list[bytes]]:
    """Collect what a cell compiles; raises `CellError`, before the cell runs, where JAX cannot."""
    with ExitStack() as stack:
        try:
            protos = stack.enter_context(watching())
        except NotAvailable as error:
            raise CellError(f"--watch is not available: {error}") from error
        yield protos


def _explained(session: Session, text: Text, line: Line, proto: bytes) -> Report:
    texts = session.cells.texts(text.file)
    report = engine.explain_watched(proto, None, texts)
    if report.collectives:
        mesh = _mesh_of_size(session, line, _size(report.collectives))
        report = engine.explain_watched(proto, mesh, texts)
    return sources.tidied(report)


def _size(collectives: Iterable[Collective]) -> int:
    """Give the number of devices that exchange: a module does not say on how many it runs."""
    return 1 + max(device for c in collectives for group in c.groups for device in group)


def _mesh_of_size(session: Session, line: Line, size: int) -> Mesh:
    for grid in _grids(session, line):
        if grid.mesh.devices.size == size:
            return grid.describe()
    return Mesh((), tuple(range(size)), target="unknown", kind="unknown")


def _grids(session: Session, line: Line) -> Iterator[Grid]:
    """Give the meshes that a program of the notebook may be for, the likeliest first."""
    stated = line.text(options.MESH)
    if stated is not None:
        mesh = mesh_value(stated, session.namespace)
        yield make_grid(mesh, line.text(options.AXES), line.text(options.ON))
    yield from (make_grid(mesh) for mesh in _meshes(session.namespace))
    own = session.mesh.grid()
    if own is not None:
        yield own
    ambient = jax.sharding.get_mesh()
    if not ambient.empty:
        yield make_grid(ambient)


def _meshes(namespace: Mapping[str, Any]) -> Iterator[jax.sharding.Mesh]:
    values = [value for name, value in namespace.items() if not name.startswith("_")]
    yield from (value for value in values if isinstance(value, jax.sharding.Mesh))
    placed = mesh_of([value for value in values if isinstance(value, jax.Array)])
    if placed is not None:
        yield placed


def _show(session: Session, line: Line, reports: Iterable[Report]) -> None:
    reports = list(reports)
    shown = [report for report in reports if report.collectives]
    for report in shown:
        session.last = report
        show(report, line.text(options.VIEW) or "full")
    name = line.text(options.SAVE)
    if name is not None:
        session.namespace[name] = shown
    if not reports:
        print(NOTHING)  # noqa: T201
    elif len(shown) < len(reports):
        rest = len(reports) - len(shown)
        programs = "program was" if rest == 1 else "programs were"
        print(f"{rest} {'other ' if shown else ''}{programs} compiled, without collectives.")  # noqa: T201


def _check(line: Line, reports: Iterable[Report]) -> None:
    words = line.words(options.FORBID)
    found = [c for report in reports for c in errors.forbidden(report.collectives, words)]
    if found:
        raise errors.ForbiddenCollectives(words, found)
