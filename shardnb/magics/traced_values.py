"""Cells that need the value of an array while JAX traces them."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

import jax

from shardnb.compiler import SourceTexts
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat.error_wordings import FORMATTED_TRACER, PRINTED_TRACER, TRACED_FUNCTION
from shardnb.magics.trees import is_tracer, leaves_of
from shardnb.report.types import ErrorReport

_NEEDS_A_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
_TRACED = "%%shard traces a cell as jax.jit traces a function, so its arrays have no values yet"
_INSTEAD = (
    "Do this in the next cell, where the results have their values; or run this cell as it stands "
    "with %%shard --watch, which reports what its own jit calls compile. What depends on a value "
    "inside of the program is written with jnp.where, jax.lax.cond or jax.lax.fori_loop."
)


def explained(error: BaseException, texts: SourceTexts) -> ErrorReport | None:
    """Explain an error of a cell that needs the value of a traced array; None for any other.

    Errors in a function that the user jitted are left to JAX: its arrays have no values either.
    """
    traced = TRACED_FUNCTION.search(str(error))
    if traced is not None and traced[1] != "cell":
        return None
    if not isinstance(error, _NEEDS_A_VALUE) and not FORMATTED_TRACER.search(str(error)):
        return None
    located = texts.located()
    evidence = ErrorEvidence(error, located)
    expression, place = evidence.expression, evidence.location
    line = located.texts()[place.source].line(place.line).strip() if place else ""
    asked = expression.text if expression else line
    return ErrorReport(
        kind="traced-value",
        error=type(error).__name__,
        message=str(error),
        sentence=f"`{asked}` needs the value of an array, but {_TRACED}",
        cause=_INSTEAD,
        location=place,
        expression=expression.text if expression else "",
        sources=located.texts(),
    )


def noting_print(file: str, notes: list[str]) -> Callable[..., None]:
    """Return a `print` that adds a note for each line of a file where it shows a traced array."""

    def noting(*values: Any, **options: Any) -> None:
        builtins.print(*values, **options)  # noqa: T201  the user prints
        parts = [leaf for value in values for leaf in leaves_of(value)]
        texts = (part for part in parts if isinstance(part, str))
        if not (any(map(is_tracer, parts)) or any(map(PRINTED_TRACER.search, texts))):
            return
        caller = sys._getframe(1)  # noqa: SLF001  the line that prints
        where = f"line {caller.f_lineno}" if caller.f_code.co_filename == file else "a function"
        notes.append(
            f"{where} prints a traced array: {_TRACED}; print in the next cell, or with "
            "jax.debug.print, or run the cell with --watch"
        )

    return noting
