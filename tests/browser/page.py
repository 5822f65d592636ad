"""A plain page with the widgets' module on it, as a kernel gives it: no JupyterLab, no server."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page, Route

from tests.browser.lab import ROOT
from tests.browser.reports import spoken

STATIC = ROOT / "shardnb" / "static"
HOST = "http://view.test"
THEMES = {"light": ("#fff", "#222"), "dark": ("#111", "#ddd")}

_PAGE = """<!doctype html>
<meta charset="utf-8">
<link rel="stylesheet" href="/widgets.css">
<style>
body {{ margin: 0; padding: 12px; background: {ground}; color: {ink}; }}
</style>
<div id="host"></div>
<script type="module">
import {{ mount }} from '/widgets.js';
window.mount = mount;
</script>
"""

# Milliseconds from the JSON's text to the end of the frame that shows it.
MOUNT = """async text => {
  const start = performance.now();
  window.view = window.mount(document.getElementById('host'), JSON.parse(text));
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def show(page: Page, data: dict[str, Any], theme: str = "light") -> float:
    """Show a report on a blank page; give the milliseconds that it took to be painted."""
    ground, ink = THEMES[theme]
    html = _PAGE.format(ground=ground, ink=ink)

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(HOST).strip("/")
        if name:
            route.fulfill(path=STATIC / name)
        else:
            route.fulfill(body=html, content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/")
    page.wait_for_function("Boolean(window.mount)")
    return float(page.evaluate(MOUNT, json.dumps(spoken(data))))
