"""The report: what shardnb knows about one program, as plain data.

Everything that a view shows is here, and nothing here needs JAX. Devices are named by their
position in the mesh (row-major over its axes), as in XLA's replica groups; `Mesh.device_ids` maps a
position to the id of the device.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardnb.report import dtypes, places, shown
from shardnb.report.bytes_sent import most_sent
from shardnb.report.changes import Diff, Outcome
from shardnb.report.cost import Cost, Work
from shardnb.report.edits import Fix, ProposedEdit
from shardnb.report.measured import Measured, Profile
from shardnb.report.memory import Memory
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
"""The version of the format. A new field without a default, or a new member of a vocabulary of
`terms`, is a new version, so that an older reader can say that it is too old.
"""

UNUSED = "not used by the program"
"""`Value.details` of an input that the compiled program does not take."""

Spec = places.Spec
Location = places.Location
Source = places.Source

Groups = tuple[tuple[int, ...], ...]
"""Positions of the devices in each group; for a permute, its (source, target) pairs."""


@dataclass(frozen=True)
class Axis:
    """A mesh axis: its name, its number of devices, and who decides shardings along it."""

    name: str
    size: int
    type: AxisType = "auto"


@dataclass(frozen=True)
class Mesh:
    """A named grid of devices.

    `target` is the argument `on` (`cpu`, `attached`, `2*v5e:2x4`), `kind` JAX's name for the
    devices. `coords` are the physical coordinates of the chip by position, if the devices have
    them, and `cores` the core of its chip that each is, if chips have several. `slices` says in
    which slice each device is, where these are several, joined by the data-center network, `hosts`
    on which host, and `domains` in which NVLink domain: the GPUs that NVLink joins.
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
    hosts: tuple[int, ...] | None = None
    domains: tuple[int, ...] | None = None

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
    """One op through which Shardy propagated a mesh axis from one value to another.

    Forward is from an operand to the result, backward from the result to an operand, sideways
    from one operand to another. `number` is Shardy's count of its steps, in the order of time.
    """

    op: str
    direction: Direction
    source: str
    target: str
    location: Location | None = None
    number: int = 0


@dataclass(frozen=True)
class Origin:
    """The origin of a mesh axis on a value, and the steps from there to the value.

    `name` is that of the input or output, or the spec of the constraint. `steps` lead from the
    value `after` of `Report.values`, which has origins of its own, or from the origin itself if
    `after` is None. They are None if they are unknown.
    """

    axis: str
    kind: OriginKind
    name: str = ""
    location: Location | None = None
    steps: tuple[Step, ...] | None = ()
    after: int | None = None


@dataclass(frozen=True)
class Blocked:
    """A mesh axis that an operand has but the op's result does not have, and what stopped it."""

    axis: str
    value: str
    reason: Stop
    why: str


@dataclass(frozen=True)
class Value:
    """An array of the program and its sharding.

    `spec` is None if no mesh axes describe the sharding; then `grid` and `blocks` do: the number of
    blocks along each dimension, and for each position its block, row-major. `spec` is always the
    compiled program's; `requested` is the spec that the user wrote and `propagated` the one that
    Shardy chose, if they differ from it. Inside a shard_map over the axes `manual`, the shape is
    per device, and `varying` are the axes along which the devices' values may differ; None if that
    is unknown. `memory` names the memory that it is in, such as `pinned_host`; "" is the device's
    own.
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
        """Size of the global array in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shape)

    @property
    def shard_bytes(self) -> int:
        """Size of one device's block in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shard_shape)


@dataclass(frozen=True)
class Overlap:
    """What a device computes between the start and the end of an asynchronous collective.

    `ops` counts the operations that are scheduled there, `names` names each once. `cycles` is the
    compiler's estimate, None if it has none.
    """

    ops: int = 0
    names: tuple[str, ...] = ()
    cycles: int | None = None


@dataclass(frozen=True)
class OnAccelerators:
    """What a compiler for TPU or GPU may send instead of a collective of the CPU compiler's.

    The CPU compiler sends narrow floats as `float32`, and sums in full what each device then
    slices, where others may use a reduce-scatter: whether they do, only they show. The fields are
    those of `Collective`.
    """

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    wire_bytes: int


@dataclass(frozen=True)
class Collective:
    """One collective of the optimized program.

    `bytes` is the size of the result per device, `wire_bytes` what each device sends per execution
    with the ring algorithm (see `shardnb.collectives.wire_bytes`), `trips` how often one call of
    the program runs it (None: the compiler does not know; then it runs at least `least_trips`
    times). `axes` are the mesh axes over which the devices communicate, a part of an axis as
    `data:(4)2`, or None if the groups match no axes. `producer_shape` is the global shape of the
    array that is moved. `module` are the modules and named scopes around the operation that it is
    for. `by_autodiff` says that it is the derivative of what the program calls.
    `generated` says whether the compiler inserted it, None if a text does not show that.
    `made_as` is the kind that the partitioner inserted, if the compiler sends another. `algorithm`
    is the compiler's name for how it is sent, `overlap` what runs meanwhile (None: it is not
    asynchronous, or that is unknown). `on_accelerators` is what TPU and GPU may send instead, where
    the program was compiled for CPU, which sends more. `branches` names the conditionals around it,
    the outermost first, each with the number of its branch. `role` is what it does for `role_of`,
    such as `params['w1']`, where the dataflow shows that. `measured` is its time in a trace.
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
    by_autodiff: bool = False
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
    branches: tuple[tuple[str, int], ...] = ()
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
    measured: Measured | None = field(default=None, compare=False)

    @property
    def bytes(self) -> int:
        """Size of the result per device, in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shape)

    @property
    def total_wire_bytes(self) -> int | None:
        """Bytes that each device sends for it per call, or None if the trips are unknown."""
        return None if self.trips is None else self.wire_bytes * self.trips

    @property
    def least_wire_bytes(self) -> int:
        """The least bytes that each device sends for it per call, if its branch is taken."""
        return self.wire_bytes * (self.least_trips if self.trips is None else self.trips)

    def is_among(self, words: Container[str | None]) -> bool:
        """Whether its kind, or who asked for it, is among the words.

        A collective of unknown origin may be inferred, and counts as such.
        """
        called = "called" if self.generated is False else "inferred"
        return self.kind in words or (self.asked_by or called) in words

    @property
    def line(self) -> int | None:
        """The line of the explained text that led to it: the innermost one."""
        return next((frame.line for frame in self.frames if frame.source == 0), None)


@dataclass(frozen=True)
class Finding:
    """A remark about the program, other than a collective, at its line, with its cost.

    `wasted_bytes` are per device: bytes that it holds, or sends per run, without need. `values` are
    the arrays that it is about, to be drawn: for a full rematerialization the array with the
    sharding that it has, and with the one that is needed. `wire_bytes` are what one device sends in
    a run because of it, by `collectives`, their ids. `locations` are its lines, where there are
    several; one without a line names its arrays in `subject`. Each of `edits` may fix it and is not
    compiled yet, each of `fixes` was compiled (None: no fixes were sought).
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
    subject: str = ""
    edits: tuple[ProposedEdit, ...] = ()
    fixes: tuple[Fix, ...] | None = None


