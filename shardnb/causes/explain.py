"""Who asked for each collective, why it is there, what it moves and for whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardnb.bugs import contained
from shardnb.causes.alignment import Alignment, align
from shardnb.causes.channel_matching import Matcher
from shardnb.causes.counts import Counts, counted
from shardnb.causes.data_movement import Movement, next_permute, walk
from shardnb.causes.dataflow import Dataflow
from shardnb.causes.descriptions import Descriptions, ends
from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.expanded import Expanded, algorithm
from shardnb.causes.flows import Flows
from shardnb.causes.judge import Judge
from shardnb.causes.merged_sums import of_all_norms
from shardnb.causes.names import UserNames, ValueNames
from shardnb.causes.phase import phase_of
from shardnb.causes.rematerialisation import read_warnings
from shardnb.causes.roles import Purpose, Roles
from shardnb.causes.sentence import Facts, detail_of, sentence
from shardnb.causes.stated_shardings import StatedShardings, UserShardings, primitive
from shardnb.causes.training import Training
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import NOT_THE_PRODUCER, UNKNOWN, Verdict
from shardnb.causes.windowed import IN_STEPS, Windowed
from shardnb.collectives.find import is_generated, reduction_of
from shardnb.collectives.on_accelerators import on_accelerators
from shardnb.collectives.transfers import BETWEEN_SLICES
from shardnb.compiler.dumps import Dumps
from shardnb.report.model import Collective, Location, Mesh
from shardnb.report.op_names import module_path
from shardnb.terms.collectives import KINDS, kind_of
from shardnb.texts import hlo
from shardnb.texts.instruction import Instruction, Key
from shardnb.texts.replica_groups import AxisFinder
from shardnb.texts.sharding_rules import Rules
from shardnb.texts.shardings import LayoutReader

_IN_COMMON = ("role", "producer", "consumer", "phase")
"""What is said of a collective that may have been one of several, if it is the same for all."""

Locate = Callable[[tuple[hlo.Frame, ...]], tuple[Location, ...]]


@dataclass(frozen=True)
class Causes:
    """Collectives with their causes; counts along the way; warnings that are not about them.

    `dataflow` is what the program trains and what its collectives move, None where the compiler's
    texts do not tell. `made` is, by the ids of collectives, the instruction that each was right
    after partitioning, where that is known.
    """

    collectives: tuple[Collective, ...]
    counts: Counts | None = None
    warnings_left: str = ""
    dataflow: Dataflow | None = None
    made: Mapping[int, Instruction] = field(default_factory=dict)


def explain_causes(
    collectives: Sequence[Collective],
    *,
    optimized: hlo.Module,
    dumps: Dumps,
    mesh: Mesh,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    user_shardings: UserShardings | None = None,
    locate: Locate | None = None,
    before: hlo.Module | None = None,
    partitioned: hlo.Module | None = None,
    user_names: UserNames | None = None,
) -> Causes:
    """Say of each collective who asked for it, why, what it moves, and for whom.

    `input_names` name the program's parameters in order, `output_names` its results,
    `user_shardings` are those that the user wrote on a mesh with Explicit axes, `locate` finds the
    user's lines and `user_names` what they call values of `before`; `before` and `partitioned` are
    the dumps of these names, if they were read already. Without dumps nothing is added.
    """
    warnings = read_warnings(dumps.warnings)
    unexplained = Causes(tuple(collectives), None, warnings.left)
    if not dumps.before or not dumps.partitioned:
        return unexplained
    with contained("why the collectives are there"):
        program = Unpartitioned(before or hlo.parse(dumps.before), LayoutReader(mesh))
        after = dumps.after_propagation
        stated = StatedShardings(
            program, dumps.before_propagation, after.results, user_shardings or UserShardings()
        )
        judge = Judge(program, Rules(after.rules), stated)
        training = Training(Flows(program.module), input_names, output_names)
        entering = EntryParameters(partitioned or hlo.parse(dumps.partitioned))
        names = ValueNames(program, input_names, user_names)
        explainer = _Explainer(
            program=program,
            partitioned=entering.module,
            judge=judge,
            windowed=Windowed(judge.factors, entering),
            expanded=Expanded(program),
            names=names,
            descriptions=Descriptions(program, names),
            roles=Roles(program, Dataflow(training, judge.factors)),
            finder=AxisFinder(mesh),
            remat=warnings.keys,
            locate=locate or (lambda _: ()),
            differentiated="transpose(jvp(" in dumps.before,
            on_cpu=mesh.platform == "cpu",
        )
        matcher = Matcher(optimized, entering, explainer.finder)
        matched = matcher.match(collectives)
        explainer.kept.update((made.computation, made.name) for made in matched.values())
        found = tuple(
            explainer.among(one, matcher.likely.get(one.id, (matched.get(one.id),)))
            for one in collectives
        )
        counts = counted(matcher, collectives, matched)
        found = of_all_norms(found, matcher.made, matched)
        return Causes(found, counts, warnings.left, explainer.roles.dataflow, matched)
    return unexplained


@dataclass
class _Explainer:
    """Explains the collectives of one program; aligns a computation when it is first needed."""

    program: Unpartitioned
    partitioned: hlo.Module
    judge: Judge
    windowed: Windowed
    expanded: Expanded
    names: ValueNames
    descriptions: Descriptions
    roles: Roles
    finder: AxisFinder
    remat: frozenset[Key]
    locate: Locate
    differentiated: bool
    on_cpu: bool
    kept: set[tuple[str, str]] = field(default_factory=set)
    _alignments: dict[str, Alignment | None] = field(default_factory=dict)

    def explained(self, collective: Collective, made: Instruction | None) -> Collective:
        """Explain a collective; one whose ends cannot be read together is not known.

        What moves the same value in both passes is moved once, for the first of them, though XLA
        may keep the channel of the other (`features_and_samples_over_one_axis`).
        """
        with contained(f"the cause of the {collective.kind} number {collective.id}"):
            explained = self.explain(collective, made)
            if made is not None and explained.phase == "backward":
                twins = (self.explain(collective, twin) for twin in self._twins(made))
                return next((one for one in twins if one.phase == "forward"), explained)
            return explained
        return self._written(collective, UNKNOWN, Facts(), collective.op_name)

    def _twins(self, made: Instruction) -> Iterator[Instruction]:
        """Yield others that move the same value between the same devices, and were merged with it.

        What is left beside it is not one of them (`test_a_plan_that_is_as_it_should_be`).
        """
        graph = self.partitioned.graph_of(made)
        of_all = ("replica_groups", "dimensions", "source_target_pairs")
        for node in graph.users.get(graph.operands[made.name][0], ()):
            alike = node is not made and node.opcode == made.opcode and node.shape == made.shape
            merged = (node.computation, node.name) not in self.kept
            if (
                alike
                and merged
                and all(node.attribute(name) == made.attribute(name) for name in of_all)
            ):
                yield node

    def among(self, collective: Collective, likely: Sequence[Instruction | None]) -> Collective:
        """Explain a collective that was one of several: what is true whichever it was."""
        first, *others = [self.explained(collective, made) for made in likely]
        if all(other == first for other in others):
            return first
        if all(replace(other, role_of=first.role_of) == first for other in others):
            return replace(first, role_of="")
        causes = {
            (one.reason, one.asked_by, one.by_autodiff, one.made_as) for one in (first, *others)
        }
        if len(causes) > 1:
            return self._written(collective, UNKNOWN, Facts(), collective.op_name)
        verdict = Verdict(first.reason, first.asked_by, by_autodiff=first.by_autodiff)
        alike = {one: {getattr(other, one) for other in (first, *others)} for one in _IN_COMMON}
        common = {one: getattr(first, one) for one, values in alike.items() if len(values) == 1}
        # What is sent together has the lines of one: of several, those that all have, or none.
        placed = len({one.line for one in (first, *others)}) == 1
        other_frames = () if collective.combined_with else collective.frames
        frames = first.frames if placed else other_frames
        known = replace(collective, made_as=first.made_as, role=common.get("role"), frames=frames)
        own = first.reason == "partial-sum" and first.asked_by != "called"
        consumer = common.get("consumer") if placed or own else None
        completes = own and consumer is not None
        facts = Facts(producer=common.get("producer"), consumer=consumer, own=completes)
        # Of names that are joined, the module is what they have in common.
        names = ";".join(self.partitioned.path(made) for made in likely if made is not None)
        written = self._written(known, verdict, facts, names or collective.op_name)
        return replace(written, phase=common.get("phase"))

    def explain(self, collective: Collective, made: Instruction | None) -> Collective:
        """Explain a collective that was `made` by partitioning, None where that is not known."""
        if made is not None:
            kind = kind_of(made.opcode)
            made_as = None if kind == collective.kind else kind
            if made_as != collective.made_as:
                collective = replace(collective, made_as=made_as)
            if collective.algorithm == BETWEEN_SLICES:
                collective = _shaped_as(collective, made)
            if self.on_cpu:
                other = on_accelerators(collective, made, self.partitioned.graph_of(made))
                collective = replace(collective, on_accelerators=other)
        generated = is_generated(made) if made is not None else collective.generated
        if not generated:
            return self._called(collective, made)
        if made is not None and self.windowed.is_step(made):
            return self._step(collective, made)
        alignment = self._alignment(made.computation) if made is not None else None
        if made is None or alignment is None:
            return self._unmatched(collective)
        verdict = self.expanded.between_steps(alignment.after, made)
        if verdict is not UNKNOWN:
            return self._between_steps(collective, made.op_name, verdict)
        return self._made(collective, made, alignment)

    def _made(self, collective: Collective, made: Instruction, alignment: Alignment) -> Collective:
        """Explain what the partitioner made, by what it moves and for what."""
        move = self.windowed.sum(made) or self.windowed.taken(made, walk(alignment, made))
        if self._is_a_mask(move, made):
            return self._written(collective, UNKNOWN, Facts(), made.op_name)
        permuted = [one for one in move.chain if one.opcode == "collective-permute"]
        permuted += next_permute(alignment.after, made)
        axes = (self._axes(permuted[0]) or ()) if permuted else ()
        verdict = self.judge.judge(move, self._axes(made), axes)
        consumer = move.graph.nodes.get(move.consumer or "")
        if verdict.reason == "unknown" and self._is_for_a_step(move, consumer):
            verdict = self.expanded.of(move.collective.opcode)
        return self._told(collective, move, verdict)

    @staticmethod
    def _is_a_mask(move: Movement, made: Instruction) -> bool:
        """Whether the partitioner moves a mask of its own: which rows of a table a device holds.

        It is booleans, computed of the indices (`rows_of_a_table_added`).
        """
        array = move.graph.array(move.producer) if move.producer is not None else None
        moved = made.arrays[0][0] if made.arrays else None
        return array is not None and moved == "pred" and array[0] != "pred"

    def _is_for_a_step(self, move: Movement, consumer: Instruction | None) -> bool:
        """Whether the consumer is one step of an operation that the compiler wrote out."""
        if consumer is None or move.completes_consumer:
            return False
        if consumer.op_name in self.expanded.names:
            return True
        whole = self.names.of_the_user(consumer)
        made = move.graph.node(move.producer) if move.producer is not None else None
        return whole is not consumer and made is not None and self.names.of_the_user(made) is whole

    def _unmatched(self, collective: Collective) -> Collective:
        """Tell of what was made after partitioning: it can be of a step whose name it has."""
        name, summed = collective.op_name, KINDS[collective.kind].reduces
        if collective.generated and not summed and name in self.expanded.names:
            return self._between_steps(collective, name, self.expanded.of(collective.kind))
        return self._written(collective, UNKNOWN, Facts(), name)

    def _between_steps(self, collective: Collective, name: str, verdict: Verdict) -> Collective:
        """Tell of what one step of an operation sends to others."""
        operation = algorithm(name) or primitive(name)
        own = verdict.reason == "partial-sum"
        facts = Facts(f"a step of {operation}", operation, own=own)
        return self._written(collective, verdict, facts, name)

    def _step(self, collective: Collective, made: Instruction) -> Collective:
        """Tell of a permute that is a step of a product."""
        sent, axes = (
            replace(collective, algorithm=collective.algorithm or IN_STEPS),
            self._axes(made),
        )
        move = self.windowed.move(made, axes)
        if move is None:
            return self._written(sent, UNKNOWN, Facts(), collective.op_name)
        return self._told(sent, move, self.judge.judge(move, axes))

    def _axes(self, made: Instruction) -> tuple[str, ...] | None:
        permute = made.opcode == "collective-permute"
        name = "source_target_pairs" if permute else "replica_groups"
        groups = self.finder.groups(made.attribute(name) or "{}", permute=permute)
        return self.finder.axes(groups, permute=permute)

    def _alignment(self, computation: str) -> Alignment | None:
        if computation not in self._alignments:
            name, partitioned, _ = computation.partition("_spmd")
            before = self.program.module.computations.get(name)
            after = self.partitioned.computations.get(computation)
            known = partitioned and before is not None and after is not None
            self._alignments[computation] = (
                align(self.program, before, after) if known and before and after else None
            )
        return self._alignments[computation]

    def _called(self, collective: Collective, made: Instruction | None) -> Collective:
        """Tell of what the program calls: its operand, and who takes its result."""
        summed = KINDS[collective.kind].reduces
        verdict = self._caller(made, Verdict("partial-sum" if summed else None, "called"))
        if made is None:
            # Without a name, autodiff may have added it as well.
            named = bool(collective.op_name) or not self.differentiated
            collective = replace(collective, role="called" if named else None)
            verdict = verdict if named else replace(verdict, asked_by=None)
            return self._written(collective, verdict, Facts(), collective.op_name)
        facts, purpose = Facts(reduction=reduction_of(self.partitioned, made)), Purpose()
        alignment = self._alignment(made.computation)
        if alignment is not None:
            graph = alignment.before
            old = graph.nodes.get(alignment.stands_for.get(made.name, ""))
            if old is not None and graph.operands[old.name]:
                producer = self.names.taken(graph, graph.operands[old.name][0], old)
                taker, written = self.names.taker(graph, old)
                facts = replace(facts, producer=producer, consumer=taker, operation=written)
                purpose = self.roles.sent(collective, graph, graph.operands[old.name][0], old)
        if purpose.role is None and not verdict.by_autodiff:
            asked = verdict.asked_by == "requested"
            purpose = Purpose("requested-reshard" if asked else "called")
        # What is sent together has one name in the end, and so one line: its own is that of before.
        frames = self.locate(self.partitioned.frames(made)) or collective.frames
        name = self.partitioned.path(made) if made.op_name else collective.op_name
        collective = replace(collective, frames=frames, role=purpose.role, role_of=purpose.of)
        return self._written(collective, verdict, facts, name)

    def _caller(self, made: Instruction | None, verdict: Verdict) -> Verdict:
        """Say who asked for what the partitioner did not make.

        What autodiff adds has the line of what it transposes. A collective in the `bwd` of a
        `custom_vjp` has the line that calls that function, and the user called it
        (`psum_in_a_custom_vjp`).
        """
        if made is None:
            return verdict
        if self.judge.stated.is_of_a_type(made):
            return replace(verdict, asked_by="requested")
        backward = phase_of(self.partitioned.path(made), differentiated=True) == "backward"
        lines = [(frame.file, frame.line) for frame in self.partitioned.frames(made)[:1]]
        transposed = self.judge.stated.user.transposable.issuperset(lines)
        return replace(verdict, by_autodiff=bool(backward and lines and transposed))

    def _told(self, collective: Collective, move: Movement, verdict: Verdict) -> Collective:
        """Tell of what the partitioner made: both ends, and their shardings."""
        if verdict is NOT_THE_PRODUCER:
            return self._written(collective, UNKNOWN, Facts(), collective.op_name)
        graph = move.graph
        value, node = ends(move, verdict)
        purpose = self.roles.inserted(collective, move, verdict)
        collective = replace(collective, role=purpose.role, role_of=purpose.of)
        facts = self.descriptions.facts(move, verdict, purpose)
        if move.producer is not None:
            verdict = replace(verdict, dims=self.names.dims(graph, move.producer, verdict.dims))
        told = node if node is not None else value
        name = told.op_name if told is not None else ""
        if verdict.stated is not None and verdict.stated.node is not None:
            told = verdict.stated.node  # the line that asks for it (`constraint_after_an_einsum`)
            facts = replace(facts, asked_elsewhere=told is not node)
        return self._written(
            collective,
            verdict,
            facts,
            name or collective.op_name,
            told=told,
            full_remat=self._is_rematerialised(move, value, verdict),
            producer_shape=_shape(value),
        )

    def _is_rematerialised(
        self, move: Movement, value: Instruction | None, verdict: Verdict
    ) -> bool:
        """Whether the compiler warned of this value, and it is gathered only to be sliced again."""
        gathers = move.collective.opcode == "all-gather" and verdict.reason != "partial-sum"
        return gathers and move.sliced and value is not None and value.key in self.remat

    def _of_windows(self, operation: str | None) -> tuple[Location, ...]:
        """Return the lines of a running sum, of which TPU drops them (`cumsum_rows`)."""
        return self.locate(self.judge.stated.user.windows.get(operation or "", ()))

    def _written(
        self,
        collective: Collective,
        verdict: Verdict,
        facts: Facts,
        op_name: str,
        *,
        told: Instruction | None = None,
        full_remat: bool = False,
        producer_shape: tuple[int, ...] | None = None,
    ) -> Collective:
        """Fill in what was found; `told` is the instruction whose line is meant."""
        frames = self.locate(self.program.module.frames(told)) if told is not None else ()
        frames = frames or collective.frames or self._of_windows(facts.consumer)
        line = next((frame.line for frame in frames if frame.source == 0), None)
        module = module_path(op_name)
        return replace(
            collective,
            frames=frames,
            asked_by=verdict.asked_by,
            by_autodiff=verdict.by_autodiff,
            reason=verdict.reason,
            detail=detail_of(verdict, facts),
            producer=facts.producer,
            producer_spec=facts.spec,
            consumer=facts.consumer,
            needed_spec=verdict.needed if verdict.needed != facts.spec else None,
            full_remat=full_remat,
            producer_shape=producer_shape,
            phase=phase_of(op_name, differentiated=self.differentiated),
            module=module,
            why=sentence(collective, verdict, replace(facts, line=line, module=module)),
        )


def _shaped_as(collective: Collective, made: Instruction) -> Collective:
    """Return what goes to another slice the shape that it was made with, where that is as large.

    TPU gives it another one, to lay it out for the host.
    """
    alike = [shape for _, shape in made.arrays if math.prod(shape) == math.prod(collective.shape)]
    return replace(collective, shape=alike[0]) if len(alike) == 1 else collective


def _shape(value: Instruction | None) -> tuple[int, ...] | None:
    return None if value is None or value.is_tuple or not value.arrays else value.arrays[0][1]
