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
# Seconds. On an idle machine all act within one; the suite runs two files at a time.
LIMIT = 6


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
    assert found["seconds"][-1] < LIMIT
    assert found["left"] == []
    assert found["recompiled"] == []
    assert found["descriptors"] == []
    assert found["threads"] <= 0
