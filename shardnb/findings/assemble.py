"""Evidence becomes a report."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

import jax

from shardnb.causes import Causes, Counts, Stated, explain_causes, read_stated
from shardnb.collectives.find import find_collectives
from shardnb.compiler import Program, arrays, divisibility, placement
from shardnb.compiler.committed import committed
from shardnb.compiler.constraints import constraints
from shardnb.compiler.dumps import pass_on
from shardnb.cost import priced
from shardnb.findings import loops, whole_program
from shardnb.findings.memory import (
    memory_of,
    memory_of_compiled,
    out_of_memory,
    read_allocations,
)
from shardnb.findings.work import work_of
from shardnb.jax_compat import private
from shardnb.jax_compat.jaxprs import equations
from shardnb.propagation import Explained, values_of
from shardnb.propagation.typed_view import typed_program
from shardnb.report.model import (
    Collective,
    Finding,
    Memory,
    Mesh,
    Report,
    Run,
    Value,
)
from shardnb.report.typed import TypedLine
from shardnb.report.types import SpecProblem
from shardnb.sources.source_texts import Sources
from shardnb.texts import hlo

_READABLE = 2_000_000
"""Characters of an optimized program up to which its jaxpr and StableHLO are kept as text."""

_TYPED_LIMIT = 5000
"""Equations up to which a report holds the typed view of its program."""


def assemble_report(program: Program, *, origins: bool | None = None) -> Report:
    """Read the evidence of a program into a report.

    `origins` says whether to seek where each sharding came from (None: unless it is large).
    """
    mesh, located = program.request.grid.describe(), program.request.texts.located()
    modules = _Modules.of(program)
    inputs, outputs = arrays.inputs(program), arrays.outputs(program)
    causes = _causes(program, mesh, modules, located, inputs)
    pass_on(causes.warnings_left)
    told = _values(program, mesh, modules, located, (inputs, outputs), origins=origins)
    report = Report(
        title=program.request.texts.title,
        mesh=mesh,
        inputs=inputs,
        outputs=outputs,
        values=told.values,
        collectives=causes.collectives,
        findings=_findings(program, mesh, modules, located, causes.collectives, (inputs, outputs)),
        memory=_memory(program),
        typed=_typed(program, mesh, located),
        work=work_of(program.optimized, modules.optimized, program.compiled),
        sources=located.texts(),
        versions=versions(),
        notes=(*_of_cores(mesh), *told.notes, *_on_the_way(causes.counts)),
        run=Run(program.trace_seconds, program.compile_seconds),
        texts=texts(program),
    )
    return priced(report)


def _of_cores(mesh: Mesh) -> tuple[str, ...]:
    """Say that the devices are not those that JAX shows on a machine of this kind."""
    if mesh.kind != "TPU v4" or mesh.cores is None:
        return ()
    return ("each core of a chip is a device here; on a v4 machine JAX shows one device a chip",)


def _on_the_way(counts: Counts | None) -> tuple[str, ...]:
    """Say how many collectives there were at each stage, where the numbers differ."""
    if counts is None or not (counts.differ or counts.combined or counts.moved):
        return ()
    called, made, left = (sum(n.values()) for n in (counts.called, counts.made, counts.left))
    changes = (
        (counts.combined, "are sent together with others"),
        (counts.gone, "were merged with an equal one or simplified away"),
        (counts.moved, "left the loop that they were made in"),
    )
    said = [f"{number} {what}" for number, what in changes if number]
    numbers = (
        f"collectives: {called} called, {made} made by the partitioner, {left} left at the end"
    )
    return ("; ".join((numbers, *said)),)


def _typed(program: Program, mesh: Mesh, located: Sources) -> tuple[TypedLine, ...]:
    """Give the typed view where types say placements, and where a reader can still read it."""
    found = list(itertools.islice(equations(program.traced.jaxpr), _TYPED_LIMIT + 1))
    manual = any(equation.primitive.name == "shard_map" for equation in found)
    typed = manual or any(axis.type != "auto" for axis in mesh.axes)
    if not typed or len(found) > _TYPED_LIMIT:
        return ()
    names = [name for name, _ in placement.named_leaves(program.arguments)]
    return typed_program(program.traced.jaxpr, located, names).lines


@dataclass(frozen=True)
class _Modules:
    """A program's HLO as data: at the end, and before and after partitioning where it was kept."""

    optimized: hlo.Module
    before: hlo.Module | None
    partitioned: hlo.Module | None

    @classmethod
    def of(cls, program: Program) -> _Modules:
        dumps = program.dumps
        return cls(
            hlo.parse(program.optimized),
            hlo.parse(dumps.before) if dumps.before else None,
            hlo.parse(dumps.partitioned) if dumps.partitioned else None,
        )


