"""Specs by rules: paths, logical axes, and like another argument's."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler.spec_rules import axes_of, mesh_axes

MESH = "data=4,model=2"


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


PARAMS = {
    "layers": [{"up": {"kernel": shape(8, 16), "bias": shape(16)}} for _ in range(2)],
    "scale": shape(8),
}


def summed(*trees):
    return sum(jnp.sum(leaf) for tree in trees for leaf in jax.tree.leaves(tree))


def explained(*args, in_specs):
    return sn.explain(summed, *args, mesh=MESH, in_specs=in_specs, origins=False)


def specs(report):
    return {value.name: value.spec for value in report.inputs}


def test_the_first_rule_that_matches_counts_and_the_report_says_what_matched():
    given = sn.rules({"kernel$": P(None, "model"), "up/.*": P("model"), "^embed": P("data")})
    report = explained(PARAMS, in_specs=(given,))
    found = specs(report)
    assert found["trees0['layers'][0]['up']['kernel']"] == ((), ("model",))
    assert found["trees0['layers'][1]['up']['bias']"] == (("model",),)
    assert found["trees0['scale']"] == ((),)
    notes = "\n".join(report.notes)
    assert "2 arrays (trees0['layers'][0]['up']['kernel'], trees0['layers'][1]" in notes
    assert "have their spec from the rule /kernel$/ = P(None, 'model')" in notes
    assert "no array has its spec from the rule /^embed/ = P('data')" in notes
    assert "no rule matches 1 array (trees0['scale']): own sharding, or replicated" in notes


def test_a_rule_that_does_not_fit_names_the_array():
    with pytest.raises(ValueError, match=r"\['bias'\] has 2 entries"):
        explained(PARAMS, in_specs=(sn.rules({".*": P(None, "model")}),))


def test_an_optimizers_state_is_like_its_parameters():
    state = jax.eval_shape(optax.adamw(1e-3).init, PARAMS)
    given = sn.rules([("kernel$", P(None, "model"))])

    def step(params, opt):
        return summed(params, opt)

    for other in ("params", PARAMS):
        report = sn.explain(
            step,
            PARAMS,
            state,
            mesh=MESH,
            in_specs={"params": given, "opt": sn.like(other)},
            origins=False,
        )
        found = specs(report)
        assert found["opt[0].mu['layers'][0]['up']['kernel']"] == ((), ("model",))
        assert found["opt[0].nu['layers'][1]['up']['bias']"] == ((),)
        # mu and nu have 5 arrays each; adamw counts once.
        (note,) = (note for note in report.notes if note.startswith("opt: "))
        assert note.startswith("opt: 10 arrays (opt[0].mu")
        assert note.endswith("1 array (opt[0].count) unlike any of params: replicated")


def test_another_shape_is_not_like_a_parameter():
    factored = {"w": shape(8)}
    report = explained({"w": shape(8, 16)}, factored, in_specs=(P("data"), sn.like("trees0")))
    assert specs(report)["trees1['w']"] == ((),)


@pytest.mark.parametrize("other", ["nothing", "trees0", {"x": 1}])
def test_an_argument_that_is_like_none_is_refused(other):
    with pytest.raises(ValueError, match=r"the spec of trees0 is like .*not another argument"):
        explained(PARAMS, in_specs=(sn.like(other),))


def test_rules_that_match_nothing_are_refused_with_the_nearest_path():
    given = sn.rules({"kernal$": P("model"), "embed": P("data")})
    with pytest.raises(ValueError, match="no rule of trees0 matches any of its arrays") as refused:
        explained(PARAMS, in_specs=(given,))
    assert "/kernal$/ and /embed/" in str(refused.value)
    assert "'layers/0/up/kernel'" in str(refused.value)


RULES = [("embed", None), ("mlp", "model"), ("batch", "data"), ("heads", "model")]


@pytest.mark.parametrize(
    "axes", [("embed", "mlp"), ("mlp", "heads"), ("batch", None, "heads"), ("other", "mlp")]
)
def test_logical_axes_are_mapped_as_flax_maps_them(axes):
    assert mesh_axes(axes, RULES) == P(*nn.logical_to_mesh_axes(axes, RULES))


class Dense(nn.Module):
    @nn.compact
    def __call__(self, x):
        init = nn.with_logical_partitioning(nn.initializers.zeros, ("embed", "mlp"))
        return nn.Dense(16, kernel_init=init)(x)


def test_boxes_of_linen_name_their_axes():
    variables = jax.eval_shape(Dense().init, jax.random.key(0), jnp.ones((4, 8)))
    report = explained(variables, in_specs=(sn.logical(RULES),))
    found = {name.rpartition("['Dense_0']")[2]: spec for name, spec in specs(report).items()}
    assert found == {"['kernel'].value": ((), ("model",)), "['bias']": ((),)}
    (note,) = (note for note in report.notes if "logical" in note)
    assert "1 array with logical axes; without them, so replicated: 1 array (" in note


def test_variables_of_nnx_name_their_axes_and_may_hold_the_rules():
    kernel = nnx.Param(jnp.ones((8, 16)), out_sharding=("embed", "mlp"), eager_sharding=False)
    state = {"kernel": kernel, "bias": nnx.Param(jnp.ones(16))}
    assert axes_of(kernel) == ("embed", "mlp")
    report = explained(state, in_specs=(sn.logical({"mlp": "model"}),))
    assert specs(report)["trees0['kernel'].value"] == ((), ("model",))
    assert any("no rule for the logical axis embed" in note for note in report.notes)
    held = nnx.Param(
        jnp.ones((8, 16)),
        out_sharding=("embed", "mlp"),
        sharding_rules=[("mlp", "data")],
        eager_sharding=False,
    )
    report = explained({"kernel": held}, in_specs=(sn.logical(),))
    assert specs(report)["trees0['kernel'].value"] == ((), ("data",))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sn.rules({"(": P()}), ValueError, r"/\(/ is not a regular expression"),
        (lambda: sn.rules({"w": "data"}), TypeError, r"the rule /w/ such as P\('data'\)"),
        (lambda: sn.logical([("mlp",)]), TypeError, "expected rules such as"),
    ],
)
def test_bad_rules_are_refused_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()
