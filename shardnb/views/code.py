"""The user's own lines, each with the collectives that it led to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from shardnb.report import Collective, Report, Source
from shardnb.views import words
from shardnb.views.entries import Entries, tell
from shardnb.views.formatting import clean, count

_WHOLE = 60
_LINES = 10
_SINGLE = 4
_GROUPS = 2
_WIDTH = 160

_NONE = Entries(())

Led = dict[int, list[Collective]]


@dataclass(frozen=True)
class Line:
    """A line of a source and what it led to; `number` is None where lines are left out."""

    number: int | None
    text: str = ""
    entries: Entries = _NONE


@dataclass(frozen=True)
class Part:
    """The lines of one source that are shown, and a sentence on those that are not."""

    name: str
    lines: tuple[Line, ...]
    rest: str = ""


def parts_of(report: Report) -> tuple[Part, ...]:
    """Give the explained text first, then the lines of other sources that led to collectives."""
    led = led_by(report)
    parts = [_part(i, source, led.get(i, {}), report) for i, source in enumerate(report.sources)]
    return tuple(part for part in parts if part.lines)


def led_by(report: Report) -> dict[int, Led]:
    """Give for each source the collectives by line: the innermost line of each source counts.

    What stands outside the explained text, such as the call that explains it, led to nothing.
    """
    led: dict[int, Led] = defaultdict(lambda: defaultdict(list))
    for collective in report.collectives:
        inner = [frame for frame in collective.frames if words.is_shown(frame, report)]
        own = next((i for i, frame in enumerate(inner) if frame.source == 0), len(inner))
        lines = {frame.source: frame.line for frame in reversed(inner[: own + 1])}
        for source, line in lines.items():
            led[source][line].append(collective)
    return led


def _part(index: int, source: Source, led: Led, report: Report) -> Part:
    heavy = sorted(led, key=lambda number: weight(led[number]), reverse=True)
    texts = source.text.splitlines()
    last = source.first_line + len(texts)
    whole = index == 0 and len(texts) <= _WHOLE
    marked = set(heavy if whole else heavy[:_LINES])
    shown = marked | set(range(source.first_line, last)) if whole else marked
    lines = [
        Line(number, _text(texts, number - source.first_line), _entries(led, number, report))
        for number in sorted(shown)
    ]
    left = len(led) - len(marked)
    rest = f"and {count(left, 'more line')} with collectives" if left else ""
    return Part(clean(source.name), _with_gaps(_trimmed(lines)), rest)


def _text(texts: list[str], index: int) -> str:
    text = clean(texts[index]) if 0 <= index < len(texts) else ""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _entries(led: Led, number: int, report: Report) -> Entries:
    return tell(led.get(number, ()), report, single=_SINGLE, limit=_GROUPS)


def weight(collectives: Iterable[Collective]) -> int:
    """Give the bytes by which lines are told first: of a run, or of one execution."""
    return sum(c.total_wire_bytes or c.wire_bytes for c in collectives)


def _trimmed(lines: list[Line]) -> list[Line]:
    """Leave out empty lines at both ends."""
    full = [i for i, line in enumerate(lines) if line.text.strip() or line.entries.shown]
    return lines[full[0] : full[-1] + 1] if full else []


def _with_gaps(lines: list[Line]) -> tuple[Line, ...]:
    result: list[Line] = []
    for line in lines:
        last = result[-1].number if result else None
        if last is not None and line.number is not None and line.number > last + 1:
            result.append(Line(None))
        result.append(line)
    return tuple(result)
