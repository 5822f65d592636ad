"""The typed view; the expected types are those that the first seed and JAX's documents print."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.engine import explain
from shardnb.mesh import make_grid
from shardnb.propagation.typed_view import typed_program
from shardnb.report import Report
from shardnb.report.model import Source
from shardnb.sources.source_texts import Sources


def view(fn, shapes, specs, axes="explicit", **options):
    grid = make_grid("data=4,model=2", axes=axes)
    args = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(grid.mesh, spec))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    with jax.set_mesh(grid.mesh):
        return typed_program(jax.jit(fn).trace(*args).jaxpr, **options)


def types(program):
    return [(line.primitive, [value.type for value in line.binds]) for line in program.lines]


def test_explicit_placements_stand_in_the_types():
    def f(a, b):
        return jnp.tanh(jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None)))

    found = view(f, [(256, 512), (512, 1024)], [P("data", "model"), P("model")])
    assert types(found)[0] == ("", ["f32[256@data,512@model]", "f32[512@model,1024]"])
    assert ("dot_general", ["f32[256@data,1024]"]) in types(found)
    assert ("tanh", ["f32[256@data,1024]"]) in types(found)


def test_a_value_is_data_as_well_as_text():
    found = view(lambda a: a * 2, [(256, 512)], [P("data", "model")], names=["x"])
    value = found.lines[0].binds[0]
    assert (value.name, value.dtype, value.shape) == ("x", "f32", (256, 512))
    assert value.spec == (("data",), ("model",))


def mapped(fn, in_specs, out_specs, **options):
    grid = make_grid("data=4,model=2")
    return jax.shard_map(fn, mesh=grid.mesh, in_specs=in_specs, out_specs=out_specs, **options)


SHAPES = [(256, 512), (512, 1024)]
SPECS = [P("data", "model"), P("model", None)]


def test_manual_placements_are_varying_sets():
    f = mapped(lambda a, b: lax.psum(a @ b, "model"), tuple(SPECS), P("data", None))
    found = view(f, SHAPES, [P(), P()], axes="auto")
    assert types(found)[2:] == [
        ("", ["f32[64,256]{V:(data,model)}", "f32[256,1024]{V:model}"]),
        ("pvary", ["f32[256,1024]{V:(data,model)}"]),
        ("dot_general", ["f32[64,1024]{V:(data,model)}"]),
        ("psum_invariant", ["f32[64,1024]{V:data}"]),
    ]


def test_lines_of_a_body_stand_within_it():
    f = mapped(lambda a, b: lax.psum(a @ b, "model"), tuple(SPECS), P("data", None))
    found = view(f, SHAPES, [P(), P()], axes="auto")
    assert [line.within for line in found.lines] == [(), (), *[("shard_map",)] * 4]


def test_a_coercion_of_jax_is_inserted_and_one_of_the_user_is_not():
    def body(a):
        ones = lax.pcast(jnp.ones(3), "data", to="varying")
        tree = jax.tree.map(lambda leaf: lax.pcast(leaf, "data", to="varying"), [jnp.zeros(3)])
        cast = partial(lax.pcast, axis_name="data", to="varying")
        last = jax.tree.map(cast, [jnp.ones(2)])
        return a + jnp.arange(2.0) + ones[0] + tree[0][0] + last[0][0]

    found = view(mapped(body, P("data"), P("data")), [(8,)], [P()], axes="auto")
    # Written: three pcasts. Inserted: one for arange to meet a.
    marks = [line.inserted for line in found.lines if line.primitive == "pvary"]
    assert sorted(marks) == [False, False, False, True]


def test_a_pending_sum_is_unreduced():
    def f(a, b):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", unreduced={"model"}))

    found = view(f, SHAPES, SPECS)
    value = next(line for line in found.lines if line.primitive == "dot_general").binds[0]
    assert value.type == "f32[256@data,1024]{U:model}"
    assert value.unreduced == ("model",)


def test_a_value_that_its_gradient_is_to_reduce_is_reduced():
    def f(a):
        return jax.sharding.reshard(a, P(None, reduced={"data"}))

    found = view(f, [(8,)], [P()])
    assert found.lines[-1].binds[0].reduced == ("data",)


def scan_body(x):
    return lax.scan(lambda c, _: (jnp.tanh(c), None), x, None, length=3)[0]


def while_body(x):
    return lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, x)


def cond_body(x):
    return lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)


@pytest.mark.parametrize(
    ("fn", "within"),
    [
        (scan_body, {(), ("scan",)}),
        (while_body, {(), ("while condition",), ("while",)}),
        (cond_body, {(), ("cond branch",)}),
        (jax.jit(jnp.sinh), {(), ("sinh",)}),
        (jax.checkpoint(jnp.sin), {(), ("remat2",)}),
    ],
)
def test_nested_programs_are_opened(fn, within):
    found = view(fn, [(8,)], [P("data")])
    assert {line.within for line in found.lines} >= within


def test_types_hold_inside_a_loop():
    found = view(scan_body, [(8, 4)], [P("data")])
    inside = [line for line in found.lines if line.primitive == "tanh"]
    assert [line.binds[0].type for line in inside] == ["f32[8@data,4]"]


def test_a_line_knows_the_line_that_wrote_it():
    text = "def f(a):\n    b = a * 2\n    return b + 1\n"
    names = {}
    exec(compile(text, "<cell 7>", "exec"), names)  # noqa: S102 - a cell
    sources = Sources([Source("cell 7", text)], {"<cell 7>": 0})
    found = view(names["f"], [(8,)], [P("data")], sources=sources)
    lines = {line.primitive: line.location.line for line in found.lines if line.location}
    assert (lines["mul"], lines["add"]) == (2, 3)


def test_a_program_that_reads_keys_is_shown():
    found = typed_program(jax.make_jaxpr(jax.random.normal)(jax.random.key(0)))
    assert found.lines[0].binds[0].dtype == "key<fry>"


@pytest.mark.parametrize(("axes", "first"), [("explicit", "f32[256@data,512]"), ("auto", None)])
def test_a_report_holds_the_types_where_they_say_placements(axes, first):
    x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    report = explain(jnp.tanh, x, mesh="data=4", axes=axes, in_specs=P("data"))
    types = [line.binds[0].type for line in report.typed[:1]]
    assert types == ([first] if first else [])
    assert Report.from_json(report.to_json()) == report


def test_a_report_of_a_shard_map_holds_the_varying_sets():
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    report = explain(
        lambda x: x * 2, x, mesh="data=4", axes="manual", in_specs=P("data"), out_specs=P("data")
    )
    assert report.typed[-1].binds[0].varying == ("data",)


def test_an_array_that_is_closed_over_is_not_looked_into():
    table = jnp.ones((64, 64))
    x = jax.ShapeDtypeStruct((8, 64), jnp.float32)
    report = explain(lambda x: x @ table, x, mesh="data=4", axes="explicit", in_specs=P("data"))
    (line,) = (line for line in report.typed if line.primitive == "dot_general")
    assert line.operands == ("x", "const:f32[64,64]")
