"""Specs that do not fit, found all at once; the expected numbers are worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request
from shardnb.compiler.divisibility import Stated, check, largest_mesh, moved_bytes
from shardnb.errors.precheck import precheck
from shardnb.mesh import make_grid

SIZES = {"data": 4, "model": 2}


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def stated(shape, spec, name="x"):
    return Stated("input", name, shape, "f32", spec)


@pytest.fixture
def grid():
    return make_grid("data=4,model=2")


def test_a_spec_that_fits_has_no_problem():
    assert check([stated((256, 512), P("data", "model"))], SIZES) == ()


def test_a_dimension_that_is_not_divided_says_which_sizes_would_be():
    (problem,) = check([stated((257, 512), P("data"))], SIZES)
    assert (problem.kind, problem.dim, problem.parts) == ("uneven", 0, 4)
    assert problem.divides == (256, 260)


def test_padding_is_counted_in_rows_and_bytes():
    (problem,) = check([stated((257, 512), P("data"))], SIZES)
    assert problem.padding == 3
    assert problem.padded_bytes == 3 * 512 * 4


def test_two_axes_on_one_dimension_multiply():
    (problem,) = check([stated((12, 4), P(("data", "model")))], SIZES)
    assert problem.parts == 8
    assert problem.divides == (8, 16)


def test_one_row_over_eight_has_no_smaller_size_that_divides():
    (problem,) = check([stated((1, 8), P("data"))], {"data": 8})
    assert problem.divides == (0, 8)
    assert problem.fix == "8 is divisible; padding to 8 adds 7"


def test_every_problem_of_every_spec_is_found():
    found = check(
        [
            stated((257, 511), P("data", "model")),
            stated((8,), P("dta", None)),
            stated((8, 8), P("data", "data"), "y"),
        ],
        SIZES,
    )
    kinds = [problem.kind for problem in found]
    assert kinds == ["uneven", "uneven", "rank", "unknown-axis", "axis-twice"]


@pytest.mark.parametrize(
    ("stateds", "expected"),
    [
        ([stated((1000, 16), P("data"))], {"data": 10}),  # the divisors of 1000: 8, 10, 20
        ([stated((12,), P("data")), stated((18,), P("data"))], {"data": 6}),
        ([stated((7,), P())], {"data": 16}),
    ],
)
def test_the_largest_mesh_divides_every_array(stateds, expected):
    assert largest_mesh(stateds, {"data": 16}) == expected


def test_the_largest_mesh_keeps_axes_that_fit():
    fitting = largest_mesh([stated((6, 64), P("data", "model"))], {"data": 4, "model": 2})
    assert fitting in ({"data": 2, "model": 4}, {"data": 1, "model": 8})


def test_moving_from_rows_to_columns_keeps_the_diagonal_blocks(grid):
    # 8 devices, rows in 4 x columns in 4 of an 8x8 array: each keeps 2x2 of its new 8x2 block.
    rows, columns = (NamedSharding(grid.mesh, spec) for spec in (P("data"), P(None, "data")))
    assert moved_bytes((8, 8), "f32", rows, columns) == 8 * (16 - 4) * 4


def test_replicating_sends_what_each_device_lacks(grid):
    split, whole = (NamedSharding(grid.mesh, spec) for spec in (P(("data", "model")), P()))
    assert moved_bytes((8,), "f32", split, whole) == 8 * 7 * 4


def checked(fn, args, grid, **stated):
    return precheck(Request(fn, args, grid, **stated))


def test_a_program_is_checked_in_inputs_outputs_constraints_and_shard_maps(grid):
    def program(x, y):
        doubled = jax.shard_map(
            lambda part: part * 2, mesh=grid.mesh, in_specs=P("data"), out_specs=P("data")
        )(jnp.ones((6, 4)))
        return lax.with_sharding_constraint(jnp.ones((17, 16)), P("data")), y, doubled

    found = checked(
        program,
        {"x": f32(257, 2), "y": f32(8)},
        grid,
        in_specs={"x": P("data")},
        out_specs=(None, P("dta"), None),
    )
    assert [(problem.where, problem.kind) for problem in found] == [
        ("input", "uneven"),
        ("in_spec", "uneven"),
        ("constraint", "uneven"),
        ("output", "unknown-axis"),
    ]


def test_both_shard_maps_of_a_program_are_checked(grid):
    def double(x, axis):
        spec = P(axis)
        return jax.shard_map(lambda x: x * 2, mesh=grid.mesh, in_specs=spec, out_specs=spec)(x)

    found = checked(lambda x: (double(x, "data"), double(x, "model")), {"x": f32(1)}, grid)
    assert [problem.parts for problem in found] == [4, 2]


def test_checking_leaves_the_error_of_a_real_trace_as_it_was(grid):
    def program(x):
        spec = P("data")
        return jax.shard_map(lambda x: x * 2, mesh=grid.mesh, in_specs=spec, out_specs=spec)(x)

    assert checked(program, {"x": f32(6)}, grid)
    with pytest.raises(ValueError, match="evenly divisible"):
        jax.jit(program).trace(f32(6))


def test_a_constraint_that_xla_pads_is_no_error(grid):
    def program(scale):
        return lax.with_sharding_constraint(jnp.ones((17, 16)) * scale, P("data"))

    (problem,) = checked(program, {"scale": f32()}, grid)
    assert not problem.fatal
    assert "XLA pads it to 20" in problem.message


def test_the_line_of_a_constraint_is_known(grid):
    def program(x):
        return lax.with_sharding_constraint(x, P("data"))

    (problem,) = checked(program, {"x": f32(3)}, grid)
    assert problem.location is not None
    assert problem.location.line == program.__code__.co_firstlineno + 1


def test_an_array_on_another_device_tells_what_the_move_sends(grid):
    x = jax.device_put(np.ones((8, 8), np.float32), jax.devices()[0])
    (problem,) = checked(lambda x: x, {"x": x}, grid, in_specs={"x": P("data")})
    assert problem.kind == "device"
    # Each of 8 emulated devices receives its 2 rows of 8 floats.
    assert problem.moved_bytes == 8 * 2 * 8 * 4


def test_an_array_that_its_spec_contradicts_gets_a_device_put(grid):
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(grid.mesh, P("data")))
    (problem,) = checked(lambda x: x, {"x": x}, grid, in_specs={"x": P(None, "data")})
    assert problem.kind == "committed"
    assert problem.fix == "x = jax.device_put(x, NamedSharding(mesh, P(None, 'data')))"


def test_a_mesh_of_another_order_is_named(grid):
    turned = jax.sharding.Mesh(grid.mesh.devices[::-1], ("data", "model"))
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(turned, P("data")))
    (problem,) = checked(lambda x: x, {"x": x}, grid, in_specs={"x": P("data")})
    assert "another order" in problem.message


def test_a_placement_that_is_no_spec_is_named(grid):
    (problem,) = checked(lambda x: x, {"x": f32(8)}, grid, in_specs={"x": "data"})
    assert problem.kind == "no-spec"
