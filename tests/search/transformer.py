"""A two-layer transformer with attention, as somebody writes it for Auto axes."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

HEADS, WIDTH = 4, 64


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale


def attention(x, p):
    batch, length, _ = x.shape
    heads = (batch, length, HEADS, WIDTH // HEADS)
    q = (x @ p["wq"]).reshape(heads)
    k = (x @ p["wk"]).reshape(heads)
    v = (x @ p["wv"]).reshape(heads)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(WIDTH / HEADS)
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    out = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return out.reshape(batch, length, WIDTH) @ p["wo"]


def mlp(x, p):
    return jax.nn.gelu(x @ p["up"]) @ p["down"]


def block(x, p):
    x = x + attention(norm(x, p["ln1"]), p)
    return x + mlp(norm(x, p["ln2"]), p)


def model(params, tokens):
    x = params["embed"][tokens]
    for layer in params["layers"]:
        x = block(x, layer)
    return norm(x, params["ln"]) @ params["head"]


def scanned(params, tokens):
    x = params["embed"][tokens]
    x, _ = jax.lax.scan(lambda x, p: (block(x, p), None), x, params["layers"])
    return norm(x, params["ln"]) @ params["head"]


def loss(params, tokens, labels):
    log_probs = jax.nn.log_softmax(model(params, tokens))
    return -jnp.take_along_axis(log_probs, labels[..., None], -1).mean()


def step(params, tokens, labels):
    value, grads = jax.value_and_grad(loss)(params, tokens, labels)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


TOKENS = jax.ShapeDtypeStruct((8, 32), jnp.int32)
LAYER = {
    **dict.fromkeys(("wq", "wk", "wv", "wo"), f32(WIDTH, WIDTH)),
    "up": f32(WIDTH, 4 * WIDTH),
    "down": f32(4 * WIDTH, WIDTH),
    "ln1": f32(WIDTH),
    "ln2": f32(WIDTH),
}
PARAMS = {
    "embed": f32(256, WIDTH),
    "layers": [LAYER, LAYER],
    "ln": f32(WIDTH),
    "head": f32(WIDTH, 256),
}
STACKED = {**PARAMS, "layers": jax.tree.map(lambda x: f32(2, *x.shape), LAYER)}

_COLUMNS, _ROWS = P(None, "model"), P("model", None)
TP_LAYER = {
    **dict.fromkeys(("wq", "wk", "wv", "up"), _COLUMNS),
    **dict.fromkeys(("wo", "down"), _ROWS),
    "ln1": P(),
    "ln2": P(),
}
TP = {"embed": P(), "layers": [TP_LAYER] * 2, "ln": P(), "head": _COLUMNS}
TP_STACKED = {
    **TP,
    "layers": jax.tree.map(lambda s: P(None, *s), TP_LAYER, is_leaf=lambda s: isinstance(s, P)),
}
_BOTH, _TURNED = P("data", "model"), P("model", "data")
FSDP_LAYER = {
    **dict.fromkeys(("wq", "wk", "wv", "up"), _BOTH),
    **dict.fromkeys(("wo", "down"), _TURNED),
    "ln1": P(),
    "ln2": P(),
}
FSDP = {"embed": _TURNED, "layers": [FSDP_LAYER] * 2, "ln": P(), "head": _BOTH}
