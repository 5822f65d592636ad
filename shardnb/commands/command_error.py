"""What the command line shows as a line instead of a traceback, and its exit statuses."""

from __future__ import annotations

DONE, FORBIDDEN, INVALID, RAISED, NOT_EXPLAINED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

STATUSES = {
    DONE: "explained, and nothing that --forbid names is there",
    FORBIDDEN: "a collective that --forbid names is there",
    INVALID: "the command line, or what it is given to read, is not valid",
    RAISED: "the program raised: the file, a cell, an argument, JAX or XLA",
    NOT_EXPLAINED: "no program was explained, or its collectives are not known yet",
    BUG: "a bug in shardnb, with its traceback",
    INTERRUPTED: "interrupted",
}
"""What each exit status says; `--help` shows it."""


class CommandError(Exception):
    """Bad input; the message is one line that names the input and shows the right form."""

    status = INVALID


class ProgramError(CommandError):
    """The user's program raised: its file, a cell, an argument, or its compile."""

    status = RAISED


def in_one_line(error: BaseException) -> str:
    r"""Return the first line of an exception, as Python prints it.

    >>> in_one_line(ValueError("no such axis\nthe axes are x, y"))
    'ValueError: no such axis'
    """
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0]}" if lines else name
