"""HTML that survives in notebooks: tables, details and inline styles, every string escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from shardnb.views.formatting import clean

MONO = "font-family:ui-monospace,Menlo,Consolas,monospace"
FAINT = "opacity: 0.75"
PAGE = "font: 14px/1.5 system-ui, sans-serif; max-width: 1000px; overflow-wrap: anywhere"


def tag(name: str, body: str, style: str = "", **attributes: str) -> str:
    """Wrap HTML in a tag; attributes are escaped, the body is HTML already.

    >>> tag("b", "x", title='"')
    '<b title="&quot;">x</b>'
    """
    style = style.strip("; ").replace("; ", ";").replace(": ", ":")
    given = {"style": style, **attributes} if style else attributes
    written = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    return f"<{name}{written}>{body}</{name}>"


def fragment(body: str) -> str:
    """Wrap HTML that a notebook shows as an output.

    Of a name with dollars, MathJax would make a formula, which may be a link that runs a script.
    """
    return tag("div", body, PAGE, **{"class": "tex2jax_ignore mathjax_ignore"})


def text(value: str) -> str:
    """Escape a text for a body."""
    return escape(value, quote=False)


def escaped(value: str) -> str:
    """Escape a text of unknown origin for a body, its control characters visible."""
    return text(clean(value))


def cell(body: str, style: str = "", **attributes: str) -> str:
    """Write a table cell that looks the same in every notebook."""
    look = "border:0;text-align:left;vertical-align:top;white-space:normal;padding:1px 14px 1px 0"
    return tag("td", body, f"{look};{style}", **attributes)


def line_number(number: int | None) -> str:
    """Write the cell of a line's number, empty where it is not known."""
    look = f"text-align: right; white-space: nowrap; {FAINT}"
    return cell("" if number is None else str(number), look)


def table(rows: Iterable[str], style: str = "") -> str:
    """Write a table of rows that `row` wrote."""
    look = f"border-collapse: collapse; border: none; margin: 4px 0; font-size: 13px; {style}"
    return tag("table", tag("tbody", "".join(rows)), look)


def row(cells: Iterable[str]) -> str:
    """Write a table row of cells that `cell` wrote."""
    return tag("tr", "".join(cells), "background: transparent; border: none")


def mono(value: str, style: str = "") -> str:
    """Write a text in the code's letters."""
    return tag("code", text(value), f"background:none;color:inherit;padding:0;{style}")


def code(value: str, style: str = "") -> str:
    """Write lines of code that wrap rather than scroll sideways."""
    look = f"{MONO}; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; margin: 4px 0"
    return tag("pre", text(value), f"{look}; {style}")


def chip(value: str, colours: tuple[str, str]) -> str:
    """Write a label on a ground of its own, readable on dark and light pages."""
    ground, ink = colours
    look = f"background-color: {ground}; color: {ink}; padding: 1px 7px; border-radius: 9px"
    return tag("span", text(value), f"{look}; font-size: 12px; white-space: nowrap")


def details(summary: str, body: str, *, is_open: bool = False, margin: str = "3px 0") -> str:
    """Fold HTML away under a summary that is HTML already."""
    head = tag("summary", summary, "cursor: pointer")
    opened = " open" if is_open else ""
    return f'<details{opened} style="margin:{margin}">{head}{body}</details>'


def block(body: str, style: str = "") -> str:
    """Write a paragraph of HTML."""
    return tag("div", body, f"margin: 2px 0; {style}")
