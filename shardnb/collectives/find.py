"""Every collective of an optimized program, once, in the order in which the program runs them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from shardnb.collectives.flattened import pieces
from shardnb.collectives.fused import Fused, algorithm_of, fused_collectives
from shardnb.collectives.fused import Key as Chain
from shardnb.collectives.overlap import overlaps
from shardnb.collectives.transfers import BETWEEN_SLICES, Transfer, transfers
from shardnb.collectives.trips import trip_count
from shardnb.collectives.wire_bytes import wire_bytes
from shardnb.report.dtypes import size_in_bytes
from shardnb.report.model import Collective, Location, Mesh
from shardnb.report.op_names import module_path
from shardnb.terms.collectives import KINDS, Kind, Within, kind_of
from shardnb.texts.hlo import Frame, Module
from shardnb.texts.instruction import Array, Instruction
from shardnb.texts.opcodes import CAN_HOLD_COLLECTIVES, VIEWS
from shardnb.texts.replica_groups import AxisFinder, ids_of

_INSTRUCTION_LIMIT = 2000

_LAST_TURN = "last_iteration_noop"
"""The branch of the last step of a product in steps, in which nothing is sent."""

Key = tuple[Kind, int]
"""A kind and a channel."""

Locate = Callable[[tuple[Frame, ...]], tuple[Location, ...]]


@dataclass(frozen=True)
class Place:
    """How often a computation runs per call of the program, and inside what.

    `least` is how often it runs at least, `entered` how often the loop starts whose body it is,
    `branches` the conditionals around it with the number of its branch of each.
    """

    trips: int | None = 1
    least: int = 1
    within: tuple[Within, ...] = ()
    entered: int | None = 0
    branches: tuple[tuple[str, int], ...] = ()


def find_collectives(
    module: Module,
    mesh: Mesh,
    locate: Locate,
    partitioned: Module | None = None,
) -> tuple[Collective, ...]:
    """List the collectives of an optimized module.

    An asynchronous one counts once, a combined one by its members. `partitioned` is the program
    right after partitioning: it has the shape of an all-to-all, which CPU splits into a tuple, and
    the partitioner's marks, some of which TPU loses.
    """
    finder = AxisFinder(mesh, module.num_partitions, module.replica_count)
    places, fused = places_of(module), fused_collectives(module)
    between, made = overlaps(module, fused), _Made.of(partitioned)
    marked = {part.key for part in fused.values() if part.key and is_generated(part.fusion)}
    found: list[Collective] = []
    for kind, instruction in _once(module, fused):
        place = places.get(instruction.computation, Place())
        base = replace(
            _collective(kind, instruction, finder, place),
            frames=locate(module.frames(instruction)),
            overlap=between.get(instruction.name),
        )
        joined = tuple(piece.array for piece in pieces(module, instruction))
        results = joined or _results(instruction, base.kind, made.all_to_alls)
        part = fused.get(instruction.computation)
        if made.by_compiler(base) or (part is not None and part.key in marked):
            base = replace(base, generated=True)
        if part is not None:
            around = locate(module.frames(part.fusion))
            base, results = _in_fusion(base, results, part, around)
        found += _members(base, results, len(found))
    for transfer in transfers(module, finder):
        place = places.get(transfer.instruction.computation, Place())
        found.append(replace(_sent(transfer, finder, place, locate, module), id=len(found)))
    return tuple(found)


def _sent(
    transfer: Transfer, finder: AxisFinder, place: Place, locate: Locate, module: Module
) -> Collective:
    """Return the collective that a send is; one over hosts sends what it receives."""
    instruction, (dtype, shape) = transfer.instruction, transfer.result
    groups, permute = transfer.groups, KINDS[transfer.kind].in_pairs
    marked = transfer.algorithm == BETWEEN_SLICES and bool(groups)
    return Collective(
        id=0,
        kind=transfer.kind,
        axes=finder.axes(groups, permute=permute) if groups else None,
        groups=groups,
        dtype=dtype,
        shape=shape,
        wire_bytes=transfer.wire_bytes,
        trips=place.trips,
        least_trips=place.least if place.trips is None else 0,
        generated=is_generated(instruction) if marked else None,
        within=place.within,
        branches=place.branches,
        op_name=instruction.op_name,
        instruction=_shortened(instruction.text),
        channel=instruction.channel,
        algorithm=transfer.algorithm,
        frames=locate(module.frames(instruction)),
    )


def _in_fusion(
    base: Collective, results: tuple[Array, ...], part: Fused, frames: tuple[Location, ...]
) -> tuple[Collective, tuple[Array, ...]]:
    """Return a collective as the fusion around it sends it."""
    base = replace(
        base,
        algorithm=base.algorithm or algorithm_of(part.fusion),
        frames=base.frames or frames,
        op_name=base.op_name or part.fusion.op_name,
        module=base.module or module_path(part.fusion.op_name),
    )
    scattered = part.scattered()
    if scattered is None:
        return base, results
    return replace(base, kind="reduce-scatter", made_as=base.kind), scattered


def _once(module: Module, fused: Mapping[str, Fused]) -> Iterator[tuple[Kind, Instruction]]:
    """Yield the collectives; one that TPU runs in steps, each a fusion, only where it starts."""
    seen: set[Chain] = set()
    for kind, instruction in _in_order(module):
        part = fused.get(instruction.computation)
        if part is not None and part.key is not None:
            if part.key in seen:
                continue
            seen.add(part.key)
        yield kind, instruction


@dataclass(frozen=True)
class _Made:
    """The channels of the program right after partitioning.

    `all_to_alls` are the shapes of those of each (a shard_map's share one), `generated` says
    which kinds of which channels are the partitioner's own, `called` which kinds the program calls,
    and `nameless` are those that have no op_name.
    """

    all_to_alls: Mapping[int, list[Array]]
    generated: Mapping[Key, bool]
    called: frozenset[Kind]
    nameless: frozenset[Key]

    @classmethod
    def of(cls, partitioned: Module | None) -> _Made:
        shapes: dict[int, list[Array]] = defaultdict(list)
        generated: dict[Key, bool] = {}
        called, nameless = set[Kind](), set[Key]()
        for one in partitioned.collectives if partitioned else ():
            kind, channel = kind_of(one.opcode), one.channel
            if kind is None or channel is None:
                continue
            generated[kind, channel] = is_generated(one)
            if not is_generated(one):
                called.add(kind)
            if not one.op_name:
                nameless.add((kind, channel))
            if one.opcode == "all-to-all" and not one.is_tuple:
                shapes[channel].append(one.arrays[0])
        return cls(shapes, generated, frozenset(called), frozenset(nameless))

    def by_compiler(self, collective: Collective) -> bool:
        """Whether the program certainly does not call it: TPU inserts some after partitioning.

        A permute without a name is TPU's own; others may have been of another kind.
        """
        channel, kind = collective.channel, collective.made_as or collective.kind
        if not self.generated or channel is None:
            return False
        if kind == "collective-permute" and not collective.op_name:
            return self.generated.get((kind, channel), True) or (kind, channel) not in self.nameless
        if (kind, channel) in self.generated:
            return self.generated[kind, channel]
        others = [made for (_, number), made in self.generated.items() if number == channel]
        return all(others) if others else kind not in self.called


def places_of(module: Module) -> dict[str, Place]:
    """Count how often each computation runs; in HLO text callers come after what they call."""
    places, callers = {module.entry: Place()}, _by_computation(module, CAN_HOLD_COLLECTIVES)
    for name in reversed(module.computations):
        here = places.get(name)
        if here is None:
            continue
        for instruction in callers[name]:
            for number, (role, called) in enumerate(dict.fromkeys(instruction.called)):
                inner = _inner(module, here, instruction, role, number)
                places[called] = _plus(places.get(called), inner)
    return places


def _by_computation(module: Module, opcodes: Iterable[str]) -> dict[str, list[Instruction]]:
    """Return the instructions with some opcodes in each computation."""
    found: dict[str, list[Instruction]] = defaultdict(list)
    for instruction in module.of_kind(*opcodes):
        found[instruction.computation].append(instruction)
    return found


def _inner(module: Module, here: Place, instruction: Instruction, role: str, number: int) -> Place:
    """Return the place of what an instruction calls as `role`, its call of that `number`."""
    if instruction.opcode == "while":
        trips, extra = trip_count(module, instruction), role == "condition"
        known = here.trips is not None and trips is not None
        total = (here.trips or 0) * ((trips or 0) + extra) if known else None
        least = here.least * ((trips or 0) + extra)
        within: Within = "while condition" if extra else "while"
        return Place(total, least, (*here.within, within), here.trips, here.branches)
    if instruction.opcode == "conditional":
        if any(name.startswith(_LAST_TURN) for _, name in instruction.called):
            known = here.trips is not None and here.entered is not None
            total = (here.trips or 0) - (here.entered or 0) if known else None
            least = max(0, here.least - (here.entered or 0))
            return Place(total, least, here.within, branches=here.branches)
        branches = (*here.branches, (instruction.name, number))
        return Place(here.trips, 0, (*here.within, "conditional"), branches=branches)
    return here


def _plus(old: Place | None, new: Place) -> Place:
    if old is None:
        return new
    trips = None if old.trips is None or new.trips is None else old.trips + new.trips
    # What several branches call may run in each of them.
    branches = old.branches if old.branches == new.branches else ()
    return Place(trips, old.least + new.least, old.within, branches=branches)


def _in_order(module: Module) -> Iterator[tuple[Kind, Instruction]]:
    """Yield each collective once, those of a called computation at its first call."""
    opcodes = {one.opcode for one in module.collectives}
    stops = _by_computation(module, CAN_HOLD_COLLECTIVES | opcodes)
    visited: set[str] = set()
    stack = [iter(stops[module.entry])]
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
        elif kind := kind_of(instruction.opcode):
            yield kind, instruction
        else:
            fresh = [name for _, name in instruction.called if name in stops]
            for called in reversed(fresh):
                if called not in visited:
                    visited.add(called)
                    stack.append(iter(stops[called]))


def reduction_of(module: Module, instruction: Instruction) -> str:
    """Return the opcode that combines two devices' values, such as `add`; "" if there are several.

    XLA for CPU may widen both values first, and round the result.
    """
    reducer = module.computations.get(instruction.calls("to_apply"))
    node = reducer and reducer.maker(reducer.source(reducer.root.value, VIEWS))
    return node.opcode if node else ""


def is_generated(instruction: Instruction) -> bool:
    """Whether the partitioner inserted an instruction."""
    return 'is_spmd_generated="true"' in instruction.attributes


def _collective(
    kind: Kind, instruction: Instruction, finder: AxisFinder, place: Place
) -> Collective:
    permute = KINDS[kind].in_pairs
    text = instruction.attribute("source_target_pairs" if permute else "replica_groups") or "{}"
    groups = finder.groups(text, permute=permute, ids=ids_of(instruction))
    axes = finder.axes(groups, permute=permute)
    return Collective(
        id=0,
        kind=kind,
        axes=finder.alone(text) if axes == () else axes,
        groups=groups,
        dtype="",
        shape=(),
        wire_bytes=0,
        trips=place.trips,
        least_trips=place.least if place.trips is None else 0,
        generated=is_generated(instruction),
        within=place.within,
        branches=place.branches,
        op_name=instruction.op_name,
        module=module_path(instruction.op_name),
        instruction=_shortened(instruction.text),
        channel=instruction.channel,
        algorithm=algorithm_of(instruction),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _INSTRUCTION_LIMIT else text[:_INSTRUCTION_LIMIT] + " ..."


def _results(
    instruction: Instruction, kind: str, shapes: Mapping[int, list[Array]]
) -> tuple[Array, ...]:
    arrays = instruction.arrays
    count = len(instruction.operands)
    # A start gives its operands, its results and more; an all-reduce's may give its results only.
    # A ragged-all-to-all has one result of six operands.
    if instruction.opcode.endswith("-start") and len(arrays) > count:
        arrays = arrays[count : 2 * count]
    in_pieces = instruction.is_tuple and "dimensions=" not in instruction.attributes
    if kind == "all-to-all" and in_pieces:
        dtype, shape = arrays[0]
        pieces = dtype, (len(arrays), *shape)
        known = shapes.get(instruction.channel or -1, [])
        alike = (whole for whole in known if _size(whole) == _size(pieces))
        return (next(alike, pieces),)
    return arrays


def _size(array: Array) -> tuple[str, int]:
    return array[0], math.prod(array[1])


def _members(base: Collective, results: tuple[Array, ...], first: int) -> Iterator[Collective]:
    ids = tuple(range(first, first + len(results)))
    size = max(map(len, base.groups), default=0)
    if KINDS[base.kind].in_pairs and all(len(set(pair)) == 1 for pair in base.groups):
        size = 1  # each device keeps its own block
    for number, (dtype, shape) in zip(ids, results, strict=True):
        others = tuple(other for other in ids if other != number)
        sent = wire_bytes(base.kind, size_in_bytes(dtype, shape), size)
        yield replace(
            base, id=number, dtype=dtype, shape=shape, wire_bytes=sent, combined_with=others
        )
