"""How an error of a cell is shown: once, with the user's own frames."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
from IPython.core.error import UsageError

from shardnb.jax_compat.frames import is_jaxs_own
from shardnb.magics.cell import CellError
from shardnb.magics.options import OptionError
from shardnb.magics.specs import KNOWN_ON_THE_LINE
from shardnb.report import Collective
from shardnb.tracebacks import frames_of, says_what_is_wrong
from shardnb.views.words import asked


class ForbiddenCollectives(RuntimeError):
    """The program has collectives that `--forbid` names; `collectives` are these."""

    def __init__(self, words: Sequence[str], collectives: Sequence[Collective]) -> None:
        """Name what is forbidden and which collectives the program has."""
        self.collectives = tuple(collectives)
        listed = "; ".join(_named(collective) for collective in collectives)
        count = f"{len(collectives)} collective{'s' if len(collectives) > 1 else ''}"
        super().__init__(f"--forbid {','.join(words)}: the program has {count}: {listed}")

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def _named(collective: Collective) -> str:
    shape = ",".join(str(size) for size in collective.shape)
    axes = f" over {', '.join(collective.axes)}" if collective.axes else ""
    line = f" at line {collective.line}" if collective.line else ""
    return f"{collective.kind} {collective.dtype}[{shape}]{axes}{line} ({asked(collective)})"


def note_missing_import(error: BaseException) -> None:
    """Add to an error about a name that the `%%shard` line knows how the cell gets it."""
    if isinstance(error, NameError) and error.name in KNOWN_ON_THE_LINE:
        named = "PartitionSpec as P" if error.name == "P" else error.name
        error.add_note(
            f"Only the %%shard line knows {error.name} without an import. "
            f"Before this cell, run: from jax.sharding import {named}"
        )


def at_cell(error: BaseException, file: str) -> types.TracebackType | None:
    """Return the first frame of an error that is in the cell, or None."""
    stack = frames_of(error.__traceback__)
    return next((tb for tb in stack if tb.tb_frame.f_code.co_filename == file), None)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an error about a line or a cell into IPython's UsageError, which is one line."""
    try:
        yield
    except (ValueError, TypeError) as error:
        meant = isinstance(error, OptionError | CellError)
        if not meant and not says_what_is_wrong(error):
            raise
        raise UsageError(" ".join(str(error).split())) from error


def rendered(
    shell: Any, error: BaseException, start: types.TracebackType | None
) -> Callable[[], list[str]]:
    """Return a function that writes the traceback from this frame on, without JAX's own frames.

    The error itself keeps all frames, for a debugger.
    """
    write = shell.InteractiveTB.structured_traceback
    return partial(write, type(error), error, _without_jax(start), tb_offset=0)


def _without_jax(start: types.TracebackType | None) -> types.TracebackType | None:
    """Return a stack without JAX's own frames, unless `jax_traceback_filtering` is off."""
    if jax.config.values.get("jax_traceback_filtering") == "off":
        return start
    users: types.TracebackType | None = None
    for tb in reversed(frames_of(start)):
        if not is_jaxs_own(tb.tb_frame.f_code.co_filename):
            users = types.TracebackType(users, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return users


def show_syntax_error_alone(shell: Any) -> None:
    """Have IPython show the next syntax error as in any cell: the line, and no stack.

    IPython has no hook for the display of a syntax error, so its method is replaced for one call
    of this thread.
    """
    thread, shows = threading.get_ident(), shell.showsyntaxerror

    def once(filename: str | None = None, running_compiled_code: bool = False) -> None:  # noqa: FBT001, FBT002
        if threading.get_ident() != thread:
            shows(filename, running_compiled_code)
            return
        vars(shell).pop("showsyntaxerror", None)
        shows(filename)

    shell.showsyntaxerror = once
