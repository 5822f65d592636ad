"""What is said of a collective, in words that text and HTML share."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from shardnb.report import Collective, Fix, Location, Report, Source
from shardnb.report.bytes_sent import most_sent
from shardnb.report.cost import Bound, Cost
from shardnb.report.dtypes import bits
from shardnb.report.spec import spec_text
from shardnb.report.strategies import strategy_of
from shardnb.terms.causes import ASKERS, REASONS, Asker
from shardnb.terms.collectives import KINDS
from shardnb.views.formatting import clean, count, seconds, size

_DERIVED = "Autodiff added this for a collective that you wrote."
_BEGINNINGS = ("a", "an", "both", "dimension", "each", "every", "it", "no", "the", "this", "why")
FULL_REMAT = "full rematerialization"

# Of compute the lower bound is known, and of memory the upper one, sometimes both.
_BOUNDS = {"compute": ">= ", "memory": "<= ", "communication": ""}


def asked(collective: Collective) -> Asker:
    """Say in a word who asked; where that is not known, whether the partitioner made it."""
    if collective.by_autodiff:
        return "autodiff"
    if collective.asked_by is None and collective.generated is None:
        return "asker unknown"
    return collective.asked_by or ("made by the partitioner" if collective.generated else "called")


def cause(collective: Collective, report: Report) -> str:
    """Say why it is there, in a few words: `typical of FSDP`, `completes a partial sum`."""
    strategy, asker = strategy_of(collective, report), asked(collective)
    if collective.full_remat:
        return FULL_REMAT
    if strategy is not None:
        return f"typical of {strategy}"
    if ASKERS[asker].explains or collective.reason is None:
        return ASKERS[asker].prose
    return REASONS[collective.reason].prose


def over(collective: Collective) -> str:
    """Say along which mesh axes the devices communicate, or in what groups where no axes say it."""
    if collective.axes:
        return clean(f"[{', '.join(collective.axes)}]")
    return "" if collective.axes == () else f"[{grouping(collective)}]"


def grouping(collective: Collective) -> str:
    """Say how many groups communicate: `4 groups of 2`, `8 pairs`, `2 groups of 1 to 3`."""
    groups = collective.groups
    if KINDS[collective.kind].in_pairs:
        return count(len(groups), "pair")
    sizes = sorted({len(group) for group in groups})
    if not sizes:
        return "no groups"
    ends = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{count(len(groups), 'group')} of {ends}"


def array(collective: Collective) -> str:
    """Write the result on one device: `f32[64, 1024]`."""
    return clean(f"{collective.dtype}[{', '.join(map(str, collective.shape))}]")


def trips(collective: Collective) -> str:
    """Say how often a run executes it: "" for once, ` x4`, ` x1 or more`, or that it is unknown."""
    if collective.trips is None:
        least = collective.least_trips
        return f" x{least:,} or more" if least else ", trip count unknown"
    return "" if collective.trips == 1 else f" x{collective.trips:,}"


def sends(collectives: Sequence[Collective]) -> str:
    """Say what one device sends for these per run: `256 KiB x4`, `3.0 MiB in 12`."""
    if len(collectives) == 1:
        return f"{size(collectives[0].wire_bytes)}{trips(collectives[0])}"
    return f"{sent(collectives)} in {len(collectives):,}"


def sent(collectives: Sequence[Collective]) -> str:
    """Say how many bytes one device sends for these in a run, at least where trips are unknown."""
    known = most_sent(collectives)
    if unknown(collectives):
        return f"at least {size(known)}" if known else "unknown"
    return size(known)


def per_run(collectives: Sequence[Collective]) -> str:
    """Say what one device sends for these: `256 KiB per run`, `96 B each time, unknown per run`."""
    if unknown(collectives) and not most_sent(collectives):
        each = f"{size(collectives[0].wire_bytes)} each time, " if len(collectives) == 1 else ""
        return f"{each}unknown per run"
    return f"{sent(collectives)} per run"


def unknown(collectives: Sequence[Collective]) -> int:
    """Count those whose trips are unknown."""
    return sum(c.trips is None for c in collectives)


def home(collective: Collective, report: Report) -> Location | None:
    """Return the line of a collective: in the explained text, else in another source."""
    frames = [frame for frame in collective.frames if is_shown(frame, report)]
    if _is_file(report.sources):
        # The files of a dump are elsewhere: their lines are known, their texts mostly not.
        return next(iter(frames or collective.frames), None)
    return next((f for f in frames if f.source == 0), frames[0] if frames else None)


def _is_file(sources: Sequence[Source]) -> bool:
    """Whether the first source is a file that was met, not a cell or a function that is explained.

    A dump names the files that it was written in, and nothing of it is explained text.
    """
    return bool(sources) and sources[0].name.endswith(".py")


def innermost(collective: Collective, report: Report) -> Location | None:
    """Return the line that the reader knows best: the innermost one whose text the report holds."""
    shown = (frame for frame in collective.frames if is_shown(frame, report))
    return next(shown, home(collective, report))


def code_at(place: Location | None, report: Report) -> str:
    """Return the text of a line, "" where it is not known."""
    if place is None or not 0 <= place.source < len(report.sources):
        return ""
    return clean(report.sources[place.source].line(place.line).strip())


def inside(collectives: Sequence[Collective]) -> str:
    """Say in which module they are: ` in Net/Dense_0`, ` in Net/Dense_* (4 modules)`, or ""."""
    modules = {module_of(collective) for collective in collectives} - {""}
    if len(modules) <= 1:
        return "".join(f" in {clean(module)}" for module in modules)
    alike = {like_module(collective) for collective in collectives}
    return f" in {clean(alike.pop())} ({len(modules):,} modules)" if len(alike) == 1 else ""


def module_of(collective: Collective) -> str:
    """Return the module's path without the scopes that `jnp.einsum` names after its subscripts."""
    return "/".join(step for step in collective.module.split("/") if "->" not in step)


