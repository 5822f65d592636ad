"""The workflow of the README: its commands, as they stand there, in a repository of a user's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import shardnb

ROOT = Path(shardnb.__file__).parent.parent
TRAIN = """
import jax
import jax.numpy as jnp
import optax

optimizer = optax.adamw(1e-3)


def shapes():
    kernel = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    params = {"up": {"kernel": kernel}}
    return params, jax.eval_shape(optimizer.init, params), kernel


def loss(params, x):
    h = x @ params["up"]["kernel"]
    return jnp.mean(h**2)


def step(params, opt_state, batch):
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value
"""
GUARDS = """
from shardnb.testing import assert_fits
from train import shapes, step


def test_the_step_fits():
    assert_fits(step, shapes(), mesh="data=8", memory="1GiB")
"""


def commands() -> list[str]:
    """Return what the workflow runs, step by step."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    workflow = next(re.finditer(r"```yaml\n(name: sharding\n.*?)```", text, re.DOTALL))[1]
    steps = re.split(r"^      - ", workflow, flags=re.MULTILINE)[1:]
    runs = [step.removeprefix("run: ") for step in steps if step.startswith("run: ")]
    return [textwrap.dedent(run.removeprefix("|\n")) for run in runs]


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [shutil.which("bash") or "bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_its_commands_say_what_a_pull_request_changes(tmp_path):
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "tests" / "test_sharding.py").write_text(GUARDS)
    git = "git -c user.name=a -c user.email=a@b -c commit.gpgsign=false"
    done = in_shell(f"git init -q . && git add -A && {git} commit -qm base", folder)
    assert done.returncode == 0, done.stderr
    base = in_shell("git rev-parse HEAD", folder).stdout.strip()
    changed = TRAIN.replace('["kernel"]\n', '["kernel"]\n    h = h - h.mean(0)\n')
    (folder / "train.py").write_text(changed)
    install, explain, comment, guard = commands()
    assert install.startswith("pip install")
    assert comment.startswith("gh pr comment")
    explain = explain.replace("${{ github.event.pull_request.base.sha }}", base)
    done = in_shell(explain, folder)
    assert done.returncode == 0, done.stderr
    said = (folder / "comment.md").read_text()
    # The mean is a sum over the rows, which are sharded, and so is its derivative.
    assert r"+2 all-reduce\[data\]" in said
    assert "`train.py:17` (`h = h - h.mean(0)`)" in said
    done = in_shell(guard, folder)
    assert done.returncode == 0, done.stdout
