"""The other process, seen from here: started when it is first needed, and again after it ended."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

from shardnb.interrupts import apart
from shardnb.jax_compat.compilation import Description
from shardnb.jax_compat.devices import QUIET_LIBTPU
from shardnb.jax_compat.error_wordings import last_words
from shardnb.worker.jobs import Answer, Job, Refusal

# What this process imports it imports, too, but for files of the folder that the user works in.
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from shardnb.worker.__main__ import main; main(int(sys.argv[1]))"
)
# Seconds. A signal that arrives right before a call that waits does not end it: Python hears of it
# after the call.
_WAKE = 0.3
_TO_DIE = 10.0  # seconds that a process which crashed may take to write what it had in memory
# No accelerator is taken from the kernel, and no TPU is sought.
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", **QUIET_LIBTPU}


class CompilerAborted(RuntimeError):
    """XLA ended the process that compiled; `words` are what it wrote last.

    `jaxpr` is the program, and `placed` writes its mesh and the specs of its inputs, where known.
    """

    jaxpr: Any = None
    placed: str = ""

    def __init__(self, end: str, words: str) -> None:
        """Say how it ended."""
        super().__init__(f"XLA ended the process that compiled it ({end}): {words}")
        self.words = words


class Cancelled(RuntimeError):
    """Another thread no longer wants the answer."""


class Refused(Exception):
    """A job raised an error there; `written` is what the compiler wrote to descriptor 2."""

    def __init__(self, error: Exception, written: str) -> None:
        """Keep the error, to be raised here."""
        super().__init__(str(error))
        self.error, self.written = error, written


class NotStarted(RuntimeError):
    """The process does not start on this machine; the message has what it wrote."""


class _Process:
    """A running process, its socket, and the file that it writes its descriptor 2 to."""

    def __init__(self) -> None:
        """Start it in a session of its own, so that interrupts of the kernel's group pass it by."""
        self.written: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by `end`
        here, there = socket.socketpair()
        self.socket = Connection(here.detach())
        self.ready = self.used = False
        try:
            self._popen = self._started(there.fileno())
        except OSError:
            self.forget()
            raise
        finally:
            there.close()

    def _started(self, socket: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-c", _START, str(os.getpid()), *_path()],
            stdin=socket,
            stdout=subprocess.DEVNULL,
            stderr=self.written,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,
        )

    def ask(self, job: Job) -> Answer:
        """Send a job and wait for its answer; raises `EOFError` or `OSError` where it ended."""
        if not self.ready:
            self._received()
            self.ready = True
        self.written.truncate(0)
        self.socket.send(job)
        answer = self._received()
        self.used = True
        return answer

    def _received(self) -> Answer:
        while not self.socket.poll(_WAKE):
            pass
        answer: Answer = self.socket.recv()
        return answer

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def words(self) -> str:
        """Return what it wrote since the last job was sent."""
        self.written.seek(0)
        return self.written.read().decode(errors="replace")

    def stop(self) -> None:
        """End it; who waits for its answer hears of it."""
        self._popen.kill()

    def let_crash(self) -> None:
        """Wait for the end of one that crashed: it may write what it had in memory."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_TO_DIE)

    def end(self) -> str:
        """End it, and let go of all that belongs to it; says how it ended."""
        self._popen.kill()
        code = self._popen.wait()
        self.socket.close()
        self.written.close()
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    def forget(self) -> None:
        """Let go of it: in a process that was forked from this one, or where it did not start."""
        self.socket.close()
        self.written.close()


class Worker:
    """The process of this kernel, or none yet; threads take turns."""

    def __init__(self) -> None:
        """Begin without a process."""
        self._lock, self._state = threading.Lock(), threading.Lock()
        self._process: _Process | None = None
        self._asking: int | None = None
        self._cancelled = False

    def ask(self, job: Job) -> tuple[Description, str]:
        """Return what a job answers, and what the compiler wrote to descriptor 2.

        An interrupt ends the process at once, and the next job starts another. Raises `Refused`
        where the job raised an error, `CompilerAborted` where it ended the process, `NotStarted`,
        and `Cancelled`.
        """
        with self._lock, self._cancellable():
            answer, written = self._answer(job)
        if isinstance(answer, Refusal):
            raise Refused(answer.error(), written)
        return answer, written

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        with self._state:
            self._asking, self._cancelled = threading.get_ident(), False
        try:
            yield
        finally:
            with self._state:
                self._asking = None
            if self._cancelled:  # its process may have answered, and then been killed
                self.end()

    def _answer(self, job: Job) -> tuple[Answer, str]:
        process = self._started()
        try:
            return process.ask(job), process.words()
        except (EOFError, OSError):
            words = last_words(process.words())
            process.let_crash()
            end = self.end()
            if self._cancelled:
                raise Cancelled from None
            if not process.ready:
                raise NotStarted(f"the process that compiles does not start: {words}") from None
            if not process.used:
                raise CompilerAborted(end, words) from None
        except BaseException:  # an interrupt: the answer that it would still give is nobody's
            self.end()
            raise
        # What it had compiled before may have ended it, or its memory: a new process says for sure.
        return self._answer(job)

    def _started(self) -> _Process:
        if self._process is not None and self._process.runs():
            return self._process
        self.end()
        try:
            # An interrupt during the fork would lose the process's number.
            return apart(self._start)
        except OSError as error:
            raise NotStarted(f"the process that compiles does not start: {error}") from error

    def _start(self) -> _Process:
        self._process = _Process()
        return self._process

    def prepare(self) -> None:
        """Start the process, where it does not run, and go on while it gets ready."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(NotStarted):
                    self._started()
            finally:
                self._lock.release()

    def cancel(self, thread: int | None) -> None:
        """End what a thread, by its `threading.get_ident`, waits for: it gets `Cancelled`."""
        with self._state:
            process = self._process
            if process is not None and thread is not None and self._asking == thread:
                self._cancelled = True
                process.stop()

    def end(self) -> str:
        """End the process, if there is one, and say how it ended."""
        return apart(self.end_at_exit)

    def end_at_exit(self) -> str:
        """Do so in this thread: none can be started while Python ends."""
        how = "" if self._process is None else self._process.end()
        self._process = None
        return how

    def forget(self) -> None:
        """Be new in a process that was forked from this one: the other process is not its own."""
        process = self._process
        self.__init__()  # type: ignore[misc]
        if process is not None:
            process.forget()


WORKER = Worker()
atexit.register(WORKER.end_at_exit)
os.register_at_fork(after_in_child=WORKER.forget)


def _path() -> list[str]:
    """Return where modules are imported from, but for the folder that the user works in."""
    root, here = str(Path(__file__).parents[2]), ""
    with suppress(FileNotFoundError):
        here = str(Path.cwd())
    path = [p for p in sys.path if p == root or p not in ("", here)]
    return path if root in path else [root, *path]
