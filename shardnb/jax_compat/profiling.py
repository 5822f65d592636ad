"""The profiler: running something under it, and reading the events of what it wrote."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
from jax.profiler import ProfileData, ProfileOptions

from shardnb.jax_compat import parts

# An XSpace with one plane, one line and one event.
_SMALLEST = b"\x0a\x04\x1a\x02\x22\x00"
# Operations of CPU devices are events of the host, of the first level.
_LEVEL = 1


class InUse(RuntimeError):
    """Another session of the profiler is active in this process."""


@contextmanager
def recorded() -> Iterator[list[bytes]]:
    """Record what runs in the block; the list then holds a serialized XSpace.

    Raises `InUse` before the block runs, and `NotAvailable`.
    """
    _end(_begun())  # jaxlib says only at the end of a session that another one is active
    written: list[bytes] = []
    session = _begun()
    try:
        yield written
    finally:
        written.append(_end(session))


def _begun() -> Any:
    options = ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, _LEVEL
    return parts.PROFILER_SESSION.call(options)


def _end(session: Any) -> bytes:
    try:
        space: bytes = session.stop()
    except jax.errors.JaxRuntimeError as error:
        raise InUse(
            "the profiler is in use: only one trace can be taken at a time, so end the other one "
            "first (jax.profiler.stop_trace())"
        ) from error
    return space


def events_of(space: bytes) -> Iterator[Iterable[Any]]:
    """Yield the events of each line of a serialized XSpace; raises `ValueError` for others."""
    _kept_types()
    try:
        data = ProfileData.from_serialized_xspace(space)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    for plane in data.planes:
        for line in plane.lines:
            yield line.events


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
