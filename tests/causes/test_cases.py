"""The collectives of small programs whose right answers are known."""

from __future__ import annotations

import jax
import pytest

import shardnb as sn
from tests.causes.cases import CASES, Case

OLD_JAX = jax.__version__.startswith("0.11")


def report_of(case: Case):
    return sn.explain(
        case.fn,
        *case.args,
        mesh=case.mesh,
        axes=case.axes,
        in_specs=case.specs,
        out_specs=case.out,
    )


def expected(case: Case):
    old = OLD_JAX and case.expect_jax_0_11 is not None
    return sorted(case.expect_jax_0_11 if old else case.expect)


@pytest.mark.parametrize("name", CASES)
def test_collectives(name):
    report = report_of(CASES[name])
    found = [
        (c.kind, f"{c.dtype}[{','.join(map(str, c.shape))}]", c.axes, c.trips)
        for c in report.collectives
    ]
    assert sorted(found) == expected(CASES[name])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.groups])
def test_groups(name):
    (collective,) = report_of(CASES[name]).collectives
    assert tuple(sorted(tuple(sorted(group)) for group in collective.groups)) == CASES[name].groups


def test_called_collective_is_not_marked_as_generated():
    (collective,) = report_of(CASES["23 psum in shard_map"]).collectives
    assert not collective.generated


def test_members_of_a_combined_collective_are_tied():
    one, other = report_of(CASES["23b combined"]).collectives
    assert (one.combined_with, other.combined_with) == ((other.id,), (one.id,))


def test_a_collective_stands_at_its_line():
    def two_lines(a, b):
        h = a @ b
        return h * 2

    case = CASES["3 contracting dimension split"]
    report = sn.explain(two_lines, *case.args, mesh=case.mesh, in_specs=case.specs)
    (collective,) = report.collectives
    assert report.source.line(collective.line).strip() == "h = a @ b"


def test_the_numbers_along_the_way_are_said_where_they_differ():
    (note,) = report_of(CASES["23b combined"]).notes
    assert "the partitioner inserted 2 collectives, and 2 of them are sent together" in note
    assert report_of(CASES["3 contracting dimension split"]).notes == ()
