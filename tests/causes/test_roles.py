"""What collectives do for the user: roles that follow from how a program is written."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.strategies import strategy_of
from tests.causes.cases import f32
from tests.needs import needs_libtpu

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
    """Return for each array of an optimizer's state the spec of its parameter."""
    shapes = jax.eval_shape(tx.init, params)
    return optax.tree_map_params(
        tx, lambda _, spec: spec, shapes, specs, transform_non_params=lambda _: P()
    )


def roles(fn, *args, mesh=MESH, **options):
    """Return how many collectives have each role, for what, and along which axes."""
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


def frozen_loss(adapters, base, x, y):
    h = jax.lax.with_sharding_constraint(
        x @ (base["w1"] + adapters["a"] @ adapters["b"]), P("data")
    )
    return jnp.mean((jax.nn.gelu(h) @ base["w2"] - y) ** 2)


def test_parameters_that_are_not_trained_are_gathered_as_others_are():
    base, adapters = {"w1": f32(64, 256), "w2": f32(256, 64)}, {"a": f32(64, 4), "b": f32(4, 256)}
    specs = P(), P("data"), P("data"), P("data")
    found = roles(jax.grad(frozen_loss), adapters, base, *BATCH, mesh="data=8", in_specs=specs)
    assert found["parameter-gather", "base['w2']", "data"] == 1


@pytest.mark.parametrize(
    ("fn", "args", "specs", "known"),
    [
        (clusters, (f32(64, 16), f32(8, 16)), (P("data"), P()), set()),
        (attention, (f32(64, 16),) * 3, (P(), P("data"), P("data")), {"softmax"}),
        (jnp.dot, (f32(64, 16), f32(16, 8)), (P(None, "data"), P("data")), set()),
    ],
)
def test_sums_over_data_have_no_role_but_that_of_a_softmax(fn, args, specs, known):
    assert {role for role, *_ in roles(fn, *args, in_specs=specs)} == {None, *known}


def test_a_reshard_that_is_written_is_named_after_its_argument():
    def whole(x):
        return jax.lax.with_sharding_constraint(x, P()) * 2

    found = roles(whole, f32(32, 64), in_specs=P("data"))
    assert found == Counter({("requested-reshard", "x", "data"): 1})


# Other ways to train


def test_moments_on_another_sharding_than_the_parameters_are_moved_as_state():
    state = state_specs(ADAM, dict.fromkeys(PARAMS, P()))
    args = PARAMS, jax.eval_shape(ADAM.init, PARAMS), *BATCH
    placed = FSDP, state, P("data"), P("data")
    options = {"in_specs": placed, "out_specs": (FSDP, state, P()), "mesh": "data=8"}
    found = roles(trainer(ADAM, constrained_loss), *args, **options)
    moved = {of for role, of, *_ in found if role == "optimizer-state"}
    assert moved == {
        f"state[0].{moment}['{name}']" for moment in ("mu", "nu") for name in ("w1", "w2")
    }


def test_a_sharded_optimizer_state_gathers_the_new_parameters():
    whole, state = dict.fromkeys(PARAMS, P()), state_specs(ADAM, FSDP)
    args = PARAMS, jax.eval_shape(ADAM.init, PARAMS), *BATCH
    options = {"in_specs": (whole, state, P("data"), P("data")), "out_specs": (whole, state, P())}
    found = roles(trainer(ADAM, constrained_loss), *args, mesh="data=8", **options)
    updates = named("parameter-update", "data", names=("w1", "w2"))
    assert Counter({key: n for key, n in found.items() if key[0] == "parameter-update"}) == updates


def test_clipping_by_the_global_norm_sums_squared_gradients():
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1))
    found = of_step(tx, FSDP, constrained_loss, mesh="data=8", out_specs=(FSDP, P(), P()))
    norms = named("gradient-norm", "data", names=("w1", "w2"))
    assert Counter({key: n for key, n in found.items() if key[0] == "gradient-norm"}) == norms


