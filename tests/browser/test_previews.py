"""An edited `%%shard` line in JupyterLab, with a real kernel: previews before anything runs."""

from __future__ import annotations

import pytest

from tests.browser.lab import run_all

START = """\
%load_ext shardnb
import jax, jax.numpy as jnp
%mesh data=4,model=2
x, W = jnp.ones((256, 512)), jnp.ones((512, 1024))"""
BODY = "h = x @ W\ny = jnp.tanh(h)"
CELL = f"%%shard --view brief W=P('model') x=P('data', 'model')\n{BODY}"
COMPILED = ["h: f32[256@data, 1024] = x @ Wall-reduce 256 KiB model", "y: f32[256@data, 1024]"]

PREVIEW = ".shardnb-sign[data-kind=preview]"
HINT = ".shardnb-sign[data-kind=hint]"
COUNT = "() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.executionCount"


@pytest.fixture
def typing(lab, page):
    """Run the cell, and put the caret at the end of its line, before the bracket."""
    name = lab.write("typing", [{"source": START}, {"source": CELL}])
    lab.open(page, name)
    page.evaluate(
        """async () => {
          const { content } = window.jupyterapp.shell.currentWidget;
          for (content.activeCellIndex of [0, 1]) {
            await window.jupyterapp.commands.execute('notebook:run-cell');
          }
        }"""
    )
    page.wait_for_selector(".shardnb-mark")
    page.click(".jp-Cell >> nth=1 >> .cm-line >> nth=0")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    return page


def press(page, key, times):
    for _ in range(times):
        page.keyboard.press(key)


def cell_lines(page):
    text = page.inner_text(".jp-Cell >> nth=1 >> .cm-content")
    return [line for line in text.split("\n") if line]


def test_the_types_follow_the_line_and_the_badges_return_with_it(typing):
    page, ran = typing, typing.evaluate(COUNT)
    press(page, "Backspace", len(", 'model'"))
    page.wait_for_selector(PREVIEW)
    first, sign, h, y = cell_lines(page)
    assert first.endswith("x=P('data')")
    assert "not compiled" in sign
    # By hand: nothing is summed over `model` any more, and W's rows are gathered.
    assert [h, y] == ["h: f32[256@data, 1024] = x @ W", "y: f32[256@data, 1024] = jnp.tanh(h)"]
    press(page, "Backspace", len("'data'"))
    page.keyboard.type("None")
    page.wait_for_selector(".shardnb-type[data-changed]")
    page.wait_for_selector(PREVIEW)
    assert cell_lines(page)[2].startswith("h: f32[256, 1024] ")
    assert page.locator(".shardnb-mark").count() == 0
    press(page, "Backspace", len("None"))
    page.keyboard.type("'data', 'model'")
    page.wait_for_selector(".shardnb-mark")
    assert page.locator(".shardnb-sign").count() == 0
    assert cell_lines(page)[1:] == [COMPILED[0], f"{COMPILED[1]} = jnp.tanh(h)"]
    assert page.evaluate(COUNT) == ran


def test_a_wrong_line_has_a_hint_below_it_and_a_changed_body_nothing(typing):
    page = typing
    press(page, "Backspace", 2)
    page.wait_for_selector(HINT)
    assert "not a Python expression" in page.inner_text(HINT)
    page.keyboard.type("s'")
    page.wait_for_selector(f"{HINT}:has-text('did you mean')")
    assert page.locator(".jp-Dialog").count() == 0
    press(page, "Backspace", 2)
    page.keyboard.type("l'")
    page.wait_for_selector(".shardnb-mark")
    press(page, "Backspace", len(", 'model'"))
    page.wait_for_selector(PREVIEW)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.type(" ** 2")
    page.wait_for_selector(".shardnb-sign", state="detached")
    assert page.locator(".shardnb-type").count() == 0


def test_a_kernel_that_runs_a_cell_is_asked_when_it_is_done(typing):
    page = typing
    page.evaluate(
        """() => {
          const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
          kernel.requestExecute({ code: 'import time; time.sleep(2)' });
        }"""
    )
    page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    )
    press(page, "Backspace", len(", 'model'"))
    page.wait_for_timeout(500)
    assert page.locator(".shardnb-sign").count() == 0
    page.wait_for_selector(PREVIEW)
    assert cell_lines(page)[2].startswith("h: f32[256@data, 1024] ")


def test_running_the_cell_puts_what_is_compiled_in_the_place_of_the_preview(typing):
    page = typing
    press(page, "Backspace", len(", 'model'"))
    page.wait_for_selector(PREVIEW)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".shardnb-mark")
    assert page.locator(".shardnb-sign").count() == 0
    page.keyboard.press("Enter")  # into the editor again, where the caret was
    press(page, "Backspace", 2)
    page.wait_for_selector(HINT)


def test_a_saved_notebook_has_no_previews_before_its_cell_runs(lab, page):
    name = lab.write("unrun", [{"source": START}, {"source": CELL}])
    lab.open(page, name)
    run_all(page)
    page.wait_for_selector(".shardnb-mark")
    save = "async () => { await window.jupyterapp.commands.execute('docmanager:save'); }"
    page.evaluate(save)
    page.evaluate(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.restartKernel(); }"
    )
    page.click(".jp-Cell >> nth=1 >> .cm-line >> nth=0")
    page.keyboard.press("End")
    page.keyboard.type(" --no-run")
    page.wait_for_selector(".shardnb-mark", state="detached")
    page.wait_for_selector(".shardnb-type", state="detached")
    assert page.locator(".shardnb-sign").count() == 0
