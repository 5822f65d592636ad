"""Errors with their explanation first, drawn, and the plain traceback one click away."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from IPython.display import display

from shardnb.report.types import ErrorReport
from shardnb.views import explanations

_COLOURS = re.compile(r"\x1b\[[\d;]*m")

Render = Callable[[], list[str]]


def show(shell: Any, error: BaseException, report: ErrorReport, plain: Render) -> None:
    """Display an explanation, and set what IPython shows of the error itself.

    In a notebook that is one line; the traceback that `plain` renders is folded under the
    explanation, and `%tb` shows it again. A terminal shows the traceback as usual.
    """
    traceback = plain()
    text = "\n".join(_COLOURS.sub("", part) for part in traceback)
    page = {
        "text/plain": explanations.text_of(report),
        "text/html": explanations.html_of(report, text),
    }
    display(page, raw=True)

    def render() -> list[str]:
        error._render_traceback_ = plain  # type: ignore[attr-defined]
        line = report.location and f" (line {report.location.line}; %tb shows the traceback)"
        return [f"{type(error).__name__}: {report.sentence}{line or ''}"]

    in_notebook = getattr(shell, "kernel", None) is not None
    error._render_traceback_ = render if in_notebook else plain  # type: ignore[attr-defined]


class AnyCell:
    """Explains JAX's errors about shardings in every cell, while it is switched on."""

    def __init__(self, shell: Any, explain: Callable[[BaseException], ErrorReport | None]) -> None:
        """Start switched off; `explain` returns None for an error that it does not know."""
        self._shell = shell
        self._explain = explain
        self._before: tuple[Any, Any] | None = None

    def switch(self, *, on: bool) -> None:
        """Switch it on or off; the user's own handler takes precedence."""
        shell = self._shell
        if on and self._before is None:
            self._before = shell.custom_exceptions, getattr(shell, "CustomTB", None)
            shell.set_custom_exc((Exception,), self._handled)
        elif not on and self._before is not None:
            shell.custom_exceptions, shell.CustomTB = self._before
            self._before = None

    def _handled(
        self,
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        traceback: types.TracebackType,
        tb_offset: int | None = None,
    ) -> Any:
        kinds, handler = self._before or ((), None)
        if handler is not None and issubclass(kind, tuple(kinds)):
            return handler(kind, error, traceback, tb_offset)
        report = None if hasattr(error, "_render_traceback_") else self._explain(error)
        if report is not None:
            plain = shell.InteractiveTB.structured_traceback
            show(shell, error, report, partial(plain, kind, error, traceback, tb_offset=tb_offset))
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
        return None
