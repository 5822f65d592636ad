"""The evidence that compiling a program in this process left."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from shardnb.causes import read_user_shardings
from shardnb.compiler import Program, arrays
from shardnb.compiler.committed import committed, left_behind
from shardnb.findings.evidence import Evidence
from shardnb.report.model import Run, Value

# Characters of an optimized program up to which its jaxpr and StableHLO are kept as text: writing
# those of a larger one takes seconds, and nobody reads them.
_READABLE = 2_000_000


def evidence_of_program(program: Program, *, origins: bool | None = None) -> Evidence:
    """Return what is known of a program; `origins` is as for `explain`."""
    request = program.request
    mesh, inputs = request.grid.describe(), arrays.inputs(program)
    jaxpr = program.traced.jaxpr if program.traced else None
    return Evidence(
        title=request.texts.title,
        text=program.optimized,
        module=program.module,
        mesh=mesh,
        sources=request.texts.located(),
        own=True,
        before=program.before,
        partitioned=program.partitioned,
        dumps=program.dumps,
        inputs=inputs,
        outputs=arrays.outputs(program),
        parameters=tuple(inputs[number].name for number in program.parameters),
        donated=_donated(program, inputs),
        user_shardings=jaxpr
        and read_user_shardings(
            jaxpr,
            explicit=any(axis.type == "explicit" for axis in mesh.axes),
            results=program.out_specs is not None,
        ),
        moved=tuple(committed(request)),
        notes=(*request.notes, *left_behind(request)),
        jaxpr=jaxpr,
        constants=arrays.constants(program),
        compiled=program.compiled,
        failure=program.failure,
        origins=origins,
        run=Run(program.trace_seconds, program.compile_seconds),
        texts=_texts(program),
    )


def _texts(program: Program) -> dict[str, str]:
    """Return the texts of a program at every stage that was kept."""
    found = {
        "before partitioning": program.dumps.before,
        "after partitioning": program.dumps.partitioned,
        "optimized": program.optimized,
    }
    if len(program.optimized) <= _READABLE:
        traced, lowered = program.traced, program.lowered
        jaxpr = traced.jaxpr.pretty_print(use_color=False) if traced else ""
        stablehlo = lowered.as_text() if lowered is not program.compiled else ""
        found = {"jaxpr": jaxpr, "stablehlo": stablehlo, **found}
    return {name: text for name, text in found.items() if text}


def _donated(program: Program, inputs: Sequence[Value]) -> dict[int, Value]:
    """Return the donated inputs by the number of their parameter in the program."""
    infos = jax.tree_util.tree_leaves(program.lowered.args_info)
    return {
        parameter: inputs[number]
        for parameter, number in enumerate(program.parameters)
        if number < len(infos) and infos[number].donated
    }
