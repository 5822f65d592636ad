"""Programs of the kinds that users report, judged by hand: layers, loops, gradients, shard_map."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8, M24 = "data=4,model=2", "data=8", "data=2,model=4"
D, T = P("data"), P(None, "data")
BM = P("data", "model")


@case(
    M42,
    ((64, 32), P("model", None)),
    ((8, 16), D, "int32"),
    expect="all-reduce f32[2,16,32] | inferred partial-sum | result of gather -> gather",
)
def embedding_vocab_split(table, ids):
    return table[ids]


@case(M42, ((64, 32), P(None, "model")), ((8, 16), D, "int32"), expect="")
def embedding_features_split(table, ids):
    return jnp.tanh(table[ids])


@case(
    M42,
    ((64, 32), P("model", None)),
    ((8, 16), D, "int32"),
    expect="""
    all-reduce f32[2,16,32] | inferred partial-sum | result of gather -> gather
    all-reduce f32[64,32] | inferred partial-sum | result of scatter-add -> scatter-add
    """,
)
def embedding_gradient(table, ids):
    return jax.grad(lambda t: jnp.tanh(t[ids]).sum())(table)


@case(
    M42,
    ((8, 16, 32), D),
    ((32, 64), P(None, "model")),
    ((8, 16), D, "int32"),
    expect="""
    all-reduce f32[2,16] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[2,16] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[2,16,1] | inferred partial-sum | result of gather -> gather
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def head_and_loss(x, w, y):
    logits = x @ w
    logp = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logp, y[..., None], -1).mean()


@case(
    M42,
    ((8, 16, 32), D),
    ((32, 64), P(None, "model")),
    ((8, 16), D, "int32"),
    expect="""
    all-reduce f32[2,16] | inferred partial-sum | result of reduce_max -> reduce_max
    2 all-reduce f32[2,16] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[32,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def one_hot_loss_gradient(x, w, y):
    def loss(w):
        logp = jax.nn.log_softmax(x @ w)
        return -(jax.nn.one_hot(y, 64) * logp).sum(-1).mean()

    return jax.grad(loss)(w)


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4.0
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


@case(
    M42,
    ((8, 16, 4, 16), P("data", None, "model")),
    ((8, 16, 4, 16), P("data", None, "model")),
    ((8, 16, 4, 16), P("data", None, "model")),
    expect="",
)
def attention_heads_split(q, k, v):
    return attention(q, k, v)


@case(
    M24,
    ((8, 16, 8, 16), P("data", None, "model")),
    ((8, 16, 2, 16), P("data", None, None, "model")),
    ((8, 16, 2, 16), P("data", None, None, "model")),
    expect="""
    all-gather f32[4,16,2,16] | inferred conflict | v -> dot_general
    all-gather f32[4,16,2,16] | inferred conflict | k -> dot_general
    all-gather f32[4,16,1,4,16] | inferred reshape | result of transpose -> the program's result
    all-gather f32[4,16,2,4,16] | inferred reshape | result of transpose -> the program's result
    """,
)
def attention_fewer_kv_heads(q, k, v):
    q = q.reshape(8, 16, 2, 4, 16)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", q, k)
    return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(scores), v)


@case(
    M42,
    ((8, 16, 4, 16), P("data", "model")),
    ((8, 16, 4, 16), P("data", "model")),
    ((8, 16, 4, 16), P("data", "model")),
    expect="""
    all-gather f32[2,16,4,16] | inferred conflict | v -> dot_general
    all-gather f32[2,16,4,16] | inferred conflict | k -> dot_general
    """,
)
def attention_sequence_split(q, k, v):
    return attention(q, k, v)


@case(
    M42,
    ((8, 32, 4, 16), P("data", None, "model")),
    ((8, 1, 4, 16), P("data", None, "model")),
    ((), P(), "int32"),
    expect="",
)
def cache_update_heads(cache, new, at):
    return lax.dynamic_update_slice_in_dim(cache, new, at, 1)


@case(
    M42,
    ((8, 32, 4, 16), P("data", "model")),
    ((8, 1, 4, 16), D),
    ((), P(), "int32"),
    expect="",
)
def cache_update_sequence(cache, new, at):
    return lax.dynamic_update_slice_in_dim(cache, new, at, 1)


@case(
    M42,
    ((8, 32, 4, 16), P("data", "model")),
    ((8, 1, 4, 16), D),
    ((), P(), "int32"),
    expect="""
    all-reduce f32[2,4,1] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[2,4,1] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[2,4,16,1] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def cache_attend(cache, q, at):
    mask = jnp.arange(32) <= at
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, cache)
    scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), cache)


