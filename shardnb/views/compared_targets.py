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
    """Say what each compiler makes of a program: the verdict, totals, what is sent for what."""
    reports = {column.name: column.report for column in columns if column.report is not None}
    yield Lead(" | ".join(clean(column.name) for column in columns), verdict(reports))
    head = ("", "sends", "messages", "time", "memory per device")
    yield Table(head, tuple(_totals(column) for column in columns))
    if len(reports) > 1:
        yield from _sent(reports)
        yield from (Say(said) for name, report in reports.items() for said in choices(name, report))


def verdict(reports: Mapping[str, Report]) -> str:
    """Say in a sentence how much each sends, and where they differ most; "" of a single one."""
    if len(reports) < 2:
        return ""
    amounts = {name: _amount(report) for name, report in reports.items()}
    sent = ", ".join(f"{amount} on {where}" for amount, where in _alike(amounts))
    held = {name: _by_purpose(report) for name, report in reports.items()}
    found = {
        key: {name: _as_sent(groups.get(key, ())) for name, groups in held.items()}
        for key in dict.fromkeys(key for groups in held.values() for key in groups)
    }
    differ = [key for key, ways in found.items() if len(set(ways.values())) > 1]
    if not found:
        return "no compiler sends anything between devices"
    if not differ:
        amount = next(iter(amounts.values()))
        return f"the compilers send the same for everything, {amount} per device and run"
    most = max(differ, key=lambda key: _range([groups.get(key, ()) for groups in held.values()]))
    ways = ", ".join(f"{way} on {where}" for way, where in _alike(found[most]))
    return (
        f"each device sends {sent} per run; the largest difference is for {_purpose(most)}: {ways}"
    )


def _alike(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each text once, with the names that have it: `v5e:2x4 and h100:8`."""
    for text in dict.fromkeys(texts.values()):
        yield text, clean(" and ".join(name for name, other in texts.items() if other == text))


def _range(groups: Sequence[Sequence[Collective]]) -> int:
    weights = [weight(group) for group in groups]
    return max(weights) - min(weights)


def _amount(report: Report) -> str:
    return words.sent(report.collectives) if report.collectives else "nothing"


def _totals(column: Column) -> tuple[str, ...]:
    """Say what one device sends, how many messages carry it, its time, and whether it fits."""
    report = column.report
    if report is None:
        error = column.error.error if column.error else "no program"
        return clean(column.name), f"refused: {error}", "", "", ""
    cost = report.cost
    took = "not known" if cost is None else f"about {seconds(cost.communication_seconds)}"
    if not report.collectives:
        took = "none"
    took += f", without {cost.unpriced}" if cost is not None and cost.unpriced else ""
    messages = f"{_messages(report.collectives):,}"
    return clean(column.name), _amount(report), messages, took, _memory(report)


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
    if not keys:
        return
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
    """Say how it is sent, and in what time: `8 x reduce-scatter bf16, 3.5 MiB, 86.2 us`."""
    took = [one.seconds * one.trips for one in group if one.seconds is not None and one.trips]
    priced = f", {seconds(sum(took))}" if took and len(took) == len(group) else ""
    return _as_sent(group) + priced


def _as_sent(group: Sequence[Collective]) -> str:
    """Say how it is sent: `8 x reduce-scatter bf16, 3.5 MiB`."""
    if not group:
        return "nothing"
    kinds: dict[str, int] = {}
    for one in group:
        name = f"{one.kind} {one.dtype}"
        kinds[name] = kinds.get(name, 0) + (one.least_trips if one.trips is None else one.trips)
    sent = ", ".join(f"{runs:,} x {clean(name)}" for name, runs in kinds.items())
    return f"{sent}, {size(most_sent(group))}"


def choices(name: str, report: Report) -> Iterator[str]:
    """Say what this compiler does with what it got, where others may do otherwise."""
    ones = report.collectives
    other = [(one, one.on_accelerators) for one in ones if one.on_accelerators is not None]
    narrow = [own.dtype for one, own in other if own.dtype != one.dtype]
    types = " and ".join(dict.fromkeys(narrow))
    whole = sum(accelerators.kind != one.kind for one, accelerators in other)
    scattered = sum(one.made_as == "all-reduce" != one.kind for one in ones)
    combined, messages = sum(bool(one.combined_with) for one in ones), _messages(ones)
    beside = sum(one.overlap is not None for one in ones)
    computed = f"because XLA for CPU computes {types} in f32 and sends what it computed"
    said = (
        (len(narrow), f"in f32 what the program has in {types}, {computed}"),
        (whole, "as an all-reduce and then slices it, where others may use a reduce-scatter"),
        (scattered, "as a reduce-scatter, which the partitioner made as an all-reduce"),
        (combined, f"together with others: {count(messages, 'message')} in all"),
        (beside, "asynchronously, so that the device can compute meanwhile"),
    )
    for number, how in said:
        if number:
            yield clean(f"{name} sends {count(number, 'collective')} {how}.")
