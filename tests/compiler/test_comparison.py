"""Programs side by side. The first seed says what tells the three modes of its program apart."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb.compiler.comparison import compare, diff, normalised
from shardnb.engine import explain
from shardnb.report import Axis, Mesh
from shardnb.report.types import Column, ErrorReport

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
SPECS = (P("data", "model"), P("model", None))


def auto(x, w):
    return jnp.tanh(x @ w)


def explicit(x, w):
    return jnp.tanh(jnp.matmul(x, w, out_sharding=P("data", None)))


def manual(x, w):
    return jnp.tanh(lax.psum(x @ w, "model"))


def column(fn, axes, out_specs=None, in_specs=SPECS):
    report = explain(
        fn, X, W, mesh="data=4,model=2", axes=axes, in_specs=in_specs, out_specs=out_specs
    )
    return Column(axes, report)


@pytest.fixture(scope="module")
def three():
    return [
        column(auto, "auto"),
        column(explicit, "explicit"),
        column(manual, "manual", out_specs=P("data", None)),
    ]


def test_auto_and_explicit_differ_in_the_permission_to_choose_the_output(three):
    found = diff(three[0], three[1])
    assert found.identical
    assert found.header == ("allow_spmd_sharding_propagation_to_output",)
    assert found.sentence == "identical except the permission to choose the output"


def test_manual_sends_the_same(three):
    found = diff(three[0], three[2])
    assert found.same_collectives
    assert found.marks


def test_three_programs_are_compared_with_the_first(three):
    found = compare(three)
    assert [(d.left, d.right) for d in found.diffs] == [("auto", "explicit"), ("auto", "manual")]
    rows = [line.split() for line in str(found).splitlines()]
    assert ["auto", "all-reduce[model]", "256", "KiB", "1.6", "MiB"] in rows


def test_a_program_is_identical_to_itself(three):
    assert diff(three[0], three[0]).sentence == "identical"


def test_a_program_compiled_in_another_process_is_the_same():
    here = explain(auto, X, W, mesh="data=4,model=2", in_specs=SPECS)
    apart = explain(auto, X, W, mesh="data=4,model=2", in_specs=SPECS, isolate=True)
    assert diff(Column("here", here), Column("apart", apart)).sentence == "identical"


def test_another_placement_is_another_program(three):
    other = column(auto, "auto", in_specs=(P("model", "data"), P()))
    found = diff(three[0], other)
    assert not found.identical
    assert not found.same_collectives
    assert found.sentence.endswith("they do not send the same")


def test_an_error_stands_in_the_place_of_its_program(three):
    error = ErrorReport("ambiguous-contraction", "ShardingTypeError", "...", "x @ w sums")
    found = compare([three[0], Column("explicit", error=error)])
    assert found.diffs == ()
    assert "ShardingTypeError: x @ w sums" in str(found)


MODULE = """HloModule jit_f, is_scheduled=true, num_partitions=2

%add.{n} (x.{n}: f32[], y.{n}: f32[]) -> f32[] {{
  %x.{n} = f32[] parameter(0)
  %y.{n} = f32[] parameter(1)
  ROOT %s.{n} = f32[] add(%x.{n}, %y.{n})
}}

ENTRY %main.{n} (p.{n}: f32[4]) -> f32[4] {{
  %p.{n} = f32[4]{{0}} parameter(0){sharding}
  ROOT %r.{n} = f32[4]{{0}} all-reduce(%p.{n}), channel_id={n}, replica_groups={groups}, to_apply=%add.{n}, metadata={{op_name="{name}"}}
}}
"""
MESH = Mesh((Axis("data", 2),), (0, 1))


def module(**parts):
    given = {"n": 1, "sharding": "", "groups": "{{0,1}}", "name": "jit(f)/add", **parts}
    return normalised(MODULE.format(**given), MESH)


@pytest.mark.parametrize(
    "parts",
    [
        {"n": 7},
        {"name": "jit(g)/other"},
        {"sharding": ", sharding={devices=[2]<=[2]}"},
        {"groups": "[1,2]<=[2]"},
    ],
)
def test_names_numbers_and_spellings_make_no_difference(parts):
    assert module(**parts).lines == module().lines


def test_other_groups_make_a_difference():
    assert module(groups="{{0},{1}}").lines != module().lines
