"""`shardnb run`: run a program, and explain what XLA dumped of it.

JAX is imported once the program has started, and only where XLA dumped something.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shardnb.commands import script
from shardnb.commands.command_error import CommandError
from shardnb.commands.script import Ended
from shardnb.report import InvalidInput
from shardnb.report.programs import Programs


@dataclass(frozen=True)
class RunOptions:
    """What `shardnb run` is given: the words of the program, or those after `-m`, and options."""

    words: Sequence[str]
    module: Sequence[str] = ()
    mesh: str | None = None
    only: str | None = None
    first: int | None = None
    stop: bool = False
    keep: Path | None = None


def run(given: RunOptions) -> tuple[Ended, Programs]:
    """Run a program to its end, and explain what it compiled.

    The program is the user's own, so lines of all its files are shown. Raises `CommandError`.
    """
    _check(given)
    command = script.command_of(given.words, given.module)
    since = time.time()
    with script.dump_folder(given.keep) as folder, TemporaryDirectory(prefix="shardnb-") as hooks:
        env = script.environment(folder, Path(hooks))
        enough = _enough(given, folder, since) if given.stop else None
        ended = script.run_child(command, env, enough)
        try:
            return ended, _explained(given, folder, since)
        except InvalidInput as error:
            refusal = CommandError(str(error))
            refusal.status = ended.status or refusal.status
            raise refusal from error


def _check(given: RunOptions) -> None:
    """Raise `CommandError` for what could only be refused after the program has run."""
    if not given.words and not given.module:
        raise CommandError("expected a script or -m MODULE, as in `shardnb run train.py`")
    if given.first is not None and given.first < 1:
        raise CommandError(f"expected --first of at least 1, got {given.first}")
    if given.mesh is not None:
        from shardnb.mesh import parse_mesh

        try:
            parse_mesh(given.mesh)
        except ValueError as error:
            raise CommandError(str(error)) from error


def _explained(given: RunOptions, folder: Path, since: float) -> Programs:
    if not any(folder.iterdir()):
        return Programs()
    from shardnb.compiler import SourceTexts
    from shardnb.reading import read_programs

    return read_programs(
        folder,
        given.mesh,
        only=given.only,
        first=given.first,
        texts=SourceTexts(),
        since=since,
    )


def _enough(given: RunOptions, folder: Path, since: float) -> Callable[[], bool]:
    """Return whether as many programs as are asked for are compiled and their dumps written.

    What XLA still writes to is not counted.
    """
    sizes: dict[str, int] = {}
    known: dict[str, bool] = {}

    def enough() -> bool:
        nonlocal sizes
        from shardnb.compiler.dump_folders import programs_of
        from shardnb.findings.each import is_wanted

        with suppress(OSError, InvalidInput):  # of a file that is being written or was moved
            programs = [each for each in programs_of(folder) if each.ended >= since]
            before, sizes = sizes, {each.name: each.bytes for each in programs}
            for each in programs:
                if before.get(each.name) == each.bytes and each.name not in known:
                    known[each.name] = is_wanted(each, given.only)
        return sum(known.values()) >= (given.first or 1)

    return enough
