"""Texts that would do harm, in every view that needs no browser: shown as words, never as what
a terminal or a page acts on."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from shardnb.views import html
from tests.foreign.hostile import HARM, hostile_data, hostile_report, texts_of


@pytest.fixture(scope="module")
def report():
    return hostile_report()


class Reader(HTMLParser):
    """Collects what a page acts on."""

    def __init__(self):
        super().__init__()
        self.acting, self.words = [], []

    def handle_starttag(self, tag, attrs):
        if tag in {"script", "img", "svg", "iframe", "a", "link", "object", "embed", "form"}:
            self.acting.append(tag)
        self.acting += [
            name for name, _ in attrs if name.startswith("on") or name in ("href", "src")
        ]

    def handle_data(self, data):
        self.words.append(data)


def test_every_kind_of_text_is_replaced():
    held = [holder[key] for holder, key in texts_of(hostile_data())]
    harmful = [text for text in held if "window.harmed" in text]
    # The rest are words of the vocabulary and the target of the mesh.
    assert len(harmful) > 60
    assert len({text for text in held if "window.harmed" not in text}) < 40


def ways(report):
    yield str(report)
    yield str(report.diff(replace(report, collectives=report.collectives[1:], title="other")))
    yield str(report.on_hardware("h100"))
    for value in report.values:
        yield report.why(value.name)
    yield from (text for name, text in report._repr_mimebundle_().items() if name == "text/plain")


def test_no_control_character_reaches_a_terminal(report):
    for text in ways(report):
        assert text
        assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_a_page_acts_on_nothing(report, tmp_path):
    pages = [html.render(report), html.save(report, tmp_path / "page.html").read_text("utf-8")]
    for page in (*pages, report._repr_mimebundle_()["text/html"]):
        reader = Reader()
        reader.feed(page)
        assert reader.acting == []
        assert "<script>window.harmed=1</script>" in "".join(reader.words)
        assert [char for char in page if not char.isprintable() and char != "\n"] == []


def test_a_page_leaves_dollars_alone(report):
    """JupyterLab and nbconvert hand outputs to MathJax, which has links of its own."""
    assert 'class="tex2jax_ignore mathjax_ignore"' in html.render(report)


def test_a_figure_is_drawn(report):
    from matplotlib import pyplot as plt

    plt.close(report.figure())
    assert HARM in report.title
