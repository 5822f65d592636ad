"""Recipes put one mesh axis where data parallelism, FSDP and tensor parallelism have it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
import pytest

from shardnb.compiler.call import read_call
from shardnb.findings import report_of_program
from shardnb.mesh import make_grid
from shardnb.report import Axis
from shardnb.search.recipes import alike, applied, arrays_of, axis_for, mirrored
from shardnb.widgets.exploration import subject_of
from shardnb.widgets.plan import MeshPlan
from shardnb.widgets.plan_edits import arrays_of_program
from shardnb.widgets.preview import base_of

AXES = (Axis("data", 4), Axis("model", 2))


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


class Recipes:
    """A program compiled with replicated inputs on 4 x 2 devices, and recipes for it."""

    def __init__(self, fn, *args):
        self.subject = subject_of(read_call(fn, args, {}).request(make_grid("data=4,model=2")))
        program, report = self.subject.compiled(
            self.subject.first, self.subject.traced(self.subject.first)
        )
        assert report == report_of_program(program)
        self.base = base_of(self.subject.first, program, report)
        self.arrays = arrays_of_program(self.subject, program)
        self.specs = dict(self.subject.first.specs)

    def carry(self, specs, free):
        return self.base.carried(MeshPlan(AXES, tuple(specs.items())), free)

    def apply(self, recipe, axis, specs=None):
        return applied(recipe, axis, specs or self.specs, self.arrays, AXES, self.carry)


def sharded(edited):
    """Return the specs that are not replicated."""
    return {name: spec for name, spec in edited.specs.items() if any(spec)}


def loss(params, x, y):
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x - y) ** 2)


OPTIMIZER = optax.adam(1e-3)


def step(params, state, x, y):
    gradients = jax.grad(loss)(params, x, y)
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


@pytest.fixture(scope="module")
def mlp():
    params = [
        {"w": shape(64, 256), "b": shape(256)},
        {"w": shape(256, 64), "b": shape(64)},
    ]
    state = jax.eval_shape(OPTIMIZER.init, params)
    return Recipes(step, params, state, shape(32, 64), shape(32, 64))


def test_data_parallelism_shards_what_has_the_batch_and_nothing_else(mlp):
    edited = mlp.apply("data-parallel", "data")
    assert sharded(edited) == {"x": (("data",), ()), "y": (("data",), ())}
    assert edited.placed == ("x", "y")
    assert edited.left["params[0]['w']"] == "copies"
    assert edited.left["state[0].count"] == "scalar"


def test_zero_1_shards_the_state_and_leaves_the_parameters(mlp):
    edited = mlp.apply("zero-1", "data")
    for owner in ("state[0].mu", "state[0].nu"):
        assert edited.specs[f"{owner}[0]['w']"] == ((), ("data",))
        assert edited.specs[f"{owner}[1]['w']"] == (("data",), ())
        assert edited.left[f"{owner}[1]['b']"] == "small"
    assert edited.left["params[0]['w']"] == "copies"
    assert edited.specs["x"] == (("data",), ())


def test_zero_1_beside_tensor_parallelism_shards_the_state_over_both_axes(mlp):
    tensor = mlp.apply("tensor-parallel", "model")
    for specs in (
        mlp.apply("zero-1", "data", tensor.specs).specs,
        mlp.apply("tensor-parallel", "model", mlp.apply("zero-1", "data").specs).specs,
    ):
        assert specs["params[1]['w']"] == (("model",), ())
        both = {axis for axes in specs["state[0].mu[1]['w']"] for axis in axes}
        assert both == {"data", "model"}


def test_no_recipe_of_sequences_or_experts_changes_a_program_without_them(mlp):
    assert sharded(mlp.apply("sequence-parallel", "model")) == {}
    # The batch of an expert parallel program is sharded too.
    assert set(sharded(mlp.apply("expert-parallel", "model"))) == {"x", "y"}


def test_fsdp_shards_the_longest_dimension_and_the_state_alike(mlp):
    edited = mlp.apply("fsdp", "data")
    # 64 x 256 by its columns, 256 x 64 by its rows; a vector of 256 is 0.8% of 33,088 elements.
    first, second = ((), ("data",)), (("data",), ())
    for owner in ("params", "state[0].mu", "state[0].nu"):
        assert edited.specs[f"{owner}[0]['w']"] == first
        assert edited.specs[f"{owner}[1]['w']"] == second
        assert edited.specs[f"{owner}[0]['b']"] == (("data",),)
    # 64 of 33,088 elements are 0.19%.
    assert edited.left["params[1]['b']"] == "small"
    assert edited.specs["x"] == (("data",), ())


def test_tensor_parallelism_takes_columns_then_rows_as_shardy_carries_them(mlp):
    edited = mlp.apply("tensor-parallel", "model")
    for owner in ("params", "state[0].mu", "state[0].nu"):
        assert edited.specs[f"{owner}[0]['w']"] == ((), ("model",))
        assert edited.specs[f"{owner}[0]['b']"] == (("model",),)
        assert edited.specs[f"{owner}[1]['w']"] == (("model",), ())
        assert edited.specs[f"{owner}[1]['b']"] == ((),)
    assert edited.left["x"] == "not-parameter"
    assert edited.left["params[1]['b']"] == "not-multiplied"


def test_recipes_over_two_axes_add_up_and_one_axis_goes_to_one_place(mlp):
    both = mlp.apply("tensor-parallel", "model", mlp.apply("fsdp", "data").specs)
    # The columns are sharded over both axes, in the order of the mesh.
    assert both.specs["params[0]['w']"] == ((), ("data", "model"))
    assert both.specs["x"] == (("data",), ())
    again = mlp.apply("data-parallel", "data", both.specs)
    assert again.specs["params[0]['w']"] == ((), ("model",))


def test_a_dimension_that_the_axis_does_not_divide_is_left():
    program = Recipes(lambda params, x: x @ params["w"], {"w": shape(9, 7)}, shape(6, 9))
    edited = program.apply("fsdp", "data")
    assert sharded(edited) == {}
    assert edited.left == {"params['w']": "not-divisible", "x": "not-divisible"}


def test_where_nothing_is_trained_what_stands_on_the_right_of_a_product_counts():
    program = Recipes(lambda x, w: jnp.tanh(x @ w), shape(8, 16), shape(16, 32))
    assert program.arrays.assumed
    assert program.arrays.parameters == {"w"}
    assert sharded(program.apply("tensor-parallel", "model")) == {"w": ((), ("model",))}
    assert sharded(program.apply("data-parallel", "data")) == {"x": (("data",), ())}


def block(x, layer):
    batch, length, width = x.shape
    heads = (batch, length, 4, width // 4)
    q, k, v = (jnp.reshape(x @ layer[name], heads) for name in ("wq", "wk", "wv"))
    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    mixed = jnp.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape)
    x = x + mixed @ layer["wo"]
    return x + jax.nn.gelu(x @ layer["w1"]) @ layer["w2"], None


def decoder_loss(params, tokens):
    x = params["embed"][tokens]
    x, _ = jax.lax.scan(block, x, params["layers"])
    return jax.nn.logsumexp(x @ params["head"], axis=-1).mean()


def decoder_step(params, tokens):
    gradients = jax.grad(decoder_loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def test_the_stacked_layers_of_a_transformer_get_the_megatron_layout_beside_fsdp_too():
    square = {name: shape(3, 32, 32) for name in ("wq", "wk", "wv", "wo")}
    layers = {**square, "w1": shape(3, 32, 64), "w2": shape(3, 64, 32)}
    params = {"embed": shape(128, 32), "layers": layers, "head": shape(32, 128)}
    program = Recipes(decoder_step, params, shape(8, 16, dtype=jnp.int32))
    edited = program.apply("tensor-parallel", "model")
    columns, rows = ((), (), ("model",)), ((), ("model",), ())
    specs = {name: edited.specs[f"params['layers']['{name}']"] for name in layers}
    assert specs == {
        **dict.fromkeys(("wq", "wk", "wv", "w1"), columns),
        **dict.fromkeys(("wo", "w2"), rows),
    }
    assert edited.specs["params['embed']"] == (("model",), ())
    assert edited.specs["params['head']"] == ((), ("model",))
    both = program.apply("tensor-parallel", "model", program.apply("fsdp", "data").specs)
    without = {
        n: tuple(a and tuple(x for x in a if x != "data") for a in s) for n, s in both.specs.items()
    }
    assert {name: without[name] for name in program.arrays.parameters} == {
        name: edited.specs[name] for name in program.arrays.parameters
    }


def test_sequence_parallelism_shards_the_second_dimension_of_tokens_and_of_activations():
    params = {"embed": shape(128, 32), "head": shape(32, 128)}

    def loss(params, tokens, targets):
        scores = jax.nn.log_softmax(params["embed"][tokens] @ params["head"])
        return -jnp.take_along_axis(scores, targets[..., None], -1).mean()

    tokens = shape(8, 16, dtype=jnp.int32)
    edited = Recipes(jax.grad(loss), params, tokens, tokens).apply("sequence-parallel", "model")
    assert sharded(edited) == {"tokens": ((), ("model",)), "targets": ((), ("model",))}
    assert edited.left["params['head']"] == "copies"
    dense = Recipes(lambda x, w: jnp.tanh(x @ w), shape(8, 16, 32), shape(32, 32))
    assert sharded(dense.apply("sequence-parallel", "model")) == {"x": ((), ("model",), ())}


def test_expert_parallelism_shards_what_is_multiplied_expert_by_expert():
    def experts(params, x):
        scores = jax.nn.softmax(x @ params["gate"])
        sent = jnp.einsum("gse,gsd->egsd", scores, x)
        h = jax.nn.gelu(jnp.einsum("egsd,edf->egsf", sent, params["up"]))
        out = jnp.einsum("egsf,efd->egsd", h, params["down"])
        return jnp.mean(jnp.einsum("gse,egsd->gsd", scores, out) ** 2)

    params = {"gate": shape(32, 4), "up": shape(4, 32, 64), "down": shape(4, 64, 32)}
    program = Recipes(jax.grad(experts), params, shape(8, 16, 32))
    assert sharded(program.apply("expert-parallel", "data")) == {
        "params['up']": (("data",), (), ()),
        "params['down']": (("data",), (), ()),
        "x": (("data",), (), ()),
    }


@pytest.mark.parametrize(
    ("axes", "chosen"),
    [
        ((Axis("data", 4), Axis("model", 2)), ("data", "data", "model")),
        ((Axis("tp", 2), Axis("fsdp", 4)), ("tp", "fsdp", "tp")),
        ((Axis("x", 8),), ("x", "x", "x")),
        ((Axis("data", 8), Axis("model", 1)), ("data", "data", "data")),
    ],
)
def test_a_recipe_takes_the_axis_of_its_usual_name_or_the_first_or_last(axes, chosen):
    recipes = ("data-parallel", "fsdp", "tensor-parallel")
    assert tuple(axis_for(recipe, axes) for recipe in recipes) == chosen


def test_the_state_of_a_train_state_mirrors_its_parameters_by_their_paths():
    params = {"enc": {"w": shape(8, 4)}, "dec": {"w": shape(4, 8)}}
    state = {"params": params, "opt": {"mu": params, "nu": params, "sum": {"enc": shape(8)}}}

    def train(state, x):
        gradients = jax.grad(lambda p: (x @ p["enc"]["w"] @ p["dec"]["w"]).sum())(state["params"])
        mu = jax.tree.map(lambda m, g: 0.9 * m + g, state["opt"]["mu"], gradients)
        nu = jax.tree.map(lambda n, g: 0.9 * n + g * g, state["opt"]["nu"], gradients)
        new = jax.tree.map(lambda p, m, n: p - m / (n + 1), state["params"], mu, nu)
        return {"params": new, "opt": {"mu": mu, "nu": nu, "sum": state["opt"]["sum"]}}

    program = Recipes(train, state, shape(16, 8))
    specs = {**program.specs, "state['params']['enc']['w']": (("model",), ())}
    edited = mirrored(specs, program.arrays)
    expected = [f"state['opt']['{m}']['{p}']['w']" for m in ("mu", "nu") for p in ("dec", "enc")]
    assert sorted(edited.placed) == expected
    assert edited.specs["state['opt']['mu']['enc']['w']"] == (("model",), ())
    assert edited.specs["state['opt']['mu']['dec']['w']"] == ((), ())


def test_alike_are_arrays_of_one_shape_and_name_that_are_the_same_to_the_program(mlp):
    spec = (("model",), ())
    edited = alike({**mlp.specs, "params[0]['w']": spec}, mlp.arrays, "params[0]['w']")
    # The other matrix has another shape, and the moments are not parameters.
    assert edited.placed == ()
    layers = [{"kernel": shape(8, 8), "bias": shape(8)} for _ in range(3)]
    arrays = arrays_of({"params": {"layers": layers, "out": {"kernel": shape(8, 8)}}}, None)
    specs = {array.name: ((),) * len(array.shape) for array in arrays.arrays}
    first = "params['layers'][0]['kernel']"
    edited = alike({**specs, first: spec}, arrays, first)
    others = ["params['layers'][1]['kernel']", "params['layers'][2]['kernel']"]
    assert sorted(edited.placed) == [*others, "params['out']['kernel']"]
    assert {edited.specs[name] for name in edited.placed} == {spec}
    with pytest.raises(ValueError, match="expected the name of an array"):
        alike(specs, arrays, "nope")
