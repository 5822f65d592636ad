"""What a guard says of a program that breaks it: the collectives, where they are, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardnb.report import Collective, Report
from shardnb.report.strategies import strategy_of
from shardnb.views import words
from shardnb.views.formatting import clean, count, listed, size
from shardnb.views.memory import named

# Collectives that a message describes: the report that is with it has them all.
_SHOWN = 10
_NAMED = 3


def forbidden(report: Report, found: Sequence[Collective], what: Sequence[str]) -> Iterator[str]:
    """Say which collectives a program has that it must not have."""
    yield f"{count(len(found), 'collective')} that must not be there ({listed(list(what))}):"
    for collective in sorted(found, key=lambda one: -one.least_wire_bytes)[:_SHOWN]:
        yield from (f"  {line}" for line in described(collective, report))
    if len(found) > _SHOWN:
        yield f"  and {len(found) - _SHOWN:,} more"


def described(collective: Collective, report: Report) -> Iterator[str]:
    """Say of one collective what it is, where, what is sent, and why."""
    at = words.innermost(collective, report)
    code = words.code_at(at, report)
    name = f"{collective.kind}{words.over(collective)}"
    place = f"{words.at(at, report)}{f': {code}' if code else ''}"
    yield f"{name} {place}, {words.per_run([collective])}"
    yield f"  {words.reason(collective)}"
    asked, strategy = words.asked(collective), strategy_of(collective, report)
    if asked in ("asker unknown", "made by the partitioner"):
        yield "  Who asked for it is not known, so it counts as inserted by the compiler."
    elif strategy is not None:
        yield f"  It is typical of {strategy}: allow_typical=True allows such collectives."


def sends_too_much(report: Report, most: int) -> str:
    """Say that each device sends more than it may."""
    return f"each device sends {size(report.wire_bytes)} per run, more than {size(most)}"


def holds_too_much(report: Report, most: int, what: str) -> str:
    """Say that each device holds more than it has, and of what."""
    memory = report.memory
    if memory is None:
        return "its memory is not known, so whether it fits is not known either"
    parts = (
        (memory.arguments, "arguments"),
        (memory.outputs - memory.aliased, "outputs"),
        (memory.temporaries, "temporaries"),
    )
    has = ", ".join(f"{size(number)} {name}" for number, name in parts)
    peak = memory.peak.held[:_NAMED] if memory.peak else ()
    largest = sorted(report.inputs, key=lambda value: -value.shard_bytes)[:_NAMED]
    held = [f"{clean(named(each))}, {size(each.bytes)}" for each in peak]
    arguments = [f"{clean(value.name)} ({size(value.shard_bytes)})" for value in largest]
    of = f"; the largest arguments per device are {listed(arguments)}" if arguments else ""
    of = f"; the most at the peak: {'; '.join(held)}" if held else of
    return f"each device holds {size(memory.total)}, more than {size(most)} ({what}): {has}{of}"


def not_partitioned() -> str:
    """Say that nothing can be said of a program yet."""
    return "it is not partitioned yet, so its collectives are not known"


def failed(title: str, lines: Sequence[str]) -> str:
    """Say of which program all this is."""
    body = "\n".join(lines)
    return f"{clean(title) or 'the program'}: {body}"
