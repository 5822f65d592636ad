"""How long a trace of 200 MB takes to read, and how much memory: at most 20 s and 2 GiB.

    python tests/benchmarks/bench_profile.py

Writes two traces of eight devices: of TPUs, whose events have no stats, and of GPUs, whose events
have several. Their form follows XProf's sources.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jax.profiler import ProfileData

SIZE = 200 << 20
DEVICES, OPERATIONS = 8, 2000
STATS = "stats { metadata_id: 900 uint64_value: 123456789 } "
BYTES = {"tpu": 38, "gpu": 78}
"""Of an event, with the stats that the profiler's have about as many of."""


def step() -> str:
    """A program of many products, with an all-reduce after each tenth."""
    lines = []
    for at in range(OPERATIONS):
        before = "p" if at == 0 else f"op{at - 1}"
        how = (
            f"all-reduce({before}), channel_id={at + 1}, replica_groups={{{{0,1,2,3,4,5,6,7}}}}, "
            "use_global_device_ids=true, to_apply=add"
            if at % 10 == 9
            else f"multiply({before}, {before})"
        )
        root = "ROOT " if at == OPERATIONS - 1 else ""
        lines.append(f"  {root}op{at} = f32[1024]{{0}} {how}")
    body = "\n".join(lines)
    return (
        "HloModule jit_step, is_scheduled=true\n\nadd {\n  x = f32[] parameter(0)\n"
        "  y = f32[] parameter(1)\n  ROOT sum = f32[] add(x, y)\n}\n\n"
        f"ENTRY main {{\n  p = f32[1024]{{0}} parameter(0)\n{body}\n}}\n"
    )


def written(folder: Path, platform: str) -> Path:
    """Write a trace of about `SIZE` bytes: the same plane for each device."""
    from tests.profiles.traces import gpu, metadata, serialized, tpu

    tail = " = f32[1024]{0:T(1024)} multiply(f32[1024]{0:T(1024)} %before, f32[1024]{0} %before)"
    names = [f"%op{at}{tail}" if platform == "tpu" else f"op{at}" for at in range(OPERATIONS)]
    runs = range(SIZE // DEVICES // (OPERATIONS * BYTES[platform]))
    events = [
        (name, run * 5000 + at * 2, run * 5000 + at * 2 + 1.5)
        for run in runs
        for at, name in enumerate(names)
    ]
    if platform == "tpu":
        modules = [("jit_step(7)", run * 5000, run * 5000 + 4000) for run in runs]
        one = tpu(0, {"XLA Modules": modules, "XLA Ops": events}, stats=STATS * 2)
    else:
        one = gpu(0, {"Stream #1(Compute)": events}, 7, stats=STATS * 5)
    plane = ProfileData.text_proto_to_serialized_xspace(one)
    name = f"/device:{platform.upper()}:0".encode()
    program = metadata({7: serialized(step(), tuple(range(DEVICES)))})
    file = folder / f"{platform}.xplane.pb"
    with file.open("wb") as out:
        out.write(ProfileData.text_proto_to_serialized_xspace(program))
        for at in range(DEVICES):
            out.write(plane.replace(name, name[:-1] + str(at).encode()))
    return file


def read(file: str) -> None:
    """Read a trace, and print what that took."""
    import shardnb as sn

    start = time.process_time()
    (report,) = sn.read_profile(file).reports
    seconds = time.process_time() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    size = Path(file).stat().st_size / (1 << 20)
    measured = sum(c.measured is not None for c in report.collectives)
    print(
        f"{Path(file).name:<16} {size:5.0f} MiB   {seconds:5.1f} s of CPU time   {most:4.2f} GiB   "
        f"{report.profile.devices} devices, {report.profile.runs} runs, {measured} collectives"
    )


def main() -> None:
    """Write the traces, and read each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for platform in ("tpu", "gpu"):
            file = written(Path(folder), platform)
            command = [sys.executable, __file__, str(file)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    read(sys.argv[1]) if len(sys.argv) > 1 else main()
