"""A program that this process compiled, run under the profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardnb.compiler import Program
from shardnb.compiler.dumps import captured_fd2
from shardnb.compiler.program import finished
from shardnb.jax_compat.profiling import recorded
from shardnb.profiles.executions import Device, Operations, executed_in
from shardnb.profiles.measure import with_measurements
from shardnb.profiles.xplane import names_in, read_space
from shardnb.report.measured import MOST_RUNS, RUNS
from shardnb.report.model import Report

_EFFECTS = (
    "nothing was measured: the program calls Python while it runs ({}), and would do so in each run"
)
_NOT_RECORDED = "nothing was measured: the profiler has no operation of the program"


def runs_of(given: object) -> int:
    """Read how often a program is to run: True stands for `RUNS`, False and None for not at all.

    Raises `ValueError`.

    >>> runs_of(3), runs_of(True), runs_of(False)
    (3, 5, 0)
    """
    if given is None or given is False:
        return 0
    if given is True:
        return RUNS
    if not isinstance(given, int) or not 1 <= given <= MOST_RUNS:
        raise ValueError(f"expected a number of runs from 1 to {MOST_RUNS:,}, got {given!r}")
    return given


def profiled(
    program: Program, report: Report, runs: int, say: Callable[[int], None] = lambda _: None
) -> Report:
    """Run a program several times under the profiler; returns the report with what was measured.

    It runs once before, so that what only the first run takes does not count. The caller's arrays
    stay: of those that the program donates, each run gets copies. `say` is given the number of each
    run. A program that has effects, such as `jax.debug.print`, is not run: the report says so.

    Raises what `Program.placed` raises, what the program raises, and `InUse`.
    """
    if effects := _effects(program):
        return replace(report, notes=(*report.notes, _EFFECTS.format(", ".join(effects))))
    placed = program.placed()
    with captured_fd2(), recorded():
        pass  # XLA for TPU writes to descriptor 2 where it finds none; another trace is met here
    finished(program.execute(program.undonated(placed)))
    with recorded() as spaces:
        for number in range(1, runs + 1):
            say(number)
            finished(program.execute(finished(program.undonated(placed))))
    executed = _executed(program, spaces[0])
    if not executed:
        return replace(report, notes=(*report.notes, _NOT_RECORDED))
    return with_measurements(report, program.module, executed, report.mesh.kind)


def _effects(program: Program) -> list[str]:
    """Name what a program does besides computing, as JAX does."""
    jaxpr = program.traced.jaxpr if program.traced else None
    return sorted(
        {str(effect) or type(effect).__name__ for effect in getattr(jaxpr, "effects", ())}
    )


def _executed(program: Program, space: bytes) -> dict[Device, Operations]:
    """Return what the devices executed of a program: of that with instructions of its names."""
    file, names = read_space(space), names_in(program.optimized)
    executed = executed_in(file)
    ids = {each.id for each in file.programs if names_in(each.text()) == names}
    return {
        device: operations
        for key, devices in executed.items()
        if key.id in ids
        for device, operations in devices.items()
    }
