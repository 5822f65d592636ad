"""Adds seconds to a report: of each collective, and of the whole step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardnb.cost.hardware import HARDWARE, Hardware, find_hardware
from shardnb.cost.links import Torus, laid, topology
from shardnb.cost.seconds import Time, on_switch, on_torus
from shardnb.report.cost import Cost
from shardnb.report.model import Collective, Mesh, Report
from shardnb.terms.collectives import KINDS

_PEAK = "compute: the operations at the peak rate for bf16; wider types take longer"
_MEMORY = "memory: every operation reads and writes memory; values that stay on the chip take less"
_OVERLAP = "the step: at least its longest part, at most the sum of its parts"
_NO_BOX = "chips that do not form a box: from each to the next in mesh order"
_NETWORK = "the data-center network between {} slices"
_AROUND = (
    "chips that do not form a box: the bytes of the ring algorithm, times those on the busiest "
    "link, over w"
)
_LATENCY = "a collective takes at least 1 us per hop, and an all-reduce goes around twice"


def priced(report: Report) -> Report:
    """Return a report with seconds if the table has its hardware, else the report unchanged.

    An emulated mesh gets none; see `on_hardware`.
    """
    hardware = None if report.mesh.emulated else find_hardware(report.mesh.kind)
    if hardware is None:
        return report
    return _Pricing(report.mesh, hardware).of(report)


def on_hardware(report: Report, name: str) -> Report:
    """Return a copy with the seconds that a report's program would take on other hardware.

    `name` is a chip (`v5e`, `h100`), or a TPU slice (`v5e:2x4`) that the devices fill row by row;
    without a slice each mesh axis has a physical dimension to itself. The program stays the one
    that was compiled; the compiler for that hardware may produce another. Raises `ValueError` that
    lists the names, or says how many devices do not fit.
    """
    short, _, _ = name.partition(":")
    hardware = find_hardware(short)
    if hardware is None:
        known = ", ".join(hardware.short for hardware in HARDWARE)
        raise ValueError(f"unknown hardware {name!r}; known are {known}")
    mesh, how = _as_if(report.mesh, hardware, topology(name))
    said = f"compiled for {report.mesh.kind}, priced as if for {hardware.name}: {how}"
    return _Pricing(mesh, hardware, (said,)).of(report)


def _as_if(mesh: Mesh, hardware: Hardware, shape: tuple[int, ...] | None) -> tuple[Mesh, str]:
    """Place a mesh on hardware, and say how."""
    if not hardware.dims:
        return replace(mesh, coords=None), f"devices in their order, {hardware.node} to a node"
    if shape is not None:
        _check(shape, hardware)
        slice_of = "x".join(map(str, shape))
        how = f"devices in their order, row by row on a slice of {slice_of} chips"
        target = f"{hardware.short}:{slice_of}"
        return replace(mesh, coords=laid(mesh, shape, hardware.devices), target=target), how
    sizes = [axis.size for axis in mesh.axes if axis.size > 1] or [1]
    if len(sizes) > hardware.dims or hardware.devices > 1 or not mesh.axes:
        dims = "x".join(["4"] * hardware.dims)
        raise ValueError(
            f"the layout of this mesh on {hardware.name} is ambiguous (each chip has "
            f"{hardware.dims} dimensions and {hardware.devices} devices): name a slice, as "
            f"{hardware.short}:{dims}"
        )
    _check(sizes, hardware)
    how = "each mesh axis along its own physical dimension"
    target = f"{hardware.short}:{'x'.join(map(str, sizes))}"
    return replace(mesh, coords=laid(mesh, sizes, 1), target=target), how


def _check(shape: Sequence[int], hardware: Hardware) -> None:
    """Refuse a slice that is larger than a pod."""
    pod = sorted(hardware.pod, reverse=True)
    sizes = sorted(shape, reverse=True)
    if len(sizes) > hardware.dims or any(a > b for a, b in zip(sizes, pod, strict=False)):
        whole = "x".join(map(str, hardware.pod)) or f"{hardware.dims} dimensions"
        raise ValueError(
            f"a slice of {'x'.join(map(str, shape))} chips is more than a pod of "
            f"{hardware.name}, {whole}: name a slice, as {hardware.short}:"
            f"{'x'.join(['4'] * hardware.dims)}"
        )


@dataclass(frozen=True)
class _Pricing:
    """Prices reports of a mesh on hardware; `said` are the first assumptions."""

    mesh: Mesh
    hardware: Hardware
    said: tuple[str, ...] = ()

    def of(self, report: Report) -> Report:
        torus = Torus.of(self.mesh, self.hardware)
        if self.hardware.dims and torus is None:
            return report
        times: dict[int, Time | None] = {}
        for collective in report.collectives:
            if not collective.wire_bytes:
                times[collective.id] = Time(0.0)
            elif torus is None:
                times[collective.id] = on_switch(collective, self.hardware)
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
            by_axis=_sums((axes_label(c), _total(c)) for c in known),
            by_phase=_sums((c.phase or "", _total(c)) for c in known if phases),
            links=_links(known, torus),
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
            yield from _formulas(report.collectives, hardware, torus)
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
    collectives: Sequence[Collective], hardware: Hardware, torus: Torus | None
) -> Iterator[str]:
    for kind in sorted({c.kind for c in collectives}):
        yield f"{kind}: {KINDS[kind].on_switch if torus is None else KINDS[kind].on_torus}"
    if hardware.link is not None:
        yield f"w, the bandwidth of a link in one direction: {hardware.link / 1e9:g} GB/s"
    if torus is not None:
        yield "V: the bytes of the whole array over a group of m chips; each sends both ways"
        if any(_is_no_box(c, torus) for c in collectives):
            yield _AROUND
        if hardware.network and any(torus.slices_of(c.groups) > 1 for c in collectives):
            network = f"{hardware.network / 1e9:g} GB/s for each chip, no latency is counted"
            yield f"between slices: bytes sent by the ring formula over {network}"
        shape = "x".join(str(size) for size in torus.shape if size > 1) or "1"
        closed = [name for name, ring in zip("xyz", torus.rings, strict=False) if ring]
        around = f"wraparound along {' and '.join(closed)}" if closed else "no wraparound"
        yield f"a slice of {shape} chips has {around}"
        yield _LATENCY
    elif hardware.network is not None:
        yield f"between nodes of {hardware.node}: {hardware.network / 1e9:g} GB/s per GPU"
        yield "no latency is counted"


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
        whole = max(moving, time.hops)
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


def _rides_on(collective: Collective, torus: Torus) -> str:
    slices = torus.slices_of(collective.groups)
    if slices > 1:
        return _NETWORK.format(slices)
    route = torus.route(collective.groups)
    return str(route) if route else _NO_BOX


def _links(collectives: Sequence[Collective], torus: Torus | None) -> dict[str, str]:
    """Return the links used by each set of axes."""
    if torus is None:
        return {}
    by_axes: dict[str, Counter[str]] = defaultdict(Counter)
    for collective in collectives:
        if not KINDS[collective.kind].in_pairs and collective.wire_bytes:
            by_axes[axes_label(collective)][_rides_on(collective, torus)] += 1
    # Groups over the same axes use the same links, except at the edge of a slice: take the most
    # common.
    return {axes: routes.most_common(1)[0][0] for axes, routes in by_axes.items()}
