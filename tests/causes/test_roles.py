"""What collectives do for the user: roles that follow from how a program is written."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32

MESH = "data=4,model=2"
BATCH = f32(32, 64), f32(32, 64)
PARAMS = {"w1": f32(64, 256), "b1": f32(256), "w2": f32(256, 64)}
FSDP = {"w1": P("data"), "b1": P(), "w2": P("data")}
MEGATRON = {"w1": P(None, "model"), "b1": P("model"), "w2": P("model")}


def loss(params, x, y):
    h = jax.nn.gelu(x @ params["w1"] + params["b1"])
    return jnp.mean((h @ params["w2"] - y) ** 2)


def constrained_loss(params, x, y):
    h = jax.lax.with_sharding_constraint(x @ params["w1"] + params["b1"], P("data"))
    return jnp.mean((jax.nn.gelu(h) @ params["w2"] - y) ** 2)


def trainer(tx, loss=loss):
    def step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def state_specs(tx, specs, params=PARAMS):
    """Give for each array of an optimizer's state the spec of its parameter."""
    shapes = jax.eval_shape(tx.init, params)
    return optax.tree_map_params(
        tx, lambda _, spec: spec, shapes, specs, transform_non_params=lambda _: P()
    )


def roles(fn, *args, mesh=MESH, **options):
    """Give how many collectives have each role, for what, and along which axes."""
    report = sn.explain(fn, *args, mesh=mesh, origins=False, **options)
    return Counter((c.role, c.role_of, *(c.axes or ())) for c in report.collectives)


def of_step(tx, specs, loss=loss, mesh=MESH, **options):
    args = PARAMS, jax.eval_shape(tx.init, PARAMS), *BATCH
    placed = specs, state_specs(tx, specs), P("data"), P("data")
    return roles(trainer(tx, loss), *args, in_specs=placed, mesh=mesh, **options)


def named(role, *axes, names=("w1", "b1", "w2")):
    return Counter({(role, f"params['{name}']", *axes): 1 for name in names})


ADAM = optax.adam(1e-3)
OPTIMIZERS = {
    "sgd": optax.sgd(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": ADAM,
    "adamw": optax.adamw(1e-3),
    "lion": optax.lion(1e-3),
}
LOSS = Counter({("loss", "", "data"): 1})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_data_parallel_steps_send_gradients_and_the_loss(name):
    specs = dict.fromkeys(PARAMS, P())
    assert of_step(OPTIMIZERS[name], specs) == named("gradient", "data") + LOSS


def test_fsdp_steps_gather_parameters_and_scatter_gradients():
    """The backward pass needs `w2` once more, and takes what the forward pass gathered."""
    gathers = named("parameter-gather", "data", names=("w1", "w2"))
    scatters = named("gradient-scatter", "data", names=("w1", "w2"))
    bias = named("gradient", "data", names=("b1",))
    state = state_specs(ADAM, FSDP)
    found = of_step(ADAM, FSDP, constrained_loss, mesh="data=8", out_specs=(FSDP, state, P()))
    assert found == gathers + scatters + bias + LOSS


def test_megatron_steps_sum_over_the_shards_of_the_second_matrix():
    sums = named("tensor-parallel-sum", "model", names=("w2",))
    assert of_step(ADAM, MEGATRON) == sums + named("gradient", "data") + LOSS


def test_gradients_that_are_returned_are_those_of_the_argument():
    specs = dict.fromkeys(PARAMS, P()), P("data"), P("data")
    found = roles(jax.value_and_grad(loss), PARAMS, *BATCH, in_specs=specs)
    assert found == named("gradient", "data") + LOSS


def test_a_gradient_that_comes_out_whole_is_not_scattered():
    specs = FSDP, P("data"), P("data")
    found = roles(jax.grad(constrained_loss), PARAMS, *BATCH, in_specs=specs, out_specs=P())
    gathers = named("parameter-gather", "data", names=("w1", "w2"))
    assert found == gathers + named("gradient", "data")


# What the program calls itself


def synchronised(params, x, y):
    """Average gradients by hand, as each device has those of its part of the batch."""

    def body(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        value, grads = jax.lax.pmean((value, grads), "data")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    mesh = jax.sharding.get_abstract_mesh()
    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(
        params, x, y
    )


def test_a_called_sum_of_gradients_is_known_as_such():
    found = roles(synchronised, PARAMS, *BATCH, in_specs=(P(), P("data"), P("data")))
    assert found == named("gradient", "data") + LOSS


def test_what_is_called_for_nothing_that_is_known_is_called():
    def ring(x):
        def body(x):
            return jax.lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)])

        return jax.shard_map(body, in_specs=P("data"), out_specs=P("data"))(x)

    assert roles(ring, f32(32, 64), in_specs=P("data")) == Counter({("called", "", "data"): 1})


# Programs without a backward pass


def apply(params, tokens):
    x = params["table"][tokens]
    return jax.nn.gelu(x @ params["w1"]) @ params["w2"]


TABLE = PARAMS | {"table": f32(512, 64)}
TOKENS = jax.ShapeDtypeStruct((16, 8), "int32")


def test_sums_of_a_sharded_model_that_is_only_applied():
    specs = MEGATRON | {"table": P("model")}
    found = roles(apply, TABLE, TOKENS, in_specs=(specs, P("data")))
    assert found == named("tensor-parallel-sum", "model", names=("table", "w2"))


def clusters(x, centres):
    nearest = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
    return jax.nn.one_hot(nearest, 8).T @ x


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T) @ v


@pytest.mark.parametrize(
    ("fn", "args", "specs"),
    [
        (clusters, (f32(64, 16), f32(8, 16)), (P("data"), P())),
        (attention, (f32(64, 16),) * 3, (P(), P("data"), P("data"))),
        (jnp.dot, (f32(64, 16), f32(16, 8)), (P(None, "data"), P("data"))),
    ],
)
def test_sums_over_data_have_no_role(fn, args, specs):
    assert {role for role, *_ in roles(fn, *args, in_specs=specs)} == {None}


def test_a_reshard_that_is_written_is_named_after_its_argument():
    def whole(x):
        return jax.lax.with_sharding_constraint(x, P()) * 2

    found = roles(whole, f32(32, 64), in_specs=P("data"))
    assert found == Counter({("requested-reshard", "x", "data"): 1})
