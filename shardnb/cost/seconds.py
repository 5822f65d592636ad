"""Seconds of one collective by a formula, for chips on a torus.

V is the bytes of the whole array over a group of m chips, w the bandwidth of a link in one
direction. A ring gives a chip 2w and a line w (its ends have one neighbour); the lines of a group
add up. Groups that do not form a box send around in mesh order, over links that several groups may
share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from shardnb.cost.hardware import Hardware
from shardnb.cost.links import ChipRow, Route, Torus
from shardnb.report.model import Collective
from shardnb.terms.collectives import KINDS


@dataclass(frozen=True)
class Time:
    """Seconds for the bytes, and the latency of the hops: the greater counts, or both if it `adds`.

    Over links the first byte is under way while others are sent; a runtime such as NCCL starts
    first, and waits for its steps.
    """

    moving: float
    hops: float = 0.0
    adds: bool = False

    def with_bytes_of(self, moving: float) -> float:
        """Return the seconds of one execution that takes so many for the bytes of all members."""
        return moving + self.hops if self.adds else max(moving, self.hops)

    @property
    def total(self) -> float:
        """The seconds of one execution."""
        return self.with_bytes_of(self.moving)


def on_torus(collective: Collective, torus: Torus, hardware: Hardware) -> Time | None:
    """Return the seconds of a collective over links, or None if no formula fits its groups.

    One between slices goes over the data-center network, by the ring formula.
    """
    if hardware.link is None or not collective.groups:
        return None
    if torus.slices_of(collective.groups) > 1:
        network = hardware.network and hardware.network / torus.devices
        if not network:
            return None
        turns = 2 if collective.kind == "all-reduce" else 1
        step = hardware.latency.network if hardware.latency else 0.0
        slices = torus.slices_of(collective.groups)
        return Time(collective.wire_bytes / network, turns * (slices - 1) * step)
    hop = hardware.latency.step if hardware.latency else 0.0
    return _within_slice(collective, torus, hardware.link, hop)


def _within_slice(collective: Collective, torus: Torus, link: float, hop: float) -> Time | None:
    if KINDS[collective.kind].in_pairs:
        hops, load = torus.permutation(collective.groups)
        return Time(collective.bytes * load / link, hops * hop) if load else None
    turns = 2 if collective.kind == "all-reduce" else 1
    route = torus.route(collective.groups)
    if route is None:
        return _around(collective, torus, link, turns * hop)
    if not route.lines:
        return None
    moving = _moving(collective, route, link)
    return None if moving is None else Time(moving, turns * route.hops * hop)


def _moving(collective: Collective, route: Route, link: float) -> float | None:
    kind, size, chips = collective.kind, collective.bytes, route.chips
    share = (chips - 1) / chips
    over = sum(_ways(line) for line in route.lines) * link / route.sharers
    match kind:
        case "all-gather":
            return size * share / over
        case "reduce-scatter":
            return size * chips * route.per_chip * share / over
        case "all-reduce":
            return 2 * size * share / over
        case "all-to-all" | "ragged-all-to-all":
            held = size * route.per_chip * route.sharers
            return max(held * line.size / (4 * _ways(line)) for line in route.lines) / link
        case "collective-broadcast":
            return size * route.sharers / link
        case "collective-permute":
            return None
        case _:
            assert_never(kind)


def _around(collective: Collective, torus: Torus, link: float, hop: float) -> Time | None:
    """Return the seconds for groups that do not form a box: each chip sends to the next."""
    if len({torus.coords[at] for at in collective.groups[0]}) < len(collective.groups[0]):
        return None
    if not KINDS[collective.kind].to_neighbours:
        return None
    one, both = torus.ring_loads(collective.groups)
    chips = len(collective.groups[0])
    furthest = torus.permutation(collective.groups[0][i : i + 2] for i in range(chips - 1))[0]
    moving = collective.wire_bytes * min(one, both / 2) / link
    return Time(moving, furthest * (chips - 1) * hop)


def _ways(line: ChipRow) -> float:
    """Count the one-way links that a chip has along a line for its group."""
    return (2 if line.ring else 1) / line.stride
