"""Who asked for each collective, why it is there, what it moves and for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardnb.analysis.causes.align import Alignment, align, is_generated
from shardnb.analysis.causes.edges import Edges, Stated
from shardnb.analysis.causes.graph import Graph, Key, graphs, key_of
from shardnb.analysis.causes.layouts import LayoutReader
from shardnb.analysis.causes.match import Matcher
from shardnb.analysis.causes.names import LOOP_CARRY, THE_RESULT, Names
from shardnb.analysis.causes.phase import phase_of
from shardnb.analysis.causes.program import Before
from shardnb.analysis.causes.reason import Judge
from shardnb.analysis.causes.remat import Warnings, read_warnings
from shardnb.analysis.causes.rules import read_rules
from shardnb.analysis.causes.sentence import Facts, sentence
from shardnb.analysis.causes.verdict import UNKNOWN, Verdict
from shardnb.analysis.causes.walk import Move, walk
from shardnb.analysis.groups import AxisFinder
from shardnb.compiler import hlo
from shardnb.compiler.dumps import Dumps
from shardnb.report.model import Collective, Location, Mesh

Locate = Callable[[tuple[hlo.Frame, ...]], tuple[Location, ...]]


@dataclass(frozen=True)
class Counts:
    """Collectives by kind: called by the program, made by the partitioner, and left at the end.

    `combined` counts those that are sent together with another, `gone` those that were merged
    with an equal one or simplified away, `moved` those that left the loop they were made in.
    """

    called: Mapping[str, int]
    made: Mapping[str, int]
    left: Mapping[str, int]
    combined: int = 0
    gone: int = 0
    moved: int = 0

    @property
    def differ(self) -> bool:
        """Whether what is left is not what was called and made."""
        return Counter(self.called) + Counter(self.made) != Counter(self.left)


@dataclass(frozen=True)
class Causes:
    """Collectives with their causes; counts along the way; warnings that are not about them."""

    collectives: tuple[Collective, ...]
    counts: Counts | None = None
    warnings_left: str = ""


def explain_causes(
    collectives: Sequence[Collective],
    *,
    optimized: hlo.Module,
    dumps: Dumps,
    mesh: Mesh,
    input_names: Sequence[str] = (),
    stated: Stated | None = None,
    locate: Locate | None = None,
    partitioned: hlo.Module | None = None,
) -> Causes:
    """Say of each collective who asked for it, why, what it moves, and for whom.

    `input_names` name the program's parameters in order, `stated` says what the user stated on a
    mesh with Explicit axes, `locate` finds the user's lines. Without dumps nothing is added.
    """
    warnings = read_warnings(dumps.warnings)
    if not dumps.before or not dumps.partitioned:
        return Causes(tuple(collectives), None, warnings.left)
    before = Before(hlo.parse(dumps.before), LayoutReader(mesh))
    partitioned = partitioned or hlo.parse(dumps.partitioned)
    explainer = _Explainer(
        before=before,
        after=graphs(partitioned),
        judge=Judge(
            before,
            read_rules(dumps.propagated),
            Edges(before, dumps.stated, dumps.propagated, stated or Stated()),
        ),
        names=Names(before, input_names),
        finder=AxisFinder(mesh),
        warnings=warnings,
        locate=locate or (lambda _: ()),
        differentiated="transpose(" in dumps.before,
    )
    matcher = Matcher(optimized, partitioned)
    matched = matcher.match(collectives)
    found = tuple(explainer.explain(one, matched.get(one.id)) for one in collectives)
    return Causes(found, _counts(matcher, collectives, matched), warnings.left)


@dataclass
class _Explainer:
    before: Before
    after: dict[str, Graph]
    judge: Judge
    names: Names
    finder: AxisFinder
    warnings: Warnings
    locate: Locate
    differentiated: bool
    _alignments: dict[str, Alignment | None] = field(default_factory=dict)

    def explain(self, collective: Collective, made: hlo.Instruction | None) -> Collective:
        if made is None:
            asked = "inferred" if collective.generated else "called"
            summed = collective.kind in ("all-reduce", "reduce-scatter")
            reason = "unknown" if collective.generated else "partial-sum" if summed else None
            return replace(collective, asked_by=asked, reason=reason)
        alignment = self._alignment(made.computation)
        if alignment is None:
            return self._called(collective, made) if not is_generated(made) else self._blank(collective)
        if not is_generated(made):
            return self._called(collective, made, alignment)
        move = walk(alignment, made)
        permuted = [one for one in move.chain if one.opcode == "collective-permute"]
        axes = (self._axes(permuted[0]) or ()) if permuted else ()
        verdict = self.judge.judge(move, self._axes(made), axes)
        return self._told(collective, made, move, verdict, alignment)

    @staticmethod
    def _blank(collective: Collective) -> Collective:
        return replace(collective, asked_by="inferred", reason="unknown")

    def _axes(self, made: hlo.Instruction) -> tuple[str, ...] | None:
        permute = made.opcode == "collective-permute"
        name = "source_target_pairs" if permute else "replica_groups"
        groups = self.finder.groups(made.attribute(name) or "{}", permute=permute)
        return self.finder.axes(groups, permute=permute)

    def _alignment(self, computation: str) -> Alignment | None:
        if computation not in self._alignments:
            before = self.before.graphs.get(computation.partition("_spmd")[0])
            after = self.after.get(computation)
            known = before is not None and after is not None and "_spmd" in computation
            self._alignments[computation] = align(self.before, before, after) if known else None  # type: ignore[arg-type]
        return self._alignments[computation]

    def _called(
        self, collective: Collective, made: hlo.Instruction, alignment: Alignment | None = None
    ) -> Collective:
        summed = collective.kind in ("all-reduce", "reduce-scatter")
        verdict = Verdict("partial-sum" if summed else None, "called")
        producer = consumer = None
        if alignment is not None:
            graph = alignment.before
            old = graph.nodes.get(alignment.own.get(made.name, ""))
            if old is not None and graph.operands[old.name]:
                producer = self.names.value(graph, graph.operands[old.name][0])
            consumer = self._first_user(graph, old) if old is not None else None
        facts = Facts(producer, consumer, None, False, None)
        return self._write(collective, verdict, facts, collective.op_name, None)

    def _first_user(self, graph: Graph, old: hlo.Instruction) -> str | None:
        """Name who takes the result of a collective that the program calls."""
        for user in graph.users.get(old.name, ()):
            if graph.nodes[user].opcode != "tuple":
                return self.names.operation(graph.nodes[user])
        caller = self.before.callers.get(graph.name)
        return LOOP_CARRY if caller is not None and caller[1].opcode == "while" else THE_RESULT

    def _told(
        self,
        collective: Collective,
        made: hlo.Instruction,
        move: Move,
        verdict: Verdict,
        alignment: Alignment,
    ) -> Collective:
        graph = move.graph
        node = graph.nodes.get(move.consumer or "")
        value = graph.nodes.get((move.producer or "").partition("#")[0])
        layout = self.before.layout(graph, move.producer) if move.producer else None
        consumer = self.names.operation(node) if node is not None else None
        if verdict.own:
            node, consumer = value, self.names.operation(value) if value else None
        elif move.result is not None and graph.name == self.before.module.entry:
            consumer = THE_RESULT
        facts = Facts(
            self.names.value(graph, move.producer) if move.producer else None,
            consumer,
            verdict.actual or (layout.spec if layout else None),
            move.own or verdict.own,
            None,
            self.names.value(graph, verdict.other) if verdict.other else None,
            self._spec(graph, verdict.other),
            verdict.summed,
        )
        told = node if node is not None else value
        flagged = self._is_rematerialised(move, value, verdict)
        collective = replace(collective, full_remat=flagged)
        name = told.op_name if told is not None else made.op_name
        return self._write(collective, verdict, facts, name or made.op_name, told)

    def _spec(self, graph: Graph, value: str | None):  # type: ignore[no-untyped-def]
        layout = self.before.layout(graph, value) if value else None
        return layout.spec if layout else None

    def _is_rematerialised(
        self, move: Move, value: hlo.Instruction | None, verdict: Verdict
    ) -> bool:
        if value is None or move.collective.opcode not in ("all-gather", "all-reduce"):
            return False
        if verdict.reason == "partial-sum":
            return False
        return move.sliced and key_of(value) in self.warnings.keys

    def _write(
        self,
        collective: Collective,
        verdict: Verdict,
        facts: Facts,
        op_name: str,
        told: hlo.Instruction | None,
    ) -> Collective:
        frames = self.locate(self.before.module.frames(told)) if told is not None else ()
        frames = frames or collective.frames
        collective = replace(collective, frames=frames)
        line = next((frame.line for frame in frames if frame.source == 0), None)
        facts = replace(facts, line=line)
        phase = phase_of(op_name, differentiated=self.differentiated)
        return replace(
            collective,
            asked_by=verdict.asked_by,
            reason=verdict.reason,
            detail=verdict.detail,
            producer=facts.producer,
            producer_spec=facts.spec,
            consumer=facts.consumer,
            needed_spec=verdict.needed,
            phase=phase,
            why=sentence(collective, verdict, facts),
        )


def _counts(
    matcher: Matcher, collectives: Sequence[Collective], matched: Mapping[int, hlo.Instruction]
) -> Counts:
    made = matcher.made
    kinds = Counter(one.opcode.removesuffix("-start") for one in made if is_generated(one))
    called = Counter(one.opcode.removesuffix("-start") for one in made if not is_generated(one))
    kept = {(one.computation, one.name) for one in matched.values()}
    gone = sum((one.computation, one.name) not in kept for one in made)
    combined = sum(bool(one.combined_with) for one in collectives)
    left = Counter(one.kind for one in collectives)
    moved = sum(
        len(one.within) == 0 and "while" in (matched[one.id].op_name if one.id in matched else "")
        for one in collectives
    )
    return Counts(called, kinds, left, combined, gone, moved)


_ = (UNKNOWN, Key)
