"""The explorer in JupyterLab: recipes and undo by clicks, and what the saved notebook shows later."""

from __future__ import annotations

import nbformat
import pytest

from tests.browser.lab import new_page, run_all

START = """\
import jax, jax.numpy as jnp
import shardnb as sn

def layer(x, W):
    return jnp.tanh(x @ W)

x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)"""
EXPLORE = "sn.explore(layer, x, W, mesh='data=4,model=2')"
STATE = ".shardnb-state .shardnb-chip"
# Resolves once the notebook is on disk.
SAVE = """async () => {
  await new Promise(done => setTimeout(done, 300));
  await window.jupyterapp.shell.currentWidget.context.save();
}"""
FSDP = "data=4,model=2  x=P('data')  W=P(None, 'data')"


@pytest.fixture(scope="module")
def explored(lab, browser):
    """Yield a page with an explorer that a kernel drives, and the notebook's file."""
    page, errors = new_page(browser), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    lab.open(page, lab.write("kept", [{"source": START}, {"source": EXPLORE}]))
    run_all(page)
    page.wait_for_selector(f"{STATE}:has-text('compiled')")
    yield page, lab.notebooks / "kept.ipynb"
    page.context.close()
    assert errors == []


def spec_of(page, name):
    return page.inner_text(f".shardnb-what:has(b:text-is('{name}')) .shardnb-faint")


def compiled(page, said):
    page.wait_for_selector(f".shardnb-status:has-text('{said}')")
    page.wait_for_selector(f"{STATE}:has-text('compiled')")


def test_a_recipe_sets_all_specs_and_is_undone_and_redone(explored):
    page, _ = explored
    page.click("text=data parallel over data")
    page.wait_for_selector(".shardnb-note:has-text('data parallel over data. Each device has')")
    page.wait_for_selector(".shardnb-what:has-text(\"P('data')\")")
    compiled(page, "No communication")
    page.click("text=FSDP over data")
    compiled(page, "Each device sends")
    assert (spec_of(page, "x"), spec_of(page, "W")) == ("P('data')", "P(None, 'data')")
    page.keyboard.press("Control+z")
    compiled(page, "No communication")
    assert spec_of(page, "W") == "P()"
    page.click("text=redo")
    compiled(page, "Each device sends")
    assert spec_of(page, "W") == "P(None, 'data')"


def test_a_fix_is_found_and_taken_over(explored):
    page, _ = explored
    page.click("text=find fixes")
    page.wait_for_selector(".shardnb-found button:has-text('use')", timeout=60_000)
    page.click(".shardnb-found button:has-text('use') >> nth=0")
    compiled(page, "No communication")
    page.click("text=undo")
    compiled(page, "Each device sends")


def test_the_view_stays_while_its_output_is_replaced_and_saved(explored):
    page, path = explored
    page.evaluate("document.querySelector('.shardnb-picker').marked = true")
    page.focus("text=pin this plan")
    page.keyboard.press("Enter")
    page.wait_for_selector(".shardnb-pins tbody tr")
    page.evaluate(SAVE)
    assert page.evaluate("document.querySelector('.shardnb-picker').marked")
    assert page.evaluate("document.activeElement.textContent") == "pin this plan"
    (output,) = nbformat.read(path, as_version=4).cells[1].outputs
    for kind in ("text/html", "text/plain"):
        assert FSDP in output.data[kind]


def test_a_notebook_that_is_opened_later_shows_the_last_state(explored, lab, browser):
    page, path = explored
    page.evaluate(SAVE)
    book = nbformat.read(path, as_version=4)
    cells = [{"source": cell.source, "outputs": cell.outputs} for cell in book.cells]
    late = new_page(browser)
    lab.open(late, lab.write("later", cells, kernel=False), kernel=False)
    late.wait_for_selector(f'.shardnb-still:has-text("{FSDP}")')
    assert not late.locator("text=Error displaying widget").is_visible()
    late.context.close()
    # The same file, which this server saved and trusts.
    again = new_page(browser)
    lab.open(again, "kept", kernel=False)
    again.wait_for_selector(".shardnb-kept")
    again.wait_for_timeout(500)
    assert not again.locator("text=Error displaying widget").is_visible()
    again.context.close()
