"""An interrupt acts within two seconds at any moment, and leaves the kernel as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# A hundred in all.
MOMENTS = 25
# Seconds on an idle machine, where all act within one; a busy one takes as much longer.
LIMIT = 2


@pytest.mark.parametrize("scenario", ["cell", "fix", "plan", "explore"])
def test_an_interrupt_acts_within_seconds_and_leaves_nothing(scenario, tmp_path):
    command = [sys.executable, "-m", "tests.worker.interrupted", scenario, str(MOMENTS)]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # One may come as the scenario has just ended.
    assert found["interrupts"] >= MOMENTS - 3
    busy = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    assert found["seconds"][-1] < LIMIT * (1 + busy)
    assert found["left"] == []
    assert found["recompiled"] == []
    assert found["descriptors"] == []
    assert found["threads"] <= 0
