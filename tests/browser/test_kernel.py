"""`%%shard` in JupyterLab and Notebook 7, with a real kernel."""

from __future__ import annotations

import pytest

from tests.browser.lab import new_page, run_all, serve
from tests.browser.test_saved import LINES

START = """\
%load_ext shardnb
import jax, jax.numpy as jnp
%mesh data=4,model=2
x, W = jnp.ones((256, 512)), jnp.ones((512, 1024))"""
CELL = "%%shard x=P('data', 'model') W=P('model')\nh = x @ W\ny = jnp.tanh(h)"


@pytest.fixture(scope="module")
def notebook_app(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("notebook"), app="notebook") as running:
        yield running


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_shard_cell_shows_a_live_report_and_badges(lab, notebook_app, page, app):
    server = lab if app == "lab" else notebook_app
    name = server.write("run", [{"source": START}, {"source": CELL}])
    server.open(page, name)
    run_all(page)
    page.wait_for_selector(".shardnb-report")
    assert "mesh data=4 x model=2" in page.inner_text(".shardnb-header")
    page.wait_for_selector(".shardnb-mark")
    marked = [line for line in page.evaluate(LINES) if "all-reduce 256 KiB model" in line]
    assert len(marked) == 1
    assert "= x @ W" in marked[0]


def test_a_report_outlives_its_kernel(lab, browser, page):
    name = lab.write("kept", [{"source": START}, {"source": CELL}])
    lab.open(page, name)
    run_all(page)
    page.wait_for_selector(".shardnb-report")
    save = "async () => { await window.jupyterapp.commands.execute('docmanager:save'); }"
    page.evaluate(save)
    stop = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }"
    page.evaluate(stop)
    later = new_page(browser)
    lab.open(later, name, kernel=False)
    later.wait_for_selector(".shardnb-report")
    later.wait_for_selector(".shardnb-mark")
    later.context.close()


def test_running_again_renews_the_badges(lab, page):
    name = lab.write("again", [{"source": START}, {"source": CELL}])
    lab.open(page, name)
    run_all(page)
    page.wait_for_selector(".shardnb-mark")
    page.evaluate(
        """() => {
          const cell = window.jupyterapp.shell.currentWidget.content.widgets[1].model;
          cell.sharedModel.setSource("%%shard x=P('data') W=P()\\nh = x @ W\\ny = jnp.tanh(h)");
        }"""
    )
    run_all(page)
    page.wait_for_selector(".shardnb-mark", state="detached")


def test_the_cell_that_defines_a_called_function_has_badges_until_it_runs_again(lab, page):
    defines = "def f(x):\n    return x @ W"
    calls = "%%shard x=P('data', 'model') W=P('model')\ny = f(x)"
    name = lab.write("called", [{"source": START}, {"source": defines}, {"source": calls}])
    lab.open(page, name)
    run_all(page)
    page.wait_for_selector(".jp-Cell >> nth=1 >> .shardnb-mark:has-text('all-reduce')")
    assert "    return x @ Wall-reduce 256 KiB model" in "\n".join(page.evaluate(LINES))
    run_again = """async () => {
      const { content } = window.jupyterapp.shell.currentWidget;
      content.activeCellIndex = 1;
      await window.jupyterapp.commands.execute('notebook:run-cell');
    }"""
    page.evaluate(run_again)
    page.wait_for_selector(".shardnb-mark", state="detached")
    assert page.locator(".shardnb-type").count() == 0
