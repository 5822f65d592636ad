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

from shardnb.profiles.wire import fields, tagged
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
    kept = [plane.message for plane in fields(memoryview(space)) if plane.number == 1]
    return b"".join(tagged(1, _plane(p)) for p in kept if _name(p) in _KEPT)


def _plane(plane):
    """A plane with the lines on which operations run, and without the stats of the host."""
    return b"".join(
        bytes(each.raw)
        for each in fields(plane)
        if each.number != 6 and (each.number != 3 or _name(each.message).startswith(_OPERATIONS))
    )


def _name(message):
    return next((each.text for each in fields(message) if each.number == 2), "")


if __name__ == "__main__":
    main()
