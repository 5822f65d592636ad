"""What holds where torch is not installed: nothing imports it, and an error says how to get it."""

import subprocess
import sys

import pytest

import shardnb.torch
from shardnb.torch.extra import MissingExtraError, torchax


@pytest.fixture
def no_torch(monkeypatch):
    """Take torch away, for this test."""
    monkeypatch.setitem(sys.modules, "torch", None)


def test_loading_the_extension_and_a_cell_of_jax_import_no_torch():
    code = (
        "from IPython.testing.globalipapp import start_ipython; ip = start_ipython()\n"
        "ip.run_line_magic('load_ext', 'shardnb')\n"
        "import shardnb.torch, jax, jax.numpy as jnp, sys\n"
        "x = jnp.ones((8, 4))\n"
        "ip.user_ns['x'] = x\n"
        "ip.run_cell_magic('shard', '--mesh data=4 --view none', 'y = x.sum()')\n"
        "print({'torch', 'torchax'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


@pytest.mark.usefixtures("no_torch")
def test_an_annotation_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install 'shardnb\[torch\]'"):
        _ = shardnb.torch.mark_sharding


@pytest.mark.usefixtures("no_torch")
def test_a_cell_says_what_to_install(run):
    run("%mesh data=4")
    assert "pip install 'shardnb[torch]'" in run("%%shard --from torch\ny = 1", fails=True).err


@pytest.mark.usefixtures("no_torch")
def test_the_import_is_tried_again():
    with pytest.raises(MissingExtraError):
        torchax()


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'mark_shardings'"):
        _ = shardnb.torch.mark_shardings


def test_the_meshes_need_no_torch():
    code = "import shardnb.torch as t; print(t.SpmdMesh(range(8), (8,)).sharding((0,)).kind)"
    code += "; import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["TILED", "False"]


@pytest.mark.parametrize(
    "other", ["--fix", "--watch", "--axes explicit", "--compare auto,explicit"]
)
def test_options_that_do_not_act_on_torch_code(run, other):
    shown = run(f"%%shard --from torch {other}\ny = 1", fails=True)
    assert "cannot be combined with" in shown.err


def test_another_library(run):
    assert "'keras' is not a library" in run("%%shard --from keras\ny = 1", fails=True).err
