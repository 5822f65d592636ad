"""What is going on, for the line that is drawn while it lasts."""

from __future__ import annotations

from shardnb.views.formatting import size


def tracing(title: str) -> str:
    """Say which program is traced."""
    return f"tracing {title}"


def lowering(title: str, equations: int) -> str:
    """Say which program is lowered, and how large it is."""
    return f"lowering {sized(title, equations)}"


def sized(title: str, equations: int) -> str:
    """Say how large a program is.

    >>> sized("step", 5374)
    'step (5,374 equations)'
    """
    return f"{title} ({equations:,} equation{'' if equations == 1 else 's'})"


def compiling(length: int) -> str:
    """Say how large the module is that XLA compiles, in bytes.

    >>> compiling(137295)
    'compiling 134 KiB of StableHLO'
    """
    return f"compiling {size(length)} of StableHLO"


def reading(title: str) -> str:
    """Say whose evidence is read into a report."""
    return f"explaining {title}"


def measuring(title: str, run: int, runs: int) -> str:
    """Say which program is measured, and how far that is.

    >>> measuring("step", 2, 5)
    'measuring step, run 2 of 5'
    """
    return f"measuring {title}, run {run} of {runs}"


def running(title: str) -> str:
    """Say which program runs."""
    return f"running {title}"
