"""What passes between this process and the one that compiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shardnb.jax_compat import compilation
from shardnb.jax_compat.compilation import Compilation, Description

READY = Description("ready")


@dataclass(frozen=True)
class Refusal:
    """An error that was raised there: the name of its class, and its text."""

    kind: str
    text: str

    def error(self) -> Exception:
        """Return it as the error to raise here."""
        if self.kind == "ValueError":
            return ValueError(self.text)
        import jax

        error: Exception = jax.errors.JaxRuntimeError(self.text)
        return error


Answer = Description | Refusal


@dataclass(frozen=True)
class Compile:
    """Compile a program; with `load` the answer holds the executable, so that it can run."""

    compilation: Compilation
    load: bool = False

    def answer(self) -> Description:
        """Compile."""
        return compilation.compiled(self.compilation, load=self.load)


@dataclass(frozen=True)
class Optimize:
    """Compile a program as far as its optimized text is known."""

    compilation: Compilation

    def answer(self) -> Description:
        """Compile as far as that."""
        return compilation.optimized(self.compilation)


Job = Compile | Optimize


def answered(work: Callable[[], Description]) -> Answer:
    """Return what a job answers, or its error."""
    try:
        return work()
    # XLA refuses a program with errors of several classes; each goes back to who asked.
    except Exception as error:  # noqa: BLE001
        return Refusal(type(error).__name__, str(error))
