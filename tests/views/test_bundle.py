"""What a notebook keeps."""

import json
import subprocess
import sys

import msgspec

from shardnb.report import Report
from shardnb.views import html, text
from shardnb.views.live import MIME, mimebundle, to_data


def test_a_bundle_has_text_html_and_data(report):
    bundle = mimebundle(report)
    assert set(bundle) == {"text/plain", "text/html", MIME}
    assert bundle["text/plain"] == text.render(report)
    assert bundle["text/html"] == html.render(report)


def test_the_data_is_the_report_without_its_texts(rich_report):
    data = mimebundle(rich_report)[MIME]
    assert "texts" not in data
    assert Report.from_json(msgspec.json.encode(data)) == rich_report


def test_the_data_of_many_collectives_stays_small(many_report):
    assert len(msgspec.json.encode(mimebundle(many_report)[MIME])) < 3_000_000


def test_words_weigh_at_most_a_third_of_the_data(many_report):
    data = to_data(many_report)
    said = len(msgspec.json.encode(data.pop("said")))
    assert said <= len(msgspec.json.encode(data)) / 3


def test_a_report_of_many_collectives_takes_little_of_a_notebook(many_report):
    assert len(json.dumps(mimebundle(many_report), indent=1)) < 600_000


def test_a_notebook_asks_the_report_itself(report):
    assert report._repr_mimebundle_() == mimebundle(report)


def test_views_need_no_jax():
    code = (
        "import sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None;"
        "from shardnb.report import *; from shardnb.views import figure, live;"
        "live.mimebundle(Report('f', Mesh((), (0,))))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
