"""Programs of the kinds that users report, judged by hand: single operations and layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8 = "data=4,model=2", "data=8"
D, T = P("data"), P(None, "data")
BM = P("data", "model")


@case(
    M8,
    ((64, 16), D),
    expect="""
    all-gather f32[1,16,16] | inferred reshape | result of mul -> the program's result
    all-gather f32[4,16,16] | inferred reshape | result of mul -> the program's result
    """,
)
def reshape_split_merge(x):
    return x.reshape(4, 16, 16) * 2


@case(M8, ((16, 64), T), expect="all-gather f32[16,64] | inferred reshape | x -> reshape")
def reshape_flatten_minor(x):
    return jnp.tanh(x.reshape(-1))


@case(
    M42,
    ((8, 16, 32), P("data", "model", None)),
    expect="all-gather f32[2,16,32] | inferred reshape | x -> reshape",
)
def reshape_merge_two_split(x):
    return jnp.tanh(x.reshape(128, 32))


@case(
    M42,
    ((8, 16, 30), P(None, None, "model")),
    ((30, 12), P("model", None)),
    expect="all-reduce f32[8,16,12] | inferred partial-sum | result of dot_general -> dot_general",
)
def reshape_heads_uneven(x, w):
    y = jnp.einsum("bsd,dh->bsh", x, w)
    return y.reshape(8, 16, 3, 4)


@case(
    M8, ((64, 16), D), ((64, 16), T), expect="all-to-all f32[8,8,2] | inferred conflict | y -> add"
)
def add_two_placements(x, y):
    return x + y


@case(
    M42,
    ((64, 32), P("data", "model")),
    ((64, 32), P("model", "data")),
    expect="""
    all-gather f32[16,32] | inferred conflict | x -> add
    all-gather f32[32,32] | inferred conflict | y -> add
    all-gather f32[64,32] | inferred conflict | x -> add
    all-gather f32[64,32] | inferred conflict | y -> add
    """,
)
def add_swapped(x, y):
    return x + y


@case(
    M8,
    ((64, 16), D),
    ((64, 16), D),
    expect="""
    all-to-all f32[8,8,2] | inferred whole-axis | x -> concatenate
    all-to-all f32[8,8,2] | inferred whole-axis | y -> concatenate
    all-to-all f32[8,16,2] | inferred whole-axis | result of concatenate -> concatenate
    """,
)
def concat_on_split_dim(x, y):
    return jnp.concatenate([x, y], 0)


@case(M8, ((64, 16), D), ((64, 16), D), expect="")
def concat_on_whole_dim(x, y):
    return jnp.concatenate([x, y], 1)


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[1,16] | inferred halo | x -> slice
    all-gather f32[64,16] | inferred uneven | result of sub -> the program's result
    """,
)
def shift_difference(x):
    return x[1:] - x[:-1]


@case(M8, ((64, 16), D), expect="collective-permute f32[8,16] | inferred halo | x -> rev")
def reverse_split(x):
    return x[::-1]


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[6,16] | inferred halo | x -> pad
    all-gather f32[72,16] | inferred uneven | result of pad -> the program's result
    """,
)
def pad_split(x):
    return jnp.pad(x, ((1, 1), (0, 0)))


@case(M8, ((64, 16), D), expect="collective-permute f32[1,16] | inferred halo | x -> roll")
def roll_static(x):
    return jnp.roll(x, 1, 0)


@case(
    M8,
    ((64, 16), D),
    ((), P(), "int32"),
    expect="all-gather f32[64,16] | inferred whole-axis | x -> dynamic_slice",
)
def index_traced(x, i):
    return lax.dynamic_index_in_dim(x, i, 0)


@case(
    M8,
    ((64, 16), D),
    ((8, 16),),
    ((), P(), "int32"),
    expect="all-gather f32[64,16] | inferred whole-axis | x -> dynamic_update_slice",
)
def update_slice_traced(x, u, i):
    return lax.dynamic_update_slice_in_dim(x, u, i, 0)


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[8,16] | inferred halo | x -> slice
    collective-permute f32[4,16] | inferred halo | x -> slice
    """,
)
def slice_half(x):
    return x[:32] * 2


