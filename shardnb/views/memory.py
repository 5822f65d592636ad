"""What a device holds in words: all of it, its parts, and what is alive at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardnb.report import Held, Memory, Report
from shardnb.views import words
from shardnb.views.formatting import clean, count, size

NOT_KNOWN = "What is alive at the peak is not known: there are no live ranges of the compiler's"


@dataclass(frozen=True)
class PeakTable:
    """What is alive at the peak: when that is, rows under `HELD_COLUMNS`, and what is left."""

    when: str
    rows: tuple[tuple[str, str, str, str], ...]
    rest: str

    def shown(self, most: int) -> tuple[Sequence[tuple[str, str, str, str]], str]:
        """Return the first rows, and how many more a report holds."""
        left = len(self.rows) - most
        return self.rows[:most], f"and {count(left, 'smaller row')}" if left > 0 else ""


def memory_parts(memory: Memory | None, outputs: int) -> tuple[str, ...]:
    """Say what one device holds at once, part by part; first all of it."""
    if memory is None:
        return ("not known: the compiler gave no analysis",)
    noun = "output" if outputs == 1 else "outputs"
    reused = f" ({size(memory.aliased)} in donated inputs)" if memory.aliased else ""
    closed = f" ({size(memory.constants)} closed over)" if memory.constants else ""
    host = f"; {size(memory.host)} on the host" if memory.host else ""
    return (
        f"{size(memory.total)} per device",
        f"{size(memory.arguments)} arguments{closed}",
        f"{size(memory.outputs)} {noun}{reused}",
        f"{size(memory.temporaries)} temporaries{host}",
    )


def fitting(report: Report) -> str:
    """Say whether the program fits, and by how much, where the hardware's memory is known."""
    held, has = report.memory, report.cost.memory_size if report.cost else None
    if held is None or has is None:
        return ""
    left = size(abs(has - held.total))
    said = (
        f"it fits, with {left} left" if held.total <= has else f"it does not fit: {left} too much"
    )
    return f"It needs {size(held.total)} of the {size(has)} memory per device: {said}."


def peak_table(report: Report) -> PeakTable | None:
    """Put what is alive at the peak into words, or that it is not known; None without a memory."""
    if report.memory is None:
        return None
    peak = report.memory.peak
    if peak is None:
        return PeakTable(NOT_KNOWN, (), "")
    where = words.at(peak.location, report) if peak.location else ""
    passed = f"in the {peak.phase} pass" if peak.phase in ("forward", "backward") else ""
    said = " ".join(filter(None, (where, passed)))
    rest = [f"{size(peak.others)} in values that are not listed"] if peak.others else []
    if peak.unused:
        rest.append(f"{size(peak.unused)} of the temporaries' memory is not in use then")
    return PeakTable(
        when=clean(f"Held at the peak{f', {said}' if said else ''}"),
        rows=tuple(_row(held, report) for held in peak.held),
        rest="; ".join(rest),
    )


def _row(held: Held, report: Report) -> tuple[str, str, str, str]:
    number = f"{held.count:,} x " if held.count > 1 else ""
    shape = ", ".join(map(str, held.shape))
    where = words.at(held.location, report).removeprefix("at ") if held.location else ""
    passed = held.phase if held.phase in ("forward", "backward") else ""
    return (
        size(held.bytes),
        clean(named(held)),
        clean(f"{number}{held.dtype}[{shape}]") if held.dtype else "",
        clean(", ".join(filter(None, (where, passed)))),
    )


def named(held: Held) -> str:
    """Name values as a person would: `h of every iteration`, `the all-gather of w`."""
    name = held.name
    if held.use == "argument":
        return f"{name} (argument, reused for a result)" if held.reused else f"{name} (argument)"
    if held.use == "output":
        return f"{name} (output)"
    name = f"the {name}" if name.startswith("result of ") else name
    if held.collective:
        name = f"the {held.collective} of {name}"
    if held.sliced:
        name = f"one iteration's slice of {name}"
    if held.copied:
        name = f"a copy of {name}"
    return f"{name}, of every iteration" if held.stacked else name
