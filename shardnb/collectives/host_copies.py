"""Arrays that a program copies between a device and the memory of its host."""

from __future__ import annotations

import re
from typing import NamedTuple

from shardnb.collectives.find import Place, places_of
from shardnb.report.dtypes import size_in_bytes
from shardnb.texts.hlo import Module

_HOST = "S(5)"
"""XLA's number of the host's memory, in the layout of an array."""
_LAYOUT = re.compile(r"\w+\[[\d,]*\](?:\{([^}]*)\})?")


class HostCopies(NamedTuple):
    """Bytes that one device gets from its host in a run, and that it gives back."""

    to_device: int = 0
    to_host: int = 0


def host_copies(module: Module) -> HostCopies:
    """Add up the copies of a program; those in a loop of unknown trips count as often as known.

    An asynchronous copy has its result first and its operand second.
    """
    places = places_of(module)
    to_device = to_host = 0
    for start in module.of_kind("copy-start"):
        on_host = [_HOST in layout for layout in _LAYOUT.findall(start.shape)[:2]]
        if len(on_host) < 2 or on_host[0] == on_host[1]:
            continue
        place = places.get(start.computation, Place())
        times = place.least if place.trips is None else place.trips
        sent = size_in_bytes(*start.arrays[0]) * times
        to_host, to_device = to_host + sent * on_host[0], to_device + sent * on_host[1]
    return HostCopies(to_device, to_host)
