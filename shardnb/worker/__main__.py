"""The process that compiles: `python -m shardnb.worker PARENT`, with its socket as descriptor 0."""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue

from shardnb.jax_compat.compilation import load_xla
from shardnb.worker.jobs import READY, Job, answered

# Seconds. A process that the kernel forked keeps the socket open when the kernel is killed.
_LOOK_FOR_PARENT = 2.0


def main(parent: int) -> None:
    """Answer jobs until the parent is gone; nothing but answers goes to the socket."""
    socket = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_listen, args=(socket, jobs, parent), daemon=True).start()
    load_xla()
    socket.send(READY)
    while True:
        socket.send(answered(jobs.get().answer))


def _listen(socket: Connection, jobs: SimpleQueue[Job], parent: int) -> None:
    """Take jobs, also while one is done; end the process as soon as nobody is there to ask."""
    try:
        while True:
            while not socket.poll(_LOOK_FOR_PARENT):
                if os.getppid() != parent:
                    os._exit(0)
            jobs.put(socket.recv())
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
