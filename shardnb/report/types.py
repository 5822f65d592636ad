"""Reports on types, errors, checks and comparisons, as plain data without JAX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shardnb.report import shown
from shardnb.report.model import Location, Mesh, Report, Source, Value
from shardnb.report.typed import TypedLine
from shardnb.terms.collectives import Kind
from shardnb.terms.errors import AnnotationKind, ErrorKind, SpecProblemKind
from shardnb.terms.primitives import Function


class Explanation:
    """An explanation: text by `str`, HTML in a notebook."""

    def __str__(self) -> str:
        """Return it as text for a terminal."""
        text: str = shown.by("explanation text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = shown.by("explanation", self)
        return bundle


@dataclass(frozen=True)
class SpecProblem:
    """A spec that does not fit its array or mesh, or an argument with another sharding.

    `where` says what the spec is for: an input, an output, a constraint, an in_spec or an out_spec.
    For `uneven`, `divides` are the next sizes below and above that divide, `padding` the rows to
    add, `padded_bytes` their size, and `fitting` the sizes of the largest mesh of at most as many
    devices that divides every array. `fatal` is False if JAX pads or moves by itself. `moved_bytes`
    is what the devices receive by a `device_put`.
    """

    kind: SpecProblemKind
    where: str
    name: str
    message: str
    shape: tuple[int, ...] = ()
    spec: str = ""
    dim: int | None = None
    axes: tuple[str, ...] = ()
    parts: int | None = None
    divides: tuple[int, int] | None = None
    padding: int | None = None
    padded_bytes: int | None = None
    fitting: tuple[tuple[str, int], ...] | None = None
    moved_bytes: int | None = None
    fix: str = ""
    fatal: bool = True
    location: Location | None = None

    def __str__(self) -> str:
        """Return the sentence, and the fix if there is one."""
        return f"{self.message}\n    {self.fix}" if self.fix else self.message


@dataclass(frozen=True)
class TypedProgram(Explanation):
    """Every binder of a program with its sharding, next to the lines that wrote it."""

    lines: tuple[TypedLine, ...]
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A compiled way out of an error: the edit, and what each device then sends.

    `collectives` holds the kind and the mesh axes of each. `chosen` marks the one that propagation
    with Auto axes leads to.
    """

    edit: str
    spec: str
    collectives: tuple[tuple[Kind, tuple[str, ...]], ...]
    wire_bytes: int
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class ErrorReport(Explanation):
    """A JAX exception, explained at the line that the user wrote.

    `error` is the class, `message` JAX's own text. `values` are the arrays involved, to be drawn.
    `location` is the innermost line of the user's code, `expression` the part of it that raised.
    `fixes` are texts to write there, best first; `checked` says that the operation was compiled
    with each of them. `candidates` are ways out with what each costs.
    """

    kind: ErrorKind
    error: str
    message: str
    sentence: str
    cause: str = ""
    values: tuple[Value, ...] = ()
    mesh: Mesh | None = None
    other_mesh: Mesh | None = None
    location: Location | None = None
    expression: str = ""
    fixes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    checked: bool = False
    sources: tuple[Source, ...] = ()
    problems: tuple[SpecProblem, ...] = ()


@dataclass(frozen=True)
class CheckStep:
    """A check that `shard_map` makes, and whether it passed.

    `passed` is None if the check was not reached or, if there is a message, not made.
    """

    name: str
    passed: bool | None
    message: str = ""


@dataclass(frozen=True)
class Shard:
    """An argument or a result of a `shard_map`: the global array, and one device's block.

    `varying` are the axes along which it may differ; None if JAX does not track them.
    """

    name: str
    spec: str
    shape: tuple[int, ...] | None
    local_shape: tuple[int, ...] | None
    dtype: str = ""
    varying: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class MissingCollective:
    """A missing collective: without it a result differs along the axes that its spec omits.

    `collective` is the function of `jax.lax`, or None if the body does not show which one is meant.
    `expression`, at `location`, is its operand.
    """

    output: str
    axes: tuple[str, ...]
    collective: Function | None
    why: str
    fix: str
    other_fix: str = ""
    location: Location | None = None
    expression: str = ""


