"""Seconds of one collective by a formula, for chips on a torus and for GPUs on a switch.

V is the bytes of the whole array over a group of m chips, w the bandwidth of a link in one
direction. A ring gives a chip 2w and a line w (its ends have one neighbour); the lines of a group
add up. Groups that do not form a box send around in mesh order, over links that several groups may
share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from shardnb.cost.hardware import Hardware
from shardnb.cost.links import ChipRow, Route, Torus
from shardnb.report.model import Collective, Groups
from shardnb.terms.collectives import KINDS


@dataclass(frozen=True)
class Time:
    """Seconds for the bytes, and the latency of the hops; the greater of them counts."""

    moving: float
    hops: float = 0.0

    @property
    def total(self) -> float:
        """The seconds of one execution."""
        return max(self.moving, self.hops)


def on_torus(collective: Collective, torus: Torus, hardware: Hardware) -> Time | None:
    """Return the seconds of a collective over links, or None if no formula fits its groups.

    One between slices goes over the data-center network, by the ring formula.
    """
    if hardware.link is None or not collective.groups:
        return None
    if torus.slices_of(collective.groups) > 1:
        network = hardware.network and hardware.network / torus.devices
        return Time(collective.wire_bytes / network) if network else None
    return _within_slice(collective, torus, hardware.link, hardware.hop or 0.0)


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


def on_switch(collective: Collective, hardware: Hardware) -> Time | None:
    """Return the seconds of a collective between GPUs, in one node or in several."""
    if hardware.link is None:
        return None
    inside = collective.wire_bytes / hardware.link
    nodes, members = _nodes(collective.groups, hardware.node)
    if nodes == 1:
        return Time(inside)
    if hardware.network is None:
        return None
    return Time(max(inside, _abroad(collective, nodes, members) / hardware.network))


@lru_cache(maxsize=256)
def _nodes(groups: Groups, node: int) -> tuple[int, int]:
    """Return the most nodes that a group spans, and the fewest members in one node."""
    nodes, members = 1, node
    for group in groups:
        held = Counter(position // node for position in group)
        nodes = max(nodes, len(held))
        members = min(members, *held.values())
    return nodes, members


def _abroad(collective: Collective, nodes: int, members: int) -> float:
    """Return the bytes that one GPU sends to other nodes or receives from them."""
    kind, size = collective.kind, collective.bytes
    share = (nodes - 1) / nodes
    match kind:
        case "reduce-scatter":
            return size * len(collective.groups[0]) * share / members
        case "all-gather":
            return size * share / members
        case "all-reduce":
            return 2 * size * share / members
        case "all-to-all" | "ragged-all-to-all":
            return size * share
        case "collective-permute" | "collective-broadcast":
            return size
        case _:
            assert_never(kind)
