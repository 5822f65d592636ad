"""The user's own lines, each with the collectives that it led to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from shardnb.report import Collective, Report, Source
from shardnb.views import words
from shardnb.views.formatting import clean, count
from shardnb.views.sent import Row, more, rows_of, weight

# A cell of so many lines is read in full; of a longer one, and of other files, so many lines
# are shown: those that send most.
_WHOLE = 60
_LINES = 10
# What stands beside a line: the rows that send most.
_ROWS = 3
_WIDTH = 160

Led = dict[int, list[Collective]]


@dataclass(frozen=True)
class CodeLine:
    """A line of a source and what it led to; `number` is None where lines are left out."""

    number: int | None
    text: str = ""
    rows: tuple[Row, ...] = ()
    rest: str = ""


@dataclass(frozen=True)
class CodePart:
    """The lines of one source that are shown, and a sentence on those that are not."""

    name: str
    lines: tuple[CodeLine, ...]
    rest: str = ""


def parts_of(report: Report) -> tuple[CodePart, ...]:
    """Return the explained text first, then the lines of other sources that led to collectives."""
    led = led_by(report)
    parts = [_part(i, source, led.get(i, {}), report) for i, source in enumerate(report.sources)]
    return tuple(part for part in parts if part.lines)


def led_by(report: Report) -> dict[int, Led]:
    """Return for each source the collectives by line: the innermost line of each source counts.

    What stands outside the explained text, such as the call that explains it, led to nothing.
    """
    led: dict[int, Led] = defaultdict(lambda: defaultdict(list))
    for collective in report.collectives:
        inner = [frame for frame in collective.frames if words.is_shown(frame, report)]
        explained = next((i for i, frame in enumerate(inner) if frame.source == 0), len(inner))
        lines = {frame.source: frame.line for frame in reversed(inner[: explained + 1])}
        for source, line in lines.items():
            led[source][line].append(collective)
    return led


def _part(index: int, source: Source, led: Led, report: Report) -> CodePart:
    texts = source.text.splitlines()
    heavy = sorted(led, key=lambda number: weight(led[number]), reverse=True)
    whole = index == 0 and len(texts) <= _WHOLE
    marked = set(heavy if whole else heavy[:_LINES])
    first, last = source.first_line, source.first_line + len(texts)
    lines: list[CodeLine] = []
    for number in sorted(marked | set(range(first, last)) if whole else marked):
        text = clean(texts[number - first]) if first <= number < last else ""
        text = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
        rows = rows_of(led.get(number, ()), report)
        if not lines and not text.strip() and not rows:
            continue  # empty lines at the beginning
        if lines and number > (lines[-1].number or 0) + 1:
            lines.append(CodeLine(None))
        lines.append(CodeLine(number, text, rows[:_ROWS], more(rows[_ROWS:])))
    while lines and not lines[-1].text.strip() and not lines[-1].rows:
        lines.pop()
    left = len(led) - len(marked)
    rest = f"and {count(left, 'more line')} with collectives" if left else ""
    return CodePart(clean(source.name), tuple(lines), rest)
