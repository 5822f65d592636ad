"""Adds seconds to a report: of each collective, and of the whole step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from shardnb.cost import overrides
from shardnb.cost.hardware import Hardware, Latency, find_hardware
from shardnb.cost.links import Torus
from shardnb.cost.placed import as_if, named
from shardnb.cost.seconds import Time, on_torus
from shardnb.cost.switches import Domains, on_switch
from shardnb.report.cost import Cost
from shardnb.report.model import Collective, Mesh, Report
from shardnb.terms.collectives import KINDS

_PEAK = "compute: the operations at the peak rate for bf16; wider types take longer"
_MEMORY = (
    "memory: at least the arguments and results that are read and written in full, at most what "
    "every operation reads and writes; values that stay on the chip take less"
)
_OVERLAP = "the step: at least its longest part, at most the sum of its parts"
_NO_BOX = "chips that do not form a box: from each to the next in mesh order"
_OVER_GPUS = (
    "NVLink",
    "the network between hosts",
    "NVLink within hosts and the network between them",
)
_NETWORK = "the data-center network between {} slices"
_AROUND = (
    "chips that do not form a box: the bytes of the ring algorithm, times those on the busiest "
    "link, over w"
)
_LATENCY = "a collective takes at least {} per hop, and an all-reduce goes around twice"
_START = (
    "each collective takes {} to start, and {} per step: n - 1 steps for n GPUs, an all-reduce "
    "twice as many"
)
_BETWEEN_SLICES = "between slices: bytes sent by the ring formula over {} for each chip"
_BETWEEN_DOMAINS = (
    "between NVLink domains: what other domains need is sent once, over {} for each GPU; meanwhile "
    "the rest is sent over NVLink, and the slower of the two counts"
)


Given = str | Path | Mapping[str, Any]
"""Hardware: a name, or figures of the user's own as a dict or a file."""


def priced(report: Report, hardware: Given | None = None) -> Report:
    """Return a report with seconds if the table has its hardware, else the report unchanged.

    An emulated mesh gets none; see `on_hardware`. `hardware` has figures in place of the table's.
    """
    if hardware is not None:
        return on_hardware(report, hardware)
    known = None if report.mesh.emulated else find_hardware(report.mesh.kind)
    if known is None:
        return report
    return _Pricing(report.mesh, known).of(report)


def on_hardware(report: Report, hardware: Given) -> Report:
    """Return a copy with the seconds that a report's program would take on other hardware.

    `hardware` is a chip (`v5e`, `h100`), a TPU slice (`v5e:2x4`) that the devices fill row by row,
    a GPU cluster (`h100:4x8`, hosts x GPUs of each), or several of these (`2*v5e:4x4`); a TPU
    without a slice gives each mesh axis a physical dimension to itself. A dict, or a JSON or TOML
    file, has figures in place of the table's: `{"chip": "h100:4x8", "network": 25e9}`; without
    `chip` they are those of the report's own devices. `overrides.FIGURES` has the keys. The program
    stays the one that was compiled; the compiler for that hardware may produce another. Raises
    `ValueError` that lists the names, names the wrong key, or says how many devices do not fit.
    """
    name, figures = _read(hardware)
    of_mesh = None if report.mesh.emulated else find_hardware(report.mesh.kind)
    if name is None:
        if of_mesh is None:
            raise ValueError(
                f"hardware: expected a chip too, such as 'chip': 'h100': the program was compiled "
                f"for {report.mesh.kind}"
            )
        return _Pricing(report.mesh, overrides.changed(of_mesh, figures)).of(report)
    on = named(name)
    chip = overrides.changed(on.hardware, figures)
    mesh, how = as_if(report.mesh, on)
    said = f"compiled for {report.mesh.kind}, priced as if for {chip.name}: {how}"
    return _Pricing(mesh, chip, (said,)).of(report)


def check_hardware(hardware: Given) -> None:
    """Raise `ValueError` for hardware that is not known, and for figures that are none."""
    name, _ = _read(hardware)
    if name is not None:
        named(name)


