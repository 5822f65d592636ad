"""What is sent over several slices, in two steps; judged right after partitioning."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.needs import needs_libtpu


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def layers_over_two_slices(params, x, y):
    """Features are sharded over an axis of the batch, so the batch is lost in the first layer."""

    def loss(params):
        h = x
        for w, b in params[:-1]:
            h = jax.nn.relu(h @ w.T + b)
        w, b = params[-1]
        return jnp.mean((h @ w.T + b - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


@pytest.fixture(scope="module")
def found():
    params = [
        (f32(128, 64), f32(128)),
        (f32(128, 128), f32(128)),
        (f32(32, 128), f32(32)),
    ]
    specs = jax.tree.map(lambda _: P("ici"), params)
    batch = P(("dcn", "ici"))
    return sn.explain(
        layers_over_two_slices,
        *(params, f32(64, 64), f32(64, 32)),
        mesh="dcn=2,ici=8",
        on="2*v5e:2x4",
        in_specs=(specs, batch, batch),
        out_specs=(specs, P()),
    ).collectives


@needs_libtpu
def test_nothing_that_is_sent_over_two_slices_is_unknown(found):
    assert [c.why for c in found if c.reason == "unknown"] == []
    assert [c.why for c in found if c.asked_by != "inferred"] == []


@needs_libtpu
def test_both_steps_of_a_gather_over_two_slices_are_for_the_same_product(found):
    # Right after partitioning four gathers go over all 16 devices, each before the gradient of a
    # matrix: of what it is multiplied with, and of the gradient of its result.
    slices = [c for c in found if (c.kind, c.axes) == ("all-gather", ("dcn",))]
    assert [(c.reason, c.consumer) for c in slices] == [("conflict", "dot_general")] * 4
    ends = sorted((c.producer, c.why.partition(": ")[2]) for c in slices)
    within = [c for c in found if (c.producer, c.why.partition(": ")[2]) in ends]
    assert {c.axes for c in within} == {("dcn",), ("ici",)}


@needs_libtpu
def test_of_two_axes_that_are_gathered_the_one_that_shards_another_dimension_is_said(found):
    # The samples are over both, the features of what the gradient is multiplied with over `ici`.
    both = [c.why for c in found if "is sharded over dcn and ici on its contracting" in c.why]
    assert both
    assert all("but ici also shards another dimension of" in why for why in both)


@needs_libtpu
def test_sums_that_are_joined_end_to_end_are_said_to_be_of_none_alone(found):
    # The gradients of three vectors and the loss: 128 + 128 + 32 + 1 numbers, and 223 zeros.
    joined = [c for c in found if c.shape == (1, 4, 128)]
    assert {c.axes for c in joined} == {("dcn",), ("ici",)}
    assert {(c.reason, c.role, c.role_of, c.consumer) for c in joined} == {
        ("partial-sum", None, "", "reduce_sum")
    }


@needs_libtpu
def test_gradients_that_are_sent_to_the_other_slice_as_one_have_what_both_have():
    def matrices_over_two_slices(a, b, x):
        gradients = jax.grad(lambda a, b: jnp.mean(jnp.tanh(x @ a) @ b), argnums=(0, 1))(a, b)
        return a - gradients[0], b - gradients[1]

    a, b, x = (jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((256, 1024), (1024, 256), (32, 256)))
    specs = P(None, "tp"), P("tp"), P("dcn")
    report = sn.explain(
        matrices_over_two_slices,
        *(a, b, x),
        mesh="dcn=2,tp=8",
        on="2*v5e:2x4",
        in_specs=specs,
        out_specs=specs[:2],
    )
    # 256 x 128 and 128 x 256 numbers on each device, in one array.
    (sent,) = [c for c in report.collectives if c.axes == ("dcn",)]
    assert sent.bytes == 2 * (256 * 128 + 128 * 256)
    assert (sent.asked_by, sent.reason, sent.role) == ("inferred", "partial-sum", "gradient")
    assert (sent.role_of, sent.consumer, sent.phase) == ("", "dot_general", "backward")


@needs_libtpu
def test_nothing_is_said_of_the_consumer_of_sums_that_have_several():
    def tasks(w, x, y):
        def after_a_step(w, x, y):
            inner = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
            return jnp.mean((jnp.tanh(x @ (w - 0.1 * inner)) - y) ** 2)

        def loss(w):
            return jax.vmap(after_a_step, (None, 0, 0))(w, x, y).mean()

        return w - 0.1 * jax.grad(loss)(w)

    arrays = f32(16, 32), f32(32, 10, 16), f32(32, 10, 32)
    rows = P("task")
    report = sn.explain(
        tasks, *arrays, mesh="task=8", on="v5e:2x4", in_specs=(P(), rows, rows), out_specs=P()
    )
    # The gradient is a sum over tasks of several terms, which XLA sends as one.
    assert not [c.why for c in report.collectives if "its consumer" in c.why]


def convolutions_over_two_slices(params, x, y):
    """Gradients of two filters and of their biases, which TPU sums in each slice as one."""

    def layer(h, w, b):
        dimensions = ("NHWC", "HWIO", "NHWC")
        made = jax.lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=dimensions)
        return made + b

    def loss(p):
        h = jax.nn.relu(layer(x, p["w1"], p["b1"]))
        return jnp.mean((layer(h, p["w2"], p["b2"]) - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


@needs_libtpu
def test_sums_that_are_sent_together_within_slices_are_known_with_all_their_steps():
    params = {"w1": f32(3, 3, 3, 32), "b1": f32(32), "w2": f32(3, 3, 32, 8), "b2": f32(8)}
    specs = jax.tree.map(lambda _: P(), params)
    batch = P(("dcn", "ici"))
    found = sn.explain(
        convolutions_over_two_slices,
        *(params, f32(64, 16, 16, 3), f32(64, 16, 16, 8)),
        mesh="dcn=2,ici=8",
        on="2*v5e:2x4",
        in_specs=(specs, batch, batch),
        out_specs=(specs, P()),
    ).collectives
    # Right after partitioning there are five sums over all 16 devices: of the gradients of w1, w2,
    # b1 and b2, and of the loss. TPU lays the last three end to end, 41 elements in a tile of 128.
    assert {(c.reason, c.asked_by) for c in found} == {("partial-sum", "inferred")}
    steps = {(c.kind, c.axes, c.role_of) for c in found if c.role == "gradient"}
    assert steps >= {
        (kind, axes, f"params['{w}']")
        for w in ("w1", "w2")
        for kind, axes in (("all-reduce", ("ici",)), ("all-reduce", ("dcn",)))
    }
    packed = [c for c in found if 128 in c.shape and c.role is None]
    assert {(c.axes, c.phase, c.producer) for c in packed} == {
        (("ici",), None, "result of reduce_sum"),
        (("dcn",), None, "result of reduce_sum"),
    }
