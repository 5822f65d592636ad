"""Four hosts, in a kernel of their own that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.hosts.conftest import ends, left

ROOT = Path(__file__).parents[2]

NOTEBOOK = """
import time
from IPython.testing.globalipapp import get_ipython, start_ipython
shell = start_ipython() or get_ipython()
def run(cell):
    shell.run_cell(cell).raise_error()
run("%load_ext shardnb")
run("import jax.numpy as jnp; x = jnp.arange(24.0).reshape(8, 3)")
run("%mesh data=4,model=2 --hosts 4")
run("%%shard x=P('data') --save report\\ns = (x * 2).sum(0)")
print("sums", shell.user_ns["s"].fetch().tolist())
print("hosts", shell.user_ns["report"].mesh.hosts)
engines = shell.magics_manager.registry["ShardMagics"].hosts.running
print("mark", engines.cluster.mark, flush=True)
time.sleep(600)
"""


def test_four_hosts_run_a_cell_and_none_is_left_when_the_kernel_is_killed(tmp_path):
    kernel = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path / "ipython")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        printed = {}
        for line in kernel.stdout:
            name, _, rest = line.strip().partition(" ")
            printed[name] = rest
            if name == "mark":
                break
        # Columns of 0 to 23 in threes: 0 + 3 + ... + 21 = 84, and 8 more for each column; doubled.
        assert printed["sums"] == "[168.0, 184.0, 200.0]"
        assert printed["hosts"] == "(0, 0, 1, 1, 2, 2, 3, 3)"
        assert len(left(printed["mark"])) >= 5
    finally:
        kernel.send_signal(signal.SIGKILL)
        kernel.wait()
        kernel.stdout.close()
    assert ends(lambda: not left(printed["mark"]), 10)
