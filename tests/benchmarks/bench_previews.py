"""How long it takes from a key in a `%%shard` line to Shardy's preview in the editor.

    python -m tests.benchmarks.bench_previews [--keys 40]

Each key replaces the name of a spec by another one. It ends with the frame that shows the types of
the preview, so it has everything in between: the wait for further keys, the question to the kernel,
Shardy, the answer. Exits 1 where the median is above the limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.lab import CHROMIUM, CHROMIUM_ARGS, new_page, run_all, serve

LIMIT = 150.0
REST = 300
"""Milliseconds between two keys: a hand that looks at what came."""

START = """\
%load_ext shardnb
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
%mesh data=4,model=2
x, W = jnp.ones((256, 512)), jnp.ones((512, 1024))
A, B, C, D = P('data'), P('model'), P(('data', 'model')), P()"""
CELL = "%%shard --view brief W=P(None) x=A\nh = x @ W\ny = jnp.tanh(h)\nloss = (y ** 2).mean()"
TYPES = {
    "B": ": f32[256@model, 1024]",
    "C": ": f32[256@(data,model), 1024]",
    "D": ": f32[256, 1024]",
}

# From the next key to the end of the frame in which the first type of a preview is this one.
WATCH = """expected => {
  window.previewed = new Promise(done => {
    let start = 0;
    const look = () => {
      const type = document.querySelector('.shardnb-type');
      if (start && type?.dataset.state === 'preview' && type.textContent === expected) {
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
      }
    };
    const watch = new MutationObserver(look);
    const root = document.querySelector('.jp-Notebook');
    watch.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    const key = event => (start = event.timeStamp);
    root.addEventListener('keypress', key, { once: true, capture: true });
    setTimeout(() => done(Infinity), 5000);
  });
}"""


def prepare(page: Page) -> None:
    """Put the caret after the name of the spec, in a cell that has run."""
    run_all(page)
    page.wait_for_selector(".shardnb-mark", timeout=120_000)
    page.click(".jp-Cell >> nth=1 >> .cm-line >> nth=0")
    page.keyboard.press("End")


def measure(page: Page, keys: int) -> list[float]:
    """Return the milliseconds of each key."""
    found = []
    for number in range(keys):
        name = "BCD"[number % 3]
        page.keyboard.press("Shift+ArrowLeft")
        page.evaluate(WATCH, TYPES[name])
        page.keyboard.press(name)
        found.append(float(page.evaluate("() => window.previewed")))
        page.wait_for_timeout(REST)
    return found


def main() -> int:
    """Measure, print a table, and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=40)
    keys = parser.parse_args().keys
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        page = new_page(browser)
        lab.open(page, lab.write("bench", [{"source": START}, {"source": CELL}]))
        prepare(page)
        found = measure(page, keys)
        browser.close()
    print(f"{'':24}{'keys':>8}{'median':>10}{'least':>10}{'most':>10}{'limit':>10}")
    median = statistics.median(found)
    numbers = (median, min(found), max(found), LIMIT)
    name = "key to preview, ms"
    print(f"{name:24}{len(found):8}" + "".join(f"{number:10.1f}" for number in numbers))
    return int(median > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
