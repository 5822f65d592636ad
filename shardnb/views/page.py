"""A page of a few kinds of blocks, written once and shown as text and as HTML alike."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch

from shardnb.report import Mesh, Value
from shardnb.report.spec import type_text
from shardnb.views import markup, palette
from shardnb.views.formatting import clean, dims
from shardnb.views.grids import grid
from shardnb.views.layout import Bounds
from shardnb.views.markup import FAINT, MONO
from shardnb.views.picture import value_picture

_WIDTH = 100
_SHORT = 44
_LOOK = "font: 14px/1.5 system-ui, sans-serif; max-width: 900px; overflow-wrap: anywhere"


@dataclass(frozen=True)
class Lead:
    """The sentence that a page begins with; `label` stands before it."""

    label: str
    text: str = ""


@dataclass(frozen=True)
class Say:
    """A paragraph."""

    text: str
    faint: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to read or to paste, with a word before them and what is known of them behind."""

    label: str
    text: str
    remark: str = ""


@dataclass(frozen=True)
class Line:
    """A line of the user's with its number, and what stands beside it, each with its mark."""

    number: int | None
    text: str
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Listing:
    """Lines of the user's, each with what belongs to it below or beside it."""

    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    """A table; the columns `code` hold code."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: tuple[int, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """Arrays to draw side by side, each on its mesh."""

    values: tuple[tuple[Value, Mesh], ...]


@dataclass(frozen=True)
class Folded:
    """A longer text under a summary: one click away in HTML, left out of text."""

    summary: str
    text: str


@dataclass(frozen=True)
class Columns:
    """Blocks side by side, each column under its name."""

    columns: tuple[tuple[str, tuple[Block, ...]], ...]


Block = Lead | Say | Code | Listing | Table | Drawn | Folded | Columns


def text(blocks: Iterable[Block]) -> str:
    """Write a page for a terminal."""
    return "\n".join(line for block in blocks for line in _lines(block))


def html(blocks: Iterable[Block]) -> str:
    """Write a page as an HTML fragment: tables, details and inline styles only."""
    return markup.tag("div", "".join(map(_html, blocks)), _LOOK)


# Text


@singledispatch
def _lines(block: Block) -> Iterator[str]:
    raise NotImplementedError(type(block))


@_lines.register
def _(block: Lead) -> Iterator[str]:
    yield from _wrapped(f"{block.label}: {block.text}" if block.text else block.label, 0)


@_lines.register
def _(block: Say) -> Iterator[str]:
    yield from _wrapped(block.text, 2)


@_lines.register
def _(block: Code) -> Iterator[str]:
    first, *others = block.text.splitlines() or [""]
    remark = f"    ({block.remark})" if block.remark else ""
    indent = " " * (len(block.label) + 3)
    yield f"  {block.label} {clean(first)}{remark if not others else ''}"
    yield from (f"{indent}{clean(line)}" for line in others)


@_lines.register
def _(block: Listing) -> Iterator[str]:
    numbers = [str(line.number) for line in block.lines if line.number is not None]
    digits = max(map(len, numbers), default=1)
    for line in block.lines:
        number = "" if line.number is None else str(line.number)
        if number or line.text:
            yield f"  {number:>{digits}}  {clean(line.text)}".rstrip()
        for words, mark in line.beside:
            yield f"  {'':>{digits}}      {clean(words)}{f'    # {mark}' if mark else ''}"


@_lines.register
def _(block: Table) -> Iterator[str]:
    rows = [tuple(map(clean, row)) for row in (block.head, *block.rows) if any(row)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'   '.join(padded)}".rstrip()


@_lines.register
def _(block: Drawn) -> Iterator[str]:
    rows = tuple(
        (value.name, type_text(value), f"{dims(value.shard_shape)} a device")
        for value, _ in block.values
    )
    if rows:
        yield from _lines(Table((), rows))


@_lines.register
def _(block: Folded) -> Iterator[str]:
    del block
    yield from ()


@_lines.register
def _(block: Columns) -> Iterator[str]:
    for name, blocks in block.columns:
        yield f"--- {name} ---"
        yield from (line for inner in blocks for line in _lines(inner))


def _wrapped(words: str, indent: int) -> list[str]:
    return textwrap.wrap(
        clean(words),
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    )


# HTML


@singledispatch
def _html(block: Block) -> str:
    raise NotImplementedError(type(block))


@_html.register
def _(block: Lead) -> str:
    label = markup.tag("b", markup.text(clean(block.label)))
    rest = f": {markup.text(clean(block.text))}" if block.text else ""
    return markup.block(label + rest, "margin: 4px 0")


@_html.register
def _(block: Say) -> str:
    return markup.block(markup.text(clean(block.text)), FAINT if block.faint else "")


@_html.register
def _(block: Code) -> str:
    lines = "\n".join(map(clean, block.text.splitlines()))
    label = markup.text(clean(block.label))
    remark = f" {markup.tag('span', markup.text(clean(block.remark)), FAINT)}"
    body = markup.mono(lines, "white-space: pre-wrap")
    return markup.block(f"{label} {body}{remark if block.remark else ''}")


@_html.register
def _(block: Listing) -> str:
    return markup.table([_listed(line) for line in block.lines])


def _listed(line: Line) -> str:
    number = "" if line.number is None else str(line.number)
    look = f"text-align: right; white-space: nowrap; {FAINT}"
    source = markup.mono(clean(line.text), "white-space: pre-wrap")
    beside = "".join(_beside(words, mark) for words, mark in line.beside)
    return markup.row([markup.cell(number, look), markup.cell(source), markup.cell(beside)])


def _beside(words: str, mark: str) -> str:
    look = f"{MONO}; font-size: 12px; white-space: pre-wrap"
    chip = f" {markup.chip(clean(mark), palette.OTHER)}" if mark else ""
    return markup.block(markup.tag("span", markup.text(clean(words)), look) + chip)


@_html.register
def _(block: Table) -> str:
    head = [markup.row([markup.cell(_bold(name)) for name in block.head])] if block.head else []
    return markup.table([*head, *(_row(row, block.code) for row in block.rows)])


def _bold(name: str) -> str:
    return markup.tag("b", markup.text(clean(name)), "font-weight: 600")


def _row(row: Sequence[str], code: Sequence[int]) -> str:
    return markup.row([_cell(clean(body), code=i in code) for i, body in enumerate(row)])


def _cell(body: str, *, code: bool) -> str:
    look = "white-space: nowrap" if len(body) <= _SHORT else ""
    return markup.cell(markup.mono(body) if code else markup.text(body), look)


@_html.register
def _(block: Drawn) -> str:
    bounds = Bounds(tiles=200)
    drawn = (grid(value_picture([value], mesh, bounds)) for value, mesh in block.values)
    return markup.block("".join(drawn))


@_html.register
def _(block: Folded) -> str:
    lines = "\n".join(map(clean, block.text.splitlines()))
    summary = markup.tag("span", markup.text(clean(block.summary)), FAINT)
    body = markup.code(lines, "max-height: 420px; overflow-y: auto")
    return markup.details(summary, body)


@_html.register
def _(block: Columns) -> str:
    width = f"width: {100 // max(1, len(block.columns))}%"
    cells = (
        markup.cell(_html(Lead(name)) + "".join(map(_html, blocks)), width)
        for name, blocks in block.columns
    )
    return markup.table([markup.row(list(cells))], "width: 100%")
