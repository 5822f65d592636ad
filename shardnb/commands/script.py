"""`shardnb run`: somebody's program in a child process, whose XLA dumps what it compiles."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shardnb.commands.command_error import CommandError
from shardnb.terms.xla_dumps import PASSES

_TO = re.compile(r"--xla_dump_to=(\S+)")
_RE = re.compile(r"--xla_dump_hlo_pass_re=(\S+)")
_HOOK = Path(__file__).with_name("kept_flags.py")
KEPT_FLAGS = "SHARDNB_XLA_FLAGS"
"""What tells `kept_flags.py` which flags to add where a program sets XLA_FLAGS itself."""

_PASSED_ON = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# How often the folder is looked at for the program to stop after, and how long a program that is
# asked to end may take to save what it saves.
_EVERY, _GRACE = 0.25, 20.0


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit status, and whether it was stopped on purpose."""

    status: int
    stopped: bool = False


def command_of(words: Sequence[str], module: Sequence[str]) -> list[str]:
    """Return the command that runs a script, a module or another program, with its arguments.

    A file that is not executable, and one whose name ends in `.py`, is run by this Python. Raises
    `CommandError` where there is none.

    >>> command_of([], ["train", "--steps", "3"])[1:]
    ['-m', 'train', '--steps', '3']
    """
    if module:
        return [sys.executable, "-m", *module]
    name, *arguments = words[1:] if words[:1] == ["--"] else words
    path = Path(name)
    runs = os.access(path, os.X_OK) and path.is_file() and path.suffix != ".py"
    if path.exists() and not runs:
        return [sys.executable, name, *arguments]
    found = str(path) if runs and os.sep in name else shutil.which(name)
    if found is None:
        raise CommandError(f"there is no script {name}, and no program of that name either")
    return [found, *arguments]


@contextmanager
def dump_folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder to dump to: the one to keep, the one of XLA_FLAGS, or a temporary one."""
    given = _TO.findall(_flags())
    if given and keep is not None:
        raise CommandError("XLA_FLAGS has --xla_dump_to already: that folder is kept, drop --keep")
    if keep is None and not given:
        with TemporaryDirectory(prefix="shardnb-run-") as name:
            yield Path(name)
        return
    folder = Path(given[-1]) if given else Path(keep or ".").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{folder} cannot be made a folder: {error.strerror}") from error
    yield folder


def _flags() -> str:
    """Return the user's flags: XLA_FLAGS holds them, or names a file of them."""
    given = os.environ.get("XLA_FLAGS", "").strip()
    if given and not given.startswith("-"):
        with suppress(OSError, UnicodeDecodeError):  # XLA, too, goes on without them
            return " ".join(Path(given).read_text(encoding="utf-8").split())
        return ""
    return given


def environment(folder: Path, hooks: Path) -> dict[str, str]:
    """Return this process's environment with XLA's dumps switched on.

    Flags of the user's stay; of one that stands twice, XLA takes the last. A program that is in
    JAX's persistent cache is not compiled, and so not dumped: the cache takes no part. `hooks` is a
    folder for what Python runs at the start of a program (see `kept_flags.py`).
    """
    theirs = _flags()
    passes = "|".join(dict.fromkeys([*_RE.findall(theirs)[-1:], PASSES]))
    flags = [
        f"--xla_dump_to='{folder}'",
        f"--xla_dump_hlo_pass_re={passes}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_include_timestamp",
    ]
    shutil.copyfile(_HOOK, hooks / "sitecustomize.py")
    paths = [str(hooks), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "XLA_FLAGS": " ".join(filter(None, [theirs, *flags])),
        KEPT_FLAGS: " ".join(flags),
        "PYTHONPATH": os.pathsep.join(paths),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }


def run_child(
    command: Sequence[str], env: Mapping[str, str], enough: Callable[[], bool] | None
) -> Ended:
    """Run a program with this process's input, output and signals, until it ends.

    It is stopped where `enough` is true, which is asked now and then. The status of a program that
    a signal ended is 128 and the signal's number, as in a shell.
    """
    sys.stdout.flush()
    try:
        child = subprocess.Popen(command, env=dict(env))  # noqa: S603 - the user's own program
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be run: {error.strerror}") from error
    with _signals_to(child):
        stopped = enough is not None and _stopped(child, enough)
        status = child.wait()
    if stopped:
        return Ended(0, stopped=True)
    return Ended(128 - status if status < 0 else status)


def _stopped(child: subprocess.Popen[bytes], enough: Callable[[], bool]) -> bool:
    """Stop a program when there is enough; gives whether that was before it ended by itself."""
    while child.poll() is None:
        if not enough():
            time.sleep(_EVERY)
            continue
        print("shardnb: stopping the program: what was asked for is compiled", file=sys.stderr)  # noqa: T201
        child.terminate()
        try:
            child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
        return True
    return False


@contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass signals on to a program, so that it ends as it would without shardnb."""

    def pass_on(number: int, _: object) -> None:
        # What is typed at a terminal goes to both.
        if number not in (signal.SIGINT, signal.SIGQUIT) or not _at_terminal():
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _at_terminal() -> bool:
    """Whether this process is in the foreground of a terminal."""
    with suppress(OSError, AttributeError):
        terminal = os.open(os.ctermid(), os.O_RDONLY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False
