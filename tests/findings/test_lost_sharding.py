"""Where the batch loses its sharding, what follows, and parameters that are gathered again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.findings import assemble
from shardnb.report.edits import NewSpec
from tests.causes.cases import f32
from tests.causes.test_roles import (
    ADAM,
    BATCH,
    MEGATRON,
    PARAMS,
    constrained_loss,
    state_specs,
    trainer,
)
from tests.causes.test_roles import loss as mlp_loss

KINDS = ("lost sharding", "activation gather", "repeated gather")
TOKENS = jax.ShapeDtypeStruct((64, 16), "int32")


def explained(fn, *args, **options):
    report = sn.explain(fn, *args, origins=False, **options)
    return report, {one.kind: one for one in report.findings if one.kind in KINDS}


def embedding_loss(params, tokens):
    x = params["table"][tokens]
    h = jax.nn.relu(x @ params["w1"])
    return jnp.mean((h @ params["w2"]) ** 2)


def constrained_embedding_loss(params, tokens):
    x = params["table"][tokens]
    x = jax.lax.with_sharding_constraint(x, P("fsdp"))
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ params["w1"]), P("fsdp"))
    return jnp.mean((h @ params["w2"]) ** 2)


MODEL = {"table": f32(512, 64), "w1": f32(64, 256), "w2": f32(256, 64)}
SHARDED = {"table": P(None, "fsdp"), "w1": P("fsdp"), "w2": P("fsdp")}


def sgd(loss):
    def step(params, tokens):
        grads = jax.grad(loss)(params, tokens)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step


def of_step(loss, specs=SHARDED, mesh="fsdp=8"):
    options = {"in_specs": (specs, P("fsdp")), "out_specs": specs, "mesh": mesh}
    return explained(sgd(loss), MODEL, TOKENS, **options)


def test_the_batch_loses_its_axis_to_the_features_of_an_embedding():
    report, findings = of_step(embedding_loss)
    finding = findings["lost sharding"]
    start = embedding_loss.__code__.co_firstlineno
    assert finding.location.line == start + 1
    assert "before gather and not after it: params['table'] has fsdp for dimension 2" in (
        finding.message
    )
    assert [edit.text for edit in finding.edits] == [
        "x = jax.lax.with_sharding_constraint(x, P('fsdp'))"
    ]
    due = [one for one in report.collectives if one.id in finding.collectives]
    assert finding.wire_bytes == sum(one.wire_bytes for one in due) > 0
    assert {one.axes for one in due} == {("fsdp",)}
    assert not [one for one in due if one.role in ("gradient", "gradient-scatter", "loss")]


def test_of_two_statements_on_a_line_the_constraint_is_on_the_value_that_loses_the_axis():
    def loss(params, tokens):
        x = params["table"][tokens]; h = jax.nn.relu(x @ params["w1"])  # fmt: skip  # noqa: E702
        return jnp.mean((h @ params["w2"]) ** 2)

    _, findings = of_step(loss)
    assert [edit.text for edit in findings["lost sharding"].edits] == [
        "x = jax.lax.with_sharding_constraint(x, P('fsdp'))"
    ]


def test_the_constraint_that_is_named_mends_it():
    report, findings = of_step(constrained_embedding_loss)
    assert findings == {}
    lost, _ = of_step(embedding_loss)
    assert report.wire_bytes < lost.wire_bytes


def test_a_batch_that_only_the_backward_pass_loses_is_said_to_be_that_of_a_gradient():
    """`v` is gathered for `h @ v`, whose result keeps the batch; `dy @ v.T` has columns instead."""

    def loss(params, x):
        h = jnp.tanh(jnp.tanh(x @ params["w"]) @ params["w"])
        return jnp.mean((h @ params["v"]) ** 2)

    specs = {"w": P("data"), "v": P("data")}
    model = {"w": f32(16, 16), "v": f32(16, 4)}
    _, findings = explained(
        sgd(loss), model, f32(8, 16), mesh="data=8", in_specs=(specs, P("data")), out_specs=specs
    )
    message = findings["lost sharding"].message
    assert "before dot_general and not after it in the backward pass" in message
    assert "dimension 1 of the gradient of h, which is P(None, 'data')" in message


def test_a_batch_that_keeps_its_axis_is_nothing_to_say():
    """Data parallelism, FSDP with constraints, and megatron."""
    args = PARAMS, jax.eval_shape(ADAM.init, PARAMS), *BATCH
    fsdp = {"w1": P("data"), "b1": P(), "w2": P("data")}
    for loss, specs in [
        (mlp_loss, dict.fromkeys(PARAMS, P())),
        (constrained_loss, fsdp),
        (mlp_loss, MEGATRON),
    ]:
        placed = specs, state_specs(ADAM, specs), P("data"), P("data")
        _, findings = explained(
            trainer(ADAM, loss),
            *args,
            mesh="data=4,model=2",
            in_specs=placed,
            out_specs=(*placed[:2], P()),
        )
        assert findings == {}


def test_two_batches_that_are_compared_need_one_of_them_whole():
    def clip(params, images, texts):
        a, b = images @ params["image"], texts @ params["text"]
        return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(a @ b.T)))

    params = {"image": f32(32, 16), "text": f32(32, 16)}
    args = params, f32(64, 32), f32(64, 32)
    report, findings = explained(
        jax.grad(clip), *args, mesh="data=8", in_specs=(P(), P("data"), P("data")), out_specs=P()
    )
    assert "all-gather" in {one.kind for one in report.collectives}
    assert findings == {}


def test_a_parameter_that_is_gathered_in_two_types_is_gathered_twice():
    """The CPU compiler sends both as floats: 7/8 of 64 x 256 of them, of 8 devices."""

    def loss(params, x):
        h = jax.lax.with_sharding_constraint(x @ params["w"], P("data"))
        low = x.astype("bfloat16") @ params["w"].astype("bfloat16")
        low = jax.lax.with_sharding_constraint(low, P("data"))
        return jnp.mean(h * low.astype("float32"))

    specs = {"w": P("data")}
    _, findings = explained(
        jax.grad(loss),
        {"w": f32(64, 256)},
        f32(32, 64),
        mesh="data=8",
        in_specs=(specs, P("data")),
        out_specs=specs,
    )
    assert list(findings) == ["repeated gather"]
    finding = findings["repeated gather"]
    assert finding.wire_bytes == 2 * 64 * 256 * 4 * 7 // 8
    assert finding.wasted_bytes == 64 * 256 * 4 * 7 // 8
    assert "params['w'] is gathered over data 2 times in the forward pass" in finding.message


def test_slices_of_a_parameter_are_gathered_once_each():
    def loss(params, x):
        gate, up = params["w"][0], params["w"][1]
        h = jax.lax.with_sharding_constraint(x @ gate, P("data"))
        return jnp.mean(h * jax.lax.with_sharding_constraint(x @ up, P("data")))

    specs = {"w": P(None, "data")}
    report, findings = explained(
        jax.grad(loss),
        {"w": f32(2, 64, 256)},
        f32(32, 64),
        mesh="data=8",
        in_specs=(specs, P("data")),
        out_specs=specs,
    )
    assert [one.role for one in report.collectives].count("parameter-gather") >= 1
    assert findings == {}


def test_a_batch_that_is_shuffled_is_gathered_in_full():
    """7/8 of 128 x 256 floats, of 8 devices."""

    def loss(params, x, order):
        h = jnp.tanh(x @ params["w"])[order]
        return jnp.mean((h @ params["v"]) ** 2)

    params = {"w": f32(64, 256), "v": f32(256, 64)}
    order = jax.ShapeDtypeStruct((128,), "int32")
    _, findings = explained(
        jax.grad(loss),
        params,
        f32(128, 64),
        order,
        mesh="data=8",
        in_specs=(P(), P("data"), P("data")),
        out_specs=P(),
    )
    finding = findings.pop("activation gather")
    assert findings == {}
    assert finding.wire_bytes == 128 * 256 * 4 * 7 // 8
    assert finding.message.startswith(
        "jnp.tanh(x @ params['w']), an activation, is gathered in full over data"
    )


M24 = "data=2,model=4"


def trained(loss):
    def step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def heads_that_do_not_divide(params, x):
    q = (x @ params["w"]).reshape(8, 3, 16)
    return jnp.mean((jnp.tanh(q).sum(1) @ params["v"]) ** 2)


def steps_joined_with_the_batch(params, x):
    h = jnp.tanh(x @ params["w"]).reshape(-1, 48)
    return jnp.mean((h @ params["v"]) ** 2)


MATRICES = {"w": f32(16, 48), "v": f32(16, 4)}
COLUMNS = {"w": P(None, "model"), "v": P()}


@pytest.mark.parametrize("train", [True, False])
def test_features_that_a_reshape_needs_in_full_are_an_activation(train):
    """4 x 48 floats per device, of which it holds a quarter; a served model says so too."""
    loss = heads_that_do_not_divide
    options = {"mesh": M24, "in_specs": (COLUMNS, P("data"))}
    if train:
        options["out_specs"] = (COLUMNS, P())
    _, findings = explained(trained(loss) if train else loss, MATRICES, f32(8, 16), **options)
    finding = findings.pop("activation gather")
    assert findings == {}
    assert finding.wire_bytes == 4 * 48 * 4 * 3 // 4
    assert finding.message.endswith(
        "an activation, is gathered in full over model for reshape: it is P('data', 'model'), and "
        "each device gets all of dimension 1, 768 B of f32"
    )


def test_a_batch_that_is_not_the_first_dimension_is_an_activations_all_the_same():
    """6 x 8 x 48 floats, of which a device holds an eighth."""
    params = {"w": f32(16, 48), "v": f32(48, 4)}
    _, findings = explained(
        trained(steps_joined_with_the_batch),
        params,
        f32(6, 8, 16),
        mesh="data=8",
        in_specs=(P(), P(None, "data")),
        out_specs=P(),
    )
    finding = findings.pop("activation gather")
    assert findings == {}
    assert finding.wire_bytes == 6 * 8 * 48 * 4 * 7 // 8
    assert "is P(None, 'data'), and each device gets all of dimension 1" in finding.message


def keys_of_attention(params, x):
    q, k = x @ params["q"], x @ params["k"]
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k))
    return jnp.mean(jnp.einsum("bqk,bkd->bqd", weights, x) ** 2)


def product_of_parameters(params, x):
    w = jnp.tanh(params["w"] * params["g"]) @ params["v"]
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def gathered_by_fsdp(params, x):
    h = jax.lax.with_sharding_constraint(jnp.tanh(x @ params["w"]), P("data"))
    return jnp.mean((h @ params["v"]) ** 2)


@pytest.mark.parametrize(
    ("loss", "params", "specs", "x", "x_spec"),
    [
        (keys_of_attention, {"q": (16, 16), "k": (16, 16)}, P(), (8, 16, 16), P(None, "data")),
        (
            product_of_parameters,
            {"w": (16, 32), "g": (16, 32), "v": (32, 32)},
            {"w": P("data"), "g": P("data"), "v": P()},
            (32, 16),
            P("data"),
        ),
        (gathered_by_fsdp, {"w": (64, 64), "v": (64, 64)}, P("data"), (64, 64), P("data")),
    ],
)
def test_keys_of_attention_and_what_is_made_of_parameters_are_no_activations_to_look_at(
    loss, params, specs, x, x_spec
):
    params = {name: f32(*shape) for name, shape in params.items()}
    report, findings = explained(
        trained(loss),
        params,
        f32(*x),
        mesh="data=8",
        in_specs=(specs, x_spec),
        out_specs=(specs, P()),
    )
    assert "all-gather" in {one.kind for one in report.collectives}
    assert findings == {}


def test_scaled_integers_beside_parameters_are_not_taken_for_data():
    def served(params, x):
        w = params["w"].astype("float32") * params["scale"]
        h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P("data"))
        return h @ params["v"]

    params = {"w": jax.ShapeDtypeStruct((16, 32), "int8"), "scale": f32(32), "v": f32(32, 4)}
    specs = {"w": P("data"), "scale": P(), "v": P()}
    report, findings = explained(
        served, params, f32(32, 16), mesh="data=8", in_specs=(specs, P("data"))
    )
    assert [one.kind for one in report.collectives] == ["all-gather"]
    assert findings == {}


@pytest.mark.parametrize("find", [one for one in assemble.FINDINGS if "gather" in one.__module__])
def test_a_program_that_sends_nothing_has_none(find):
    report = sn.explain(jnp.tanh, f32(8, 8), mesh="data=8", in_specs=P("data"))
    assert report.findings == ()


def test_a_move_over_another_axis_costs_what_all_its_steps_send():
    """A batch on the axis of tensor parallelism: blocks are permuted, then gathered over `fsdp`."""

    def mlp(params, x):
        return jax.nn.relu(x @ params["wi"]) @ params["wo"]

    params = {"wi": f32(64, 256), "wo": f32(256, 64)}
    specs = {"wi": P(None, "tp"), "wo": P("tp")}
    report, found = explained(
        mlp, params, f32(32, 64), mesh="fsdp=4,tp=2", in_specs=(specs, P("tp"))
    )
    kinds = {report.collectives[i].kind for i in found["lost sharding"].collectives}
    assert kinds == {"collective-permute", "all-gather", "all-reduce"}
    # [8, 64] floats permuted, three quarters of [32, 64] gathered, and [32, 64] there and back.
    assert found["lost sharding"].wire_bytes == 8 * 64 * 4 + 24 * 64 * 4 + 32 * 64 * 4


def stack_of_two_scans(params, x):
    def up(h, w):
        return jnp.tanh(h @ w), None

    def down(h, w):
        return jnp.sin(h @ w.T), None

    h, _ = jax.lax.scan(up, x, params["stack"])
    return jax.lax.scan(down, h, params["stack"], reverse=True)[0]


def test_a_stack_that_two_scans_gather_is_gathered_twice():
    report = sn.explain(
        stack_of_two_scans,
        {"stack": f32(4, 16, 16)},
        f32(16, 16),
        mesh="data=8",
        in_specs=({"stack": P(None, "data")}, P("data")),
    )
    (finding,) = [one for one in report.findings if one.kind == "repeated gather"]
    # Each loop gathers four slices of 1 KiB, of which a device receives seven eighths.
    assert (finding.wire_bytes, finding.wasted_bytes) == (2 * 4 * 896, 4 * 896)
    assert finding.edits == ()


def shuffled_minibatches(params, obs, order):
    def loss(params, batch):
        return jnp.mean(jnp.tanh(batch @ params["w"]) ** 2)

    def step(params, batch):
        grads = jax.grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), None

    shuffled = obs[order]
    return jax.lax.scan(step, params, shuffled.reshape(4, 16, 32))[0]


def test_a_batch_that_replicated_indices_shuffle_is_lost():
    args = {"w": f32(32, 8)}, f32(64, 32), jax.ShapeDtypeStruct((64,), "int32")
    specs = P(), P("data"), P()
    report, findings = explained(
        shuffled_minibatches, *args, mesh="data=8", in_specs=specs, out_specs=P()
    )
    assert list(findings) == ["lost sharding"]
    finding = findings["lost sharding"]
    assert report.source.line(finding.location.line).strip() == "shuffled = obs[order]"
    assert "each device along data gets all 64 rows that are looked up" in finding.message
    # The rows are added up among zeros: 2 * 7/8 of 64 x 32 floats.
    assert finding.wire_bytes == 2 * 64 * 32 * 4 * 7 // 8
    assert [edit.specs for edit in finding.edits] == [
        (NewSpec("value", "shuffled", (("data",), ())),)
    ]


def test_a_batch_that_sharded_indices_shuffle_is_lost_in_the_loop_alone():
    args = {"w": f32(32, 8)}, f32(64, 32), jax.ShapeDtypeStruct((64,), "int32")
    specs = P(), P("data"), P("data")
    report, findings = explained(
        shuffled_minibatches, *args, mesh="data=8", in_specs=specs, out_specs=P()
    )
    finding = findings["lost sharding"]
    assert "every 4 devices along data work on the same 16 rows" in finding.message
    # The shuffle gathers `obs` too. Of 4 minibatches a device has 8 rows of one, and sends them to
    # 3 others.
    (gather,) = (report.collectives[i] for i in finding.collectives)
    assert gather.consumer == "dynamic_slice"
    assert finding.wire_bytes == 3 * 8 * 32 * 4


def minibatches_of_one_statement(params, obs, order):
    def step(params, batch):
        grads = jax.grad(lambda p: jnp.mean((batch @ p["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), None

    batches = obs[order].reshape(4, 16, 32)
    return jax.lax.scan(step, params, batches)[0]


def test_no_constraint_is_proposed_where_the_axes_do_not_divide_the_batch():
    args = {"w": f32(32, 8)}, f32(64, 32), jax.ShapeDtypeStruct((64,), "int32")
    specs = P(), P("data"), P()
    _, findings = explained(
        minibatches_of_one_statement, *args, mesh="data=8", in_specs=specs, out_specs=P()
    )
    assert findings["lost sharding"].edits == ()
