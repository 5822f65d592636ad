"""Limits of JAX that it words without a cause: what is proposed was tried by hand before."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import checkify
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.errors.cell import Cell, f32

HOST = "jax.memory.Space.Host"


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("h + w", "jax.device_put(h, jax.memory.Space.Device) + w"),
        ("w + h", "w + jax.device_put(h, jax.memory.Space.Device)"),
        ("jnp.dot(h, w)", "jnp.dot(jax.device_put(h, jax.memory.Space.Device), w)"),
        (
            "jnp.where(w > 0, w, h)",
            "jnp.where(w > 0, w, jax.device_put(h, jax.memory.Space.Device))",
        ),
        ("w * jnp.sin(h)", "w * jax.device_put(jnp.sin(h), jax.memory.Space.Device)"),
    ],
)
@pytest.mark.parametrize("axes", ["auto", "explicit"])
def test_operands_in_two_memories(line, fix, axes):
    text = f"def f(w, m):\n    h = jax.device_put(m, {HOST})\n    return {line}"
    cell = Cell(text, [f32(64, 64)] * 2, [P(), P()], axes=axes)
    assert (cell.report.error, cell.report.kind) == ("ValueError", "memory-kind")
    assert cell.report.fixes == (f"return {fix}",)
    # 64 x 64 floats.
    assert "copies at most 16 KiB to each device" in cell.report.cause
    cell.fixed(cell.report.fixes[0])


def test_memories_that_meet_in_a_function_of_the_users_are_told_in_words():
    cell = Cell(
        f"""
        def g(h, w):
            return h + w
        def f(w, m):
            return g(jax.device_put(m, {HOST}), w)
        """,
        [f32(64, 64)] * 2,
        [P(), P()],
    )
    assert cell.report.location.line == 2
    cell.fixed(cell.report.fixes[0])


@pytest.mark.parametrize(
    "line",
    [
        "lax.map(lambda row: row.sum(), x)",
        "lax.map(lambda row: row.sum(), x, batch_size=2)",
        "lax.map(jnp.sum, x)",
        "lax.scan(lambda c, row: (c + row.sum(), None), 0.0, x)[0]",
        "lax.scan(lambda c, row: (c + row.sum(), None), 0.0, xs=x)[0]",
    ],
)
def test_a_loop_over_the_dimension_that_is_sharded(line):
    cell = Cell(f"def f(x):\n    return {line}", [f32(8, 4)], [P("data")])
    assert (cell.report.error, cell.report.kind) == ("ValueError", "loop-over-sharded")
    assert ("jax.vmap" in cell.report.cause) == ("lax.map" in line)
    # Either the axis goes to the other dimension, of size 4, or each device gets all rows.
    written = "\n".join(cell.report.fixes)
    assert "jax.sharding.reshard(x, P(None, 'data'))" in written
    assert "jax.sharding.reshard(x, P(None, None))" in written
    for fix in cell.report.fixes:
        cell.fixed(fix)


def test_a_loop_over_an_array_without_a_name_is_told_in_words():
    cell = Cell("def f(x):\n    return lax.map(lambda r: r + 1, (x, x))", [f32(8)], [P("data")])
    assert cell.report.kind == "loop-over-sharded"
    assert cell.report.fixes == (
        "jax.sharding.reshard(..., P(None, ...)) on the array that the loop runs over",
    )


def mapped(body):
    return jax.shard_map(body, in_specs=P("data"), out_specs=P("data"))


def rows(p):
    return p[jnp.argsort(p)]


def report_of(function, *shape, **options):
    x = jax.ShapeDtypeStruct(shape, jnp.float32)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each test says which
        sn.explain(function, x, mesh="data=4", in_specs=P("data"), **options)
    return caught.value.__shardnb__


@pytest.mark.parametrize("errors", [checkify.index_checks, checkify.float_checks])
def test_checkify_around_a_shard_map(errors):
    report = report_of(checkify.checkify(mapped(lambda p: rows(p) / 2), errors=errors), 1000)
    assert (report.error, report.kind) == ("ValueError", "rewritten-body")
    assert "checkify" in report.cause
    assert report.fixes[-1].startswith("out_specs=(P('data'), ...)")


def test_checkify_in_the_body_compiles_as_it_is_proposed():
    def body(x):
        error, result = checkify.checkify(rows, errors=checkify.index_checks)(x)
        return jax.tree.map(lambda leaf: leaf[None], error), result

    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    assert sn.explain(mapped(body), x, mesh="data=4", in_specs=P("data")).collectives == ()


@custom_partitioning
def doubled(x):
    return x * 2


doubled.def_partition(
    partition=lambda mesh, args, result: (
        mesh,
        lambda x: x * 2,
        result.sharding,
        (args[0].sharding,),
    ),
    sharding_rule="i j -> i j",
)


def test_custom_partitioning_on_explicit_axes():
    def program(x):
        return doubled(x)

    report = report_of(program, 64, 32, axes="explicit")
    assert report.kind == "custom-partitioning"
    assert "Explicit" in report.cause
    assert report.fixes[0].startswith("jax.shard_map(")


def test_a_shard_map_in_its_place_compiles_as_it_is_proposed():
    x = jax.ShapeDtypeStruct((64, 32), jnp.float32)
    options = {"mesh": "data=4", "in_specs": P("data"), "axes": "explicit"}
    assert sn.explain(mapped(lambda x: x * 2), x, **options).collectives == ()


def test_a_shard_map_on_a_mesh_of_its_own_says_which_mesh_to_give():
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices("cpu")[:1])

    x = jax.ShapeDtypeStruct((16, 8), jnp.float32)

    def total(x, **options):
        f = jax.shard_map(
            lambda x: jax.lax.psum(x.sum(), "data"), in_specs=P("data"), out_specs=P(), **options
        )
        return f(x)

    with pytest.raises(ValueError, match="should match the mesh") as raised:
        sn.explain(lambda x: total(x, mesh=mesh), x, mesh="data=8")
    assert any("without mesh: it takes the program's" in note for note in raised.value.__notes__)
    report = sn.explain(total, x, mesh="data=8", in_specs=(P("data"),))
    assert [c.kind for c in report.collectives] == ["all-reduce"]
