"""From a function to its report: `explain`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax

from shardnb.compiler import Program, Request, build
from shardnb.compiler.call import read_call
from shardnb.compiler.program import finished
from shardnb.compiler.stages import program_of_stage, stage_of
from shardnb.compiler.torch_call import grid_of, is_torch_call, torch_request
from shardnb.compiler.torch_program import torch_types
from shardnb.cost import Given, check_hardware, on_hardware
from shardnb.errors import failures
from shardnb.findings import report_of_program
from shardnb.mesh import Grid, make_grid
from shardnb.profiles.running import profiled, runs_of
from shardnb.progress import bar_on, line_on
from shardnb.report import Report
from shardnb.torch.spmd import SpmdMesh
from shardnb.tracebacks import with_users_frames
from shardnb.views import activity

Tree = Any

_NOT_OF_TORCH = (
    "a call with torch tensors takes no {}: mark the tensors with shardnb.torch.mark_sharding"
)
_ONLY_A_MESH = "a program that is already {} is explained as it is: pass only a mesh with it"


@with_users_frames
def explain(
    fn: Callable[..., Tree],
    *args: Tree,
    mesh: str | jax.sharding.Mesh | Grid | SpmdMesh | None = None,
    axes: str | None = None,
    on: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
    run: bool = False,
    profile: bool | int = False,
    fixes: bool | float = False,
    origins: bool | None = None,
    isolate: bool = False,
    hardware: Given | None = None,
    **options: Any,
) -> Report:
    """Compile a function for a mesh and report what it sends and holds.

    Nothing is allocated or run unless `run=True`, or with `profile`.

    Args:
        fn: a function of pytrees of arrays, an `nn.Module` or a function of torch tensors (see
            `shardnb.torch`), or a JAX stage (traced, lowered or compiled), which takes only a mesh
            with it. A function that was jitted by `jax.jit`, `nnx.jit` or
            `eqx.filter_jit` keeps its shardings, donation, static arguments and compiler options.
        args: arrays, `jax.ShapeDtypeStruct`, or pytrees of them; strings, flags and other values
            that are not arrays are passed through.
        mesh: a string such as `data=4,model=2`, a `jax.sharding.Mesh` or a
            `shardnb.torch.SpmdMesh`. None: the mesh of the arguments' shardings, else the one of
            `%mesh`, else the one of `jax.set_mesh`.
        axes: the type of the mesh axes: auto, explicit or manual.
        on: the devices: `cpu` emulates up to 2,048, `attached` uses `jax.devices()`, and
            a TPU topology such as `v5e:2x4`, a GPU cluster such as `h100:4x8` or slices of them
            such as `2*v5e:4x4` are compiled for without one.
        in_specs: for each argument a PartitionSpec, or a pytree prefix of them; or `sn.rules`,
            `sn.like` or `sn.logical`. None: the sharding that the array has, else replicated.
        out_specs: the same for the result. None: the compiler chooses.
        run: whether to run the program and record the seconds it takes.
        profile: how often to run the program under JAX's profiler (True: 5 times, after one run
            more). The measured time of each collective then stands beside its estimate, in
            `Collective.measured`, and that of a run in `Report.profile`. Donated arguments stay. On
            emulated devices the times say nothing about hardware.
        fixes: whether to look for edits that remove inferred collectives, each of them compiled
            (see `Collective.fixes`). True searches for 20 seconds, a number for that many.
        origins: whether to trace where each sharding came from, for which Shardy runs once more.
            None: only if the program is not large.
        isolate: whether another process compiles it, so that an interrupt, or an error that ends
            XLA, ends only that process. Large programs and those for a TPU topology or a GPU
            cluster are always compiled there.
        hardware: what the seconds are for, where it is not the devices of the mesh (`h100:4x8`), or
            a dict or file with figures in place of the table's (see `Report.on_hardware`).
        options: options of `jax.jit`, such as `donate_argnums`; any other name is passed to the
            function as a keyword argument.

    Returns:
        The report; its bytes are per device.

    The tensors of an `nn.Module`, and of modules that a function closes over, are inputs, sharded
    as they are marked; the report says what each annotation does.

    Raises:
        ValueError: a spec does not fit its argument or the mesh, or contradicts the shardings that
        the function was jitted with; `profile` is not a number of runs. RuntimeError: another trace
        is being taken. Errors that JAX raises are passed on, with a note that
        explains them.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> w = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
    >>> report = explain(
    ...     jnp.dot, x, w, mesh="data=4,model=2", in_specs=(P("data", "model"), P("model"))
    ... )
    >>> [(c.kind, c.axes, c.shape) for c in report.collectives]
    [('all-reduce', ('model',), (64, 1024))]
    """
    if isinstance(fn, str):
        raise TypeError("expected a function, got a string; sn.explain_hlo reads HLO text")
    if hardware is not None:
        check_hardware(hardware)
    runs = runs_of(profile)
    if isinstance(mesh, SpmdMesh):
        mesh = grid_of(mesh, on)
    if stage := stage_of(fn):
        if (
            args
            or options
            or axes
            or on
            or fixes
            or runs
            or in_specs is not None
            or out_specs is not None
        ):
            raise ValueError(_ONLY_A_MESH.format(type(stage).__name__.lower()))
        report = report_of_program(program_of_stage(stage, mesh, apart=isolate), origins=origins)
        return report if hardware is None else on_hardware(report, hardware)
    if is_torch_call(fn, (args, options)):
        stated = {"axes": axes, "out_specs": out_specs, "fixes": fixes or None}
        if unknown := [name for name, value in stated.items() if value is not None]:
            raise TypeError(_NOT_OF_TORCH.format(", ".join(unknown)))
        with torch_types():
            request = torch_request(fn, args, options, mesh, on, in_specs)
            request = replace(request, apart=isolate)
            return _explained(request, hardware, origins=origins, run=run, runs=runs)
    call = read_call(fn, args, options)
    grid = make_grid(mesh, axes, on, call.placed)
    request = replace(call.request(grid, in_specs, out_specs), apart=isolate)
    return _explained(request, hardware, origins=origins, run=run, fixes=fixes, runs=runs)


def _explained(
    request: Request,
    hardware: Given | None,
    *,
    origins: bool | None,
    run: bool,
    fixes: bool | float = False,
    runs: int = 0,
) -> Report:
    try:
        program, report = compile_and_analyse(request, origins=origins)
    except Exception as error:  # of any class: it is raised again
        failures.add_note(error)
        raise
    if request.placed_in_trace:
        report = with_annotations(request, request.function, report)
    if fixes:
        report = with_fixes(program, report, None if fixes is True else float(fixes))
    report = report if hardware is None else on_hardware(report, hardware)
    report = measured(program, report, runs) if runs else report
    return ran(program, report)[1] if run else report


def with_annotations(request: Request, function: Any, report: Report) -> Report:
    """Say in a report what each annotation of torch code does."""
    from shardnb.search import annotations

    return annotations.with_annotations(request, function, report)


def with_fixes(program: Program, report: Report, seconds: float | None = None) -> Report:
    """Search for edits that remove inferred collectives, and show the progress of the search."""
    from shardnb.search.fixes import SECONDS, find_fixes

    limit = SECONDS if seconds is None else seconds
    with bar_on("fixes") as progress:
        return find_fixes(program, report, progress=progress, seconds=limit)


def compile_and_analyse(request: Request, *, origins: bool | None = None) -> tuple[Program, Report]:
    """Compile a request, and read the program's evidence into a report.

    An exception that JAX raises is passed on with its explanation (see `failures.report_of`).
    """
    with line_on() as say:
        with failures.explained(request):
            program = build(request)
        say(activity.reading(program.request.texts.title))
        return program, report_of_program(program, origins=origins)


def measured(program: Program, report: Report, runs: int) -> Report:
    """Run a program under the profiler, and show the progress; see `profiles.running`."""
    title = program.request.texts.title
    with line_on() as say:
        return profiled(program, report, runs, lambda at: say(activity.measuring(title, at, runs)))


def ran(program: Program, report: Report) -> tuple[Tree, Report]:
    """Run a program; returns its result, and the report with the seconds that it took."""
    start = time.perf_counter()
    with line_on() as say:
        say(activity.running(program.request.texts.title))
        result = finished(program.run())
    seconds = time.perf_counter() - start
    return result, replace(report, run=replace(report.run, run_seconds=seconds))
