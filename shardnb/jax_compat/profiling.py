"""The profiler: running something under it, and reading the events of what it wrote."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from jax.profiler import ProfileData

# An XSpace with one plane, one line and one event.
_SMALLEST = b"\x0a\x04\x1a\x02\x22\x00"


def events_of(space: bytes) -> Iterator[Any]:
    """Yield all events of a serialized XSpace; raises `ValueError` where it is not one."""
    _kept_types()
    try:
        data = ProfileData.from_serialized_xspace(space)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    for plane in data.planes:
        for line in plane.lines:
            yield from line.events


@cache
def _kept_types() -> tuple[Any, ...]:
    """Return what keeps the types of jaxlib's iterators alive.

    jaxlib makes the type of an event's stats where there is no iterator of it, and warns: a warning
    that is an error ends the process there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planes = ProfileData.from_serialized_xspace(_SMALLEST).planes
        events = [event for plane in planes for line in plane.lines for event in line.events]
        return tuple(event.stats for event in events)
