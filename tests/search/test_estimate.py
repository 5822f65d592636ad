"""Shardy's estimates, against bytes and operations counted by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from shardnb.bugs import Inconclusive
from shardnb.compiler import Request, build
from shardnb.mesh import make_grid
from shardnb.search.plans.estimate import Estimator
from tests.search.models import f32

KiB = 1024


def estimator(fn, mesh="data=4,model=2", **args):
    return Estimator(build(Request(fn, args, make_grid(mesh))))


def dot(x, w):
    return x @ w


@pytest.fixture(scope="module")
def product():
    return estimator(dot, x=f32(256, 512), w=f32(512, 1024))


def test_a_partial_sum_is_an_all_reduce_of_the_result(product):
    found = product.of({0: (("data",), ("model",)), 1: (("model",), ())})
    assert [(c.kind, c.axes, c.bytes) for c in found.collectives] == [
        ("all-reduce", ("model",), 64 * 1024 * 4)
    ]
    assert found.wire_bytes == 256 * KiB


def test_each_collective_has_a_number_of_its_own():
    def two(x, up, down):
        return jnp.tanh(x @ up) @ down

    made = estimator(two, x=f32(64, 64), up=f32(64, 128), down=f32(128, 64))
    found = made.of({0: ((), ("data",)), 1: (("data",), ("model",)), 2: (("model",), ())})
    assert [(c.id, c.axes) for c in found.collectives] == [(0, ("data",)), (1, ("model",))]


def test_what_nothing_splits_sends_nothing(product):
    assert product.of({0: ((), ()), 1: ((), ())}).wire_bytes == 0


def test_inputs_and_results_are_held(product):
    found = product.of({0: (("data",), ()), 1: ((), ("model",))})
    assert found.held == 4 * (64 * 512 + 512 * 512 + 64 * 512)


def test_a_product_is_divided_by_what_splits_it(product):
    whole = 2 * 256 * 512 * 1024
    assert product.of({0: ((), ()), 1: ((), ())}).flops == whole
    assert product.of({0: (("data",), ("model",)), 1: (("model",), ())}).flops == whole / 8


def test_collectives_in_a_loop_count_as_often_as_it_runs():
    def looped(x, w):
        return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=5)[0]

    found = estimator(looped, x=f32(256, 512), w=f32(512, 512))
    split = found.of({0: ((), ()), 1: (("model",), ())})
    # Each trip adds partial sums up, takes the tanh of a half, and gathers the halves.
    assert [c.kind for c in split.collectives] == ["all-reduce", "all-gather"]
    assert split.wire_bytes == 5 * (512 * KiB + 256 * KiB)
    assert split.flops == 5 * 2 * 256 * 512 * 512 / 2


def test_shardy_carries_an_axis_to_the_next_matrix():
    def two(x, up, down):
        return jnp.tanh(x @ up) @ down

    found = estimator(two, x=f32(8, 64), up=f32(64, 128), down=f32(128, 64))
    carried = found.carried({0: ((), ()), 1: ((), ("model",)), 2: ((), ())}, free={2})
    assert carried[2] == (("model",), ())


def test_arrays_that_a_program_does_not_use_are_passed_over():
    found = estimator(lambda x, unused, w: x @ w, x=f32(8, 8), unused=f32(4, 4), w=f32(8, 8))
    assert found.of({0: ((), ("model",)), 1: ((), ()), 2: (("model",), ())}).wire_bytes == 256


def test_nothing_is_known_of_a_placement_that_shardy_refuses(product):
    with pytest.raises(Inconclusive, match="Shardy refused"):
        product.of({0: (("model",), ("model",))})
