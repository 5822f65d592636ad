"""A thread that does one job at a time; of the waiting jobs only the newest is kept."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

Job = Callable[[], None]


class LatestJob:
    """Does jobs in a thread that exists only while there is work."""

    def __init__(self) -> None:
        """Start without work."""
        self._lock = threading.Lock()
        self._waiting: Job | None = None
        self._thread: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        """Do a job after the present one, instead of any that waits."""
        context = contextvars.copy_context()
        with self._lock:
            self._waiting = lambda: context.run(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="shardnb explorer")
                self._thread.start()

    def stop(self) -> None:
        """Drop the waiting job; the present one cannot be stopped."""
        with self._lock:
            self._waiting = None

    @property
    def thread(self) -> int | None:
        """The thread of the present job, as `threading.get_ident` gives it."""
        thread = self._thread
        return None if thread is None else thread.ident

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all is done; returns whether it is."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self._thread is None

    def _work(self) -> None:
        while True:
            with self._lock:
                job, self._waiting = self._waiting, None
                if job is None:
                    self._thread = None
                    return
            job()
