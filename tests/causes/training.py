"""A training step of a small transformer in flax nnx: FSDP over data, megatron over model.

Two layers of causal attention and an MLP between an embedding and a head, cross entropy and adam.
No activation is constrained.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import PartitionSpec as P

WIDTH, HEADS, HIDDEN, WORDS, BATCH, LENGTH = 64, 4, 256, 512, 16, 32
MESH = "data=4,model=2"
TX = optax.adam(1e-3)


class Block(nnx.Module):
    def __init__(self, rngs):
        heads = (HEADS, WIDTH // HEADS)
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.q = nnx.LinearGeneral(WIDTH, heads, rngs=rngs)
        self.k = nnx.LinearGeneral(WIDTH, heads, rngs=rngs)
        self.v = nnx.LinearGeneral(WIDTH, heads, rngs=rngs)
        self.out = nnx.LinearGeneral(heads, WIDTH, axis=(-2, -1), rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
        self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = self.q(h), self.k(h), self.v(h)
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True))
        h = self.norm2(x)
        h = jax.nn.gelu(self.up(h))
        return x + self.down(h)


class Model(nnx.Module):
    def __init__(self, rngs, layers):
        self.embed = nnx.Embed(WORDS, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, WORDS, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ConstrainedModel(Model):
    """The same with the constraint that the search should find."""

    def __call__(self, tokens):
        x = self.embed(tokens)
        x = jax.lax.with_sharding_constraint(x, P("data", None, None))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


KERNELS = {
    "q": P("data", "model", None),
    "k": P("data", "model", None),
    "v": P("data", "model", None),
    "out": P("model", None, "data"),
    "up": P("data", "model"),
    "down": P("model", "data"),
    "head": P("data", "model"),
}
BIASES = {"q": P("model"), "k": P("model"), "v": P("model"), "up": P("model"), "head": P("model")}


def spec_of(path, leaf):
    names = [getattr(key, "key", getattr(key, "name", None)) for key in path]
    if leaf.ndim == 0:
        return P()
    if names[-1] == "embedding":
        return P("model", "data")
    table = KERNELS if names[-1] == "kernel" else BIASES
    return table.get(names[-2], P())


def training_step(model=Model, layers=2):
    """Return the step, its arguments (shapes only), their specs and the results' specs."""
    graph, state = nnx.split(nnx.eval_shape(lambda: model(nnx.Rngs(0), layers)))
    shapes = nnx.to_pure_dict(state)
    params = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)
    opt = jax.eval_shape(TX.init, params)

    def loss_of(params, tokens, labels):
        variables = nnx.State(jax.tree.map(nnx.Param, params))
        logits = nnx.merge(graph, variables)(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(params, opt, tokens, labels):
        loss, gradients = jax.value_and_grad(loss_of)(params, tokens, labels)
        updates, opt = TX.update(gradients, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    specs = [jax.tree_util.tree_map_with_path(spec_of, tree) for tree in (params, opt)]
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    return step, (params, opt, tokens, tokens), (*specs, P("data"), P("data")), (*specs, P())
