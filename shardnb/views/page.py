"""A page of a few kinds of blocks, written once and shown as text and as HTML alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import override

from shardnb.report import Mesh, Value
from shardnb.report.spec import type_text
from shardnb.views import markup, palette
from shardnb.views.formatting import clean, clean_lines, columns, dims, wrapped
from shardnb.views.grids import grid
from shardnb.views.layout import Bounds
from shardnb.views.markup import FAINT, MONO, escaped, fragment, tag
from shardnb.views.picture import value_picture

# A cell of so many characters stays on one line.
_SHORT = 44


class Block(ABC):
    """A part of a page."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Write it for a terminal."""

    @abstractmethod
    def html(self) -> str:
        """Write it as HTML."""


def text(blocks: Iterable[Block]) -> str:
    """Write a page for a terminal."""
    return "\n".join(line for block in blocks for line in block.lines())


def html(blocks: Iterable[Block]) -> str:
    """Write a page as an HTML fragment: tables, details and inline styles only."""
    return fragment("".join(block.html() for block in blocks))


@dataclass(frozen=True)
class Lead(Block):
    """The sentence that a page begins with; `label` stands before it."""

    label: str
    text: str = ""

    @override
    def lines(self) -> Iterator[str]:
        yield from wrapped(clean(f"{self.label}: {self.text}" if self.text else self.label), 0, 2)

    @override
    def html(self) -> str:
        rest = f": {escaped(self.text)}" if self.text else ""
        return markup.block(tag("b", escaped(self.label)) + rest, "margin: 4px 0")


@dataclass(frozen=True)
class Say(Block):
    """A paragraph."""

    text: str

    @override
    def lines(self) -> Iterator[str]:
        yield from wrapped(clean(self.text), 2, 4)

    @override
    def html(self) -> str:
        return markup.block(escaped(self.text))


@dataclass(frozen=True)
class Code(Block):
    """Lines to read or to paste, with a word before them and what is known of them behind."""

    label: str
    text: str
    remark: str = ""

    @override
    def lines(self) -> Iterator[str]:
        first, *others = self.text.splitlines() or [""]
        remark = f"    ({self.remark})" if self.remark and not others else ""
        yield f"  {self.label} {clean(first)}{remark}"
        yield from (f"{' ' * (len(self.label) + 3)}{clean(line)}" for line in others)

    @override
    def html(self) -> str:
        body = markup.mono(clean_lines(self.text), "white-space: pre-wrap")
        remark = f" {tag('span', escaped(self.remark), FAINT)}" if self.remark else ""
        return markup.block(f"{escaped(self.label)} {body}{remark}")


@dataclass(frozen=True)
class ListedLine:
    """A line of the user's with its number, and what stands beside it, each with its mark."""

    number: int | None
    text: str
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Listing(Block):
    """Lines of the user's, each with what belongs to it below or beside it."""

    listed: tuple[ListedLine, ...]

    @override
    def lines(self) -> Iterator[str]:
        numbers = ["" if line.number is None else str(line.number) for line in self.listed]
        digits = max([1, *map(len, numbers)])
        for number, line in zip(numbers, self.listed, strict=True):
            if number or line.text:
                yield f"  {number:>{digits}}  {clean(line.text)}".rstrip()
            for beside, mark in line.beside:
                yield f"  {'':>{digits}}      {clean(beside)}{f'    # {mark}' if mark else ''}"

    @override
    def html(self) -> str:
        rows = []
        for line in self.listed:
            beside = ""
            for words, mark in line.beside:
                chip = f" {markup.chip(clean(mark), palette.TONES['neutral'])}" if mark else ""
                look = f"{MONO}; font-size: 12px; white-space: pre-wrap"
                beside += markup.block(tag("span", escaped(words), look) + chip)
            source = markup.mono(clean(line.text), "white-space: pre-wrap")
            rows.append(
                markup.row(
                    [markup.line_number(line.number), markup.cell(source), markup.cell(beside)]
                )
            )
        return markup.table(rows)


@dataclass(frozen=True)
class Table(Block):
    """A table; the columns `code` hold code."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: tuple[int, ...] = ()

    @override
    def lines(self) -> Iterator[str]:
        rows = [tuple(map(clean, row)) for row in (self.head, *self.rows) if any(row)]
        yield from (f"  {line}".rstrip() for line in columns(rows))

    @override
    def html(self) -> str:
        bold = [tag("b", escaped(name), "font-weight: 600") for name in self.head]
        heads = [markup.cell(name, "white-space: nowrap") for name in bold]
        rows = [markup.row(heads)] if heads else []
        for row in self.rows:
            cells = []
            for i, body in enumerate(map(clean, row)):
                look = "white-space: nowrap" if len(body) <= _SHORT else ""
                written = markup.mono(body) if i in self.code else markup.text(body)
                cells.append(markup.cell(written, look))
            rows.append(markup.row(cells))
        return markup.table(rows)


@dataclass(frozen=True)
class Drawn(Block):
    """Arrays to draw side by side, each on its mesh."""

    values: tuple[tuple[Value, Mesh], ...]

    @override
    def lines(self) -> Iterator[str]:
        rows = tuple(
            (value.name, type_text(value), f"{dims(value.shard_shape)} per device")
            for value, _ in self.values
        )
        yield from Table((), rows).lines()

    @override
    def html(self) -> str:
        bounds = Bounds(tiles=200)
        drawn = (grid(value_picture([value], mesh, bounds)) for value, mesh in self.values)
        return markup.block("".join(drawn))


@dataclass(frozen=True)
class Folded(Block):
    """A longer text under a summary: one click away in HTML, left out of text."""

    summary: str
    text: str

    @override
    def lines(self) -> Iterator[str]:
        yield from ()

    @override
    def html(self) -> str:
        body = markup.code(clean_lines(self.text), "max-height: 420px; overflow-y: auto")
        return markup.details(tag("span", escaped(self.summary), FAINT), body)


@dataclass(frozen=True)
class Columns(Block):
    """Blocks side by side, each column under its name."""

    columns: tuple[tuple[str, tuple[Block, ...]], ...]

    @override
    def lines(self) -> Iterator[str]:
        for name, blocks in self.columns:
            yield f"--- {name} ---"
            yield from (line for block in blocks for line in block.lines())

    @override
    def html(self) -> str:
        width = f"width: {100 // max(1, len(self.columns))}%"
        cells = [
            markup.cell("".join(block.html() for block in (Lead(name), *blocks)), width)
            for name, blocks in self.columns
        ]
        return markup.table([markup.row(cells)], "width: 100%")
