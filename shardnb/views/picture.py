"""Device grids: the blocks of an array, or the groups of a collective on the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Mesh, Report, Value
from shardnb.report.spec import type_text
from shardnb.terms.collectives import KINDS
from shardnb.views import words
from shardnb.views.formatting import clean, count, names, numbers
from shardnb.views.layout import Bounds, Layout, index_of, layout_of, plane
from shardnb.views.palette import letter
from shardnb.views.tiling import Picture, Tiles, draw


@dataclass(frozen=True)
class Gallery:
    """Pictures, and how many more there are that are not drawn."""

    pictures: tuple[Picture, ...]
    left: int


def pictures(
    report: Report, bounds: Bounds, *, values: int = 12, groups: int = 6
) -> tuple[Gallery, Gallery]:
    """Draw the inputs and outputs, and the mesh once for each kind of exchange."""
    arrays = _alike((*report.inputs, *report.outputs))
    meshes = tuple({(c.kind, c.axes, c.groups): c for c in report.collectives}.values())
    number = min(len(arrays), values) + min(len(meshes), groups)
    share = replace(bounds, tiles=max(24, bounds.tiles // max(1, number)))
    return (
        Gallery(
            tuple(value_picture(like, report.mesh, share) for like in arrays[:values]),
            max(0, len(arrays) - values),
        ),
        Gallery(
            tuple(groups_picture(found, report.mesh, share) for found in meshes[:groups]),
            max(0, len(meshes) - groups),
        ),
    )


def _alike(values: Sequence[Value]) -> list[list[Value]]:
    """Gather the arrays that lie alike: one picture shows them all."""
    groups: dict[Value, list[Value]] = {}
    for value in values:
        plain = Value("", value.dtype, value.shape, value.spec, value.shard_shape)
        key = replace(plain, unreduced=value.unreduced, grid=value.grid, blocks=value.blocks)
        groups.setdefault(key, []).append(value)
    return list(groups.values())


def value_picture(alike: Sequence[Value], mesh: Mesh, bounds: Bounds) -> Picture:
    """Draw an array cut into blocks, each with the devices that hold it; `alike` lie the same."""
    value = alike[0]
    title = clean(f"{names([like.name for like in alike])} {type_text(value)}")
    layout = layout_of(value, mesh)
    if layout is None:
        return Picture(title, "", "", (), ("Where it lies is not known.",))
    if 0 in value.shape:
        return Picture(title, "", "", (), ("It has no elements.",))
    tiles = Tiles(
        lambda block: block if block in layout.holders else None,
        lambda block: _block(block, value, layout, mesh),
        lambda dim, place: f"dim {dim} at {_slice(place, dim, value)}",
        spread=True,
    )
    down, across = (_edge(value, mesh, layout.grid, dim) for dim in plane(layout.grid))
    picture = draw(layout.grid, bounds, tiles)
    remarks = (*_holding(value, layout), *picture.remarks)
    titled = replace(picture, title=title, down=down, across=across, remarks=remarks)
    return replace(titled, striped=bool(value.unreduced))


def _edge(value: Value, mesh: Mesh, grid: Sequence[int], dim: int | None) -> str:
    """Say what stands along an edge: `dim 0 over data (4)`."""
    if dim is None:
        return ""
    if value.spec is None:
        parts = grid[dim]
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


def _block(block: int, value: Value, layout: Layout, mesh: Mesh) -> tuple[str, str]:
    """Give the label of a block's tile, and what the pointer shows."""
    holders = [mesh.device_ids[position] for position in layout.holders.get(block, ())]
    index = index_of(layout.grid, block)
    part = ", ".join(_slice(i, dim, value) for dim, i in enumerate(index))
    if not holders:
        return "none", f"[{part}] on no device"
    many = f" (x{len(holders)})" if len(holders) > 1 and not value.unreduced else ""
    label = numbers(holders, limit=4).removesuffix(f" ({len(holders)})") + many
    who = "device" if len(holders) == 1 else "devices"
    chip = _chip(layout.holders[block][0], mesh) if len(holders) == 1 else ""
    return label, f"[{part}] on {who} {numbers(holders)}{chip}"


def _slice(place: int, dim: int, value: Value) -> str:
    size, step = value.shape[dim], value.shard_shape[dim]
    start, stop = min(place * step, size), min((place + 1) * step, size)
    return ":" if (start, stop) == (0, size) else f"{start}:{stop}"


def groups_picture(collective: Collective, mesh: Mesh, bounds: Bounds) -> Picture:
    """Draw the mesh with a letter and a tint for each group of devices that exchange."""
    title = f"{collective.kind}{words.over(collective)}"
    along = f" along {', '.join(collective.axes)}" if collective.axes else ""
    said = clean(f"{words.grouping(collective)}{along}.")
    if KINDS[collective.kind].in_pairs:
        return Picture(clean(title), "", "", (), (said, _pairs(collective, mesh)))
    shape = tuple(axis.size for axis in mesh.axes)
    member = {p: i for i, group in enumerate(collective.groups) for p in group}

    def words_on(position: int) -> tuple[str, str]:
        device, group = mesh.device_ids[position], member.get(position)
        chip, below = _chip(position, mesh), _below(position, mesh)
        if group is None:
            return f"{device}{below}", f"device {device}{chip} takes no part"
        others = numbers([mesh.device_ids[p] for p in collective.groups[group]])
        name = letter(group)
        return f"{name} {device}{below}", f"device {device}{chip} in group {name}: {others}"

    tiles = Tiles(member.get, words_on, lambda dim, place: f"{mesh.axes[dim].name} at {place}")
    drawn = draw(shape, bounds, tiles)
    down, across = (_axis(mesh, dim) for dim in plane(shape))
    remarks = (said, *drawn.remarks)
    return replace(drawn, title=clean(title), down=down, across=across, remarks=remarks)


def _chip(position: int, mesh: Mesh) -> str:
    """Say where a device is on the hardware: ` at (0, 1, 0)`, "" where that is not known."""
    if mesh.coords is None:
        return ""
    core = f" core {mesh.cores[position]}" if mesh.cores else ""
    return f" at ({', '.join(map(str, mesh.coords[position]))}){core}"


def _below(position: int, mesh: Mesh) -> str:
    """Write a chip's coordinates as the second line of a label."""
    return "" if mesh.coords is None else f"\n({','.join(map(str, mesh.coords[position]))})"


def _axis(mesh: Mesh, dim: int | None) -> str:
    return "" if dim is None else clean(f"{mesh.axes[dim].name}={mesh.axes[dim].size}")


def _pairs(collective: Collective, mesh: Mesh, limit: int = 16) -> str:
    ids = mesh.device_ids
    arrows = [f"{ids[pair[0]]} \u2192 {ids[pair[1]]}" for pair in collective.groups[:limit]]
    left = len(collective.groups) - len(arrows)
    more = f" and {left:,} more" if left else ""
    return f"Device to device: {', '.join(arrows)}{more}." if arrows else "No pairs."
