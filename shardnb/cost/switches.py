"""What GPUs send over NVLink within a domain, and over the network to other domains, and its time.

A group of n GPUs is in N domains, with at least m in each. What has to reach other domains goes
there once and is spread over NVLink, as NCCL's hierarchical algorithms do; both go on at the same
time, in chunks, so the slower counts. Small messages take NCCL's latency: a start, and a step for
each neighbour in the ring (an all-reduce goes around twice).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from shardnb.cost.hardware import Hardware
from shardnb.cost.seconds import Time
from shardnb.report.model import Collective, Groups, Mesh
from shardnb.terms.collectives import KINDS


class Spread(NamedTuple):
    """Over how many domains a group goes at most, with how many members in one at least.

    `size` is the most members of a group; `within` says whether any two of them share a domain.
    """

    domains: int
    members: int
    size: int
    within: bool


class Sent(NamedTuple):
    """Bytes that one device sends per execution: within its domain, and to others."""

    within: int
    between: int


@dataclass(frozen=True)
class Domains:
    """The domain of each device of a mesh: what NVLink joins, or a TPU slice."""

    of: tuple[int, ...]
    _spreads: dict[Groups, Spread] = field(default_factory=dict, compare=False)

    @classmethod
    def on(cls, mesh: Mesh, hardware: Hardware) -> Domains:
        """Return those of a mesh; where it does not say them, devices fill them in their order."""
        known = mesh.slices if hardware.dims else mesh.domains
        if known is None:
            size = mesh.size if hardware.dims or mesh.hosts is not None else hardware.node
            known = tuple(position // size for position in range(mesh.size))
        return cls(known)

    def spread(self, groups: Groups) -> Spread:
        """Return how the groups of a collective spread over domains; a report has few groups."""
        if groups not in self._spreads:
            held = [Counter(self.of[position] for position in set(group)) for group in groups]
            self._spreads[groups] = Spread(
                max(map(len, held), default=1),
                min((count for one in held for count in one.values()), default=1),
                max((sum(one.values()) for one in held), default=1),
                any(count > 1 for one in held for count in one.values()),
            )
        return self._spreads[groups]

    def sent(self, collective: Collective) -> Sent:
        """Return what one device sends within its domain and to others, together `wire_bytes`.

        Of a permute, whose devices send either way, both are the most that one of them sends.
        """
        spread, total = self.spread(collective.groups), collective.wire_bytes
        if spread.domains == 1:
            return Sent(total, 0)
        if KINDS[collective.kind].in_pairs:
            return Sent(total if spread.within else 0, total)
        between = min(total, round(_to_others(collective, spread)))
        return Sent(total - between, between)


def _to_others(collective: Collective, spread: Spread) -> float:
    """Return the bytes that one device sends to other domains, by a hierarchical algorithm."""
    kind, size = collective.kind, collective.bytes
    share = (spread.domains - 1) / spread.domains
    match kind:
        case "reduce-scatter":
            return size * spread.size * share / spread.members
        case "all-gather":
            return size * share / spread.members
        case "all-reduce":
            return 2 * size * share / spread.members
        case "all-to-all" | "ragged-all-to-all":
            return size * share
        case "collective-permute" | "collective-broadcast":
            return size
        case _:
            assert_never(kind)


def on_switch(collective: Collective, domains: Domains, hardware: Hardware) -> Time | None:
    """Return the seconds of a collective between GPUs, in one domain or in several."""
    sent, spread = domains.sent(collective), domains.spread(collective.groups)
    if hardware.link is None or (sent.between and hardware.network is None):
        return None
    moving = sent.within / hardware.link
    if sent.between and hardware.network:
        moving = max(moving, sent.between / hardware.network)
    return Time(moving, _latency(collective, spread, hardware), adds=True)


def _latency(collective: Collective, spread: Spread, hardware: Hardware) -> float:
    latency = hardware.latency
    if latency is None:
        return 0.0
    turns = 2 if collective.kind == "all-reduce" else 1
    if KINDS[collective.kind].in_pairs:
        far, near = int(spread.domains > 1), int(spread.domains == 1)
    else:
        far = turns * (spread.domains - 1)
        near = turns * (spread.size - 1) - far
    return latency.start + near * latency.step + far * latency.network