@needs_libtpu
def test_a_norm_that_the_compiler_added_up_first_is_that_of_no_single_gradient():
    # TPU adds both local sums of squares, then sends one number.
    def step(w1, w2, x):
        g1, g2 = jax.grad(lambda w1, w2: (jnp.tanh(x @ w1) @ w2).sum(), (0, 1))(w1, w2)
        norm = jnp.sqrt((g1**2).sum() + (g2**2).sum())
        return w1 - g1 / norm, w2 - g2 / norm

    specs = P(None, "model"), P("model")
    report = sn.explain(
        step,
        *(f32(64, 128), f32(128, 64), f32(32, 64)),
        mesh=MESH,
        on="v5e:2x4",
        in_specs=(*specs, P()),
        out_specs=specs,
    )
    assert [(c.role, c.role_of) for c in report.collectives] == [("gradient-norm", "")]
    assert "norm of gradients" in str(report)
    assert "1 merged with others or simplified away" in " ".join(str(report).split())


@pytest.mark.parametrize("fn", [lambda x: x.max(), lambda x: jnp.any(x > 5), lambda x: x.prod()])
def test_what_is_returned_is_a_loss_only_if_it_is_a_sum(fn):
    report = sn.explain(fn, f32(8, 16), mesh=MESH, in_specs=P("data"))
    assert [c.role for c in report.collectives] == [None]
    assert "typical" not in str(report)


def test_the_sum_of_all_elements_may_be_a_loss():
    found = roles(lambda x: (x.mean(), jnp.abs(x).max()), f32(8, 16), in_specs=P("data"))
    assert found == Counter({("loss", "", "data"): 1, (None, "", "data"): 1})


def scanned(params, x):
    def layer(h, weights):
        return jnp.tanh(h @ weights["up"]) @ weights["down"], None

    return jnp.mean(jax.lax.scan(layer, x, params["layers"])[0] ** 2)


LAYERS = {"layers": {"up": f32(3, 64, 128), "down": f32(3, 128, 64)}}


@pytest.mark.parametrize("remat", [False, True])
def test_gradients_of_stacked_layers_are_those_of_their_stack(remat):
    fn = jax.checkpoint(scanned) if remat else scanned

    def step(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(fn)(params, x))

    found = roles(step, LAYERS, f32(32, 64), mesh="data=8", in_specs=(P(), P("data")))
    names = ("up", "down")
    assert found == Counter(
        {("gradient", f"params['layers']['{name}']", "data"): 1 for name in names}
    )


def test_a_loop_that_trains_still_has_its_parameters():
    def steps(params, batches):
        def step(params, x):
            grads = jax.grad(lambda p: jnp.mean((jnp.tanh(x @ p["w1"]) @ p["w2"]) ** 2))(params)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), None

        return jax.lax.scan(step, params, batches)[0]

    params = {"w1": f32(64, 256), "w2": f32(256, 64)}
    found = roles(steps, params, f32(4, 32, 64), mesh="data=8", in_specs=(P(), P(None, "data")))
    assert found == named("gradient", "data", names=("w1", "w2"))


def test_an_averaged_copy_of_the_parameters_is_not_what_is_trained():
    def step(params, average, x, y):
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x, y))
        return new, jax.tree.map(lambda a, p: 0.9 * a + 0.1 * p, average, new)

    specs = P(), P(), P("data"), P("data")
    found = roles(step, PARAMS, PARAMS, *BATCH, in_specs=specs)
    assert found == named("gradient", "data")


def test_the_sum_of_a_tangent_is_no_gradient():
    def product(w, x):
        return jax.jvp(jax.grad(lambda w: jnp.tanh(x @ w).sum()), (w,), (w,))[1]

    specs = P(), P("data")
    assert {key[0] for key in roles(product, f32(16, 4), f32(32, 16), in_specs=specs)} == {None}


def test_factored_and_orthogonalised_updates_leave_gradients_known():
    """Their updates are no longer element by element: the products of both passes tell."""
    args = PARAMS, jax.eval_shape(FACTORED.init, PARAMS), *BATCH
    specs = P(), P(), P("data"), P("data")
    assert roles(trainer(FACTORED), *args, in_specs=specs) == named("gradient", "data") + LOSS


FACTORED = optax.adafactor(1e-3, min_dim_size_to_factor=8)


# Programs of which only the text is known


def test_the_text_of_an_optimized_program_shows_gradients_and_gathers():
    args = PARAMS, jax.eval_shape(ADAM.init, PARAMS), *BATCH
    state = state_specs(ADAM, FSDP)
    options = {"in_specs": (FSDP, state, P("data"), P("data")), "out_specs": (FSDP, state, P())}
    text = sn.explain(trainer(ADAM, constrained_loss), *args, mesh="data=8", **options).texts
    found = [(c.role, c.role_of) for c in sn.explain_hlo(text["optimized"], "data=8").collectives]
    gathers = named("parameter-gather", names=("w1", "w2"))
    assert Counter(one for one in found if one[0] is not None) == gathers + named("gradient")


