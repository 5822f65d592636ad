"""TPU topologies: devices that programs are compiled for without a TPU."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from shardnb.cost import find_hardware
from shardnb.jax_compat.devices import QUIET_LIBTPU, laid_on_torus, topology_devices
from shardnb.jax_compat.error_wordings import HOSTS_DO_NOT_DIVIDE, NO_LIBTPU, compilers_words
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.mesh import compilers
from shardnb.report.invalid_input import InvalidInput

Devices = NDArray[np.object_]

FORM = (
    "a TPU topology is written as v5e:2x4 (its chips) or v5e-8 (as its machine type), and several "
    "slices of it as 2*v5e:2x4"
)

_SLICES = re.compile(r"(?:(\d+)\*)?([^*]+)")
_GRID = re.compile(r"([a-z]\w*)[:=](\d+(?:x\d+)*)")
_NUMBERED = re.compile(r"([a-z]\w*)-(\d+)")


@dataclass(frozen=True)
class Generation:
    """A TPU generation: its name, its torus dimensions, and what the number in `v4-8` counts.

    `counted` is how many of them one chip has: 2 if the number counts cores.
    """

    name: str
    dimensions: int
    counted: int

    def grid(self, number: int) -> tuple[int, ...] | None:
        """Return the grid of chips of the machine type with this number, or None.

        >>> GENERATIONS["v4"].grid(32), GENERATIONS["v5e"].grid(8)
        ((2, 2, 4), (2, 4))
        """
        chips, left = divmod(number, self.counted)
        if left or chips < 1 or chips & (chips - 1):
            return None
        doublings, dims = chips.bit_length() - 1, self.dimensions
        sizes = [2 ** ((doublings + i) // dims) for i in range(dims)]
        return tuple(sorted(sizes, reverse=dims == 3 and chips < 8))


GENERATIONS = {
    kind.name: kind
    for kind in (
        Generation("v2", 2, 2),
        Generation("v3", 2, 2),
        Generation("v4", 3, 2),
        Generation("v5e", 2, 1),
        Generation("v5p", 3, 2),
        Generation("v6e", 2, 1),
        Generation("tpu7x", 3, 2),
    )
}
# The largest TPU slice, of TPU7x. libtpu ends its process at a topology without chips, and takes
# minutes to make millions (test_a_topology_without_chips_is_refused).
_MOST_CHIPS = 9_216
# libtpu numbers slices up to at least 1,000; the devices of this many chips take a second to make.
_MOST_IN_ALL = 65_536
ALIASES = {
    "v5litepod": "v5e",
    "v5lite": "v5e",
    "trillium": "v6e",
    "tpu7": "tpu7x",
    "v7x": "tpu7x",
    "ironwood": "tpu7x",
}
"""Other names of TPU generations: those of machine types, of their makers, and of before."""

NAMES = (
    "v2:2x2",
    "v3:4x4",
    "v3:32x32",
    "v4:2x2x1",
    "v4:4x4x4",
    "v4:8x8x16",
    "v5e:2x2",
    "v5e:2x4",
    "v5e:4x4",
    "v5e:8x8",
    "v5e:16x16",
    "2*v5e:4x4",
    "2*v5e:16x16",
    "v5p:2x2x1",
    "v5p:2x2x2",
    "v5p:4x4x4",
    "v5p:8x8x8",
    "2*v5p:4x4x4",
    "v6e:2x4",
    "v6e:4x4",
    "v6e:16x16",
    "tpu7x:2x2x1",
    "tpu7x:2x2x2",
    "tpu7x:4x4x4",
)
"""Some topologies, for tab completion."""


def is_topology(text: str) -> bool:
    """Whether a text is written as a TPU topology, `v5e:2x4` or `2*v5e-8`, even if none exists."""
    match = _SLICES.fullmatch(text)
    return match is not None and bool(_GRID.fullmatch(match[2]) or _NUMBERED.fullmatch(match[2]))


def in_slices(text: str) -> tuple[int, str]:
    """Return how many slices a text names, and the topology of each.

    >>> in_slices("2*v5e:4x4"), in_slices("v5e:4x4")
    ((2, 'v5e:4x4'), (1, 'v5e:4x4'))
    """
    match = _SLICES.fullmatch(text)
    return (int(match[1] or 1), match[2]) if match else (1, text)


def canonical(text: str) -> str:
    """Name a topology by its slices, and the chips of each.

    Raises `InvalidInput` with the right form.

    >>> canonical("v5e-8"), canonical("v5litepod-8"), canonical("2*v5p=2x2x2")
    ('v5e:2x4', 'v5e:2x4', '2*v5p:2x2x2')
    """
    count, one = in_slices(text)
    name, chips = _of_one_slice(one)
    if not 0 < count * chips <= _MOST_IN_ALL:
        raise InvalidInput(
            f"expected slices of 1 to {_MOST_IN_ALL:,} chips in all, got {text!r} with "
            f"{count * chips:,}; {FORM}"
        )
    return f"{count}*{name}" if count > 1 else name


def _of_one_slice(text: str) -> tuple[str, int]:
    """Return the name of a topology of one slice, and the number of its chips."""
    match = _GRID.fullmatch(text) or _NUMBERED.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text!r} is not a TPU topology; {FORM}")
    kind = GENERATIONS.get(ALIASES.get(match[1], match[1]))
    if kind is None:
        raise InvalidInput(f"{match[1]!r} is not a TPU; the TPUs are {', '.join(GENERATIONS)}")
    sizes = _sizes(match[2]) if "-" not in text else kind.grid(int(match[2]))
    if sizes is None:
        known = (f"{kind.name}-{kind.counted * 2**i}" for i in (2, 3, 5, 7))
        raise InvalidInput(f"{text!r} is not a TPU machine type; some are {', '.join(known)}")
    chips = math.prod(sizes)
    if not 0 < chips <= _MOST_CHIPS:
        raise InvalidInput(
            f"expected a TPU topology of 1 to {_MOST_CHIPS:,} chips, got {text!r} with {chips:,}; "
            f"{FORM}"
        )
    # libtpu ends its process at a slice that is larger than a pod.
    hardware = find_hardware(kind.name)
    pod = sorted(hardware.pod, reverse=True) if hardware is not None else []
    if any(size > most for size, most in zip(sorted(sizes, reverse=True), pod, strict=False)):
        raise InvalidInput(
            f"expected a slice of a {kind.name} pod, which has {'x'.join(map(str, pod))} chips, "
            f"got {text!r}; several slices are written as 2*{kind.name}:"
            f"{'x'.join(['4'] * kind.dimensions)}"
        )
    return f"{kind.name}:{'x'.join(map(str, sizes))}", chips


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))


def laid_out(name: str, sizes: Sequence[int]) -> Devices:
    """Return the devices of a topology as an array of shape `sizes`, axes on neighbouring chips.

    JAX chooses the layout, as `jax.make_mesh` does on the machine itself. The two devices of one
    chip are neighbours too. Several slices are laid along the first axes. Raises `InvalidInput` if
    the number of devices differs.
    """
    name = canonical(name)
    count, _ = in_slices(name)
    devices = topology(name)
    if len(devices) != math.prod(sizes):
        raise InvalidInput(_misfit(name, len(devices), sizes))
    if count == 1:
        return _on_slice(devices, sizes)
    over, within = _shared_out(count, sizes)
    blocks = np.empty(over, dtype=object).reshape(-1)
    for number in range(count):
        held = [device for device in devices if device.slice_index == number]
        blocks[number] = _on_slice(held, within)
    # Nested lists of blocks, the first dimension outside, as np.block takes them.
    joined: Devices = np.block(blocks.reshape(over).tolist())
    return joined


def _shared_out(count: int, sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the part of each mesh axis that is over slices, and the part within each of them.

    The first axes go over slices, which are the slowest to reach.

    >>> _shared_out(4, (2, 8, 4))
    ((2, 2, 1), (1, 4, 4))
    """
    over: list[int] = []
    for size in sizes:
        over.append(math.gcd(size, count))
        count //= over[-1]
    return tuple(over), tuple(size // part for size, part in zip(sizes, over, strict=True))


def _on_slice(devices: Sequence[Any], sizes: Sequence[int]) -> Devices:
    """Arrange the devices of one slice."""
    # JAX arranges only full v4 chips, but here the devices may be single cores of them.
    if devices[0].device_kind == "TPU v4" and any(device.core_on_chip for device in devices):
        return _by_chip(devices, sizes)
    grid: Devices = laid_on_torus(devices, sizes)
    return grid


def _by_chip(devices: Sequence[Any], sizes: Sequence[int]) -> Devices:
    """Arrange the chips; the second core of each is next to the first, on the last even axis."""
    axis = max(i for i, size in enumerate(sizes) if size % 2 == 0)
    halved = [size // 2 if i == axis else size for i, size in enumerate(sizes)]
    chips = laid_on_torus([device for device in devices if device.core_on_chip == 0], halved)
    second = {tuple(device.coords): device for device in devices if device.core_on_chip}
    others = np.empty(chips.shape, dtype=object)
    for place, device in np.ndenumerate(chips):
        others[place] = second[tuple(device.coords)]
    return np.stack([chips, others], axis=axis + 1).reshape(tuple(sizes))


def _misfit(name: str, count: int, sizes: Sequence[int]) -> str:
    """Say that a mesh and a topology have different numbers of devices, and what would fit."""
    wanted = math.prod(sizes)
    fitting = " or ".join(factorings(count, len(sizes)))
    slices, one = in_slices(name)
    kind = GENERATIONS[one.partition(":")[0]]
    per_chip = count // (slices * math.prod(_sizes(one.partition(":")[2])))
    chips, left = divmod(wanted, slices * per_chip)
    grid = None if left else kind.grid(chips * kind.counted)
    several = f"{slices}*" if slices > 1 else ""
    other = f"; {several}{kind.name}:{'x'.join(map(str, grid))} has {wanted}" if grid else ""
    pairs = f" ({per_chip} on each chip)" if per_chip > 1 else ""
    return (
        f"a mesh of {' x '.join(map(str, sizes))} has {wanted} devices, and {name} has "
        f"{count}{pairs}: {fitting} fits{other}"
    )


def factorings(count: int, parts: int, limit: int = 6) -> list[str]:
    """Return the ways to write a number as a product of `count` factors, even sizes first."""
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    factorings = (
        (*first, count // math.prod(first))
        for first in itertools.product(divisors, repeat=parts - 1)
        if count % math.prod(first) == 0
    )
    # With many axes there are millions; the message needs only some examples.
    ordered = sorted(
        itertools.islice(factorings, 2000), key=lambda sizes: (max(sizes), sizes[::-1])
    )
    return [" x ".join(map(str, sizes)) for sizes in ordered[:limit]]


@cache
def topology(name: str) -> tuple[Any, ...]:
    """Return the compile-only devices of a topology, such as `v5e:2x4` or `2*v5e:2x4`.

    Raises `InvalidInput` if libtpu is not installed or does not know the topology.
    """
    try:
        with PROCESS_LOCK, _quiet_libtpu():
            slices, one = in_slices(name)
            return topology_devices(one, slices)
    except NotAvailable:
        raise
    except RuntimeError as error:
        if NO_LIBTPU.search(str(error)):
            raise InvalidInput(
                f"{name} needs the TPU compiler: run `shardnb targets add tpu`, or pip install "
                "'shardnb[tpu]' (no TPU is needed)"
            ) from error
        raise InvalidInput(_rejected(name, compilers_words(error))) from error


def _rejected(name: str, words: str) -> str:
    """Say that there is no such slice, and shapes of about as many chips that there are."""
    _, slice_name = in_slices(name)
    kind, _, chips = slice_name.partition(":")
    known = [one for one in NAMES if one.startswith(f"{kind}:")]
    wanted = math.prod(_sizes(chips))
    known.sort(key=lambda one: abs(math.prod(_sizes(one.partition(":")[2])) - wanted))
    expected = f"expected a shape such as {' or '.join(known[:2])}, got {name!r}"
    hosts = HOSTS_DO_NOT_DIVIDE.search(words)
    if hosts is None:
        return f"{expected}, which the TPU compiler rejects: {words}"
    host = re.sub(r"(x1)+$", "", hosts[1])
    return f"{expected}: {chips} chips cannot be divided among hosts of {host} chips"


@contextmanager
def _quiet_libtpu() -> Iterator[None]:
    """Set the environment that libtpu reads as it is loaded, and restore it afterwards.

    A machine with a TPU keeps its own environment, and JAX starts its TPU first.
    """
    if any(Path("/dev").glob("accel[0-9]*")) or any(Path("/dev/vfio").glob("[0-9]*")):
        jax.devices()
        yield
        return
    environment = dict(QUIET_LIBTPU)
    if "TPU_LIBRARY_PATH" not in os.environ and (library := compilers.tpu_library()):
        environment["TPU_LIBRARY_PATH"] = str(library)
    saved = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
