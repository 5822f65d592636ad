"""The HTML fragment and the page."""

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from shardnb.report import Value
from shardnb.views import html, live, text
from shardnb.views.sent import rows_of

VOID = {"meta", "br"}
ALLOWED = {"div", "table", "tbody", "tr", "td", "b", "span", "pre", "code", "details", "summary"}


class Reader(HTMLParser):
    """Reads HTML, checks that tags close in order, keeps tags, attributes and words."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(markup):
    reader = Reader()
    reader.feed(markup)
    reader.close()
    assert not reader.open
    return reader


REPORTS = ["report", "rich_report", "wide_report", "many_report", "hostile_report"]


@pytest.fixture(params=REPORTS)
def any_report(request):
    return request.getfixturevalue(request.param)


def test_a_fragment_has_only_what_notebooks_keep(any_report):
    reader = read(html.render(any_report))
    assert set(reader.tags) <= ALLOWED
    assert set(reader.attributes) <= {"class", "style", "title", "colspan", "rowspan", "open"}


def test_a_fragment_is_small(any_report):
    start = time.perf_counter()
    fragment = html.render(any_report)
    assert time.perf_counter() - start < 5
    assert len(fragment.encode()) < 1_000_000
    assert fragment.count("<td") < 2_500


def test_html_says_what_the_text_says(rich_report):
    """Every word of the text is a word of the HTML; their order is the layout's."""
    said, written = (
        {word.strip("():,;.") for word in words.split()}
        for words in (text.render(rich_report), " ".join(read(html.render(rich_report)).words))
    )
    # The text writes an arrow with two characters.
    assert said - {"->"} <= written


def test_hostile_texts_are_words(hostile_report):
    reader = read(html.render(hostile_report))
    assert "script" not in reader.tags
    assert any("<script>alert(1)</script>" in word for word in reader.words)


def test_a_page_stands_alone(rich_report, tmp_path):
    page = html.save(rich_report, tmp_path / "report.html").read_text(encoding="utf-8")
    reader = read(page.removeprefix("<!DOCTYPE html>"))
    assert {"script", "link", "img"}.isdisjoint(reader.tags)
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)
    assert "prefers-color-scheme: dark" in page


def test_a_page_of_hostile_texts_can_be_written(hostile_report, tmp_path):
    read(html.save(hostile_report, str(tmp_path / "report.html")).read_text(encoding="utf-8"))


def test_a_report_saves_itself(report, tmp_path):
    assert report.save_html(tmp_path / "a.html").is_file()


def test_programs_are_in_the_page_alone(rich_report, tmp_path):
    """A notebook keeps the fragment: a program of 20,000 lines is not in it."""
    assert "HloModule m" not in html.render(rich_report)
    page = html.save(rich_report, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("HloModule m") == 20_000


def test_one_product_takes_little_of_a_notebook(report):
    """Less than 30 KiB as nbformat writes it, together with the text and the live view."""
    written = json.dumps(live.mimebundle(report), indent=1)
    assert len(written) < 30 << 10


def test_raw_hlo_stands_in_the_details(report):
    before = html.render(report).partition("replica_groups=[4,2]&lt;=[8]")[0]
    assert before.count("<details") - before.count("</details") == 1


def test_a_block_names_the_devices_that_hold_it(report):
    """W is P('model'): even devices hold its upper half."""
    assert 'title="[0:256, :] on devices 0 2 4 6"' in html.render(report)
    assert ">0 2 4 6 (x4)<" in html.render(report)


def test_groups_have_letters(report):
    """Over model of data=4, model=2: devices 2 and 3 are the second group."""
    assert {"B 2", "B 3"} <= set(read(html.render(report)).words)


def test_a_permute_is_written_as_arrows(rich_report):
    assert "0 \u2192 1, 1 \u2192 2" in html.render(rich_report)


def test_pending_sums_are_striped_and_said(rich_report):
    fragment = html.render(rich_report)
    assert "repeating-linear-gradient" in fragment
    assert "Striped: each device holds a partial sum, still to be added up over model" in fragment


def test_what_is_not_drawn_is_said(wide_report):
    fragment = html.render(wide_report)
    assert " of 2,048 tiles drawn: the first and last along each edge." in fragment
    assert "128 groups of 16 along model." in fragment


def test_device_ids_stand_on_the_tiles(report):
    mesh = replace(report.mesh, device_ids=(7, 6, 5, 4, 3, 2, 1, 0))
    words = read(html.render(replace(report, mesh=mesh))).words
    assert "A 7" in words
    assert any("HLO counts positions in the mesh" in word for word in words)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Value("a", "f32", (0, 4), ((), ()), (0, 4)), "It has no elements."),
        (Value("a", "f32", (4,), None, (4,)), "Its sharding is not known."),
        (Value("a", "f32", (), (), ()), "0-7 (x8)"),
    ],
)
def test_an_odd_array_says_what_it_is(report, value, said):
    assert said in html.render(replace(report, inputs=(value,)))


