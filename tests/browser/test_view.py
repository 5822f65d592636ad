"""The live view under the pointer and the keys."""

from __future__ import annotations

import pytest

from tests.browser.lab import report_output
from tests.browser.reports import large, sketch

# The longest of the frames in which a canvas followed the pointer, in milliseconds of work.
SWEEP = """async selector => {
  const canvas = document.querySelector(selector);
  const { width, height, left, top } = canvas.getBoundingClientRect();
  const spent = [];
  for (let i = 0; i < 60; i++) {
    const at = { clientX: left + (i * width) / 60, clientY: top + (i * height) / 60 };
    const start = performance.now();
    canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, bubbles: true }));
    await new Promise(done => requestAnimationFrame(done));
    spent.push(performance.now() - start);
  }
  spent.sort((a, b) => a - b);
  return spent[30];
}"""


@pytest.fixture
def view(lab, page):
    """Show a report in a notebook without a kernel."""

    def show(data):
        cell = {"source": "x = 1", "outputs": [report_output(data)]}
        lab.open(page, lab.write("view", [cell], kernel=False), kernel=False)
        page.wait_for_selector(".shardnb-report")
        return page

    return show


def test_the_pointer_on_a_block_says_what_it_is_and_who_holds_it(view):
    page = view(sketch())
    block = page.locator(".shardnb-card canvas").first
    block.scroll_into_view_if_needed()
    block.hover(position={"x": 5, "y": 40})
    note = page.locator(".shardnb-card .shardnb-readout").first
    assert note.inner_text() == (
        "x[64:128, 0:256] on device 2; next to it: 0 4 along dim 0, 3 along dim 1"
    )


def test_the_pointer_on_a_device_says_with_whom_it_exchanges(view):
    page = view(sketch())
    mesh = page.locator(".shardnb-mesh canvas")
    mesh.scroll_into_view_if_needed()
    mesh.hover(position={"x": 5, "y": 40})
    page.wait_for_function("document.querySelector('.shardnb-mesh .shardnb-readout').textContent")
    assert page.inner_text(".shardnb-mesh .shardnb-readout") == (
        "device 2 (data 1, model 0); in group B: 2-3; "
        "next to it: 0 and 4 along data, 3 along model"
    ).replace("2-3", "2 3")


def test_a_grid_is_walked_by_the_arrow_keys(view):
    page = view(sketch())
    page.locator(".shardnb-mesh canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".shardnb-mesh .shardnb-readout:has-text('device 3 (')")


def test_a_line_s_badge_leads_to_its_collective(view):
    page = view(sketch())
    page.click(".shardnb-badge:has-text('all-gather')")
    page.wait_for_selector(".shardnb-title:has-text('all-gather[data] at line 3')")
    page.wait_for_selector(".shardnb-line[data-marked]:has-text('jnp.tanh')")


def test_the_list_is_filtered_and_sorted(view):
    page = view(large(number=500))
    page.select_option("select[aria-label=kind]", "all-gather")
    page.select_option("select[aria-label='asked by']", "called")
    # Of 0..499 those that are 1 mod 4 and 2 mod 3, so 5 mod 12: 5, 17, ..., 497.
    assert "42 of 500 collectives" in page.inner_text(".shardnb-filters")
    page.click(".shardnb-sort:has-text('sends')")
    first = page.inner_text(".shardnb-rows .shardnb-row >> nth=0")
    assert "called" in first
    assert "x5" in first or "x4" in first or "x3" in first


def test_the_list_is_walked_by_the_keys(view):
    page = view(large(number=500))
    page.focus("[role=listbox]")
    page.keyboard.press("End")
    page.wait_for_selector("[aria-selected=true][aria-posinset='500']")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("[aria-selected=true][aria-posinset='2']")


def test_a_frame_under_the_pointer_is_short_with_2048_devices(view):
    page = view(large())
    page.locator(".shardnb-mesh canvas").scroll_into_view_if_needed()
    # One frame of a display of 60 a second, and as much again for a shared machine.
    assert page.evaluate(SWEEP, ".shardnb-mesh canvas") < 34


def test_the_view_asks_nothing_of_the_network(view):
    page = view(sketch())
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.click(".shardnb-badge:has-text('all-gather')")
    page.locator(".shardnb-card canvas").first.hover()
    page.wait_for_timeout(300)
    assert [url for url in asked if "/api/" not in url] == []
