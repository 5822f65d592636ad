"""A decoder as MaxText builds it: a scanned stack of layers that are recomputed, in flax's linen.

Parameters and activations name logical axes, and one table of rules maps them to FSDP and tensor
parallelism. The sizes are small, so that hand calculations are short.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state

LAYERS, BATCH, LENGTH, VOCAB = 3, 16, 8, 128
WIDTH, HEADS, GROUPS, DEPTH, HIDDEN = 32, 4, 2, 16, 96
RULES = (
    ("activation_batch", "fsdp"),
    ("activation_heads", "tensor"),
    ("activation_mlp", "tensor"),
    ("activation_vocab", "tensor"),
    ("embed", "fsdp"),
    ("heads", "tensor"),
    ("groups", "tensor"),
    ("mlp", "tensor"),
    ("vocab", "tensor"),
)


def weight(module, name, shape, axes):
    init = nn.with_logical_partitioning(nn.initializers.lecun_normal(), axes)
    return module.param(name, init, shape)


def placed(x, *axes):
    return nn.with_logical_constraint(x, axes)


class RMSNorm(nn.Module):
    @nn.compact
    def __call__(self, x):
        scale = self.param(
            "scale", nn.with_logical_partitioning(nn.initializers.ones, ("norm",)), (x.shape[-1],)
        )
        return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def rotary(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 1e4 ** (jnp.arange(half) / half)
    sin, cos = jnp.sin(angles)[None, :, None], jnp.cos(angles)[None, :, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x):
        wq = weight(self, "query", (WIDTH, HEADS, DEPTH), ("embed", "heads", None))
        wk = weight(self, "key", (WIDTH, GROUPS, DEPTH), ("embed", "groups", None))
        wv = weight(self, "value", (WIDTH, GROUPS, DEPTH), ("embed", "groups", None))
        wo = weight(self, "out", (HEADS, DEPTH, WIDTH), ("heads", None, "embed"))
        q = rotary(jnp.einsum("bsd,dhk->bshk", x, wq))
        k = rotary(jnp.einsum("bsd,dhk->bshk", x, wk))
        v = jnp.einsum("bsd,dhk->bshk", x, wv)
        q = placed(q, "activation_batch", None, "activation_heads", None)
        q = q.reshape(*q.shape[:2], GROUPS, HEADS // GROUPS, DEPTH)
        scores = jnp.einsum("bsgrk,btgk->bgrst", q, k) / DEPTH**0.5
        mask = jnp.tril(jnp.ones((q.shape[1],) * 2, bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bgrst,btgk->bsgrk", weights, v).reshape(*x.shape[:2], HEADS, DEPTH)
        return jnp.einsum("bshk,hkd->bsd", mixed, wo)


class SwiGLU(nn.Module):
    @nn.compact
    def __call__(self, x):
        gate = weight(self, "gate", (WIDTH, HIDDEN), ("embed", "mlp"))
        up = weight(self, "up", (WIDTH, HIDDEN), ("embed", "mlp"))
        down = weight(self, "down", (HIDDEN, WIDTH), ("mlp", "embed"))
        h = jax.nn.silu(x @ gate) * (x @ up)
        h = placed(h, "activation_batch", None, "activation_mlp")
        return h @ down


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        x = placed(x, "activation_batch", None, None)
        x = x + Attention(name="attention")(RMSNorm(name="norm")(x))
        x = x + SwiGLU(name="mlp")(RMSNorm(name="mlp_norm")(x))
        return placed(x, "activation_batch", None, None), None


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        embedding = weight(self, "embedding", (VOCAB, WIDTH), ("vocab", "embed"))
        x = placed(embedding[tokens], "activation_batch", None, None)
        stack = nn.scan(
            nn.remat(Layer, prevent_cse=False),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=LAYERS,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        x, _ = stack(name="layers")(x, None)
        head = weight(self, "head", (WIDTH, VOCAB), ("embed", "vocab"))
        return placed(
            RMSNorm(name="last_norm")(x) @ head, "activation_batch", None, "activation_vocab"
        )


def initial(key):
    model = Decoder()
    params = model.init(key, jnp.zeros((BATCH, LENGTH), jnp.int32))["params"]
    adamw = optax.adamw(1e-3)
    return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=adamw)


def step(state, tokens):
    def loss(params):
        logits = state.apply_fn({"params": params}, tokens)[:, :-1]
        picked = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return picked.mean()

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value
