"""Programs that index, slice and turn a split dimension, and that state the sharding of a result."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8 = "data=4,model=2", "data=8"
D, T = P("data"), P(None, "data")


# The row is on the first devices along data: the others get it by a sum with zeros.
@case(
    M42,
    ((64, 16), D),
    expect="all-reduce f32[1,16] | inferred whole-axis | slice of a -> squeeze",
)
def first_row(a):
    return jnp.tanh(a[0])


@case(
    M42,
    ((64, 16), P("data", "model")),
    expect="""
    collective-permute f32[1,8] | inferred halo | a -> slice
    all-reduce f32[1,8] | inferred whole-axis | slice of a -> squeeze
    """,
)
def last_row(a):
    return a[-1]


@case(
    M42,
    ((64, 16), P("data", "model")),
    expect="all-reduce f32[1,1] | inferred whole-axis | slice of a -> squeeze",
)
def one_element(a):
    return a[0, 0]


@case(
    M42,
    ((64, 16), D),
    expect="""
    2 collective-permute f32[1,16] | inferred halo | a -> slice
    all-gather f32[4,16] | inferred uneven | slice of a -> the program's result
    """,
)
def three_rows(a):
    return a[2:5]


# Two rows on four devices: a result cannot stay so, and is put together among zeros.
@case(
    M42,
    ((4, 16), D),
    expect="all-reduce f32[2,16] | inferred uneven | slice of a -> the program's result",
)
def half_of_few_rows(a):
    return a[:2]


# Both slices are moved to the other dimension for the concatenation, its result back.
@case(
    M42,
    ((64, 16), D),
    expect="""
    2 all-to-all f32[1,4,4] | inferred whole-axis | slice of a -> stack
    all-to-all f32[4,1,4] | inferred whole-axis | result of stack -> *
    all-reduce f32[2,16] | inferred uneven | result of stack -> the program's result
    """,
)
def two_rows_swapped(a):
    return jnp.stack([a[1], a[0]])


# One row a device: nothing is left of the roll but the permute.
@case(M42, ((4, 16), D), expect="collective-permute f32[1,16] | inferred halo | a -> roll")
def roll_a_row_each(a):
    return jnp.roll(a, 1, 0)


@case(M42, ((64, 16), D), expect="")
def every_other_row(a):
    return a[::2]


# The table and its indices both have data: the indices go to model, the result comes back.
@case(
    M42,
    ((64, 16), D),
    ((8,), D, "int32"),
    expect="""
    collective-permute s32[2,1] | inferred conflict | k -> gather
    all-gather s32[4,1] | inferred conflict | k -> gather
    all-reduce f32[4,16] | inferred partial-sum | result of gather -> gather
    collective-permute f32[2,16] | inferred conflict | result of gather -> the program's result
    """,
)
def rows_by_split_indices(t, k):
    return t[k]


@case(
    M42,
    ((64, 16), D),
    ((8,), P(), "int32"),
    axes="explicit",
    expect="all-reduce f32[8,16] | requested partial-sum | result of gather -> gather",
)
def explicit_get(t, k):
    return t.at[k].get(out_sharding=P())


@case(
    M42,
    ((64, 16), P()),
    ((8,), D, "int32"),
    ((8, 16), D),
    axes="explicit",
    expect="all-reduce f32[64,16] | requested partial-sum | result of scatter-add -> scatter-add",
)
def explicit_add(t, k, v):
    return t.at[k].add(v, out_sharding=P())


# The table moves to model for rows that were to be sharded over data; cumsum needs a whole dim.
@case(
    M42,
    ((64, 16), D),
    axes="explicit",
    expect="""
    collective-permute f32[16,16] | requested output-spec | a -> gather
    all-gather f32[32,16] | requested output-spec | a -> gather
    all-gather s32[128] | inferred whole-axis | result of scatter-add -> cumsum
    all-reduce f32[32,16] | requested partial-sum | result of gather -> gather
    """,
)
def explicit_repeat(a):
    return jnp.repeat(a, 2, axis=0, total_repeat_length=128, out_sharding=D)


@case(
    M42,
    ((64, 16), D),
    axes="explicit",
    expect="all-gather f32[64,16] | requested output-spec | a -> reshape",
)
def explicit_reshape_to_whole(a):
    return a.reshape(1024, out_sharding=P())


# The minor of two joined dims is split: no result could be.
@case(
    M42,
    ((64, 16), T),
    axes="explicit",
    expect="all-gather f32[64,16] | requested reshape | a -> reshape",
)
def explicit_reshape_of_a_minor_dim(a):
    return a.reshape(1024, out_sharding=P())


@case(
    M42,
    ((64, 16), D),
    ((16, 32), T),
    axes="explicit",
    expect="all-gather f32[16,32] | requested conflict | b -> dot_general",
)
def explicit_einsum_of_one_axis_twice(a, b):
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None))


@case(
    M42,
    ((64,), D),
    axes="explicit",
    expect="all-gather f32[64] | requested output-spec | a -> broadcast_in_dim",
)
def explicit_broadcast(a):
    return lax.broadcast_in_dim(a, (64, 16), (0,), out_sharding=P(None, "data"))


# What stands in a function of the user's own that runs with Auto axes was not asked for.
@case(
    M42,
    ((64, 16), D),
    axes="explicit",
    expect="""
    all-to-all f32[16,4,4] | inferred whole-axis | a -> sort
    all-to-all f32[4,16,4] | inferred whole-axis | result of sort -> *
    all-gather f32[64,16] | requested output-spec | result of sort -> *
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def explicit_part_with_auto_axes(a):
    def inside(x):
        return jnp.sort(x, 0) * jnp.sin(x).sum()

    return jax.sharding.auto_axes(inside, out_sharding=P())(a)