def like_module(collective: Collective) -> str:
    """Give a module's path with a star for each number, so that a model's layers are one."""
    return re.sub(r"\d+", "*", module_of(collective))


def is_shown(place: Location, report: Report) -> bool:
    """Whether a location is in a text that the report holds, not in a library."""
    if not 0 <= place.source < len(report.sources):
        return place.source == 0
    return place.source == 0 or bool(report.sources[place.source].text)


def at(place: Location | None, report: Report) -> str:
    """Say where: `at line 3`, `at line 7 of layers.py`, or that no line is known."""
    if place is None:
        return "at no known line"
    explained = place.source == 0 and not _is_file(report.sources)
    if explained or place.source >= len(report.sources):
        return f"at line {place.line}"
    return f"at line {place.line} of {clean(report.sources[place.source].name)}"


def phase(collective: Collective) -> str:
    """Say in which pass it runs, where that is known: `, backward`."""
    return f", {clean(collective.phase)}" if collective.phase else ""


def because(collective: Collective) -> str:
    """Say why it is there, in one sentence, or that it is not known."""
    if collective.why:
        return sentence(clean(collective.why.strip()), names_of(collective))
    if collective.reason is None and asked(collective) in ("called", "autodiff"):
        return asker_sentence(collective)
    detail = f" ({clean(collective.detail)})" if collective.reason and collective.detail else ""
    moved = ", ".join(filter(None, (made(collective), used(collective))))
    clause = REASONS[collective.reason or "unknown"].clause
    said = f"{clause}{detail}{f': {moved}' if moved else ''}"
    return sentence(said, names_of(collective))


def reason(collective: Collective) -> str:
    """Say why it is there without naming it, for what stands under its name."""
    return sentence(_unnamed(because(collective), collective), names_of(collective))


def clause(collective: Collective) -> str:
    """Say why it is there as a part of a sentence, such as `because ...`; "" if that is unknown."""
    return _unnamed(clean(collective.why.strip()), collective).rstrip(".")


def _unnamed(said: str, collective: Collective) -> str:
    """Leave out what a sentence on a collective begins with: which one it is, and at which line."""
    name = f"{clean(collective.kind)}{over(collective)}"
    if not said.lower().startswith(name):
        return said
    depth = 0
    for i, char in enumerate(said):
        depth += (char in "([{") - (char in ")]}")
        if not depth and said.startswith(": ", i):
            return said[i + 2 :]
    return said