@case(
    M8,
    ((2, 64, 32, 8), P(None, "data")),
    ((3, 3, 8, 8),),
    expect="2 collective-permute f32[2,1,32,8] | inferred halo | x -> conv_general_dilated",
)
def conv_spatial(x, k):
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims)


@case(
    M8,
    ((8, 64, 32, 8), D),
    ((3, 3, 8, 16), P(None, None, None, "data")),
    expect="all-gather f32[3,3,8,16] | inferred conflict | k -> conv_general_dilated",
)
def conv_batch_and_out_channels(x, k):
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims)


@case(
    M8,
    ((8, 32, 32, 64), P(None, None, None, "data")),
    ((3, 3, 64, 16),),
    expect="all-reduce f32[8,32,32,16] | inferred partial-sum | result of conv_general_dilated -> conv_general_dilated",
)
def conv_in_channels(x, k):
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims)


@case(M8, ((2, 64, 32, 8), P(None, "data")), expect="")
def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@case(
    M8,
    ((2, 64, 32, 8), P(None, "data")),
    ((3, 3, 8, 8),),
    expect="""
    2 collective-permute f32[2,1,32,8] | inferred halo | x -> conv_general_dilated
    all-reduce f32[3,3,8,8] | inferred partial-sum | result of conv_general_dilated -> conv_general_dilated
    """,
)
def conv_strided_grad(x, k):
    dims = ("NHWC", "HWIO", "NHWC")

    def loss(k):
        y = lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=dims)
        return jnp.sum(jnp.tanh(y))

    return jax.grad(loss)(k)


@case(M8, ((16, 1024), T), expect="all-gather c64[16,1024] | inferred whole-axis | x -> fft")
def fft_split_dim(x):
    return jnp.fft.fft(x).real


@case(
    M8,
    ((64, 64, 16), D),
    expect="all-gather c64[16,64,64] | inferred whole-axis | transpose of x -> fft",
)
def fft2_one_split(x):
    return jnp.abs(jnp.fft.fftn(x, axes=(0, 1)))


@case(
    M8,
    ((64, 16), D),
    expect="""
    all-gather f32[8,16] | inferred partial-sum | a step of argmax -> argmax
    all-gather s32[8,16] | inferred partial-sum | result of argmax -> argmax
    """,
)
def argmax_split(x):
    return jnp.argmax(x, 0)


@case(
    M8,
    ((64, 16), D),
    expect="""
    all-to-all s32[8,8,2] | inferred whole-axis | result of iota -> sort
    all-to-all f32[8,8,2] | inferred whole-axis | x -> sort
    all-to-all s32[8,8,2] | inferred whole-axis | result of sort -> sort
    """,
)
def argsort_split(x):
    return jnp.argsort(x, axis=0)


@case(
    M8,
    ((64, 16), D),
    expect="""
    all-reduce f32[16] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def softmax_split(x):
    return jax.nn.softmax(x, axis=0)


@case(
    M8,
    ((64, 16), D),
    expect="2 all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def std_split(x):
    return x.std(0)


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[1,16] | inferred halo | x -> slice
    8 collective-permute f32[1,16] | inferred halo | result of add -> slice
    4 all-to-all f32[1,8,2] | inferred whole-axis | result of slice -> concatenate
    collective-permute f32[1,16] | inferred halo | result of add -> slice
    all-to-all f32[1,8,2] | inferred whole-axis | slice of x -> concatenate
    3 collective-permute f32[1,16] | inferred halo | result of add -> pad
    3 all-to-all f32[1,8,2] | inferred whole-axis | result of add -> concatenate
    3 all-to-all f32[8,1,2] | inferred whole-axis | result of concatenate -> concatenate
    2 collective-permute f32[1,16] | inferred halo | result of concatenate -> pad
    all-to-all f32[2,8,2] | inferred whole-axis | result of add -> concatenate
    all-to-all f32[8,2,2] | inferred whole-axis | result of concatenate -> concatenate
    all-to-all f32[4,8,2] | inferred whole-axis | result of add -> concatenate
    all-to-all f32[8,4,2] | inferred whole-axis | result of concatenate -> concatenate
    """,
)
def cumsum_scan(x):
    return lax.associative_scan(jnp.add, x, axis=0)


@case(M8, ((4096,), D), expect="all-gather f32[4096] | inferred whole-axis | x -> cumsum")
def cumsum_long(x):
    return jnp.cumsum(x)