@dataclass(frozen=True)
class ShardMapCheck(Explanation):
    """The check of a `jax.shard_map`: of its mesh, in_specs, body and out_specs.

    `accepted` is JAX's own verdict, `error` and `message` its exception. `steps` are its checks in
    order, `inputs` and `outputs` the shapes, `lines` the body with the varying axes after each
    line, `explained` the cause and fix of the exception if neither `missing` nor `problems` has
    them, `region` what it lowers to and `report` the compiled program. `again` is the call that was
    checked, so that a widget can check it with other specs (None if it is unknown).
    """

    accepted: bool
    mesh: Mesh
    error: str = ""
    message: str = ""
    steps: tuple[CheckStep, ...] = ()
    inputs: tuple[Shard, ...] = ()
    outputs: tuple[Shard, ...] = ()
    lines: tuple[TypedLine, ...] = ()
    missing: tuple[MissingCollective, ...] = ()
    problems: tuple[SpecProblem, ...] = ()
    explained: ErrorReport | None = None
    region: str = ""
    report: Report | None = None
    sources: tuple[Source, ...] = ()
    again: Any = field(default=None, compare=False, repr=False)

    def widget(self) -> Any:
        """Return a widget that checks again with the specs chosen in it.

        A check that was loaded from a file is only shown.
        """
        return shown.by("check widget", self)

    def _ipython_display_(self) -> None:
        if self.again is None:
            raise NotImplementedError  # IPython then asks for the text and the HTML
        shown.by("check", self)


@dataclass(frozen=True)
class Column:
    """One of several programs side by side: its report, or the error that it raised."""

    name: str
    report: Report | None = None
    error: ErrorReport | None = None


@dataclass(frozen=True)
class ProgramDiff:
    """The differences between two compiled programs, apart from numbers and names.

    `instructions` are the differing lines, with `-` and `+` before them; `header` names the parts
    of the module's header that differ, `marks` says that the programs mark different collectives as
    inserted by the compiler. `same_collectives` compares kinds, axes, shapes and trips.
    """

    left: str
    right: str
    sentence: str
    instructions: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    marks: bool = False
    same_collectives: bool = True

    @property
    def identical(self) -> bool:
        """Whether the devices run the same instructions."""
        return not self.instructions


@dataclass(frozen=True)
class Comparison(Explanation):
    """Programs side by side, each compared with the first.

    `plan` has the annotations for Explicit axes, if these rejected the program. `targets` says that
    the programs are for different devices, whose instructions are not compared.
    """

    columns: tuple[Column, ...]
    diffs: tuple[ProgramDiff, ...] = ()
    plan: ExplicitPlan | None = None
    targets: bool = False


@dataclass(frozen=True)
class Annotation:
    """A sharding to write at a line, so that Explicit axes accept it.

    `spec` is what is stated. `from_auto` says that propagation chose this placement in the whole
    program; else it is the one that sends least. `before` and `after` are the line.
    """

    kind: AnnotationKind
    expression: str
    spec: str
    before: str
    after: str
    from_auto: bool
    location: Location | None = None


@dataclass(frozen=True)
class ExplicitPlan(Explanation):
    """All annotations that turn a program with Auto axes into one with Explicit axes.

    `auto` and `explicit` are the compiled programs, the second with all annotations applied, and
    `diff` compares them. `unresolved` is the error that remains, if there is one. `texts` are the
    annotated sources.
    """

    annotations: tuple[Annotation, ...]
    auto: Report
    explicit: Report | None = None
    diff: ProgramDiff | None = None
    unresolved: ErrorReport | None = None
    texts: tuple[Source, ...] = ()

    @property
    def same_collectives(self) -> bool:
        """Whether the annotated program compiles to the same collectives."""
        return self.diff is not None and self.diff.same_collectives
