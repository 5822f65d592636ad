"""Training steps for TPU: what its compiler merges and takes out of loops; judged by hand.

Each program is named in a comment of the code that reads it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.needs import needs_libtpu

ROWS = P("data")


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def explained(fn, *args, mesh="data=8", on="v5e:2x4", **options):
    return sn.explain(fn, *args, mesh=mesh, on=on, **options)


def norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


@needs_libtpu
def test_gradients_that_a_scan_stacks_are_told_apart_where_they_are_sent_after_it():
    def layers_with_a_norm_scanned(params, x):
        def loss(params):
            def layer(h, w):
                return h + norm(h, w["scale"], w["shift"]) @ w["mix"], None

            return jnp.mean(lax.scan(layer, x, params)[0] ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {"scale": f32(6, 128), "shift": f32(6, 128), "mix": f32(6, 128, 128)}
    report = explained(layers_with_a_norm_scanned, params, f32(32, 64, 128), in_specs=(P(), ROWS))
    told = {(c.role_of or c.role, c.reason, c.shape, c.trips) for c in report.collectives}
    assert told == {
        ("params['scale']", "partial-sum", (6, 128), 1),
        ("params['shift']", "partial-sum", (6, 128), 1),
        ("params['mix']", "partial-sum", (1, 128, 128), 6),
        ("loss", "partial-sum", (), 1),
    }
    # The call of norm in the layer is their line, as it is each product's.
    line = layers_with_a_norm_scanned.__code__.co_firstlineno + 3
    assert {c.line for c in report.collectives if c.role == "gradient"} == {line}


def experts_by_a_constraint(params, x, y):
    def loss(p):
        chances = jax.nn.softmax(jnp.einsum("gsd,de->gse", x, p["gate"]))
        chosen = jax.nn.one_hot(jnp.argmax(chances, -1), 16)
        place = jnp.cumsum(chosen, 1) * chosen
        mask = chosen * (place <= 8)
        slots = mask[..., None] * jax.nn.one_hot((place - 1).astype(jnp.int32), 8)
        tokens = lax.with_sharding_constraint(jnp.einsum("gsec,gsd->egcd", slots, x), ROWS)
        hidden = jax.nn.relu(jnp.einsum("egcd,edf->egcf", tokens, p["up"]))
        made = jnp.einsum("egcf,efd->egcd", hidden, p["down"])
        made = lax.with_sharding_constraint(made, ROWS)
        weights = slots * (chances * mask).sum(-1)[..., None, None]
        return jnp.mean((jnp.einsum("gsec,egcd->gsd", weights, made) - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value


@needs_libtpu
def test_a_result_that_is_asked_for_in_full_asks_for_no_sharding_before_that():
    params = {"gate": f32(128, 16), "up": f32(16, 128, 256), "down": f32(16, 256, 128)}
    specs = {"gate": P(), "up": ROWS, "down": ROWS}
    report = explained(
        experts_by_a_constraint,
        params,
        f32(16, 64, 128),
        f32(16, 64, 128),
        mesh="data=16",
        on="v5e:4x4",
        in_specs=(specs, ROWS, ROWS),
        out_specs=(specs, P()),
    )
    # P() of the new gate is why its columns are gathered at the end, and of nothing else.
    asked = [c for c in report.collectives if "because of out_specs" in c.why]
    assert [(c.kind, c.role, c.role_of) for c in asked] == [
        ("all-gather", "parameter-update", "params['gate']")
    ]


def attention_layers(params, x, enter):
    def loss(params):
        h = x
        for w in params:
            a = enter(h)
            q, k, v = a @ w["q"], a @ w["k"], a @ w["v"]
            scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k))
            h = h + jnp.einsum("bqk,bkd->bqd", scores, v) @ w["o"]
        return jnp.mean(h**2)

    return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss)(params))


def sums_of_the_backward_pass(step):
    params = [dict.fromkeys("qkvo", f32(256, 256))] * 3
    specs = [{**dict.fromkeys("qkv", P(None, "model")), "o": P("model")}] * 3
    mesh, in_specs = "data=2,model=4", (specs, ROWS)
    report = explained(step, params, f32(16, 64, 256), mesh=mesh, in_specs=in_specs)
    sums = [c for c in report.collectives if c.role == "tensor-parallel-sum"]
    assert [c.role_of for c in sums if c.phase == "forward"] == [
        f"params[{n}]['o']" for n in (0, 1, 2)
    ]
    return [c for c in sums if c.phase == "backward"]


@needs_libtpu
def test_a_sum_for_several_projections_is_said_to_be_of_none_of_them_alone():
    def projections_of_one_input(params, x):
        return attention_layers(params, x, lambda h: norm(h, 1.0, 0.0))

    # What q, k and v make of one input is added up before anything else takes it: XLA sends the sum
    # of the three. The gradient of the first layer's input is not computed.
    found = sums_of_the_backward_pass(projections_of_one_input)
    assert [(c.reason, c.role_of, c.producer, c.consumer) for c in found] == [
        ("partial-sum", "", "result of dot_general", "dot_general")
    ] * 2
    # True of all three; "the backward pass of `a @ w['q']`" would be true of one.
    assert all("dot_general sums over a dimension sharded over model, so" in c.why for c in found)


@needs_libtpu
def test_sums_of_layers_that_python_unrolls_are_told_apart_by_their_columns():
    def projections_that_are_only_added(params, x):
        return attention_layers(params, x, lambda h: h)

    # Each is added to what came before, one by one, so all are sent; three at a time, and those of
    # the last layer first, as the other layer's need their sum.
    found = sums_of_the_backward_pass(projections_that_are_only_added)
    assert [{c.role_of for c in found[at : at + 3]} for at in (0, 3)] == [
        {f"params[{layer}][{name!r}]" for name in "qkv"} for layer in (2, 1)
    ]
    assert len({c.combined_with for c in found}) == 6


@needs_libtpu
def test_what_a_shard_map_calls_again_and_again_is_told_apart_by_what_follows_what():
    def stages_one_after_the_other(w, x):
        def stage(w, x):
            state = x * 0
            kept = []
            for turn in range(4):
                state = lax.psum(jnp.where(turn == 0, x, state) @ w[0], "model")
                kept.append(state)
                state = lax.ppermute(state, "stage", [(0, 1), (1, 2), (2, 3)])
            return jnp.stack(kept[2:]) + state

        shards = (P("stage", "model"), P(None, "model"))
        return jax.shard_map(stage, in_specs=shards, out_specs=P("stage"), check_vma=False)(w, x)

    found = explained(
        stages_one_after_the_other,
        f32(4, 256, 128),
        f32(8, 256),
        mesh="stage=4,model=2",
        in_specs=(P("stage", "model"), P(None, "model")),
    ).collectives
    sums = [c for c in found if c.kind == "all-reduce"]
    assert sums
    assert {c.producer for c in sums} == {"jnp.where(turn == 0, x, state) @ w[0]"}
    assert None not in {c.consumer for c in sums}


@needs_libtpu
def test_what_goes_around_a_ring_is_named_by_what_it_was_at_first():
    def keys_and_values_around_a_ring(q, k, v):
        def ring(q, k, v):
            def step(carry, _):
                k, v, total = carry
                total = total + jnp.exp(q @ k.T) @ v
                around = [(i, (i + 1) % 8) for i in range(8)]
                return (*(lax.ppermute(one, "data", around) for one in (k, v)), total), None

            return lax.scan(step, (k, v, q * 0), None, length=8)[0][2]

        return jax.shard_map(ring, in_specs=ROWS, out_specs=ROWS)(q, k, v)

    shapes = [f32(512, 64)] * 3
    found = explained(keys_and_values_around_a_ring, *shapes, in_specs=(ROWS,) * 3).collectives
    assert sorted((c.producer, c.consumer, c.trips) for c in found) == [
        ("carried k", "the loop's carry", 8),
        ("carried v", "the loop's carry", 8),
    ]


@needs_libtpu
def test_results_of_one_fusion_are_told_apart_by_the_results_that_they_reach():
    def norm_and_bias_of_a_convolution(params, images):
        def loss(p):
            dims = ("NHWC", "HWIO", "NHWC")
            x = lax.conv_general_dilated(
                images, p["kernel"], (1, 1), "SAME", dimension_numbers=dims
            )
            x = x + p["bias"]
            centred = x - x.mean((0, 1, 2))
            x = centred * lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5) * p["scale"] + p["shift"]
            return jnp.mean(jax.nn.relu(x).mean((1, 2)) @ p["head"])

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {name: f32(16) for name in ("bias", "scale", "shift")}
    params |= {"kernel": f32(3, 3, 3, 16), "head": f32(16, 10)}
    specs = (P(), ROWS)
    step = norm_and_bias_of_a_convolution
    found = explained(step, params, f32(64, 32, 32, 3), in_specs=specs).collectives
    line = step.__code__.co_firstlineno
    # Each gradient of 16 numbers is at the line that takes its parameter.
    lines = {"params['bias']": 6, "params['scale']": 8, "params['shift']": 8}
    told = {c.role_of: c.line - line for c in found if c.role == "gradient" and c.shape == (16,)}
    assert told == lines


@needs_libtpu
def test_what_a_loop_and_the_update_take_of_a_parameter_is_told_apart_from_its_gradient():
    def features_over_the_batch_axis(w, x):
        def loss(w):
            def layer(h, one):
                h = h + jnp.tanh(h * one["scale"] @ one["up"]) @ one["down"]
                return h * one["last"], None

            return jnp.mean(lax.scan(layer, x @ w["into"], w["layers"])[0] ** 2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w))

    layers = {"scale": f32(4, 256), "last": f32(4, 256)}
    layers |= {"up": f32(4, 256, 512), "down": f32(4, 512, 256)}
    shards = {"scale": P(), "last": P(), "up": P(None, None, "data"), "down": P(None, "data")}
    specs = {"into": P(None, "data"), "layers": shards}
    report = explained(
        features_over_the_batch_axis,
        {"into": f32(64, 256), "layers": layers},
        f32(16, 64),
        in_specs=(specs, ROWS),
        out_specs=specs,
    )
    # The new vectors are computed in shards, as their gradients are, and gathered for out_specs.
    end = [c for c in report.collectives if c.consumer == "the program's result"]
    assert [(c.producer, c.reason, c.role) for c in end] == [
        ("result of sub", "output-spec", "parameter-update")
    ] * 2
    assert {c.role_of for c in end} == {"w['layers']['scale']", "w['layers']['last']"}


@needs_libtpu
def test_two_losses_that_are_sent_as_one_are_at_their_line_and_not_at_that_of_a_gradient():
    def generator_and_critic(g, d, real, noise):
        def critic(d, x):
            return jax.nn.softplus(jnp.tanh(x @ d["a"]) @ d["b"])

        made = jnp.tanh(noise @ g["a"])
        worth, grads = jax.value_and_grad(
            lambda d: jnp.mean(critic(d, real)) + jnp.mean(critic(d, made))
        )(d)
        d = jax.tree.map(lambda p, q: p - 0.1 * q, d, grads)
        loss, grads = jax.value_and_grad(lambda g: jnp.mean(critic(d, jnp.tanh(noise @ g["a"]))))(g)
        return jax.tree.map(lambda p, q: p - 0.1 * q, g, grads), d, worth, loss

    step = generator_and_critic
    args = {"a": f32(64, 128)}, {"a": f32(128, 256), "b": f32(256, 1)}, f32(128, 128), f32(128, 64)
    found = explained(step, *args, in_specs=(P(), P(), ROWS, ROWS)).collectives
    losses = [c for c in found if c.role == "loss"]
    assert [(c.line - step.__code__.co_firstlineno, c.phase) for c in losses] == [
        (6, "forward"),
        (9, "forward"),
    ]
