"""Programs as people write them: attention, samplers, decoders, optimizers, in their own style."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8 = "data=4,model=2", "data=8"
D = P("data")


@case(
    M42,
    ((4, 32, 16), P("data", "model")),
    ((16, 48), P()),
    expect="""
    2 all-gather f32[1,32,16] | inferred conflict | result of split -> dot_general
    """,
)
def keys_of_a_split(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    p = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k))
    return jnp.einsum("bqk,bkd->bqd", p, v)


@case(
    M42,
    ((4, 32, 16), P("data", "model")),
    expect="""
    all-gather s32[32] | inferred conflict | result of iota -> ge
    all-gather f32[1,32,16] | inferred conflict | x -> dot_general
    """,
)
def causal_mask_of_positions(x):
    position = jnp.arange(32)
    scores = jnp.einsum("bqd,bkd->bqk", x, x)
    return jnp.where(position[:, None] >= position, scores, -1e9)


@case(
    "dp=2,tp=4",
    ((32, 64), P(None, "tp")),
    ((64, 32), P("tp")),
    ((8, 32), P("dp")),
    out=(P(None, "tp"), P("tp"), P()),
    expect="""
    all-reduce f32[4,32] | called partial-sum | result of dot_general -> sub
    all-reduce f32[32,16] | called partial-sum | result of transpose -> mul
    all-reduce f32[16,32] | called partial-sum | result of transpose -> mul
    all-reduce f32[] | called partial-sum | result of div -> div
    """,
)
def gradients_of_a_shard_map(w1, w2, x):
    @functools.partial(jax.shard_map, in_specs=(P(None, "tp"), P("tp"), P("dp")), out_specs=P())
    def loss(w1, w2, x):
        out = lax.psum(jnp.tanh(x @ w1) @ w2, "tp")
        return lax.pmean(jnp.mean((out - x) ** 2), "dp")

    value, (g1, g2) = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2, x)
    return w1 - 0.1 * g1, w2 - 0.1 * g2, value


@case(
    "pp=2,tp=2",
    ((2, 32, 64), P("pp", None, "tp")),
    ((2, 64, 32), P("pp", "tp")),
    ((4, 8, 32), P()),
    expect="""
    all-reduce f32[8,32] | inferred partial-sum | result of dot_general -> dot_general
    collective-permute f32[8,32] | called - | result of add -> the loop's carry
    all-reduce f32[4,8,32] | called partial-sum | result of select_n -> the program's result
    """,
)
def pipeline_with_tensor_parallel_stages(w1, w2, batches):
    def pipe(w1, w2, batches):
        stage = lax.axis_index("pp")

        def tick(carry, t):
            h, out = carry
            h = jnp.where(stage == 0, batches[jnp.minimum(t, 3)], h)
            y = h + jax.nn.relu(h @ w1[0]) @ w2[0]
            out = jnp.where((stage == 1) & (t >= 1), out.at[jnp.maximum(t - 1, 0)].set(y), out)
            return (lax.ppermute(y, "pp", [(0, 1)]), out), None

        h = lax.pcast(jnp.zeros_like(batches[0]), "pp", to="varying")
        out = lax.pcast(jnp.zeros_like(batches), "pp", to="varying")
        (_, out), _ = lax.scan(tick, (h, out), jnp.arange(5))
        return lax.psum(jnp.where(stage == 1, out, 0), "pp")

    specs = P("pp"), P("pp"), P()
    return jax.shard_map(pipe, in_specs=specs, out_specs=P(), axis_names={"pp"})(w1, w2, batches)


@case(
    "a=16",
    ((64, 64), P("a")),
    out=P(None, "a"),
    expect="all-to-all f32[4,16,4] | requested output-spec | result of sort -> the program's result",
)
def sorted_rows_that_are_transposed(x):
    return jnp.sort(x, axis=1)


@case(
    "x=2,y=2,z=2",
    ((16, 16, 16), P("x", "y", "z")),
    out=P("x", "y", "z"),
    expect="""
    2 collective-permute f32[1,8,8] | inferred halo | u -> roll
    2 collective-permute f32[8,1,8] | inferred halo | result of add -> roll
    2 collective-permute f32[8,8,1] | inferred halo | result of add -> roll
    """,
)
def shifts_along_all_dimensions(u):
    for dim in range(3):
        u = u + 0.1 * (jnp.roll(u, 1, dim) - 2 * u + jnp.roll(u, -1, dim))
    return u


@case(
    M42,
    ((8, 128, 4, 16), P("data", None, "model")),
    ((8, 4, 16), P("data", "model")),
    ((8,), P("data"), "int32"),
    expect="""
    collective-permute s32[2,2] | inferred whole-axis | result of concatenate -> scatter
    all-gather s32[4,2] | inferred whole-axis | result of concatenate -> scatter
    all-gather s32[8,2] | inferred whole-axis | result of concatenate -> scatter
    all-gather f32[8,2,16] | inferred whole-axis | k -> scatter
    """,
)
def rows_written_at_positions(cache, k, position):
    return cache.at[jnp.arange(8), position].set(k)


@case(
    M42,
    ((16, 64), P("data", "model")),
    out=P("model"),
    expect="""
    collective-permute f32[4,32] | inferred whole-axis | result of tanh -> cumsum
    all-gather f32[4,64] | inferred whole-axis | result of tanh -> cumsum
    all-gather f32[8,64] | inferred whole-axis | result of tanh -> cumsum
    all-gather f32[16,64] | requested output-spec | result of tanh -> cumsum
    """,
)
def cumsum_to_another_axis(x):
    return jnp.cumsum(jnp.tanh(x), axis=0)
