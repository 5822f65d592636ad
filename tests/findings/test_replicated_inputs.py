"""Inputs left replicated: said where others like them are sharded, and nowhere else."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32

MiB = 1 << 20
LAYERS = 3


def replicated(fn, *args, mesh="data=8", **options):
    report = sn.explain(fn, *args, mesh=mesh, origins=False, **options)
    return [finding for finding in report.findings if finding.kind == "replicated"]


def parameters(rows=512, columns=512):
    """Return layers of a matrix of 1 MiB and a bias of 2 KiB."""
    return [{"w": f32(rows, columns), "b": f32(columns)} for _ in range(LAYERS)]


def loss(params, x):
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x**2).sum()


def adam(params, opt, x):
    grads = jax.grad(loss)(params, x)
    mu = jax.tree.map(lambda m, g: 0.9 * m + g, opt["mu"], grads)
    nu = jax.tree.map(lambda v, g: 0.9 * v + g * g, opt["nu"], grads)
    new = jax.tree.map(lambda p, m, v: p - m / (jnp.sqrt(v) + 1), params, mu, nu)
    return new, {"mu": mu, "nu": nu}


def momentum(params, opt, x):
    grads = jax.grad(loss)(params, x)
    trace = jax.tree.map(lambda m, g: 0.9 * m + g, opt["trace"], grads)
    return jax.tree.map(jnp.subtract, params, trace), {"trace": trace}


def like_parameters(*names):
    return {name: parameters() for name in names}


BATCH = f32(64, 512)
ADAM = parameters(), like_parameters("mu", "nu"), BATCH
MOMENTUM = parameters(), like_parameters("trace"), BATCH


# What is nothing to say


def test_a_toy_product_has_nothing_to_shard_alike():
    specs = P("data"), P()
    assert replicated(jnp.dot, f32(8, 1024), f32(1024, 1024), in_specs=specs) == []


def test_a_square_product_is_no_pair_of_counterparts():
    specs = P("data"), P()
    assert replicated(jnp.dot, f32(1024, 1024), f32(1024, 1024), in_specs=specs) == []


@pytest.mark.parametrize(("step", "args"), [(adam, ADAM), (momentum, MOMENTUM)])
def test_parameters_and_state_of_a_data_parallel_step_are_replicated_as_they_must_be(step, args):
    assert replicated(step, *args, in_specs=(P(), P(), P("data"))) == []


@pytest.mark.parametrize(("step", "args"), [(adam, ADAM), (momentum, MOMENTUM)])
def test_parameters_are_replicated_on_purpose_where_only_the_state_is_sharded(step, args):
    assert replicated(step, *args, in_specs=(P(), P("data"), P("data"))) == []


def test_a_step_that_shards_all_its_state_has_nothing_left():
    assert replicated(adam, *ADAM, in_specs=(P("data"), P("data"), P("data"))) == []


def test_biases_are_small_beside_their_matrices():
    """3 x 2 KiB of 3 MiB are replicated: less than a tenth, and less than 1 MiB."""
    specs = [{"w": P("data"), "b": P()}] * LAYERS
    assert replicated(loss, parameters(), BATCH, in_specs=(specs, P("data"))) == []


def test_a_small_model_is_nothing_to_say():
    """Its state takes 2 x 3 x (16 KiB + 256 B) per device, and 1 MiB is the least."""
    params, opt = ([{"w": f32(64, 64), "b": f32(64)}] * LAYERS for _ in range(2))
    args = params, {"mu": opt, "nu": opt}, f32(64, 64)
    assert replicated(adam, *args, in_specs=(P("data"), P(), P("data"))) == []


def test_a_dimension_that_the_axis_does_not_divide_cannot_be_sharded_over_it():
    params = {"w": f32(512, 512), "odd": f32(1023, 513)}
    specs = {"w": P("data"), "odd": P()}
    assert replicated(lambda p: (p["w"].sum(), p["odd"].sum()), params, in_specs=(specs,)) == []


# What is said


def test_an_array_that_most_of_its_pytree_does_not_lie_like_is_said():
    shapes = {"embed": f32(1024, 512), "w": f32(512, 2048), "out": f32(2048, 1024)}

    def model(params, x):
        return (jnp.tanh(x @ params["embed"] @ params["w"]) @ params["out"]).sum()

    specs = {"embed": P(), "w": P(None, "model"), "out": P("model")}
    (finding,) = replicated(
        model, shapes, f32(64, 1024), mesh="data=2,model=4", in_specs=(specs, P("data"))
    )
    # Over data, which shards the batch alone, nothing is missed.
    assert finding.message == (
        "params['embed'] is replicated over model, which shards most of the same pytree, such as "
        "params['out']: sharded too, it would take 512 KiB per device instead of 2.0 MiB"
    )
    assert finding.wasted_bytes == 3 * MiB // 2


def test_two_axes_are_missed_together():
    params, opt = ({"w": f32(1024, 1024)} for _ in range(2))

    def step(params, opt):
        return {"w": params["w"] - opt["w"]}, {"w": 2 * opt["w"]}

    (finding,) = replicated(
        step, params, opt, mesh="data=4,model=2", in_specs=(P("data", "model"), P())
    )
    assert "opt['w'] is replicated over data and model, which shard arrays" in finding.message
    assert finding.wasted_bytes == 4 * MiB - 4 * MiB // 8


def test_only_the_axis_that_is_missed_is_named():
    params, opt = ({"w": f32(1024, 1024)} for _ in range(2))

    def step(params, opt):
        return {"w": params["w"] - opt["w"]}, {"w": 2 * opt["w"]}

    (finding,) = replicated(
        step, params, opt, mesh="data=4,model=2", in_specs=(P("data", "model"), P(None, "model"))
    )
    assert "opt['w'] is replicated over data, which" in finding.message
    assert finding.wasted_bytes == 2 * MiB - 2 * MiB // 4
