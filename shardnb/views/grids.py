"""Pictures as HTML tables: one cell a tile."""

from __future__ import annotations

from shardnb.views.markup import FAINT, MONO, tag, text
from shardnb.views.palette import STRIPE, TEXT
from shardnb.views.picture import Panel, Picture, Tile

_FRAME = "display: inline-block; vertical-align: top; margin: 4px 22px 8px 0; max-width: 100%"
_SMALL = f"font-size: 12px; {FAINT}"
_ROW = "background: transparent; border: none"
_TABLE = (
    "border-collapse: separate; border-spacing: 1px; border: none; margin: 2px 0; "
    f"font-size: 11px; {MONO}"
)
_EDGE = (
    "border: none; padding: 0 6px 0 0; text-align: left; vertical-align: top; "
    f"white-space: nowrap; {FAINT}"
)
_LINE = "#777"
# Seen on the tiles and on a dark page alike.
_FENCE = "#d33"
_TINY = "width:10px;height:10px;min-width:10px;padding:0;line-height:10px;"
_LABELLED = "min-width:34px;height:20px;padding:0 6px;text-align:center;"
_STRIPES = f"background-image:repeating-linear-gradient(45deg,{STRIPE} 0 3px,transparent 3px 9px);"


def grid(picture: Picture) -> str:
    """Draw a picture."""
    title = tag("div", text(picture.title), f"{MONO}; font-size: 12px; font-weight: 600")
    panels = "".join(_panel(panel, picture, i) for i, panel in enumerate(picture.panels))
    remarks = "".join(tag("div", text(remark), _SMALL) for remark in picture.remarks)
    return tag("div", title + panels + remarks, _FRAME)


def _panel(panel: Panel, picture: Picture, number: int) -> str:
    """Draw a panel; what runs down stands at the first one for all."""
    down = picture.down if number == 0 else ""
    rows = ["".join(_tile(tile, picture) for tile in tiles) for tiles in panel.rows]
    if down:
        height = str(len(panel.rows))
        rows[0] = tag("td", f"{text(down)} \u2193", _EDGE, rowspan=height) + rows[0]
    if picture.across:
        corner = tag("td", "", _EDGE) if down else ""
        width = str(max(1, *map(len, panel.rows)))
        rows = [corner + tag("td", f"{text(picture.across)} \u2192", _EDGE, colspan=width), *rows]
    caption = tag("div", text(panel.caption), _SMALL) if panel.caption else ""
    body = tag("table", tag("tbody", "".join(tag("tr", row, _ROW) for row in rows)), _TABLE)
    return tag(
        "div", caption + body, "display: inline-block; vertical-align: top; margin: 0 8px 0 0"
    )


def _tile(tile: Tile | None, picture: Picture) -> str:
    size = _TINY if picture.tiny else _LABELLED
    if tile is None:
        return tag("td", "\u2026", f"{size}border:0;{FAINT}")
    border = f"{1 if picture.tiny else 2}px {tile.tint.border} {_LINE}"
    if picture.tiny and tile.tint.border == "solid":
        border = "0"
    stripes = _STRIPES if picture.striped else ""
    # A line where another host begins, a thick one at another slice.
    width = 2 if picture.tiny else 3
    edges = ("left", tile.left), ("top", tile.above)
    border += "".join(
        f";border-{side}:{width * far}px solid {_FENCE}" for side, far in edges if far
    )
    look = f"{size}border:{border};background-color:{tile.tint.ground};{stripes}color:{TEXT}"
    return tag("td", "" if picture.tiny else text(tile.label), look, title=tile.hover)
