"""Device grids as data: the blocks of an array, or the groups of a collective on the mesh."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Mesh, Report, Value
from shardnb.report.spec import type_text
from shardnb.terms.collectives import KINDS
from shardnb.views import phrases, words
from shardnb.views.formatting import clean, count, names, numbers
from shardnb.views.layout import Bounds, Layout, Sheet, index_of, layout_of, plane, sheets
from shardnb.views.palette import EMPTY, Tint, letter, tint

# Tiles that are more, or whose labels side by side are longer, cannot be read: they have none.
_LABELLED = 64
_BROAD = 96
# Pairs of a permute that are listed.
_PAIRS = 16
_NOBODY = Tint(EMPTY, "dotted")


@dataclass(frozen=True)
class Tile:
    """A tile: what stands on it, what the pointer shows, its tint.

    `left` and `above` say how far apart it is from its neighbour there: 0 on the same host, 1 on
    another one, 2 in another slice.
    """

    label: str
    hover: str
    tint: Tint
    left: int = 0
    above: int = 0


@dataclass(frozen=True)
class Panel:
    """Tiles in rows, with None where some are left out; `caption` says which part it is."""

    caption: str
    rows: tuple[tuple[Tile | None, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A drawing of tiles with what stands along its edges.

    `tiny` tiles carry no label, `striped` ones hold pending partial sums. `remarks` say what it
    shows and what it leaves out; a picture without panels has only these.
    """

    title: str
    down: str = ""
    across: str = ""
    panels: tuple[Panel, ...] = ()
    remarks: tuple[str, ...] = ()
    tiny: bool = False
    striped: bool = False


@dataclass(frozen=True)
class Gallery:
    """Pictures, and how many more there are that are not drawn."""

    pictures: tuple[Picture, ...]
    left: int


