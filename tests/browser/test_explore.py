"""The widgets in JupyterLab with a real kernel, and on a plain page at every size and theme."""

from __future__ import annotations

import re

import pytest

from tests.browser.lab import new_page, run_all
from tests.browser.page import STATIC
from tests.browser.widget import SIZES, shown

START = """\
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import shardnb as sn

def layer(x, W):
    h = x @ W
    return jnp.tanh(h)

x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
specs = (P('data', 'model'), P('model'))"""
EXPLORE = "sn.explore(layer, x, W, mesh='data=4,model=2', in_specs=specs)"
PREDICT = "sn.predict(layer, x, W, mesh='data=4,model=2', in_specs=specs)"
CHECK = """\
sn.check_shard_map(layer, x, W, mesh='data=4,model=2', in_specs=specs, out_specs=P('data'))"""
STATE = ".shardnb-state .shardnb-chip"
OVERFLOW = "node => node.scrollWidth - node.clientWidth"
HOSTILE = "<img src=x onerror=window.harmed=1>"


# Runs a text as the second cell, and resolves when it has run.
RUN = """async text => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.widgets[1].model.sharedModel.setSource(text);
  content.activeCellIndex = 1;
  content.deselectAll();
  await window.jupyterapp.commands.execute('notebook:run-cell');
}"""


@pytest.fixture(scope="module")
def kernel(lab, browser):
    """Yield a notebook whose kernel has the shapes and the function."""
    page, errors = new_page(browser), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    lab.open(page, lab.write("explore", [{"source": START}, {"source": "None"}]))
    run_all(page)
    yield page
    page.context.close()
    assert errors == []


@pytest.fixture
def notebook(kernel):
    """Run a cell that shows a widget, in the place of the one before."""

    def opened(cell):
        kernel.evaluate(RUN, "None")
        kernel.wait_for_selector(".shardnb-widget", state="detached")
        kernel.evaluate(RUN, cell)
        kernel.wait_for_selector(".shardnb-widget")
        return kernel

    return opened


def choose(page, name, option):
    page.select_option(f"select[aria-label^='{name}']", label=option)


def drawn(page, card):
    canvas = page.locator(".shardnb-grids .shardnb-card canvas").nth(card)
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    return canvas.evaluate("canvas => canvas.toDataURL()")


def test_a_click_changes_the_grid_then_the_collectives(notebook):
    page = notebook(EXPLORE)
    page.wait_for_selector(f"{STATE}:has-text('compiled')")
    before = drawn(page, 2)
    assert "Each device sends 256 KiB per run" in page.inner_text(".shardnb-status")
    page.evaluate(
        """() => {
          window.seen = [];
          const chip = document.querySelector('.shardnb-state .shardnb-chip');
          new MutationObserver(() => window.seen.push(chip.textContent))
            .observe(chip, { childList: true, characterData: true, subtree: true });
        }"""
    )
    choose(page, "x, dimension 1", "not sharded")
    choose(page, "W, dimension 0", "not sharded")
    choose(page, "W, dimension 1", "model: 512 per device")
    page.wait_for_selector(f"{STATE}:has-text('compiled')")
    assert "preview" in page.evaluate("window.seen")
    assert "No communication" in page.inner_text(".shardnb-status")
    assert "f32[256@data, 1024@model]" in page.inner_text(".shardnb-grids >> nth=0")
    assert drawn(page, 2) != before


def test_the_compiled_program_comes_while_the_kernel_is_free(notebook):
    page = notebook(EXPLORE)
    choose(page, "x, dimension 0", "not sharded")
    page.wait_for_selector(f"{STATE}:has-text('preview')")
    page.wait_for_selector(f"{STATE}:has-text('compiled')")
    assert page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
    ) in ("idle", "busy")


def test_a_spec_that_cannot_be_is_explained_in_place(notebook):
    page = notebook(EXPLORE)
    grid = page.inner_text(".shardnb-grids >> nth=0")
    choose(page, "x, dimension 1", "data: 128 per device")
    page.wait_for_selector("[role=alert]:has-text(\"uses the mesh axis 'data' twice\")")
    assert page.inner_text(".shardnb-grids >> nth=0") == grid


def test_another_mesh_is_previewed_and_compiled(notebook):
    page = notebook(EXPLORE)
    page.select_option("select[aria-label='shape of the mesh']", label="2 x 4")
    page.wait_for_selector(f"{STATE}:has-text('preview')")
    assert "data=2 x model=4" in page.inner_text(".shardnb-grids .shardnb-header")
    page.wait_for_selector(f"{STATE}:has-text('compiled')")
    page.fill("input[aria-label='name of axis 2']", "tp")
    page.press("input[aria-label='name of axis 2']", "Enter")
    page.wait_for_selector(".shardnb-rows:has-text('all-reduce[tp]')")


