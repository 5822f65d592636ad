"""Which files of this machine a report may quote, where their names come from elsewhere.

A dump that somebody else made may name any file: a private one, which a page that is passed on
would then show, or one that cannot be read to its end, such as a FIFO or `/dev/zero`.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

Quotable = Callable[[str], bool]
"""Says of the name of a file whether its lines may stand in a report."""


def any_file(_name: str) -> bool:
    """Allow all: the names are those of a program that this process compiled."""
    return True


def quotable(allowed: Iterable[str | Path] = ()) -> Quotable:
    """Allow cells and modules of this session, and the files and folders that are `allowed`.

    >>> quotable()("/etc/passwd"), quotable(["/etc"])("/etc/passwd")
    (False, True)
    """
    roots = [Path(os.path.realpath(path)) for path in allowed]

    def may(name: str) -> bool:
        if _is_cell(name):
            return True
        if not is_file(name):
            return False
        path = Path(name).resolve()
        return any(path.is_relative_to(root) for root in roots) or _is_module(path)

    return may


def is_file(name: str | Path) -> bool:
    """Whether a regular file has this name; a name that no file can have is that of none."""
    try:
        return Path(name).is_file()
    except OSError:  # a name that is too long, for one
        return False


def _is_cell(name: str) -> bool:
    """Whether a name is that of a text that never was a file: IPython keeps cells without time."""
    entry = linecache.cache.get(name)
    return entry is not None and len(entry) == 4 and entry[1] is None


def _is_module(path: Path) -> bool:
    """Whether a path is that of a module of this session."""
    files = (vars(module).get("__file__") for module in list(sys.modules.values()))
    named = (file for file in files if isinstance(file, str) and file.endswith(path.name))
    return any(Path(file).resolve() == path for file in named)
