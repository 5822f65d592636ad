"""The typed view: each line of the user's with what it binds, and where that lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from shardnb.report import Location, Source
from shardnb.report.typed import TypedLine
from shardnb.views.formatting import count
from shardnb.views.page import Block, Line, Listing, Say
from shardnb.views.phrases import INSERTED


def page(lines: Sequence[TypedLine], sources: Sequence[Source], limit: int = 0) -> list[Block]:
    """Give the lines of a typed program beside the user's; the first `limit` where there are more.

    Lines that nobody is known to have written stand under the ones before them.
    """
    if not lines:
        return [Say("No types hold placements: every axis is auto.")]
    shown = lines[:limit] if limit else lines
    left = len(lines) - len(shown)
    more = [Say(f"and {count(left, 'more line')}: all are in report.typed")] if left else []
    return [Listing(tuple(_listed(shown, sources))), *more]


def _listed(lines: Iterable[TypedLine], sources: Sequence[Source]) -> Iterator[Line]:
    for place, together in groupby(lines, lambda line: line.location):
        beside = tuple((str(line).removesuffix(_MARK), _mark(line)) for line in together)
        yield Line(place.line if place else None, _source_line(place, sources), beside)


_MARK = f"    # {INSERTED}"


def _mark(line: TypedLine) -> str:
    return INSERTED if line.inserted else ""


def _source_line(place: Location | None, sources: Sequence[Source]) -> str:
    if place is None or not 0 <= place.source < len(sources):
        return ""
    source = sources[place.source]
    name = f"   ({source.name})" if place.source else ""
    return f"{source.line(place.line)}{name}"
