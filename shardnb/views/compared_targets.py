"""One program as the compilers for several targets make it, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardnb.report import Collective, Report
from shardnb.report.bytes_sent import most_sent
from shardnb.report.types import Column
from shardnb.views import words
from shardnb.views.formatting import clean, count, seconds, size
from shardnb.views.page import Block, Lead, Say, Table
from shardnb.views.sent import rows_of, weight

# What most programs send for; what is beyond is summed up in the totals.
_ROWS = 16

Key = tuple[str, tuple[str, ...]]
"""What a collective is for, and the axes that it goes over."""


def page(columns: Sequence[Column]) -> Iterator[Block]:
    """Say what each compiler makes of a program: totals, what is sent for what, and differences."""
    yield Lead(" | ".join(clean(column.name) for column in columns))
    head = ("", "sends", "messages", "time", "memory per device")
    yield Table(head, tuple(_totals(column) for column in columns))
    reports = {column.name: column.report for column in columns if column.report is not None}
    if len(reports) > 1:
        yield from _sent(reports)
        yield from (Say(said) for name, report in reports.items() for said in choices(name, report))


def _totals(column: Column) -> tuple[str, ...]:
    """Say what one device sends, how many messages carry it, its time, and whether it fits."""
    report = column.report
    if report is None:
        error = column.error.error if column.error else "no program"
        return clean(column.name), f"refused: {error}", "", "", ""
    cost = report.cost
    took = "not known" if cost is None else f"about {seconds(cost.communication_seconds)}"
    took += f", without {cost.unpriced}" if cost is not None and cost.unpriced else ""
    sent = words.sent(report.collectives) if report.collectives else "nothing"
    messages = f"{_messages(report.collectives):,}"
    return clean(column.name), sent, messages, took, _memory(report)


def _memory(report: Report) -> str:
    """Say what a device holds, and whether that fits: `4.2 MiB of 16 GiB: fits`."""
    held, has = report.memory, report.cost.memory_size if report.cost else None
    if held is None:
        return "not known"
    if has is None:
        return size(held.total)
    fits = "fits" if held.total <= has else "does not fit"
    return f"{size(held.total)} of {size(has)}: {fits}"


def _messages(collectives: Sequence[Collective]) -> int:
    """Count what is sent: those that are combined go in one message."""
    return len({tuple(sorted((one.id, *one.combined_with))) for one in collectives})


def _sent(reports: Mapping[str, Report]) -> Iterator[Block]:
    """Return a table: what is sent for what, by target."""
    held = {name: _by_purpose(report) for name, report in reports.items()}
    keys = dict.fromkeys(key for groups in held.values() for key in groups)
    heaviest = {key: max(weight(groups.get(key, ())) for groups in held.values()) for key in keys}
    ordered = sorted(keys, key=lambda key: -heaviest[key])
    rows = tuple(
        (_purpose(key), *(_cell(groups.get(key, ())) for groups in held.values()))
        for key in ordered[:_ROWS]
    )
    yield Table(("what is sent for", *map(clean, reports)), rows)
    if len(ordered) > _ROWS:
        yield Say(f"{count(len(ordered) - _ROWS, 'more purpose')} that send less are not listed.")


def _by_purpose(report: Report) -> dict[Key, list[Collective]]:
    """Put together what is for the same, in whatever kind it is sent."""
    groups: dict[Key, list[Collective]] = {}
    for row in rows_of(report.collectives, report):
        # A gradient is the same whether each device keeps all of it, or its shard.
        what = row.where.replace(", of which each device keeps its shard", "")
        key = what or row.name, row.first.axes or ()
        groups.setdefault(key, []).extend(row.members)
    return groups


def _purpose(key: Key) -> str:
    what, axes = key
    return clean(f"{what} [{', '.join(axes)}]" if axes else what)


def _cell(group: Sequence[Collective]) -> str:
    """Say how it is sent: `8 x reduce-scatter bf16, 3.5 MiB, 86.2 us`."""
    if not group:
        return "nothing"
    kinds: dict[str, int] = {}
    for one in group:
        name = f"{one.kind} {one.dtype}"
        kinds[name] = kinds.get(name, 0) + (one.least_trips if one.trips is None else one.trips)
    sent = ", ".join(f"{runs:,} x {clean(name)}" for name, runs in kinds.items())
    took = [one.seconds * one.trips for one in group if one.seconds is not None and one.trips]
    priced = f", {seconds(sum(took))}" if took and len(took) == len(group) else ""
    return f"{sent}, {size(most_sent(group))}{priced}"


def choices(name: str, report: Report) -> Iterator[str]:
    """Say what this compiler does with what it got, where others may do otherwise."""
    ones = report.collectives
    other = [(one, one.on_accelerators) for one in ones if one.on_accelerators is not None]
    widened = sum(accelerators.dtype != one.dtype for one, accelerators in other)
    whole = sum(accelerators.kind != one.kind for one, accelerators in other)
    scattered = sum(one.made_as == "all-reduce" != one.kind for one in ones)
    combined, messages = sum(bool(one.combined_with) for one in ones), _messages(ones)
    beside = sum(one.overlap is not None for one in ones)
    said = (
        (widened, "in f32 what the program has in a narrower type: the CPU compiler widens it"),
        (whole, "as an all-reduce and then slices it, where others may use a reduce-scatter"),
        (scattered, "as a reduce-scatter, which the partitioner made as an all-reduce"),
        (combined, f"together with others: {count(messages, 'message')} in all"),
        (beside, "asynchronously, so that the device can compute meanwhile"),
    )
    for number, how in said:
        if number:
            yield clean(f"{name} sends {count(number, 'collective')} {how}.")
