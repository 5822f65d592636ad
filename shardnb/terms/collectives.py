"""The collectives of HLO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

Kind = Literal[
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
]
"""The opcode; an asynchronous one is written in HLO as `all-reduce-start` and `-done`."""

Ring = Literal["all but its own", "a result for each other", "there and back", "all"]
"""What one device sends by the ring formula, for a result of B bytes in a group of n devices:
B·(n-1)/n, B·(n-1), 2·B·(n-1)/n, or B.
"""


@dataclass(frozen=True)
class CollectiveKind:
    """A kind of collective.

    `ring` is the formula of the bytes sent. `on_torus` and `on_switch` say the formula of the
    seconds, for chips with links and for GPUs on a switch. `reduces` says that it combines
    the devices' values, `in_pairs` that HLO states (source, target) pairs and not groups,
    `to_neighbours` that a device need only ever send to the next one of its group,
    `numbers_devices` that its groups may do so in HLO (`use_global_device_ids`).
    """

    name: Kind
    ring: Ring
    on_torus: str
    on_switch: str
    reduces: bool = False
    in_pairs: bool = False
    to_neighbours: bool = False
    numbers_devices: bool = False


_GATHERED = "V·(m-1)/m over the links of a chip"
_BY_RING = "bytes sent by the ring formula over w"
_AT_MOST = "that of an all-to-all, the most it can be"
_SENT = "bytes over w"


def _row(kind: Kind) -> CollectiveKind:
    match kind:
        case "all-reduce":
            twice = f"2·{_GATHERED}"
            return CollectiveKind(
                kind,
                "there and back",
                twice,
                _BY_RING,
                reduces=True,
                to_neighbours=True,
                numbers_devices=True,
            )
        case "all-gather":
            ring: Ring = "all but its own"
            return CollectiveKind(
                kind, ring, _GATHERED, _BY_RING, to_neighbours=True, numbers_devices=True
            )
        case "reduce-scatter":
            ring = "a result for each other"
            return CollectiveKind(
                kind,
                ring,
                _GATHERED,
                _BY_RING,
                reduces=True,
                to_neighbours=True,
                numbers_devices=True,
            )
        case "all-to-all":
            line = "V·l/m over 8w on a ring of l chips and over 4w on a line, the slowest counts"
            return CollectiveKind(kind, "all but its own", line, "bytes sent to others over w")
        case "ragged-all-to-all":
            return CollectiveKind(kind, "all but its own", _AT_MOST, _AT_MOST)
        case "collective-permute":
            load = "bytes times the pairs that share a link, each the shortest way, over w"
            return CollectiveKind(kind, "all", load, _SENT, in_pairs=True)
        case "collective-broadcast":
            return CollectiveKind(kind, "all", _SENT, _SENT)


KINDS: Mapping[Kind, CollectiveKind] = table(Kind, _row)


_BY_OPCODE: Mapping[str, Kind] = {
    opcode: kind for kind in KINDS for opcode in (kind, f"{kind}-start")
}


def kind_of(opcode: str) -> Kind | None:
    """Return the kind of the collective that an opcode is or starts, None for another.

    >>> kind_of("all-gather-start"), kind_of("all-gather-done"), kind_of("dot")
    ('all-gather', None, None)
    """
    return _BY_OPCODE.get(opcode)


def reduces(opcode: str) -> bool:
    """Whether an opcode is that of a collective that combines the devices' values.

    >>> reduces("reduce-scatter"), reduces("all-gather"), reduces("reduce")
    (True, False, False)
    """
    kind = kind_of(opcode)
    return kind is not None and KINDS[kind].reduces


Within = Literal["while", "while condition", "conditional"]
"""What a collective stands in: a loop's body, a loop's condition, a branch."""
