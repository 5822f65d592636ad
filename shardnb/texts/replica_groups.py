"""Replica groups: their notations in HLO, and the mesh axes that they correspond to."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardnb.report.invalid_input import InvalidInput, check_devices, place, shown_number
from shardnb.report.model import Groups, Mesh
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts.axis_factors import merged, pieces_of
from shardnb.texts.instruction import Instruction

# The spellings of XLA's collectives and of its SPMD partitioner (tests/texts/test_replica_groups.py
# has each): `[2,4]<=[4,2]T(1,0)`, `{{0,1},{2,3}}`, and `mesh['a'=8], device_ids=([8]) {'a':(4)2}`.
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LIST = re.compile(r"\{([\d,\s]+)\}")
_AXES = re.compile(r"mesh\[([^\]]*)\]")
_SIZE = re.compile(r"'([^']+)'=(\d+)")
_USED = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")
_DEVICE_IDS = re.compile(r"device_ids=\((.*?)\)\s*\{")
# NumPy's arrays have no more.
_MOST_DIMENSIONS = 64

Positions = NDArray[np.int64]

Ids = Literal["device", "partition", "replica", "replica with all its partitions"]
"""What the numbers in replica groups are of."""


def parse_groups(text: str, devices: int) -> Groups:
    """Read `replica_groups` or `source_target_pairs` in any notation.

    `{}` means one group of all devices. Raises `InvalidInput` for another text, and for groups of
    more devices than there are, before they are written out; of one device they may be not known.

    >>> parse_groups("[2,4]<=[4,2]T(1,0)", 8)
    ((0, 2, 4, 6), (1, 3, 5, 7))
    >>> parse_groups("mesh['a'=4,'b'=2] {'b'}", 8)
    ((0, 1), (2, 3), (4, 5), (6, 7))
    """
    text = text.strip()
    with place(f"the replica groups {text[:80]!r}"):
        if text.startswith("{"):
            listed = tuple(tuple(_numbers(part)) for part in _LIST.findall(text))
            _check(max(map(max, listed), default=0) + 1, devices)
            return listed or (tuple(range(devices)),)
        rows = _from_mesh(text, devices) if text.startswith("mesh[") else _from_iota(text, devices)
    return tuple(tuple(row) for row in rows.tolist())


def _check(count: int, devices: int) -> None:
    """Refuse groups of more devices than there are."""
    if count > devices > 1:
        there = f"at most {devices:,} devices"
        raise InvalidInput(f"expected groups of {there}, got {shown_number(count)}")
    check_devices(count)


def _from_iota(text: str, devices: int) -> Positions:
    match = _IOTA.fullmatch(text)
    if match is None:
        raise InvalidInput("expected groups such as {{0,1},{2,3}} or [2,4]<=[8]")
    sizes = _numbers(match[1])
    _check(max(math.prod(sizes), math.prod(_numbers(match[2]))), devices)
    order = iota(text)
    if math.prod(sizes) != order.size:
        raise InvalidInput(f"expected groups of {order.size} devices, got {math.prod(sizes)}")
    return order.reshape(sizes) if len(sizes) == 2 else order.reshape(sizes[0], -1)


def iota(text: str) -> Positions:
    """Read the device order of `[8]`, `[2,4]<=[4,2]T(1,0)` or `[4,2]T(1,0)`, flat.

    Raises `InvalidInput` for another text, and for more devices than any system has.
    """
    dims, _, rest = text.partition("<=")
    match = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", rest or dims)
    sizes = _numbers(match[1]) if match else []
    order = _numbers(match[2]) if match and match[2] else list(range(len(sizes)))
    if not sizes or sorted(order) != list(range(len(sizes))) or len(sizes) > _MOST_DIMENSIONS:
        raise InvalidInput(f"expected an order of devices such as [4,2]T(1,0), got {text[:80]!r}")
    check_devices(math.prod(sizes))
    return np.arange(math.prod(sizes)).reshape(sizes).transpose(order).reshape(-1)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.replace(" ", "").split(",") if part]


def _from_mesh(text: str, devices: int) -> Positions:
    """Read axes of a mesh in the compiler's notation, such as `mesh['a'=8] {'a':(4)2}`."""
    declared, used = _AXES.match(text), text[text.rindex("{") :] if "{" in text else ""
    sizes = {name: int(size) for name, size in _SIZE.findall(declared[1])} if declared else {}
    if not sizes:
        raise InvalidInput("expected a mesh such as mesh['a'=4,'b'=2] {'b'}")
    total = math.prod(sizes.values())
    _check(total, devices)
    ids = _DEVICE_IDS.search(text)
    grid = iota(ids[1]) if ids else np.arange(total)
    if grid.size != total:
        raise InvalidInput(f"expected the ids of {total} devices, got {grid.size}")
    cut, picked = _cut(sizes, _USED.findall(used))
    grid = grid.reshape(cut)
    rest = [dim for dim in range(len(cut)) if dim not in picked]
    group = math.prod(cut[dim] for dim in picked)
    return grid.transpose([*rest, *picked]).reshape(-1, group)