@case(
    M42,
    ((64, 16), D),
    axes="explicit",
    expect="all-gather f32[64,16] | requested output-spec | a -> convert_element_type",
)
def explicit_asarray(a):
    return jnp.asarray(a, out_sharding=P())


# A function of JAX's own runs with Auto axes for its out_sharding.
@case(
    M42,
    ((64, 16), D),
    axes="explicit",
    expect="""
    all-reduce pred[16] | requested partial-sum | result of reduce_or -> reduce_or
    all-to-all f32[16,4,4] | requested whole-axis | result of select_n -> sort
    all-to-all f32[4,16,4] | requested whole-axis | result of sort -> *
    2 all-reduce f32[16] | requested partial-sum | result of gather -> gather
    """,
)
def explicit_percentile(a):
    return jnp.percentile(a, 50.0, axis=0, out_sharding=P())


@case(
    M42,
    ((8, 16, 8), T),
    ((3, 8, 8), P()),
    axes="explicit",
    expect="2 collective-permute f32[8,1,8] | requested halo | a -> conv_general_dilated",
)
def explicit_convolution(a, k):
    numbers = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(
        a, k, (1,), "SAME", dimension_numbers=numbers, out_sharding=P(None, "data")
    )


# The sort's result has its declared sharding before the rows are sliced from it.
@case(
    M8,
    ((64, 8), D),
    expect="""
    all-to-all f32[8,8,1] | inferred whole-axis | a -> sort
    all-to-all f32[8,8,1] | inferred whole-axis | result of sort -> *
    7 collective-permute f32[1,8] | inferred halo | result of sort -> slice
    all-reduce f32[8] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def mean_of_the_largest(a):
    return jnp.sort(a, 0)[-8:].mean(0)


@case(
    M8,
    ((32, 32), D),
    ((32, 32), T),
    ((), P(), "bool"),
    expect="""
    all-to-all f32[8,4,4] | inferred conflict | b -> add
    all-gather f32[32,32] | inferred conflict | b -> dot_general
    """,
)
def branches_of_one_input(a, b, flag):
    return lax.cond(flag, lambda a, b: a @ b, lambda a, b: a + b, a, b)


# The four rows are gathered among zeros: data is wanted by the other dim of the difference.
@case(
    M8,
    ((64, 32), D),
    ((64,), D),
    expect="""
    3 collective-permute f32[1,32] | inferred halo | a -> slice
    all-reduce f32[4,32] | inferred conflict | * -> sub
    all-reduce f32[4,32] | inferred partial-sum | result of dot_general -> dot_general
    all-reduce f32[4] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def a_step_of_kmeans(a, w):
    distances = ((a[:, None] - a[:4][None]) ** 2).sum(-1)
    nearest = jax.nn.one_hot(jnp.argmin(distances, 1), 4) * w[:, None]
    return (nearest.T @ a) / nearest.sum(0)[:, None]
