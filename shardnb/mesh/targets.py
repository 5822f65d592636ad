"""The devices of a mesh: emulated, attached, or those of a TPU topology or GPU cluster."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from shardnb.jax_compat.devices import MOST_EMULATED, emulated_devices
from shardnb.jax_compat.parts import NotAvailable
from shardnb.mesh import gpus, topologies
from shardnb.mesh.topologies import Devices
from shardnb.report.invalid_input import InvalidInput

TARGETS = ("cpu", "attached", *topologies.NAMES, *gpus.NAMES)
"""Those of every machine, and some TPU topologies and GPU clusters."""

_CHIP = re.compile(r"(\d+\*)?([A-Za-z]+(?:\d\w*?)?(?:-\d+gb)?)(?:([:=-])(\d+(?:x\d+)*))?")


def devices_for(target: str, sizes: Sequence[int]) -> Devices:
    """Return the devices of a target as an array of shape `sizes`.

    `cpu` emulates up to 2,048, separate from the kernel's own backend; `attached` uses the first of
    `jax.devices()`; the devices of a TPU topology such as `v5e:2x4`, of a
    GPU cluster such as `h100:4x8`, or of slices of them (`2*v5e:4x4`) can only be compiled for.
    Raises `InvalidInput` for an unknown target, or if the number of devices does not match.
    """
    _refuse_unknown(target)
    layout = gpus.laid_out if gpus.is_cluster(target) else topologies.laid_out
    if compiled_for(target):
        try:
            return layout(target, sizes)
        except NotAvailable as error:
            raise InvalidInput(f"{target} cannot be compiled for: {error}") from error
    count = math.prod(sizes)
    if target == "cpu":
        refuse_too_many(count)
        devices = emulated_devices(count)
    elif target == "attached":
        devices = jax.devices()
        if count > len(devices):
            raise InvalidInput(
                f"the mesh has {count} devices, and {len(devices)} {devices[0].platform} "
                f"device{'s are' if len(devices) > 1 else ' is'} attached; "
                "--on cpu emulates up to 2,048"
            )
    else:
        raise InvalidInput(
            f"{target!r} is not a target; the targets are cpu, attached, a TPU topology such as "
            "v5e:2x4, a GPU cluster such as h100:4x8, or slices of them such as 2*v5e:4x4"
        )
    return np.array(devices[:count], dtype=object).reshape(tuple(sizes))


def offered(fragment: str) -> list[str]:
    """Return the targets whose names may begin with a fragment, for tab completion.

    Of TPUs that have other names, and machine types, where no topology begins so.

    >>> offered("2*h100:4"), offered("ironwood:4"), offered("v5p-1")
    (['2*h100:4x8'], ['ironwood:4x4x4'], ['v5p-16', 'v5p-128'])
    """
    count = re.match(r"[1-9]\d*\*", fragment)
    slices, begun = (count[0], fragment[count.end() :]) if count else ("", fragment)
    several = (one for one in TARGETS[2:] if "*" not in one)
    names = [one for one in (several if slices else TARGETS) if one.startswith(begun)]
    if not names:
        names = [one for one in _other_names() if one.startswith(begun)]
    return [slices + one for one in names]


def _other_names() -> Iterator[str]:
    """Yield other names of TPU topologies: those of their makers, and machine types."""
    for alias, name in topologies.ALIASES.items():
        yield from (alias + one.removeprefix(name) for one in TARGETS if one.startswith(f"{name}:"))
    for kind in topologies.GENERATIONS.values():
        yield from (f"{kind.name}-{kind.counted * chips}" for chips in (4, 8, 16, 32, 64, 128, 256))


def _refuse_unknown(target: str) -> None:
    """Raise `InvalidInput` for a chip that does not exist, or is written otherwise."""
    match = _CHIP.fullmatch(target)
    if match is None or target in TARGETS:
        return
    slices, name, by, sizes = match.groups()
    chip = name.lower()
    if chip in gpus.GPUS or chip in topologies.GENERATIONS or chip in topologies.ALIASES:
        numbered = by == "-" and chip not in gpus.GPUS
        begun = f"{slices or ''}{chip}{by if numbered else ':'}"
        if chip != name or not sizes or (by == "-" and not numbered):
            form = f"{begun}{sizes}" if sizes else offered(begun)[0]
            raise InvalidInput(f"{target!r} is not a target; did you mean {form}?")
    elif sizes:
        raise InvalidInput(
            f"{name!r} is not a chip that can be compiled for; the TPUs are "
            f"{', '.join(topologies.GENERATIONS)}, and the GPUs are {', '.join(gpus.GPUS)}"
        )


def refuse_too_many(count: int) -> None:
    """Raise `ValueError` for more devices than can be emulated."""
    if count > MOST_EMULATED:
        raise ValueError(
            f"expected at most {MOST_EMULATED:,} devices, which is what XLA emulates on a CPU, "
            f"got a mesh of {count:,}; a TPU topology such as v5p:16x16x16 can have more"
        )


def compiled_for(target: str) -> bool:
    """Whether a target is a TPU topology or a GPU cluster, for which nothing runs here."""
    return gpus.is_cluster(target) or topologies.is_topology(target)


def is_target(text: str) -> bool:
    """Whether a text names devices, also ones that do not exist.

    >>> is_target("cpu"), is_target("2*v5e:4x4"), is_target("auto")
    (True, True, False)
    """
    return text in ("cpu", "attached") or compiled_for(text)


def target_name(target: str) -> str:
    """Return the canonical name of a target: a TPU topology by its chips."""
    _refuse_unknown(target)
    if gpus.is_cluster(target):
        return str(gpus.parse(target))
    return topologies.canonical(target) if topologies.is_topology(target) else target
