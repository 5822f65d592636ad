"""`shardnb read` and `shardnb diff`: programs that were compiled elsewhere, and saved reports."""

from __future__ import annotations

import sys
from pathlib import Path

from shardnb.commands.command_error import CommandError
from shardnb.report import Report


def read(target: str, mesh: str | None) -> Report:
    """Return the report of an HLO dump in a file, or on standard input if the target is `-`.

    Raises `CommandError` for a missing file, and for a text or mesh that is wrong.
    """
    from shardnb.reading import explain_hlo

    if target != "-" and not Path(target).exists() and "module_" not in target:
        raise CommandError(f"there is no file {target}")
    try:
        return explain_hlo(sys.stdin.read() if target == "-" else Path(target), mesh)
    except (ValueError, OSError) as error:
        raise CommandError(f"{target}: {error}") from error


def load(path: Path) -> Report:
    """Return a report that was saved as JSON.

    Raises `CommandError` for a file without a report, or one that a newer shardnb wrote.
    """
    try:
        return Report.from_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
