"""What a stranger gets: the commands of the README, the wheel, a light import."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def readme_command(name):
    """The code block between `<!-- name -->` and `<!-- end -->`."""
    return re.search(rf"<!-- {name} -->\n```sh\n(.*?)```\n<!-- end -->", README, re.DOTALL)[1]


def python(code):
    """Run code in a new interpreter; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_ci_runs_the_readmes_test_command_word_for_word():
    assert readme_command("tests") in (ROOT / ".ci/run").read_text()


def test_readme_demo_command_sets_up_as_the_test_command_does():
    *set_up, _run = readme_command("demo").splitlines()
    *other, _pytest = readme_command("tests").splitlines()
    assert [line.replace(" --group dev", "") for line in other] == set_up


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "README.md", ".ci/run"])
def test_no_file_of_the_set_up_names_a_registrys_host(name):
    text = (ROOT / name).read_text()
    assert not re.search(r"pypi|pythonhosted|index-url|npmjs|conda", text)


def test_constraints_allow_the_oldest_jax_and_bound_every_dependency():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    caps = dict(line.split("<=") for line in lines if not line.startswith("#"))
    project = PROJECT["project"]
    asked = [
        *project["dependencies"],
        *project["optional-dependencies"]["lab"],
        *PROJECT["dependency-groups"]["dev"],
    ]
    assert {re.match(r"[\w-]+", one)[0] for one in asked} <= set(caps)
    assert [int(part) for part in caps["jax"].split(".")] >= [0, 11, 0]


def test_versions_in_pyproject_and_package_agree():
    import shardnb

    assert PROJECT["project"]["version"] == shardnb.__version__


def test_reading_a_report_imports_neither_jax_nor_ipython():
    code = "import shardnb, sys; print({'jax', 'IPython', 'matplotlib'} & set(sys.modules))"
    assert python(code) == "set()"


def test_the_help_of_the_command_line_imports_neither_jax_nor_jupyter():
    code = (
        "import sys, shardnb.cli\n"
        "try: shardnb.cli.main(['explain', '--help'])\n"
        "except SystemExit: print({'jax', 'IPython', 'nbclient'} & set(sys.modules))"
    )
    assert python(code).endswith("set()")


def test_the_engine_imports_without_what_only_notebooks_and_tests_need():
    code = "import sys; sys.modules.update(dict.fromkeys({names})); import shardnb.engine"
    names = ["ipywidgets", "nbclient", "nbformat", "jupyterlab", "flax", "optax", "equinox"]
    assert python(code.format(names=names)) == ""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as an installer would build it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_its_types_its_licence_and_the_demo(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"shardnb/py.typed", "shardnb/cli.py", "shardnb/demo/01_quickstart.ipynb"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_has_nothing_of_the_tests(wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0].split("-")[0] for name in archive.namelist()}
    assert tops == {"shardnb"}


def test_the_unpacked_wheel_finds_its_notebook(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "from shardnb.commands import notebook; print(notebook.demo())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert Path(done.stdout.strip()) == tmp_path / "shardnb" / "demo" / "01_quickstart.ipynb"
