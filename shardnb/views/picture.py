"""Device grids as data: the blocks of an array, or the groups of a collective on the mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shardnb.report import Collective, Mesh, Value
from shardnb.report.spec import type_text
from shardnb.views import words
from shardnb.views.layout import Layout, index_of, layout_of, plane, sheets
from shardnb.views.palette import EMPTY, Tint, letter, tint
from shardnb.views.units import clean, count, numbers

_LABELLED = 64
_BROAD = 96


@dataclass(frozen=True)
class Cell:
    """A tile: what stands on it, what the pointer shows, its tint."""

    label: str
    hover: str
    tint: Tint


@dataclass(frozen=True)
class Panel:
    """Tiles in rows, with None where some are left out; `caption` says which part it is."""

    caption: str
    rows: tuple[tuple[Cell | None, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A drawing of tiles with what stands along its edges.

    `tiny` tiles carry no label, `striped` ones hold pending partial sums. `remark` says what the
    drawing leaves out; a picture without panels has only its remark.
    """

    title: str
    down: str
    across: str
    panels: tuple[Panel, ...]
    remarks: tuple[str, ...]
    tiny: bool = False
    striped: bool = False

    @property
    def tiles(self) -> int:
        """The number of tiles, gaps included."""
        return sum(len(row) for panel in self.panels for row in panel.rows)


def value_picture(value: Value, mesh: Mesh, limit: int) -> Picture:
    """Draw an array cut into blocks, each with the devices that hold it."""
    title = clean(f"{value.name} {type_text(value)}")
    layout = layout_of(value, mesh)
    if layout is None:
        return Picture(title, "", "", (), ("Where it lies is not known.",))
    if 0 in value.shape:
        return Picture(title, "", "", (), ("It has no elements.",))
    down, across = plane(layout.grid)
    picture = _draw(layout.grid, limit, lambda block: _block(block, value, layout, mesh))
    return Picture(
        title,
        _edge(value, mesh, layout, down),
        _edge(value, mesh, layout, across),
        picture.panels,
        (*_holding(value, layout), *picture.remarks),
        picture.tiny,
        bool(value.unreduced),
    )


def _edge(value: Value, mesh: Mesh, layout: Layout, dim: int | None) -> str:
    """Say what stands along an edge: `dim 0 over data (4)`."""
    if dim is None:
        return ""
    if value.spec is None:
        parts = layout.grid[dim]
        return f"dim {dim} in {parts}" if parts > 1 else f"dim {dim} whole"
    axes = value.spec[dim]
    sizes = " x ".join(
        f"{axis}={mesh.shape[axis]}" if axis in mesh.shape else axis for axis in axes
    )
    return clean(f"dim {dim} over {sizes}") if axes else f"dim {dim} whole"


def _holding(value: Value, layout: Layout) -> list[str]:
    held = " or ".join(map(str, layout.counts))
    blocks = len(layout.holders)
    if value.unreduced:
        axes = clean(", ".join(value.unreduced))
        return [
            f"Striped: the devices of a block hold partial sums, still to be added over {axes}."
        ]
    if layout.counts == (1,):
        return [f"{count(blocks, 'block')}, each on one device."]
    each = "on" if blocks == 1 else "each on"
    return [f"{count(blocks, 'block')}, {each} {held} devices."]


def _block(block: int, value: Value, layout: Layout, mesh: Mesh) -> Cell:
    index = index_of(layout.grid, block)
    holders = [mesh.device_ids[position] for position in layout.holders.get(block, ())]
    many = f" (x{len(holders)})" if len(holders) > 1 and not value.unreduced else ""
    label = numbers(holders, limit=4).replace(f" ({len(holders)})", "") + many
    part = ", ".join(_slice(i, dim, value) for dim, i in enumerate(index))
    who = f"{'device' if len(holders) == 1 else 'devices'} {numbers(holders)}"
    held = who if holders else "no device"
    shade = _shade(block, layout.grid)
    return Cell(label if holders else "none", f"[{part}] on {held}", shade if holders else _NOBODY)


