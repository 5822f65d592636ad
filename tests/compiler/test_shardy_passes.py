"""Shardy in this process: the same placements as the compiler's own run, and their reasons."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request, build, shardy_passes
from shardnb.jax_compat import private
from shardnb.mesh import make_grid
from shardnb.texts import shardy
from tests.causes.cases import f32

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
    """The placements of all ops that carry one, constants and broadcasts apart."""
    return [
        (op.kind, module.values[module.placed(value)].spec)
        for op in module.ops
        if op.kind != "stablehlo.broadcast_in_dim" and not op.kind.startswith("sdy.")
        for value in op.results
        if any(module.values[module.placed(value)].spec or ())
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_propagation_gives_what_the_compiler_gave(name):
    dumps = program(*PROGRAMS[name]).dumps
    found = shardy_passes.propagate(shardy_passes.prepared(dumps.stated, dumps.propagated))
    assert specs(found.module) == specs(shardy.read(dumps.propagated))


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_are_missing_only_for_loops_and_branches_in_the_old_jaxlib(name):
    found = shardy_passes.propagate(program(*PROGRAMS[name]).dumps.stated)
    assert found.traced == (not OLD_JAX or name not in ("loop", "cond"))


def test_a_module_is_read():
    dumps = program(*PROGRAMS["chain"]).dumps
    module = shardy_passes.propagate(dumps.stated).module
    dot = module.ops[0]
    assert dot.kind == "stablehlo.dot"
    assert dot.operands == tuple(module.inputs)
    (result,) = (module.values[value] for value in dot.results)
    assert (result.dtype, result.shape) == ("f32", (256, 64))
    assert result.spec == (("data",), ("model",))
    assert result.origins == {"data": "input: 0", "model": "constraint_0"}
    assert dot.rule.operands == ((("i",), ("k",)), (("k",), ("j",)))
    assert dot.rule.has_role("k", "reduction")
    assert [output.spec for output in module.outputs] == [(("model",),)]


def test_a_loop_has_its_carry_and_what_its_body_returns():
    module = shardy.read(program(*PROGRAMS["loop"]).dumps.stated)
    (loop,) = (op for op in module.ops if op.kind == "stablehlo.while")
    assert [module.placed(value) for value in loop.arguments[1]] == list(loop.results)
    (tanh,) = (op for op in module.ops if op.kind == "stablehlo.tanh")
    assert loop.returned[1][1] == tanh.results[0]
    assert tanh.parent is loop


def test_a_refused_module_says_so():
    with pytest.raises(ValueError, match="Shardy refused"):
        shardy_passes.propagate("module { nonsense }")


def test_a_preview_changes_one_input():
    module = shardy_passes.imported(program(*PROGRAMS["chain"]).dumps.stated)
    preview = shardy_passes.preview(module, {0: ((), ("data",))})
    assert preview.is_preview
    assert preview.inputs == (((), ("data",)), (("model",), ()))
    dot = preview.module.ops[0]
    assert preview.module.values[dot.results[0]].spec == ((), ("model",))


def test_a_preview_is_what_a_compile_gives():
    fn, args, given = PROGRAMS["loop"]
    module = shardy_passes.imported(program(fn, args, given).dumps.stated)
    changed = {**given, "x": P(None, "model"), "ws": P(None, "model", "data")}
    preview = shardy_passes.preview(module, {0: ((), ("model",)), 1: ((), ("model",), ("data",))})
    compiled = program(fn, args, changed).dumps
    assert specs(preview.module) == specs(shardy.read(compiled.propagated))


def test_a_preview_splits_an_input_that_had_no_placement():
    text = program(*PROGRAMS["shard_map"]).dumps.stated
    bare = text.replace(" {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}", "")
    spec = (("model",), ())
    assert shardy_passes.preview(shardy_passes.imported(bare), {0: spec}).inputs == (spec,)


def test_a_preview_of_an_unknown_input_is_refused():
    module = shardy_passes.imported(program(*PROGRAMS["chain"]).dumps.stated)
    with pytest.raises(ValueError, match="no input number 7"):
        shardy_passes.preview(module, {7: ()})


@pytest.mark.parametrize("spec", [((), ("model",)), (("data",), ()), (("model", "data"), ())])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_preview_is_what_all_passes_give_at_once(name, spec):
    dumps = program(*PROGRAMS[name]).dumps
    stated = shardy_passes.prepared(dumps.stated, dumps.propagated)
    preview = shardy_passes.preview(shardy_passes.imported(stated), {0: spec})
    text = private.run_passes(
        shardy_passes.with_input(stated, 0, spec),
        "sdy-import-pipeline,sdy-apply-sharding-constraints,sdy-user-priority-propagate",
    )
    assert preview.text == text
    assert preview.outputs == tuple(output.spec for output in shardy.read(text).outputs)


def test_other_attributes_of_an_input_stay():
    line = 'sdy.mesh @m = <["x"=2]>\n func.func @main(%arg0: tensor<4xf32> {a.b = "}", '
    line += 'sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<4xf32>) -> tensor<4xf32>'
    changed = shardy_passes.with_input(line, 0, ((),))
    assert '{a.b = "}", sdy.sharding = #sdy.sharding<@m, [{}]>}, %arg1' in changed
    changed = shardy_passes.with_input(line, 1, (("x",),))
    assert '%arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) ->' in changed
