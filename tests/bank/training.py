"""Whole training steps: a flax block with adam, under four plans of placement.

The parameters are a plain dict by path, so that a rule from path to spec is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import PartitionSpec as P

VOCAB, WIDTH, HEADS, LENGTH, BATCH = 128, 64, 4, 16, 16
MESH = "data=4,model=2"

Rule = Callable[[str, tuple[int, ...]], P]


class Block(nnx.Module):
    """Attention and a two-layer perceptron, with a norm before each."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Model(nnx.Module):
    """Embedding, blocks, head."""

    def __init__(self, layers: int, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(VOCAB, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(layers)])
        self.head = nnx.Linear(WIDTH, VOCAB, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def step_and_shapes(layers: int = 1) -> tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]:
    """Return a training step of (params, moments, tokens, targets), and the shapes of its state."""
    abstract = nnx.eval_shape(lambda: Model(layers, nnx.Rngs(0)))
    graph, state = nnx.split(abstract)
    flat = {"/".join(map(str, path)): leaf for path, leaf in nnx.to_flat_state(state)}
    shapes = {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in flat.items()}
    params = {name: leaf for name, leaf in shapes.items() if leaf.dtype == jnp.float32}
    optimizer = optax.adam(1e-3)
    moments = jax.eval_shape(optimizer.init, params)
    paths = [path for path, _ in nnx.to_flat_state(state)]

    def loss(params: Mapping[str, jax.Array], tokens: jax.Array, targets: jax.Array) -> jax.Array:
        leaves = [
            (path, _replaced(flat["/".join(map(str, path))], params.get("/".join(map(str, path)))))
            for path in paths
        ]
        logits = nnx.merge(graph, nnx.from_flat_state(leaves))(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def train_step(params, moments, tokens, targets):  # type: ignore[no-untyped-def]
        value, grads = jax.value_and_grad(loss)(params, tokens, targets)
        updates, moments = optimizer.update(grads, moments)
        return optax.apply_updates(params, updates), moments, value

    return train_step, params, moments


def _replaced(leaf: Any, value: Any) -> Any:
    if value is not None:
        return leaf.replace(value)
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf.replace(jax.random.key(0))
    return leaf.replace(jnp.zeros(leaf.shape, leaf.dtype))


def data_parallel(path: str, shape: tuple[int, ...]) -> P:
    """Every parameter replicated."""
    return P()


def megatron(path: str, shape: tuple[int, ...]) -> P:
    """Heads, hidden features and the vocabulary over model."""
    name = path.split("/")
    if "embed" in name:
        return P("model", None)
    if "head" in name or "up" in name:
        return P(None, "model") if len(shape) == 2 else P("model")
    if "down" in name:
        return P("model", None) if len(shape) == 2 else P()
    if name[-2] in ("query", "key", "value"):
        return P(None, "model", None) if len(shape) == 3 else P("model", None)
    if name[-2] == "out":
        return P("model", None, None) if len(shape) == 3 else P()
    return P()


def fsdp(path: str, shape: tuple[int, ...]) -> P:
    """The first dimension over all devices."""
    both = ("data", "model")
    return next((P(*[None] * dim, both) for dim, size in enumerate(shape) if size % 8 == 0), P())


def fsdp_and_megatron(path: str, shape: tuple[int, ...]) -> P:
    """Megatron over model, and the first dimension that is left and divides over data."""
    spec = [*megatron(path, shape), *[None] * len(shape)][: len(shape)]
    for dim, (size, axis) in enumerate(zip(shape, spec, strict=True)):
        if axis is None and size % 4 == 0:
            spec[dim] = "data"
            break
    return P(*spec)


PLANS: dict[str, tuple[Rule, P]] = {
    "data parallel": (data_parallel, P(("data", "model"))),
    "megatron": (megatron, P("data")),
    "fsdp": (fsdp, P(("data", "model"))),
    "fsdp and megatron": (fsdp_and_megatron, P("data")),
}
