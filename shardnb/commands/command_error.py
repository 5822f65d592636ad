"""The error that the command line shows as one line instead of a traceback."""

from __future__ import annotations


class CommandError(Exception):
    """Bad input; the message is one line that names the input and shows the right form."""


def in_one_line(error: BaseException) -> str:
    r"""Return the first line of an exception, as Python prints it.

    >>> in_one_line(ValueError("no such axis\nthe axes are x, y"))
    'ValueError: no such axis'
    """
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0]}" if lines else name
