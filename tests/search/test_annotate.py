"""From Auto to Explicit: what is proposed is applied to the text, and compiled by JAX alone."""

import ast
import inspect
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request, SourceTexts
from shardnb.mesh import make_grid
from shardnb.report.model import Source
from shardnb.search.explicit import to_explicit
from tests.causes.cases import CASES
from tests.search import transformer

GRID = "data=4,model=2"


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def annotate(fn, args, specs, mesh=GRID, out_specs=None):
    names = list(inspect.signature(fn).parameters)
    arguments, in_specs = (dict(zip(names, given, strict=True)) for given in (args, specs))
    return to_explicit(Request(fn, arguments, make_grid(mesh), in_specs, out_specs))


def collectives(text):
    """Count the collectives of an optimized program by opcode and shape, loops unopened."""
    found = re.findall(r"= (\S+) (all-reduce|all-gather|all-to-all|collective-permute)\(", text)
    return Counter((kind, re.sub(r"\{[\d,]*\}", "", shape)) for shape, kind in found)


def compiled(fn, args, specs, axes):
    grid = make_grid(GRID, axes=axes)
    placed = jax.tree.map(
        lambda leaf, spec: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=NamedSharding(grid.mesh, spec)
        ),
        list(args),
        list(specs),
    )
    with jax.set_mesh(grid.mesh):
        return collectives(jax.jit(fn).lower(*placed).compile().as_text())


MODELS = [
    ("model", transformer.PARAMS, transformer.TP),
    ("model", transformer.PARAMS, {**transformer.TP, "embed": P("model", None)}),
    ("model", transformer.PARAMS, transformer.FSDP),
    ("scanned", transformer.STACKED, transformer.TP_STACKED),
]


@pytest.mark.parametrize(("name", "params", "specs"), MODELS)
def test_a_transformer_becomes_explicit_and_sends_the_same(name, params, specs):
    fn = getattr(transformer, name)
    plan = annotate(fn, (params, transformer.TOKENS), (specs, P("data")))
    assert plan.unresolved is None
    assert plan.same_collectives
    (source,) = plan.texts
    names = {"__name__": "annotated"}
    exec(compile(source.text, "annotated.py", "exec"), names)  # noqa: S102 - the proposal
    args, in_specs = (params, transformer.TOKENS), (specs, P("data"))
    assert compiled(names[name], args, in_specs, "explicit") == compiled(fn, args, in_specs, "auto")


def test_the_transformer_needs_three_annotations():
    plan = annotate(
        transformer.model, (transformer.PARAMS, transformer.TOKENS), (transformer.TP, P("data"))
    )
    # The embedding's rows, and the two products that sum over what is split by model.
    assert [one.expression for one in plan.annotations] == [
        'params["embed"][tokens]',
        'out.reshape(batch, length, WIDTH) @ p["wo"]',
        'jax.nn.gelu(x @ p["up"]) @ p["down"]',
    ]
    assert {one.spec for one in plan.annotations} == {"P('data', None, None)"}
    assert all(one.from_auto for one in plan.annotations)


def test_a_training_step_becomes_explicit():
    args = (transformer.PARAMS, transformer.TOKENS, transformer.TOKENS)
    plan = annotate(
        transformer.step,
        args,
        (transformer.TP, P("data"), P("data")),
        out_specs=(None, transformer.TP),
    )
    assert plan.unresolved is None
    assert plan.same_collectives
    assert "auto_axes" in {one.kind for one in plan.annotations}


ANNOTATED = {
    "3 contracting dimension split": "jnp.matmul(a, b, out_sharding=P('data', None))",
    "7 top_k": "lax.top_k(jax.sharding.reshard(x, P(None, None)), 4)",
    "8 cumsum": "jax.sharding.reshard(jnp.cumsum(jax.sharding.reshard(x, P(None, None)), -1), "
    "P(None, 'data'))",
    "12 a constraint in the middle": 'jax.sharding.reshard(a + b, P(None, ("x", "y"), None))',
    "13 rows of a table": "t.at[i].get(out_sharding=P(None, None))",
}
UNTOUCHED = [
    "1 rows split",
    "4 one contracting dimension split",
    "16 scan",
    "17 gradient of a scan",
]


