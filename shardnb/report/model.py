"""The report: what shardnb knows of one program, as plain data.

Everything that a view shows is here, and nothing here needs JAX. Devices are named by their
position in the mesh (row-major over its axes), as XLA's replica groups name them;
`Mesh.device_ids` translates a position into the id of the device.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardnb.report import dtypes, places, shown
from shardnb.report.changes import Diff, Outcome
from shardnb.report.cost import Cost, Work
from shardnb.report.typed import TypedLine
from shardnb.terms.axis_types import AxisType
from shardnb.terms.causes import AskedBy, Phase, Reason
from shardnb.terms.collectives import Kind, Within
from shardnb.terms.findings import FindingKind
from shardnb.terms.origins import Direction, OriginKind, Stop
from shardnb.terms.roles import Role

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
"""What a reader has to know: a new field without a default, or a new member of a vocabulary of
`terms`, is a new version, so that an older reader says so instead of refusing a word.
"""

UNUSED = "not used by the program"
"""What `Value.details` says of an input that the compiled program does not take."""

Spec = places.Spec
Location = places.Location
Source = places.Source

Groups = tuple[tuple[int, ...], ...]
"""Positions of the devices that exchange; for a permute, its (source, target) pairs."""


@dataclass(frozen=True)
class Axis:
    """A mesh axis: its name, its number of devices, and who decides placement along it."""

    name: str
    size: int
    type: AxisType = "auto"


@dataclass(frozen=True)
class Mesh:
    """A named grid of devices.

    `target` is what `on=` said (`cpu`, `attached`, `v5e:2x4`), `kind` the devices' own name.
    `coords` are the physical coordinates of the chip by position, where the devices have them,
    and `cores` which core of its chip each is, where chips have several. `slices` says in which TPU
    slice each device is, where these are several, joined by the data-center network.
    """

    axes: tuple[Axis, ...]
    device_ids: tuple[int, ...]
    target: str = "cpu"
    platform: str = "cpu"
    kind: str = "cpu"
    emulated: bool = False
    coords: tuple[tuple[int, ...], ...] | None = None
    cores: tuple[int, ...] | None = None
    slices: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.device_ids)

    @property
    def shape(self) -> dict[str, int]:
        """Axis sizes by name, in order."""
        return {axis.name: axis.size for axis in self.axes}


@dataclass(frozen=True)
class Step:
    """One op along which a mesh axis travelled from a value to another, while Shardy propagated.

    Forward is from an operand to the result, backward from the result to an operand, sideways
    from one operand to another. `number` is Shardy's own count of its steps, in time.
    """

    op: str
    direction: Direction
    source: str
    target: str
    location: Location | None = None
    number: int = 0


@dataclass(frozen=True)
class Origin:
    """What put a mesh axis on a value, and how it came there.

    `name` is the input's, the output's, or the spec of the constraint. `steps` lead from the
    value `after` of `Report.values`, whose own origins go on, or from the origin itself where
    `after` is None. They are None where the way is not known.
    """

    axis: str
    kind: OriginKind
    name: str = ""
    location: Location | None = None
    steps: tuple[Step, ...] | None = ()
    after: int | None = None


@dataclass(frozen=True)
class Blocked:
    """A mesh axis that an operand has and the result of the op has not, and what stopped it."""

    axis: str
    value: str
    reason: Stop
    why: str


@dataclass(frozen=True)
class Value:
    """An array of the program and how it lies on the mesh.

    `spec` is None where the placement cannot be said in mesh axes; then `grid` and `blocks` say
    it: the number of blocks along each dimension, and for each position its block, row-major.
    `requested` is the spec that the user stated, where that is another. `spec` is always the
    compiled program's; `propagated` is what Shardy gave, where that is another. Inside a
    shard_map over the axes `manual`, the shape is one device's, and `varying` are the axes along
    which the devices may hold other values than each other; None where that is not known. `memory`
    names the memory that it is in, such as `pinned_host`; "" is the device's own.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    spec: Spec | None
    shard_shape: tuple[int, ...]
    unreduced: tuple[str, ...] = ()
    grid: tuple[int, ...] | None = None
    blocks: tuple[int, ...] | None = None
    requested: Spec | None = None
    closed_over: bool = False
    location: Location | None = None
    details: str = ""
    op: str = ""
    manual: tuple[str, ...] = ()
    varying: tuple[str, ...] | None = None
    propagated: Spec | None = None
    origins: tuple[Origin, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    memory: str = ""

    @property
    def bytes(self) -> int:
        """Size of the whole array in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shape)

    @property
    def shard_bytes(self) -> int:
        """Size of one device's block in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shard_shape)


@dataclass(frozen=True)
class Fix:
    """An edit that was compiled, with what it changes: before and after, per device."""

    edit: str
    collectives: tuple[int, int]
    wire_bytes: tuple[int, int]
    memory_bytes: tuple[int, int]
    location: Location | None = None


@dataclass(frozen=True)
class Overlap:
    """What a device computes between the start and the end of an asynchronous collective.

    `ops` counts the operations that are scheduled there, `names` says which, each once. `cycles`
    is the compiler's own estimate of them, None where it gives none.
    """

    ops: int = 0
    names: tuple[str, ...] = ()
    cycles: int | None = None


@dataclass(frozen=True)
class OnAccelerators:
    """What the compilers for TPU and GPU send in place of a collective of the one for CPU.

    That one sends narrow floats as `float32`, and adds up in full what each device then cuts. The
    fields are as those of `Collective`.
    """

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    wire_bytes: int


@dataclass(frozen=True)
class Collective:
    """One exchange between devices in the optimized program.

    `bytes` is the size of the result on one device, `wire_bytes` what one device sends for one
    execution by the ring formula (see `shardnb.collectives.wire_bytes`), `trips` how often one call
    of the program runs it (None: the compiler does not know, then it is `least_trips` at least: a
    loop's condition runs once more than its body). `axes` are the mesh axes whose devices
    exchange, a part of an axis as `data:(4)2`, or None where the groups match no axes.
    `producer_shape` is the shape of the whole array that is moved, before it was cut.
    `module` are the modules and named scopes around the operation that it is for.
    `generated` says whether the compiler made it, None where a text does not tell.
    `made_as` is the kind that the partitioner made, where the compiler sends another. `algorithm`
    is the compiler's name of how it sends it, `overlap` what runs meanwhile (None: it is not
    asynchronous, or that is not known). `on_accelerators` is what TPU and GPU send instead, where
    the program was compiled for CPU, which sends more.
    `role` is what it does for `role_of`, such as `params['w1']`, where the dataflow shows that.
    """

    id: int
    kind: Kind
    axes: tuple[str, ...] | None
    groups: Groups
    dtype: str
    shape: tuple[int, ...]
    wire_bytes: int
    trips: int | None = 1
    generated: bool | None = False
    asked_by: AskedBy | None = None
    reason: Reason | None = None
    why: str = ""
    detail: str | None = None
    full_remat: bool = False
    producer: str | None = None
    producer_spec: Spec | None = None
    producer_shape: tuple[int, ...] | None = None
    consumer: str | None = None
    needed_spec: Spec | None = None
    phase: Phase | None = None
    seconds: float | None = None
    fixes: tuple[Fix, ...] | None = None
    combined_with: tuple[int, ...] = ()
    frames: tuple[Location, ...] = ()
    within: tuple[Within, ...] = ()
    op_name: str = ""
    module: str = ""
    instruction: str = ""
    channel: int | None = None
    made_as: Kind | None = None
    algorithm: str | None = None
    overlap: Overlap | None = None
    least_trips: int = 0
    role: Role | None = None
    role_of: str = ""
    on_accelerators: OnAccelerators | None = None

    @property
    def bytes(self) -> int:
        """Size of the result on one device, in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shape)

    @property
    def total_wire_bytes(self) -> int | None:
        """Bytes that one device sends for it in one call, or None where the trips are unknown."""
        return None if self.trips is None else self.wire_bytes * self.trips

    @property
    def least_wire_bytes(self) -> int:
        """Bytes that one device sends for it in one call at least, where its branch is taken."""
        return self.wire_bytes * (self.least_trips if self.trips is None else self.trips)

    def is_among(self, words: Container[str | None]) -> bool:
        """Whether its kind, or who asked for it, is among the words.

        One of which nobody knows who asked for it may be inferred, and counts as such.
        """
        called = "called" if self.generated is False else "inferred"
        return self.kind in words or (self.asked_by or called) in words

    @property
    def line(self) -> int | None:
        """The line of the explained text that led to it: the innermost of its own lines."""
        return next((frame.line for frame in self.frames if frame.source == 0), None)


@dataclass(frozen=True)
class Finding:
    """Something worth knowing that is no collective, at its line, with its price.

    `wasted_bytes` are one device's: what it holds, or sends in a run, and need not.
    `values` are the arrays that it is about, to be drawn: for a full rematerialisation the array
    as it lies, and as it is needed.
    `wire_bytes` are what one device sends in a run because of it, by `collectives`, their ids.
    `locations` are its lines, where there are several, `edit` mends it and is not compiled yet.
    """

    kind: FindingKind
    message: str
    location: Location | None = None
    wasted_bytes: int | None = None
    details: str = ""
    values: tuple[Value, ...] = ()
    wire_bytes: int | None = None
    collectives: tuple[int, ...] = ()
    locations: tuple[Location, ...] = ()
    edit: str = ""


@dataclass(frozen=True)
class Memory:
    """Bytes on one device, as the compiler's own analysis gives them.

    `aliased` bytes are outputs that reuse a donated input. `constants` says how much of `arguments`
    are arrays that the function closes over: `jax.jit` makes them constants of each device. `host`
    is what the program holds in the memory of a device's host, and in no other figure.
    """

    arguments: int
    outputs: int
    temporaries: int
    aliased: int = 0
    code: int = 0
    constants: int = 0
    host: int = 0

    @property
    def total(self) -> int:
        """Bytes that one device holds at once: arguments, outputs and temporaries."""
        return self.arguments + self.outputs + self.temporaries - self.aliased


@dataclass(frozen=True)
class Run:
    """What differs from run to run: seconds, and whether the program ran."""

    trace_seconds: float | None = None
    compile_seconds: float | None = None
    explain_seconds: float | None = None
    run_seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """What one program sends, who asked for it, why, and what it holds.

    `title` names the program. `sources[0]` is the text that was explained. `typed` is its jaxpr
    with a placement in every type, where its axes are explicit or manual. `work` is what one
    device computes, `cost` the seconds on the mesh's hardware (None on CPU). `run` and `texts`
    differ from run to run and take no part in equality. `texts` holds the programs themselves
    (`jaxpr`, `stablehlo`, `before partitioning`, `after partitioning`, `optimized`), where they
    were kept. `partitioned` is False of a program whose collectives the partitioner has yet to add:
    they are not known. `complete` is False where not all inputs and outputs are known. `since` is
    what changed since the last run of the same cell, `outcomes` how its options that check ended.
    """

    title: str
    mesh: Mesh
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    values: tuple[Value, ...] = ()
    collectives: tuple[Collective, ...] = ()
    findings: tuple[Finding, ...] = ()
    memory: Memory | None = None
    sources: tuple[Source, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    typed: tuple[TypedLine, ...] = ()
    work: Work | None = None
    cost: Cost | None = None
    partitioned: bool = True
    complete: bool = True
    outcomes: tuple[Outcome, ...] = ()
    since: Diff | None = field(default=None, compare=False)
    run: Run = field(default_factory=Run, compare=False)
    texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    version: int = SCHEMA_VERSION

    @property
    def source(self) -> Source | None:
        """The text that was explained."""
        return self.sources[0] if self.sources else None

    @cached_property
    def wire_bytes(self) -> int:
        """Bytes that one device sends in one call; the least, where trips are not known."""
        return sum(c.least_wire_bytes for c in self.collectives)

    def why(self, name: str | None = None, *, line: int | None = None) -> str:
        """Say in words why a value, or each value of a line, has its sharding.

        Raises `KeyError` with the names and lines that there are.
        """
        from shardnb.report import why

        return why.explain(self, name, line)

    def to_json(self, *, texts: bool = True) -> str:
        """Write the report as JSON; `texts=False` leaves out the programs' texts."""
        from shardnb.report import json

        return json.encode(self, texts=texts)

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read a report that `to_json` wrote; no JAX is needed.

        Raises `ValueError` with the place where the text is no report, or is a newer one.
        """
        from shardnb.report import json

        return json.decode(text)

    def diff(self, other: Report) -> Diff:
        """Compare this report with a later one; gives the changes, and `print` shows them."""
        from shardnb.report.diff import diff

        return diff(self, other)

    def on_hardware(self, name: str) -> Report:
        """Give a copy with the seconds that the program would take on other hardware.

        `name` is a chip such as `v5e` or `h100`, or a TPU slice such as `v5e:2x4`. The seconds
        are by formulas, and `cost.assumptions` says which. Raises `ValueError` with the names.
        """
        report: Report = shown.by("on_hardware", self, name)
        return report

    def roofline(self) -> Figure:
        """Draw what bounds the step: computing, memory or communication.

        Raises `ValueError` where the report has no seconds (see `on_hardware`).
        """
        figure: Figure = shown.by("roofline", self)
        return figure

    def figure(self) -> Figure:
        """Draw the device grids and the collectives in matplotlib."""
        figure: Figure = shown.by("figure", self)
        return figure

    def save_html(self, path: str | Path) -> Path:
        """Write the report as one HTML file that needs no JavaScript and no network."""
        saved: Path = shown.by("page", self, path)
        return saved

    def __str__(self) -> str:
        """Give the report as text for a terminal."""
        text: str = shown.by("text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = shown.by("bundle", self)
        return bundle
