"""The seconds of a step in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.report.cost import Work
from shardnb.report.model import Axis, Mesh
from shardnb.views import formatting, html, text
from tests.views.conftest import all_reduce, sketch


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


def test_text_splits_what_an_axis_sends_within_and_between_hosts():
    # An all-reduce of 1 MiB over 32 GPUs, 8 to a host, sends 2 x 7/8 MiB within hosts, and of the
    # eighth that is left on each 2 x 3/4 between the 4 of them.
    mesh = Mesh((Axis("data", 32, "auto"),), tuple(range(32)), "cpu", "cpu", emulated=True)
    groups = (tuple(range(32)),)
    sent = replace(all_reduce(), axes=("data",), groups=groups, shape=(512, 512))
    sent = replace(sent, wire_bytes=2 * 2**20 * 31 // 32)
    report = replace(sketch(), mesh=mesh, collectives=(sent,), inputs=(), outputs=())
    shown = " ".join(text.render(report.on_hardware("h100:4x8")).split())
    assert "estimated data: 1.8 MiB within hosts, 192 KiB between hosts per run" in shown


@pytest.mark.parametrize(("seconds", "said"), [(3e-11, "< 0.001 us"), (6e-10, "0.001 us")])
def test_no_collective_takes_no_time(seconds, said):
    assert formatting.seconds(seconds) == said
