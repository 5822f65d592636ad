"""Assertions on collectives, for a user's own tests."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.testing import assert_collectives, assert_fits, assert_no_inferred

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
OPTIONS = {"mesh": "data=4,model=2", "in_specs": (P("data", "model"), P("model"))}


@pytest.mark.parametrize("expect", [{"all-reduce": 1}, {"all-reduce[model]": 1}])
def test_what_is_expected_passes(expect):
    report = assert_collectives(jnp.dot, (X, W), expect=expect, **OPTIONS)
    assert report.wire_bytes == 64 * 1024 * 4


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ({}, r"has 1 all-reduce\[model\] \(expected 0\)"),
        ({"all-reduce": 2}, r"has 1 all-reduce \(expected 2\)"),
        ({"all-reduce": 1, "all-gather": 1}, r"has 0 all-gather \(expected 1\)"),
        (
            {"all-reduce[data]": 1},
            r"0 all-reduce\[data\] \(expected 1\); 1 all-reduce\[model\] \(expected 0\)",
        ),
    ],
)
def test_anything_else_fails_with_the_report(expect, message):
    with pytest.raises(AssertionError, match=message) as caught:
        assert_collectives(jnp.dot, (X, W), expect=expect, **OPTIONS)
    assert "mesh data=4 x model=2" in str(caught.value)


def test_more_bytes_than_allowed_fail():
    with pytest.raises(AssertionError, match="each device sends 262144 bytes, more than 1000"):
        assert_collectives(
            jnp.dot, (X, W), expect={"all-reduce": 1}, max_wire_bytes=1000, **OPTIONS
        )


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(
        ValueError, match="'allreduce' is not a collective; the kinds are all-reduce, "
    ):
        assert_collectives(jnp.dot, (X, W), expect={"allreduce": 1}, **OPTIONS)


def test_a_report_is_taken_in_place_of_a_function():
    report = assert_collectives(jnp.dot, (X, W), expect={"all-reduce": 1}, **OPTIONS)
    assert assert_collectives(report, expect={"all-reduce[model]": 1}) is report
    with pytest.raises(TypeError, match="a report is taken as it is"):
        assert_collectives(report, expect={}, mesh="data=8")


def test_inferred_collectives_fail_with_their_causes():
    with pytest.raises(AssertionError, match=r"all-reduce\[model\]") as caught:
        assert_no_inferred(jnp.dot, (X, W), **OPTIONS)
    text = str(caught.value)
    assert "1 collective that must not be there (inferred):" in text
    assert "partial sum" in text
    assert_no_inferred(jnp.dot, (X, W), allow=["all-reduce[model]"], **OPTIONS)


def test_what_does_not_fit_fails_with_what_the_memory_is_for():
    # 64 x 256 of x, 256 x 1024 of w and 64 x 1024 of the result, in floats: 1.3 MiB.
    with pytest.raises(AssertionError, match=r"more than 1\.0 MiB") as caught:
        assert_fits(jnp.dot, (X, W), memory=2**20, **OPTIONS)
    assert "; the most at the peak: " in str(caught.value)
    assert "b (argument), 1.0 MiB" in str(caught.value)
    report = assert_fits(jnp.dot, (X, W), memory=2**21, **OPTIONS)
    assert_fits(report, hardware="v5e")


def test_memory_that_is_not_known_is_an_error_and_never_fits():
    report = assert_collectives(jnp.dot, (X, W), expect={"all-reduce": 1}, **OPTIONS)
    with pytest.raises(ValueError, match="memory of these devices is not known"):
        assert_fits(report)
    with pytest.raises(AssertionError, match="its memory is not known"):
        assert_fits(dataclasses.replace(report, memory=None), memory=2**40)
