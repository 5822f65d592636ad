"""`shardnb read` and `shardnb diff`: programs that were compiled elsewhere, and saved reports."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from shardnb.commands.command_error import CommandError
from shardnb.report import InvalidInput, Report
from shardnb.report.json import reports_from_json
from shardnb.report.programs import Programs


def read(
    target: str,
    mesh: str | None,
    sources: Sequence[str] = (),
    *,
    only: str | None = None,
    first: int | None = None,
    dumps: str | None = None,
) -> Report | Programs:
    """Return the report of an HLO dump in a file, or on standard input if the target is `-`.

    Of a folder that XLA dumped to, and of a profiler's trace, all programs are returned, or those
    chosen by `only` and `first`. `dumps` is the folder of dumps beside a trace. Lines are shown of
    files in `sources`. Raises `CommandError` for a missing file, and for a text, trace or mesh that
    is wrong.
    """
    from shardnb.compiler.dump_folders import names_a_program
    from shardnb.profiles.reading import read_profile
    from shardnb.profiles.trace_folder import is_trace
    from shardnb.reading import explain_dumps, explain_hlo

    try:
        if target != "-" and is_trace(Path(target)):
            return read_profile(target, mesh, dumps=dumps, only=only, first=first, sources=sources)
        if dumps is not None:
            raise CommandError(
                f"{target}: --dumps belongs to a profiler's trace, and it is not one"
            )
        if Path(target).is_dir() and not names_a_program(Path(target)):
            return explain_dumps(target, mesh, only=only, first=first, sources=sources)
        if only is not None or first is not None:
            raise CommandError(f"{target}: --only and --first choose among programs of a folder")
        # A text of one line would be taken for a path.
        given = f"{sys.stdin.read()}\n" if target == "-" else Path(target)
        return explain_hlo(given, mesh, sources=sources)
    except InvalidInput as error:
        raise CommandError(str(error)) from error
    except ValueError as error:  # of the mesh, and of bytes that are not UTF-8
        raise CommandError(f"{target}: {error}") from error


def load(path: Path) -> list[Report]:
    """Return the report that was saved as JSON, or the reports of an array of them.

    Raises `CommandError` for a file without a report, or one that a newer shardnb wrote.
    """
    try:
        return reports_from_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # also of a path with a NUL
        raise CommandError(f"{path}: {error}") from error


def paired(
    before: Sequence[Report], after: Sequence[Report]
) -> list[tuple[Report | None, Report | None]]:
    """Pair the programs of two runs: by their titles, the first of a title with the first."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    old, new = _numbered(before), _numbered(after)
    return [(old.get(key), new.get(key)) for key in dict.fromkeys((*new, *old))]


def _numbered(reports: Sequence[Report]) -> dict[tuple[str, int], Report]:
    counts: Counter[str] = Counter()
    numbered = {}
    for report in reports:
        numbered[report.title, counts[report.title]] = report
        counts[report.title] += 1
    return numbered
