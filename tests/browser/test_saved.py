"""A saved notebook: the report is live and the badges stand, without a kernel."""

from __future__ import annotations

import pytest

from shardnb.report import json
from tests.browser.lab import command, report_output
from tests.browser.reports import CELL, hostile, large, sketch, spoken

LINES = "[...document.querySelectorAll('.jp-Notebook .cm-line')].map(line => line.textContent)"
BRIGHTNESS = """selector => {
  const colour = getComputedStyle(document.querySelector(selector)).color;
  return Math.max(...colour.match(/[0-9]+/g).slice(0, 3).map(Number));
}"""
HARMED = "[window.harmed ?? null, document.querySelector('.shardnb-report img')]"


@pytest.fixture
def saved(lab, page):
    """Show a notebook that was saved with a report in each cell's output; start no kernel."""

    def show(*cells):
        parts = [
            {"source": source, "id": f"cell-{i}", "outputs": [report_output(spoken(data))]}
            for i, (source, data) in enumerate(cells)
        ]
        lab.open(page, lab.write("saved", parts, kernel=False), kernel=False)
        page.wait_for_selector(".shardnb-report")
        return page

    return show


def test_the_report_is_drawn_from_its_data_alone(saved):
    page = saved((CELL, sketch()))
    assert page.inner_text(".shardnb-verdict").startswith("Each device sends 1.2 MiB per run")
    assert page.locator(".shardnb-card canvas").count() == 3


def test_badges_and_types_stand_at_the_lines_of_the_cell(saved):
    page = saved((CELL, sketch()))
    page.wait_for_selector(".shardnb-mark")
    assert page.evaluate(LINES) == [
        "%%shard x=P('data', 'model') W=P('model')",
        "h: f32[256@data, 1024] = x @ Wall-reduce 256 KiB model x4",
        "y: f32[256@data, 1024] = jnp.tanh(h)all-gather 256 KiB data",
    ]


def test_all_badges_and_types_vanish_while_a_line_is_another(saved):
    page = saved((CELL, sketch()))
    page.wait_for_selector(".shardnb-mark")
    page.click(".jp-Notebook .cm-line >> nth=1", position={"x": 4, "y": 6})
    page.keyboard.press("Home")
    page.keyboard.type("g")
    page.wait_for_selector(".shardnb-mark", state="detached")
    assert page.evaluate(LINES)[1:] == ["gh = x @ W", "y = jnp.tanh(h)"]
    page.keyboard.press("Backspace")
    page.wait_for_selector(".shardnb-mark")
    page.keyboard.press("Enter")
    page.wait_for_selector(".shardnb-mark", state="detached")
    assert page.evaluate(LINES)[2:] == ["h = x @ W", "y = jnp.tanh(h)"]


def test_badges_and_types_vanish_while_the_shard_line_is_another(saved):
    page = saved((CELL, sketch()))
    page.wait_for_selector(".shardnb-mark")
    page.click(".jp-Notebook .cm-line >> nth=0", position={"x": 4, "y": 6})
    page.keyboard.press("End")
    page.keyboard.type("0")
    page.wait_for_selector(".shardnb-mark", state="detached")
    # JupyterLab may have started a kernel, and then the types fade until it answers.
    page.wait_for_selector(".shardnb-type", state="detached")
    assert page.evaluate(LINES)[1:] == ["h = x @ W", "y = jnp.tanh(h)"]
    page.keyboard.press("Backspace")
    page.wait_for_selector(".shardnb-mark")
    page.wait_for_selector(".shardnb-type")


def test_a_badge_opens_the_report_at_its_collective(saved):
    page = saved((CELL, sketch()))
    page.click(".shardnb-mark:has-text('all-gather')")
    page.wait_for_selector(".shardnb-title:has-text('all-gather[data] at line 3')")
    page.click(".shardnb-mark:has-text('all-reduce')")
    page.wait_for_selector(".shardnb-title:has-text('all-reduce[model] at line 2')")


