"""Whose frames the traceback of an error has, and which of them a user is to see."""

from __future__ import annotations

import opcode
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType

import shardnb

_PACKAGE = Path(shardnb.__file__).parent
_CHECKED = ("mesh", "compiler", "engine.py", "magics/meshes", "torch")
_CHECKS = tuple(str(_PACKAGE / part) for part in _CHECKED)
_RAISE = opcode.opmap["RAISE_VARARGS"]


def frames_of(traceback: TracebackType | None) -> Sequence[TracebackType]:
    """Return the frames of a traceback, the innermost last."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    return frames


def says_what_is_wrong(error: BaseException) -> bool:
    """Whether an error is the message of a check by shardnb about a mesh or a spec.

    A check has a `raise`; a bug on the same lines comes from a call or an operator.
    """
    if not isinstance(error, ValueError | TypeError) or not _raised_in(error).startswith(_CHECKS):
        return False
    last = frames_of(error.__traceback__)[-1]
    return last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def is_ours(error: BaseException) -> bool:
    """Whether an error was raised by shardnb itself."""
    return _raised_in(error).startswith(str(_PACKAGE))


def with_users_frames[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Have the traceback of an error that a public function raises show the user's own frames."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        __tracebackhide__ = True  # IPython and pytest leave this frame out
        try:
            return function(*args, **options)
        except Exception as error:  # noqa: BLE001 - of any class: it is raised again
            raise without_our_frames(error)  # noqa: B904 - it is the same error

    return call


def without_our_frames[E: BaseException](error: E) -> E:
    """Take shardnb's frames from the traceback of an error, unless it is a bug of shardnb's.

    What is between a call such as `sn.explain(f, x)` and the line of `f` that fails tells nothing.
    """
    if says_what_is_wrong(error):
        return error.with_traceback(None)
    if is_ours(error):
        return error
    kept: TracebackType | None = None
    for tb in reversed(frames_of(error.__traceback__)):
        if not tb.tb_frame.f_code.co_filename.startswith(str(_PACKAGE)):
            kept = TracebackType(kept, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return error.with_traceback(kept)


def _raised_in(error: BaseException) -> str:
    frames = frames_of(error.__traceback__)
    return frames[-1].tb_frame.f_code.co_filename if frames else ""
