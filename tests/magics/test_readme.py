"""The README: its first cell shows what it says, and its links lead somewhere."""

import re
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PICTURE = ROOT / "notebooks" / "images" / "report.png"


def block(after, kind=""):
    """The first code block of a kind after a text."""
    return re.search(rf"```{kind}\n(.*?)```", README.partition(after)[2], re.DOTALL)[1]


def test_the_first_cell_shows_the_report_that_stands_below_it(run):
    load, cell = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[:2]
    run("del jax, jnp, np")  # a new kernel has only what the README defines
    run(load)
    (data,) = [one for one in run(cell).data if "text/plain" in one]
    shown = [line.split() for line in data["text/plain"].splitlines()]
    expected = [line.split() for line in block(cell).splitlines()]
    start = shown.index(expected[0])
    assert shown[start : start + len(expected)] == expected


def test_no_placeholder_is_left():
    assert re.findall(r"OWNER|TODO|FIXME|<your|example\.com", README) == []


@pytest.mark.parametrize("name", ["pip install", "--fix", "sn.explore", "sn.plan", "panel"])
def test_the_readme_names_what_a_newcomer_needs(name):
    assert name in README


def test_with_the_rows_sharded_the_line_sends_nothing(run):
    run("x, W = jnp.ones((256, 512)), jnp.ones((512, 1024))")
    run("%mesh data=4,model=2")
    shown = run("%%shard x=P('data', None) W=P(None, None)\ny = jnp.tanh(x @ W)")
    assert [report.get("collectives", []) for report in shown.reports] == [[]]


def test_local_links_lead_to_files():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_every_notebook_has_its_link():
    assert [
        one.name for one in (ROOT / "notebooks").glob("*.ipynb") if one.name not in README
    ] == []


def test_the_picture_is_small_and_has_a_ground_of_its_own():
    data = PICTURE.read_bytes()
    assert len(data) < 200_000
    # Byte 25 of a PNG is its kind of colour: 2 and 3 have no alpha, tRNS would give a palette one.
    assert struct.unpack(">B", data[25:26])[0] in (2, 3)
    assert b"tRNS" not in data[:2000]


def test_the_comparison_is_dated():
    assert "As of November 2026" in README
