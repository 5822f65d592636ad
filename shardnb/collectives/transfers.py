"""Sends between devices, and over a host to another slice: collectives by other names in HLO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shardnb.collectives.wire_bytes import wire_bytes
from shardnb.report.dtypes import size_in_bytes
from shardnb.report.model import Groups, Mesh
from shardnb.terms.collectives import KINDS, Kind, kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Array, Instruction
from shardnb.texts.replica_groups import AxisFinder

_PAIRS = re.compile(r"_xla_send_recv_source_target_pairs=\"?(\{(?:\{\d+,\d+\},?)*\})")
# TPU's runtime for the network between slices. It turns a collective over slices into a send to the
# # host and a receive from it, both named after the collective.
_RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="(([A-Za-z-]+)[\w.]*)"')
_BETWEEN_SLICES = "xla_megascale_runtime"
_TYPE = re.compile(r'_xla_megascale_transfer_type="(\w+)"')
_KINDS: Mapping[str, Kind] = {
    "ONE_TO_ONE": "collective-permute",
    **{kind.upper().replace("-", "_"): kind for kind in KINDS},
}
# The devices that a transfer joins: those of one number in several slices, `{1,2}x{0:3}`, or lists.
_SAME_PLACE = re.compile(r'_xla_megascale_target="?\{([\d,:]+)\}x\{([\d,:]+)\}')
_LISTED = re.compile(r'_xla_megascale_target="?\{((?:\{[\d,>-]+\},?)+)\}')
_IDS_IN_A_SLICE = 100_000
"""A TPU's id is its number in its slice, and this many for each slice."""

BETWEEN_SLICES = "over the hosts, between slices"
SEND_AND_RECV = "send and recv"


class Transfer(NamedTuple):
    """A send: the kind of collective that it is, its result on a device, the devices it joins.

    These are positions in the mesh, or none where the text does not tell; `algorithm` says how it
    is sent.
    """

    instruction: Instruction
    kind: Kind
    result: Array
    groups: Groups
    algorithm: str

    @property
    def wire_bytes(self) -> int:
        """Bytes that one device sends: by the ring formula, what it sends itself without groups."""
        if not self.groups or self.algorithm == SEND_AND_RECV:
            return size_in_bytes(*self.instruction.arrays[0])
        return wire_bytes(self.kind, size_in_bytes(*self.result), len(self.groups[0]))


def transfers(module: Module, finder: AxisFinder) -> Iterator[Transfer]:
    """Yield the sends between devices, each once, where it starts."""
    received = (one for one in module.of_kind("recv") if one.arrays)
    results = {rendezvous(one.attributes): one.arrays[0] for one in received}
    for send in module.of_kind("send"):
        if not send.arrays:
            continue
        if not is_host_transfer(send):
            pairs = _PAIRS.search(send.attributes)
            groups = finder.groups(pairs[1], permute=True) if pairs else ()
            yield Transfer(send, "collective-permute", send.arrays[0], groups, SEND_AND_RECV)
        elif (kind := _kind_between_slices(send)) is not None:
            result = results.get(rendezvous(send.attributes), send.arrays[0])
            groups = _joined(send.attributes, finder.mesh, in_pairs=KINDS[kind].in_pairs)
            yield Transfer(send, kind, result, groups, BETWEEN_SLICES)


def rendezvous(text: str) -> str:
    """Return the name under which a host sends and receives; "" where there is none."""
    named = _RENDEZVOUS.search(text)
    return named[1] if named else ""


def _kind_between_slices(send: Instruction) -> Kind | None:
    """Return the kind of a transfer between slices, None for one that stays with its host."""
    if _BETWEEN_SLICES not in send.attributes:
        return None
    stated, named = _TYPE.search(send.attributes), _RENDEZVOUS.search(send.attributes)
    if stated is not None:
        return _KINDS.get(stated[1])
    return kind_of(named[2]) if named else None


def _joined(text: str, mesh: Mesh, *, in_pairs: bool) -> Groups:
    """Return the devices that a transfer joins as positions; none where one is not of the mesh."""
    same, listed = _SAME_PLACE.search(text), _LISTED.search(text)
    if same is not None:
        numbers, places = _numbers(same[1]), _numbers(same[2])
        ids = [[number * _IDS_IN_A_SLICE + place for number in numbers] for place in places]
    elif listed is not None:
        ids = [
            [int(number) for number in re.findall(r"\d+", part)]
            for part in re.findall(r"\{([\d,>-]+)\}", listed[1])
        ]
    else:
        return ()
    positions = {number: at for at, number in enumerate(mesh.device_ids)}
    known = all(number in positions for group in ids for number in group)
    if not known or (in_pairs and any(len(group) != 2 for group in ids)):
        return ()
    return tuple(tuple(positions[number] for number in group) for group in ids)


def _numbers(text: str) -> list[int]:
    """Read numbers and ranges, whose ends belong to them.

    >>> _numbers("0:2,5")
    [0, 1, 2, 5]
    """
    ends = [list(map(int, part.split(":"))) for part in text.split(",")]
    return [number for end in ends for number in range(end[0], end[-1] + 1)]


def is_host_transfer(instruction: Instruction) -> bool:
    """Whether a send or receive is between a device and its host."""
    return "is_host_transfer=true" in instruction.attributes


def host_transfers(module: Module) -> int:
    """Count the transfers between devices and their hosts that reach no other device."""
    sends = [
        one
        for one in module.of_kind("send", "recv")
        if is_host_transfer(one) and _BETWEEN_SLICES not in one.attributes
    ]
    return len(sends) + len(module.of_kind("infeed", "outfeed"))
