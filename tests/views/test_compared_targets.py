"""What the compilers for several targets do differently, in a sentence."""

from __future__ import annotations

from shardnb.report import Axis, Collective, Mesh, Report
from shardnb.report.types import Column
from shardnb.views import compared_targets, page

MESH = Mesh((Axis("x", 4),), tuple(range(4)))


def one(kind, dtype, sent):
    return Collective(0, kind, ("x",), ((0, 1, 2, 3),), dtype, (8,), sent, role="loss")


def verdict(**collectives):
    reports = {name: Report("f", MESH, collectives=ones) for name, ones in collectives.items()}
    return compared_targets.verdict(reports)


SUM = one("all-reduce", "f32", 4096)
HALF = one("all-reduce", "bf16", 2048)


def test_the_amounts_and_the_largest_difference_are_said():
    assert verdict(cpu=(SUM,), v5e=(HALF,), h100=(HALF,)) == (
        "each device sends 4.0 KiB on cpu, 2.0 KiB on v5e and h100 per run; the largest difference "
        "is for returned sum (loss or metric), line not known [x]: 1 x all-reduce f32, 4.0 KiB on cpu, "
        "1 x all-reduce bf16, 2.0 KiB on v5e and h100"
    )


def test_what_only_one_sends_is_nothing_elsewhere():
    assert "nothing on h100" in verdict(cpu=(SUM,), h100=())


def test_what_all_send_alike_is_said_in_short():
    assert verdict(cpu=(SUM,), h100=(SUM,)) == (
        "the compilers send the same for everything, 4.0 KiB per device and run"
    )


def test_of_programs_that_send_nothing_there_is_no_table_of_it():
    assert verdict(cpu=(), h100=()) == "no compiler sends anything between devices"
    columns = [Column(name, Report("f", MESH)) for name in ("cpu", "h100")]
    assert "what is sent for" not in page.text(compared_targets.page(columns))


def test_a_single_program_is_not_compared():
    assert verdict(cpu=(SUM,)) == ""
