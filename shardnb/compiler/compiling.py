"""Where a lowered program is compiled: in this process, or in one that does nothing else.

XLA ends its process at some programs, and a compile in this one answers an interrupt at its end
only. So candidates of a search are always compiled apart, as are programs for a TPU topology,
what is large, and what XLA is known to fail at. A small program of the user's is compiled here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler.dumps import captured_fd2, pass_on
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.error_wordings import OUT_OF_MEMORY
from shardnb.jax_compat.executables import Inseparable, Split, split
from shardnb.progress import line_on
from shardnb.views import activity
from shardnb.worker.jobs import Compile, Optimize
from shardnb.worker.process import WORKER, NotStarted, Refused

logger = logging.getLogger("shardnb")

# Lines of StableHLO. Two cores compile 250 with many cumulative sums in half a second, so that an
# interrupt acts within two seconds on a busy machine, too (test_interrupts.py). In more bytes than
# `_CERTAINLY` lines are not counted: the stacks that a module holds take some thousands.
LARGE = 250
_CERTAINLY = 100_000
# XLA ends the process where the operands of a sum that stays unreduced are sharded otherwise
# (test_an_abort_of_xlas_leaves_the_kernel_alone).
_FAILS = "unreduced={"


@dataclass(frozen=True)
class Compiled:
    """JAX's compiled stage and what the compiler wrote to descriptor 2.

    `load` gives the stage that can run, where `stage` only says what the program is. `problem` says
    why a program that was to be compiled apart was compiled here.
    """

    stage: Any
    warnings: str = ""
    load: Callable[[], Any] | None = None
    problem: str = ""


def compile_lowered(
    lowered: Any, options: Mapping[str, Any], *, apart: bool = False, runs: bool = False
) -> Compiled:
    """Compile a lowered program; `apart` in the other process in any case.

    `runs` says that it may be run afterwards. Raises what XLA raises, and `CompilerAborted`.
    """
    try:
        parts = split(lowered, options)
        with _said(parts):
            if apart or _belongs_apart(lowered, parts):
                return _compiled_apart(parts, runs=runs)
            return _compiled_here(lowered, options)
    except (Inseparable, NotStarted) as why:
        problem = f"the program was compiled in this process: {why}" if apart else ""
        return _compiled_here(lowered, options, problem)


@contextmanager
def _said(parts: Split) -> Iterator[None]:
    """Say on the line of what is going on how large a program is that is compiled."""
    with line_on() as say:
        say(activity.compiling(len(parts.compilation.module)))
        yield


def _belongs_apart(lowered: Any, parts: Split) -> bool:
    if parts.compilation.topology or len(parts.compilation.module) > _CERTAINLY:
        return True
    text = lowered.as_text()
    return text.count("\n") >= LARGE or _FAILS in text


def _compiled_apart(parts: Split, *, runs: bool) -> Compiled:
    load = runs and not parts.compilation.topology
    try:
        description, written = WORKER.ask(Compile(parts.compilation, load=load))
    except Refused as refusal:
        _try_here(parts, refusal)
        pass_on(refusal.written)
        raise refusal.error from None
    loaded = (lambda: parts.compiled(description)) if load else None
    return Compiled(parts.compiled(replace(description, serialized=b"")), written, loaded)


def _try_here(parts: Split, refusal: Refused) -> None:
    """Raise `Inseparable` where a program may be refused there only."""
    if parts.compilation.has_custom_calls and not OUT_OF_MEMORY.search(str(refusal.error)):
        raise Inseparable("it calls what may be known to this process alone") from refusal.error


def _compiled_here(lowered: Any, options: Mapping[str, Any], problem: str = "") -> Compiled:
    with without_compilation_cache(), captured_fd2() as text:
        stage = lowered.compile(compiler_options=dict(options))
    return Compiled(stage, text[0], problem=problem)


def compile_candidate(lowered: Any) -> Any:
    """Compile a candidate; gives JAX's compiled stage, which does not run.

    What the compiler writes is dropped. Raises `Inconclusive` where it is refused, and
    `CompilerAborted`.
    """
    return _of_candidate(
        lowered,
        lambda parts: parts.compiled(WORKER.ask(Compile(parts.compilation))[0]),
        lowered.compile,
    )


def optimized_text(lowered: Any) -> str:
    """Return the optimized program of a candidate; it raises as `compile_candidate` does.

    On CPU no machine code is made, which takes most of a compile's time.
    """
    return _of_candidate(
        lowered,
        lambda parts: WORKER.ask(Optimize(parts.compilation))[0].text,
        lambda: str(lowered.compile().as_text()),
    )


def _of_candidate[T](lowered: Any, ask: Callable[[Split], T], here: Callable[[], T]) -> T:
    try:
        parts = split(lowered, {})
        try:
            with _said(parts):
                return ask(parts)
        except Refused as refusal:
            _try_here(parts, refusal)
            raise Inconclusive(str(refusal.error)) from refusal.error
    except (Inseparable, NotStarted) as why:
        logger.info("a candidate is compiled in this process: %s", why)
    with without_compilation_cache(), captured_fd2():
        try:
            with refusable():
                return here()
        except Inconclusive as error:
            refused = error  # raised below: what was written before a raise is passed on
    raise refused
