"""Assertions on collectives, for a user's own tests."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.testing import assert_collectives

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
