"""What is said of types and errors, as plain data: nothing here needs JAX."""

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
    """What is shown as a page: as text by `str`, and as HTML in a notebook."""

    def __str__(self) -> str:
        """Give it as text for a terminal."""
        text: str = shown.by("explanation text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = shown.by("explanation", self)
        return bundle


@dataclass(frozen=True)
class SpecProblem:
    """A spec that does not fit its array or its mesh, or an argument that lies elsewhere.

    `where` says what the spec is for: an input, an output, a constraint, an in_spec or an out_spec.
    For `uneven`, `divides` are the next sizes below and above that
    divide, `padding` the rows to add, `padded_bytes` what they weigh, and `fitting` the sizes of
    the largest mesh of as many devices that divides every array. `fatal` is False where JAX
    pads or moves by itself. `moved_bytes` is what the devices receive by a `device_put`.
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
        """Give the sentence, and the fix where there is one."""
        return f"{self.message}\n    {self.fix}" if self.fix else self.message


@dataclass(frozen=True)
class TypedProgram(Explanation):
    """Every binder of a program with its placement, beside the lines that wrote it."""

    lines: tuple[TypedLine, ...]
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A way out of an error, compiled: its edit, and what one device sends by it.

    `collectives` holds the kind and the mesh axes of each. `chosen` marks the one that the
    propagation of Auto axes leads to.
    """

    edit: str
    spec: str
    collectives: tuple[tuple[Kind, tuple[str, ...]], ...]
    wire_bytes: int
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class ErrorReport(Explanation):
    """An exception of JAX's, explained where the user wrote it.

    `error` is the class, `message` JAX's own text. `values` are the arrays whose placements meet,
    to be drawn. `location` is the innermost line of the user's own, `expression` the part of it
    that raised. `fixes` are texts to write there, best first; `checked` says that the
    operation was compiled in each of these ways. `candidates` are ways out with what each costs.
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

    `passed` is None where the check was not reached, or, if there is a message, not made.
    """

    name: str
    passed: bool | None
    message: str = ""


@dataclass(frozen=True)
class Shard:
    """An argument or a result of a `shard_map`: whole, and as the body of one device sees it.

    `varying` are the axes along which it may differ; None where JAX does not track them.
    """

    name: str
    spec: str
    shape: tuple[int, ...] | None
    local_shape: tuple[int, ...] | None
    dtype: str = ""
    varying: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class MissingCollective:
    """A collective without which a result is not the same along the axes that its spec omits.

    `collective` is the function of `jax.lax`, or None where the body does not show which one is
    meant. `expression`, at `location`, is what is to pass through it.
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
    """What `jax.shard_map` makes of a mesh, in_specs, a body and out_specs.

    `accepted` is JAX's own verdict, `error` and `message` its exception. `steps` are its checks
    in order, `inputs` and `outputs` the shapes, `lines` the body with the varying set after each
    line, `explained` the exception's cause and cure where neither `missing` nor `problems` has
    them, `region` what it lowers to and `report` the compiled program. `again` is the call
    that was checked, so that a widget can check it with other specs (None where it is not known).
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
        """Give a widget in which the specs are chosen, and the check made again.

        A check that was read from somewhere is only shown.
        """
        return shown.by("check widget", self)

    def _repr_mimebundle_(self, **selection: Any) -> Any:
        if self.again is None:
            return super()._repr_mimebundle_(**selection)
        return shown.by("check", self, **selection)


@dataclass(frozen=True)
class Column:
    """One of several programs side by side: its report, or the error that it met."""

    name: str
    report: Report | None = None
    error: ErrorReport | None = None


@dataclass(frozen=True)
class ProgramDiff:
    """What tells two compiled programs apart, numbers and names left aside.

    `instructions` are the differing lines, with `-` and `+` before them; `header` names the parts
    of the module's header that differ, `marks` says that the programs tell otherwise which
    collectives the compiler made. `same_collectives` compares kinds, axes, shapes and trips.
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

    `plan` says how the program becomes one of Explicit axes, where these refused it.
    """

    columns: tuple[Column, ...]
    diffs: tuple[ProgramDiff, ...] = ()
    plan: ExplicitPlan | None = None


@dataclass(frozen=True)
class Annotation:
    """A placement to write at a line, so that Explicit axes accept it.

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
    """All annotations that turn a program of Auto axes into one of Explicit axes.

    `auto` and `explicit` are the compiled programs, the second with all annotations applied, and
    `diff` compares them. `unresolved` is the error that stands in the way of more, if one does.
    `texts` are the annotated sources.
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
