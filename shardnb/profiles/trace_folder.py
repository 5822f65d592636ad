"""Which files a trace has: one for each host, in the folder of a session.

A folder may come from anywhere: links are left out, and there are limits to what is read.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from shardnb.report.invalid_input import InvalidInput

ENDING = ".xplane.pb"
# A pod's slice has hundreds of hosts, and a folder of sessions some of each.
_MOST_FILES = 20_000
# A part is read at a time, but the figures of all operations are kept: some 40 bytes of each.
_MOST_BYTES = 4 << 30
_NO_TRACE = (
    "expected a trace of the profiler: a file *.xplane.pb, or a folder with some, as "
    "jax.profiler.trace writes"
)


def is_trace(path: Path) -> bool:
    """Whether a path is a file of a trace, or a folder that has one."""
    if path.is_dir():
        return next(_files(path), None) is not None
    return path.name.endswith(ENDING)


def files_of(path: Path) -> tuple[tuple[Path, ...], str]:
    """Return the files of a trace, one for each host, and a note on what was left out.

    A folder of several sessions stands for the newest. Raises `InvalidInput` where there is none.
    """
    if not path.exists():
        raise InvalidInput(f"there is no such file or folder; {_NO_TRACE}")
    if path.is_file():
        return _checked((path,)), ""
    sessions: dict[Path, list[Path]] = defaultdict(list)
    for file in _files(path):
        sessions[file.parent].append(file)
    if not sessions:
        raise InvalidInput(f"there is no *{ENDING} in this folder; {_NO_TRACE}")
    # JAX names a session by its time.
    newest = max(sessions, key=lambda folder: (folder.name, folder))
    others = len(sessions) - 1
    note = f"the folder has {others} more trace{'s' if others > 1 else ''}: this is {newest.name}"
    return _checked(tuple(sessions[newest])), note if others else ""


def _checked(files: tuple[Path, ...]) -> tuple[Path, ...]:
    size = sum(file.stat().st_size for file in files)
    if size > _MOST_BYTES:
        raise InvalidInput(
            f"expected a trace of at most {_MOST_BYTES >> 30} GiB, got {size / (1 << 30):.1f} GiB: "
            "trace fewer steps, or read the file of one host"
        )
    return files


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files of traces in a folder, in the order of their names."""
    count = 0
    for path, folders, names in os.walk(folder):
        folders.sort()
        count += len(names)
        if count > _MOST_FILES:
            raise InvalidInput(f"it has more than {_MOST_FILES:,} files; {_NO_TRACE}")
        for name in sorted(names):
            file = Path(path, name)
            if name.endswith(ENDING) and not file.is_symlink():
                yield file