@dataclass(frozen=True)
class Run:
    """What differs from run to run: seconds, and whether the program ran."""

    trace_seconds: float | None = None
    compile_seconds: float | None = None
    explain_seconds: float | None = None
    run_seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """What one program sends, who asked for it, why, and what each device holds.

    `title` names the program. `sources[0]` is the text that was explained. `typed` is its jaxpr
    with a sharding in every type, if its axes are explicit or manual. `work` is what each device
    computes, `cost` the seconds on the mesh's hardware (None on CPU), `profile` what was measured.
    `profile`, `run` and `texts` differ from run to run and do not count in comparisons. `texts`
    holds the programs themselves (`jaxpr`, `stablehlo`, `before partitioning`, `after
    partitioning`, `optimized`), if they were kept.
    `partitioned` is False if the partitioner has not inserted the collectives yet: they are
    unknown. `complete` is False if not all inputs and outputs are known. `since` is what changed
    since the last run of the same cell, `outcomes` how its options that check ended.
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
    profile: Profile | None = field(default=None, compare=False)
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
        """The most bytes that one device sends per call; the least trips if these are unknown.

        Of the branches of a conditional, only the one that sends most counts.
        """
        return most_sent(self.collectives)

    @cached_property
    def ids_in_findings(self) -> frozenset[int]:
        """The ids of the collectives that findings count."""
        return frozenset(one for finding in self.findings for one in finding.collectives)

    def why(self, name: str | None = None, *, line: int | None = None) -> str:
        """Say why a value, or each value of a line, has its sharding.

        Raises `KeyError` that lists the names or lines.
        """
        from shardnb.report import why

        return why.explain(self, name, line)

    def to_json(self, *, texts: bool = True) -> str:
        """Write the report as JSON; `texts=False` leaves out the programs' texts."""
        from shardnb.report import json

        return json.encode(self, texts=texts)

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read a report that `to_json` wrote; needs no JAX.

        Raises `ValueError` that names the place if the text is not a report, or from a newer
        version.
        """
        from shardnb.report import json

        return json.decode(text)

    def diff(self, other: Report) -> Diff:
        """Compare this report with a later one; returns the changes, which `print` shows."""
        from shardnb.report.diff import diff

        return diff(self, other)

    def on_hardware(self, hardware: str | Path | Mapping[str, Any]) -> Report:
        """Return a copy with the seconds that the program would take on other hardware.

        `hardware` is a chip such as `v5e` or `h100`, a TPU slice such as `v5e:2x4`, a GPU cluster
        such as `h100:4x8`, or figures of your own: a dict such as `{"chip": "h100", "network":
        25e9}`, or a JSON or TOML file with one. The seconds follow from formulas listed in
        `cost.assumptions`. Raises `ValueError` that lists the known names and figures.
        """
        report: Report = shown.by("on_hardware", self, hardware)
        return report

    def roofline(self) -> Figure:
        """Draw what bounds the step: compute, memory or communication.

        Raises `ValueError` if the report has no seconds (see `on_hardware`).
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
        """Return the report as text for a terminal."""
        text: str = shown.by("text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = shown.by("bundle", self)
        return bundle
