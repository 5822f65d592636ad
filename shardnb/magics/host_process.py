"""A `%%shard` cell in an engine: compiled, then run, on the devices of all hosts.

The kernel sends what the cell reads. A cell's names are the engine's alone, and new for each cell;
its arrays are the ones that the kernel names. What the cell does with names goes back as a
recording, which the kernel plays in its own names.
"""

from __future__ import annotations

import hashlib
import linecache
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax
from IPython import get_ipython

from shardnb.compiler import Program, SourceTexts, build
from shardnb.compiler.program import finished
from shardnb.cost import Given
from shardnb.cost.price import sent_over_hosts
from shardnb.errors import failures
from shardnb.hosts.engines import Failed
from shardnb.hosts.pickling import Answer, AttributesOf, CannotSend, Received
from shardnb.hosts.process import ArrayInfo, forget, keep
from shardnb.magics import options, shown_errors
from shardnb.magics.cell import CellError
from shardnb.magics.contents import attributes_of
from shardnb.magics.meshes import NotebookMesh, mesh_value
from shardnb.magics.options import MagicLine
from shardnb.magics.prepared import Prepared
from shardnb.magics.reachable import Reachable
from shardnb.magics.recording import Held, Recording
from shardnb.magics.session import ProgramText, Session, shapes_of
from shardnb.magics.sources import Cells
from shardnb.mesh import Grid
from shardnb.progress import silent
from shardnb.report import Report
from shardnb.texts.comparable import without_metadata
from shardnb.tracebacks import says_what_is_wrong
from shardnb.views import hosts as words
from shardnb.views.words import within_and_between

Tree = Any
ON_HOSTS = "attached"
"""The devices of a mesh over hosts: those that JAX has in each engine."""

_LOOK = 0.02  # seconds between two looks
_LONGEST_END = 4.0  # seconds that devices may take to end a program which was interrupted


@dataclass(frozen=True)
class HostCell:
    """A cell as it is sent: its text and line, the notebook's texts and mesh, and its number.

    `run` says that it is to run, `released` are keys of arrays that are to be dropped first.
    """

    text: ProgramText
    line: MagicLine
    texts: SourceTexts
    files: Mapping[str, str]
    stated: Any
    axes: str | None
    hardware: Given | None
    run: bool
    number: int
    released: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompiledCell:
    """What an engine says of a cell that it compiled.

    `stablehlo` and `optimized` are digests of the programs; host 0 adds the report, as JSON, and
    the recording. `runs` says that the program can run, `hindrance` why it cannot.
    """

    stablehlo: str
    optimized: str
    report: str = ""
    recording: bytes = b""
    shapes: bytes = b""
    printed: tuple[str, ...] = ()
    abstract: bool = False
    hindrance: str = ""


@dataclass(frozen=True)
class RanCell:
    """What an engine says of a cell that ran: host 0 its results, and the seconds it took."""

    results: bytes = b""
    seconds: float | None = None


@dataclass
class _Waiting:
    """The cell that was compiled last, until it has run."""

    cell: HostCell
    received: Received
    prepared: Prepared
    program: Program
    kept: dict[int, tuple[str, ArrayInfo]] = field(default_factory=dict)

    def answer(self, value: Any) -> bytes:
        """Pickle a value for the kernel; arrays in it are kept here."""
        try:
            return Answer(self.received, self.cell.files, self._keep).dumped(value)
        except CannotSend as error:
            raise CellError(words.cannot_send_back(str(error))) from error

    def _keep(self, array: jax.Array) -> tuple[str, ArrayInfo]:
        if id(array) not in self.kept:
            key = f"cell {self.cell.number}, array {len(self.kept)}"
            self.kept[id(array)] = key, keep(key, array)
        return self.kept[id(array)]


_waiting: list[_Waiting] = []


class _EngineSession(Session):
    """The magics' session in an engine, for the names of one cell."""

    def __init__(self, names: dict[str, Any], cell: HostCell) -> None:
        """Take the mesh and the texts of the notebook."""
        self._names = names
        mesh = NotebookMesh(cell.stated, cell.axes, ON_HOSTS)
        super().__init__(get_ipython(), _SentTexts(get_ipython(), cell.texts), mesh)

    @property
    def namespace(self) -> dict[str, Any]:
        """The names of the cell."""
        return self._names

    def grid(self, line: MagicLine, values: Any) -> Grid:
        """Return the mesh that a line names, over the devices of all hosts, or the notebook's."""
        text = line.text(options.MESH)
        stated = None if text is None else mesh_value(text, self.namespace)
        return self.mesh.choose(stated, line.text(options.AXES), ON_HOSTS, values)


