"""nnx, Equinox, Optax and Orbax as people use them: one step each, with what it sends."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid

MESH = "data=4,model=2"
BATCH = jax.ShapeDtypeStruct((32, 64), jnp.float32)
FLOAT = 4


def sent(report, role):
    """Return what has a role, by what it is for: its axes and its bytes per run."""
    found = {}
    for one in report.collectives:
        if one.role == role:
            found[one.role_of] = one.axes, one.wire_bytes
    return found


# A ring over the 4 devices along data sends 2 x 3/4 of each device's 64 x 128 numbers.
GRADIENT = ("data",), 64 * 128 * FLOAT * 3 // 2


class Mlp(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        columns = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "model"))
        rows = nnx.with_partitioning(nnx.initializers.lecun_normal(), ("model", None))
        self.up = nnx.Linear(64, 256, use_bias=False, kernel_init=columns, rngs=rngs)
        self.down = nnx.Linear(256, 64, use_bias=False, kernel_init=rows, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.gelu(self.up(x)))


def test_an_nnx_optimizer_and_its_model():
    """Each sum over the shards of a kernel is of 8 x 64 numbers: its halves are sent twice."""

    def make():
        model = Mlp(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)

    with jax.set_mesh(make_grid(MESH).mesh):
        model, optimizer = nnx.eval_shape(make)

    @nnx.jit
    def step(model, optimizer, x):
        value, grads = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)
        optimizer.update(model, grads)
        return value

    report = sn.explain(
        step,
        model,
        optimizer,
        BATCH,
        mesh=MESH,
        in_specs=(sn.logical(), sn.logical(), P("data")),
        origins=False,
    )
    up, down = sorted(sent(report, "gradient"))[::-1]
    assert "up" in up
    assert "down" in down
    assert set(sent(report, "gradient").values()) == {GRADIENT}
    assert sent(report, "tensor-parallel-sum") == {down: (("model",), 8 * 64 * FLOAT)}


class Block(eqx.Module):
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.up = eqx.nn.Linear(64, 256, use_bias=False, key=first)
        self.down = eqx.nn.Linear(256, 64, use_bias=False, key=second)

    def __call__(self, x):
        return self.down(jax.nn.gelu(self.up(x)))


def test_an_equinox_module_with_rules_for_its_weights():
    optimizer = optax.adamw(1e-3)
    model = eqx.filter_eval_shape(Block, jax.random.key(0))
    shapes = eqx.filter(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    state = jax.eval_shape(optimizer.init, shapes)

    @eqx.filter_jit
    def step(model, state, x):
        def loss(model):
            return jnp.mean(jax.vmap(model)(x) ** 2)

        value, grads = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    weights = sn.rules({"up/weight": P("model"), "down/weight": P(None, "model")})
    specs = weights, sn.like("model"), P("data")
    report = sn.explain(step, model, state, BATCH, mesh=MESH, in_specs=specs, origins=False)
    assert sent(report, "gradient") == {
        "model.up.weight": GRADIENT,
        "model.down.weight": GRADIENT,
    }
    sums = sent(report, "tensor-parallel-sum")
    assert sums == {"model.down.weight": (("model",), 8 * 64 * FLOAT)}
    found = {value.name: value.spec for value in report.inputs}
    assert found["state[0].mu.down.weight"] == ((), ("model",))


def test_an_optax_chain_that_clips_by_the_global_norm():
    """The norm of sharded gradients is a number that all devices sum."""
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)),
    )
    params = {
        "up": jax.ShapeDtypeStruct((64, 256), jnp.float32),
        "down": jax.ShapeDtypeStruct((256, 64), jnp.float32),
    }
    state = jax.eval_shape(optimizer.init, params)

    def step(params, state, x):
        def loss(params):
            return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"]) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    rules = sn.rules({"up": P(None, "model"), "down": P("model")})
    specs = rules, sn.like("params"), P("data")
    report = sn.explain(step, params, state, BATCH, mesh=MESH, in_specs=specs, origins=False)
    assert sent(report, "gradient") == {"params['up']": GRADIENT, "params['down']": GRADIENT}
    norms = [c for c in report.collectives if c.role == "gradient-norm"]
    assert norms
    assert {(c.axes, c.shape) for c in norms} == {(("model",), ())}
    assert not [c for c in report.collectives if c.role == "optimizer-state"]


SPECS = {"up": P(None, "model"), "down": P("model")}
OTHERS = {"up": P("model"), "down": P(None, "model")}


def mlp_step(params, x):
    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@pytest.fixture(scope="module")
def restored(tmp_path_factory):
    """Save a checkpoint with Orbax, and return what restores it with specs."""
    checkpoint = pytest.importorskip("orbax.checkpoint", reason="orbax-checkpoint is not installed")
    path = tmp_path_factory.mktemp("checkpoint") / "step_0"
    mesh = make_grid(MESH).mesh
    params = {"up": jnp.ones((64, 256)), "down": jnp.ones((256, 64))}

    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, params)
        checkpointer.wait_until_finished()

        def restore(specs):
            target = jax.tree.map(
                lambda array, spec: jax.ShapeDtypeStruct(
                    array.shape, array.dtype, sharding=NamedSharding(mesh, spec)
                ),
                params,
                specs,
            )
            return checkpointer.restore(path, target)

        yield restore


def test_a_checkpoint_that_orbax_restores_as_it_is_needed(restored):
    """The restored arrays say their shardings: no spec is given, and nothing is moved."""
    x = jax.device_put(jnp.ones(BATCH.shape), NamedSharding(make_grid(MESH).mesh, P("data")))
    report = sn.explain(mlp_step, restored(SPECS), x, origins=False)
    assert {value.name: value.spec for value in report.inputs} == {
        "params['down']": (("model",), ()),
        "params['up']": ((), ("model",)),
        "x": (("data",), ()),
    }
    assert sent(report, "gradient") == {"params['up']": GRADIENT, "params['down']": GRADIENT}
    sums = sent(report, "tensor-parallel-sum")
    assert sums == {"params['down']": (("model",), 8 * 64 * FLOAT)}


def test_a_checkpoint_that_is_restored_otherwise_shows_what_that_sends(restored):
    """Rows of `up` are sharded, so x @ up is a sum of 8 x 256 numbers, as is its gradient."""
    mesh = make_grid(MESH).mesh
    x = jax.device_put(jnp.ones(BATCH.shape), NamedSharding(mesh, P("data")))
    wrong = restored(OTHERS)
    report = sn.explain(mlp_step, wrong, x, origins=False)
    sums = sent(report, "tensor-parallel-sum")
    assert sums["params['up']"] == (("model",), 8 * 256 * FLOAT)
    jitted = jax.jit(
        mlp_step,
        in_shardings=(
            jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS),
            NamedSharding(mesh, P("data")),
        ),
    )
    with pytest.raises(ValueError, match=r"params\['down'\] has the sharding .*P\(None, 'model'\)"):
        sn.explain(jitted, wrong, x)
