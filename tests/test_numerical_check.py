"""The sharded against the unsharded result."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request, build
from shardnb.mesh import make_grid
from shardnb.numerical_check import check, compare, numeric_check

M42 = "data=4,model=2"
SPLIT = (P("data", "model"), P("model"))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 64)).astype(np.float32)
W = RNG.normal(size=(64, 8)).astype(np.float32)


def summed(x, w):
    return jax.lax.psum(x @ w, "model")


def averaged(x, w):
    return jax.lax.pmean(x @ w, "model")


@pytest.mark.parametrize("axes", ["auto", "manual"])
def test_a_right_program_agrees(axes):
    fn = summed if axes == "manual" else jnp.dot
    found = numeric_check(fn, X, W, mesh=M42, axes=axes, in_specs=SPLIT, out_specs=P("data"))
    assert found.ok
    assert found.results[0].difference < 1e-4


def test_an_explicit_program_agrees():
    def fn(x, w):
        return jnp.einsum("ij,jk->ik", x, w, out_sharding=P("data", None))

    assert numeric_check(fn, X, W, mesh=M42, axes="explicit", in_specs=SPLIT).ok


def test_a_mean_in_place_of_a_sum_is_found():
    # The sum of two partial products over 2 is half of the whole product.
    found = numeric_check(
        averaged, X, W, mesh=M42, axes="manual", in_specs=SPLIT, out_specs=P("data")
    )
    (result,) = found.results
    assert not found.ok
    assert result.difference == pytest.approx(np.abs(X @ W).max() / 2, rel=1e-4)
    assert result.relative == pytest.approx(0.5, rel=1e-4)
    assert result.index == np.unravel_index(np.abs(X @ W).argmax(), (16, 8))


def test_the_text_names_the_result_that_differs():
    given, expected = (
        {"a": np.float32([1, 2]), "b": np.float32([1, 2])},
        {
            "a": np.float32([1, 2]),
            "b": np.float32([1, 4]),
        },
    )
    assert str(compare(given, expected)).splitlines() == [
        "sharded and unsharded differ in 1 of 2 results",
        (
            "  b float32[2] DIFFERS: largest difference 2 at [1], relative 0.5 "
            "(allowed: 1e-06 + 0.0001 relative)"
        ),
        "  a float32[2] agrees: largest difference 0, relative 0 (allowed: 1e-06 + 0.0001 relative)",
    ]


def test_a_permutation_written_for_the_mesh_is_not_compared():
    def rotate(x):
        return jax.lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)])

    found = numeric_check(
        rotate, X, mesh="data=4", axes="manual", in_specs=P("data"), out_specs=P("data")
    )
    assert found.ok is None
    assert "mesh of one device" in found.why
    assert "ppermute" in str(found)


def test_shapes_alone_are_refused():
    with pytest.raises(ValueError, match="no data to run on"):
        numeric_check(jnp.sum, jax.ShapeDtypeStruct((8,), jnp.float32), mesh="data=4")


@pytest.mark.parametrize(
    ("given", "expected", "ok"),
    [
        (np.float32([np.nan, 1]), np.float32([np.nan, 1]), True),
        (np.float32([np.nan, 1]), np.float32([1, 1]), False),
        (np.float32([np.inf, 1]), np.float32([np.inf, 1]), True),
        (np.float32([np.inf, 1]), np.float32([-np.inf, 1]), False),
        (np.int32([1, 2]), np.int32([1, 3]), False),
        (np.array([True]), np.array([False]), False),
        (np.complex64([1j]), np.complex64([1]), False),
        (np.float32([]), np.float32([]), True),
        (np.int64([2**60]), np.int64([2**60 + 1]), False),
    ],
)
def test_what_is_equal(given, expected, ok):
    assert compare(given, expected).ok is ok


def test_narrow_floats_are_allowed_their_own_rounding():
    (result,) = compare(jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.bfloat16)).results
    assert result.rtol == 8 * 2.0**-7


def test_whole_numbers_are_allowed_nothing():
    (result,) = compare(jnp.ones(2, jnp.int32), jnp.ones(2, jnp.int32)).results
    assert (result.rtol, result.atol) == (0, 0)


def test_random_keys_are_compared():
    assert compare(jax.random.key(1), jax.random.key(1)).ok
    assert not compare(jax.random.key(1), jax.random.key(2)).ok


def test_a_program_that_ran_is_not_run_again():
    specs = dict(zip("xw", SPLIT, strict=True))
    program = build(Request(jnp.dot, {"x": X, "w": W}, make_grid(M42), specs))
    wrong = check(program, np.zeros((16, 8), np.float32))
    assert not wrong.ok
    assert wrong.results[0].difference == pytest.approx(np.abs(X @ W).max(), rel=1e-4)


def test_donated_arrays_of_the_user_live_on():
    x = jnp.asarray(X)
    found = numeric_check(lambda x: x + 1, x, mesh="data=4", donate_argnums=0)
    assert found.ok
    assert not x.is_deleted()


def test_what_the_function_prints_is_printed_once(capsys):
    def talkative(x):
        print("traced")  # noqa: T201
        return x + 1

    numeric_check(talkative, X, mesh="data=4", in_specs=P("data"))
    assert capsys.readouterr().out == "traced\n"