def _read(hardware: Given) -> tuple[str | None, dict[str, float]]:
    """Return the name of hardware, None without one, and the figures of the user's own."""
    if isinstance(hardware, str) and not overrides.is_file(hardware):
        return hardware, {}
    return overrides.read(hardware)


@dataclass(frozen=True)
class _Pricing:
    """Prices reports of a mesh on hardware; `said` are the first assumptions."""

    mesh: Mesh
    hardware: Hardware
    said: tuple[str, ...] = ()

    @cached_property
    def domains(self) -> Domains:
        """What is joined by links: NVLink domains of GPUs, TPU slices."""
        return Domains.on(self.mesh, self.hardware)

    def of(self, report: Report) -> Report:
        """Return a report with seconds."""
        torus = Torus.of(self.mesh, self.hardware)
        if self.hardware.dims and torus is None:
            return report
        times: dict[int, Time | None] = {}
        for collective in report.collectives:
            if not collective.wire_bytes:
                times[collective.id] = Time(0.0)
            elif torus is None:
                times[collective.id] = on_switch(collective, self.domains, self.hardware)
            else:
                times[collective.id] = on_torus(collective, torus, self.hardware)
        collectives = tuple(_together(report.collectives, times))
        cost = self._cost(replace(report, collectives=collectives), torus)
        return replace(report, collectives=collectives, cost=cost)

    def _cost(self, report: Report, torus: Torus | None) -> Cost:
        hardware, chip = self.hardware, torus.devices if torus else 1
        peak = hardware.flops and hardware.flops / chip
        bandwidth = hardware.memory_bandwidth and hardware.memory_bandwidth / chip
        work, collectives = report.work, report.collectives
        known = [c for c in collectives if c.seconds is not None and c.trips is not None]
        phases = any(c.phase for c in known)
        return Cost(
            hardware=hardware.name,
            source=hardware.source,
            communication_seconds=sum(_total(c) for c in known),
            compute_seconds=work.flops / peak if work and peak else None,
            memory_seconds=work.accessed_bytes / bandwidth if work and bandwidth else None,
            memory_least_seconds=work.least_bytes / bandwidth if work and bandwidth else None,
            by_axis=_sums((axes_label(c), _total(c)) for c in known),
            by_phase=_sums((c.phase or "", _total(c)) for c in known if phases),
            links=_links(known, torus, self.domains),
            crossing=_crossing(collectives, self.domains),
            peak_flops=peak,
            memory_bandwidth=bandwidth,
            memory_size=hardware.memory // chip if hardware.memory else None,
            assumptions=tuple(self._assumptions(report, torus)),
            assumed=bool(self.said),
            unpriced=len(collectives) - len(known),
            uncounted=work.uncounted if work else 0,
        )

    def _assumptions(self, report: Report, torus: Torus | None) -> Iterator[str]:
        yield from self.said
        hardware = self.hardware
        yield f"{hardware.name}: figures from {hardware.source}"
        if report.collectives:
            yield from _formulas(report.collectives, hardware, torus, self.domains)
        if torus is not None and torus.devices > 1:
            yield f"{torus.devices} devices share a chip, its links and its memory"
        if report.work is None:
            yield "compute and memory: unknown, the compiler gives no count"
            return
        yield _PEAK
        if report.work.uncounted:
            yield f"compute and memory: without {report.work.uncounted} custom calls"
        yield _MEMORY
        yield _OVERLAP


def _formulas(
    collectives: Sequence[Collective], hardware: Hardware, torus: Torus | None, domains: Domains
) -> Iterator[str]:
    for kind in sorted({c.kind for c in collectives}):
        yield f"{kind}: {KINDS[kind].on_switch if torus is None else KINDS[kind].on_torus}"
    if hardware.link is not None:
        yield f"w, the bandwidth of a link in one direction: {hardware.link / 1e9:g} GB/s"
    between = any(c.wire_bytes and domains.spread(c.groups).domains > 1 for c in collectives)
    if hardware.network and between:
        network = f"{hardware.network / 1e9:g} GB/s"
        yield _BETWEEN_SLICES.format(network) if torus else _BETWEEN_DOMAINS.format(network)
    if torus is not None:
        yield "V: the bytes of the whole array over a group of m chips; each sends both ways"
        if any(_is_no_box(c, torus) for c in collectives):
            yield _AROUND
        shape = "x".join(str(size) for size in torus.shape if size > 1) or "1"
        closed = [name for name, ring in zip("xyz", torus.rings, strict=False) if ring]
        around = f"wraparound along {' and '.join(closed)}" if closed else "no wraparound"
        yield f"a slice of {shape} chips has {around}"
    if hardware.latency is not None:
        yield from _latencies(hardware.latency, torus, between=between)