def names_of(collective: Collective) -> set[str]:
    """Return what its sentences may begin with and is a name, such as `a`."""
    return {clean(name) for name in (collective.producer, collective.consumer) if name}


def sentence(text: str, names: Container[str] = ()) -> str:
    """End a text with a full stop, and begin it with a capital where a word begins it.

    A name of the user's stays as it is, also one of `names` that is a word, such as `a`.
    """
    first = text.split(" ", 1)[0]
    word = first in _BEGINNINGS and first not in names
    begun = text[:1].upper() + text[1:] if word else text
    return begun if begun.endswith((".", "!", "?", ")")) else f"{begun}."


def made(collective: Collective) -> str:
    """Say what is moved: `h is sharded as P('data')`; "" where that is not known."""
    if not collective.producer:
        return ""
    spec = collective.producer_spec
    return clean(
        collective.producer + ("" if spec is None else f" is sharded as {spec_text(spec)}")
    )


def used(collective: Collective) -> str:
    """Say who uses it, and with which sharding: `y needs it as P()`; "" if none is known."""
    consumer, needed = collective.consumer, collective.needed_spec
    # A partial sum is the operation's own result: nothing has used it yet.
    of_consumer = (collective.producer or "").startswith(f"result of {consumer}")
    own = of_consumer or collective.reason == "partial-sum"
    if not consumer or (needed is None and own):
        return ""
    return clean(consumer + (" uses it" if needed is None else f" needs it as {spec_text(needed)}"))


def asker_sentence(collective: Collective) -> str:
    """Say in a sentence who asked.

    Autodiff adds an all-reduce also for what the program merely casts from one device's to all
    (`transposed_pvary`); of every other kind for a collective of the program's.
    """
    asker = asked(collective)
    of_a_collective = asker == "autodiff" and collective.kind != "all-reduce"
    return _DERIVED if of_a_collective else ASKERS[asker].sentence


def further(collective: Collective) -> tuple[str, ...]:
    """Say what else is known: who asked, the loop, the company, the estimated time."""
    asker = asker_sentence(collective)
    said = [] if because(collective).endswith(asker) else [asker]
    if collective.full_remat:
        said.append("Full rematerialization: the array is gathered in full, then sharded again.")
    if collective.trips is None:
        least = collective.least_trips
        times = f"at least {'once' if least == 1 else f'{least:,} times'} " if least else ""
        said.append(f"It runs {times}in a loop whose trip count is not known.")
    if "conditional" in collective.within:
        said.append("It is in a conditional: it runs only if its branch is taken.")
    if collective.combined_with:
        others = count(len(collective.combined_with), "other collective")
        said.append(f"Sent together with {others} in one message.")
    said += _sending(collective)
    if collective.seconds is not None:
        said.append(
            f"One execution takes about {seconds(collective.seconds)} (estimated by formula)."
        )
    if collective.fixes == ():
        said.append("None of the edits that were tried removes it.")
    return tuple(filter(None, said))


def _sending(collective: Collective) -> list[str]:
    """Say how the compiler sends it, and what a device computes at the same time."""
    said = []
    if collective.made_as:
        made = f"The partitioner made an {collective.made_as} of it; the compiler sends"
        said.append(clean(f"{made} it as {collective.kind}."))
    if collective.algorithm:
        said.append(clean(f"Algorithm: {collective.algorithm}."))
    if (other := collective.on_accelerators) is not None:
        shape = f"{other.dtype}[{', '.join(map(str, other.shape))}]"
        sent = f"sends {size(other.wire_bytes)}"
        said.append(clean(f"A compiler for TPU or GPU may use {other.kind} {shape}, which {sent}."))
    if (overlap := collective.overlap) is not None:
        names = f" ({', '.join(overlap.names)})" if overlap.names else ""
        ops = count(overlap.ops, "operation")
        said.append(clean(f"Asynchronous: {ops} run at the same time{names}."))
    return said


