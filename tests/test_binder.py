"""binder/, step by step as repo2docker takes it, in an environment of its own.

repo2docker copies the repository, installs `binder/requirements.txt` with the repository as the
current folder, runs `binder/postBuild`, and starts Jupyter through `binder/start`. Base images and
Docker are left out, and uv stands in for pip where it is there. The environment needs a network, or
what it installs in the installer's cache.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError

import pytest

ROOT = Path(__file__).parents[1]
BINDER = ROOT / "binder"
START = "notebooks/01_quickstart.ipynb"
FILES = ("requirements.txt", "runtime.txt", "postBuild", "start")
# The uv of the README's commands, or the machine's.
UV = next(filter(None, map(shutil.which, (str(ROOT / ".uv/bin/uv"), "uv"))), None)
LEFT_OUT = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "dist-*", "*.egg-info")


def test_binder_has_what_repo2docker_reads_and_no_more():
    assert {path.name for path in BINDER.iterdir()} == set(FILES)


def test_its_python_is_one_that_shardnb_supports():
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert (asked, version) == (">=3.12", "3.12")


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_a_registrys_host(name):
    assert not re.search(r"pypi|pythonhosted|index-url|npmjs|https?:", (BINDER / name).read_text())


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_can_be_executed(name):
    assert os.access(BINDER / name, os.X_OK)


def test_it_installs_the_checkout_within_the_constraints():
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "-c ../constraints.txt",
        ".[lab]",
    ]


def test_the_readme_says_how_to_launch_any_copy():
    readme = (ROOT / "README.md").read_text()
    assert "https://mybinder.org" in readme
    assert f"`{START}`" in readme
    assert (ROOT / START).is_file()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the repository, without what does not belong to it."""
    folder = tmp_path_factory.mktemp("binder") / "repository"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    return folder


@pytest.fixture(scope="module")
def environment(checkout):
    """Variables of a shell in the image: its Python first, and a Node that tells of its use."""
    folder, traps = checkout.parent / "python", checkout.parent / "traps"
    new = [UV, "venv", "-q", "--python"] if UV else []
    subprocess.run([*new, sys.executable, *([] if UV else ["-m", "venv"]), str(folder)], check=True)
    traps.mkdir()
    for name in ("node", "npm", "jlpm"):
        (traps / name).write_text(f"#!/bin/sh\necho {name} $* >> {traps}/used\nexit 1\n")
        (traps / name).chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))
    }
    kept.pop("PYTHONPATH", None)
    own = {
        name: str(checkout.parent / "home") for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR")
    }
    return {**kept, **own, "PATH": f"{folder}/bin:{traps}:{os.environ['PATH']}"}


def step(command, checkout, environment):
    """Run a step of the build in the repository; gives what it printed."""
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(checkout, environment):
    """The image after pip has read requirements.txt."""
    python = str(checkout.parent / "python" / "bin" / "python")
    pip = [UV, "pip", "install", "--python", python] if UV else [python, "-m", "pip", "install"]
    # The cache of packages is the machine's; all else of the home is new.
    there = {**environment, "HOME": os.environ.get("HOME", str(checkout.parent))}
    step([*pip, "-q", "-r", "binder/requirements.txt"], checkout, there)
    return environment


@pytest.fixture(scope="module")
def built(checkout, installed):
    """What postBuild printed."""
    return step(["binder/postBuild"], checkout, installed)


def test_the_extension_is_there(built):
    assert re.search(r"shardnb v[\d.]+ .*OK", built)


@pytest.mark.usefixtures("built")
def test_versions_are_within_the_constraints(checkout, installed):
    code = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))"
    listed = step(["python", "-c", code], checkout, installed).split()
    found = dict(one.lower().split("==") for one in listed)
    caps = dict(
        re.findall(r"^([\w.-]+)<=(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    )
    for name in ("jax", "jaxlib", "jupyterlab", "ipykernel", "anywidget"):
        assert found[name] == caps[name]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(checkout, installed, built):
    """The address of the JupyterLab that the image starts."""
    port = free_port()
    command = ["binder/start", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    options = [f"--port={port}", "--port-retries=0", "--IdentityProvider.token="]
    log = (checkout.parent / "log").open("w+")
    process = subprocess.Popen(
        [*command, *options], cwd=checkout, env=installed, stdout=log, stderr=log
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def fetched(address, seconds=60.0):
    """The text at an address, as soon as the server gives it."""
    end = monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310
                return answer.read().decode()
        except URLError:
            if monotonic() > end:
                raise
            sleep(0.3)


@pytest.fixture(scope="module")
def config(server):
    """What the page of the quickstart tells JupyterLab."""
    page = fetched(f"{server}/lab/tree/{START}")
    return json.loads(
        re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    )


def test_jupyterlab_opens_on_the_quickstart(config):
    assert config["treePath"] == START


def test_the_extension_is_loaded_and_its_bundle_served(server, config):
    (ours,) = [one for one in config["federated_extensions"] if one["name"] == "shardnb"]
    assert {"extension", "mimeExtension", "style"} <= set(ours)
    assert "shardnb" in fetched(f"{server}{config['fullLabextensionsUrl']}/shardnb/{ours['load']}")


@pytest.mark.usefixtures("built")
def test_the_quickstart_runs_in_the_images_kernel(checkout, installed):
    out = checkout.parent / "executed"
    step(["binder/start", "jupyter", "execute", f"--output={out}", START], checkout, installed)
    cells = json.loads(out.with_suffix(".ipynb").read_text())["cells"]
    shown = {
        kind for cell in cells for one in cell.get("outputs", ()) for kind in one.get("data", ())
    }
    assert "application/vnd.shardnb.report.v1+json" in shown


def test_nothing_was_built_with_node(checkout, server):
    fetched(f"{server}/lab/tree/{START}")
    used = checkout.parent / "traps" / "used"
    # JupyterLab and its language servers ask, and take no answer for an answer.
    asked = used.read_text().splitlines() if used.exists() else []
    assert [
        line for line in asked if not line.endswith(("yarn.js config --json", "npm prefix -g"))
    ] == []
