"""A cluster on this machine, kept by a process that ends it with the kernel (see `guard`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

from shardnb.hosts.guard import MARK, end_all

_TO_END = 6.0  # seconds in which the guard kills the processes and removes its folder


class LocalCluster:
    """Engines on this machine; `file` says how a client reaches them, once they are starting."""

    def __init__(self, count: int) -> None:
        """Start the guard, in a session of its own: interrupts of the kernel pass it by."""
        self.mark = uuid.uuid4().hex
        self._guard = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "shardnb.hosts.guard", str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_path()), MARK: self.mark},
            start_new_session=True,
        )

    def file(self) -> str:
        """Wait until the controller runs; raises `RuntimeError` where it does not start."""
        line = self._guard.stdout.readline() if self._guard.stdout else b""
        if not line:
            raise RuntimeError("ipyparallel's controller did not start on this machine")
        return str(json.loads(line))

    def end(self) -> None:
        """End all of its processes; no one is left afterwards."""
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._guard.wait(_TO_END)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        end_all(self.mark)  # where the guard itself was killed


def _path() -> list[str]:
    """Return the folders that this process imports from, so that the engines do, too."""
    return [str(Path(folder).absolute()) for folder in sys.path if Path(folder).is_dir()]