@case(
    M42,
    ((8, 16, 32), P("data", None, "model")),
    expect="""
    2 collective-permute f32[2,16,8] | inferred halo | x -> split
    all-to-all f32[1,2,1,16,8] | inferred whole-axis | split of x -> concatenate
    all-to-all f32[1,2,1,16,8] | inferred whole-axis | result of neg -> concatenate
    all-to-all f32[1,1,16,2,16] | inferred whole-axis | result of concatenate -> concatenate
    """,
)
def rotary_features_split(x):
    x1, x2 = jnp.split(x, 2, -1)
    return jnp.concatenate([-x2, x1], -1)


@case(
    M42,
    ((8, 32), D),
    ((32, 64), P(None, "model")),
    ((64, 32), P("model")),
    expect="all-reduce f32[2,32] | inferred partial-sum | result of dot_general -> dot_general",
)
def mlp_megatron(x, up, down):
    return jax.nn.gelu(x @ up) @ down


@case(
    M42,
    ((8, 32), BM),
    ((32, 64), P("model", None)),
    ((64, 32), P("model")),
    expect="""
    all-reduce f32[2,64] | inferred partial-sum | result of dot_general -> dot_general
    all-reduce f32[2,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def mlp_both_row_split(x, up, down):
    return jax.nn.relu(x @ up) @ down


@case(
    M42,
    ((8, 32), D),
    ((32, 64), P(None, "model")),
    ((64, 32), P("model")),
    out=(P(None, "model"), P("model")),
    expect="""
    all-reduce f32[2,32] | inferred partial-sum | result of dot_general -> dot_general
    2 all-reduce f32[32,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def mlp_megatron_gradient(x, up, down):
    def loss(up, down):
        return jnp.tanh(jax.nn.relu(x @ up) @ down).sum()

    return jax.grad(loss, (0, 1))(up, down)


@case(
    M42,
    ((8, 16, 32), P("data", None, "model")),
    ((32,), P("model")),
    expect="2 all-reduce f32[2,16] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def layer_norm_features_split(x, scale):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-6) * scale


@case(
    M42,
    ((8, 16, 32), D),
    ((32,), P()),
    expect="""
    4 all-reduce f32[32] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def batch_norm_gradient(x, scale):
    def loss(s):
        y = (x - x.mean((0, 1))) * lax.rsqrt(x.var((0, 1)) + 1e-5) * s
        return (y**2).sum()

    return jax.grad(loss)(scale)


@case(
    M42,
    ((64, 32), D),
    ((4, 32, 64), P("model")),
    ((64,), D, "int32"),
    expect="all-reduce f32[16,64] | inferred partial-sum | result of dot_general -> dot_general",
)
def moe_one_hot(x, w, expert):
    hot = jax.nn.one_hot(expert, 4)
    parts = jnp.einsum("te,td->etd", hot, x)
    return jnp.einsum("etd,edf->tf", parts, w)


# JAX gives both calls one channel; the shape of the first, f32[8,1,32], is not judged here.
@case(
    M8,
    ((64, 32), D),
    ((8, 32, 64), D),
    expect="""
    all-to-all * | called - | reshape of x -> dot_general
    all-to-all f32[8,1,64] | called - | result of dot_general -> reshape
    """,
)
def moe_all_to_all(x, w):
    def body(x, w):
        parts = x.reshape(8, 1, 32)
        sent = lax.all_to_all(parts, "data", 0, 0)
        done = jnp.einsum("ecd,df->ecf", sent, w[0])
        return lax.all_to_all(done, "data", 0, 0).reshape(8, 64)

    return jax.shard_map(body, in_specs=(D, D), out_specs=D)(x, w)


@case(
    M8,
    ((64, 32), D),
    ((8, 32, 64), D),
    expect="""
    all-to-all f32[1,8,1,32] | requested output-spec | reshape of x -> sharding_constraint
    all-to-all f32[8,1,1,32] | requested output-spec | reshape of x -> sharding_constraint
    """,
)
def moe_dispatch_auto(x, w):
    parts = lax.with_sharding_constraint(x.reshape(8, 8, 32), P(None, "data"))
    parts = lax.with_sharding_constraint(parts, D)
    return jnp.einsum("ecd,edf->ecf", parts, w)


@case(
    M8,
    ((8, 4, 32), D),
    ((8, 32, 32), D),
    expect="collective-permute f32[4,32] | called - | result of tanh -> the loop's carry",
)
def pipeline(x, w):
    def body(x, w):
        ring = [(i, (i + 1) % 8) for i in range(8)]

        def step(carry, _):
            return lax.ppermute(jnp.tanh(carry @ w[0]), "data", ring), None

        return lax.scan(step, x[0], None, length=8)[0][None]

    return jax.shard_map(body, in_specs=(D, D), out_specs=D)(x, w)


@case(
    M8,
    ((64, 16), D),
    ((64, 16), D),
    ((64, 16), D),
    expect="""
    collective-permute f32[8,16] | called - | carried v -> the loop's carry
    collective-permute f32[8,16] | called - | carried k -> the loop's carry
    """,
)
def ring_attention(q, k, v):
    def body(q, k, v):
        ring = [(i, (i + 1) % 8) for i in range(8)]

        def step(carry, _):
            k, v, top, low = carry
            p = jnp.exp(q @ k.T)
            top, low = top + p @ v, low + p.sum(-1)
            return (lax.ppermute(k, "data", ring), lax.ppermute(v, "data", ring), top, low), None

        start = (k, v, jnp.zeros_like(q), q[:, 0] * 0)
        _, _, top, low = lax.scan(step, start, None, length=8)[0]
        return top / low[:, None]

    return jax.shard_map(body, in_specs=(D, D, D), out_specs=D)(q, k, v)


@case(
    M42,
    ((64, 32), D),
    ((32, 16), P()),
    expect="all-gather f32[64,32] | requested output-spec | x -> shard_map",
)
def shard_map_in_spec_differs(x, w):
    return jax.shard_map(
        lambda x, w: jnp.tanh(x @ w), in_specs=(P(), P(None, "model")), out_specs=P(None, "model")
    )(x, w)


@case(
    M42,
    ((64, 32), D),
    ((32, 16), P()),
    expect="all-reduce f32[32,16] | called partial-sum | result of transpose -> the program's result",
)
def shard_map_gradient(x, w):
    def loss(w):
        part = jax.shard_map(
            lambda x, w: lax.psum(jnp.tanh(x @ w).sum(), "data"), in_specs=(D, P()), out_specs=P()
        )
        return part(x, w)

    return jax.grad(loss)(w)


@case(
    M8,
    ((64, 32), D),
    expect="""
    all-gather f32[64,32] | called - | x -> tanh
    reduce-scatter f32[8,32] | called partial-sum | result of tanh -> the program's result
    """,
)
def called_gather_and_scatter(x):
    def body(x):
        whole = lax.all_gather(x, "data", axis=0, tiled=True)
        return lax.psum_scatter(jnp.tanh(whole), "data", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, in_specs=D, out_specs=D)(x)


@case(
    M42,
    ((64, 32), P("data", "model")),
    expect="""
    all-reduce f32[16,16] | inferred partial-sum | result of dot_general -> dot_general
    all-reduce f32[16,16] | called partial-sum | result of dot_general -> *
    """,
)
def partly_manual(x):
    def body(x):
        return lax.psum(x @ x.T, "data")

    return jax.shard_map(body, in_specs=D, out_specs=P(), axis_names={"data"})(x)


@case(
    M42,
    ((64, 32), D),
    ((32, 64), P("model", None)),
    expect="""
    3 all-reduce f32[16,64] | inferred partial-sum | result of dot_general -> dot_general
    all-reduce f32[64,16] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def remat_block(x, w):
    @jax.checkpoint
    def block(x, w):
        return jnp.sin(jnp.sin(x @ w) @ w.T)

    return jax.grad(lambda w: block(x, w).sum())(w)


@case(
    M42,
    ((64, 32), D),
    ((4, 32, 32), P(None, "data", "model")),
    expect="""
    all-gather f32[16,32] | inferred conflict | carried x -> dot_general
    3 all-gather f32[32,16] | inferred conflict | slice of ws -> dot_general
    all-gather f32[16,32] | inferred conflict | result of squeeze -> dot_general
    2 all-reduce f32[16,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def remat_scan(x, ws):
    def loss(ws):
        body = jax.checkpoint(lambda c, w: (jnp.tanh(c @ w), None))
        return lax.scan(body, x, ws)[0].sum()

    return jax.grad(loss)(ws)


@case(
    M42,
    ((64, 32), D),
    ((32, 64), P("model", None)),
    expect="""
    all-reduce f32[16,64] | inferred partial-sum | result of dot_general -> dot_general
    all-reduce f32[32,64] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def custom_vjp_matmul(x, w):
    @jax.custom_vjp
    def mul(x, w):
        return x @ w

    def forward(x, w):
        return x @ w, (x, w)

    def backward(saved, g):
        x, w = saved
        return g @ w.T, x.T @ g

    mul.defvjp(forward, backward)
    return jax.grad(lambda w: jnp.tanh(mul(x, w)).sum())(w)


@case(
    M42,
    ((4, 16, 32), P("data")),
    ((32, 64), P("model", None)),
    expect="all-to-all f32[16,2,32] | inferred conflict | w -> dot_general",
)
def vmap_spmd_axis(x, w):
    def one(x):
        return lax.with_sharding_constraint(jnp.tanh(x @ w), P(None, "model"))

    return jax.vmap(one, spmd_axis_name="data")(x)


@case(
    M8,
    ((64, 32), D),
    ((), P(), "bool"),
    expect="""
    all-to-all f32[8,8,4] | inferred whole-axis | x -> sort
    all-to-all f32[8,8,4] | inferred whole-axis | result of sort -> sort
    all-reduce f32[32] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def cond_branches(x, flag):
    return lax.cond(flag, lambda x: x - x.mean(0), lambda x: jnp.sort(x, axis=0), x)


@case(
    M8,
    ((64, 32), D),
    expect="""
    all-reduce f32[] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def while_until_small(x):
    def step(x):
        return x * 0.5 + x.sum() * 1e-6

    return lax.while_loop(lambda x: jnp.abs(x).max() > 1e-3, step, x)


@case(M8, ((64, 32), D), expect="all-to-all f32[8,8,4] | requested output-spec | x -> while")
def loop_carry_moves(x):
    def step(_, c):
        return lax.with_sharding_constraint(jnp.tanh(c), T) * 2

    return lax.fori_loop(0, 4, step, x)


@case(
    M8,
    ((8, 64, 16), P(None, "data")),
    ((16, 16), P()),
    expect="all-reduce f32[16] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def scan_over_split_rows(xs, w):
    return lax.scan(lambda c, x: (c + (x @ w).sum(0), None), jnp.zeros(16), xs)[0]


@case(
    M8,
    ((64, 8, 16), D),
    expect="all-gather f32[64,8,16] | inferred whole-axis | xs -> dynamic_slice",
)
def scan_over_split_time(xs):
    return lax.scan(lambda c, x: (c + jnp.tanh(x), None), jnp.zeros((8, 16)), xs)[0]


@case(
    M42,
    ((64, 32), P("data", "model")),
    ((32, 16), P("model", None)),
    axes="explicit",
    expect="""
    all-gather f32[16,32] | requested output-spec | x -> reshard
    all-to-all f32[16,2,8] | requested output-spec | w -> reshard
    """,
)
def explicit_reshard(x, w):
    x = jax.sharding.reshard(x, P("data", None))
    w = jax.sharding.reshard(w, P(None, "model"))
    return jnp.tanh(x @ w)


@case(
    M42,
    ((64, 32), P("data", None)),
    ((32, 16), P(None, "model")),
    axes="explicit",
    expect="all-reduce f32[8,32] | inferred partial-sum | result of dot_general -> dot_general",
)
def explicit_gradient(x, w):
    return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)


@case(
    M8,
    ((64, 32), D),
    ((32, 16), P()),
    axes="explicit",
    expect="""
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[16,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def mean_of_log_softmax(x, w):
    # What autodiff states inside the transposed log_softmax is nothing that the user wrote.
    def loss(w):
        return -jnp.mean(jax.nn.log_softmax(x @ w)[:, 0])

    return jax.value_and_grad(loss)(w)


@case(M8, ((64, 32), D), axes="explicit", expect="")
def explicit_sort(x):  # the sorted dim is not sharded, as the type demands
    return jnp.sort(x, axis=1)


@case(
    M8,
    ((64, 32), D),
    axes="explicit",
    expect="""
    all-reduce f32[32] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[32] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def explicit_softmax(x):
    return jax.nn.softmax(x, axis=0)


@case(
    M42,
    ((16, 8), D),
    ((8, 4), P("model")),
    axes="explicit",
    expect="""
    all-gather f32[8,4] | requested output-spec | w -> reshard
    all-gather f32[16,4] | requested output-spec | result of sin -> reshard
    """,
)
def explicit_out_sharding_gathers(x, w):
    y = jnp.dot(x, jax.sharding.reshard(w, P()))
    return jax.sharding.reshard(jnp.sin(y), P())


@case(
    M42,
    ((64, 32), D),
    ((32, 64), P("data", "model")),
    ((64, 32), P("model", "data")),
    expect="""
    all-gather f32[32,32] | inferred conflict | up -> dot_general
    all-gather f32[32,32] | inferred conflict | down -> dot_general
    all-reduce f32[16,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def fsdp_mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


@case(
    M42,
    ((64, 32), D),
    ((32, 64), P("data", "model")),
    ((64, 32), P("model", "data")),
    out=(P("data", "model"), P("model", "data")),
    expect="""
    all-gather f32[32,32] | inferred conflict | up -> dot_general
    2 all-gather f32[32,32] | inferred conflict | down -> dot_general
    all-reduce f32[16,32] | inferred partial-sum | result of dot_general -> dot_general
    2 all-reduce f32[32,32] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def fsdp_mlp_gradient(x, up, down):
    def loss(up, down):
        return jnp.tanh(jax.nn.relu(x @ up) @ down).sum()

    return jax.grad(loss, (0, 1))(up, down)


@case(
    M42,
    ((64, 32), P("model", None)),
    ((32, 64), P(None, "model")),
    expect="""
    collective-permute f32[32,16] | inferred conflict | w -> dot_general
    all-gather f32[32,64] | inferred conflict | w -> dot_general
    """,
)
def axis_on_batch_and_features(x, w):
    return jnp.tanh(x @ w)


@case(
    M8,
    ((32, 16), D),
    ((16, 4), P()),
    expect="all-reduce f32[4,16] | inferred partial-sum | result of dot_general -> dot_general",
)
def gradient_mean_data_parallel(x, w):
    return jax.grad(lambda w: ((x @ w) ** 2).mean())(w)


@case(
    M8,
    ((32, 16), D),
    ((16, 4), P()),
    expect="all-reduce f32[4,16] | inferred partial-sum | result of dot_general -> dot_general",
)
def hessian_vector(x, w):
    def loss(w):
        return jnp.tanh(x @ w).sum()

    return jax.jvp(jax.grad(loss), (w,), (w,))[1]


@case(
    M8,
    ((32, 16), D),
    ((32, 16), D),
    expect="all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum",
)
def norm_clip(x, g):
    total = jnp.sqrt((g**2).sum())
    return x - g * jnp.minimum(1.0, 1.0 / total)


@case(
    M42,
    ((16, 64), P("data", "model")),
    ((), P(), "int32"),
    expect="""
    all-gather f32[4,2] | inferred partial-sum | a step of argmax -> argmax
    all-gather s32[4,2] | inferred partial-sum | result of argmax -> argmax
    """,
)
def sample_categorical(logits, seed):
    key = jax.random.key(seed)
    return jax.random.categorical(key, logits)


@case(
    M8,
    ((32, 16), D),
    ((16,), P()),
    expect="collective-permute f32[4,16] | inferred halo | x -> rev",
)
def partial_with_static(x, w):
    return functools.reduce(jnp.add, [x * w, x[::-1] * w])


@case(
    M8,
    ((32, 64), D),
    ((64, 64), D),
    expect="all-gather f32[64,64] | inferred conflict | w -> dot_general",
)
def gather_of_a_loop_invariant(x, w):
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=4)[0]