class _SentTexts(Cells):
    """Stands for the record of the notebook's cells: their texts came with the cell."""

    def __init__(self, shell: Any, texts: SourceTexts) -> None:
        super().__init__(shell)
        self._texts = texts

    def texts(self, _: str) -> SourceTexts:
        """Return every text."""
        return self._texts


def compiled(data: Any) -> CompiledCell | Failed:
    """Trace and compile a cell in this process; nothing runs."""
    _waiting.clear()
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    file = ""
    try:
        with silent():
            received = Received(bytes(data), names)
            values, _, cell = received.value
            forget(cell.released)
            names.update(values)
            file = cell.text.file
            for name, text in cell.files.items():
                linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
            return _compiled(received, cell, names)
    except BaseException as error:  # noqa: BLE001 - an interrupt too: the kernel shows it
        return _failed(error, file)


def _compiled(received: Received, cell: HostCell, names: dict[str, Any]) -> CompiledCell:
    session = _EngineSession(names, cell)
    prepared = session.prepared(cell.text, cell.line, run=cell.run)
    prepared = replace(prepared, hardware=cell.hardware or prepared.hardware)
    report: Report | None = None
    if jax.process_index() == 0:
        program, report = prepared.compiled()
        report = _with_bytes_between(report)
    else:
        with failures.explained(prepared.request):
            program = build(prepared.request)
        prepared.function.refuse_leaks()
    waiting = _Waiting(cell, received, prepared, program)
    _waiting.append(waiting)
    recording = prepared.function.recording
    # In every process, since the keys of arrays count on.
    recorded = waiting.answer(_sendable(recording)) if recording and cell.run else b""
    shapes = waiting.answer(shapes_of(program)) if program.abstract else b""
    answer = CompiledCell(
        _digest(_text("stablehlo")),
        _digest(_text("optimized")),
        abstract=program.abstract,
        hindrance=program.hindrance or "",
    )
    if report is None:
        return answer
    return replace(
        answer,
        report=report.to_json(),
        recording=recorded,
        shapes=shapes,
        printed=tuple(prepared.function.printed),
    )


def _with_bytes_between(report: Report) -> Report:
    """Say in a report what is sent within hosts and between them; a priced one says it already."""
    if report.cost is not None:
        return report
    sent = sent_over_hosts(report).items()
    notes = (within_and_between(axes, *both, "hosts") for axes, both in sent)
    return replace(report, notes=(*report.notes, *notes))


def _sendable(recording: Recording) -> Recording:
    """Return a recording without what is of this process alone."""
    contents = [held.content for held in recording.contents]
    roots = [*recording.names.items(), ("", recording.last), ("", contents)]
    reached = Reachable().add_all(roots).held
    owners = {id(a): value for _, value in reached if (a := attributes_of(value)) is not None}
    return Recording(
        recording.names,
        recording.deleted,
        recording.variables,
        recording.last,
        [
            Held(
                "",
                AttributesOf(owners[id(h.holder)]) if id(h.holder) in owners else h.holder,
                h.content,
            )
            for h in recording.contents
        ],
        recording.pending,
    )


def text(stage: str) -> str:
    """Return the program of the cell that was compiled last: `stablehlo` or `optimized`."""
    return _text(stage)


def _text(stage: str) -> str:
    program = _waiting[-1].program
    if stage == "stablehlo":
        return str(program.lowered.as_text())
    return without_metadata(program.optimized)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def ran() -> RanCell | Failed:
    """Run the cell that was compiled last; its results stay on the devices."""
    waiting, result = _waiting[-1], None
    try:
        with silent():
            start = time.perf_counter()
            result = waiting.program.run()
            finished(result)
            seconds = time.perf_counter() - start
            results = waiting.prepared.function.results(result)
            answer = RanCell(waiting.answer(results), seconds)
            _waiting.clear()
            return answer
    except BaseException as error:  # noqa: BLE001 - an interrupt too: the kernel shows it
        stuck = not _ends(result)
        return replace(_failed(error, waiting.cell.text.file), stuck=stuck)


def _ends(result: Tree) -> bool:
    """Wait a little for the devices, whose program goes on after an interrupt."""
    until = time.monotonic() + _LONGEST_END
    leaves = jax.tree_util.tree_leaves(result)
    with suppress(Exception):  # an array of a program that failed is ready, and raises
        while not all(leaf.is_ready() for leaf in leaves):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK)
    return True


def _failed(error: BaseException, file: str) -> Failed:
    """Describe an error with its traceback from the cell's line on, as the kernel would show it."""
    start = shown_errors.at_cell(error, file)
    lines: list[str] = []
    refused = isinstance(error, CellError) or says_what_is_wrong(error)
    if start is not None or not refused:
        lines = shown_errors.rendered(get_ipython(), error, start or error.__traceback__)()
    return Failed(type(error).__name__, str(error), tuple(lines), failures.report_of(error))
