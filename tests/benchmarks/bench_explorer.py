"""How long the explorer takes from a click to Shardy's preview on the page, in JupyterLab.

    python -m tests.benchmarks.bench_explorer [--layers 1] [--clicks 20]

A click is a change of a picker; it ends with the frame that shows the preview's grids. Between two
clicks the compile of the first one is over, and somebody looks at what came; with --fast the
clicks do not wait for it. The program is a step of so many layers of a transformer with its
gradient, on 8 emulated devices. Exits 1 where the median is above the limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.lab import CHROMIUM, CHROMIUM_ARGS, new_page, run_all, serve

LIMIT = 100.0
LOOK = 500
"""Milliseconds for which somebody looks at a compiled program before the next click."""

START = """\
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import shardnb as sn

def block(h, p):
    q, k, v = (h @ p[name] for name in 'qkv')
    scores = jnp.einsum('bqd,bkd->bqk', q, k) / q.shape[-1] ** 0.5
    h = h + jax.nn.softmax(scores) @ v @ p['o']
    return h + jax.nn.gelu(h @ p['up']) @ p['down']

def loss(params, x):
    for p in params:
        x = block(x, p)
    return jnp.mean(x ** 2)

def step(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

def shape(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)

layer = dict(q=shape(256, 256), k=shape(256, 256), v=shape(256, 256), o=shape(256, 256),
             up=shape(256, 1024), down=shape(1024, 256))
x = shape(64, 128, 256)"""
EXPLORE = "sn.explore(step, [layer] * {layers}, x, mesh='data=4,model=2')"

# Chooses an option by its number; gives milliseconds to the end of the frame with the preview.
CLICK = """async ([input, option]) => {
  const name = input === 'x' ? /^x, dimension 0/ : new RegExp(`\\\\['${input}'\\\\].*, dimension 0`);
  const state = document.querySelector('.shardnb-state');
  const chip = state.querySelector('.shardnb-chip');
  const list = [...document.querySelectorAll('.shardnb-picker select')]
    .find(one => name.test(one.getAttribute('aria-label')));
  const start = performance.now();
  const said = new Promise(done => {
    const look = () => /preview|refused/.test(chip.textContent) && done(chip.textContent);
    new MutationObserver(look).observe(chip, { childList: true });
    setTimeout(() => done('late'), 20000);
  });
  list.selectedIndex = option;
  list.dispatchEvent(new Event('change'));
  if ((await said) !== 'preview') {
    return null;
  }
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""
COMPILED = "document.querySelector('.shardnb-state .shardnb-chip').textContent === 'compiled'"


INPUTS = ("q", "k", "v", "o", "up", "down")
WAY = [(name, option) for option in (2, 1, 4) for name in (*INPUTS, "x")]
"""Inputs and the option of their first dimension: plans of which none comes twice."""


def measure(page: Page, clicks: int, *, fast: bool) -> list[float]:
    """Return the milliseconds of each click that was answered by a preview."""
    found: list[float] = []
    for name, option in WAY[:clicks]:
        taken = page.evaluate(CLICK, [name, option])
        if taken is not None:
            found.append(taken)
        if not fast:
            page.wait_for_function(COMPILED, timeout=120_000)
            page.wait_for_timeout(LOOK)
    return found


def main() -> int:
    """Measure, print a line, and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--fast", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        page = new_page(browser)
        cell = EXPLORE.format(layers=options.layers)
        lab.open(page, lab.write("bench", [{"source": START}, {"source": cell}]))
        run_all(page)
        page.wait_for_selector(".shardnb-picker", timeout=120_000)
        page.wait_for_function(COMPILED, timeout=120_000)
        found = measure(page, options.clicks, fast=options.fast)
        browser.close()
    median = statistics.median(found)
    print(f"{'':24}{'clicks':>8}{'median':>10}{'least':>10}{'most':>10}{'limit':>10}")
    numbers = (median, min(found), max(found), LIMIT)
    name = "click to preview, ms"
    print(f"{name:24}{len(found):8}" + "".join(f"{number:10.1f}" for number in numbers))
    return int(median > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