def _latencies(latency: Latency, torus: Torus | None, *, between: bool) -> Iterator[str]:
    """Say what small collectives take, and where these figures come from."""
    step, network = f"{latency.step * 1e6:g} us", f"{latency.network * 1e6:g} us"
    if torus is not None:
        yield _LATENCY.format(step)
        if between:
            yield f"between slices: at least {network} per step, n - 1 steps for n slices"
    else:
        yield _START.format(f"{latency.start * 1e6:g} us", step)
        if between:
            yield f"each of the steps between hosts takes {network}"
    yield latency.source


def _is_no_box(collective: Collective, torus: Torus) -> bool:
    """Whether the chips of a collective's groups do not form a box."""
    permute = KINDS[collective.kind].in_pairs
    sent = bool(collective.wire_bytes) and torus.slices_of(collective.groups) == 1
    return not permute and sent and torus.route(collective.groups) is None


def _together(
    collectives: Iterable[Collective], times: Mapping[int, Time | None]
) -> Iterator[Collective]:
    """Return the seconds of each collective; combined collectives share one latency."""
    for collective in collectives:
        time = times[collective.id]
        if time is None:
            yield replace(collective, seconds=None)
            continue
        parts = [times.get(other) for other in (collective.id, *collective.combined_with)]
        moving = sum(part.moving for part in parts if part)
        whole = time.with_bytes_of(moving)
        share = time.moving / moving if moving else 1 / len(parts)
        yield replace(collective, seconds=whole * share)


def _total(collective: Collective) -> float:
    return (collective.seconds or 0.0) * (collective.trips or 0)


def axes_label(collective: Collective) -> str:
    """Name the mesh axes of a collective, or say that its groups match no axes."""
    return ", ".join(collective.axes) if collective.axes else "other groups"


def _sums(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for name, seconds in items:
        sums[name] += seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _rides_on(collective: Collective, torus: Torus | None, domains: Domains) -> str:
    spread = domains.spread(collective.groups)
    if torus is None:
        return _OVER_GPUS[(spread.domains > 1) + (spread.domains > 1 and spread.within)]
    if spread.domains > 1:
        return _NETWORK.format(spread.domains)
    route = torus.route(collective.groups)
    return str(route) if route else _NO_BOX


def _links(
    collectives: Sequence[Collective], torus: Torus | None, domains: Domains
) -> dict[str, str]:
    """Return the links used by each set of axes."""
    by_axes: dict[str, Counter[str]] = defaultdict(Counter)
    for collective in collectives:
        if not KINDS[collective.kind].in_pairs and collective.wire_bytes:
            by_axes[axes_label(collective)][_rides_on(collective, torus, domains)] += 1
    # Groups over the same axes use the same links, except at the edge of a slice: take the most
    # common.
    return {axes: routes.most_common(1)[0][0] for axes, routes in by_axes.items()}


def sent_over_hosts(report: Report) -> dict[str, tuple[int, int]]:
    """Return the bytes that one device sends per run within its host and to others, by axes.

    Only of axes that send to others; the sums over hosts are those of a hierarchical algorithm.
    """
    hosts = report.mesh.hosts
    return {} if hosts is None else _crossing(report.collectives, Domains(hosts))


def _crossing(collectives: Sequence[Collective], domains: Domains) -> dict[str, tuple[int, int]]:
    """Return the bytes that one device sends per run within its domain and to others, by axes.

    Only of axes that send to others.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for collective in collectives:
        sent, times = domains.sent(collective), collective.trips or collective.least_trips
        for at, size in enumerate(sent):
            sums[axes_label(collective)][at] += size * times
    return {axes: (within, between) for axes, (within, between) in sums.items() if between}
