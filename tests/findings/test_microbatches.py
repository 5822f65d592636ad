"""A batch that is divided into microbatches for a loop, and is not sharded inside it."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.edits import NewSpec
from tests.causes.cases import f32
from tests.needs import needs_libtpu

PARAMS = {"w1": f32(64, 256), "w2": f32(256, 64)}
REPLICATED = {"w1": P(), "w2": P()}
FSDP = {"w1": P("data"), "w2": P("data")}
ROWS = P("data")
BATCH = f32(256, 64), f32(256, 64)
ROW = 64 * 4
"""The bytes of one row of the batch."""


def loss(params, x, y):
    h = jax.nn.relu(x @ params["w1"])
    return jnp.mean((h @ params["w2"] - y) ** 2)


def zeros(params):
    return jax.tree.map(jnp.zeros_like, params)


def added(params, sums, x, y):
    return jax.tree.map(jnp.add, sums, jax.grad(loss)(params, x, y))


def updated(params, sums):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, sums)


def accumulated(params, x, y):
    xs = x.reshape(8, 32, 64)
    ys = y.reshape(8, 32, 64)
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def two_microbatches(params, x, y):
    xs = x.reshape(2, 128, 64)
    ys = y.reshape(2, 128, 64)
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def by_index(params, x, y):
    xs = x.reshape(8, 32, 64)
    ys = y.reshape(8, 32, 64)
    step = lambda i, sums: added(params, sums, xs[i], ys[i])  # noqa: E731
    return updated(params, jax.lax.fori_loop(0, 8, step, zeros(params)))


def by_take(params, x, y):
    xs = x.reshape(8, 32, 64)
    ys = y.reshape(8, 32, 64)
    step = lambda i, sums: added(  # noqa: E731
        params, sums, jnp.take(xs, i, axis=0), jnp.take(ys, i, axis=0)
    )
    return updated(params, jax.lax.fori_loop(0, 8, step, zeros(params)))


def by_offset(params, x, y):
    def step(i, sums):
        xb = jax.lax.dynamic_slice_in_dim(x, i * 32, 32)
        yb = jax.lax.dynamic_slice_in_dim(y, i * 32, 32)
        return added(params, sums, xb, yb)

    return updated(params, jax.lax.fori_loop(0, 8, step, zeros(params)))


def unrolled(params, x, y):
    xs = x.reshape(8, 32, 64)
    ys = y.reshape(8, 32, 64)
    sums = zeros(params)
    for i in range(8):
        sums = added(params, sums, xs[i], ys[i])
    return updated(params, sums)


def epochs(params, x, y):
    xs = x.reshape(8, 32, 64)
    ys = y.reshape(8, 32, 64)
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    epoch = lambda _, sums: jax.lax.scan(step, sums, (xs, ys))[0]  # noqa: E731
    return updated(params, jax.lax.fori_loop(0, 3, epoch, zeros(params)))


def stacked(params, xs, ys):
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def dealt_out(params, x, y):
    xs, ys = (one.reshape(32, 8, 64).swapaxes(0, 1) for one in (x, y))
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def constrained(params, x, y):
    xs = jax.lax.with_sharding_constraint(x.reshape(8, 32, 64), P(None, "data"))
    ys = jax.lax.with_sharding_constraint(y.reshape(8, 32, 64), P(None, "data"))
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def not_divisible(params, x, y):
    xs = x.reshape(3, 64, 64)
    ys = y.reshape(3, 64, 64)
    step = lambda sums, batch: (added(params, sums, *batch), None)  # noqa: E731
    return updated(params, jax.lax.scan(step, zeros(params), (xs, ys))[0])


def applied(params, x):
    apply = lambda row: jax.nn.relu(row @ params["w1"]) @ params["w2"]  # noqa: E731
    return jax.lax.map(apply, x, batch_size=32)


def of(fn, batch=BATCH, params=REPLICATED, spec=ROWS, mesh="data=8", **options):
    specs = params, *(spec for _ in batch)
    out = P() if fn is applied else params
    return sn.explain(
        fn, PARAMS, *batch, mesh=mesh, in_specs=specs, out_specs=out, origins=False, **options
    )


def lost(report):
    return next((one for one in report.findings if one.kind == "lost sharding"), None)


def line(fn, text):
    lines, start = inspect.getsourcelines(fn)
    return start + next(at for at, written in enumerate(lines) if text in written)


def sent(report, finding):
    due = [report.collectives[i] for i in finding.collectives]
    return sum(one.wire_bytes * (one.trips or 1) for one in due)


ALL_OF_IT = 2 * 224 * ROW
"""Each of 8 devices passes 7 of 8 shards of 32 rows on, of `x` and of `y`."""

HERE = "the batch is sharded over data before the loop and not in it: "
LEAVES = "the reshape leaves data on dimension 0 of xs (size 8), which the loop takes one by one"
SAME = "so in each iteration all 8 devices along data work on the same 32 rows"


@pytest.mark.parametrize("fn", [accumulated, by_index, epochs])
def test_the_batch_of_an_accumulation_loop_is_lost_at_the_reshape(fn):
    report = of(fn)
    finding = lost(report)
    assert finding.message == f"{HERE}{LEAVES}, {SAME}"
    assert finding.location.line == line(fn, "xs = ")
    places = {place.line for place in finding.locations}
    assert {line(fn, "xs = "), line(fn, "ys = ")} < places
    assert finding.wire_bytes == sent(report, finding) == ALL_OF_IT
    assert [edit.specs for edit in finding.edits] == [
        (NewSpec("value", "xs", ((), ("data",), ())),)
    ]
    # Nothing else says the same of these gathers.
    assert "no partitioned form" not in {one.kind for one in report.findings}


def test_the_loop_is_among_the_lines():
    finding = lost(of(accumulated))
    assert line(accumulated, "lax.scan") in {place.line for place in finding.locations}


def test_a_look_up_of_one_microbatch_loses_the_batch_in_each_iteration():
    """The owner of a microbatch sends it as a sum among zeros: 2 * 7/8 of it, 8 times."""
    finding = lost(of(by_take))
    assert finding.message == f"{HERE}{LEAVES}, {SAME}"
    assert finding.wire_bytes == 8 * 2 * (2 * 32 * ROW * 7 // 8)


def test_rows_at_an_offset_are_the_same_on_all_devices():
    finding = lost(of(by_offset))
    assert finding.message == (
        f"{HERE}x has data on dimension 0 (size 256), which the loop takes 32 at a time, {SAME}"
    )
    assert finding.location.line == line(by_offset, "xb = ")
    assert finding.wire_bytes == ALL_OF_IT
    assert [edit.text for edit in finding.edits] == [
        "xb = jax.lax.with_sharding_constraint(xb, P('data'))"
    ]


def test_a_part_of_an_axis_is_lost_to_two_microbatches():
    """`data` shards 2 microbatches over 2 of its 8 devices, and their rows over 4."""
    report = of(two_microbatches)
    finding = lost(report)
    assert "every 2 devices along data work on the same 128 rows" in finding.message
    # A device gets the other half of the 64 rows that 4 devices share: 32 of `x`, 32 of `y`.
    assert finding.wire_bytes == sent(report, finding) == 2 * 32 * ROW


def test_a_loop_in_python_loses_the_batch_as_well():
    report = of(unrolled)
    finding = lost(report)
    assert "the batch is sharded over data before slice and not after it" in finding.message
    assert "all 8 devices along data get the same 32 rows" in finding.message
    assert finding.location.line == line(unrolled, "xs = ")
    assert set(finding.collectives) == {one.id for one in report.collectives}


def test_microbatches_that_are_sharded_are_lost_to_the_loop():
    finding = lost(of(stacked, (f32(8, 32, 64), f32(8, 32, 64))))
    assert finding.message == (
        f"{HERE}xs has data on dimension 0 (size 8), which the loop takes one by one, so in each "
        "iteration all 8 devices along data work on the same part of it"
    )
    assert finding.location.line == line(stacked, "lax.scan")
    assert finding.edits == ()


def test_a_loop_of_fsdp_costs_what_follows_in_each_iteration():
    """Without rows to shard, the products with shards of the parameters are sums over `data`."""
    report = of(accumulated, params=FSDP)
    finding = lost(report)
    sums = {one.id for one in report.collectives if one.role == "tensor-parallel-sum"}
    assert len(sums) == 2
    assert sums < set(finding.collectives)
    assert finding.wire_bytes == sent(report, finding)
    # 32 x 256 and 32 x 64 floats, 2 * 7/8 of them, in 8 iterations
    assert finding.wire_bytes > 8 * 2 * (32 * 256 + 32 * 64) * 4 * 7 // 8


def test_the_other_axis_keeps_its_collectives():
    specs = {"w1": P(None, "model"), "w2": P("model")}
    report = of(accumulated, params=specs, mesh="data=4,model=2")
    finding = lost(report)
    assert "all 4 devices along data work on the same 32 rows" in finding.message
    assert {report.collectives[i].axes for i in finding.collectives} == {("data",)}


def test_a_mapped_function_that_is_only_applied_loses_its_batch():
    report = of(applied, BATCH[:1])
    finding = lost(report)
    assert "leaves data on dimension 0 of its result (size 8)" in finding.message
    assert finding.location.line == line(applied, "lax.map")
    assert finding.wire_bytes == ALL_OF_IT // 2


def test_a_reshape_that_does_not_divide_the_axis_loses_the_batch():
    report = of(not_divisible, (f32(192, 64), f32(192, 64)))
    finding = lost(report)
    assert finding.message == (
        "the batch is sharded over data before reshape and not after it: it divides the 192 rows "
        "otherwise than data does, so each device along data gets all of them"
    )
    assert finding.location.line == line(not_divisible, "xs = ")
    assert finding.wire_bytes == 2 * 168 * ROW


@pytest.mark.parametrize("fn", [dealt_out, constrained])
def test_microbatches_whose_rows_are_sharded_are_not_lost(fn):
    assert lost(of(fn)) is None


def test_microbatches_that_come_in_sharded_by_their_rows_are_not_lost():
    assert lost(of(stacked, (f32(8, 32, 64), f32(8, 32, 64)), spec=P(None, "data"))) is None


def test_a_row_that_is_looked_at_is_no_loss():
    def first(params, x):
        return jax.nn.relu(x @ params["w1"]) @ params["w2"], x[0]

    report = sn.explain(
        first, PARAMS, BATCH[0], mesh="data=8", in_specs=(REPLICATED, P("data")), origins=False
    )
    assert lost(report) is None


def two_loops(x, y):
    first = jax.lax.scan(lambda carry, row: (carry + row, None), jnp.zeros(64), x)[0]
    second = jax.lax.scan(lambda carry, row: (carry * row, None), jnp.ones(64), y)[0]
    return first, second


def one_loop(x):
    return jax.lax.scan(lambda carry, row: (carry - row, None), jnp.zeros(64), x)[0]


def test_a_loop_is_not_at_the_line_of_an_earlier_one_like_it():
    """JAX takes the elements of both with one function, whose lines it keeps."""
    rows = f32(16, 64)
    report = sn.explain(two_loops, rows, rows, mesh="data=8", in_specs=P("data"), origins=False)
    assert [one.line for one in report.collectives] == [
        line(two_loops, "first ="),
        line(two_loops, "second ="),
    ]
    report = sn.explain(one_loop, rows, mesh="data=8", in_specs=P("data"), origins=False)
    assert [one.line for one in report.collectives] == [line(one_loop, "return")]
    assert [one.location.line for one in report.findings] == [line(one_loop, "return")]


@needs_libtpu
def test_on_tpu_the_gathers_stay_in_the_loop_and_cost_each_iteration():
    report = of(accumulated, on="v5e:2x4")
    finding = lost(report)
    assert finding.message == f"{HERE}{LEAVES}, {SAME}"
    assert finding.wire_bytes == sent(report, finding)
    trips = {report.collectives[i].trips for i in finding.collectives}
    assert trips == {8}
