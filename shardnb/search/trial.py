"""Compiling a candidate: what the edited program would send, hold and compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shardnb.bugs import Inconclusive
from shardnb.collectives.find import find_collectives
from shardnb.compiler.compiling import compile_candidate, optimized_text
from shardnb.findings.memory import memory_of_compiled
from shardnb.findings.work import work_of
from shardnb.report.bytes_sent import most_sent
from shardnb.report.cost import Work
from shardnb.report.memory import Memory
from shardnb.report.model import Collective, Mesh
from shardnb.texts import hlo
from shardnb.worker.process import Cancelled, CompilerAborted


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
        """The most bytes that one device sends in one call, where the trips are known."""
        return most_sent([c for c in self.collectives if c.trips is not None])

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

    Another process compiles it; `CompilerAborted` says that it ended XLA there.
    Unless the `whole` compile is wanted, it stops on CPU at the optimized program: most of the
    time goes into the machine code that is made of it afterwards.
    """
    if whole:
        return outcome_of(compile_candidate(lowered), mesh)
    module = hlo.parse(optimized_text(lowered))
    return Outcome(find_collectives(module, mesh, lambda _: ()))


def outcome_of(compiled: Any, mesh: Mesh) -> Outcome:
    """Return what JAX's compiled stage sends, holds and computes."""
    text = compiled.as_text()
    module = hlo.parse(text)
    return Outcome(
        find_collectives(module, mesh, lambda _: ()),
        memory_of_compiled(compiled, mesh.platform),
        work_of(text, module, compiled),
    )


@contextmanager
def aborts_noted(notes: list[str], candidate: str) -> Iterator[None]:
    """Leave out a candidate at which XLA ends its process, with a note that names it.

    Another thread that stops the search cancels the compile, which is an interrupt here.
    """
    try:
        yield
    except Cancelled as error:
        raise KeyboardInterrupt from error
    except CompilerAborted as error:
        notes.append(f"{candidate} was left out: XLA fails at it ({error.words})")
        raise Inconclusive(str(error)) from error