def test_badges_are_shown_in_the_cell_that_the_report_names(saved):
    other = "def f(x):\n    return x @ x"
    data = sketch()
    data["sources"].append({"name": "Cell In[2]", "text": other, "cell_id": "cell-1"})
    data["collectives"][0]["frames"] = [{"source": 1, "line": 2}, {"source": 0, "line": 2}]
    page = saved((CELL, data), (other, sketch()))
    page.wait_for_selector(".shardnb-mark")
    assert page.evaluate(LINES)[4] == "    return x @ xall-reduce 256 KiB model x4"
    page.click(".jp-Notebook .cm-line >> nth=4", position={"x": 4, "y": 6})
    page.keyboard.press("End")
    page.keyboard.type("0")
    page.wait_for_selector(".jp-Cell >> nth=1 >> .shardnb-mark", state="detached")
    assert page.locator(".jp-Cell >> nth=0 >> .shardnb-mark").count() == 2


def test_badges_and_types_are_switched_off_and_on_by_commands(saved):
    page = saved((CELL, sketch()))
    page.wait_for_selector(".shardnb-mark")
    command(page, "shardnb:toggle-badges")
    page.wait_for_selector(".shardnb-mark", state="detached")
    command(page, "shardnb:toggle-types")
    page.wait_for_selector(".shardnb-type", state="detached")
    command(page, "shardnb:toggle-badges")
    command(page, "shardnb:toggle-types")
    page.wait_for_selector(".shardnb-mark")
    page.wait_for_selector(".shardnb-type")


def test_badges_go_with_the_output(saved):
    page = saved((CELL, sketch()))
    page.wait_for_selector(".shardnb-mark")
    command(page, "notebook:clear-all-cell-outputs")
    page.wait_for_selector(".shardnb-mark", state="detached")
    assert page.locator(".shardnb-type").count() == 0


def test_the_panel_shows_the_last_report(saved):
    page = saved((CELL, sketch()))
    command(page, "shardnb:open-report")
    page.wait_for_selector("#shardnb-report-panel .shardnb-verdict:has-text('Each device sends')")


def test_a_report_opens_in_the_side_panel(saved):
    page = saved((CELL, sketch()), ("x = 1", large(rows=4, columns=2, number=50)))
    page.click(".shardnb-output .shardnb-open >> nth=0")
    page.wait_for_selector("#shardnb-report-panel .shardnb-verdict:has-text('1.2 MiB')")
    assert page.locator("#shardnb-report-panel .shardnb-open").count() == 0


def test_a_packed_report_is_drawn_and_has_badges(saved):
    data = large(rows=4, columns=2, number=500)
    kept = json.packed(spoken(data))
    assert "deflated" in kept
    page = saved((CELL.replace("h", "g"), sketch()), (data["sources"][0]["text"], kept))
    page.wait_for_selector(".shardnb-output >> nth=1 >> .shardnb-verdict")
    page.wait_for_selector(".jp-Cell >> nth=1 >> .shardnb-mark")


def test_a_brief_report_ends_with_what_to_look_at(saved):
    data = spoken(sketch()) | {"view": "brief"}
    page = saved((CELL, data))
    page.wait_for_selector(".shardnb-mark")
    assert not page.locator(".shardnb-sends").is_visible()
    page.click(".shardnb-output summary:has-text('What is sent, arrays, memory')")
    page.wait_for_selector(".shardnb-sends")


def test_hostile_text_is_shown_and_not_run(saved):
    page = saved((CELL, hostile()))
    command(page, "shardnb:open-report")
    page.wait_for_selector("#shardnb-report-panel .shardnb-points")
    assert "<img src=x" in page.inner_text(".shardnb-points >> nth=0")
    assert page.evaluate(HARMED) == [None, None]


def test_a_newer_report_says_so(saved):
    page = saved((CELL, spoken(sketch()) | {"version": 2}))
    assert "update shardnb to see it" in page.inner_text(".shardnb-error")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_is_readable_in_both_themes(saved, tmp_path, theme):
    page = saved((CELL, sketch()))
    change = "theme => void window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
    page.evaluate(change, theme)
    light = theme.endswith("Light")
    page.wait_for_selector(f"body[data-jp-theme-light={str(light).lower()}]", state="attached")
    page.wait_for_function(f"({BRIGHTNESS})('.shardnb-verdict') {'<' if light else '>'} 128")
    page.screenshot(path=tmp_path / "report.png")
