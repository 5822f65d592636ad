"""The pytest plugin, in test runs of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest_plugins = "pytester"

# An environment that was made before the plugin was there does not know its entry point.
INSTALLED = any(each.name == "shardnb" for each in metadata.entry_points(group="pytest11"))
OPTIONS = [] if INSTALLED else ["-p", "shardnb.pytest_plugin"]

TEST = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
OPTIONS = {"mesh": "data=4,model=2", "in_specs": SPECS, "origins": False}


def layer(x, w):
    return jnp.tanh(x @ w)


def test_layer(assert_golden):
    report = assert_golden(layer, (X, W), **OPTIONS)
    assert_golden(report, name="again")
"""
SUMMED = TEST.replace("SPECS", '(P("data", "model"), P("model"))')
GATHERED = TEST.replace("SPECS", '(P("model", "data"), P())')


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a file of tests in a folder of its own."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")

    def run(text, *options):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_subprocess(*OPTIONS, "-p", "no:cacheprovider", *options)

    return run


def test_the_entry_point_is_in_the_package():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nshardnb = "shardnb.pytest_plugin"\n' in text


def test_finding_the_plugin_does_not_import_jax():
    code = "import sys, shardnb.pytest_plugin; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_golden_report_is_written_then_compared_and_a_difference_has_its_cause(run, pytester):
    missing = run(SUMMED)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*does not have a golden report test_layer.json yet*"])
    updated = run(SUMMED, "--shardnb-update")
    updated.assert_outcomes(passed=1)
    updated.stdout.fnmatch_lines(["shardnb: 2 golden reports were written"])
    folder = pytester.path / "shardnb_golden" / "test_it"
    assert sorted(path.name for path in folder.iterdir()) == [
        "test_layer-again.json",
        "test_layer.json",
    ]
    (entry,) = json.loads((folder / "test_layer.json").read_text())["entries"]
    assert (entry["line"], entry["kind"]) == ("return jnp.tanh(x @ w)", "all-reduce")
    run(SUMMED).assert_outcomes(passed=1)
    changed = run(GATHERED)
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(
        [
            "*layer differs from its golden report test_layer.json:",
            "*-1 all-reduce[[]model[]], 256 KiB per run at line *: return jnp.tanh(x @ w)",
            "*+1 all-gather[[]data[]], 192 KiB per run at line *: return jnp.tanh(x @ w)",
            "*because x is sharded over data on its contracting dimension, but w is replicated*",
            "*pytest --shardnb-update writes the golden report again.",
        ]
    )


def test_the_other_assertions_are_fixtures(run):
    text = GATHERED.partition("def test_layer")[0]
    tests = """
def test_passes(assert_collectives, assert_no_inferred, assert_fits):
    report = assert_collectives(layer, (X, W), expect={"all-gather": 1}, **OPTIONS)
    assert_no_inferred(report, allow=["all-gather"])
    assert_fits(report, memory=2**22)


def test_inferred(assert_no_inferred):
    assert_no_inferred(layer, (X, W), **OPTIONS)


def test_memory(assert_fits):
    assert_fits(layer, (X, W), memory=100, **OPTIONS)
"""
    done = run(text + tests)
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*all-gather[[]data[]] at line *: return jnp.tanh(x @ w)*"])
    done.stdout.fnmatch_lines(["*each device holds *, more than 100 B*"])
