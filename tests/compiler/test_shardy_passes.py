"""Shardy in this process: the same shardings as the compiler's own run, and their reasons."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request, build, shardy_passes
from shardnb.compiler.dumps import Dumps
from shardnb.jax_compat import mlir
from shardnb.mesh import make_grid
from shardnb.texts import shardy
from shardnb.texts.shardy_attributes import sharding_text
from tests.causes.cases import f32

MODULE = """module {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(
      %arg0: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
    {}
    return %0 : tensor<8xf32>
  }}
}}"""
MODULE_OF_OTHER_TYPES = """module {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @mine(%arg0) {
      sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=4}, custom>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}"""
LATER = "sdy-apply-sharding-constraints,sdy-user-priority-propagate"
OLD_JAX = jax.__version__.startswith("0.11")


def program(fn, args, specs, mesh="data=4,model=2", out=None):
    return build(Request(fn, args, make_grid(mesh), specs, out))


def chain(x, w):
    h = jnp.tanh(x @ w)
    return lax.with_sharding_constraint(h, P(None, "model")).sum(0)


def looped(x, ws):
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, ws)[0] * 3


def mapped(x):
    mesh = make_grid("data=4,model=2").mesh

    def body(a):
        return lax.psum(a * 2, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(x + 1) * 3


def branched(x):
    return lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: jnp.sort(a, 0), x)


def best(x):
    return lax.top_k(x, 2)[0] * 2


CHAINED = {"x": P("data", "model"), "w": P("model")}
PROGRAMS = {
    "chain": (chain, {"x": f32(256, 512), "w": f32(512, 64)}, CHAINED),
    "loop": (looped, {"x": f32(8, 8), "ws": f32(3, 8, 8)}, {"x": P("data")}),
    "shard_map": (mapped, {"x": f32(8, 8)}, {}),
    "cond": (branched, {"x": f32(8, 8)}, {"x": P("data")}),
    "top_k": (best, {"x": f32(8, 16)}, {"x": P("data", "model")}),
}


def specs(module):
    """The specs of all ops that carry one, constants and broadcasts apart."""
    return [
        (op.kind, value.placed.spec)
        for op in module.ops
        if op.kind != "stablehlo.broadcast_in_dim" and not op.kind.startswith("sdy.")
        for value in op.results
        if any(value.placed.spec or ())
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_propagation_gives_what_the_compiler_gave(name):
    dumps = program(*PROGRAMS[name]).dumps
    found = shardy_passes.propagate(dumps)
    assert specs(found.module) == specs(shardy.read(dumps.parsed_propagated))


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_are_missing_only_for_loops_and_branches_in_the_old_jaxlib(name):
    found = shardy_passes.propagate(program(*PROGRAMS[name]).dumps)
    assert found.traced == (not OLD_JAX or name not in ("loop", "cond"))


def test_where_an_axis_came_from_and_how_is_noted():
    module = shardy_passes.propagate(program(*PROGRAMS["chain"]).dumps).module
    dot, tanh = module.ops[:2]
    (result,) = dot.results
    assert (result.dtype, result.shape) == ("f32", (256, 64))
    assert result.spec == (("data",), ("model",))
    assert result.origins == {"data": "input: 0", "model": "constraint_0"}
    ways = {(e.axis, e.source, e.targets) for op in (dot, tanh) for e in op.edges}
    assert ("data", ("operand", 0), (("result", 0),)) in ways
    assert ("model", ("result", 0), (("operand", 0),)) in ways
    assert [output.spec for output in module.outputs] == [(("model",),)]


def test_a_module_that_shardy_refuses_says_so():
    dumps = program(*PROGRAMS["chain"]).dumps
    with pytest.raises(ValueError, match=r"Shardy refused the module: .*no-such-pass"):
        shardy_passes.stated_module(dumps).run("no-such-pass")


def test_a_custom_call_takes_the_rule_that_only_xla_knows():
    call = "%0 = stablehlo.custom_call @mine(%arg0) {{{}}} : (tensor<8xf32>) -> tensor<8xf32>"
    rule = "sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>"
    module = mlir.Module(MODULE.format(call.format("")))
    module.take_rules(mlir.Module(MODULE.format(call.format(rule))))
    (op,) = shardy.read(module.run(shardy_passes.PIPELINE)).ops
    assert op.rule.results == ((("i",),),)
    assert op.results[0].spec == (("x",),)


@pytest.mark.parametrize("propagated", ["", MODULE_OF_OTHER_TYPES])
def test_a_custom_call_keeps_to_itself_where_no_rule_is_known(propagated):
    call = "%0 = stablehlo.custom_call @mine(%arg0) : (tensor<8xf32>) -> tensor<8xf32>"
    module = shardy_passes.stated_module(Dumps(stated=MODULE.format(call), propagated=propagated))
    (op,) = shardy.read(module.run(shardy_passes.PIPELINE)).ops
    assert op.results[0].spec is None


def mesh_of(dumps):
    """The name of the mesh: some versions of JAX call that of a shard_map otherwise."""
    return next(iter(dumps.stated_module.meshes))


def preview(name, specs, axes=None):
    dumps = program(*PROGRAMS[name]).dumps
    return shardy_passes.preview(shardy_passes.imported(dumps), mesh_of(dumps), specs, axes)


def test_a_preview_changes_one_input():
    found = preview("chain", {0: ((), ("data",))})
    assert [value.spec for value in found.inputs] == [((), ("data",)), (("model",), ())]
    assert found.ops[0].results[0].spec == ((), ("model",))


def test_previews_leave_their_module_as_it_was():
    module = shardy_passes.imported(program(*PROGRAMS["chain"]).dumps)
    before = str(module)
    shardy_passes.preview(module, "mesh", {0: ((), ("data",))}, {"data": 2, "model": 2})
    assert str(module) == before


def test_a_preview_is_what_a_compile_gives():
    fn, args, given = PROGRAMS["loop"]
    changed = {**given, "x": P(None, "model"), "ws": P(None, "model", "data")}
    found = preview("loop", {0: ((), ("model",)), 1: ((), ("model",), ("data",))})
    assert specs(found) == specs(shardy.read(program(fn, args, changed).dumps.parsed_propagated))


def test_a_preview_on_another_mesh_is_what_a_compile_gives():
    fn, args, given = PROGRAMS["loop"]
    found = preview("loop", {0: (("data",), ()), 1: ((), (), ())}, {"data": 2, "other": 2})
    compiled = program(fn, args, given, mesh="data=2,other=2").dumps
    assert found.meshes == {"mesh": {"data": 2, "other": 2}}
    assert specs(found) == specs(shardy.read(compiled.parsed_propagated))


def test_a_preview_on_a_mesh_without_an_axis_that_is_used_is_refused():
    with pytest.raises(ValueError, match="Shardy refused the sharding"):
        preview("chain", {}, {"data": 2})


def test_a_preview_shards_an_input_that_had_no_sharding():
    dumps = program(*PROGRAMS["shard_map"]).dumps
    mesh = mesh_of(dumps)
    bare = dumps.stated.replace(f" {{sdy.sharding = #sdy.sharding<@{mesh}, [{{}}, {{}}]>}}", "")
    assert bare != dumps.stated
    module = shardy_passes.imported(Dumps(stated=bare))
    found = shardy_passes.preview(module, mesh, {0: (("model",), ())})
    assert [value.spec for value in found.inputs] == [(("model",), ())]


def test_a_preview_of_an_unknown_input_is_refused():
    with pytest.raises(ValueError, match="no input number 7"):
        preview("chain", {7: ()})


def test_a_preview_with_another_spec_of_a_result_is_what_a_compile_gives():
    fn, args, given = PROGRAMS["loop"]
    imported = shardy_passes.imported(program(fn, args, given).dumps)
    stated = shardy_passes.preview(imported, "mesh", {}, None, {0: ((), ("data",))})
    assert stated.outputs[0].spec == ((), ("data",))
    compiled = program(fn, args, given, out=P(None, "data")).dumps
    assert specs(stated) == specs(shardy.read(compiled.parsed_propagated))
    without = shardy_passes.preview(shardy_passes.imported(compiled), "mesh", {}, None, {0: None})
    assert specs(without) == specs(shardy_passes.preview(imported, "mesh", {}))


def test_a_preview_of_an_unknown_result_is_refused():
    dumps = program(*PROGRAMS["chain"]).dumps
    with pytest.raises(ValueError, match="no result number 7"):
        shardy_passes.preview(shardy_passes.imported(dumps), "mesh", {}, None, {7: None})


def test_a_sharding_that_names_an_axis_twice_is_refused():
    with pytest.raises(ValueError, match="Shardy refused the sharding"):
        preview("chain", {0: (("data",), ("data",))})


@pytest.mark.parametrize("spec", [((), ("model",)), (("data",), ()), (("model", "data"), ())])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_preview_is_what_all_passes_give_at_once(name, spec):
    dumps = program(*PROGRAMS[name]).dumps
    module = shardy_passes.stated_module(dumps)
    given = {0: sharding_text(mesh_of(dumps), spec)}
    at_once = module.copy(given).run(shardy_passes.PIPELINE)
    in_two = module.copy().run("sdy-import-pipeline").copy(given).run(LATER)
    assert str(in_two) == str(at_once)


def test_other_attributes_of_an_input_stay():
    head = 'module { sdy.mesh @m = <["x"=2]> func.func public @main(%arg0: tensor<4xf32> {{{}}}'
    head += ", %arg1: tensor<4xf32>) -> tensor<4xf32> {{ return %arg0 : tensor<4xf32> }} }"
    text = head.replace("{ sdy.mesh", "{{ sdy.mesh").replace("} }", "} }}")
    module = mlir.Module(text.format('mhlo.kind = "}", sdy.sharding = #sdy.sharding<@m, [{"x"}]>'))
    changed = str(module.copy({0: "#sdy.sharding<@m, [{}]>"}))
    assert (
        '%arg0: tensor<4xf32> {mhlo.kind = "}", sdy.sharding = #sdy.sharding<@m, [{}]>}' in changed
    )
    changed = str(module.copy({1: '#sdy.sharding<@m, [{"x"}]>'}))
    assert '%arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}' in changed


def test_threads_may_ask_for_previews_of_one_module():
    module = mlir.Module(MODULE.format("%0 = stablehlo.negate %arg0 : tensor<8xf32>"))
    specs = [((),), (("x",),)] * 20

    def result(spec):
        (output,) = shardy_passes.preview(module, "mesh", {0: spec}).outputs
        return output.value.spec or ((),)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(result, specs)) == specs


def test_a_copy_outlives_its_module():
    copied = mlir.Module(MODULE.format("%0 = stablehlo.negate %arg0 : tensor<8xf32>")).copy()
    gc.collect()
    assert [op.kind for op in shardy.read(copied).ops] == ["stablehlo.negate"]
