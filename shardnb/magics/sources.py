"""The cells of a session, looked up by the file names in stack frames."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardnb.jax_compat.process_lock import wait_for_traces
from shardnb.report import Location, Report, Source

if TYPE_CHECKING:
    from shardnb.compiler import SourceTexts


@dataclass(frozen=True)
class Running:
    """The text of the cell that a magic runs in.

    `raw` is the cell as the user wrote it, `head` its lines up to the magic's line, as comments.
    """

    raw: str
    head: str
    number: int
    cell_id: str | None = None

    @property
    def source(self) -> Source:
        """The cell as a report holds it."""
        return Source(f"Cell In[{self.number}]", self.raw, 1, self.cell_id)


class Cells:
    """Records every cell that runs in a shell: its text, its number and its id.

    Two cells with the same text share a file name, which then means the one that ran last.
    """

    def __init__(self, shell: Any) -> None:
        """Record the cells of this shell, from the next one on."""
        self._shell = shell
        self._by_file: dict[str, Source] = {}
        self._of_thread = threading.local()

    @property
    def _info(self) -> Any:
        """What the shell said of the cell that runs in this thread: a subshell has its own."""
        return getattr(self._of_thread, "info", None)

    def watch(self) -> None:
        """Start recording."""
        self._shell.events.register("pre_run_cell", self._starts)
        self._shell.events.register("post_run_cell", self._ended)

    def unwatch(self) -> None:
        """Stop recording."""
        self._shell.events.unregister("pre_run_cell", self._starts)
        self._shell.events.unregister("post_run_cell", self._ended)

    def _starts(self, info: Any) -> None:
        self._of_thread.info = info
        # Not before the names hold arrays again: another thread may be tracing a cell.
        wait_for_traces()

    def _ended(self, result: Any) -> None:
        if result.info is not None and result.info.raw_cell:
            self._remember(result.info, result.execution_count or self._shell.execution_count)

    def _remember(self, info: Any, number: int) -> str:
        raw = info.raw_cell
        transformed = getattr(info, "transformed_cell", None) or self._shell.transform_cell(raw)
        file: str = self._shell.compile.get_code_name(raw, transformed, number)
        text, known = raw.lstrip("\n"), self._by_file.get(file)
        if known is not None and known.text.lstrip("\n") == text:
            # The line numbers of a `%%shard` cell count the empty lines at its top.
            text = known.text
        cell_id = getattr(info, "cell_id", None)
        self._by_file[file] = Source(f"Cell In[{number}]", text, 1, cell_id)
        return file

    @property
    def cell_id(self) -> str | None:
        """The notebook's id of the running cell; None if the front end gives none."""
        cell_id: str | None = getattr(self._info, "cell_id", None)
        return cell_id

    @property
    def number(self) -> int:
        """The number of the running cell, as in its `In[n]`."""
        stored = self._info is not None and self._info.store_history
        count: int = self._shell.execution_count
        return len(self._shell.user_ns["In"]) - 1 if stored else count

    def running(self, magic: str, line: str, body: str) -> Running:
        """Return the text of the cell that a cell magic runs in, with its line numbers."""
        raw = getattr(self._info, "raw_cell", None) or ""
        cell_id = getattr(self._info, "cell_id", None)
        if not (raw.lstrip().startswith(magic) and raw.rstrip().endswith(body.rstrip())):
            raw, cell_id = f"{magic} {line}\n{body}", None
        head = raw[: len(raw.rstrip()) - len(body.rstrip())]
        commented = "".join(f"# {text}\n" if text.strip() else "\n" for text in head.splitlines())
        return Running(raw, commented, self.number, cell_id)

    def now(self) -> str:
        """Record the running cell, and return the file name of its code."""
        return self._remember(self._info, self.number) if self._info is not None else ""

    def at_line(self, text: str) -> tuple[int, str]:
        """Return the line of the running cell that holds a text, and the cell's file name."""
        raw = getattr(self._info, "raw_cell", None) or ""
        lines = raw.lstrip("\n").splitlines()
        number = next((number for number, line in enumerate(lines, 1) if text in line), None)
        if number is None:
            return 1, "<%shard>"
        return number, self._remember(self._info, self.number)

    def has(self, file: str) -> bool:
        """Whether a file name is that of a cell."""
        return file in self._by_file

    def add(self, file: str, source: Source) -> None:
        """Record a text under the file name of its code."""
        self._by_file[file] = source

    def add_as(self, file: str, other: str) -> None:
        """Record the text of one file under another file name too."""
        self._by_file[file] = self._by_file[other]

    def texts(self, first: str) -> SourceTexts:
        """Return every text, that of the file `first` in front."""
        # The compiler is imported with the first cell, so that loading the extension is quick.
        from shardnb.compiler import SourceTexts

        files = [first, *(file for file in self._by_file if file != first)]
        known = [file for file in files if file in self._by_file]
        return SourceTexts(
            sources=tuple(self._by_file[file] for file in known),
            files={file: index for index, file in enumerate(known)},
        )


def tidied(report: Report) -> Report:
    """Return a report without the frames that led to the cell, and without unnamed sources."""
    collectives = tuple(replace(c, frames=_from_cell(c.frames)) for c in report.collectives)
    report = replace(report, collectives=collectives)
    used = sorted({0, *(location.source for location in _locations(report))})
    used = [index for index in used if index < len(report.sources)]
    if len(used) == len(report.sources):
        return report
    renumbered = {old: new for new, old in enumerate(used)}
    kept = tuple(report.sources[index] for index in used)
    moved: Report = _moved(replace(report, sources=kept), renumbered)
    return moved


def _from_cell(frames: tuple[Location, ...]) -> tuple[Location, ...]:
    """End a stack at the cell's own frame: its callers are the shell and the magic."""
    base = (i for i, frame in enumerate(frames) if frame.function == "<module>")
    return frames[: next(base, len(frames)) + 1]


def _locations(value: Any) -> Iterator[Location]:
    if isinstance(value, Location):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _locations(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _locations(getattr(value, field.name))


def _moved(value: Any, numbers: dict[int, int]) -> Any:
    """Return a value in which every location has the new number of its source."""
    if isinstance(value, Location):
        return replace(value, source=numbers[value.source])
    if isinstance(value, tuple):
        items = tuple(_moved(item, numbers) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    new = {name: _moved(part, numbers) for name, part in old.items()}
    changed = {name: part for name, part in new.items() if part is not old[name]}
    return replace(value, **changed) if changed else value
