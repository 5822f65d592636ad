"""What a placement sends, holds and computes by Shardy's own passes, without a compile.

Shardy propagates the placement, puts in the reshards that its ops then need, and turns them into
collectives, in a few milliseconds. The compiler's partitioner may decide otherwise: an estimate
orders the plans that are then compiled, and is never shown.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shardnb.bugs import Inconclusive
from shardnb.collectives.wire_bytes import wire_bytes
from shardnb.compiler import Program
from shardnb.compiler.shardy_passes import PIPELINE, stated_module
from shardnb.report.dtypes import size_in_bytes
from shardnb.report.model import Collective, Groups, Spec
from shardnb.report.spec import axis_size
from shardnb.terms.collectives import KINDS, Kind, kind_of
from shardnb.texts import shardy
from shardnb.texts.shardy_attributes import sharding_text

_PIPELINE = (
    PIPELINE + ",sdy-close-shardings,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),"
    "func.func(sdy-reshard-to-collectives),cse"
)


@dataclass(frozen=True)
class Estimate:
    """What each device is reckoned to hold, send and compute in a placement.

    `held` are the bytes of inputs and of results that take no input's memory, `values` those of all
    that is computed on the way.
    """

    held: int
    values: int
    wire_bytes: int
    flops: float
    collectives: tuple[Collective, ...] = ()


class Estimator:
    """Estimates placements of one program's arguments; `number` says which input an array is."""

    def __init__(self, program: Program) -> None:
        """Take the module that XLA handed to Shardy; raises `ValueError` where there is none."""
        stated = program.dumps.stated_module
        if not stated.meshes:
            raise ValueError("the compiler gave no module of Shardy's for this program")
        self._mesh = next(iter(stated.meshes))
        self.sizes = dict(program.mesh.shape)
        self.lines = program.dumps.stated.count("\n") + 1
        self._module = stated_module(program.dumps)
        self._inputs = {number: at for at, number in enumerate(program.parameters)}
        self.names_axes = not stated.stated_axes.isdisjoint(self.sizes)

    def of(
        self,
        specs: Mapping[int, Spec],
        results: Mapping[int, Spec] | None = None,
        reused: Collection[int] = (),
    ) -> Estimate:
        """Estimate specs by the number of an array, and of results by theirs.

        The results `reused` take the memory of a donated input. `Inconclusive` where Shardy refuses
        the specs.
        """
        module = self._propagated(specs, _PIPELINE, results=results)
        return _Counter(module, self.sizes, frozenset(reused)).estimate()

    def carried(self, specs: Mapping[int, Spec], free: Collection[int]) -> dict[int, Spec]:
        """Let Shardy split the arrays `free` further, as the program carries what is split.

        Gives the specs of the inputs by number; `Inconclusive` where Shardy refuses them.
        """
        inputs = self._propagated(specs, PIPELINE, free).inputs
        placed = {number: inputs[at].spec for number, at in self._inputs.items()}
        # An axis that shards further is named once.
        return {
            number: tuple(tuple(axis.partition(":(")[0] for axis in axes) for axes in spec)
            for number, spec in placed.items()
            if spec is not None
        }

    def _propagated(
        self,
        specs: Mapping[int, Spec],
        pipeline: str,
        free: Collection[int] = (),
        results: Mapping[int, Spec] | None = None,
    ) -> shardy.Module:
        given = {
            self._inputs[number]: sharding_text(self._mesh, spec, is_open=number in free)
            for number, spec in specs.items()
            if number in self._inputs
        }
        outputs = {at: sharding_text(self._mesh, spec) for at, spec in (results or {}).items()}
        try:
            return shardy.read(self._module.copy(given, outputs=outputs).run(pipeline))
        except ValueError as refusal:
            raise Inconclusive(str(refusal)) from refusal


@dataclass(frozen=True)
class _Counter:
    """Counts what a module with Shardy's collectives in it holds, sends and computes."""

    module: shardy.Module
    sizes: Mapping[str, int]
    reused: frozenset[int]

    def estimate(self) -> Estimate:
        found = tuple(replace(c, id=number) for number, c in enumerate(self._collectives()))
        sent = sum(c.total_wire_bytes or 0 for c in found)
        held = sum(self._bytes(value, value.spec) for value in self.module.inputs)
        held += sum(
            self._bytes(output.value, output.spec)
            for at, output in enumerate(self.module.outputs)
            if at not in self.reused
        )
        values = sum(self._bytes(v, v.placed.spec) for op in self.module.ops for v in op.results)
        return Estimate(held, values, sent, sum(self._products()), found)

    def _bytes(self, value: shardy.Value, spec: Spec | None) -> int:
        """Return the bytes of a value on one device."""
        return size_in_bytes(value.dtype, value.shape) // self._parts(spec)

    def _parts(self, spec: Spec | None) -> int:
        """Return the number of blocks that a value is split into."""
        return math.prod(axis_size(axis, self.sizes) for axes in spec or () for axis in axes)

    def _collectives(self) -> Iterator[Collective]:
        for op in self.module.ops:
            kind = kind_of(op.opcode) if op.kind.startswith("sdy.") else None
            if kind is not None:
                yield self._collective(kind, op)

    def _collective(self, kind: Kind, op: shardy.Op) -> Collective:
        size = self._bytes(op.results[0], op.results[0].spec)
        axes = tuple(dict.fromkeys(axis.partition(":(")[0] for axis in op.axes))
        groups = _groups(self.sizes, axes)
        if KINDS[kind].in_pairs:
            groups = tuple((a, b) for g in groups for a, b in zip(g, g[1:] + g[:1], strict=True))
        sent = wire_bytes(kind, size, self._parts((op.axes,)))
        return Collective(0, kind, axes or None, groups, "u8", (size,), sent, _trips(op))

    def _products(self) -> Iterator[float]:
        """Yield the operations of each matrix product on one device."""
        for op in self.module.ops:
            if op.opcode != "dot":
                continue
            left, result = op.operands[0], op.results[0]
            # The two operands have the same sharding if both shardings are known.
            cut = max(
                math.prod(self._parts((value.placed.spec[dim],)) for dim in dims)
                if value.placed.spec
                else 1
                for value, dims in zip(op.operands, op.numbers, strict=False)
            )
            whole = math.prod(result.shape) * math.prod(left.shape[dim] for dim in op.numbers[0])
            yield 2.0 * whole / (cut * self._parts(result.spec)) * _trips(op)


def _trips(op: shardy.Op) -> int:
    """Return how often an op runs; a loop counts once where its trips are not known."""
    return math.prod(parent.trips or 1 for parent in op.parents)


def _groups(sizes: Mapping[str, int], axes: Sequence[str]) -> Groups:
    """Return the positions that communicate over some axes of a mesh."""
    places = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    order = [at for at, axis in enumerate(sizes) if axis not in axes]
    order += [at for at, axis in enumerate(sizes) if axis in axes]
    group = math.prod(sizes[axis] for axis in axes)
    rows = places.transpose(order).reshape(-1, group).tolist()
    return tuple(tuple(row) for row in rows)
