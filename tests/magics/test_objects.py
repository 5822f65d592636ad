"""Models, optimizers and states of other libraries, in cells that use them as they are meant."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def cell(ip, run):
    run("%mesh data=4,model=2")
    run("x = np.linspace(-1, 1, 16 * 8, dtype=np.float32).reshape(16, 8)")
    return run


def last(ip):
    return ip.magics_manager.registry["ShardMagics"].session.last


NNX = """
from flax import nnx
import optax
model = nnx.Linear(8, 4, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
alias, before = model, np.asarray(model.kernel[...])
def loss(model, x): return (model(x) ** 2).mean()
"""
STEP = """
value, grads = nnx.value_and_grad(loss)(model, x)
optimizer.update(model, grads)
"""


def test_an_nnx_training_step_changes_the_users_model(ip, cell):
    cell(NNX)
    cell(f"%%shard x=P('data')\n{STEP}")
    space = ip.user_ns
    assert space["alias"] is space["model"]
    kernel = np.asarray(space["alias"].kernel[...])
    assert np.allclose(np.abs(kernel - space["before"]), 1e-2, rtol=1e-3)  # Adam's first step
    assert int(space["optimizer"].step[...]) == 1
    assert {c.kind for c in last(ip).collectives} == {"all-reduce"}


def test_an_nnx_model_can_be_used_behind_its_step(ip, cell):
    cell(NNX)
    cell(f"%%shard x=P('data')\n{STEP}")
    cell(f"%%shard x=P('data')\n{STEP}")
    cell("model.kernel[...] = model.kernel[...] * 0\ny = model(x) - model.bias[...]")
    assert int(ip.user_ns["optimizer"].step[...]) == 2
    np.testing.assert_array_equal(ip.user_ns["y"], np.zeros((16, 4)))


def test_the_parts_of_an_nnx_model_have_names(ip, cell):
    cell(NNX)
    cell("%%shard x=P('data')\ny = model(x)")
    names = [value.name for value in last(ip).inputs]
    assert any("kernel" in name for name in names)
    assert any("bias" in name for name in names)


def test_compiling_a_step_alone_leaves_the_model_alone(ip, cell):
    cell(NNX)
    cell(f"%%shard --no-run x=P('data')\n{STEP}")
    np.testing.assert_array_equal(ip.user_ns["model"].kernel[...], ip.user_ns["before"])
    cell("model.kernel[...] = model.kernel[...] * 0")


def test_a_step_that_fails_leaves_the_model_alone(ip, cell):
    cell(NNX)
    cell(f"%%shard x=P('data')\n{STEP}\nraise ValueError", fails=True)
    np.testing.assert_array_equal(ip.user_ns["model"].kernel[...], ip.user_ns["before"])
    cell("model.kernel[...] = model.kernel[...] * 0")


def test_an_nnx_model_that_a_cell_makes(ip, cell):
    cell("from flax import nnx")
    cell("%%shard x=P('data')\nmodel = nnx.Linear(8, 4, rngs=nnx.Rngs(0))\ny = model(x)")
    cell("model.kernel[...] = model.kernel[...] * 0\nz = model(x)")
    np.testing.assert_array_equal(ip.user_ns["z"], np.zeros((16, 4)))


def test_the_call_of_a_model_is_explained_with_its_arrays(ip, cell):
    cell(NNX)
    cell("%shard model(x) x=P('data')")
    assert any("kernel" in value.name for value in last(ip).inputs)
    assert not any(value.closed_over for value in last(ip).inputs)


def test_an_equinox_model_keeps_what_is_no_array(ip, cell):
    cell("import equinox as eqx\nmlp = eqx.nn.MLP(8, 4, 16, 2, key=jax.random.key(0))\nold = mlp")
    cell(
        "%%shard x=P('data') mlp=P()\n"
        "loss, grads = eqx.filter_value_and_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(mlp)\n"
        "mlp = eqx.apply_updates(mlp, jax.tree.map(lambda g: -g, grads))"
    )
    mlp, old, grads = (ip.user_ns[name] for name in ("mlp", "old", "grads"))
    assert mlp.activation is old.activation
    np.testing.assert_allclose(
        mlp.layers[0].weight, np.asarray(old.layers[0].weight) - grads.layers[0].weight, atol=1e-6
    )


def test_a_bias_that_is_none_does_no_harm(ip, cell):
    cell("import equinox as eqx\nlin = eqx.nn.Linear(8, 4, use_bias=False, key=jax.random.key(0))")
    cell("%%shard x=P('data')\ny = jax.vmap(lin)(x)")
    assert ip.user_ns["y"].shape == (16, 4)


def test_a_train_state(ip, cell):
    cell(
        "from flax.training.train_state import TrainState\nimport optax\n"
        "params = {'w': np.ones((8, 4), np.float32)}\n"
        "state = TrainState.create(apply_fn=lambda p, v: v @ p['w'], params=params,\n"
        "                          tx=optax.sgd(0.1, momentum=0.9))"
    )
    cell(
        "%%shard x=P('data')\n"
        "grads = jax.grad(lambda p: state.apply_fn(p, x).sum())(state.params)\n"
        "state = state.apply_gradients(grads=grads)"
    )
    expected = 1 - 0.1 * ip.user_ns["x"].sum(0)[:, None] * np.ones((8, 4))
    np.testing.assert_allclose(ip.user_ns["state"].params["w"], expected, rtol=1e-4, atol=1e-5)
    assert int(ip.user_ns["state"].step) == 1


def test_a_registered_dataclass(ip, cell):
    cell(
        "import dataclasses\n"
        "@jax.tree_util.register_dataclass\n@dataclasses.dataclass\n"
        "class State:\n    w: object\n    n: int = dataclasses.field(metadata={'static': True})\n"
        "s = State(np.ones(8, np.float32), 2)\nalias = s"
    )
    cell("%%shard x=P('data')\ns.w = s.w * s.n + x.sum(0)\ns.n = 5")
    alias = ip.user_ns["alias"]
    assert (alias is ip.user_ns["s"], alias.n) == (True, 5)
    np.testing.assert_allclose(alias.w, 2 + ip.user_ns["x"].sum(0), rtol=1e-5)


def test_random_keys(ip, cell):
    cell("key = jax.random.key(0)")
    cell("%%shard\nkey, sub = jax.random.split(key)\ny = jax.random.normal(sub, (8,))")
    expected = np.asarray(ip.user_ns["jax"].random.key_data(ip.user_ns["key"]))
    assert expected.shape == (2,)
    assert ip.user_ns["y"].shape == (8,)


def test_a_table_with_keys_of_two_kinds_is_closed_over(ip, cell):
    cell("table = {1: jnp.ones(8), 'a': 2}")
    cell("%%shard x=P('data')\ny = x + table[1]")
    assert float(ip.user_ns["y"][0, 0]) == 0
