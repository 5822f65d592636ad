"""The trace of the lesson on measured time: `python -m tests.notebooks.trace` takes it anew.

It runs `notebooks/traces/train.py`, and keeps of the trace the programs and the operations: not
what it says of the machine.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from shardnb.profiles.messages import XPlane, XSpace
from tests.notebooks.course import COURSE

TRACES = COURSE / "traces"
_KEPT = ("/host:metadata", "/host:CPU")
_OPERATIONS = "tf_XLA"
_DUMPS = re.compile(
    r"jit_step\.(?:.*spmd-partitioner.*|cpu_after_optimizations)\.txt|shardy/.*jit_step/"
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        # Names of files as seen from the notebooks.
        canonical = re.escape(f"{COURSE}/")
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": canonical,
        }
        command = [sys.executable, str(TRACES / "train.py"), folder]
        subprocess.run(command, check=True, env=environment)
        (trace,) = Path(folder, "trace").rglob("*.xplane.pb")
        space = trimmed(trace.read_bytes())
        (TRACES / "train_step.xplane.pb").write_bytes(space)
        shutil.rmtree(TRACES / "dumps", ignore_errors=True)
        for file in sorted(Path(folder, "dumps").rglob("*")):
            name = file.relative_to(Path(folder, "dumps"))
            if file.is_file() and _DUMPS.search(str(name)):
                target = TRACES / "dumps" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(file.read_text().replace(folder, "dumps"))


def trimmed(space):
    """A trace without planes and lines that have no operation."""
    planes = (XPlane.FromString(plane) for plane in XSpace.FromString(space).planes)
    kept = [_plane(plane) for plane in planes if plane.name in _KEPT]
    return XSpace(planes=kept).SerializeToString()


def _plane(plane):
    """A plane with the lines on which operations run, and without the stats of the host."""
    lines = [line for line in plane.lines if line.name.startswith(_OPERATIONS)]
    plane.ClearField("lines")
    plane.lines.extend(lines)
    plane.ClearField("stats")
    return plane.SerializeToString()


if __name__ == "__main__":
    main()