@pytest.mark.parametrize("name", [*ANNOTATED, *UNTOUCHED, "14 cross entropy", "23b combined"])
def test_known_cases_send_the_same(name):
    case = CASES[name]
    names = [f"x{number}" for number in range(len(case.args))]
    arguments, in_specs = (
        dict(zip(names, given, strict=True)) for given in (case.args, case.specs)
    )
    plan = to_explicit(Request(case.fn, arguments, make_grid(case.mesh), in_specs, case.out))
    assert plan.unresolved is None
    assert plan.same_collectives
    assert ANNOTATED.get(name, "") in "".join(one.after for one in plan.annotations)
    assert bool(plan.annotations) == (name not in UNTOUCHED)


def summed(a, b):
    c = a @ b
    d = jnp.tanh(c) @ b.T
    return d @ b


def test_every_place_is_found_not_only_the_first():
    plan = annotate(summed, (f32(256, 512), f32(512, 512)), (P("data", "model"), P("model", None)))
    assert plan.same_collectives
    assert len(plan.annotations) >= 2
    first = summed.__code__.co_firstlineno
    assert plan.annotations[0].location.line - first == 1


def test_the_users_functions_are_as_before():
    before = summed.__code__
    annotate(summed, (f32(256, 512), f32(512, 512)), (P("data", "model"), P("model", None)))
    assert summed.__code__ is before
    grid = make_grid(GRID, axes="explicit")
    specs = (P("data", "model"), P("model", None))
    args = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(grid.mesh, spec))
        for shape, spec in zip([(256, 512), (512, 512)], specs, strict=True)
    ]
    with jax.set_mesh(grid.mesh), pytest.raises(Exception, match="ambiguous"):
        jax.jit(summed).trace(*args)


def test_the_users_functions_are_as_before_after_an_interrupt(monkeypatch):
    before = summed.__code__
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(summed.__code__ is before)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return build(*args, **kwargs)

    from shardnb.search.explicit import annotate as module

    build = module.build
    monkeypatch.setattr(module, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        annotate(summed, (f32(256, 512), f32(512, 512)), (P("data", "model"), P("model", None)))
    assert summed.__code__ is before


def test_what_a_function_prints_is_printed_once(capsys):
    def noisy(a, b):
        print("traced")  # noqa: T201 - the user's own
        return a @ b

    annotate(noisy, (f32(64, 64), f32(64, 64)), (P("data", "model"), P("model", None)))
    assert capsys.readouterr().out == "traced\n"


def test_methods_and_closures_are_annotated():
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x, w):
            def inner(x):
                return x @ w

            return inner(x) * self.scale

    layer = Layer(2.0)

    def apply(x, w):
        return layer(x, w)

    plan = annotate(apply, (f32(64, 64), f32(64, 64)), (P("data", "model"), P("model", None)))
    assert plan.same_collectives
    assert [one.after for one in plan.annotations] == [
        "return jnp.matmul(x, w, out_sharding=P('data', None))"
    ]


def test_a_library_is_annotated_at_the_line_that_calls_it():
    nnx = pytest.importorskip("flax.nnx")
    dense = nnx.Linear(64, 64, use_bias=False, rngs=nnx.Rngs(0))
    graph, state = nnx.split(dense)

    def apply(state, x):
        layer = nnx.merge(graph, state)
        return layer(x)

    specs = jax.tree.map(lambda _: P("model", None), state)
    plan = annotate(apply, (state, f32(64, 64)), (specs, P("data", "model")))
    assert plan.same_collectives
    assert plan.annotations[0].before == "return layer(x)"


