"""What an edited program would send and hold, compiled no further than the answer needs.

On CPU most of a compile's time goes into machine code, after the last change to the program. The
first look at an edit stops right before; a fix is shown only after the whole compile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

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

_NAME = "shardnb: the optimized program"


@dataclass(frozen=True)
class Outcome:
    """What a program sends in one call; `memory` and `flops` only after a whole compile."""

    collectives: tuple[Collective, ...]
    memory: int | None = None
    flops: float | None = None

    @classmethod
    def of(
        cls, collectives: tuple[Collective, ...], memory: Memory | None, work: Work | None
    ) -> Self:
        """Give the outcome of a whole compile, as far as the compiler tells."""
        return cls(collectives, memory.total if memory else None, work.flops if work else None)

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

    def beats(self, other: Outcome) -> bool:
        """Whether it sends less, or the same in fewer collectives."""
        if self.unknown_trips > other.unknown_trips or self.wire_bytes > other.wire_bytes:
            return False
        return self.wire_bytes < other.wire_bytes or self.count < other.count


@dataclass
class Bench:
    """Compiles edited programs for one mesh."""

    mesh: Mesh

    def look(self, lowered: Any) -> Outcome:
        """Give what a lowered program sends; stops before machine code is made on CPU."""
        return Outcome(self._collectives(hlo.parse(optimized_text(lowered, self.mesh.platform))))

    def weigh(self, lowered: Any) -> Outcome:
        """Give what a lowered program sends, holds and computes, by a whole compile."""
        with refusable(), quiet_compiler():
            compiled = lowered.compile()
        text = compiled.as_text()
        module = hlo.parse(text)
        memory, work = memory_of_compiled(compiled), work_of(text, module, compiled)
        return Outcome.of(self._collectives(module), memory, work)

    def _collectives(self, module: hlo.Module) -> tuple[Collective, ...]:
        return find_collectives(module, self.mesh, lambda _: ())


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Compile beside the persistent cache; what the compiler writes to descriptor 2 is dropped."""
    with without_compilation_cache(), captured_fd2():
        yield


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


def optimized_text(lowered: Any, platform: str) -> str:
    """Give the optimized program's text; on CPU without making machine code for it."""
    if platform != "cpu":
        with refusable(), quiet_compiler():
            return str(lowered.compile().as_text())
    catcher = _Catcher()
    with ExitStack() as stack:
        with suppress(NotAvailable):  # else the compile goes on to its end
            stack.enter_context(optimized_modules(_NAME, catcher))
        compiled = _compile(lowered, catcher)
    return str(compiled.as_text()) if catcher.proto is None else hlo_text(catcher.proto)


def _compile(lowered: Any, catcher: _Catcher) -> Any:
    try:
        with refusable(), without_compilation_cache(), _dropped_fd2():
            return lowered.compile()
    except Inconclusive as refusal:
        # An interrupt that arrives in C++ is raised in the catcher, and comes back as text.
        if INTERRUPTED.search(str(refusal)):
            raise KeyboardInterrupt from refusal
        if catcher.proto is None:
            raise
        return None


@contextmanager
def _dropped_fd2() -> Iterator[None]:
    """Drop what is written to descriptor 2, also where the block raises."""
    failure: Exception | None = None
    with captured_fd2():
        try:
            yield
        except Exception as error:  # noqa: BLE001 - any: it is raised again below
            failure = error
    if failure is not None:
        raise failure
