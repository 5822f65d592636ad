"""What changed between two programs, in Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shardnb.report import Report
from shardnb.report.golden import EntryChange, changes
from shardnb.views.formatting import clean, size
from shardnb.views.golden import golden_of, headline

NO_DIFFERENCE = "No difference in what the devices send or hold."
# Of CommonMark and of GitHub: what is not meant as markup, and a name that would notify somebody.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&!]")
_MENTION = re.compile(r"@(?=\w)")


def render(pairs: Sequence[tuple[Report | None, Report | None]]) -> str:
    """Write what changed in each program; None stands for a program that is not there."""
    return "\n".join(part for before, after in pairs for part in _program(before, after))


def _program(before: Report | None, after: Report | None) -> Iterator[str]:
    report = after or before
    if report is None:
        return
    mesh = golden_of(report).mesh
    yield f"### {_code(report.title)} on {_text(mesh)}\n"
    if before is None or after is None:
        yield f"This program is {'new' if before is None else 'gone'}.\n"
    figures = ", and ".join(filter(None, (_sent(before, after), _held(before, after))))
    came = _changes(before, after)
    if before and after and golden_of(before).mesh != mesh:
        yield f"The mesh was {_text(golden_of(before).mesh)}.\n"
    elif not came and before and after and _same_figures(before, after):
        yield f"{NO_DIFFERENCE}\n"
        return
    yield f"Each device {figures}.\n"
    yield from (f"- {_item(change)}" for change in came)
    if came:
        yield ""


def _changes(before: Report | None, after: Report | None) -> tuple[EntryChange, ...]:
    """Return what changed, the most bytes first."""
    report = after or before
    if report is None:
        return ()
    none = golden_of(report)
    none = type(none)(none.mesh)
    old, new = (golden_of(each) if each else none for each in (before, after))
    found = changes(old, new)
    return tuple(sorted(found, key=lambda c: -max(each or 0 for each in c.wire_bytes)))


def _same_figures(before: Report, after: Report) -> bool:
    return before.wire_bytes == after.wire_bytes and _total(before) == _total(after)


def _total(report: Report | None) -> int | None:
    return report.memory.total if report and report.memory else None


def _sent(before: Report | None, after: Report | None) -> str:
    old, new = (each.wire_bytes if each else None for each in (before, after))
    return f"sends {_instead(old, new)} per run"


def _held(before: Report | None, after: Report | None) -> str:
    old, new = _total(before), _total(after)
    known = (new if before is None else old) if before is None or after is None else (old and new)
    return "" if known is None else f"holds {_instead(old, new)}"


def _instead(before: int | None, after: int | None) -> str:
    if before is None or after is None or before == after:
        return size(after if after is not None else before or 0)
    return f"**{size(after)}** instead of {size(before)}"


def _item(change: EntryChange) -> str:
    entry = change.entry
    what, sends = headline(change)
    place = f" at {_code(entry.place)}" if entry.place else ""
    line = f" ({_code(entry.line)})" if entry.line else ""
    joint = ", " if entry.why.startswith("because ") else ". "
    why = f"{joint}{_text(entry.why)}" if entry.why else ""
    return f"**{_text(what)}** {sends}{place}{line}{why}"


def _text(text: str) -> str:
    r"""Write text so that none of it is markup.

    >>> _text("params['w'] of layers[*]")
    "params\\['w'\\] of layers\\[\\*\\]"
    """
    escaped = _MARKUP.sub(lambda match: f"\\{match[0]}", clean(text))
    return _MENTION.sub("@<!-- -->", escaped)


def _code(text: str) -> str:
    """Write code, between more backticks than it has in a row.

    >>> _code("x @ w"), _code("a ` b")
    ('`x @ w`', '`` a ` b ``')
    """
    shown = clean(text)
    longest = max(map(len, re.findall(r"`+", shown)), default=0)
    mark, space = "`" * (longest + 1), " " if longest else ""
    return f"{mark}{space}{shown}{space}{mark}"