def test_arrays_that_a_function_closes_over_stay_where_they_are():
    table = jnp.asarray(np.ones((64, 64), np.float32))

    def apply(x):
        return jnp.tanh(x @ table)

    plan = annotate(apply, (f32(64, 64),), (P("data"),))
    assert plan.same_collectives


def test_a_function_without_a_text_is_told_with_its_error():
    plan = to_explicit(Request(jnp.sort, {"a": f32(64)}, make_grid("data=4"), {"a": P("data")}))
    assert plan.explicit is None
    assert plan.unresolved is not None
    assert plan.annotations == ()


def test_an_error_that_is_no_placements_is_raised_as_it_is():
    def wrong(a, b):
        return a @ b

    with pytest.raises(TypeError, match="contracting"):
        annotate(wrong, (f32(64, 64), f32(32, 64)), (P(), P()))


def test_a_plan_is_text():
    def dot(a, b):
        return lax.dot(a, b)

    plan = annotate(dot, (f32(64, 64), f32(64, 64)), (P("data", "model"), P("model", None)))
    text = str(plan)
    assert "Fix: return lax.dot(a, b, out_sharding=P('data', None))" in text
    assert "compiles to the same collectives" in text
    assert "identical except the permission to choose the output" in text


def merged(x):
    return jnp.tanh(x.reshape(128, 32))


def test_a_type_that_goes_another_way_than_propagation_is_stated_too():
    # JAX takes the reshape as it is, and would move blocks where propagation gathers them.
    plan = annotate(merged, (f32(8, 16, 32),), (P("data", "model", None),))
    assert plan.same_collectives
    (one,) = plan.annotations
    assert one.kind == "out_sharding"


def padded(x):
    return jnp.pad(x, ((1, 1), (0, 0)))


def test_what_explicit_types_cannot_say_is_told_to_send_otherwise():
    # Auto pads 66 rows to 72 over 8 devices; no Explicit type has uneven blocks.
    plan = annotate(padded, (f32(64, 16),), (P("data"),), mesh="data=8")
    assert plan.unresolved is None
    assert not plan.same_collectives
    assert "compiles to other collectives" in str(plan)


class Cell:
    """A function made of a text, as a cell is."""

    file, namespace = "<cell 3>", {"jnp": jnp, "jax": jax, "P": P}
    __name__ = "cell"

    def __init__(self, text, tree=None):
        self.text, self.tree = text, tree or ast.parse(text)

    def edited(self, transform):
        return Cell(self.text, transform(ast.Module(list(self.tree.body), [])))

    def __call__(self, x, w):
        names = {**self.namespace, "x": x, "w": w}
        body, last = self.tree.body[:-1], ast.Expression(self.tree.body[-1].value)
        exec(compile(ast.Module(body, []), self.file, "exec"), names)  # noqa: S102 - a cell
        return eval(compile(last, self.file, "eval"), names)  # noqa: S307


@pytest.mark.parametrize("text", ["y = x @ w\njnp.tanh(y)\n", "y = 2 * x\ny @ w\n"])
def test_a_cell_is_made_again_of_its_annotated_text(text):
    plan = to_explicit(
        Request(
            Cell(text),
            {"x": f32(64, 64), "w": f32(64, 64)},
            make_grid(GRID),
            {"x": P("data", "model"), "w": P("model", None)},
            texts=SourceTexts(sources=(Source("cell 3", text),), files={"<cell 3>": 0}),
        )
    )
    assert plan.same_collectives
    assert [one.kind for one in plan.annotations] == ["out_sharding"]
    assert "jnp.matmul(" in plan.texts[0].text


def cut_rows(x):
    return x.reshape(4, 16, 64)


def test_a_call_that_has_its_placement_gets_no_second_one():
    plan = annotate(cut_rows, (f32(64, 64),), (P("data"),), mesh="data=8")
    assert plan.unresolved is None
    assert all(one.after.count("out_sharding") == 1 for one in plan.annotations)
