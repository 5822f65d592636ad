"""Every collective of an optimized program, once, in the order in which the program runs them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from shardnb.analysis.groups import AxisFinder
from shardnb.analysis.wire import wire_bytes
from shardnb.compiler.hlo import Array, Frame, Instruction, Module
from shardnb.report.model import Collective, Location, Mesh

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)
_CALLERS = ("while", "conditional", "call", "fusion", "async-start", "custom-call")
_OPCODES = {kind + suffix: kind for kind in KINDS for suffix in ("", "-start")}
_INSTRUCTION_LIMIT = 2000

Locate = Callable[[tuple[Frame, ...]], tuple[Location, ...]]


@dataclass(frozen=True)
class Place:
    """How often a computation runs in one call of the program, and inside what."""

    trips: int | None = 1
    within: tuple[str, ...] = ()


def find_collectives(
    module: Module,
    mesh: Mesh,
    locate: Locate,
    partitioned: Module | None = None,
) -> tuple[Collective, ...]:
    """List the collectives of an optimized module.

    An async pair counts once, a combined one by its members. `partitioned` is the program right
    after partitioning: it has the shape of an all-to-all, which CPU cuts into a tuple.
    """
    finder, places = AxisFinder(mesh), _places(module)
    shapes = _shapes(partitioned) if partitioned else {}
    found: list[Collective] = []
    seen: set[tuple[str, int]] = set()
    for instruction in _in_order(module):
        kind = _OPCODES.get(instruction.opcode)
        if kind is None or _is_copy(instruction, kind, seen):
            continue
        place = places.get(instruction.computation, Place())
        base = _collective(instruction, kind, finder, place)
        base = replace(base, frames=locate(module.frames(instruction)))
        found += _members(base, _results(instruction, kind, shapes), len(found))
    return tuple(found)


def _is_copy(instruction: Instruction, kind: str, seen: set[tuple[str, int]]) -> bool:
    """Whether a fusion that runs in steps repeats a collective that was already listed."""
    channel = instruction.integer("channel_id")
    if channel is None or "async_collective_fusion" not in instruction.computation:
        return False
    repeated = (kind, channel) in seen
    seen.add((kind, channel))
    return repeated


def _places(module: Module) -> dict[str, Place]:
    """Count how often each computation runs; callers stand behind what they call in HLO text."""
    places = {module.entry: Place()}
    for name in reversed(module.computations):
        here = places.get(name)
        if here is None:
            continue
        for instruction in module.computations[name]:
            for role, called in _called(instruction):
                places[called] = _plus(places.get(called), _inner(here, instruction, role))
    return places


def _called(instruction: Instruction) -> tuple[tuple[str, str], ...]:
    """Give what an instruction calls, where that may hold a collective: no reducer does."""
    return instruction.called if instruction.opcode in _CALLERS else ()


def _inner(here: Place, instruction: Instruction, role: str) -> Place:
    if instruction.opcode == "while":
        trips, extra = instruction.trip_count, role == "condition"
        known = here.trips is not None and trips is not None
        total = (here.trips or 0) * ((trips or 0) + extra) if known else None
        return Place(total, (*here.within, "while condition" if extra else "while"))
    if instruction.opcode == "conditional":
        return Place(here.trips, (*here.within, "conditional"))
    return here


def _plus(old: Place | None, new: Place) -> Place:
    if old is None:
        return new
    trips = None if old.trips is None or new.trips is None else old.trips + new.trips
    return Place(trips, old.within)


def _in_order(module: Module) -> Iterator[Instruction]:
    """Give each instruction once, those of a called computation where it is first called."""
    visited: set[str] = set()
    stack = [iter(module.computations[module.entry])]
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
            continue
        yield instruction
        for _, called in reversed(_called(instruction)):
            if called in module.computations and called not in visited:
                visited.add(called)
                stack.append(iter(module.computations[called]))


def _collective(
    instruction: Instruction, kind: str, finder: AxisFinder, place: Place
) -> Collective:
    permute = kind == "collective-permute"
    text = instruction.attribute("source_target_pairs" if permute else "replica_groups") or "{}"
    groups = finder.groups(text, permute=permute)
    return Collective(
        id=0,
        kind=kind,
        axes=finder.axes(groups, permute=permute),
        groups=groups,
        dtype="",
        shape=(),
        wire_bytes=0,
        trips=place.trips,
        generated='is_spmd_generated="true"' in instruction.attributes,
        within=place.within,
        op_name=instruction.op_name,
        instruction=_shortened(instruction.text),
        channel=instruction.integer("channel_id"),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _INSTRUCTION_LIMIT else text[:_INSTRUCTION_LIMIT] + " ..."


def _shapes(partitioned: Module) -> dict[int, list[Array]]:
    """Give the shapes of the all-to-alls of each channel; those of a shard_map share one."""
    shapes: dict[int, list[Array]] = defaultdict(list)
    for instruction in partitioned.instructions():
        channel = instruction.integer("channel_id")
        if instruction.opcode == "all-to-all" and not instruction.is_tuple and channel is not None:
            shapes[channel].append(instruction.arrays[0])
    return shapes


def _results(
    instruction: Instruction, kind: str, shapes: Mapping[int, list[Array]]
) -> tuple[Array, ...]:
    arrays = instruction.arrays
    if instruction.opcode.endswith("-start") and kind != "all-reduce":
        count = len(instruction.operands)
        arrays = arrays[count : 2 * count] or arrays
    in_pieces = instruction.is_tuple and "dimensions=" not in instruction.attributes
    if kind == "all-to-all" and in_pieces:
        dtype, shape = arrays[0]
        pieces = dtype, (len(arrays), *shape)
        known = shapes.get(instruction.integer("channel_id") or -1, [])
        alike = (whole for whole in known if _size(whole) == _size(pieces))
        return (next(alike, pieces),)
    return arrays


def _size(array: Array) -> tuple[str, int]:
    return array[0], math.prod(array[1])


def _members(base: Collective, results: tuple[Array, ...], first: int) -> Iterator[Collective]:
    ids = tuple(range(first, first + len(results)))
    size = len(base.groups[0]) if base.groups else 0
    for number, (dtype, shape) in zip(ids, results, strict=True):
        member = replace(base, id=number, dtype=dtype, shape=shape)
        others = tuple(other for other in ids if other != number)
        sent = wire_bytes(base.kind, member.bytes, size)
        yield replace(member, wire_bytes=sent, combined_with=others)
