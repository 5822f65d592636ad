"""Pictures as HTML tables: one cell a tile."""

from __future__ import annotations

from shardnb.views.markup import FAINT, MONO, tag, text
from shardnb.views.palette import STRIPE, TEXT, Tint
from shardnb.views.tiling import Cell, Panel, Picture

_FRAME = "display: inline-block; vertical-align: top; margin: 4px 22px 8px 0; max-width: 100%"
_SMALL = f"font-size: 12px; {FAINT}"


def grid(picture: Picture) -> str:
    """Draw a picture."""
    title = tag("div", text(picture.title), f"{MONO}; font-size: 12px; font-weight: 600")
    panels = "".join(_panel(panel, picture, i) for i, panel in enumerate(picture.panels))
    remarks = "".join(tag("div", text(remark), _SMALL) for remark in picture.remarks)
    return tag("div", title + panels + remarks, _FRAME)


def _panel(panel: Panel, picture: Picture, number: int) -> str:
    """Draw a panel; what runs down stands at the first one for all."""
    down = picture.down if number == 0 else ""
    width = max((len(cells) for cells in panel.rows), default=0)
    rows = [_across(picture.across, down, width)] if picture.across else []
    for i, cells in enumerate(panel.rows):
        edge = [_down(down, len(panel.rows))] if i == 0 and down else []
        tiles = "".join([*edge, *(_tile(cell, picture) for cell in cells)])
        rows.append(tag("tr", tiles, "background: transparent; border: none"))
    caption = tag("div", text(panel.caption), _SMALL) if panel.caption else ""
    look = "border-collapse: separate; border-spacing: 1px; border: none; margin: 2px 0; "
    look += f"font-size: 11px; {MONO}"
    body = tag("table", tag("tbody", "".join(rows)), look)
    frame = "display: inline-block; vertical-align: top; margin: 0 8px 0 0"
    return tag("div", caption + body, frame)


def _across(across: str, down: str, width: int) -> str:
    corner = tag("td", "", _EDGE) if down else ""
    label = tag("td", f"{text(across)} \u2192", _EDGE, colspan=str(max(1, width)))
    return tag("tr", corner + label, "background: transparent; border: none")


def _down(down: str, height: int) -> str:
    return tag("td", f"{text(down)} \u2193", _EDGE, rowspan=str(height))


_EDGE = (
    "border: none; padding: 0 6px 0 0; text-align: left; vertical-align: top; "
    f"white-space: nowrap; {FAINT}"
)


def _tile(cell: Cell | None, picture: Picture) -> str:
    size = _TINY if picture.tiny else _LABELLED
    if cell is None:
        return tag("td", "\u2026", f"{size}border:0;{FAINT}")
    stripes = _STRIPES if picture.striped else ""
    border = _border(cell.tint, tiny=picture.tiny)
    look = f"{size}border:{border};background-color:{cell.tint.ground};{stripes}color:{TEXT}"
    return tag("td", "" if picture.tiny else text(cell.label), look, title=cell.hover)


def _border(tint: Tint, *, tiny: bool) -> str:
    if tiny and tint.border == "solid":
        return "0"
    return f"{1 if tiny else 2}px {tint.border} {_LINE}"


_LINE = "rgba(40,40,40,0.55)"
_TINY = "width:10px;height:10px;min-width:10px;padding:0;line-height:10px;text-align:center;"
_LABELLED = "min-width:34px;height:20px;padding:0 6px;text-align:center;"
_STRIPES = f"background-image:repeating-linear-gradient(45deg,{STRIPE} 0 3px,transparent 3px 9px);"
