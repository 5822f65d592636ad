"""The programs that the user's own code compiles: their texts, and what XLA dumps of them.

A program that JAX has compiled before, or that is in its persistent cache, is not compiled again,
so it is not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from shardnb.compiler.dump_folders import programs_of
from shardnb.compiler.dumps import Dumps, Recorder
from shardnb.interrupts import held
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import compiled_modules, compiled_with, hlo_text

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class WatchedProgram:
    """A compiled program: its optimized text, and what else XLA wrote of it."""

    name: str
    title: str
    optimized: str
    dumps: Dumps = field(default_factory=Dumps, repr=False)

    def text(self) -> str:
        """Return its optimized text."""
        return self.optimized


@contextmanager
def watched_programs() -> Iterator[list[WatchedProgram]]:
    """Collect the programs that the block compiles; they are in the list when it has ended.

    Raises `NotAvailable`, before the block runs, if JAX cannot collect them. Where it cannot make
    XLA dump, they have their optimized text alone.
    """
    programs: list[WatchedProgram] = []
    folder = held(lambda: TemporaryDirectory(prefix="shardnb-"), TemporaryDirectory[str].cleanup)
    with folder as made, ExitStack() as stack:
        path = Path(made.name)
        try:
            stack.enter_context(compiled_with(Recorder(path).options))
        except NotAvailable:
            with _texts_alone(programs):
                yield programs
            return
        try:
            yield programs
        finally:
            programs += [
                WatchedProgram(program.name, program.title, program.text(), program.read())
                for program in programs_of(path)
            ]


@contextmanager
def _texts_alone(programs: list[WatchedProgram]) -> Iterator[None]:
    protos: list[bytes] = []
    # A separate name for each hook: a watched cell may run another one.
    name = f"shardnb-watch-{next(_NUMBERS)}"
    with compiled_modules(name, lambda proto: protos.append(bytes(proto))):
        try:
            yield
        finally:
            for proto in protos:
                text = hlo_text(proto)
                title = text.partition(",")[0].removeprefix("HloModule ")
                programs.append(WatchedProgram(title, title, text))
