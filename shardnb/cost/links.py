"""The physical links that the devices of a group communicate over, from their coordinates."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardnb.cost.hardware import Hardware
from shardnb.report.model import Groups, Mesh

Coords = tuple[int, ...]
_TOPOLOGY = re.compile(r"(?:\d+\*)?[\w.]+:(\d+(?:x\d+)*)")
_NAMES = "xyz"


@dataclass(frozen=True)
class ChipRow:
    """Chips in a row along a physical dimension, `stride` links apart, with wraparound or not."""

    dim: int
    size: int
    stride: int = 1
    ring: bool = False

    @property
    def hops(self) -> int:
        """Links between its two chips that are furthest apart."""
        return (self.size // 2 if self.ring else self.size - 1) * self.stride

    def __str__(self) -> str:
        shape = "ring" if self.ring else "line"
        apart = f" in steps of {self.stride}" if self.stride > 1 else ""
        return f"a {shape} of {self.size} chips along {_NAMES[self.dim]}{apart}"


@dataclass(frozen=True)
class Route:
    """The lines of chips whose product the chips of a group are.

    `per_chip` devices of each chip belong to a group, and `sharers` groups use the same chips at
    the same time.
    """

    chips: int
    per_chip: int
    sharers: int
    lines: tuple[ChipRow, ...]

    def __str__(self) -> str:
        shared = f", whose links {self.sharers} groups share" if self.sharers > 1 else ""
        return " x ".join(map(str, self.lines)) + shared

    @property
    def hops(self) -> int:
        """Links from one end of the group to the other."""
        return sum(line.hops for line in self.lines)


@dataclass(frozen=True)
class Torus:
    """Chips on a grid of `shape`, and the coordinates of each device by its mesh position.

    With several slices, each of them is such a grid; `slices` gives the slice of each device.
    """

    shape: tuple[int, ...]
    rings: tuple[bool, ...]
    coords: tuple[Coords, ...]
    slices: tuple[int, ...] = ()

    @classmethod
    def of(cls, mesh: Mesh, hardware: Hardware) -> Torus | None:
        """Return the torus of a mesh whose devices have coordinates.

        The slice is the one that the target names, else the smallest that contains the devices.
        """
        if not mesh.coords or not hardware.dims:
            return None
        low = [min(axis) for axis in zip(*mesh.coords, strict=True)]
        coords = tuple(
            tuple(at - least for at, least in zip(place, low, strict=True)) for place in mesh.coords
        )
        least = [max(axis) + 1 for axis in zip(*coords, strict=True)]
        named = topology(mesh.target) or ()
        shape = tuple(map(max, itertools.zip_longest(least, named, fillvalue=1)))
        return cls(shape, rings(shape, hardware), coords, mesh.slices or (0,) * len(coords))

    def slices_of(self, groups: Groups) -> int:
        """Return over how many slices a group goes at most."""
        if not self.slices:
            return 1
        return max((len({self.slices[at] for at in group}) for group in groups), default=1)

    @cached_property
    def devices(self) -> int:
        """Devices per chip."""
        slices = self.slices or (0,) * len(self.coords)
        return max(Counter(zip(slices, self.coords, strict=True)).values())

    def route(self, groups: Groups) -> Route | None:
        """Return the lines of the slowest group, or None if a group is not a box."""
        if groups not in self._routes:
            routes = {self._route(group) for group in groups}
            known = [route for route in routes if route]
            boxes = known and len(known) == len(routes)
            self._routes[groups] = min(known, key=_capacity) if boxes else None
        return self._routes[groups]

    # A report has many collectives over the same groups, so the answers are cached.
    @cached_property
    def _routes(self) -> dict[Groups, Route | None]:
        return {}

    def _route(self, group: Sequence[int]) -> Route | None:
        held = Counter(self.coords[position] for position in group)
        values = [sorted(set(axis)) for axis in zip(*held, strict=True)]
        if math.prod(map(len, values)) != len(held) or len(set(held.values())) > 1:
            return None
        lines = [self._line(dim, along) for dim, along in enumerate(values) if len(along) > 1]
        per_chip = next(iter(held.values()))
        known = tuple(line for line in lines if line)
        if len(known) < len(lines):
            return None
        return Route(len(held), per_chip, self.devices // per_chip, known)

    def _line(self, dim: int, values: Sequence[int]) -> ChipRow | None:
        steps = {b - a for a, b in itertools.pairwise(values)}
        if len(steps) > 1:
            return None
        stride = steps.pop()
        ring = self.rings[dim] and len(values) * stride == self.shape[dim]
        return ChipRow(dim, len(values), stride, ring)

    def ring_loads(self, groups: Groups) -> tuple[int, int]:
        """Count how many transfers share the busiest link when each group sends in its own order.

        The first number is for one direction, the second for both directions at once.
        """
        if groups not in self._loads:
            there = list(_around(groups))
            back = _around([group[::-1] for group in groups])
            one_way = self.permutation(there)[1]
            self._loads[groups] = one_way, self.permutation([*there, *back])[1]
        return self._loads[groups]

    @cached_property
    def _loads(self) -> dict[Groups, tuple[int, int]]:
        return {}

    def permutation(self, pairs: Iterable[Sequence[int]]) -> tuple[int, int]:
        """Return the most hops of a pair, and the most pairs on one link in one direction."""
        key = tuple(map(tuple, pairs))
        if key not in self._permutations:
            load: Counter[tuple[int, tuple[Coords, Coords]]] = Counter()
            longest = 0
            for source, target in key:
                links = list(self._links(self.coords[source], self.coords[target]))
                longest = max(longest, len(links))
                number = self.slices[source] if self.slices else 0
                load.update((number, link) for link in links)
            self._permutations[key] = longest, max(load.values(), default=0)
        return self._permutations[key]

    @cached_property
    def _permutations(self) -> dict[Groups, tuple[int, int]]:
        return {}

    def _links(self, source: Coords, target: Coords) -> Iterator[tuple[Coords, Coords]]:
        """Yield the links of a route: one dimension after the other, the shorter way round."""
        here = source
        for dim, goal in enumerate(target):
            up = (goal - here[dim]) % self.shape[dim]
            upwards = up <= self.shape[dim] - up if self.rings[dim] else goal > here[dim]
            while here[dim] != goal:
                at = (here[dim] + (1 if upwards else -1)) % self.shape[dim]
                there = (*here[:dim], at, *here[dim + 1 :])
                yield here, there
                here = there


def _around(groups: Iterable[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for group in groups:
        yield from zip(group, [*group[1:], group[0]], strict=True)


def _capacity(route: Route) -> float:
    ways = sum((2 if line.ring else 1) / line.stride for line in route.lines)
    return ways / route.sharers


def rings(shape: Sequence[int], hardware: Hardware) -> tuple[bool, ...]:
    """Return along which dimensions a slice of this shape has wraparound links.

    >>> from shardnb.cost.hardware import find_hardware
    >>> rings((8, 16), find_hardware("v5e")), rings((4, 4, 8), find_hardware("v4"))
    ((False, True), (True, True, True))
    >>> rings((2, 2, 4), find_hardware("v4"))
    (False, False, False)
    """
    if hardware.wraps == "cubes":
        whole = len(shape) == hardware.dims and all(size % 4 == 0 for size in shape)
        return (whole,) * len(shape)
    return tuple(
        size == full for size, full in itertools.zip_longest(shape, hardware.pod[: len(shape)])
    )


def topology(target: str) -> tuple[int, ...] | None:
    """Read the shape of a slice from a target such as `v5e:2x4` or `2*v5e:2x4`."""
    match = _TOPOLOGY.fullmatch(target.strip())
    return tuple(map(int, match[1].split("x"))) if match else None


def laid(mesh: Mesh, shape: Sequence[int], devices: int) -> tuple[Coords, ...]:
    """Assign coordinates on a slice to the devices of a mesh, in their order, row by row.

    Raises `ValueError` if the slice has another number of devices.
    """
    chips = list(itertools.product(*(range(size) for size in shape)))
    if len(chips) * devices != mesh.size:
        raise ValueError(
            f"the mesh has {mesh.size} devices, and a slice of "
            f"{'x'.join(map(str, shape))} chips has {len(chips) * devices}"
        )
    return tuple(chip for chip in chips for _ in range(devices))
