"""The seconds of a step in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.report.cost import Work
from shardnb.views import html, text
from tests.views.conftest import sketch


@pytest.fixture
def priced():
    return replace(sketch(), work=Work(flops=2e9, accessed_bytes=1e6)).on_hardware("v5e")


def test_text_says_in_one_line_what_bounds_the_step(priced):
    # 256 KiB one way over a link of 45 GB/s; 2e9 operations at 197e12 a second.
    assert "as if on TPU v5e: compute-bound, compute >= 10.2 us, memory <= 1.22 us" in text.render(
        priced
    )


def test_text_says_both_where_the_bounds_do_not_tell_compute_from_memory():
    # 1e8 bytes at 819e9 a second are an upper bound above what computing takes at least.
    work = Work(flops=2e9, accessed_bytes=1e8)
    shown = text.render(replace(sketch(), work=work).on_hardware("v5e"))
    assert "TPU v5e: compute- or memory-bound, compute >= 10.2 us, memory <= 122 us" in shown


def test_each_collective_has_its_seconds(priced):
    assert "256 KiB, 5.83 us" in text.render(priced)
    assert "One execution takes about 5.83 us (estimated by formula)." in html.render(priced)


def test_html_says_which_links_and_sources_stand_behind(priced):
    shown = html.render(priced)
    assert "model communicates over a line of 2 chips along y" in shown
    assert "a slice of 4x2 chips has no wraparound" in shown
    assert "priced as if for TPU v5e" in shown


def test_an_emulated_report_has_no_time():
    assert "Time  " not in text.render(sketch())


def test_collectives_without_seconds_are_counted(priced):
    cost = replace(priced.cost, unpriced=2)
    assert "bound not known" in text.render(replace(priced, cost=cost))
    assert "without 2 collectives" in text.render(replace(priced, cost=cost))
