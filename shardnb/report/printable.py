"""Texts of unknown origin, so that a terminal shows them and does not act on them."""

from __future__ import annotations


def clean(text: str) -> str:
    r"""Make a text of unknown origin safe to print: control characters become visible.

    >>> clean("a\x1b[31mb\nc\u202e")
    'a\\x1b[31mb\\nc\\u202e'
    """
    if text.isprintable():
        return text
    chars = text.expandtabs(4).replace("\xa0", " ")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in chars)
