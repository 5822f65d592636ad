"""What a profiler measured, in words: of a run, of rows of collectives, of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardnb.report import Collective, Report
from shardnb.report.measured import Profile
from shardnb.views.formatting import clean, count, seconds

NOT_MEASURED = "not measured"
_SHARED = "CPU devices share the host's processor: these times say nothing about GPUs or TPUs."
_EMULATED = "The devices are emulated on CPU: these times say nothing about hardware."
_LEAST = "on the device that takes least, the nearest to the transfer itself"
_CLOCKS = "Each host's timeline is by its own clock."


def verdict(report: Report) -> str:
    """Say what communication takes of a run; "" where it was not measured on accelerators."""
    profile = report.profile
    if profile is None or not profile.of_accelerators:
        return ""
    exposed = f"{seconds(profile.exposed_seconds)} of its {seconds(profile.step_seconds)}"
    said = f"Measured: a run waits {exposed} for communication"
    off = factor(report.collectives, report)
    if off is None or report.cost is None:
        return f"{said}."
    hardware = clean(report.cost.hardware)
    which = "the collectives" if _comparable(report) else "the collectives whose time is known"
    return f"{said}; {which} take {_times(off)} their estimate for {hardware}."


def facts(report: Report) -> tuple[str, ...]:
    """Say what was measured of a run, over how many runs, and what it is worth."""
    profile = report.profile
    if profile is None:
        return ()
    hosts = f" of {count(profile.hosts, 'host')}" if profile.hosts > 1 else ""
    runs, on = count(profile.runs, "run"), f"{count(profile.devices, _device(profile))}{hosts}"
    took = f"A run takes {seconds(profile.step_seconds)}, the median of {runs} on {on}."
    said = [took, *_communication(profile)]
    if profile.unmeasured and report.collectives:
        of = count(profile.unmeasured, "collective")
        said.append(f"The trace has no event of {of}.")
    if not profile.of_accelerators:
        said.append(_EMULATED if report.mesh.emulated else _SHARED)
    return tuple(map(clean, said))


def timeline(report: Report) -> str:
    """Say which run a timeline shows, and of how many devices; "" where there is none."""
    profile = report.profile
    if profile is None or not profile.timeline:
        return ""
    ends = [time for line in profile.timeline for time in (*line.computing, *line.communicating)]
    left = profile.devices - len(profile.timeline)
    others = f", without {count(left, 'more device')}" if left else ""
    clocks = f" {_CLOCKS}" if profile.hosts > 1 else ""
    return f"One run of {seconds(max(ends, default=0.0))}{others}.{clocks}"


def _device(profile: Profile) -> str:
    return f"{profile.kind or profile.platform.upper()} device"


def _communication(profile: Profile) -> Iterator[str]:
    if not profile.communication_seconds:
        return
    took, exposed = profile.communication_seconds, profile.exposed_seconds
    hidden = _percent(max(0.0, 1 - exposed / took))
    yield (
        f"Collectives are under way for {seconds(took)} of it; {hidden} of that overlaps "
        f"computation, and {seconds(exposed)} does not."
    )


def cell(group: Sequence[Collective], report: Report) -> str:
    """Write the measured seconds per run of equal collectives; "" in a report without a profile."""
    if report.profile is None:
        return ""
    messages = [c.measured for c in _messages(group)]
    known = [m for m in messages if m is not None]
    if len(known) < len(messages) or not known:
        return NOT_MEASURED
    took, off = seconds(seconds_per_run(group)), factor(group, report)
    took = f"at most {took}" if any(m.at_most for m in known) else took
    said = f"{took}, {_times(off)} estimate" if off else took
    ids = {c.id for c in group}
    return said if all(ids.issuperset(c.combined_with) for c in group) else f"{said} (shared)"


def seconds_per_run(group: Sequence[Collective]) -> float:
    """Return the measured seconds of collectives, each message once; 0 where there are none."""
    timed = (c.measured for c in _messages(group))
    return sum(measured.seconds_per_run for measured in timed if measured is not None)


def sentences(collective: Collective, report: Report) -> tuple[str, ...]:
    """Say what was measured of one collective."""
    measured = collective.measured
    if measured is None:
        return () if report.profile is None else ("The trace has no event of it.",)
    waits = measured.waiting
    others = f"; others wait up to {seconds(waits)} longer" if waits else ""
    hidden = f"{_percent(measured.hidden)} of its time overlaps computation"
    most = "at most " if measured.at_most else ""
    took = f"one execution takes {most}{seconds(measured.seconds)} {_LEAST}"
    said = [f"Measured: {took}{others}; {hidden}."]
    if measured.at_most:
        said.append("No device had to wait for its end, so the transfer may have taken less.")
    if collective.combined_with:
        said.append("That is the time of the message that it shares.")
    if off := factor((collective,), report):
        said.append(f"That is {_times(off)} the estimate.")
    return tuple(map(clean, said))


def factor(group: Sequence[Collective], report: Report) -> float | None:
    """Return how many times the estimate the measured seconds are; None if that says nothing.

    Only where the seconds are estimated for the hardware that was measured. A trace of GPUs does
    not name them: there the estimate is for what the reader says they are.
    """
    profile, cost = report.profile, report.cost
    if profile is None or cost is None or not profile.of_accelerators:
        return None
    if profile.hardware not in ("", cost.hardware):
        return None
    measured = estimated = 0.0
    by_id = {c.id: c for c in report.collectives}
    for message in _messages(group):
        parts = [by_id.get(number) for number in (message.id, *message.combined_with)]
        each = [c.seconds for c in parts if c is not None and c.seconds is not None]
        if message.measured is None or message.measured.at_most or len(each) < len(parts):
            continue
        measured += message.measured.seconds_per_run
        estimated += sum(each) * message.measured.executions
    return measured / estimated if measured and estimated else None


def _comparable(report: Report) -> bool:
    """Whether the time of each collective was measured, and is not only an upper bound."""
    return all(c.measured is not None and not c.measured.at_most for c in report.collectives)


def _messages(group: Sequence[Collective]) -> list[Collective]:
    """Return one collective of each message: what is sent together was measured together."""
    return list({min((c.id, *c.combined_with)): c for c in group}.values())


def _times(number: float) -> str:
    return f"{number:.2g} times" if number < 100 else f"{number:,.0f} times"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