def _causes(
    program: Program, mesh: Mesh, modules: _Modules, located: Sources, inputs: Sequence[Value]
) -> Causes:
    found = find_collectives(modules.optimized, mesh, located.locate, modules.partitioned)
    return explain_causes(
        found,
        optimized=modules.optimized,
        partitioned=modules.partitioned,
        before=modules.before,
        dumps=program.dumps,
        mesh=mesh,
        input_names=_parameter_names(program, inputs),
        stated=_stated(program, mesh),
        locate=located.locate,
    )


def _values(
    program: Program,
    mesh: Mesh,
    modules: _Modules,
    located: Sources,
    edges: tuple[Sequence[Value], Sequence[Value]],
    *,
    origins: bool | None,
) -> Explained:
    if modules.before is None:
        return Explained(())
    return values_of(
        program,
        mesh,
        located,
        modules.before,
        inputs=[value.name for value in edges[0]],
        outputs=[value.name for value in edges[1]],
        origins=origins,
    )


def _findings(
    program: Program,
    mesh: Mesh,
    modules: _Modules,
    located: Sources,
    collectives: Sequence[Collective],
    edges: tuple[Sequence[Value], Sequence[Value]],
) -> tuple[Finding, ...]:
    inputs, outputs = edges
    partitioned = modules.partitioned
    return (
        *_too_large(program, modules.optimized, located),
        *whole_program.silent_replication(outputs, mesh),
        *whole_program.rematerialised(collectives, mesh),
        *whole_program.of_collectives(collectives, mesh),
        *whole_program.padded_constraints(_padded(program, mesh, located), collectives),
        *(loops.accumulated_in_loops(partitioned, collectives) if partitioned else ()),
        *(loops.unchanging_in_loops(partitioned, collectives) if partitioned else ()),
        *whole_program.lost_donations(modules.optimized, _donated(program, inputs)),
        *whole_program.replicated_inputs(inputs, mesh),
        *whole_program.moved_arguments(committed(program.request), emulated=mesh.emulated),
    )


def _padded(program: Program, mesh: Mesh, located: Sources) -> tuple[SpecProblem, ...]:
    return divisibility.check(list(constraints(program.traced.jaxpr, located)), mesh.shape)


def _too_large(program: Program, module: hlo.Module, located: Sources) -> tuple[Finding, ...]:
    if not program.failure:
        return ()
    return (out_of_memory(program.failure, program.dumps.buffers, module, located.locate),)


def versions() -> dict[str, str]:
    """Give the versions of what made a report."""
    return {
        "shardnb": metadata.version("shardnb"),
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "python": platform.python_version(),
    }


def texts(program: Program) -> dict[str, str]:
    """Give the texts of a program at every stage that was kept.

    Those of JAX's own stages are written only for a program that somebody can still read.
    """
    found = {} if len(program.optimized) > _READABLE else _own_texts(program)
    found |= {
        "before partitioning": program.dumps.before,
        "after partitioning": program.dumps.partitioned,
        "optimized": program.optimized,
    }
    return {name: text for name, text in found.items() if text}


def _own_texts(program: Program) -> dict[str, str]:
    return {
        "jaxpr": program.traced.jaxpr.pretty_print(use_color=False),
        "stablehlo": program.lowered.as_text(),
    }


def _parameter_names(program: Program, inputs: Sequence[Value]) -> list[str]:
    """Name the parameters of the program: the used arguments, closed-over ones first."""
    lifted = len(program.closed_over)
    ordered = [*inputs[len(inputs) - lifted :], *inputs[: len(inputs) - lifted]]
    return [ordered[argument].name for argument in private.kept_arguments(program.lowered)]


def _stated(program: Program, mesh: Mesh) -> Stated:
    explicit = any(axis.type == "explicit" for axis in mesh.axes)
    stated = program.out_specs is not None
    return read_stated(program.traced.jaxpr, explicit=explicit, results=stated)


def _donated(program: Program, inputs: Sequence[Value]) -> dict[int, Value]:
    """Give the donated inputs by the number of their parameter in the program."""
    infos = jax.tree_util.tree_leaves(program.lowered.args_info)
    lifted = len(program.closed_over)
    return {
        parameter: inputs[argument - lifted]
        for parameter, argument in enumerate(private.kept_arguments(program.lowered))
        if argument >= lifted and infos[argument - lifted].donated
    }


def _memory(program: Program) -> Memory | None:
    if program.failure:
        return memory_of(read_allocations(program.dumps.buffers))
    return memory_of_compiled(program.compiled)
