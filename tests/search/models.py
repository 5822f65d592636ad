"""Programs to plan for, by their shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

WIDTH, HIDDEN, HEADS, BATCH, LENGTH = 256, 1024, 8, 4, 64
S = jax.ShapeDtypeStruct


def f32(*shape):
    return S(shape, jnp.float32)


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def layer(p, x):
    h = norm(x)
    q, k, v = (jnp.einsum("btd,dhk->bhtk", h, p[name]) for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bhtk,bhsk->bhts", q, k))
    mixed = jnp.einsum("bhts,bhsk->bhtk", weights, v)
    x = x + jnp.einsum("bhtk,hkd->btd", mixed, p["o"])
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def transformer(params, x):
    for p in params:
        x = layer(p, x)
    return x


def transformer_arguments(layers=2):
    heads = f32(WIDTH, HEADS, WIDTH // HEADS)
    one = {"q": heads, "k": heads, "v": heads, "o": f32(HEADS, WIDTH // HEADS, WIDTH)}
    one |= {"up": f32(WIDTH, HIDDEN), "down": f32(HIDDEN, WIDTH)}
    return [dict(one) for _ in range(layers)], f32(BATCH, LENGTH, WIDTH)


def mlp(x, up, down):
    return jnp.tanh(x @ up) @ down


MLP = (f32(6, 512), f32(512, 2048), f32(2048, 512))
