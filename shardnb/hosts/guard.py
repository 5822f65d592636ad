"""The process that keeps a local cluster: `python -m shardnb.hosts.guard N`.

It starts the cluster in a session of its own, and ends every process of it when the kernel closes
the pipe, which a kernel that is killed does too.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MARK = "SHARDNB_HOSTS"
"""The variable in the environment of all processes of a cluster; its value is the cluster's."""

# Seconds. A process that the kernel forked keeps the pipe open when the kernel is killed.
_LOOK_FOR_PARENT = 1.0
_TO_DIE = 5.0  # seconds that the system may take to end processes that were killed


def end_all(mark: str) -> None:
    """Kill every process of a cluster but this one, and wait until they are gone."""
    import psutil

    until = time.monotonic() + _TO_DIE
    while (left := list(_of_cluster(mark))) and time.monotonic() < until:
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=0.2)


def _of_cluster(mark: str) -> Any:
    """Yield the processes of a cluster. Their parents may be gone, so no tree leads to them."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if process.pid != os.getpid() and not ended and process.environ().get(MARK) == mark:
                yield process


def main(count: int) -> None:
    """Start a cluster of so many engines, say where it is, and end it with the kernel."""
    from ipyparallel import Cluster
    from traitlets.config import Config

    mark, parent = os.environ[MARK], os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.mkdtemp(prefix="shardnb-hosts-")
    config = Config()
    # A process beside each engine, which would pass signals on: the kernel sends them itself.
    config.EngineLauncher.engine_args = ["--IPEngine.enable_nanny=False"]
    try:
        cluster = Cluster(
            n=count,
            config=config,
            profile_dir=folder,
            load_profile=False,
            cluster_file="",
            delay=0,
            controller_args=["--nodb"],  # it would keep what is sent
            log_level=logging.ERROR,
            shutdown_atexit=False,
        )
        cluster.start_cluster_sync()
        file = Path(folder, "security", f"ipcontroller-{cluster.cluster_id}-client.json")
        sys.stdout.write(json.dumps(str(file)) + "\n")
        sys.stdout.flush()
        while os.getppid() == parent:
            if select.select([sys.stdin], [], [], _LOOK_FOR_PARENT)[0]:
                break
    finally:
        end_all(mark)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # what ipyparallel would do at the end waits for processes that are gone


if __name__ == "__main__":
    main(int(sys.argv[1]))
