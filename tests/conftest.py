"""What every test has: JAX on the CPU, and no test that is skipped without need."""

from __future__ import annotations

import os
import re
import sys

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A bug that a notebook would log fails the test; kernels and command lines that tests start, too.
os.environ["SHARDNB_STRICT"] = "1"

# What .ci/run cannot install, or has in its other run. A skip says "needs" and one of these.
NOT_INSTALLABLE = (
    "an accelerator",
    r"jax 0\.\d+",
    r"Python 3\.14",
    "XLA's GPU compiler",
    "torch and torchax",
    "torch_xla",
)


@pytest.fixture(autouse=True)
def _no_part_of_jax_stays_gone(monkeypatch):
    """A test that takes a part of JAX away leaves no note of it in the reports of later tests."""
    if parts := sys.modules.get("shardnb.jax_compat.parts"):
        monkeypatch.setattr(parts, "_gone", {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return _no_idle_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return _no_idle_skip(report)


def _no_idle_skip(report):
    """In .ci/run, where all that can be installed is, a skip is a failure."""
    if not (os.environ.get("CI") and report.skipped) or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not re.search(rf"needs ({'|'.join(NOT_INSTALLABLE)})", reason):
        report.outcome = "failed"
        report.longrepr = f"skipped, though it could run here: {reason}"
    return report
