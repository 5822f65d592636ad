"""How long the live view of a large report takes in Chromium, and how long its JSON is.

    python -m tests.benchmarks.bench_front_end [--repeat 5]

The report has 2048 devices and 5,000 collectives. First paint is from the JSON's text to the end
of the frame that shows it; a frame is the work that one movement of the pointer, one step in the
list or one filter makes. Each repetition has a page of its own. Exits 1 where a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.lab import CHROMIUM, CHROMIUM_ARGS, new_page
from tests.browser.page import show
from tests.browser.reports import large, spoken
from tests.browser.test_view import SWEEP

LIMITS = {"first paint, ms": 150.0, "JSON, MB": 3.0, "pointer frame, ms": 16.0}
LIMITS |= {"collective chosen, ms": 16.0, "filter, ms": 100.0}

STEP = """async () => {
  const spent = [];
  for (let i = 0; i < 40; i++) {
    const start = performance.now();
    window.view.choose(i * 7);
    const work = performance.now() - start;
    await new Promise(done => requestAnimationFrame(done));
    const before = performance.now();
    await new Promise(done => setTimeout(done));
    spent.push(work + performance.now() - before);
  }
  spent.sort((a, b) => a - b);
  return spent[20];
}"""

FILTER = """async () => {
  const start = performance.now();
  document.querySelectorAll('.shardnb-report .shardnb-badge')[1].click();
  await new Promise(done => requestAnimationFrame(done));
  document.querySelector('.shardnb-rows').getBoundingClientRect();
  return performance.now() - start;
}"""


def measure(browser: Browser, repeat: int) -> dict[str, list[float]]:
    """Return the measurements by name, one for each repetition."""
    data = spoken(large())
    found: dict[str, list[float]] = {name: [] for name in LIMITS}
    found["JSON, MB"] = [len(json.dumps(data, separators=(",", ":"))) / 1e6]
    for _ in range(repeat):
        page = new_page(browser)
        found["first paint, ms"].append(show(page, data))
        for name, take in TAKES.items():
            found[name].append(take(page))
        page.context.close()
    return found


TAKES: dict[str, Callable[[Page], float]] = {
    "pointer frame, ms": lambda page: page.evaluate(SWEEP, ".shardnb-mesh canvas"),
    "collective chosen, ms": lambda page: page.evaluate(STEP),
    "filter, ms": lambda page: page.evaluate(FILTER),
}


def main() -> int:
    """Measure, print a table, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        found = measure(browser, repeat)
        browser.close()
    print(f"{'':20}{'median':>10}{'least':>10}{'most':>10}{'limit':>10}")
    broken = False
    for name, values in found.items():
        median = statistics.median(values)
        broken |= median > LIMITS[name]
        numbers = (median, min(values), max(values), LIMITS[name])
        print(f"{name:20}" + "".join(f"{number:10.2f}" for number in numbers))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
