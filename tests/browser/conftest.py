"""A JupyterLab and a browser for all browser tests, a page for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import CHROMIUM, CHROMIUM_ARGS, new_page, serve

# Notebook 7 itself throws this one, without any extension.
KNOWN = "reading 'schema'"


def pytest_collection_modifyitems(items):
    for item in items:
        if "/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.skip("needs chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture
def page(browser):
    """Yield a page; an error that it throws fails the test."""
    page = new_page(browser)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.context.close()
    assert [error for error in errors if KNOWN not in error] == []