# What a strategy does not need


def two_layers(params, x, before=lambda h: h, after=lambda y: y):
    h = jnp.tanh(before(x) @ params["u"])
    return jnp.mean(after(h @ params["d"]) ** 2)


def plain_sgd(loss):
    def step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def strategies(fn, *args, mesh="data=8", **options):
    """Return the kinds, roles and strategies of a program's collectives, and its report."""
    report = sn.explain(fn, *args, mesh=mesh, origins=False, **options)
    told = [(c.kind, c.role, strategy_of(c, report)) for c in report.collectives]
    return Counter(told), report


def constrained(*axes):
    return lambda x: jax.lax.with_sharding_constraint(x, P(*axes))


TWO_LAYERS = {"u": f32(16, 64), "d": f32(64, 16)}
OF_MEGATRON = {"u": P(None, "model"), "d": P("model")}


def test_a_cotangent_that_is_gathered_for_a_product_is_no_update():
    """Sequence parallelism: the gradient of `y` is gathered for those of `d` and of `h`."""

    def loss(params, x):
        return two_layers(params, x, constrained(), constrained("model"))

    found, report = strategies(
        plain_sgd(loss),
        TWO_LAYERS,
        f32(32, 16),
        mesh="model=8",
        in_specs=(OF_MEGATRON, P("model")),
        out_specs=(OF_MEGATRON, P()),
    )
    assert found == {
        ("all-gather", "requested-reshard", None): 1,
        ("all-gather", None, None): 1,
        ("all-reduce", "tensor-parallel-sum", "tensor parallelism"): 1,
        ("all-reduce", "loss", "every strategy"): 1,
    }
    assert "lost sharding" not in [finding.kind for finding in report.findings]


def test_a_sum_over_the_shards_of_a_parameter_needs_one_that_is_sharded():
    """`h` lost the batch to the columns of `u`; `d` is replicated, so its product belongs to no strategy."""
    specs = {"u": P(None, "data"), "d": P()}
    found, _ = strategies(
        plain_sgd(two_layers), TWO_LAYERS, f32(32, 16), in_specs=(specs, P("data"))
    )
    assert "tensor parallelism" not in {strategy for _, _, strategy in found}
    assert ("all-reduce", None, None) in found


def test_a_parameter_that_is_applied_in_shards_is_not_gathered_by_fsdp():
    def loss(params, x):
        return two_layers(params, x, constrained("data"), constrained("data", "model"))

    found, _ = strategies(
        plain_sgd(loss),
        TWO_LAYERS,
        f32(32, 16),
        mesh="data=4,model=2",
        in_specs=(OF_MEGATRON, P("data", "model")),
        out_specs=(OF_MEGATRON, P()),
    )
    assert ("all-reduce", "tensor-parallel-sum", "tensor parallelism") in found
    assert "FSDP" not in {strategy for _, _, strategy in found}


def test_a_parameter_that_out_specs_gathers_is_not_typical_of_a_strategy():
    """Each device sends 7/8 of 64 x 16 floats for it, which the finding counts."""
    found, report = strategies(
        plain_sgd(lambda params, x: jnp.mean((x @ params["w"]) ** 2)),
        {"w": f32(64, 16)},
        f32(32, 64),
        in_specs=({"w": P("data")}, P("data")),
        out_specs=P(),
    )
    assert found["all-gather", "parameter-update", None] == 1
    (finding,) = [one for one in report.findings if one.kind == "returned otherwise"]
    assert finding.wire_bytes == 64 * 16 * 4 * 7 // 8


def test_gradients_that_are_scattered_are_zeros_where_parameters_are_replicated():
    """ZeRO with momentum: parameters replicated, their state sharded."""
    tx = optax.sgd(0.1, momentum=0.9)
    replicated = dict.fromkeys(PARAMS, P())
    sharded = state_specs(tx, dict.fromkeys(PARAMS, P("data")))
    args = PARAMS, jax.eval_shape(tx.init, PARAMS), *BATCH
    found, _ = strategies(
        trainer(tx),
        *args,
        in_specs=(replicated, sharded, P("data"), P("data")),
        out_specs=(replicated, sharded, P()),
    )
    zero = "weight-update sharding (ZeRO)"
    assert {strategy for _, _, strategy in found} == {zero, "every strategy"}
    assert found["all-reduce", "gradient-scatter", zero] == len(PARAMS)


