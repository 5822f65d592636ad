"""The report of a program of which only its HLO text is there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata

from shardnb.causes import explain_causes
from shardnb.collectives.find import find_collectives
from shardnb.compiler import SourceTexts
from shardnb.compiler.dumps import Dumps
from shardnb.cost import priced
from shardnb.findings.assemble import versions
from shardnb.findings.memory import memory_of, read_allocations
from shardnb.findings.work import work_of
from shardnb.report.model import Axis, Collective, Location, Mesh, Report, Value
from shardnb.sources.source_texts import Sources
from shardnb.terms.primitives import PRIMITIVES
from shardnb.texts import hlo
from shardnb.texts.hlo import Instruction
from shardnb.texts.shardings import Layout, LayoutReader

_COUNT = re.compile(r"\b(?:num_partitions|replica_count)=(\d+)")
_MESH = re.compile(r"mesh\[((?:'[^']+'=\d+,?)+)\](?!, device_ids)")
_SIZE = re.compile(r"'([^']+)'=(\d+)")
_NAMELESS = re.compile(r"_?axis_\d+")
_UNPARTITIONED = re.compile(
    r'custom_call_target="(Sharding|SPMDFullToShardShape|SPMDShardToFullShape|xla\.sdy\.\w+)"'
)

_JAX = re.compile(r'op_name="(jit|pjit|pmap|xmap)\(')
_CALLED = re.compile(
    rf"({'|'.join(name for name, row in PRIMITIVES.items() if row.kind is not None)})\w*\)*$"
)

_BEFORE = (
    "this program is not partitioned yet: the collectives that the partitioner will add are not in "
    "it, and shardings are those that it states"
)
_UNSCHEDULED = (
    "this program has no schedule: where it is from before the optimisations, its collectives may "
    "still be combined, changed or dropped"
)
_NO_AXES = "no mesh is given: groups are shown by the positions of their devices"
_NO_CAUSES = "the text does not say who asked for a collective, and why"


def assemble_hlo_report(
    text: str,
    mesh: Mesh | None = None,
    texts: SourceTexts | None = None,
    *,
    own: bool = False,
    dumps: Dumps | None = None,
) -> Report:
    """Read the text of a program into a report, as far as its evidence goes.

    Without a mesh, one that the text itself names is taken; else the axes of a collective are not
    known, and its groups speak for it. `own` says that this process compiled it: only then its
    work is counted, as XLA's own reader ends the process at a text that is not right. `dumps` are
    what else its compile left: they tell who asked for a collective, and why.

    Raises `ValueError` where the text is no whole HLO module, and where the mesh has another
    number of devices.
    """
    program = _Text(hlo.parse(text), mesh, of_jax=bool(_JAX.search(text)))
    located = (texts or SourceTexts()).located()
    earlier = _earlier(dumps, program.mesh)
    found = _explained(program, dumps, located) if earlier else program.collectives(located)
    stated = earlier or program
    report = Report(
        title=program.module.name,
        mesh=program.mesh,
        inputs=tuple(stated.inputs()),
        outputs=tuple(stated.outputs()),
        values=tuple(program.values(located)),
        collectives=found,
        memory=memory_of(read_allocations(dumps.buffers)) if dumps and dumps.buffers else None,
        work=work_of(text, program.module) if own else None,
        sources=located.texts(),
        versions=versions() if own else {"shardnb": metadata.version("shardnb")},
        notes=tuple(program.notes(found)),
        texts={"optimized" if program.is_optimized else "hlo": text},
    )
    return priced(report)


def _earlier(dumps: Dumps | None, mesh: Mesh) -> _Text | None:
    """Give the program before partitioning, where it is there and its axes are known."""
    if dumps is None or not dumps.before or not mesh.axes:
        return None
    return _Text(hlo.parse(dumps.before), mesh, of_jax=True)


def _explained(program: _Text, dumps: Dumps | None, located: Sources) -> tuple[Collective, ...]:
    if dumps is None or not dumps.partitioned:
        return program.collectives(located)
    partitioned = hlo.parse(dumps.partitioned)
    found = find_collectives(program.module, program.mesh, located.locate, partitioned)
    causes = explain_causes(
        found,
        optimized=program.module,
        partitioned=partitioned,
        dumps=dumps,
        mesh=program.mesh,
        locate=located.locate,
    )
    return causes.collectives


@dataclass(frozen=True)
class _Text:
    """A module, the mesh that was given for it, and whether it is a program of JAX's."""

    module: hlo.Module
    given: Mesh | None
    of_jax: bool

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh that was given, else the one that the text names, else one without axes."""
        stated = max((int(count) for count in _COUNT.findall(self.module.header)), default=1)
        if self.given is not None:
            if stated not in (1, self.given.size):
                raise ValueError(
                    f"{self.module.name} is for {stated} devices, and the mesh has "
                    f"{self.given.size}: {', '.join(f'{a.name}={a.size}' for a in self.given.axes)}"
                )
            return self.given
        return self._named(stated) or unnamed(max(stated, self._highest(stated) + 1))

    def _named(self, devices: int) -> Mesh | None:
        """Give the mesh that shardings and groups name, where they all name the same."""
        attributes = (one.attributes for one in self.module.instructions())
        meshes = {found for text in attributes for found in _MESH.findall(text)}
        axes = {
            tuple((name, int(size)) for name, size in _SIZE.findall(declared))
            for declared in meshes
        }
        named = [mesh for mesh in axes if not any(_NAMELESS.fullmatch(name) for name, _ in mesh)]
        if len(named) != 1:
            return None
        found = of_axes([Axis(name, size) for name, size in named[0]])
        return found if found.size == devices else None

    def _highest(self, devices: int) -> int:
        found = find_collectives(self.module, unnamed(devices), lambda _: ())
        return max((p for c in found for group in c.groups for p in group), default=0)

    @cached_property
    def is_optimized(self) -> bool:
        """Whether the text is the program as the devices run it."""
        return "is_scheduled=true" in self.module.header or not self.is_unpartitioned

    @cached_property
    def is_unpartitioned(self) -> bool:
        """Whether values still lie on the whole mesh, and their shardings are annotations."""
        if "is_scheduled=true" in self.module.header:
            return False
        return any(
            _UNPARTITIONED.search(one.attributes)
            or (one.opcode not in ("parameter", "tuple") and one.attribute("sharding"))
            for one in self.module.instructions()
        )

    def collectives(self, located: Sources) -> tuple[Collective, ...]:
        """List the collectives that are in the text."""
        found = find_collectives(self.module, self.mesh, located.locate)
        return tuple(replace(one, generated=self._is_made(one)) for one in found)

    def _is_made(self, collective: Collective) -> bool | None:
        """Whether the compiler made a collective, as far as the text tells; else None.

        The partitioner's mark tells; else the operation of JAX's that it was compiled from.
        """
        if collective.generated:
            return True
        if _CALLED.search(collective.op_name):
            return False
        return True if self.of_jax and collective.op_name else None

    def notes(self, found: Sequence[Collective]) -> Iterator[str]:
        """Say what the text cannot tell."""
        if self.is_unpartitioned:
            yield _BEFORE
        elif "is_scheduled=true" not in self.module.header:
            yield _UNSCHEDULED
        if found and not self.mesh.axes:
            yield _NO_AXES
        if any(one.asked_by is None for one in found):
            yield _NO_CAUSES

    def inputs(self) -> Iterator[Value]:
        """Give the parameters whose placement is stated."""
        entry = self.module.computations[self.module.entry]
        parameters = [one for one in entry if one.opcode == "parameter" and not one.is_tuple]
        for one in sorted(parameters, key=lambda one: int(one.operand_text)):
            layout = self._layout(one)
            if layout is not None:
                yield self._value(one.op_name or one.name, one, layout)

    def outputs(self) -> Iterator[Value]:
        """Give the results of a program that is not partitioned, where all are stated."""
        if not self.is_unpartitioned:
            return
        entry = self.module.computations[self.module.entry]
        known = {one.name: one for one in entry}
        root = next((one for one in entry if one.is_root), entry[-1])
        made = [known[name] for name in root.operands] if root.opcode == "tuple" else [root]
        layouts = self._layouts(root, [len(one.arrays[0][1]) for one in made])
        for at, (one, layout) in enumerate(zip(made, layouts, strict=False)):
            if layout.spec is not None:
                name = "result" if root is one else f"result[{at}]"
                yield self._value(name, one, layout)

    def _layouts(self, root: Instruction, ranks: Sequence[int]) -> tuple[Layout, ...]:
        text = root.attribute("sharding")
        return self._reader.leaves(text, tuple(ranks)) if text and self.mesh.axes else ()

    def values(self, located: Sources) -> Iterator[Value]:
        """Give the values inside a program that is not partitioned whose sharding is stated."""
        for one in self.module.instructions() if self.is_unpartitioned else ():
            layout = self._layout(one) if one.opcode not in ("parameter", "tuple") else None
            if layout is not None:
                frames = located.locate(self.module.frames(one))
                yield self._value(one.name, one, layout, frames)

    @cached_property
    def _reader(self) -> LayoutReader:
        return LayoutReader(self.mesh)

    def _layout(self, one: Instruction) -> Layout | None:
        """Give the placement that an array states in mesh axes, None where it states none."""
        text = one.attribute("sharding")
        if text is None or "maximal" in text or not self.mesh.axes:
            return None
        if one.is_tuple or len(one.arrays) != 1:
            return None
        layout = self._reader.read(text, len(one.arrays[0][1]))
        return None if layout.spec is None or layout.manual else layout

    def _value(
        self, name: str, one: Instruction, layout: Layout, frames: tuple[Location, ...] = ()
    ) -> Value:
        dtype, shape = one.arrays[0]
        if not self.is_unpartitioned:
            shape = tuple(size * parts for size, parts in zip(shape, layout.tiles, strict=True))
        return Value(
            name=name,
            dtype=dtype,
            shape=shape,
            spec=layout.spec,
            shard_shape=layout.shard_shape(shape),
            unreduced=layout.unreduced,
            location=next(iter(frames), None),
            op=one.opcode,
        )


def unnamed(devices: int) -> Mesh:
    """Give a mesh of which only the number of devices is known."""
    return Mesh((), tuple(range(devices)), target="unknown", kind="unknown")


def of_axes(axes: Sequence[Axis]) -> Mesh:
    """Give a mesh of which only the axes are known."""
    devices = tuple(range(math.prod(axis.size for axis in axes)))
    return Mesh(tuple(axes), devices, target="unknown", kind="unknown")
