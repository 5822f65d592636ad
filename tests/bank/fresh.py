"""Programs that were written after the judge stood, to see how it does on what it never met."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8, M222 = "data=4,model=2", "data=8", "a=2,b=2,c=2"
D, T = P("data"), P(None, "data")


@case(
    M222,
    ((16, 32), P("a", "b")),
    ((32, 64), P("b", "c")),
    out=P("a", "c"),
    expect="all-reduce f32[8,32] | inferred partial-sum | result of dot_general -> dot_general",
)
def three_axes_matmul(x, w):
    return x @ w


@case(
    M222,
    ((16, 32), P(("a", "b"), "c")),
    ((32, 64), P("c")),
    out=P("a", "b"),
    expect="""
    all-gather f32[8,16] | requested output-spec | x -> dot_general
    all-reduce f32[8,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def result_swaps_an_axis(x, w):
    return jnp.tanh(x @ w)


@case(
    M8,
    ((64, 32), D),
    ((32, 32), P()),
    ((32,), P()),
    expect="all-reduce f32[32,32] | inferred partial-sum | result of dot_general -> dot_general",
)
def newton_solve(x, w, b):
    h = x.T @ x + w
    return jnp.linalg.solve(h, b)


@case(
    M42,
    ((16, 64, 32), P("data", "model")),
    ((32, 32), P()),
    expect="all-reduce f32[4,32] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def sequence_split_mlp_then_mean(x, w):
    return jnp.tanh(x @ w).mean(1)


@case(
    M8,
    ((128, 16), D),
    ((16, 16), P()),
    expect="all-reduce f32[16,16] | inferred partial-sum | result of dot_general -> dot_general",
)
def power_iteration(x, v):
    def step(v, _):
        v = x.T @ (x @ v)
        return v / jnp.linalg.norm(v), None

    return lax.scan(step, v, None, length=3)[0]


@case(
    M8, ((64, 3), D), ((64, 3), D), expect="all-to-all f32[8,8,8,3] | inferred conflict | * -> sub"
)
def pairwise_distances(a, b):
    return jnp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


@case(
    M8,
    ((64, 16), D),
    expect="all-gather f32[16,64] | inferred whole-axis | transpose of x -> top_k",
)
def top_two_over_rows(x):
    return lax.top_k(x.T, 2)[0]


@case(M42, ((8, 16, 32), P("data", None, "model")), ((4, 32), P(None, "model")), expect="")
def causal_conv_depthwise(x, k):
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return sum(padded[:, i : i + 16] * k[i] for i in range(4))


@case(
    M42,
    ((8, 16, 32), P("data", "model")),
    ((4, 32), P()),
    expect="""
    collective-permute f32[2,1,32] | inferred halo | x -> pad
    collective-permute f32[2,2,32] | inferred halo | result of pad -> slice
    2 collective-permute f32[2,1,32] | inferred halo | result of pad -> slice
    """,
)
def causal_conv_sequence_split(x, k):
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return sum(padded[:, i : i + 16] * k[i] for i in range(4))


@case(M8, ((64, 64), D), expect="all-to-all f32[8,8,8] | inferred conflict | transpose of x -> add")
def symmetric_part(x):
    return (x + x.T) / 2


@case(
    M42,
    ((64, 32), P("data", "model")),
    expect="all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def normalise_rows(x):
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


@case(
    M8,
    ((4096,), D),
    ((), P(), "int32"),
    expect="all-gather f32[4096] | inferred whole-axis | x -> dynamic_slice",
)
def dynamic_window(x, at):
    return lax.dynamic_slice(x, (at,), (512,)).sum()


@case(
    M8,
    ((64, 16), D),
    ((64,), D, "int32"),
    expect="""
    all-gather s32[64] | inferred whole-axis | key -> sort
    all-reduce f32[64,16] | inferred partial-sum | result of gather -> gather
    """,
)
def sort_by_key(x, key):
    return x[jnp.argsort(key)]


@case(M8, ((64, 16), D), expect="")
def interleave(x):
    return jnp.stack([x, -x], 1).reshape(128, 16)


@case(
    M42,
    ((64, 32), P("data", "model")),
    ((32, 8), P("model")),
    expect="all-reduce f32[16,8] | inferred partial-sum | result of dot_general -> dot_general",
)
def lora(x, a):
    return x + (x @ a) @ a.T


@case(
    M42,
    ((8, 32, 4, 8), P("data", None, "model")),
    out=P("data", "model"),
    expect="all-to-all f32[2,2,16,2,8] | requested output-spec | x -> mul",
)
def heads_to_sequence(x):
    return x * 2


@case(
    M42,
    ((8, 32, 4, 8), P("data", None, "model")),
    expect="2 all-reduce f32[2,32] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def merge_heads_and_norm(x):
    y = x.reshape(8, 32, 32)
    return y / y.std(-1, keepdims=True)


@case(M8, ((8, 128), D), ((8,), D, "int32"), expect="")
def last_token(x, length):
    return jnp.take_along_axis(x, length[:, None] - 1, 1)[:, 0]


@case(M8, ((16, 8, 8, 4), D), expect="")
def depth_to_space(x):
    y = x.reshape(16, 8, 8, 2, 2, 1).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(16, 16, 16, 1)


@case(
    M8,
    ((32, 16), D),
    ((16,), P()),
    expect="all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def per_example_gradients(x, w):
    g = jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w)), (None, 0))(w, x)
    scale = jnp.minimum(1.0, 1.0 / jnp.linalg.norm(g, axis=1))
    return (g * scale[:, None]).mean(0)


@case(
    M42,
    ((64, 32), P("data", None)),
    ((32, 64), P(None, "model")),
    axes="explicit",
    expect="""
    all-reduce f32[16] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def explicit_cross_entropy(x, w):
    logits = x @ w
    return jax.nn.logsumexp(logits, axis=-1).mean()


@case(M8, ((64, 16), D), expect="all-gather f32[64,16] | inferred whole-axis | x -> dynamic_slice")
def ema_loop(x):
    def step(i, s):
        return 0.9 * s + 0.1 * lax.dynamic_index_in_dim(x, i, 0, keepdims=False)

    return lax.fori_loop(0, 64, step, jnp.zeros(16))


@case(
    M8,
    ((64, 16), D),
    expect="""
    all-reduce pred[16] | inferred partial-sum | result of reduce_or -> reduce_or
    all-to-all f32[8,8,2] | inferred whole-axis | result of select_n -> sort
    all-to-all f32[8,8,2] | inferred whole-axis | result of sort -> sort
    2 all-reduce f32[16] | inferred partial-sum | result of gather -> gather
    """,
)
def quantile(x):
    return jnp.quantile(x, 0.5, axis=0)


@case(
    M42,
    ((16, 32), P("data")),
    ((32, 32), P("model")),
    expect="""
    all-gather f32[16,32] | called - | result of tanh -> the program's result
    all-reduce f32[4,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def shard_map_inside_auto(x, w):
    h = jnp.tanh(x @ w)
    return jax.shard_map(
        lambda h: lax.all_gather(h, "data", tiled=True), in_specs=D, out_specs=P(), check_vma=False
    )(h)