def test_a_gradient_that_is_resharded_at_once_is_scattered_on_explicit_axes_too():
    def step(w, x):
        gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        shard = jax.sharding.reshard(w, P("data"))
        return shard - 0.1 * jax.sharding.reshard(gradient, P("data"))

    found, _ = strategies(step, f32(16, 8), f32(8, 16), in_specs=(P(), P("data")), axes="explicit")
    assert found == {("all-reduce", "gradient-scatter", "weight-update sharding (ZeRO)"): 1}


def test_state_that_a_result_needs_elsewhere_is_gathered_for_the_programs_result():
    """No operation of Adam's takes it: the compiler has a nameless reshape there."""
    state = jax.eval_shape(ADAM.init, LAYERS_OF_ONE)
    specs, replicated = {"w": P("data")}, jax.tree.map(lambda _: P(), state)

    def step(params, state, x):
        grads = jax.grad(lambda params: jnp.mean((x @ params["w"]) ** 2))(params)
        updates, state = ADAM.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    report = sn.explain(
        step,
        LAYERS_OF_ONE,
        state,
        f32(8, 16),
        mesh="data=8",
        in_specs=(specs, replicated, P("data")),
        out_specs=(specs, replicated),
    )
    gathers = [c for c in report.collectives if c.role == "optimizer-state"]
    assert [c.consumer for c in gathers] == ["the program's result"] * 2
    assert all("but it must be P(), because of out_specs" in c.why for c in gathers)


LAYERS_OF_ONE = {"w": f32(16, 8)}


def test_the_gradient_of_what_a_layer_takes_sums_over_the_shards_of_the_layer():
    """The adversary of an image moves it along its gradient, and trains nothing."""

    def perturbed(params, image):
        def score(image):
            return jnp.sum(jnp.tanh(image @ params["w1"]) @ params["w2"])

        return image + 0.1 * jnp.sign(jax.grad(score)(image))

    params = {"w1": f32(64, 256), "w2": f32(256, 64)}
    specs = {"w1": P(None, "model"), "w2": P("model")}
    found = roles(perturbed, params, f32(32, 64), in_specs=(specs, P("data")))
    assert found == Counter({("tensor-parallel-sum", "params['w1']", "model"): 1})


def test_the_size_of_an_update_is_not_the_norm_of_a_gradient():
    """Adafactor divides a gradient by the roots of its factored moments, and clips that."""
    params = {"w1": f32(256, 128)}
    tx = optax.adafactor(1e-2, multiply_by_parameter_scale=False)

    def mean(params, x, y):
        return jnp.mean((x @ params["w1"] - y) ** 2)

    state = jax.eval_shape(tx.init, params)
    args = params, state, f32(32, 256), f32(32, 128)
    placed = {"w1": P("data")}, P(), P("data"), P("data")
    found = roles(trainer(tx, mean), *args, mesh="data=8", in_specs=placed)
    assert found["gradient-scatter", "params['w1']", "data"] == 1
    assert not any(role == "gradient-norm" for role, *_ in found)


def columns_gathered_by_a_constraint(params, x):
    h = jnp.tanh(x @ params["a"])
    whole = jax.lax.with_sharding_constraint(params["b"], P())
    return h @ whole


def test_a_parameter_that_is_gathered_over_no_axis_of_the_batch_is_not_fsdps():
    # h is sharded over model by the columns of a, so h @ whole sums over these, and not over the
    # columns of b that were gathered.
    specs = {"a": P(None, "model"), "b": P(None, "model")}
    report = sn.explain(
        columns_gathered_by_a_constraint,
        {"a": f32(32, 64), "b": f32(64, 32)},
        f32(16, 32),
        mesh="data=4,model=2",
        in_specs=(specs, P("data")),
    )
    assert [(one.kind, one.role, one.role_of) for one in report.collectives] == [
        ("all-gather", "requested-reshard", "params['b']"),
        ("all-reduce", None, ""),
    ]
