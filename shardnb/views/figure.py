"""The device grids and the groups of a report as a matplotlib figure, made without pyplot."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from shardnb.report import Report
from shardnb.views.content import header
from shardnb.views.layout import Bounds
from shardnb.views.palette import EMPTY, TEXT
from shardnb.views.picture import Panel, Picture, Tile, pictures
from shardnb.views.verdict import verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COLUMNS = 3
_GAP = 0.6
_LINE = "#555555"
_FENCE = "#d33333"


def draw(report: Report) -> Figure:
    """Draw how arrays are sharded and which devices communicate, a picture for each.

    Tiles have a hue, a hatch and a label; where they are too many for labels, their place tells.
    """
    from shardnb.views.drawing import Drawing

    arrays, meshes = pictures(report, Bounds(tiles=60_000, longest=4096, sampled=64))
    drawn = (*arrays.pictures, *meshes.pictures)
    rows = max(1, -(-len(drawn) // _COLUMNS))
    figure = Drawing(figsize=(4.2 * _COLUMNS, 3.1 * rows + 0.6), layout="constrained")
    heading = f"{'   '.join(header(report))}\n{' '.join(verdict(report))}"
    if left := arrays.left + meshes.left:
        heading += f"\n{left:,} more are not drawn"
    figure.suptitle(heading, fontsize=10, parse_math=False)
    grid = figure.subplots(rows, _COLUMNS, squeeze=False)
    for place, axes in enumerate(grid.flat):
        axes.set_axis_off()
        if place < len(drawn):
            _picture(axes, drawn[place])
    return figure


def _picture(axes: Axes, picture: Picture) -> None:
    axes.set_title(picture.title, fontsize=9, parse_math=False)
    if not picture.panels:
        said = "\n".join(textwrap.fill(remark, 48) for remark in picture.remarks)
        axes.text(0.5, 0.5, said, ha="center", va="center", fontsize=8, parse_math=False)
        return
    right = 0.0
    for panel in picture.panels:
        right = _panel(axes, panel, picture, right) + _GAP
    height = max(len(panel.rows) for panel in picture.panels)
    width = max(1.0, right - _GAP)
    axes.set_xlim(-0.02 * width, 1.02 * width)
    axes.set_ylim(height * 1.02, -0.02 * height)
    across = f"{picture.across} \u2192" if picture.across else ""
    down = f"{picture.down} \u2193" if picture.down else ""
    _beside(axes, (0.5, 0.0), "\n".join(part for part in (across, *picture.remarks) if part))
    _beside(axes, (0.0, 0.5), down)


def _beside(axes: Axes, place: tuple[float, float], words: str) -> None:
    """Write along the lower or the left edge."""
    lower = place[1] == 0
    axes.annotate(
        words,
        place,
        xycoords="axes fraction",
        xytext=(0, -3) if lower else (-3, 0),
        textcoords="offset points",
        ha="center" if lower else "right",
        va="top" if lower else "center",
        rotation=0 if lower else 90,
        fontsize=7,
        parse_math=False,
    )


def _panel(axes: Axes, panel: Panel, picture: Picture, left: float) -> float:
    """Draw the tiles of a panel from `left` on; give where it ends."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    width, height = max((len(row) for row in panel.rows), default=0), len(panel.rows)
    if picture.tiny:
        # Many tiles are the pixels of one image; what is left out stays white.
        grounds = [[tile.tint.ground if tile else "white" for tile in row] for row in panel.rows]
        pixels = [list(map(to_rgb, row)) for row in grounds]
        extent = (left, left + width, height, 0)
        axes.imshow(pixels, extent=extent, aspect="auto", interpolation="nearest")
        if picture.striped:
            stripes = Rectangle((left, 0), width, height, fill=False, hatch="//", edgecolor=_LINE)
            axes.add_patch(stripes)
    else:
        for i, row in enumerate(panel.rows):
            for j, tile in enumerate(row):
                _tile(axes, tile, (left + j, i), striped=picture.striped)
    for i, row in enumerate(panel.rows):
        for j, tile in enumerate(row):
            if tile is not None:
                _fences(axes, tile, (left + j, i))
    if panel.caption:
        axes.text(left, -0.05, panel.caption, fontsize=6, va="bottom", parse_math=False)
    return left + width


def _fences(axes: Axes, tile: Tile, place: tuple[float, float]) -> None:
    """Draw the lines between hosts, and thicker ones between slices."""
    x, y = place
    for far, xs, ys in ((tile.left, (x, x), (y, y + 1)), (tile.above, (x, x + 1), (y, y))):
        if far:
            axes.plot(xs, ys, color=_FENCE, linewidth=1.5 * far, solid_capstyle="butt")


def _tile(axes: Axes, tile: Tile | None, place: tuple[float, float], *, striped: bool) -> None:
    from matplotlib.patches import Rectangle

    middle = place[0] + 0.5, place[1] + 0.5
    if tile is None:
        axes.text(*middle, "...", ha="center", va="center", fontsize=7, color=TEXT)
        return
    hatch = "////" if striped else tile.tint.hatch
    ground = tile.tint.ground
    axes.add_patch(Rectangle(place, 1, 1, hatch=hatch, facecolor=ground, edgecolor=_LINE))
    label = axes.text(*middle, tile.label, ha="center", va="center", fontsize=7, color=TEXT)
    label.set_parse_math(parse_math=False)
    if hatch:
        label.set_bbox({"facecolor": ground, "edgecolor": EMPTY, "pad": 1})