def pictures(
    report: Report, bounds: Bounds, *, values: int = 12, groups: int = 6
) -> tuple[Gallery, Gallery]:
    """Draw the inputs and outputs, and the mesh once for each kind of collective."""
    # One picture shows all arrays that are sharded alike.
    alike: dict[Value, list[Value]] = {}
    for value in (*report.inputs, *report.outputs):
        plain = Value("", value.dtype, value.shape, value.spec, value.shard_shape)
        key = replace(plain, unreduced=value.unreduced, grid=value.grid, blocks=value.blocks)
        alike.setdefault(key, []).append(value)
    arrays = list(alike.values())
    meshes = list({(c.kind, c.axes, c.groups): c for c in report.collectives}.values())
    number = min(len(arrays), values) + min(len(meshes), groups)
    share = replace(bounds, tiles=max(24, bounds.tiles // max(1, number)))
    drawn = tuple(value_picture(like, report.mesh, share) for like in arrays[:values])
    exchanges = tuple(groups_picture(one, report.mesh, share) for one in meshes[:groups])
    return (
        Gallery(drawn, len(arrays) - len(drawn)),
        Gallery(exchanges, len(meshes) - len(exchanges)),
    )


# Arrays


def value_picture(alike: Sequence[Value], mesh: Mesh, bounds: Bounds) -> Picture:
    """Draw an array in blocks, each with the devices that hold it; `alike` are sharded alike."""
    value = alike[0]
    title = clean(f"{names([like.name for like in alike])} {type_text(value)}")
    layout = layout_of(value, mesh)
    if layout is None:
        return Picture(title, remarks=("Its sharding is not known.",))
    if 0 in value.shape:
        return Picture(title, remarks=("It has no elements.",))
    tiles = _Tiles(
        lambda block: block if block in layout.holders else None,
        lambda block: _block(block, value, layout, mesh),
        lambda dim, place: f"dim {dim} at {_slice(place, dim, value)}",
        spread=True,
    )
    down, across = (_edge(value, mesh, layout.grid, dim) for dim in plane(layout.grid))
    blocks, held = len(layout.holders), " or ".join(map(str, layout.counts))
    if value.unreduced:
        axes = clean(", ".join(value.unreduced))
        holding = f"Striped: each device holds a partial sum, still to be added up over {axes}."
    elif layout.counts == (1,):
        holding = f"{count(blocks, 'block')}, each on one device."
    else:
        holding = f"{count(blocks, 'block')}, {'' if blocks == 1 else 'each '}on {held} devices."
    striped = bool(value.unreduced)
    return _draw(
        layout.grid, bounds, tiles, Picture(title, down, across, (), (holding,), striped=striped)
    )


def _edge(value: Value, mesh: Mesh, grid: Sequence[int], dim: int | None) -> str:
    """Say what stands along an edge: `dim 0 over data (4)`."""
    if dim is None:
        return ""
    axes = value.spec[dim] if value.spec is not None else ()
    if axes:
        sizes = (f"{axis}={mesh.shape[axis]}" if axis in mesh.shape else axis for axis in axes)
        return clean(f"dim {dim} over {' x '.join(sizes)}")
    return f"dim {dim} in {grid[dim]}" if grid[dim] > 1 else f"dim {dim} not sharded"


def _block(block: int, value: Value, layout: Layout, mesh: Mesh) -> tuple[str, str]:
    """Return the label of a block's tile, and what the pointer shows."""
    positions = layout.holders.get(block, ())
    holders = [mesh.device_ids[position] for position in positions]
    index = index_of(layout.grid, block)
    part = ", ".join(_slice(i, dim, value) for dim, i in enumerate(index))
    if not holders:
        return "none", f"[{part}] on no device"
    if len(holders) == 1:
        return str(holders[0]), f"[{part}] on device {holders[0]}{_chip(positions[0], mesh)}"
    times = f" (x{len(holders)})" if not value.unreduced else ""
    label = numbers(holders, limit=4).removesuffix(f" ({len(holders)})") + times
    return label, f"[{part}] on devices {numbers(holders)}"


def _slice(place: int, dim: int, value: Value) -> str:
    size, step = value.shape[dim], value.shard_shape[dim]
    start, stop = min(place * step, size), min((place + 1) * step, size)
    return ":" if (start, stop) == (0, size) else f"{start}:{stop}"


# Meshes


def groups_picture(collective: Collective, mesh: Mesh, bounds: Bounds) -> Picture:
    """Draw the mesh with a letter and a tint for each group of devices that communicate."""
    title = clean(f"{collective.kind}{words.over(collective)}")
    along = f" along {', '.join(collective.axes)}" if collective.axes else ""
    grouping = clean(f"{words.grouping(collective)}{along}.")
    ids, groups = mesh.device_ids, collective.groups
    if KINDS[collective.kind].in_pairs:
        arrows = ", ".join(f"{ids[pair[0]]} \u2192 {ids[pair[1]]}" for pair in groups[:_PAIRS])
        more = f" and {len(groups) - _PAIRS:,} more" if len(groups) > _PAIRS else ""
        pairs = f"Device to device: {arrows}{more}." if arrows else "No pairs."
        return Picture(title, remarks=(grouping, pairs))
    member = {position: i for i, group in enumerate(groups) for position in group}

    def words_on(position: int) -> tuple[str, str]:
        device, group, chip = ids[position], member.get(position), _chip(position, mesh)
        below = "" if mesh.coords is None else f"\n({','.join(map(str, mesh.coords[position]))})"
        if group is None:
            return f"{device}{below}", f"device {device}{chip} does not take part"
        others, name = numbers([ids[p] for p in groups[group]]), letter(group)
        return f"{name} {device}{below}", f"device {device}{chip} in group {name}: {others}"

    shape = tuple(axis.size for axis in mesh.axes)
    edges = [clean(f"{axis.name}={axis.size}") for axis in mesh.axes]
    down, across = ("" if dim is None else edges[dim] for dim in plane(shape))
    tiles = _Tiles(member.get, words_on, lambda dim, place: f"{mesh.axes[dim].name} at {place}")
    remarks = (grouping, *_lines(mesh))
    tiles = replace(tiles, apart=lambda one, other: _apart(one, other, mesh))
    return _draw(shape, bounds, tiles, Picture(title, down, across, (), remarks))


def _lines(mesh: Mesh) -> tuple[str, ...]:
    """Say what the lines between tiles separate."""
    several = ((phrases.HOST_LINES, mesh.hosts), (phrases.SLICE_LINES, mesh.slices))
    said = [text.format(number=len(set(of))) for text, of in several if of is not None]
    return tuple(f"{text[0].upper()}{text[1:]}." for text in said)


def _apart(one: int, other: int, mesh: Mesh) -> int:
    """Return how far apart two devices are: on one host, on two, or in two slices."""
    if mesh.slices is not None and mesh.slices[one] != mesh.slices[other]:
        return 2
    return int(mesh.hosts is not None and mesh.hosts[one] != mesh.hosts[other])


def _chip(position: int, mesh: Mesh) -> str:
    """Say where a device is on the hardware: ` at (0, 1, 0)`, "" where that is not known."""
    several = ((phrases.HOST, mesh.hosts), (phrases.SLICE, mesh.slices))
    where = [text.format(number=of[position]) for text, of in several if of is not None]
    on = f" ({', '.join(where)})" if where else ""
    if mesh.coords is None:
        return on
    core = f" core {mesh.cores[position]}" if mesh.cores else ""
    return f" at ({', '.join(map(str, mesh.coords[position]))}){core}{on}"


# Tiles


@dataclass(frozen=True)
class _Tiles:
    """What is drawn at a place of a grid.

    `key` says which things share a tint (None: nothing is there), `words` the label and what the
    pointer shows, `part` names a place along a dimension. `spread` things are each in one place,
    and where they are many their tint tells where. `apart` says how far two of them are apart.
    """

    key: Callable[[int], int | None]
    words: Callable[[int], tuple[str, str]]
    part: Callable[[int, int], str]
    spread: bool = False
    apart: Callable[[int, int], int] | None = None


def _draw(grid: tuple[int, ...], bounds: Bounds, tiles: _Tiles, picture: Picture) -> Picture:
    """Draw the places of a grid within bounds into a picture that has its titles and edges."""
    drawn = sheets(grid, bounds)
    blocks = [block for sheet in drawn for row in sheet.rows for block in row if block is not None]
    keys = (key for key in map(tiles.key, blocks) if key is not None)
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
    panels = []
    for i, sheet in enumerate(drawn):
        parts = (tiles.part(dim, place) for dim, place in sheet.at.items() if grid[dim] > 1)
        rows = tuple(
            _row(row, sheet, tiles, ranks, (i, len(drawn))) for row in range(len(sheet.rows))
        )
        panels.append(Panel(clean(", ".join(parts)), rows))
    remarks, total = picture.remarks, math.prod(grid)
    if len(blocks) < total:
        edges = "the first and last along each edge"
        remarks = (*remarks, f"{len(blocks):,} of {total:,} tiles drawn: {edges}.")
    drawn_rows = [row for panel in panels for row in panel.rows]
    broad = max((sum(len(tile.label) + 3 for tile in row if tile) for row in drawn_rows), default=0)
    tiny = broad > _BROAD or sum(map(len, drawn_rows)) > _LABELLED
    return replace(picture, panels=tuple(panels), remarks=remarks, tiny=tiny)


def _row(
    row: int, sheet: Sheet, tiles: _Tiles, ranks: dict[int, int], which: tuple[int, int]
) -> tuple[Tile | None, ...]:
    """Return the tiles of a row of a sheet, `which` it is of how many."""
    blocks, height, total = sheet.rows[row], len(sheet.rows), len(ranks)
    result: list[Tile | None] = []
    for column, block in enumerate(blocks):
        key = None if block is None else tiles.key(block)
        if block is None or key is None:
            result.append(None if block is None else Tile(*tiles.words(block), _NOBODY))
            continue
        # A group has its hue by its rank, neighbours lighter or darker. Of many blocks the hue
        # tells the place down all sheets, and the lightness the column.
        down, across = ranks[key] / total, 0.8 * (ranks[key] % 2)
        if tiles.spread:
            number, sheets_in_all = which
            down, across = row / height, column / len(blocks)
            if height == 1:
                down, across = across, 0.5
            down = (number + down) / sheets_in_all
        here = Tile(*tiles.words(block), tint(ranks[key], total, down, across))
        result.append(_fenced(here, (row, column), sheet, tiles))
    return tuple(result)


def _fenced(tile: Tile, place: tuple[int, int], sheet: Sheet, tiles: _Tiles) -> Tile:
    """Return a tile with how far it is apart from those on its left and above it."""
    row, column = place
    here = sheet.rows[row][column]
    left = sheet.rows[row][column - 1] if column else None
    above = sheet.rows[row - 1][column] if row else None
    if tiles.apart is None or here is None:
        return tile
    return replace(
        tile,
        left=0 if left is None else tiles.apart(left, here),
        above=0 if above is None else tiles.apart(above, here),
    )
