"""The TypeScript: its types, its own tests, and that what is committed is what it builds."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.lab import ROOT

SOURCES = ROOT / "labextension"
TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="session")
def labextension():
    """Return the package's folder with its dependencies installed, as its lock file says."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    if not (SOURCES / "node_modules" / ".bin" / "vitest").exists():
        call([TOOLS / "jlpm", "install", "--immutable"], SOURCES)
    return SOURCES


def call(command, folder):
    """Run a command; gives what it wrote, and fails with it."""
    path = os.pathsep.join([str(TOOLS), os.environ["PATH"]])
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | {"PATH": path, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_its_types_hold(labextension):
    call(["node_modules/.bin/tsc", "--noEmit", "-p", "tsconfig.test.json"], labextension)


def test_its_own_tests_pass(labextension):
    assert "passed" in call(["node_modules/.bin/vitest", "run"], labextension)


def test_what_is_committed_is_what_it_builds(labextension, tmp_path):
    built = tmp_path / "labextension"
    leave = shutil.ignore_patterns("node_modules", "dist", "lib", ".yarn")
    shutil.copytree(labextension, built, ignore=leave)
    shutil.copytree(
        labextension / "node_modules", built / "node_modules", symlinks=True, copy_function=link
    )
    call(["node_modules/.bin/tsc"], built)
    call([TOOLS / "jupyter-builder", "build", "."], built)
    call(["node", "widget.mjs", tmp_path / "static"], built)
    assert differences(built / "dist", labextension / "dist") == []
    for name in ("widgets.js", "widgets.css"):
        committed = (ROOT / "shardnb" / "static" / name).read_text(encoding="utf-8")
        assert (tmp_path / "static" / name).read_text(encoding="utf-8") == committed


def link(source, target):
    """Make a file a second name of another; a symbolic link would change what is built."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def differences(one, other):
    """List the files that two folders do not have alike."""

    def files(folder):
        return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}

    apart = files(one) ^ files(other)
    both = files(one) & files(other)
    apart |= {path for path in both if not filecmp.cmp(one / path, other / path, shallow=False)}
    return sorted(map(str, apart))


@pytest.mark.parametrize("name", ["yarn.lock", ".yarnrc.yml", "package.json"])
def test_no_file_names_a_registrys_host(name):
    text = (SOURCES / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|npmjs|yarnpkg\.com", text)


def test_package_and_wheel_have_one_version():
    import json

    import shardnb

    package = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == shardnb.__version__
