"""The typed view: each line of the user's with what it binds, and its sharding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from shardnb.report import Location, Source
from shardnb.report.typed import TypedLine
from shardnb.views.formatting import count
from shardnb.views.page import Block, ListedLine, Listing, Say
from shardnb.views.phrases import INSERTED

_MARK = f"    # {INSERTED}"


def page(lines: Sequence[TypedLine], sources: Sequence[Source], limit: int = 0) -> list[Block]:
    """Give the lines of a typed program beside the user's; the first `limit` where there are more.

    Lines of unknown origin stand under the ones before them.
    """
    if not lines:
        return [Say("No type has a sharding: every axis is Auto.")]
    listed = []
    for place, together in groupby(lines[: limit or None], lambda line: line.location):
        # The mark of an inserted line stands beside its text.
        beside = (
            (str(line).removesuffix(_MARK), INSERTED if line.inserted else "") for line in together
        )
        source = source_at(place, sources)
        name = f"   ({source.name})" if source and place and place.source else ""
        text = f"{source.line(place.line)}{name}" if source and place else ""
        listed.append(ListedLine(place.line if place else None, text, tuple(beside)))
    left = len(lines) - limit if limit else 0
    more = f"and {count(left, 'more line')}: all are in report.typed"
    return [Listing(tuple(listed)), *([Say(more)] if left > 0 else [])]


def source_at(place: Location | None, sources: Sequence[Source]) -> Source | None:
    """Return the text of a location, if it is known."""
    known = place is not None and 0 <= place.source < len(sources)
    return sources[place.source] if place and known else None
