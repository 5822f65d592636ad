"""One pass from Auto to Explicit: trace, annotate where JAX refuses, and go on."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jax.sharding import PartitionSpec

from shardnb.bugs import contained
from shardnb.compiler import Program, Request, build
from shardnb.compiler.comparison import diff, same_collectives
from shardnb.compiler.placement import text as spec_text
from shardnb.errors import explain_error, failures
from shardnb.errors.evidence import ErrorEvidence, Operation
from shardnb.errors.reshard_candidates import OperationTrial, Remedy, as_spec
from shardnb.errors.sharding import pieces_for
from shardnb.findings import report_of_program
from shardnb.jax_compat.tracing import full_tracebacks
from shardnb.mesh import retyped
from shardnb.report.model import Collective, Location, Report, Spec
from shardnb.report.types import Annotation, Column, ExplicitPlan
from shardnb.rewrite.expression import Expression
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.rewrite.text_edits import Piece, Span, Text
from shardnb.search.explicit.choices import Choice, choices, typed
from shardnb.search.explicit.texts import AnnotatedTexts
from shardnb.terms.errors import ANNOTATIONS, AnnotationKind
from shardnb.texts.hlo import Frame

Tree = Any
# A trace writes one annotation, or tries the next edit at its place: models of a hundred layers
# repeat the same lines. It ends a pass in which two edits undo each other.
_MOST_TRACES = 100
# Each of these compiles the program once more; test_a_type_that_goes_another_way_than_propagation_
# is_stated_too needs one.
_MOST_REFINED = 6
_Key = tuple[str, Span]
"""A file and the bytes of an expression in it."""


def to_explicit(request: Request) -> ExplicitPlan:
    """Find every annotation that a program needs to run on Explicit axes.

    The program is compiled with Auto axes; then its Python is traced with Explicit ones, again and
    again, and where JAX refuses an operation the placement that propagation chose there is written
    into the text. Nothing runs, and what the tracing prints is dropped. The user's functions have
    the edited code while they are traced, and their own afterwards.
    """
    request = replace(request, apart=True)
    auto = build(replace(request, grid=retyped(request.grid, "auto")))
    explicit = replace(request, grid=retyped(request.grid, "explicit"))
    return _Pass(explicit, auto, report_of_program(auto)).run()


@dataclass(frozen=True)
class _Edit:
    """Pieces to write, the placement that they state, and whether propagation chose it."""

    pieces: list[Piece]
    spec: str
    from_auto: bool


@dataclass
class _Attempt:
    """The edits that may help at a place, and those that were tried there."""

    key: _Key
    edits: Iterator[_Edit]
    tried: list[list[Piece]] = field(default_factory=list)


@dataclass
class _Pass:
    """The state of one pass."""

    request: Request
    auto: Program
    auto_report: Report
    annotations: list[Annotation] = field(default_factory=list)
    last: _Attempt | None = None

    def __post_init__(self) -> None:
        """Read what propagation chose, and find the texts."""
        self.choices = choices(self.auto, self.auto_report.mesh)
        self.texts = AnnotatedTexts(self.auto)
        self.located = self.request.texts.located()

    def run(self) -> ExplicitPlan:
        error: Exception | None = None
        for _ in range(_MOST_TRACES):
            program, error = self._traced()
            if program is not None:
                return self._plan(self._refined(program), None)
            helped = False
            if error is not None:
                with contained("the annotation that would help"):
                    helped = self._annotate(error)
            if not helped:
                break
        return self._plan(None, error)

    def _traced(self) -> tuple[Program | None, Exception | None]:
        with (
            quiet_retrace(),
            full_tracebacks(),
            self.texts.running(self.request.function) as fn,
        ):
            try:
                return build(replace(self.request, function=fn)), None
            # What JAX refuses, and how, is what the pass goes by: it may be of any class, as may
            # what the user's function raises on Explicit axes.
            except Exception as error:  # noqa: BLE001
                return None, error

    def _plan(self, program: Program | None, error: Exception | None) -> ExplicitPlan:
        report = report_of_program(program) if program else None
        unresolved = None
        if error is not None:
            known = explain_error(error, texts=self.request.texts, grid=self.request.grid)
            unresolved = known or failures.report_or_words(error)
        return ExplicitPlan(
            annotations=tuple(self.annotations),
            auto=self.auto_report,
            explicit=report,
            diff=diff(Column("auto", self.auto_report), Column("explicit", report))
            if report
            else None,
            unresolved=unresolved,
            texts=self.texts.edited(),
        )

    def _refined(self, program: Program) -> Program:
        """State placements that types took otherwise than propagation, if that sends the same.

        JAX refuses none of these. Where the programs still differ, nothing of it is kept.
        """
        if self._sends_the_same(program):
            return program
        kept = {file: list(pieces) for file, pieces in self.texts.pieces.items()}
        annotations, best, tried = list(self.annotations), program, set[_Key]()
        while len(tried) < _MOST_REFINED:
            divergence = next((d for d in self._divergences(best) if d[:2] not in tried), None)
            if divergence is None:
                break
            file, span, spec = divergence
            tried.add((file, span))
            refined = self._stated_at(file, span, spec)
            if refined is not None and self._sends_the_same(refined):
                return refined
            best = refined or best
        self.texts.pieces, self.annotations = kept, annotations
        return program

    def _sends_the_same(self, program: Program) -> bool:
        return same_collectives(self.auto_report, report_of_program(program))

    def _divergences(self, program: Program) -> Iterator[tuple[str, Span, Spec]]:
        """Yield the expressions whose results are sharded otherwise than propagation chose."""
        results = {}
        for choice in typed(program):
            key = self._key_of(choice, edited=True)
            if key is not None and not choice.backward:
                results[key] = choice
        for key, result in results.items():
            here = [c for c in self._at_place(key) if c.shape == result.shape]
            spec = here[-1].spec if here else None
            if spec is not None and spec != result.spec:
                yield *key, spec

    def _stated_at(self, file: str, span: Span, spec: Spec) -> Program | None:
        """Trace with the result of an expression stated; None, and unwritten, where JAX refuses."""
        text = self.texts.text(file)
        node = text.node(span) if text else None
        if text is None or not isinstance(node, ast.expr):
            return None
        expression = Expression(text, node, self.texts.names(file))
        wanted = as_spec(spec)
        pieces = expression.with_out_sharding(wanted) or expression.with_reshard(node, wanted)
        place = next(iter(self.located.locate((Frame(file, text.line_of(span[0])),))), None)
        edit = _Edit(list(pieces), spec_text(wanted), from_auto=True)
        self._write(file, text, expression, edit, place)
        program = self._traced()[0] if self.texts.compiles(file) else None
        if program is None:
            self._undo(_Attempt((file, span), iter(()), [edit.pieces]))
        return program

    def _annotate(self, error: Exception) -> bool:
        """Write an annotation where JAX refused; False where none is found."""
        evidence = ErrorEvidence(error, self.located)
        place = self._place(evidence)
        if place is None:
            return False
        file, span, text, expression = place
        evidence.__dict__["expression"] = expression
        key = (file, span)
        if self.last is not None and self.last.key == key:
            self._undo(self.last)
            attempt = self.last
        else:
            attempt = _Attempt(key, iter(self._edits(evidence, key)))
        self.last = attempt
        for edit in attempt.edits:
            if edit.pieces not in attempt.tried:
                attempt.tried.append(edit.pieces)
                self._write(file, text, expression, edit, evidence.location)
                if self.texts.compiles(file):
                    return True
                self._undo(attempt)
        self.last = None
        return False

    def _edits(self, evidence: ErrorEvidence, key: _Key) -> Iterator[_Edit]:
        """Yield the edits that may do, those first that lead to what propagation chose."""
        expression = evidence.expression
        if expression is None:
            return
        constraint = expression.as_reshard()
        if constraint is not None:
            yield _Edit(list(constraint), "as the constraint says", from_auto=True)
        later = []
        if constraint is None and evidence.operation is not None:
            for edit in self._of_operation(evidence, evidence.operation, expression, key):
                if edit.from_auto:
                    yield edit
                else:
                    later.append(edit)
        here = self._at_place(key)
        if here and here[-1].spec is not None:
            spec = as_spec(here[-1].spec)
            free = expression.with_auto_axes(spec)
            if free is not None:
                yield _Edit(list(free), spec_text(spec), from_auto=True)
        yield from later

    def _of_operation(
        self,
        evidence: ErrorEvidence,
        operation: Operation,
        expression: Expression,
        key: _Key,
    ) -> Iterator[_Edit]:
        spec = self._chosen(operation, key)
        for way, then, from_auto in self._ways(operation, spec):
            pieces = pieces_for(evidence, operation, way)
            if pieces is None or not isinstance(expression.node, ast.expr):
                continue
            if then is not None:
                pieces += expression.with_reshard(expression.node, then)
            specs = [way.result] if way.result is not None else [moved for _, moved in way.moves]
            yield _Edit(pieces, ", ".join(map(spec_text, specs)), from_auto=from_auto)

    def _undo(self, attempt: _Attempt) -> None:
        """Take back an edit that did not help at its own place."""
        written = self.texts.pieces[attempt.key[0]]
        for piece in attempt.tried[-1]:
            written.remove(piece)
        self.annotations.pop()

    def _place(self, evidence: ErrorEvidence) -> tuple[str, Span, Text, Expression] | None:
        """Find the expression that raised, in the text as the user wrote it."""
        if evidence.user is None:
            return None
        _, position, _ = evidence.user
        text = self.texts.text(position.file)
        span = self.texts.span(position, edited=True)
        node = text.node(span) if text else None
        if text is None or span is None or node is None:
            return None
        return position.file, span, text, Expression(text, node, evidence.names)

    def _at_place(self, key: _Key) -> list[Choice]:
        """Return the choices of propagation at a place, without those of gradients."""
        forward = (choice for choice in self.choices if not choice.backward)
        return [choice for choice in forward if self._key_of(choice, edited=False) == key]

    def _chosen(self, operation: Operation, key: _Key) -> Spec | None:
        """Return what propagation chose for an operation at a place, if it always chose the same.

        Where JAX raised before it came to a primitive, the last one there gives the result.
        """
        shape = OperationTrial(operation, self.request.grid).result_shape()
        here = [c for c in self._at_place(key) if c.shape == shape and c.spec is not None]
        if operation.expression is not None:
            return here[-1].spec if here else None
        specs = {c.spec for c in here if c.primitive == operation.name}
        return specs.pop() if len(specs) == 1 else None

    def _key_of(self, choice: Choice, *, edited: bool) -> _Key | None:
        """Find the user's expression that wrote an equation, in the text as written."""
        users = next((p for p in choice.stack if self.located.locate((p.frame,))), None)
        span = self.texts.span(users, edited=edited) if users is not None else None
        return (users.file, span) if users is not None and span is not None else None

    def _ways(
        self, operation: Operation, spec: Spec | None
    ) -> Iterator[tuple[Remedy, PartitionSpec | None, bool]]:
        """Give the ways out, each with a placement to move its result to, and whether it is Auto's.

        First those that result in what propagation chose, then those that send what it sends.
        """
        trial = OperationTrial(operation, self.request.grid)
        if spec is not None and trial.states_result:
            stated = Remedy(result=as_spec(spec))
            if trial.is_taken(stated):
                yield stated, None, True
        sent = trial.sent_by_auto()
        if spec is not None:
            alike = [way for way in trial.taken_moves() if trial.result_of(way) == spec]
            for move in trial.compiled(alike):
                if _alike(move.collectives, sent):
                    yield move.remedy, None, True
        compiled = [m for m in trial.remedies() if not m.remedy.leaves_sum_pending]
        # The result's sharding that Auto axes choose is the likeliest; then what Auto axes send.
        compiled.sort(key=lambda m: (not m.chosen, not _alike(m.collectives, sent)))
        for move in compiled:
            same = _alike(move.collectives, sent) and move.remedy.result is None
            moves = same and spec is not None and trial.result_of(move.remedy) != spec
            yield move.remedy, as_spec(spec) if moves and spec is not None else None, same

    def _write(
        self,
        file: str,
        text: Text,
        expression: Expression,
        edit: _Edit,
        location: Location | None,
    ) -> None:
        """Write an edit into its text, and note the line before and after."""
        written = self.texts.pieces.setdefault(file, [])
        line = text.line_of(text.span(expression.node)[0]) - text.shift - 1
        before = text.edited(written).text.splitlines()[line].strip()
        written += edit.pieces
        after = text.edited(written).text.splitlines()[line].strip()
        self.annotations.append(
            Annotation(
                kind=_kind(edit.pieces),
                expression=expression.text,
                spec=edit.spec,
                before=before,
                after=after,
                from_auto=edit.from_auto,
                location=location,
            )
        )


def _alike(explicit: Sequence[Collective], auto: Sequence[Collective] | None) -> bool:
    """Whether two lists send the same."""
    if auto is None:
        return False
    kinds = [Counter((c.kind, c.axes, c.shape) for c in sent) for sent in (explicit, auto)]
    return kinds[0] == kinds[1]


def _kind(pieces: Sequence[Piece]) -> AnnotationKind:
    written = "".join(piece.text for piece in pieces)
    # `auto_axes(f, out_sharding=...)` has the word out_sharding in it, too.
    return next((kind for kind in reversed(list(ANNOTATIONS)) if kind in written), "out_sharding")
