"""The programs of the table of known cases, 1 to 24."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.bank.case import case

M42, M8 = "data=4,model=2", "data=8"
D = P("data")


@case(M42, ((256, 512), D), ((512, 1024),), expect="")
def c1_no_collective(a, b):
    return jnp.tanh(a @ b)


@case(M42, ((256, 512), D), ((512, 1024), P(None, "model")), expect="")
def c2_no_collective(a, b):
    return jnp.tanh(a @ b)


# The contracting dim is sharded over model on both sides: partial sums.
@case(
    M42,
    ((256, 512), P("data", "model")),
    ((512, 1024), P("model", None)),
    expect="all-reduce f32[64,1024] | inferred partial-sum | result of dot_general -> dot_general",
)
def c3_contracting(a, b):
    return jnp.tanh(a @ b)


# a has data on the contracting dim, b is replicated.
@case(
    M42,
    ((256, 512), P("model", "data")),
    ((512, 1024),),
    expect="all-gather f32[128,512] | inferred conflict | a -> dot_general",
)
def c4_one_side(a, b):
    return jnp.tanh(a @ b)


# The result cannot have data on both dims.
@case(
    M8,
    ((256, 256), D),
    ((256, 256), P(None, "data")),
    expect="all-gather f32[256,256] | inferred conflict | b -> dot_general",
)
def c5_axis_twice(a, b):
    return a @ b


@case(M8, ((8192,), D), expect="all-gather f32[8192] | inferred whole-axis | x -> sort")
def c6_sort(x):
    return jnp.sort(x)


@case(
    M8,
    ((2, 8192), P(None, "data")),
    expect="all-gather f32[2,8192] | inferred whole-axis | x -> top_k",
)
def c7_top_k(x):
    return lax.top_k(x, 4)


@case(M8, ((64, 128), D), expect="all-gather f32[64,128] | inferred whole-axis | x -> top_k")
def c7b_top_k_batch(x):
    return lax.top_k(x, 4)


@case(
    M8,
    ((8, 1024), P(None, "data")),
    expect="all-gather f32[8,1024] | inferred whole-axis | x -> cumsum",
)
def c8_cumsum(x):
    return jnp.cumsum(x, -1)


@case(
    M8,
    ((16,), D),
    ((), P(), "int32"),
    expect="all-gather f32[16] | inferred whole-axis | x -> roll",
)
def c9_roll_traced(x, k):
    return jnp.roll(x, k)


@case(M8, ((16, 8), D), expect="all-gather f32[16,8] | inferred whole-axis | x -> scatter")
def c10_set(x):
    return x.at[0:3].set(1.0)


@case(
    M8,
    ((8, 4, 4), D),
    axes="explicit",
    expect="all-gather f32[8,4,4] | inferred whole-axis | x -> ffi_call",
)
def c11_ffi(x):
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        jax.ShapeDtypeStruct(x.shape[:2], jnp.int32),
        jax.ShapeDtypeStruct(x.shape[:1], jnp.int32),
    ]
    call = jax.ffi.ffi_call(
        "lapack_sgetrf_ffi",
        shapes,
        input_layouts=[(0, 2, 1)],
        output_layouts=[(0, 2, 1), None, None],
    )
    return call(x)[0]


S12 = P(None, ("x", "y"), None)


# The compiler warns of full rematerialisation at the constraint.
@case(
    "x=4,y=2",
    ((16, 16, 16), P("y", None, "x")),
    ((16, 16, 16), P("y", None, "x")),
    ((16, 16, 16), S12),
    out=S12,
    expect="""
    all-gather f32[8,16,16] | requested output-spec | result of add -> sharding_constraint
    all-gather f32[16,16,16] | requested output-spec | result of add -> sharding_constraint
    """,
)
def c12_constraint(a, b, c):
    return c + lax.with_sharding_constraint(a + b, S12)


@case(
    M8,
    ((1024, 64), D),
    ((32,), P(), "int32"),
    expect="all-reduce f32[32,64] | inferred partial-sum | result of gather -> gather",
)
def c13_rows(t, i):
    return t[i]


@case(
    M8,
    ((32, 1024), P(None, "data")),
    ((32,), P(), "int32"),
    expect="""
    all-reduce f32[32] | inferred partial-sum | result of reduce_max -> reduce_max
    all-reduce f32[32] | inferred partial-sum | result of reduce_sum -> reduce_sum
    all-reduce f32[32,1] | inferred partial-sum | result of gather -> gather
    """,
)
def c14_cross_entropy(logits, labels):
    logp = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logp, labels[:, None], 1).mean()


@case(
    M8,
    ((64, 512), P(None, "data")),
    ((512, 64), D),
    out=D,
    expect="all-reduce f32[64,64] | inferred partial-sum | result of dot_general -> dot_general",
)
def c15_out(a, b):
    return a @ b


@case(
    M8,
    ((32, 64), D),
    ((4, 64, 64), P(None, "data", None)),
    expect="all-gather f32[64,64] | inferred conflict | slice of ws -> dot_general",
)
def c16_scan(c, ws):
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), c, ws)[0]


@case(
    M8,
    ((32, 64), D),
    ((4, 64, 64), P(None, "data", None)),
    out=P(None, "data", None),
    expect="""
    2 all-gather f32[64,64] | inferred conflict | slice of ws -> dot_general
    all-reduce f32[64,64] | inferred partial-sum | result of dot_general -> dot_general
    """,
)
def c17_scan_grad(c, ws):
    def loss(ws):
        return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), c, ws)[0].sum()

    return jax.grad(loss)(ws)


@case(
    M8,
    ((64, 64),),
    ((4, 32, 64), P(None, "data")),
    expect="all-reduce f32[64,64] | inferred partial-sum | result of dot_general -> dot_general",
)
def c18_accumulate(w, xs):
    def step(total, x):
        return total + jax.grad(lambda w: jnp.tanh(x @ w).sum())(w), None

    return lax.scan(step, jnp.zeros_like(w), xs)[0]


@case(
    M8,
    ((16,),),
    expect="all-gather f32[24,16] | inferred uneven | result of sharding_constraint -> the program's result",
)
def c19_uneven(k):
    return lax.with_sharding_constraint(jnp.outer(jnp.arange(17.0), k), D)


@case(
    M8,
    ((1000, 1000), D),
    out=D,
    expect="",
    expect_jax_0_11="all-gather c64[1000,4096] | inferred whole-axis | * -> fft",
)
def c20_fft(x):
    return jnp.fft.fft(x, n=4096)


@case(M8, ((24, 4096, 16), D), out=D, expect="")
def c21_permute_rows(x):
    keys = jax.random.split(jax.random.key(0), 24)
    return jax.vmap(jax.random.permutation)(keys, x)


@case(M8, ((8, 16, 16), D), expect="")
def c22_cholesky(x):
    return jnp.linalg.cholesky(x)


@case(
    M42,
    ((256, 512), P("data", "model")),
    ((512, 1024), P("model", None)),
    expect="all-reduce f32[64,1024] | called partial-sum | result of dot_general -> *",
)
def c23_psum(a, b):
    return jax.shard_map(
        lambda a, b: lax.psum(a @ b, "model"),
        in_specs=(P("data", "model"), P("model", None)),
        out_specs=P("data", None),
    )(a, b)


# One tuple all-reduce in the optimized program.
@case(
    M8,
    ((32,), D, "int32"),
    ((32,), D),
    expect="""
    2 all-reduce f32[16] | inferred partial-sum | result of scatter-add -> scatter-add
    all-reduce f32[] | inferred partial-sum | result of reduce_sum -> reduce_sum
    """,
)
def c23b_combined(i, v):
    zeros = jnp.zeros(16)
    return zeros.at[i].add(1.0), zeros.at[i].add(v), v.sum()


@case(
    M42,
    ((256, 512), P("data", "model")),
    ((512, 1024), P("model", None)),
    axes="explicit",
    expect="all-reduce f32[64,1024] | requested partial-sum | result of dot_general -> dot_general",
)
def c24_out_sharding(a, b):
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None))
