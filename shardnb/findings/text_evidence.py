"""The evidence that an HLO text is: a program that was compiled elsewhere, or by the user's jit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax

from shardnb.collectives.find import find_collectives
from shardnb.compiler import SourceTexts
from shardnb.compiler.dumps import Dumps
from shardnb.findings.evidence import Evidence
from shardnb.mesh import Grid, parse_mesh
from shardnb.report.invalid_input import InvalidInput, check_devices
from shardnb.report.model import Axis, Location, Mesh, Value
from shardnb.sources.quotable import quotable
from shardnb.sources.source_texts import Sources
from shardnb.texts import hlo, hlo_check
from shardnb.texts.instruction import Instruction
from shardnb.texts.nesting import check_nesting
from shardnb.texts.shardings import Layout, LayoutReader

_COUNT = re.compile(r"\b(?:num_partitions|replica_count)=(\d+)")
# The meshes of Shardy, which a program names until it is imported for partitioning.
_SHARDY_MESH = re.compile(
    r"#sdy\.mesh<\[([^\]]*)\]>|^  sdy\.mesh @\w+ = <\[([^\]]*)\]>", re.MULTILINE
)
_SHARDY_SIZE = re.compile(r'\\?"([^"\\]+)\\?"=(\d+)')
_MESH = re.compile(r"mesh\[((?:'[^']+'=\d+,?)+)\](?!, device_ids)")
_SIZE = re.compile(r"'([^']+)'=(\d+)")
_NAMELESS = re.compile(r"_?axis_\d+")
_UNPARTITIONED = re.compile(
    r'custom_call_target="(Sharding|SPMDFullToShardShape|SPMDShardToFullShape|xla\.sdy\.\w+)"'
)

_TILED = re.compile(r"\bdevices=\[[\d,]+\]")
_ALL = re.compile(r"\breplica_groups=\{\}")
_DONOR = re.compile(r"\((\d+), \{\}\)")

_BEFORE = (
    "this program is not partitioned yet: the collectives that the partitioner will add are not in "
    "it, and shardings are those that it states"
)
_ALL_DEVICES = (
    "{} has collectives over all devices (replica_groups={{}}), and does not say how many there "
    "are: give a mesh, such as data=8"
)
_UNSCHEDULED = (
    "this program has no schedule: where it is from before the optimisations, its collectives may "
    "still be combined, changed or dropped"
)


def evidence_of_text(
    text: str,
    mesh: Mesh | None = None,
    texts: SourceTexts | None = None,
    *,
    own: bool = False,
    dumps: Dumps | None = None,
) -> Evidence:
    """Return what the text of a program tells, and what else its compile left.

    Without a mesh, one that the text itself names is taken; else the axes of a collective are not
    known, and its groups speak for it. `texts` are those that the user wrote, `own` says that this
    process compiled the program. `dumps` tell who asked for a collective, and why.

    Raises `InvalidInput` where the text is not a complete HLO module, and where the mesh has
    another number of devices.
    """

    def read(text: str) -> hlo.Module:
        return hlo.parse(text) if own else hlo_check.check(hlo.parse(text))

    dumps, texts = dumps or Dumps(), texts or SourceTexts(may_quote=quotable())
    program = _Text(read(text), mesh, dumps.stated)
    if not program.mesh.axes:
        dumps = replace(dumps, before="", partitioned="")  # they are about axes
    for module in () if own else (dumps.stated, dumps.propagated):
        check_nesting(module)
    before = read(dumps.before) if dumps.before else None
    if _ALL.search(text):
        program.check_devices()
    mesh = replace(program.mesh, platform=dumps.platform or program.mesh.platform)
    edges = program if before is None else _Text(before, mesh)
    sources = texts.located()
    return Evidence(
        title=texts.title or program.module.name,
        text=text,
        module=program.module,
        mesh=mesh,
        sources=sources,
        own=own,
        before=before,
        partitioned=read(dumps.partitioned) if dumps.partitioned else None,
        dumps=dumps,
        inputs=tuple(edges.inputs()),
        outputs=tuple(edges.outputs()),
        donated=program.donated(),
        stated_values=partial(program.values, sources),
        notes=tuple(program.notes()),
        is_partitioned=not program.is_unpartitioned,
        complete=False,
        texts={"optimized" if program.is_optimized else "hlo": text},
    )


@dataclass(frozen=True)
class _Text:
    """A module, the mesh that was given for it, and the text of Shardy's module of it."""

    module: hlo.Module
    given: Mesh | None
    of_shardy: str = ""

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh that was given, else the one that the text names, else one without axes."""
        stated = self._stated_devices
        if self.given is not None:
            if stated not in (1, self.given.size):
                raise InvalidInput(
                    f"{self.module.name} is for {stated} devices, and the mesh has "
                    f"{self.given.size}: {', '.join(f'{a.name}={a.size}' for a in self.given.axes)}"
                )
            return self.given
        declared = declared_mesh(self.module.header, self.of_shardy)
        if declared is not None and stated in (1, declared.size):
            return declared
        if named := self._named(stated):
            return named
        found = find_collectives(self.module, unnamed(stated), lambda _: ())
        highest = max((p for c in found for group in c.groups for p in group), default=0)
        return unnamed(max(stated, highest + 1))

    @cached_property
    def _stated_devices(self) -> int:
        return math.prod(int(count) for count in _COUNT.findall(self.module.header))

    def check_devices(self) -> None:
        """Raise `InvalidInput` where collectives are over all of an unknown number of devices."""
        if self.given is None and self.mesh.size == 1 and not _COUNT.search(self.module.header):
            raise InvalidInput(_ALL_DEVICES.format(self.module.name))

    def _named(self, devices: int) -> Mesh | None:
        """Return the mesh that shardings and groups name, where they all name the same."""
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

    @cached_property
    def is_optimized(self) -> bool:
        """Whether the text is the program as the devices run it."""
        return self.is_scheduled or not self.is_unpartitioned

    @cached_property
    def is_unpartitioned(self) -> bool:
        """Whether values are still global, and their shardings are annotations."""
        if self.is_scheduled:
            return False
        if "xla.sdy." in self.module.header:
            return True
        if self._stated_devices == 1 and any(
            _TILED.search(one.attribute("sharding") or "") for one in self.module.instructions()
        ):
            return True
        return any(
            _UNPARTITIONED.search(one.attributes)
            or (one.opcode not in ("parameter", "tuple") and one.attribute("sharding"))
            for one in self.module.instructions()
        )

    @property
    def is_scheduled(self) -> bool:
        """Whether the text is the program at the end of its compile."""
        return "is_scheduled=true" in self.module.header

    def notes(self) -> Iterator[str]:
        """Say at which stage of its compile the program is, where that is not the end."""
        if self.is_unpartitioned:
            yield _BEFORE
        elif not self.is_scheduled:
            yield _UNSCHEDULED

    def donated(self) -> dict[int, Value]:
        """Return the donated parameters that the compiler found no result for, by their numbers."""
        listed = self.module.header.partition("buffer_donor={")[2].partition("entry_computation")[0]
        numbers = set(map(int, _DONOR.findall(listed))) if self.is_scheduled else set()
        return {
            number: Value(one.op_name or one.name, *one.arrays[0], None, one.arrays[0][1])
            for number, one in self._parameters()
            if number in numbers
        }

    def _parameters(self) -> Iterator[tuple[int, Instruction]]:
        """Return the parameters that are one array, in their order, each with its number."""
        entry = self.module.computations[self.module.entry]
        numbered = ((number, entry.node(v)) for number, v in sorted(entry.parameters.items()))
        return ((number, one) for number, one in numbered if not one.is_tuple)

    def inputs(self) -> Iterator[Value]:
        """Yield the parameters whose placement is stated."""
        for _, one in self._parameters():
            layout = self._layout(one)
            if layout is not None:
                yield self._value(one.op_name or one.name, one, layout)

    def outputs(self) -> Iterator[Value]:
        """Yield the results of a program that is not partitioned, where all are stated."""
        if not self.is_unpartitioned:
            return
        entry = self.module.computations[self.module.entry]
        root = entry.root
        made = [entry.node(value) for value in root.operands] if root.opcode == "tuple" else [root]
        text, ranks = root.attribute("sharding"), tuple(len(one.arrays[0][1]) for one in made)
        layouts = self._reader.leaves(text, ranks) if text and self.mesh.axes else ()
        for at, (one, layout) in enumerate(zip(made, layouts, strict=False)):
            if layout.spec is not None:
                name = "result" if root is one else f"result[{at}]"
                yield self._value(name, one, layout)

    def values(self, located: Sources) -> Iterator[Value]:
        """Yield the values inside a program that is not partitioned whose sharding is stated."""
        for one in self.module.instructions() if self.is_unpartitioned else ():
            layout = self._layout(one) if one.opcode not in ("parameter", "tuple") else None
            if layout is not None:
                frames = located.locate(self.module.frames(one))
                yield self._value(one.name, one, layout, frames)

    @cached_property
    def _reader(self) -> LayoutReader:
        return LayoutReader(self.mesh)

    def _layout(self, one: Instruction) -> Layout | None:
        """Return the placement that an array states in mesh axes, None where it states none."""
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


def declared_mesh(header: str, of_shardy: str) -> Mesh | None:
    """Return the one mesh that the header of a program and Shardy's module of it declare."""
    meshes = {
        tuple((name, int(size)) for name, size in _SHARDY_SIZE.findall("".join(declared)))
        for text in (header, of_shardy)
        for declared in _SHARDY_MESH.findall(text)
    }
    named = [of_axes([Axis(*axis) for axis in mesh]) for mesh in meshes if mesh]
    return named[0] if len(named) == 1 else None


def unnamed(devices: int) -> Mesh:
    """Return a mesh of which only the number of devices is known."""
    check_devices(devices)
    return Mesh((), tuple(range(devices)), target="unknown", kind="unknown")


def of_axes(axes: Sequence[Axis]) -> Mesh:
    """Return a mesh of which only the axes are known."""
    devices = math.prod(axis.size for axis in axes)
    check_devices(devices)
    return Mesh(tuple(axes), tuple(range(devices)), target="unknown", kind="unknown")


def described(mesh: str | Mesh | jax.sharding.Mesh | None) -> Mesh | None:
    """Return the mesh that names the axes of a text; raises `InvalidInput` for a wrong one."""
    if isinstance(mesh, str):
        return of_axes(parse_mesh(mesh).axes)
    return Grid(mesh).describe() if isinstance(mesh, jax.sharding.Mesh) else mesh
