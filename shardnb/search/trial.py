"""Compiling a candidate: what a program that nobody wrote would send, hold and compute."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from shardnb.bugs import Inconclusive, refusable
from shardnb.collectives.find import find_collectives
from shardnb.compiler.dumps import captured_fd2
from shardnb.findings.memory import memory_of_compiled
from shardnb.findings.work import work_of
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.error_wordings import INTERRUPTED
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import hlo_text, optimized_modules
from shardnb.report.cost import Work
from shardnb.report.model import Collective, Memory, Mesh
from shardnb.texts import hlo

_HOOK = "shardnb: the optimized program"


@dataclass(frozen=True)
class Outcome:
    """What a program does in one call; `memory` and `work` only after a whole compile."""

    collectives: tuple[Collective, ...]
    memory: Memory | None = None
    work: Work | None = None

    @property
    def count(self) -> int:
        """Number of collectives, combined ones by their members."""
        return len(self.collectives)

    @property
    def wire_bytes(self) -> int:
        """Bytes that one device sends in one call, where the trips are known."""
        return sum(c.total_wire_bytes or 0 for c in self.collectives)

    @property
    def unknown_trips(self) -> int:
        """Number of collectives in loops whose trip count the compiler does not know."""
        return sum(c.trips is None for c in self.collectives)

    @property
    def memory_bytes(self) -> int:
        """Bytes that one device holds, 0 where the compiler does not say."""
        return self.memory.total if self.memory else 0

    def beats(self, other: Outcome) -> bool:
        """Whether it sends less, or the same in fewer collectives."""
        if self.unknown_trips > other.unknown_trips or self.wire_bytes > other.wire_bytes:
            return False
        return self.wire_bytes < other.wire_bytes or self.count < other.count


def compile_trial(lowered: Any, mesh: Mesh, *, whole: bool) -> Outcome:
    """Compile a lowered candidate for a mesh; raises `Inconclusive` where it is refused.

    Unless the `whole` compile is wanted, it stops on CPU at the optimized program: most of the
    time goes into the machine code that is made of it afterwards.
    """
    if whole:
        return outcome_of(_compile(lowered), mesh)
    module = hlo.parse(_optimized_text(lowered, mesh.platform))
    return Outcome(find_collectives(module, mesh, lambda _: ()))


def outcome_of(compiled: Any, mesh: Mesh) -> Outcome:
    """Give what JAX's compiled stage sends, holds and computes."""
    text = compiled.as_text()
    module = hlo.parse(text)
    return Outcome(
        find_collectives(module, mesh, lambda _: ()),
        memory_of_compiled(compiled),
        work_of(text, module, compiled),
    )


def _compile(lowered: Any) -> Any:
    """Compile beside the persistent cache; what the compiler writes to descriptor 2 is dropped."""
    with without_compilation_cache(), captured_fd2():
        try:
            with refusable():
                return lowered.compile()
        except Inconclusive as error:
            refusal = (
                error  # raised below: `captured_fd2` passes on what was written before a raise
            )
    # An interrupt that arrives in C++ is raised in the callback, and comes back as text.
    if INTERRUPTED.search(str(refusal)):
        raise KeyboardInterrupt from refusal
    raise refusal


class _Enough(Exception):
    """Ends a compile whose optimized program is known."""


@dataclass
class _Catcher:
    """Takes the first optimized module that its own thread compiles, and ends that compile."""

    thread: int = field(default_factory=threading.get_ident)
    proto: bytes | None = None

    def __call__(self, proto: bytes) -> bytes | None:
        if threading.get_ident() != self.thread:
            return None
        self.proto = proto
        raise _Enough


def _optimized_text(lowered: Any, platform: str) -> str:
    catcher = _Catcher()
    with ExitStack() as stack:
        if platform == "cpu":
            with suppress(NotAvailable):  # else the compile goes on to its end
                stack.enter_context(optimized_modules(_HOOK, catcher))
        try:
            compiled = _compile(lowered)
        except Inconclusive:
            if catcher.proto is None:
                raise
    return hlo_text(catcher.proto) if catcher.proto is not None else str(compiled.as_text())
