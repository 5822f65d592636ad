"""HTML that survives in notebooks: tables, details and inline styles, every string escaped."""

from __future__ import annotations

from html import escape

MONO = "font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FAINT = "opacity: 0.75"
_PLAIN = "border: none; text-align: left; vertical-align: top; white-space: normal"


def tag(name: str, body: str, style: str = "", **attributes: str) -> str:
    """Wrap HTML in a tag; attributes are escaped, the body is HTML already.

    >>> tag("b", "x", title='"')
    '<b title="&quot;">x</b>'
    """
    styled = {"style": style} if style else {}
    given = {**styled, **attributes}
    written = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    return f"<{name}{written}>{body}</{name}>"


def text(value: str) -> str:
    """Escape a text for a body."""
    return escape(value, quote=False)


def cell(body: str, style: str = "", **attributes: str) -> str:
    """Write a table cell that looks the same in every notebook."""
    return tag("td", body, f"{_PLAIN}; padding: 1px 14px 1px 0; {style}".rstrip("; "), **attributes)


def table(rows: list[str], style: str = "") -> str:
    """Write a table of rows that `row` wrote."""
    look = f"border-collapse: collapse; border: none; margin: 4px 0; font-size: 13px; {style}"
    return tag("table", tag("tbody", "".join(rows)), look.rstrip("; "))


def row(cells: list[str]) -> str:
    """Write a table row of cells that `cell` wrote."""
    return tag("tr", "".join(cells), "background: transparent; border: none")


def mono(value: str, style: str = "") -> str:
    """Write a text in the code's letters."""
    return tag("span", text(value), f"{MONO}; {style}".rstrip("; "))


def code(value: str, style: str = "") -> str:
    """Write lines of code that wrap rather than scroll sideways."""
    look = f"{MONO}; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0"
    return tag("pre", text(value), f"{look}; {style}".rstrip("; "))


def chip(value: str, colours: tuple[str, str]) -> str:
    """Write a label on a ground of its own, readable on dark and light pages."""
    ground, ink = colours
    look = f"background-color: {ground}; color: {ink}; padding: 1px 7px; border-radius: 9px"
    return tag("span", text(value), f"{look}; font-size: 12px; white-space: nowrap")


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """Fold HTML away under a summary that is HTML already."""
    head = tag("summary", summary, "cursor: pointer")
    opened = " open" if is_open else ""
    return f'<details{opened} style="margin: 3px 0">{head}{body}</details>'


def block(body: str, style: str = "") -> str:
    """Write a paragraph of HTML."""
    return tag("div", body, f"margin: 2px 0; {style}".rstrip("; "))
