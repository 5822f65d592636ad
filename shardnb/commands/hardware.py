"""`--hardware`: what the seconds of a command's reports are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardnb.commands.command_error import CommandError
from shardnb.cost import check_hardware, on_hardware
from shardnb.report import Report
from shardnb.report.programs import Dumped, Programs

Result = Report | Sequence[Report] | Programs


def check(hardware: str | None) -> None:
    """Raise `CommandError` for hardware that is not known, or a file with a wrong figure."""
    if hardware is None:
        return
    try:
        check_hardware(hardware)
    except ValueError as error:
        raise CommandError(f"--hardware: {error}") from error


def on(result: Result, hardware: str | None) -> Result:
    """Return reports with the seconds on some hardware, as they are without one.

    Raises `CommandError` where the devices of a report do not fit it. Of several reports, one that
    does not fit has a note instead: programs of one run may be for meshes of different sizes.
    """
    if hardware is None:
        return result
    if isinstance(result, Programs):
        explained, small = _each(result.explained, hardware), _each(result.small, hardware)
        return replace(result, explained=explained, small=small)
    if not isinstance(result, Report):
        return [_where_it_fits(report, hardware) for report in result]
    try:
        return on_hardware(result, hardware)
    except ValueError as error:
        raise CommandError(f"--hardware: {error}") from error


def _each(programs: Sequence[Dumped], hardware: str) -> tuple[Dumped, ...]:
    return tuple(replace(one, report=_where_it_fits(one.report, hardware)) for one in programs)


def _where_it_fits(report: Report, hardware: str) -> Report:
    try:
        return on_hardware(report, hardware)
    except ValueError as error:
        return replace(report, notes=(*report.notes, f"--hardware: {error}"))