def elsewhere(collectives: Sequence[Collective]) -> list[str]:
    """Say how many bytes narrow floats have that the compiler for CPU sends as wider ones."""
    narrow = [(c, c.on_accelerators.dtype) for c in collectives if c.on_accelerators is not None]
    widened = [(c, dtype) for c, dtype in narrow if dtype != c.dtype]
    if not widened:
        return []
    dtypes = " and ".join(dict.fromkeys(dtype for _, dtype in widened))
    here = most_sent([c for c, _ in widened])
    there = most_sent([replace(c, wire_bytes=_as(dtype, c)) for c, dtype in widened])
    what, verb = count(len(widened), "collective"), "sends" if len(widened) == 1 else "send"
    said = f"The CPU compiler sends {dtypes} as f32"
    if not here:
        return [clean(f"{said}, in {what} here.")]
    would = f"{size(here)} per device, and as {dtypes} would send {size(there)}"
    return [clean(f"{said}: {what} here {verb} {would}.")]


def _as(dtype: str, collective: Collective) -> int:
    """Return the bytes that one device sends per execution if the elements are of another type."""
    return collective.wire_bytes * bits(dtype) // bits(collective.dtype)


def effect(edit: Fix) -> str:
    """Say what a compiled edit changes: `sends 64 KiB, not 256 KiB; +128 KiB memory per device`."""
    (before, after), more = edit.wire_bytes, edit.memory_bytes[1] - edit.memory_bytes[0]
    sends = f"sends {size(after)} instead of {size(before)}" if after else "sends nothing"
    if after == before:
        sends = "sends as much"
    sign = "-" if more < 0 else "+"
    return f"{sends}, {sign}{size(abs(more))} memory per device" if more else sends


def bound(cost: Cost) -> str:
    """Say what a step takes on its hardware and what bounds it, in one line."""
    parts = [_part(name, cost) for name, took in cost.parts.items() if took]
    known = f", {', '.join(parts)}" if parts else ""
    may = "- or ".join(cost.may_bound)
    limit = f"{may}-bound" if may else "bound not known"
    left = f"; without {count(cost.unpriced, 'collective')}" if cost.unpriced else ""
    left += f"; without {count(cost.uncounted, 'custom call')}" if cost.uncounted else ""
    as_if = "as if on " if cost.assumed else "on "
    axes = f" ({_by(cost.by_axis)})" if len(cost.by_axis) > 1 else ""
    return clean(f"{as_if}{cost.hardware}: {limit}{known}{axes}, estimated{left}")


def _part(name: Bound, cost: Cost) -> str:
    """Say what a part takes: compute at least, memory from its least to its most."""
    took, least = seconds(cost.parts[name]), cost.memory_least_seconds
    if name == "memory" and least:
        return f"memory {seconds(least)} to {took}"
    return f"{name} {_BOUNDS[name]}{took}"


def estimated(cost: Cost) -> tuple[str, ...]:
    """Say how a step's seconds come about: the parts, the links, the formulas, the sources."""
    phases = [f"communication by phase: {_by(cost.by_phase)}"] if len(cost.by_phase) > 1 else []
    links = [f"{axes} communicates over {ride}" for axes, ride in cost.links.items()]
    crossing = [split_by_links(axes, cost) for axes in cost.crossing]
    return tuple(map(clean, (*phases, *links, *crossing, *cost.assumptions)))


def over_both(cost: Cost | None) -> str:
    """Say of the axes that span hosts, or slices, what goes over which of the two networks."""
    spanning = (
        [] if cost is None else [axes for axes, (within, _) in cost.crossing.items() if within]
    )
    return "; ".join(split_by_links(axes, cost) for axes in spanning if cost)


def split_by_links(axes: str, cost: Cost) -> str:
    """Say what a device sends over links and over the network: `data: 3 MiB within hosts, ...`."""
    within, between = cost.crossing[axes]
    places = "slices" if "slices" in cost.links.get(axes, "") else "hosts"
    return within_and_between(axes, within, between, places)


def within_and_between(axes: str, within: int, between: int, places: str) -> str:
    """Say what a device sends within its host or slice, and to others.

    >>> within_and_between("data", 3 << 20, 1 << 20, "hosts")
    'data: 3.0 MiB within hosts, 1.0 MiB between hosts per run'
    """
    inside = f"{size(within)} within {places}, " if within else ""
    return clean(f"{axes}: {inside}{size(between)} between {places} per run")


def _by(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds(took)}" for name, took in parts.items())