def _cut(sizes: dict[str, int], used: list[tuple[str, str, str]]) -> tuple[list[int], list[int]]:
    """Split each axis where a part of it is used; returns the sizes, and the parts' positions."""
    points: dict[str, set[int]] = {name: {1, size} for name, size in sizes.items()}
    for axis in used:
        check_axis(axis, sizes)
        if axis[1]:
            points[axis[0]] |= {int(axis[1]), int(axis[1]) * int(axis[2])}
    cut: list[int] = []
    places: dict[tuple[str, int], int] = {}
    for name, size in sizes.items():
        steps = sorted(points[name]) if size > 1 else [1, 1]
        for low, high in itertools.pairwise(steps):
            if high % low:
                raise InvalidInput(f"expected parts of the axis {name!r} that divide each other")
            places[name, low] = len(cut)
            cut.append(high // low)
    if len(cut) > _MOST_DIMENSIONS:
        raise InvalidInput(f"expected at most {_MOST_DIMENSIONS} parts of axes, got {len(cut)}")
    picked: list[int] = []
    for name, before, part in used:
        low = int(before or 1)
        end = low * int(part) if before else sizes[name]
        picked += [p for (axis, at), p in places.items() if axis == name and low <= at < end]
    return cut, list(dict.fromkeys(picked))


def ids_of(instruction: Instruction) -> Ids:
    """Say what the replica groups of a collective number, by its channel and its kind.

    As XLA's `GetCollectiveOpGroupMode` does.
    """
    if instruction.channel is None:
        return "replica"
    kind = kind_of(instruction.opcode)
    if kind is None or not KINDS[kind].numbers_devices:
        return "partition"
    of_devices = instruction.attribute("use_global_device_ids") == "true"
    return "device" if of_devices else "replica with all its partitions"


def check_axis(axis: tuple[str, str, str], sizes: Mapping[str, int]) -> None:
    """Raise `InvalidInput` for an axis, or a part of one, that a mesh does not have."""
    name, before, part = axis
    if name not in sizes:
        raise InvalidInput(f"expected one of the axes {', '.join(sizes)}, got {name!r}")
    cut = int(before) * int(part) if before else 1
    if cut == 0 or sizes[name] % cut:
        raise InvalidInput(f"expected a part of {name}={sizes[name]}, got {name}:({before}){part}")


@dataclass
class AxisFinder:
    """Finds the mesh axes of replica groups; caches its answers.

    `partitions` are the devices that the groups of a program count: those of one slice, where TPU
    compiles a program for each of several. Of `replicas` each runs on as many devices, the first
    one on the first of the mesh.
    """

    mesh: Mesh
    partitions: int | None = None
    replicas: int = 1
    _parsed: dict[tuple[str, bool, Ids], Groups] = field(default_factory=dict)
    _known: dict[tuple[Groups, bool], tuple[str, ...] | None] = field(default_factory=dict)

    def groups(self, text: str, *, permute: bool = False, ids: Ids = "device") -> Groups:
        """Read replica groups, or the pairs of a permute; without pairs there are no groups.

        `ids` says what they number, which matters where a program has replicas and partitions.
        Raises `ValueError` where they number more than there are.
        """
        key = text, permute, ids
        if key not in self._parsed:
            empty = permute and text.strip() == "{}"
            if self.replicas > 1 and (self.partitions or 1) > 1:
                self._parsed[key] = () if empty else self._of_replicas(text, ids)
                return self._parsed[key]
            slices = self._slices
            devices = len(slices[0]) if slices else self.mesh.size
            groups = () if empty else parse_groups(text, devices)
            if slices:
                groups = tuple(tuple(row[at] for at in group) for row in slices for group in groups)
            self._parsed[key] = groups
            if permute and any(len(pair) != 2 for pair in groups):
                raise InvalidInput(f"expected pairs of a source and a target, got {text[:80]!r}")
        return self._parsed[key]

    def _of_replicas(self, text: str, ids: Ids) -> Groups:
        """Give the devices that are meant: replica r's partition p is device r * partitions + p."""
        replicas, partitions = range(self.replicas), range(self.partitions or 1)
        per = len(partitions)
        counts = {"device": self.replicas * per, "partition": per}
        groups = parse_groups(text, counts.get(ids, self.replicas))
        if ids == "device":
            return groups
        if ids == "partition":
            return tuple(tuple(r * per + p for p in g) for r in replicas for g in groups)
        if ids == "replica":
            return tuple(tuple(r * per + p for r in g) for p in partitions for g in groups)
        return tuple(tuple(r * per + p for r in g for p in partitions) for g in groups)

    @cached_property
    def _slices(self) -> list[list[int]]:
        """The positions of each slice's devices, where a program is that of one slice."""
        rows: dict[int, list[int]] = defaultdict(list)
        for position, number in enumerate(self.mesh.slices or ()):
            rows[number].append(position)
        alike = {len(row) for row in rows.values()} == {self.partitions}
        return [rows[number] for number in sorted(rows)] if alike else []

    def axes(self, groups: Groups, *, permute: bool = False) -> tuple[str, ...] | None:
        """Return the axes, a part as `data:(4)2`, or None if the groups match none.

        For the pairs of a permute these are the axes along which a pair's devices differ.
        """
        key = groups, permute
        if key not in self._known:
            self._known[key] = self._pairs(groups) if permute else self._find(groups)
        return self._known[key]

    def alone(self, text: str) -> tuple[str, ...]:
        """Return the axes of one device that a text names, if it names this mesh.

        >>> from shardnb.report.model import Axis
        >>> mesh = Mesh((Axis("data", 4), Axis("one", 1)), (0, 1, 2, 3))
        >>> AxisFinder(mesh).alone("mesh['data'=4,'one'=1] {'one'}")
        ('one',)
        """
        declared = _AXES.match(text.strip())
        sizes = {name: int(size) for name, size in _SIZE.findall(declared[1] if declared else "")}
        if not sizes or sizes != self.mesh.shape:
            return ()
        used = (name for name, _, _ in _USED.findall(text[text.rfind("{") :]))
        return tuple(name for name in used if sizes.get(name) == 1)

    def _pairs(self, pairs: Groups) -> tuple[str, ...] | None:
        if not self.mesh.axes:
            return None
        if not pairs:
            return ()
        sizes = [axis.size for axis in self.mesh.axes]
        ends = np.array(pairs)
        if ends.max() >= self.mesh.size:
            return None
        here, there = (np.stack(np.unravel_index(ends[:, i], sizes)) for i in (0, 1))
        differs = (here != there).any(axis=1)
        return tuple(a.name for a, moved in zip(self.mesh.axes, differs, strict=True) if moved)

    def _find(self, groups: Groups) -> tuple[str, ...] | None:
        if not self.mesh.axes or not groups:
            return None
        size = len(groups[0])
        if any(len(group) != size for group in groups) or size * len(groups) != self.mesh.size:
            return None
        pieces = pieces_of(self.mesh.shape, self.mesh.shape)
        sizes = [piece[2] for piece in pieces]
        first = np.stack(np.unravel_index(np.array(groups[0]), sizes or [1]))
        varying = [i for i in range(len(pieces)) if len(set(first[i].tolist())) > 1]
        if math.prod(sizes[i] for i in varying) != size or not _same(groups, sizes, varying):
            return None
        return merged([pieces[i] for i in varying], self.mesh.shape)


def _same(groups: Groups, sizes: list[int], varying: list[int]) -> bool:
    rest = [i for i in range(len(sizes)) if i not in varying]
    grid = np.arange(math.prod(sizes)).reshape(sizes).transpose([*rest, *varying])
    expected = grid.reshape(len(groups), -1)
    given = np.array(groups)
    return _sorted_rows(expected) == _sorted_rows(given)


def _sorted_rows(rows: Positions) -> list[list[int]]:
    rows = np.sort(rows, axis=1)
    ordered: list[list[int]] = rows[np.argsort(rows[:, 0])].tolist()
    return ordered
