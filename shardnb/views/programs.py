"""The programs of a run as text: a heading and a report for each, and a line for the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from shardnb.report.programs import Dumped, Programs
from shardnb.views import text, verdict
from shardnb.views.formatting import clean, count, listed, wrapped

NOTHING_COMPILED = "No program was compiled."
_NONE = "None of the programs communicates."
_RULE = "=" * 100
_TIME = re.compile(r"\b\d{10,}\.(?=module_)")  # tells the processes of a run apart
_NAMED = 4  # names of a line: the rest are counted


def render(programs: Programs) -> str:
    """Write the programs of a run for a terminal."""
    number = len(programs.explained)
    parts = [_program(each, at, number) for at, each in enumerate(programs.explained, 1)]
    others = "\n".join(_others(programs))
    return "\n\n".join([*parts, f"{_RULE}\n{others}"] if others else parts)


def _program(dumped: Dumped, at: int, number: int) -> str:
    which = f"Program {at} of {number}: " if number > 1 else "Program "
    again = f", compiled {dumped.compiles} times" if dumped.compiles > 1 else ""
    name = _TIME.sub("", clean(dumped.name))
    head = f"{which}{clean(dumped.report.title)} ({name}{again})"
    return f"{_RULE}\n{head}\n\n{text.render(dumped.report).rstrip()}"


def _others(programs: Programs) -> Iterator[str]:
    """Say what else was compiled."""
    if programs.is_empty:
        yield NOTHING_COMPILED
    elif not programs.explained and not programs.small and not programs.left:
        yield _NONE
    for dumped in programs.small:
        sent = verdict.sends(dumped.report)
        kinds = Counter(c.kind for c in dumped.report.collectives)
        has = listed([count(times, kind) for kind, times in kinds.items()])
        yield from wrapped(f"Also compiled: {clean(dumped.report.title)}, {has}. {sent}.", 0, 2)
    if programs.silent:
        also = "Also compiled" if programs.explained or programs.small else "Compiled"
        yield from wrapped(f"{also}, without collectives: {_names(programs.silent)}.", 0, 2)
    if programs.left:
        yield f"Not read: {count(programs.left, 'more program')}."
    for name, why in programs.unread:
        yield from wrapped(f"{clean(name)} cannot be read: {clean(why)}", 0, 2)


def _names(names: Sequence[str]) -> str:
    """List names, those that came most often last: `jit_init, jit_add (x11) and 4 more`."""
    times = Counter(map(clean, names))
    shown = [f"{name} (x{number})" if number > 1 else name for name, number in times.items()]
    rest = [f"{len(shown) - _NAMED:,} more"] if len(shown) > _NAMED else []
    return listed([*shown[:_NAMED], *rest])
