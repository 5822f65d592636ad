"""A plain page with an explorer on it, in the state that a kernel gives it: no JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from playwright.sync_api import Browser, Page, Route

from shardnb.widgets import explore
from tests.browser.page import HOST, STATIC, THEMES

SIZES = {"8": (4, 2), "2048": (128, 16)}

_PAGE = """<!doctype html>
<meta charset="utf-8">
<link rel="stylesheet" href="/widgets.css">
<style>
:root {{ color-scheme: {theme}; }}
body {{ margin: 0; padding: 12px; background: {ground}; color: {ink}; }}
</style>
<div id="host"></div>
<script type="module">
import widget from '/widgets.js';
window.render = state => {{
  const model = {{
    get: name => state[name],
    send: content => (window.sent ??= []).push(content),
    on: () => undefined,
    off: () => undefined,
  }};
  widget.render({{ model, el: document.getElementById('host') }});
}};
</script>
"""


def layer(x, W, V):  # noqa: N803 - as people write it
    h = jnp.tanh(x @ W)
    return h @ V


@cache
def state(size: str) -> str:
    """Return the state of an explorer with two pinned plans, on 8 or 2048 devices, as JSON."""
    rows, columns = SIZES[size]
    many = columns // 2
    shapes = [(256 * many, 512 * many), (512 * many, 1024 * many), (1024 * many, 512 * many)]
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    specs = (P("data", "model"), P("model"), P())
    explorer = explore(layer, *args, mesh=f"data={rows},model={columns}", in_specs=specs)
    explorer._handle_custom_msg({"kind": "pin", "plan": explorer.plan}, [])
    better = {"x": [["data"], []], "W": [[], ["model"]], "V": [["model"], []]}
    plan = {"axes": explorer.plan["axes"], "specs": better}
    explorer._handle_custom_msg({"kind": "compile", "number": 1, "plan": plan}, [])
    explorer._worker.wait(120)
    explorer._handle_custom_msg({"kind": "pin", "plan": plan}, [])
    names = ("view", "subject", "plan", "compiled", "edited", "search", "pins")
    found: dict[str, Any] = {name: getattr(explorer, name) for name in names}
    explorer.close()
    return json.dumps(found)


@contextmanager
def shown(
    browser: Browser,
    size: str,
    *,
    theme: str = "light",
    width: int = 1100,
    motion: str | None = None,
) -> Iterator[Page]:
    """Show the explorer on a page of its own; an error that the page throws fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, reduced_motion=motion, color_scheme=theme
    )
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    ground, ink = THEMES[theme]
    html = _PAGE.format(theme=theme, ground=ground, ink=ink)

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(HOST).strip("/")
        if name:
            route.fulfill(path=STATIC / name)
        else:
            route.fulfill(body=html, content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/")
    page.wait_for_function("Boolean(window.render)")
    page.evaluate("text => window.render(JSON.parse(text))", state(size))
    try:
        yield page
    finally:
        context.close()
    assert errors == []
