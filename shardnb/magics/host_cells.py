"""A `%%shard` cell on the hosts of `%mesh --hosts`, seen from the kernel."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from shardnb.hosts.engines import Engines, HostError, HostsEnded
from shardnb.hosts.pickling import CannotSend, answered, generators
from shardnb.hosts.remote_array import RemoteArray, ToEngines
from shardnb.magics import host_process, options, shown_explanations
from shardnb.magics.binding import Binding
from shardnb.magics.captured_names import names_through
from shardnb.magics.cell import CellError, cell_of
from shardnb.magics.host_process import CompiledCell, HostCell
from shardnb.magics.options import MagicLine
from shardnb.magics.recording import Recording
from shardnb.magics.scope import names_of
from shardnb.magics.session import NOT_RUN, ProgramText, Session
from shardnb.report import Report
from shardnb.views import hosts as words

_ELSEWHERE = (
    *(options.FIX, options.CHECK, options.COMPARE, options.WATCH, options.FROM),
    options.PROFILE,
)


def run_on_hosts(session: Session, text: ProgramText, line: MagicLine, *, run: bool) -> Any:
    """Compile a text on all hosts, show its report, run it, and bind what it assigns.

    As `Session.run`; the arrays that it assigns are `RemoteArray`s.
    """
    engines = session.mesh.hosts
    if engines is None:
        raise RuntimeError("the mesh is in this process")
    for option in _ELSEWHERE:
        if line.has(option):
            raise CellError(words.not_on_hosts(f"--{option.name}"))
    session.previews.forget(session.cells.cell_id)
    with _shown(session):
        return _HostRun(session, engines, text, line, run=run).result()


@contextmanager
def _shown(session: Session) -> Iterator[None]:
    """Show the explanation of an error that the hosts gave."""
    try:
        yield
    except HostError as error:
        failed = error.failed
        if failed is not None and not failed.lines and not isinstance(error, HostsEnded):
            raise CellError(failed.message) from None  # what a check refuses is one line
        if failed is not None and failed.explanation is not None:
            plain = error._render_traceback_
            shown_explanations.show(session.shell, error, failed.explanation, plain)
        raise


class _HostRun:
    def __init__(
        self, session: Session, engines: Engines, text: ProgramText, line: MagicLine, *, run: bool
    ) -> None:
        self.session, self.engines, self.text, self.line = session, engines, text, line
        self.run = run
        self._objects: dict[int, Any] = {}

    def result(self) -> Any:
        """Compile and run; gives the value of the last expression."""
        session, line = self.session, self.line
        first = self._compiled()
        report = Report.from_json(first.report)
        report = session.forbidding(line, session.since_last_run(self.text, report))
        report = session.keep(line, report, list(first.printed))
        session.forbid(line, report)
        value = None
        if self.run:
            value, report = self._executed(first, report)
        session.show(line, report)
        return value

    def _compiled(self) -> CompiledCell:
        sender, data = self._sent()
        title = self.text.title
        answers = self.engines.call(host_process.compiled, data, doing=words.compiling(title))
        sender.arrived()
        self._objects = sender.objects()
        self._refuse_different(answers)
        first: CompiledCell = answers[0]
        return first

    def _sent(self) -> tuple[ToEngines, Any]:
        """Pickle what the cell reads, and the cell; an array that the hosts have is not sent."""
        session, text, line = self.session, self.text, self.line
        names = session.namespace
        cell = cell_of(text.tree, text.lines)
        used, _ = names_through(cell.names, names)
        session.refuse_save(line, used)
        read = dict.fromkeys([*used.read, *_names_on(line)])
        values = {name: names[name] for name in read if name in names}
        texts = replace(session.cells.texts(text.explained), title=text.title)
        files = {file: "".join(linecache.getlines(file)) for file in texts.files}
        mesh = session.mesh
        sent = HostCell(
            text,
            line,
            texts,
            files,
            mesh.stated,
            mesh.axes,
            mesh.hardware,
            self.run,
            self.engines.next_number(),
            tuple(self.engines.releasable()),
        )
        sender = ToEngines(self.engines, names, files)
        try:
            return sender, np.frombuffer(sender.dumped((values, generators(), sent)), np.uint8)
        except CannotSend as error:
            raise CellError(self._cannot_send(values, files, error)) from error

    def _cannot_send(self, values: dict[str, Any], files: Any, error: CannotSend) -> str:
        for name, value in values.items():
            try:
                ToEngines(self.engines, self.session.namespace, files).dumped(value)
            except CannotSend as why:
                return words.cannot_send(name, type(value).__name__, str(why))
        return words.cannot_send("the cell", "cell", str(error))

    def _refuse_different(self, answers: list[CompiledCell]) -> None:
        """Raise `CellError` where a host has compiled another program than host 0."""
        for stage in ("stablehlo", "optimized"):
            digests = [getattr(answer, stage) for answer in answers]
            other = next((h for h, digest in enumerate(digests) if digest != digests[0]), None)
            if other is not None:
                texts = self.engines.call(host_process.text, stage)
                same = [host for host, digest in enumerate(digests) if digest == digests[0]]
                difference = words.Difference.between(texts[0], texts[other])
                raise CellError(words.differ(same, other, stage, difference))

    def _executed(self, first: CompiledCell, report: Report) -> tuple[Any, Report]:
        session, line = self.session, self.line
        recording: Recording = self._answered(first.recording)
        binding = Binding(session.namespace, recording)
        if first.abstract:
            return binding.finish(self._answered(first.shapes)), report
        if first.hindrance:
            return None, session.keep(line, report, [NOT_RUN + first.hindrance])
        with binding.begun():
            try:
                answers = self.engines.call(host_process.ran, doing=words.running(self.text.title))
            except BaseException:  # an interrupt too: the report exists already
                session.show(line, report)
                raise
            value = binding.finish(self._answered(answers[0].results))
        seconds = max(answer.seconds for answer in answers)
        report = replace(report, run=replace(report.run, run_seconds=seconds))
        return value, session.keep(line, report, [])

    def _answered(self, data: bytes) -> Any:
        def named(key: str, info: Any) -> RemoteArray:
            return RemoteArray(self.engines, key, info)

        return answered(data, self._objects, self.session.namespace, named)


def _names_on(line: MagicLine) -> list[str]:
    """Return the names that the expressions of a line read."""
    texts = [*line.specs.values(), *line.parts.values(), *line.rules.values(), *line.out.values()]
    texts += [t for option in (options.MESH, options.HARDWARE) if (t := line.text(option))]
    names: list[str] = []
    for expression in texts:
        try:
            names += names_of(ast.parse(expression)).read
        except SyntaxError:  # a mesh as text, or what is refused where it is evaluated
            continue
    return names
