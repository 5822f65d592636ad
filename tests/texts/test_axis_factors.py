"""Mesh axes factored into prime parts, and merged again."""

from __future__ import annotations

import pytest

from shardnb.texts.axis_factors import merged, pieces_of

SIZES = {"data": 8, "model": 6, "one": 1}


@pytest.mark.parametrize(
    ("axes", "pieces"),
    [
        (("data",), [("data", 1, 2), ("data", 2, 2), ("data", 4, 2)]),
        (("data:(2)4",), [("data", 2, 2), ("data", 4, 2)]),
        (("model", "data:(4)2"), [("model", 1, 2), ("model", 2, 3), ("data", 4, 2)]),
        (("one",), []),
    ],
)
def test_axes_are_cut_into_prime_parts(axes, pieces):
    assert pieces_of(axes, SIZES) == pieces


@pytest.mark.parametrize("axes", [("data",), ("data:(2)4",), ("model", "data:(4)2"), ()])
def test_parts_are_joined_again(axes):
    assert merged(pieces_of(axes, SIZES), SIZES) == axes


def test_parts_that_are_not_neighbours_stay_apart():
    assert merged([("data", 1, 2), ("data", 4, 2)], SIZES) == ("data:(1)2", "data:(4)2")
