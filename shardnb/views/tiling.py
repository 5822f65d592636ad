"""Drawings of tiles as data: what stands on each, its tint, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shardnb.views.formatting import clean
from shardnb.views.layout import Bounds, Sheet, sheets
from shardnb.views.palette import EMPTY, Tint, tint

_LABELLED = 64
_BROAD = 96
_NOBODY = Tint(EMPTY, "dotted")


@dataclass(frozen=True)
class Cell:
    """A tile: what stands on it, what the pointer shows, its tint."""

    label: str
    hover: str
    tint: Tint


Rows = tuple[tuple[Cell | None, ...], ...]


@dataclass(frozen=True)
class Panel:
    """Tiles in rows, with None where some are left out; `caption` says which part it is."""

    caption: str
    rows: Rows


@dataclass(frozen=True)
class Picture:
    """A drawing of tiles with what stands along its edges.

    `tiny` tiles carry no label, `striped` ones hold pending partial sums. `remarks` say what it
    shows and what it leaves out; a picture without panels has only these.
    """

    title: str
    down: str
    across: str
    panels: tuple[Panel, ...]
    remarks: tuple[str, ...]
    tiny: bool = False
    striped: bool = False


@dataclass(frozen=True)
class Tiles:
    """What is drawn at a place of a grid.

    `key` says which things share a tint (None: nothing is there), `words` the label and what the
    pointer shows, `part` names a place along a dimension. `spread` things lie each in one place,
    and where they are many their tint tells where.
    """

    key: Callable[[int], int | None]
    words: Callable[[int], tuple[str, str]]
    part: Callable[[int, int], str]
    spread: bool = False


def draw(grid: tuple[int, ...], bounds: Bounds, tiles: Tiles) -> Picture:
    """Draw the places of a grid within bounds; titles and edges are the caller's."""
    drawn = sheets(grid, bounds)
    keys = (tiles.key(b) for sheet in drawn for row in sheet.rows for b in row if b is not None)
    found = (key for key in keys if key is not None)
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(found))}
    panels = tuple(
        Panel(_caption(sheet, grid, tiles), _rows(sheet, tiles, ranks, (i, len(drawn))))
        for i, sheet in enumerate(drawn)
    )
    shown = sum(block is not None for sheet in drawn for row in sheet.rows for block in row)
    return Picture("", "", "", panels, _left_out(shown, math.prod(grid)), _is_tiny(panels))


def _caption(sheet: Sheet, grid: tuple[int, ...], tiles: Tiles) -> str:
    parts = (tiles.part(dim, place) for dim, place in sheet.at.items() if grid[dim] > 1)
    return clean(", ".join(parts))


def _rows(sheet: Sheet, tiles: Tiles, ranks: dict[int, int], which: tuple[int, int]) -> Rows:
    """Give the tiles of a sheet, `which` it is of how many."""
    height, width = len(sheet.rows), max(map(len, sheet.rows), default=0)

    def tile(block: int | None, row: int, column: int) -> Cell | None:
        if block is None:
            return None
        key = tiles.key(block)
        if key is None:
            return Cell(*tiles.words(block), _NOBODY)
        rank, total = ranks[key], len(ranks)
        spot = _turn(rank, total)
        if tiles.spread:
            spot = _spot(row / height, column / width, which, flat=height == 1)
        return Cell(*tiles.words(block), tint(rank, total, *spot))

    return tuple(
        tuple(tile(block, i, j) for j, block in enumerate(row)) for i, row in enumerate(sheet.rows)
    )


def _spot(down: float, across: float, which: tuple[int, int], *, flat: bool) -> tuple[float, float]:
    """Say where a tile lies in all sheets: its hue by this, how light by its column."""
    number, of = which
    return ((number + across) / of, 0.5) if flat else ((number + down) / of, across)


def _turn(rank: int, total: int) -> tuple[float, float]:
    """Give the tint of a group: its hue by its rank, its neighbours lighter or darker."""
    return rank / total, 0.8 * (rank % 2)


def _left_out(shown: int, total: int) -> tuple[str, ...]:
    if shown >= total:
        return ()
    return (f"{shown:,} of {total:,} tiles drawn: the first ones and the last along each edge.",)


def _is_tiny(panels: tuple[Panel, ...]) -> bool:
    """Whether the tiles are too many, or their labels too long, to be read side by side."""
    rows = [row for panel in panels for row in panel.rows]
    broad = max((sum(len(cell.label) + 3 for cell in row if cell) for row in rows), default=0)
    return broad > _BROAD or sum(map(len, rows)) > _LABELLED
