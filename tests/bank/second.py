"""A second set of programs that were judged by hand before the judge saw them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from tests.bank.case import case

M42, M8, M24 = "data=4,model=2", "data=8", "data=2,model=4"
D, T = P("data"), P(None, "data")


@case(M42, ((8, 16, 32), D), ((2, 32, 64), P(None, None, "model")), expect="")
def gated_mlp_stacked(x, w):
    return jax.nn.silu(x @ w[0]) * (x @ w[1])


@case(
    M42,
    ((8, 16, 32), P("data", None, "model")),
    ((32, 96), P("model")),
    expect="all-reduce f32[2,16,96] | inferred partial-sum | result of dot_general -> dot_general",
)
def fused_qkv_split(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    return q + k * v


@case(
    M42,
    ((8, 16, 32), D),
    ((32, 96), P(None, "model")),
    expect="2 collective-permute f32[2,16,32] | inferred halo | result of dot_general -> split",
)
def fused_qkv_column_split(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    return q + k * v


@case(
    M24,
    ((8, 32, 4, 8), P("data", "model")),
    ((8, 1, 4, 8), D),
    expect="""
    all-to-all f32[1,4,1,8,4,8] | inferred whole-axis | cache -> concatenate
    all-to-all f32[1,1,4,9,4,8] | inferred whole-axis | result of concatenate -> concatenate
    collective-permute f32[4,2,4,8] | inferred halo | result of concatenate -> slice
    """,
)
def cache_append_concat(cache, new):
    return jnp.concatenate([cache, new], 1)[:, 1:]


@case(M42, ((8, 16, 32), D), ((8, 16, 32), P("data", "model")), expect="")
def residual_of_two_layouts(x, y):
    return jnp.tanh(x) + y


@case(
    M8,
    ((64, 16), D),
    ((64,), D, "int32"),
    expect="""
    all-gather f32[64,16] | inferred whole-axis | x -> scatter
    all-gather s32[64,1] | inferred whole-axis | i -> scatter
    """,
)
def scatter_set_rows(x, i):
    return jnp.zeros((128, 16)).at[i].set(x)


@case(
    M8,
    ((16, 16, 8), P(None, "data")),
    ((3, 3, 8, 8), P()),
    expect="collective-permute f32[1,16,1,8] | inferred halo | x -> conv_general_dilated",
)
def conv_transpose(x, k):
    return lax.conv_transpose(x[None], k, (2, 2), "SAME")


@case(
    M42,
    ((16, 32), D),
    ((32, 32), P("model")),
    ((32, 8), P()),
    expect="all-reduce f32[4,32] | inferred partial-sum | result of dot_general -> dot_general",
)
def chain_of_matmuls(x, a, b):
    return (x @ a) @ b


@case(
    M42,
    ((16, 8, 32), P("data", None, "model")),
    ((16, 32, 8), P("data", "model")),
    expect="all-reduce f32[4,8,8] | inferred partial-sum | result of dot_general -> dot_general",
)
def batched_matmul(x, y):
    return jnp.einsum("bij,bjk->bik", x, y)


@case(
    M42,
    ((16, 32), D),
    ((32, 16), P(None, "model")),
    out=P(),
    expect="""
    all-gather f32[4,16] | requested output-spec | result of dot_general -> the program's result
    all-gather f32[16,16] | requested output-spec | result of dot_general -> the program's result
    """,
)
def out_whole_of_a_split_matmul(x, w):
    return x @ w


@case(
    M42,
    ((16, 32), D),
    ((32, 16), P(None, "model")),
    expect="all-gather f32[4,16] | requested output-spec | result of dot_general -> max",
)
def constraint_gathers_features(x, w):
    h = lax.with_sharding_constraint(jax.nn.relu(x @ w), P("data", None))
    return h.sum(1)


@case(
    M42,
    ((16, 32), D),
    ((32, 16), P("model", None)),
    axes="explicit",
    expect="all-reduce f32[4,16] | requested partial-sum | result of dot_general -> dot_general",
)
def explicit_out_sharding_scatters(x, w):
    x = reshard(x, P("data", "model"))
    return jnp.matmul(x, w, out_sharding=P("data", "model"))


@case(
    M42,
    ((16, 32), D),
    ((32, 16), P(None, "model")),
    axes="explicit",
    expect="all-gather f32[4,4,8] | requested output-spec | result of reshape -> reshard",
)
def explicit_reshape_and_back(x, w):
    y = (x @ w).reshape(4, 4, 16, out_sharding=P("data", None, "model"))
    return reshard(y, P(None, None, "model")).sum(0)


@case(
    M8,
    ((64, 16), D),
    expect="""
    collective-permute f32[8,16] | called - | x -> *
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def shard_map_out_then_sum(x):
    y = jax.shard_map(
        lambda x: lax.ppermute(x, "data", [(i, 7 - i) for i in range(8)]), in_specs=D, out_specs=D
    )(x)
    return (y * x).sum()


@case(M8, ((64, 64), D), expect="all-to-all f32[8,8,8] | requested output-spec | x -> shard_map")
def shard_map_wants_columns(x):
    return jax.shard_map(lambda x: jnp.sort(x, axis=0), in_specs=T, out_specs=T)(x)


@case(
    M8,
    ((32, 64), D),
    ((64, 64), D),
    expect="all-gather f32[64,64] | inferred conflict | w -> dot_general",
)
def while_power(x, w):
    def step(state):
        i, h = state
        return i + 1, jnp.tanh(h @ w)

    return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1]


@case(
    M42,
    ((32, 16), P("data")),
    ((16, 64), P(None, "model")),
    ((32,), D, "int32"),
    expect="""
    all-reduce f32[8] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[8] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[32,16] | inferred partial-sum | result of dot_general -> dot_general
    all-gather f32[8,2] | inferred partial-sum | a step of argmax -> argmax
    all-gather s32[8,2] | inferred partial-sum | result of argmax -> argmax
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def accuracy_and_gradient(x, w, y):
    def loss(w):
        logits = x @ w
        picked = jnp.take_along_axis(logits, y[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(logits, 1) - picked).mean(), (logits.argmax(1) == y).mean()

    return jax.grad(loss, has_aux=True)(w)


@case(M8, ((8, 128), T), expect="all-gather f32[8,128] | inferred whole-axis | x -> cumsum")
def exclusive_prefix(x):
    return jnp.cumsum(x, 1) - x


@case(
    M8,
    ((64, 16), D),
    ((64, 16), D),
    expect="all-gather f32[16,64] | inferred conflict | result of transpose -> dot_general",
)
def cosine_all_pairs_max(a, b):
    a = a / jnp.linalg.norm(a, axis=1, keepdims=True)
    b = b / jnp.linalg.norm(b, axis=1, keepdims=True)
    return (a @ b.T).max(1)


@case(
    M8,
    ((4, 64), T),
    expect="2 collective-permute f32[4,1] | inferred halo | x -> reduce_window_sum",
)
def windows_of_two(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME")


# What wants the axis elsewhere is in the loop's body, not beside what is moved.
@case(
    M42,
    ((32, 32), P(None, "model")),
    expect="all-to-all f32[2,16,16] | inferred conflict | w -> transpose",
)
def transposed_for_a_loop(w):
    moved = w.T
    return lax.fori_loop(0, 3, lambda _, carry: jnp.tanh(carry + moved), w)