@case(
    M8,
    ((64,), D),
    expect="""
    all-reduce pred[] | inferred partial-sum | result of reduce_or -> reduce_or
    all-gather f32[64] | inferred whole-axis | result of select_n -> sort
    """,
)
def median_split(x):
    return jnp.median(x)


@case(M8, ((64, 64), D), expect="all-gather f32[64,64] | inferred whole-axis | x -> lu")
def solve(x):
    return jnp.linalg.solve(x, jnp.ones(64))


@case(
    M8,
    ((64, 64), D),
    expect="""
    all-to-all f32[8,8,8] | inferred conflict | transpose of x -> add
    all-gather f32[64,64] | inferred whole-axis | result of div -> cholesky
    """,
)
def cholesky_split(x):
    return jnp.linalg.cholesky(x)


@case(M8, ((64, 32), D), expect="all-gather f32[64,32] | inferred whole-axis | x -> geqrf")
def qr_split(x):
    return jnp.linalg.qr(x)[1]


@case(
    M8,
    ((64,), D),
    expect="""
    all-gather s32[64] | inferred whole-axis | result of convert_element_type -> reduce_window_sum
    all-reduce s32[8] | inferred partial-sum | result of scatter-add -> scatter-add
    all-reduce s32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
    expect_jax_0_11="""
    all-gather s32[64] | inferred whole-axis | result of convert_element_type -> cumsum
    all-reduce s32[8] | inferred partial-sum | result of scatter-add -> scatter-add
    """,
)
def nonzero_sized(x):
    return jnp.nonzero(x > 0, size=8)[0]


@case(
    M8,
    ((64, 16), D),
    ((32,), D, "int32"),
    expect="""
    all-gather s32[32,1] | inferred conflict | i -> gather
    all-reduce f32[32,16] | inferred partial-sum | result of gather -> gather
    """,
)
def gather_rows_both_split(x, i):
    return x[i]


@case(M8, ((64, 16), T), ((32,), P(), "int32"), expect="")
def gather_columns_split(x, i):
    return x[i]


@case(M8, ((64, 16), D), ((64, 4), D, "int32"), expect="")
def take_along_columns(x, i):
    return jnp.take_along_axis(x, i, 1)


@case(
    M8,
    ((64, 16),),
    ((32,), D, "int32"),
    ((32, 16), D),
    expect="all-reduce f32[64,16] | inferred partial-sum | result of scatter-add -> scatter-add",
)
def scatter_add_split_updates(x, i, u):
    return x.at[i].add(u)


@case(
    M8,
    ((64, 16), D),
    ((32,), D, "int32"),
    ((32, 16), D),
    expect="""
    all-gather f32[32,16] | inferred conflict | u -> scatter-add
    all-gather s32[32,1] | inferred conflict | i -> scatter-add
    """,
)
def scatter_add_both_split(x, i, u):
    return x.at[i].add(u)


@case(
    M8,
    ((64,), D, "int32"),
    ((64, 16), D),
    expect="all-reduce f32[8,16] | inferred partial-sum | result of scatter-add -> scatter-add",
)
def segment_sum(ids, x):
    return jax.ops.segment_sum(x, ids, 8)


@case(
    M8,
    ((64,), D, "int32"),
    expect="all-reduce s32[16] | inferred partial-sum | result of scatter-add -> scatter-add",
)
def bincount(x):
    return jnp.bincount(x, length=16)


@case(
    M8,
    ((64, 16), D),
    expect="all-gather f32[16,64] | inferred conflict | transpose of x -> dot_general",
)
def rows_by_rows(x):
    return x @ x.T


@case(
    M42,
    ((64, 32), BM),
    expect="""
    all-gather f32[16,32] | inferred conflict | x -> dot_general
    all-reduce f32[16,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def gram_matrix(x):
    return x.T @ x


@case(
    M42,
    ((64, 32), P(("data", "model"))),
    ((32, 64), P(None, "model")),
    expect="all-gather f32[32,64] | inferred conflict | w -> dot_general",
)
def axis_tuple(x, w):
    return x @ w


@case(
    M42,
    ((64, 32), D),
    ((32, 64), P("data", "model")),
    expect="all-gather f32[32,32] | inferred conflict | w -> dot_general",
)
def fsdp_tensor_weight(x, w):
    return jnp.tanh(x @ w)


@case(M8, ((64, 16), D), out=T, expect="all-to-all f32[8,8,2] | requested output-spec | x -> mul")
def out_other_dim(x):
    return x * 2


@case(
    M8,
    ((64, 16), D),
    out=P(),
    expect="all-gather f32[64,16] | requested output-spec | result of tanh -> the program's result",
)
def out_whole(x):
    return jnp.tanh(x)


@case(M8, ((64, 16), D), expect="all-gather f32[64,16] | requested output-spec | x -> mul")
def constraint_whole(x):
    return lax.with_sharding_constraint(x * 2, P()) + 1


@case(M8, ((64, 16), D), expect="all-to-all f32[8,8,2] | requested output-spec | x -> cos")
def constraint_other_dim(x):
    return jnp.sin(lax.with_sharding_constraint(jnp.cos(x), T))


@case(
    M42,
    ((64, 16), D),
    expect="""
    collective-permute f32[16,16] | requested output-spec | x -> cos
    all-gather f32[32,16] | requested output-spec | x -> cos
    """,
)
def constraint_other_axis(x):
    return lax.with_sharding_constraint(jnp.cos(x), P("model"))


@case(
    M8,
    ((30, 16),),
    expect="all-gather f32[32,16] | inferred uneven | result of add -> the program's result",
)
def constraint_uneven(x):
    return lax.with_sharding_constraint(x * 2, D) + 1


@case(
    M8,
    ((4, 16), P()),
    expect="all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def random_normal(x):
    k = jax.random.key(0)
    return lax.with_sharding_constraint(jax.random.normal(k, (64, 16)), D).sum() + x.sum()


@case(M8, ((64, 16), D), expect="")
def dropout(x):
    keep = jax.random.bernoulli(jax.random.key(1), 0.5, x.shape)
    return jnp.where(keep, x, 0.0)


@case(
    M8,
    ((64, 16), D),
    expect="all-reduce f32[64,16] | inferred partial-sum | result of gather -> gather",
)
def shuffle_rows(x):
    return jax.random.permutation(jax.random.key(1), x)


@case(M8, ((64, 16), D), expect="all-to-all f32[8,8,2] | requested output-spec | x -> transpose")
def transpose_out(x):
    return lax.with_sharding_constraint(x.T, D)


@case(M8, ((64, 16), D), expect="all-gather f32[2,64,1,16] | inferred reshape | tile of x -> tile")
def tile_split(x):
    return jnp.tile(x, (2, 1))


@case(M8, ((64, 16), D), expect="")
def repeat_split(x):
    return jnp.repeat(x, 2, axis=0)


@case(M8, ((64, 16), D), ((16, 16), P()), expect="")
def outer_product(x, y):
    return jnp.kron(x, y)


@case(
    M8,
    ((64, 64), D),
    expect="all-to-all f32[8,8,8] | inferred conflict | result of transpose -> add",
)
def triangle(x):
    return jnp.tril(x) + jnp.triu(x, 1).T


@case(
    M8,
    ((64, 64), D),
    expect="all-reduce f32[64] | inferred partial-sum | result of gather -> gather",
)
def diagonal(x):
    return jnp.diagonal(x)


@case(M8, ((64,), D), ((64,), D), expect="all-gather f32[64] | inferred conflict | x -> gather")
def searchsorted_split(x, y):
    return jnp.searchsorted(x, y)


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[8,16] | inferred halo | x -> split
    3 collective-permute f32[4,16] | inferred halo | x -> split
    """,
)
def split_three(x):
    a, b = jnp.split(x, 2, 0)
    return a * b


@case(M8, ((64, 64), D), expect="all-gather f32[64,64] | inferred conflict | x -> dot_general")
def product_with_itself(x):
    return x @ x


@case(M8, ((64, 64), T), expect="all-gather f32[64,64] | inferred conflict | x -> dot_general")
def product_with_itself_columns(x):
    return x @ x


@case(M8, ((4, 64, 64), T), expect="all-gather f32[4,64,64] | inferred conflict | x -> dot_general")
def scores_of_itself(x):
    return jnp.einsum("bij,bkj->bik", x, x)
