"""The output of a command: reports as text, JSON or a page, and the check of `--forbid`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from json import dumps
from pathlib import Path
from typing import get_args

from shardnb.commands.command_error import CommandError
from shardnb.report import Collective, Report
from shardnb.report.changes import Diff
from shardnb.report.programs import Programs
from shardnb.views.words import asked

Pair = tuple[Report | None, Report | None]
"""A program before and after; None where it is not there."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body style="margin: 24px auto; padding: 0 20px; max-width: 900px">
{body}
</body>
</html>
"""
_RULED = f"\n\n{'=' * 100}\n\n"
_RULE = '\n<hr style="margin: 32px 0">\n'


def as_text(reports: Sequence[Report]) -> str:
    """Return reports as text, one after another."""
    if not reports:
        return "No cell showed a report: does the notebook have a %%shard cell?"
    return _RULED.join(str(report).rstrip() for report in reports)


def as_json(reports: Report | Sequence[Report]) -> str:
    """Return one report as a JSON object, or several as an array."""
    if isinstance(reports, Report):
        return reports.to_json(texts=False)
    return f"[{',\n'.join(report.to_json(texts=False) for report in reports)}]"


def as_text_or_json(result: Report | Sequence[Report] | Programs, *, json: bool) -> str:
    """Return reports as JSON, else as text."""
    if isinstance(result, Programs):
        return as_json(result.reports) if json else str(result)
    if json:
        return as_json(result)
    return as_text([result] if isinstance(result, Report) else result)


def diff_text(pairs: Sequence[Pair], *, json: bool, markdown: bool) -> str:
    """Return what changed in each program, as text, Markdown or JSON.

    As JSON it is an object with names and figures before and after, of several programs an array.
    """
    from shardnb.views import markdown as as_markdown

    if markdown:
        return as_markdown.render(pairs).rstrip()
    both = [(before, after) for before, after in pairs if before and after]
    diffs = [before.diff(after) for before, after in both]
    if json:
        data = [asdict(diff) for diff in diffs]
        return dumps(data[0] if len(pairs) == 1 else data, indent=2)
    if len(pairs) == 1:
        return str(diffs[0])
    named = [f"{after.title}\n\n{diff}" for (_, after), diff in zip(both, diffs, strict=True)]
    alone = [_alone(before, after) for before, after in pairs if not (before and after)]
    return _RULED.join([*named, *alone])


def _alone(before: Report | None, after: Report | None) -> str:
    report = before or after
    title = report.title if report else ""
    return f"{title}: only in the {'first' if before else 'second'} file"


def write_diff_page(pairs: Sequence[Pair], path: Path) -> None:
    """Write the reports as one HTML file, with what changed between two first."""
    reports = [report for pair in pairs for report in pair if report]
    before, after = pairs[0] if len(pairs) == 1 else (None, None)
    write_page(reports, path, diff=before.diff(after) if before and after else None)


def write_page(reports: Sequence[Report], path: Path, diff: Diff | None = None) -> None:
    """Write reports as one HTML file that needs no JavaScript and no network.

    `diff` is what changed between them, shown first.
    """
    from shardnb.views import changes, html

    title = reports[0].title if len(reports) == 1 else f"{len(reports)} reports"
    changed = [] if diff is None else [changes.html_of(diff)]
    body = _RULE.join([*changed, *(html.render(report) for report in reports)])
    write_text(_PAGE.format(title=escape(title), body=body), path)


def write_text(text: str, path: Path) -> None:
    """Write a file; raises `CommandError` where that is not possible."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        why = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"{path} cannot be written: {why}") from error


def forbidden(reports: Sequence[Report], options: Sequence[str]) -> list[str]:
    """Return a line for each collective that one of the words in `options` forbids."""
    words = _words(options)
    return [
        f"{_named(collective)} in {report.title} is forbidden"
        for report in reports
        for collective in report.collectives
        if collective.is_among(words)
    ]


def not_explained(reports: Sequence[Report], options: Sequence[str]) -> list[str]:
    """Return a line if there is no report, and for each that `options` cannot be judged by."""
    if not reports:
        return ["no program was explained"]
    return [
        f"the collectives of {report.title} are unknown: it is not partitioned yet"
        for report in reports
        if options and not report.partitioned
    ]


def not_read(programs: Programs, options: Sequence[str]) -> list[str]:
    """Return a line for each program of a run that `options` cannot be judged by."""
    if not options:
        return []
    if programs.is_empty:
        return not_explained([], options)
    lines = [f"{name} cannot be read: {why}" for name, why in programs.unread]
    known = programs.communicating
    return [*lines, *(not_explained(known, options) if known else ())]


def check_words(options: Sequence[str]) -> None:
    """Check that `options` forbid only kinds and origins that exist."""
    from shardnb.terms.causes import AskedBy
    from shardnb.terms.collectives import KINDS

    known = (*get_args(AskedBy), *KINDS)
    for word in sorted(_words(options) - set(known)):
        raise CommandError(f"{word!r} cannot be forbidden; the choices are {', '.join(known)}")


def _words(options: Sequence[str]) -> set[str]:
    return {word.strip() for option in options for word in option.split(",")}


def _named(collective: Collective) -> str:
    who = f"{collective.asked_by} " if collective.asked_by else ""
    unknown = "" if collective.asked_by else f" ({asked(collective)})"
    line = f" at line {collective.line}" if collective.line else ""
    return f"{who}{collective.kind}[{', '.join(collective.axes or ())}]{line}{unknown}"
