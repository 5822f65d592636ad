"""The compilers that are fetched: from a package index that is stood in for by a script."""

import stat
import subprocess
from importlib import metadata

import pytest

from shardnb import cli
from shardnb.mesh import compilers

INSTALLER = """#!/bin/sh
# Installs, as pip and uv do: the folder follows --target.
while [ $# -gt 0 ]; do
  if [ "$1" = --target ]; then place=$2; fi
  last=$1; shift
done
echo "$last" > {log}
{action}
"""


@pytest.fixture
def fetching(tmp_path, monkeypatch):
    """A compiler that no environment has, and an installer that does what the test says."""
    monkeypatch.setenv("SHARDNB_COMPILERS", str(tmp_path / "compilers"))
    compiler = compilers.Compiler("gpu", "GPUs", "some-compiler", "compiler.so", "no_such_module")
    monkeypatch.setitem(compilers.COMPILERS, "gpu", compiler)
    script = tmp_path / "installer"
    monkeypatch.setattr(compilers, "_installer", lambda: (str(script),))

    def does(action: str) -> compilers.Compiler:
        script.write_text(INSTALLER.format(log=tmp_path / "log", action=action))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return compiler

    return does


def test_a_compiler_appears_in_its_folder_under_its_version(fetching, tmp_path):
    compiler = fetching('mkdir "$place/deep"; echo code > "$place/deep/compiler.so"')
    assert compiler.path() is None
    path = compilers.fetch(compiler)
    assert path == tmp_path / "compilers" / f"some-compiler-{compiler.version()}" / "compiler.so"
    assert path.read_text() == "code\n"
    assert (tmp_path / "log").read_text() == f"some-compiler=={compiler.version()}\n"
    # Nothing else is left, and the second time nothing is fetched.
    assert [entry.name for entry in (tmp_path / "compilers").iterdir()] == [path.parent.name]
    (tmp_path / "log").unlink()
    assert compilers.fetch(compiler) == path
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("echo no network >&2; exit 2", "could not be fetched: no network"),
        (
            "echo 'ERROR: no version (from versions: none)' >&2; exit 1",
            "could not be fetched; the package index cannot be reached, or has none: ERROR: no",
        ),
        ("true", "has no compiler.so"),
    ],
)
def test_a_failure_leaves_nothing(fetching, tmp_path, action, said):
    compiler = fetching(action)
    with pytest.raises(RuntimeError, match=said):
        compilers.fetch(compiler)
    assert not list((tmp_path / "compilers").iterdir())


def test_the_command_fetches_and_lists(fetching, capsys):
    fetching('echo code > "$place/compiler.so"')
    assert cli.main(["targets"]) == 0
    assert "`shardnb targets add gpu` fetches some-compiler" in capsys.readouterr().out
    assert cli.main(["targets", "add", "gpu"]) == 0
    assert capsys.readouterr().out.startswith("Fetched the compiler for GPUs")
    assert cli.main(["targets", "add", "gpu"]) == 0
    assert "already here" in capsys.readouterr().out
    assert cli.main(["targets"]) == 0
    assert "compiler.so" in capsys.readouterr().out


def test_the_command_names_what_failed(fetching, capsys):
    fetching("echo offline >&2; exit 1")
    assert cli.main(["targets", "add", "gpu"]) == 2
    assert "some-compiler" in capsys.readouterr().err


def test_some_installer_is_found():
    command = compilers._installer()
    assert subprocess.run([*command[:1], "--version"], check=False, capture_output=True).stdout


def test_without_any_installer(monkeypatch):
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(compilers.shutil, "which", lambda _: None)
    with pytest.raises(RuntimeError, match="needs pip or uv"):
        compilers._installer()


def test_the_versions_belong_to_the_installed_jax():
    assert compilers.COMPILERS["gpu"].version() == metadata.version("jaxlib")
    assert compilers.COMPILERS["tpu"].version().startswith("0.0.")
