"""Programs about which a report once said something false, each with the answers judged by hand.

The shapes are those of one device. What is wanted is worked out from the sizes and the shardings:
see the comment of each family.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

# A matrix factorisation runs on one device. That the result meets another operand later has nothing
# to do with it: the same gather stays where that operand is replicated.


@case(
    "data=8",
    ((64, 64), P("data")),
    ((64, 8), P("data")),
    expect="""
    all-gather f32[64,64] | inferred whole-axis | a -> svd
    all-reduce f32[8] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def singular_values_of_rows(a, b):
    return jnp.linalg.svd(a)[1] @ b


@case(
    "data=8",
    ((64, 64), P("data")),
    ((64, 8), P("data")),
    expect="""
    all-gather f32[64,64] | inferred whole-axis | a -> triangular_solve
    all-gather f32[64,8] | inferred whole-axis | b -> triangular_solve
    """,
)
def triangle_of_rows(a, b):
    return jax.scipy.linalg.solve_triangular(a, b, lower=True)


@case(
    "data=8",
    ((64, 64), P("data")),
    ((64, 8), P("data")),
    expect="""
    all-to-all f32[8,8,8] | inferred conflict | transpose of a -> add
    all-gather f32[64,64] | inferred whole-axis | result of div -> eigh
    all-reduce f32[64,8] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def eigenvectors_of_rows(a, b):
    return jnp.linalg.eigh(a)[1] @ b


@case("data=8", ((16, 32, 32), P("data")), expect="")
def lu_of_a_batch(a):
    return lax.linalg.lu(a)


# A convolution of rows over `data` keeps them only where the rows of its result divide as well:
# (40 - 4) / 4 + 1 = 10 rows over 8 devices do not, nor (20 - 3) / 2 + 1 = 9 over 4. Of 10 rows, 2 of
# the 8 parts are left, which the result, without a spec, cannot name.


def convolved(x, kernel, stride):
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "VALID", dimension_numbers=dimensions
    )


@case(
    "data=8",
    ((2, 40, 16, 4), P(None, "data")),
    ((4, 4, 4, 4), P()),
    expect="""
    all-gather f32[2,20,16,4] | inferred uneven | x -> conv_general_dilated
    all-gather f32[2,10,4,4] | inferred uneven | result of conv_general_dilated -> the program's result
    """,
)
def conv_to_ten_rows(x, kernel):
    return convolved(x, kernel, 4)


@case(
    "data=4",
    ((2, 20, 16, 4), P(None, "data")),
    ((3, 3, 4, 4), P()),
    expect="all-gather f32[2,20,16,4] | inferred uneven | x -> conv_general_dilated",
)
def conv_to_nine_rows(x, kernel):
    return convolved(x, kernel, 2).reshape(2, -1)


# What goes into a shard_map and comes out of it has the sharding in its specs, and so one may
# follow another.


@case(
    "data=8",
    ((64, 32), P("data")),
    expect="all-to-all f32[8,8,4] | requested output-spec | result of shard_map -> shard_map",
)
def shard_map_after_another(x):
    doubled = jax.shard_map(lambda x: x * 2, in_specs=P("data"), out_specs=P("data"))(x)
    columns = P(None, "data")
    return jax.shard_map(lambda x: x + 1, in_specs=columns, out_specs=columns)(doubled)


@case(
    "data=8",
    ((64, 512), P(None, "data")),
    out=P(None, "data"),
    expect="""
    all-to-all f32[8,8,64] | requested output-spec | x -> shard_map
    all-to-all f32[8,8,64] | requested output-spec | result of shard_map -> the program's result
    """,
)
def shard_map_between_other_specs(x):
    def normalised(x):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True))

    return jax.shard_map(normalised, in_specs=P("data"), out_specs=P("data"))(x)


# A constraint or a shard_map that takes a loop's carry or a branch's operand as it is: the carry is
# over data, as the initial x and the result are, and what the loop or the branch asks for is moved.


@case(
    "data=8",
    ((64, 32), P("data")),
    ((5, 32, 32), P()),
    expect="all-gather f32[64,32] | requested output-spec | carried x -> sharding_constraint",
)
def constraint_on_a_carry(x, ws):
    def step(h, w):
        return jnp.tanh(lax.with_sharding_constraint(h, P()) @ w), None

    return lax.scan(step, x, ws)[0]


@case(
    "data=8",
    ((64, 32), P("data")),
    ((), P(), "bool"),
    expect="""
    all-to-all f32[8,8,4] | requested output-spec | x -> sharding_constraint
    all-to-all f32[8,8,4] | inferred conflict | x -> mul
    """,
)
def constraint_in_one_branch(x, chosen):
    def constrained(x):
        return lax.with_sharding_constraint(x, P(None, "data"))

    return lax.cond(chosen, constrained, lambda x: x * 2, x)


@case(
    "data=8",
    ((64, 64), P("data")),
    expect="all-to-all f32[8,8,8] | inferred conflict | carried x -> transpose",
)
def carry_that_is_transposed(x):
    # Rows are over data before each step and after it, so the rows of h.T have to be brought there.
    return lax.fori_loop(0, 5, lambda _, h: h.T, x)


# A permute that brings an operand to where the result is stated goes over the axes of both: a loses
# data, and that b is over model asks nothing of it.


@case(
    "data=4,model=2",
    ((64, 64), P("data")),
    ((64, 64), P("model")),
    out=P("model", "data"),
    expect="""
    collective-permute f32[16,64] | requested output-spec | a -> dot_general
    all-gather f32[32,64] | requested output-spec | a -> dot_general
    collective-permute f32[64,16] | requested output-spec | transpose of b -> dot_general
    """,
)
def product_with_its_axes_exchanged(a, b):
    return a @ b.T


# What meets the result is sharded along another axis on the same dimension: it is not said to have
# the axis that x loses, and the gather that follows the permute is a part of the same move.


@case(
    "data=4,model=2",
    ((64, 32), P("data")),
    ((32, 64), P()),
    ((64, 64), P("model")),
    expect="""
    collective-permute f32[16,32] | inferred conflict | x -> dot_general
    all-gather f32[32,32] | inferred conflict | x -> dot_general
    """,
)
def result_meets_another_axis(x, w, c):
    return x @ w + c


# One move in two steps, an all-to-all over a part of data and a permute over all: for x + w, which
# is over model. The results of both branches are given another sharding.


@case(
    "data=4,model=2",
    ((64, 64), P("data")),
    ((64, 64), P("model")),
    ((), P()),
    out=P("model", "data"),
    expect="""
    all-to-all f32[16,2,16] | inferred conflict | x -> add
    collective-permute f32[32,16] | inferred conflict | x -> add
    collective-permute f32[16,64] | inferred conflict | x -> dot_general
    all-gather f32[32,64] | inferred conflict | x -> dot_general
    all-gather f32[64,64] | inferred conflict | w -> dot_general
    """,
)
def branches_that_meet_another_axis(x, w, t):
    return lax.cond(t > 0, lambda: x @ w, lambda: x + w)


# What is updated or sliced in its operand's layout, and moved to a constraint then: the value that
# moves is the updated cache, as large as the cache and not as the row that is written.


@case(
    "data=2,model=4",
    ((4, 8, 16), P("data", None, "model")),
    ((4, 1, 16), P("data", None, "model")),
    expect="""
    all-gather f32[2,8,16] | requested output-spec | result of dynamic_update_slice -> dot_general
    all-reduce f32[2,1,8] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def updated_cache(cache, q):
    cache = lax.dynamic_update_slice(cache, q, (0, 3, 0))
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, cache))
    out = jnp.einsum("bqk,bkd->bqd", scores, cache)
    return out, lax.with_sharding_constraint(cache, P("data"))