def test_no_inputs_are_said_to_be_none(report):
    inputs = html.render(replace(report, inputs=())).partition("<b>Inputs</b>")[2]
    assert inputs.partition("</summary>")[0].endswith(">none</span>")


def test_arrays_that_are_sharded_alike_share_a_picture(report):
    inputs = tuple(replace(report.inputs[0], name=f"p[{i}]") for i in range(200))
    fragment = html.render(replace(report, inputs=inputs))
    assert "p[0] and 199 others f32[256@data, 512@model]" in fragment
    assert ">p[*]<" in fragment
    assert ">200 x 64 KiB<" in fragment


def test_many_arrays_are_not_all_drawn(report):
    """Of 200 different inputs and one output twelve are drawn, and sixteen are in the table.

    The other 184 have 17 + 18 + ... + 200 = 19,964 elements of 4 bytes: 78 KiB.
    """
    value = report.inputs[0]
    inputs = tuple(replace(value, shape=(4 * i, 2), shard_shape=(i, 1)) for i in range(1, 201))
    fragment = html.render(replace(report, inputs=inputs))
    assert "and 189 more that are not drawn" in fragment
    assert "and 184 more inputs, 78.0 KiB per device" in fragment


def test_combined_collectives_share_one_instruction(report):
    first = replace(report.collectives[0], combined_with=(1,))
    second = replace(first, id=1, shape=(8,), combined_with=(0,))
    fragment = html.render(replace(report, collectives=(first, second)))
    assert fragment.count("replica_groups=[4,2]") == 1
    assert "It shares the instruction of the row that it is sent together with." in fragment


def test_a_label_has_the_colour_of_its_cost_and_cause(report):
    """A gradient is neutral; of two reshards that the compiler inserted, the one with half the bytes red."""
    gradient = replace(report.collectives[0], fixes=None, role="gradient", wire_bytes=1 << 10)
    reshard = replace(gradient, role=None, reason="conflict", kind="all-gather")
    most = replace(reshard, id=1, wire_bytes=8 << 10, kind="all-to-all")
    few = replace(report, collectives=(gradient, most, replace(reshard, id=2)))
    tones = {row.first.kind: row.tone for row in rows_of(few.collectives, few)}
    assert tones == {"all-reduce": "neutral", "all-gather": "amber", "all-to-all": "red"}
    fragment = html.render(few)
    for tone in ("neutral", "amber", "red"):
        assert html.LEGEND[tone] in fragment


def test_a_full_rematerialization_is_red_whatever_it_costs(report):
    one = replace(report.collectives[0], full_remat=True, wire_bytes=1)
    other = replace(one, id=1, full_remat=False, role="gradient", wire_bytes=1 << 20)
    found = replace(report, collectives=(one, other))
    assert [row.tone for row in rows_of(found.collectives, found)] == ["neutral", "red"]
