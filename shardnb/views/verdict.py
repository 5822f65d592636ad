"""The verdict: what each device sends per run, how much of it is typical, what a fix avoids."""

from __future__ import annotations

from collections import Counter

from shardnb.report import Collective, Report
from shardnb.report.bytes_sent import most_sent, sends_alike
from shardnb.report.changes import Outcome
from shardnb.report.strategies import strategy_of
from shardnb.views import measured, words
from shardnb.views.formatting import clean, count, listed, seconds, size
from shardnb.views.memory import fitting

NOTHING = "No communication."
NOT_PARTITIONED = "Communication is not known: the program is not partitioned yet"
_ALMOST_ALL = 0.995
# Lines of a numeric check: what it found, and the results that differ most.
_CHECKED = 3


def verdict(report: Report) -> tuple[str, ...]:
    """Say the least that a reader has to know, in one to five sentences."""
    collectives = report.collectives
    if not report.partitioned:
        called = f"; it calls {count(len(collectives), 'collective')}" if collectives else ""
        return (f"{NOT_PARTITIONED}{called}.",)
    said = [_sent(report), _unsure(report), _avoidable(report)] if collectives else [NOTHING]
    return tuple(filter(None, (*said, measured.verdict(report), fitting(report))))


def outcomes(report: Report) -> tuple[tuple[str, bool | None], ...]:
    """Say how the options that check something ended, each with whether it passed."""
    return tuple((_outcome(outcome, report), outcome.passed) for outcome in report.outcomes)


def _outcome(outcome: Outcome, report: Report) -> str:
    words_of = [clean(word) for word in outcome.words]
    match outcome.option:
        case "check":
            return f"--check: {'; '.join(words_of[:_CHECKED])}."
        case "forbid":
            asked = f"--forbid {','.join(words_of)}"
            broken = [c for c in report.collectives if c.is_among(outcome.words)]
            if not broken:
                return f"{asked}: the program has none."
            return f"{asked}: the program has {count(len(broken), 'such collective')}."


def sends(report: Report) -> str:
    """Say what each device sends: `Each device sends 256 KiB per run`."""
    unknown = words.unknown(report.collectives)
    branched = any(c.branches for c in report.collectives)
    unequal = branched or not sends_alike(report.collectives, report.mesh.size)
    if unknown and (unequal or not report.wire_bytes):
        return "How much each device sends per run is not known"
    bound = "at least " if unknown else "at most " if unequal else ""
    return f"Each device sends {bound}{size(report.wire_bytes)} per run"


def _sent(report: Report) -> str:
    cost = report.cost
    took = ""
    # A loop takes as long as it runs: without its trip count nothing is known.
    if cost is not None and not cost.unpriced and not words.unknown(report.collectives):
        took = f", about {seconds(cost.communication_seconds)} on {clean(cost.hardware)}"
    return f"{sends(report)}{took}{_typical(report)}."


def _typical(report: Report) -> str:
    """Say how much of the bytes is typical of which strategies, or called."""
    total, strategies = report.wire_bytes, Counter[str]()
    alike: dict[bool, list[Collective]] = {True: [], False: []}
    for one in report.collectives:
        strategy = strategy_of(one, report)
        alike[strategy is not None].append(one)
        if strategy is not None:
            strategies[strategy] += one.least_wire_bytes
    # What every strategy sends needs no name where another one is there.
    always = strategies.pop("every strategy", 0)
    sent, rest = most_sent(alike[True]), most_sent(alike[False])
    if not total:
        return ""
    others = (c for c in report.collectives if c.least_wire_bytes)
    if not strategies and not always and all(words.asked(c) == "called" for c in others):
        return ", all of it in collectives that you called"
    if not strategies or sent <= 0:
        return ""
    used = listed([name for name, _ in strategies.most_common()])
    part = "all of it" if rest <= (1 - _ALMOST_ALL) * total else size(sent)
    return f"; {part} is typical of {used}"


def _unsure(report: Report) -> str:
    """Say what makes the bytes a bound."""
    unknown = words.unknown(report.collectives)
    branched = sum(bool(c.branches) for c in report.collectives)
    said = []
    if unknown:
        are = "is in a loop" if unknown == 1 else "are in loops"
        said.append(f"{count(unknown, 'collective')} {are} whose trip count is not known.")
    if branched:
        of = f"{count(branched, 'collective')} in conditionals"
        said.append(f"Of {of}, those of the branches that send most are counted.")
    return " ".join(said)


def _avoidable(report: Report) -> str:
    """Say what the best compiled edit avoids; only what was compiled is known to be avoidable."""
    sought = [c.fixes for c in report.collectives] + [f.fixes for f in report.findings]
    tried = [fixes for fixes in sought if fixes is not None]
    if not tried or words.unknown(report.collectives):
        return ""
    best = min((fix.wire_bytes[::-1] for fixes in tried for fix in fixes), default=(1, 1))
    after, before = best
    if after >= before:
        return "None of the edits that were tried sends less."
    return f"A compiled fix avoids {size(before - after) if after else 'all'} of it."