def test_plans_are_pinned_compared_and_shown_again(notebook):
    page = notebook(EXPLORE)
    page.click("text=pin this plan")
    choose(page, "x, dimension 1", "not sharded")
    choose(page, "W, dimension 0", "not sharded")
    page.wait_for_selector(".shardnb-status:has-text('No communication')")
    page.click("text=pin this plan")
    page.wait_for_selector(".shardnb-pins tbody tr >> nth=1")
    rows = page.locator(".shardnb-pins tbody tr").all_inner_texts()
    assert "256 KiB\t1 all-reduce" in rows[0].replace("\n", "")
    assert "0 B" in rows[1]
    page.click(".shardnb-pins tbody tr >> nth=0 >> text=show")
    page.wait_for_selector(".shardnb-status:has-text('sends 256 KiB per run')")


def test_the_pickers_are_walked_by_the_keys(notebook):
    page = notebook(EXPLORE)
    page.focus("select[aria-label^='x, dimension 0']")
    page.keyboard.press("Tab")
    named = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(named) == "x, dimension 1 of 512"
    page.keyboard.press("Home")
    page.wait_for_selector(".shardnb-what:has-text(\"P('data')\")")
    assert page.evaluate(named) == "x, dimension 1 of 512"


def test_a_hostile_axis_is_refused_and_not_run(notebook):
    page = notebook(EXPLORE)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.fill("input[aria-label='name of axis 1']", HOSTILE)
    page.press("input[aria-label='name of axis 1']", "Enter")
    page.wait_for_selector("[role=alert]:has-text('is not a mesh axis')")
    page.wait_for_timeout(300)
    assert page.evaluate("window.harmed ?? null") is None
    assert page.locator(".shardnb-widget img").count() == 0
    host = page.url.partition("/lab")[0]
    assert [url for url in asked if not url.startswith((host, "blob:", "data:"))] == []


def test_a_guess_is_judged_and_the_reason_told(notebook):
    page = notebook(PREDICT)
    assert "partial sum" not in page.inner_text(".shardnb-widget")
    page.select_option("select[aria-label='which collective']", "all-reduce")
    page.check(".shardnb-quiz input >> nth=1")
    page.click("text=reveal")
    assert "Right. It is all-reduce[model]" in page.inner_text(".shardnb-truth")
    assert "1 of 1 right" in page.inner_text(".shardnb-widget")
    assert page.evaluate("document.activeElement.textContent") == "next"
    # The second line sends nothing, which is the answer that stands there first.
    page.click("text=next")
    page.click("text=reveal")
    assert "2 of 2 right" in page.inner_text(".shardnb-widget")
    assert page.evaluate("document.activeElement.textContent") == "start again"


def test_a_shard_map_is_checked_at_every_click(notebook):
    page = notebook(CHECK)
    page.wait_for_selector(".shardnb-header:has-text('JAX rejects')")
    assert page.locator(".shardnb-picker").evaluate(OVERFLOW) <= 0
    choose(page, "x, dimension 1", "not sharded")
    choose(page, "W, dimension 0", "not sharded")
    page.wait_for_selector(".shardnb-header:has-text('JAX accepts')")
    page.click("text=compile it")
    page.click("summary:has-text('The compiled program')")
    page.wait_for_selector(".shardnb-verdict:has-text('No communication')")


def test_a_collective_is_played_and_stepped(browser):
    with shown(browser, "8") as page:
        page.click(".shardnb-rows > .shardnb-row >> nth=0")
        page.click(".shardnb-play")
        page.click(".shardnb-player >> text=pause")
        page.click("[aria-label='step on']")
        page.focus(".shardnb-player input[type=range]")
        page.keyboard.press("End")
        assert "done" in page.inner_text(".shardnb-player")


def test_nothing_moves_where_less_motion_is_asked_for(browser):
    with shown(browser, "8", motion="reduce") as page:
        page.click(".shardnb-rows > .shardnb-row >> nth=0")
        page.click(".shardnb-play")
        page.wait_for_timeout(200)
        still = "document.querySelector('.shardnb-player canvas').toDataURL()"
        before = page.evaluate(still)
        page.wait_for_timeout(400)
        assert page.evaluate(still) == before


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [700, 1100])
def test_it_fits(browser, tmp_path, size, theme, width):
    with shown(browser, size, theme=theme, width=width) as page:
        page.click(".shardnb-rows > .shardnb-row >> nth=0")
        page.click(".shardnb-play")
        page.wait_for_timeout(1500)
        page.screenshot(path=tmp_path / "explorer.png", full_page=True)
        assert page.locator("html").evaluate(OVERFLOW) <= 0
        for part in (".shardnb-widget", ".shardnb-picker", ".shardnb-pins", ".shardnb-player"):
            assert page.locator(part).first.evaluate(OVERFLOW) <= 0


def test_the_widgets_have_no_way_to_run_text_or_to_reach_out():
    module = (STATIC / "widgets.js").read_text(encoding="utf-8")
    ways = r"\beval\(|\bFunction\(|HTML\b|document\.write|\bfetch\(|XMLHttp|WebSocket|import\("
    assert re.findall(ways, module) == []