@case(
    "data=2,model=4",
    ((4, 8, 16), P("data", None, "model")),
    ((4, 1, 16), P("data", None, "model")),
    expect="""
    all-gather f32[2,8,16] | requested output-spec | result of dynamic_update_slice -> \
sharding_constraint
    """,
)
def updated_cache_of_a_loop(cache, q):
    def step(cache, at):
        cache = lax.dynamic_update_slice(cache, q, (0, at, 0))
        return lax.with_sharding_constraint(cache, P("data")), cache[0, 0]

    return lax.scan(step, cache, jnp.arange(4))[0]


@case(
    "data=2,model=4",
    ((4, 8, 16), P("data", None, "model")),
    expect="all-gather f32[2,4,16] | requested output-spec | slice of x -> sharding_constraint",
)
def slice_then_constraint(x):
    return lax.with_sharding_constraint(x[:, 1:5], P("data"))


@case(
    "data=4,model=2",
    ((32, 16), P("data", "model")),
    ((16, 64), P("model")),
    expect="""
    all-gather f32[32,8] | requested output-spec | x -> dot_general
    all-reduce f32[32,32] | inferred partial-sum | result of dot_general -> dot_general
    collective-permute f32[32,32] | requested output-spec | result of dot_general -> \
sharding_constraint
    """,
)
def product_in_a_part_of_an_axis(x, w):
    return jnp.tanh(lax.with_sharding_constraint(x @ w, P(None, "model")))
