"""Small programs whose collectives are known: judged by hand in the text of the programs.

Each case gives the collectives as (kind, dtype and shape of the result on one device, axes,
trips), in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

M42 = "data=4,model=2"
M8 = "data=8"

Expected = tuple[str, str, tuple[str, ...], int]


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def s32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


@dataclass(frozen=True)
class Case:
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    specs: tuple[Any, ...]
    expect: tuple[Expected, ...] = ()
    mesh: str = M8
    axes: str = "auto"
    out: Any = None
    groups: tuple[tuple[int, ...], ...] | None = None
    expect_jax_0_11: tuple[Expected, ...] | None = None


def tanh_matmul(a, b):
    return jnp.tanh(a @ b)


def scan_matmul(c, ws):
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), c, ws)[0]


def accumulate(w, xs):
    def step(total, x):
        return total + jax.grad(lambda w: jnp.tanh(x @ w).sum())(w), None

    return lax.scan(step, jnp.zeros_like(w), xs)[0]


def cross_entropy(logits, labels):
    log_probs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_probs, labels[:, None], 1).mean()


def constrain_in_the_middle(a, b, c):
    return c + lax.with_sharding_constraint(a + b, P(None, ("x", "y"), None))


def uneven(scale):
    return lax.with_sharding_constraint(jnp.ones((17, 16)) * scale, P("data"))


def counts_and_values(table, index, values):
    counts = jnp.zeros(16).at[index].add(1.0)
    return counts, jnp.zeros((16, 8)).at[index].add(values)


def permute_rows(x):
    keys = jax.random.split(jax.random.key(0), x.shape[0])
    order = jax.vmap(lambda key: jax.random.permutation(key, x.shape[1]))(keys)
    return jnp.take_along_axis(x, order[:, :, None], axis=1)


def lu_through_ffi(x):
    call = jax.ffi.ffi_call(
        "lapack_sgetrf_ffi",
        (
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            jax.ShapeDtypeStruct(x.shape[:-1], jnp.int32),
            jax.ShapeDtypeStruct(x.shape[:-2], jnp.int32),
        ),
        vmap_method="broadcast_all",
    )
    return call(x)[0]


MODEL_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
BIG = P(None, "data", None)

CASES: dict[str, Case] = {
    "1 rows split": Case(
        tanh_matmul, (f32(256, 512), f32(512, 1024)), (P("data", None), P()), mesh=M42
    ),
    "2 rows and columns split": Case(
        tanh_matmul, (f32(256, 512), f32(512, 1024)), (P("data", None), P(None, "model")), mesh=M42
    ),
    "3 contracting dimension split": Case(
        tanh_matmul,
        (f32(256, 512), f32(512, 1024)),
        (P("data", "model"), P("model", None)),
        (("all-reduce", "f32[64,1024]", ("model",), 1),),
        mesh=M42,
        groups=MODEL_PAIRS,
    ),
    "4 one contracting dimension split": Case(
        tanh_matmul,
        (f32(256, 512), f32(512, 1024)),
        (P("model", "data"), P()),
        (("all-gather", "f32[128,512]", ("data",), 1),),
        mesh=M42,
        groups=((0, 2, 4, 6), (1, 3, 5, 7)),
    ),
    "5 both want data": Case(
        jnp.matmul,
        (f32(256, 256), f32(256, 256)),
        (P("data", None), P(None, "data")),
        (("all-gather", "f32[256,256]", ("data",), 1),),
    ),
    "6 sort": Case(
        jnp.sort, (f32(8192),), (P("data"),), (("all-gather", "f32[8192]", ("data",), 1),)
    ),
    "7 top_k": Case(
        lambda x: lax.top_k(x, 4),
        (f32(2, 8192),),
        (P(None, "data"),),
        (("all-gather", "f32[2,8192]", ("data",), 1),),
    ),
    "7b top_k over a batch": Case(
        lambda x: lax.top_k(x, 4),
        (f32(64, 128),),
        (P("data"),),
        (("all-gather", "f32[64,128]", ("data",), 1),),
    ),
    "8 cumsum": Case(
        lambda x: jnp.cumsum(x, -1),
        (f32(8, 1024),),
        (P(None, "data"),),
        (("all-gather", "f32[8,1024]", ("data",), 1),),
    ),
    "9 roll by a traced amount": Case(
        jnp.roll,
        (f32(16), s32()),
        (P("data"), P()),
        (("all-gather", "f32[16]", ("data",), 1),),
    ),
    "10 scatter into a slice": Case(
        lambda x: x.at[0:3].set(1.0),
        (f32(16, 8),),
        (P("data"),),
        (("all-gather", "f32[16,8]", ("data",), 1),),
    ),
    "11 LU through the FFI": Case(
        lu_through_ffi,
        (f32(8, 4, 4),),
        (P("data"),),
        (("all-gather", "f32[8,4,4]", ("data",), 1),),
        axes="explicit",
    ),
    "12 a constraint in the middle": Case(
        constrain_in_the_middle,
        (f32(16, 16, 16), f32(16, 16, 16), f32(16, 16, 16)),
        (P("y", None, "x"), P("y", None, "x"), P(None, ("x", "y"), None)),
        (
            ("all-gather", "f32[8,16,16]", ("x",), 1),
            ("all-gather", "f32[16,16,16]", ("y",), 1),
        ),
        mesh="x=4,y=2",
        out=P(None, ("x", "y"), None),
    ),
    "13 rows of a table": Case(
        lambda t, i: t[i],
        (f32(1024, 64), s32(32)),
        (P("data", None), P()),
        (("all-reduce", "f32[32,64]", ("data",), 1),),
    ),
    "14 cross entropy": Case(
        cross_entropy,
        (f32(32, 1024), s32(32)),
        (P(None, "data"), P()),
        (
            ("all-reduce", "f32[32]", ("data",), 1),
            ("all-reduce", "f32[32]", ("data",), 1),
            ("all-reduce", "f32[32,1]", ("data",), 1),
        ),
    ),
    "15 a partial sum into a split output": Case(
        jnp.matmul,
        (f32(64, 512), f32(512, 64)),
        (P(None, "data"), P("data", None)),
        (("all-reduce", "f32[64,64]", ("data",), 1),),
        out=P("data"),
    ),
    "16 scan": Case(
        scan_matmul,
        (f32(32, 64), f32(4, 64, 64)),
        (P("data", None), BIG),
        (("all-gather", "f32[64,64]", ("data",), 4),),
    ),
    "17 gradient of a scan": Case(
        lambda c, ws: jax.grad(lambda ws: scan_matmul(c, ws).sum())(ws),
        (f32(32, 64), f32(4, 64, 64)),
        (P("data", None), BIG),
        (
            ("all-gather", "f32[64,64]", ("data",), 4),
            ("all-gather", "f32[64,64]", ("data",), 4),
            ("all-reduce", "f32[64,64]", ("data",), 4),
        ),
        out=BIG,
    ),
    "18 gradient accumulation": Case(
        accumulate,
        (f32(64, 64), f32(4, 32, 64)),
        (P(), P(None, "data", None)),
        (("all-reduce", "f32[64,64]", ("data",), 4),),
    ),
    "19 uneven constraint": Case(
        uneven, (f32(),), (P(),), (("all-gather", "f32[24,16]", ("data",), 1),)
    ),
    "20 fft along a whole dimension": Case(
        lambda x: jnp.fft.fft(x, n=4096),
        (f32(1000, 1000),),
        (P("data"),),
        out=P("data"),
        expect_jax_0_11=(("all-gather", "c64[1000,4096]", ("data",), 1),),
    ),
    "21 permuted rows": Case(permute_rows, (f32(24, 4096, 16),), (P("data"),), out=P("data")),
    "22 batched cholesky": Case(jnp.linalg.cholesky, (f32(8, 16, 16),), (P("data"),)),
    "22 batched eigh": Case(jnp.linalg.eigh, (f32(8, 16, 16),), (P("data"),)),
    "23 psum in shard_map": Case(
        lambda a, b: lax.psum(a @ b, "model"),
        (f32(256, 512), f32(512, 1024)),
        (P("data", "model"), P("model", None)),
        (("all-reduce", "f32[64,1024]", ("model",), 1),),
        mesh=M42,
        axes="manual",
        out=P("data", None),
        groups=MODEL_PAIRS,
    ),
    "23b combined": Case(
        counts_and_values,
        (f32(16, 8), s32(64), f32(64, 8)),
        (P(), P("data"), P("data", None)),
        (
            ("all-reduce", "f32[16]", ("data",), 1),
            ("all-reduce", "f32[16,8]", ("data",), 1),
        ),
    ),
    "24 explicit einsum": Case(
        lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None)),
        (f32(256, 512), f32(512, 1024)),
        (P("data", "model"), P("model", None)),
        (("all-reduce", "f32[64,1024]", ("model",), 1),),
        mesh=M42,
        axes="explicit",
        groups=MODEL_PAIRS,
    ),
}