_NOBODY = Tint(EMPTY, "dotted")


def _slice(place: int, dim: int, value: Value) -> str:
    size, step = value.shape[dim], value.shard_shape[dim]
    start, stop = min(place * step, size), min((place + 1) * step, size)
    return ":" if (start, stop) == (0, size) else f"{start}:{stop}"


def _shade(number: int, grid: Sequence[int]) -> Tint:
    total = 1
    for size in grid:
        total *= size
    index = index_of(grid, number)
    down, across = plane(grid)
    place = [0.0 if d is None else index[d] / max(1, grid[d] - 1) for d in (down, across)]
    if down is None or grid[down] == 1:
        place.reverse()
    return tint(number, total, *place)


def groups_picture(collective: Collective, mesh: Mesh, limit: int) -> Picture:
    """Draw the mesh with a letter and a tint for each group of devices that exchange."""
    title = f"{collective.kind}{words.over(collective)}"
    along = f" along {', '.join(collective.axes)}" if collective.axes else ""
    said = clean(f"{words.grouping(collective)}{along}.")
    if collective.kind == "collective-permute":
        return Picture(clean(title), "", "", (), (said, _pairs(collective, mesh)))
    shape = tuple(axis.size for axis in mesh.axes)
    member = {p: i for i, group in enumerate(collective.groups) for p in group}
    total = len(collective.groups)

    def cell(position: int) -> Cell:
        device = mesh.device_ids[position]
        group = member.get(position)
        if group is None:
            return Cell(f"{device}", f"device {device} takes no part", _NOBODY)
        others = numbers([mesh.device_ids[p] for p in collective.groups[group]])
        name = letter(group)
        shade = tint(group, total, group / max(1, total - 1), 0.5)
        return Cell(f"{name} {device}", f"device {device} in group {name}: {others}", shade)

    drawn = _draw(shape, limit, cell)
    down, across = (_axis(mesh, dim) for dim in plane(shape))
    return Picture(clean(title), down, across, drawn.panels, (said, *drawn.remarks), drawn.tiny)


def _axis(mesh: Mesh, dim: int | None) -> str:
    return "" if dim is None else clean(f"{mesh.axes[dim].name}={mesh.axes[dim].size}")


def _pairs(collective: Collective, mesh: Mesh, limit: int = 16) -> str:
    ids = mesh.device_ids
    arrows = [f"{ids[pair[0]]} \u2192 {ids[pair[1]]}" for pair in collective.groups[:limit]]
    left = len(collective.groups) - len(arrows)
    more = f" and {left:,} more" if left else ""
    return f"Device to device: {', '.join(arrows)}{more}." if arrows else "No pairs."


def _draw(grid: tuple[int, ...], limit: int, cell: Callable[[int], Cell]) -> Picture:
    """Draw each block of a grid with `cell`; edges and titles are the caller's."""
    drawn = sheets(grid, limit)
    others = len(grid) > 2
    panels = tuple(
        Panel(
            caption=", ".join(f"dim {d}: {i}" for d, i in sheet.at.items() if grid[d] > 1)
            if others
            else "",
            rows=tuple(tuple(None if b is None else cell(b) for b in row) for row in sheet.rows),
        )
        for sheet in drawn
    )
    picture = Picture("", "", "", panels, ())
    shown = sum(block is not None for sheet in drawn for row in sheet.rows for block in row)
    return Picture("", "", "", panels, _left_out(shown, grid), _is_tiny(picture))


def _left_out(shown: int, grid: tuple[int, ...]) -> tuple[str, ...]:
    total = 1
    for size in grid:
        total *= size
    if shown >= total:
        return ()
    return (f"{shown:,} of {total:,} tiles drawn: the first ones and the last along each edge.",)


def _is_tiny(picture: Picture) -> bool:
    rows = [row for panel in picture.panels for row in panel.rows]
    broad = max((sum(len(cell.label) + 3 for cell in row if cell) for row in rows), default=0)
    return picture.tiles > _LABELLED or broad > _BROAD
