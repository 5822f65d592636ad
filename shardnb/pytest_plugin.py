"""shardnb's assertions as fixtures, which pytest finds without configuration.

    def test_the_step_sends_only_gradients(assert_no_inferred, assert_golden):
        report = assert_no_inferred(step, (params, batch), mesh="data=8", allow_typical=True)
        assert_golden(report)

`assert_golden` compares with a file in `shardnb_golden/` beside the test; `pytest --shardnb-update`
writes these files. JAX is imported when a test first uses one of the fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardnb.report import Report

Assertion = Callable[..., "Report"]

_UPDATE = "--shardnb-update"
_FOLDER = "shardnb_golden"
_NOT_IN_NAMES = re.compile(r"[^\w.=-]+")
_updated = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden reports."""
    parser.getgroup("shardnb").addoption(
        _UPDATE, action="store_true", help="write the golden reports of the tests that run"
    )


@pytest.fixture
def assert_collectives() -> Assertion:
    """Return `shardnb.testing.assert_collectives`."""
    from shardnb import testing

    return testing.assert_collectives


@pytest.fixture
def assert_no_inferred() -> Assertion:
    """Return `shardnb.testing.assert_no_inferred`."""
    from shardnb import testing

    return testing.assert_no_inferred


@pytest.fixture
def assert_fits() -> Assertion:
    """Return `shardnb.testing.assert_fits`."""
    from shardnb import testing

    return testing.assert_fits


@pytest.fixture
def assert_golden(request: pytest.FixtureRequest) -> Assertion:
    """Return `shardnb.testing.assert_golden` with the path of this test's golden report.

    That is `shardnb_golden/FILE/TEST.json` beside the test's file; a second report of the same test
    is `TEST-2.json`, or `TEST-NAME.json` with `name="NAME"`.
    """
    from shardnb import testing

    path = Path(request.path)
    test = _NOT_IN_NAMES.sub("_", request.node.name).strip("_")
    update, number = bool(request.config.getoption(_UPDATE)), 0

    def compare(program: Any, args: Any = (), *, name: str = "", **options: Any) -> Report:
        __tracebackhide__ = True
        nonlocal number
        number += not name
        end = _NOT_IN_NAMES.sub("_", name) or (str(number) if number > 1 else "")
        file = f"{test}-{end}.json" if end else f"{test}.json"
        golden = path.parent / _FOLDER / path.stem / file
        report = testing.assert_golden(program, args, path=golden, update=update, **options)
        if update:
            request.config.stash.setdefault(_updated, []).append(str(golden))
        return report

    return compare


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many golden reports were written."""
    if written := config.stash.get(_updated, []):
        files = "golden report was" if len(written) == 1 else "golden reports were"
        terminalreporter.write_line(f"shardnb: {len(written)} {files} written")
