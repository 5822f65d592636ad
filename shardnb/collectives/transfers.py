"""Sends between devices, and over a host to another slice: collectives that HLO calls otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from shardnb.terms.collectives import Kind, kind_of
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Array, Instruction

_PAIRS = re.compile(r"_xla_send_recv_source_target_pairs=\"?(\{(?:\{\d+,\d+\},?)*\})")
# TPU's runtime for the network between slices. It turns a collective over slices into a send to the
# host and a receive from it, and names the two after the collective that they were.
_RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([a-z-]+)[\w.]*"')
_BETWEEN_SLICES = "xla_megascale_runtime"


class Transfer(NamedTuple):
    """A send: the kind of collective that it is, its (source, target) pairs, how it is sent.

    The devices that a transfer over hosts joins are not known; `pairs` is then None.
    """

    instruction: Instruction
    kind: Kind
    pairs: str | None
    algorithm: str

    @property
    def array(self) -> Array:
        """What one device sends: HLO's send has it first, then a context and a token."""
        return self.instruction.arrays[0]


def transfers(module: Module) -> Iterator[Transfer]:
    """Give the sends that exchange data between devices, each once, where it starts."""
    for send in module.of_kind("send"):
        if not is_host_transfer(send):
            pairs = _PAIRS.search(send.attributes)
            kind: Kind | None = "collective-permute"
            algorithm = "send and recv"
        else:
            named = _RENDEZVOUS.search(send.attributes)
            pairs, kind = None, kind_of(named[1]) if named else None
            algorithm = "over the hosts, between slices"
            if _BETWEEN_SLICES not in send.attributes:
                continue
        if kind is not None and send.arrays:
            yield Transfer(send, kind, pairs[1] if pairs else None, algorithm)


def is_host_transfer(instruction: Instruction) -> bool:
    """Whether a send or receive is one between a device and its host."""
    return "is_host_transfer=true" in instruction.attributes


def host_transfers(module: Module) -> int:
    """Count the transfers between devices and their hosts that reach no other device."""
    sends = [
        one
        for one in module.of_kind("send", "recv")
        if is_host_transfer(one) and _BETWEEN_SLICES not in one.attributes
    ]
    return len(sends) + len(module.of_kind("infeed", "outfeed"))
