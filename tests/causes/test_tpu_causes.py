"""Why the TPU compiler sends what it renames, moves and takes in steps; judged in its own text."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.causes.entry_parameters import EntryParameters
from shardnb.texts import hlo
from tests.benchmarks.bench_explain import transformer
from tests.needs import needs_libtpu


def shape(*sizes, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(sizes, dtype)


# By hand: values followed up to the inputs of a program


LOOPED = """HloModule m

%piece (a: f32[4,8], i: s32[]) -> f32[8] {
  %a = f32[4,8]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %cut = f32[1,8]{1,0} dynamic-slice(%a, %i, %i), dynamic_slice_sizes={1,8}
  ROOT %row = f32[8]{0} bitcast(%cut)
}

%body (c: (f32[4,8], f32[8], s32[])) -> (f32[4,8], f32[8], s32[]) {
  %c = (f32[4,8]{1,0}, f32[8]{0}, s32[]) parameter(0)
  %ws = f32[4,8]{1,0} get-tuple-element(%c), index=0
  %x = f32[8]{0} get-tuple-element(%c), index=1
  %n = s32[] get-tuple-element(%c), index=2
  %w = f32[8]{0} fusion(%ws, %n), kind=kLoop, calls=%piece
  %gathered = f32[32]{0} all-gather(%w), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
  %y = f32[8]{0} negate(%x)
  %carried = f32[32]{0} all-gather(%x), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %t = (f32[4,8]{1,0}, f32[8]{0}, s32[]) tuple(%ws, %y, %n)
}

%cond (d: (f32[4,8], f32[8], s32[])) -> pred[] {
  %d = (f32[4,8]{1,0}, f32[8]{0}, s32[]) parameter(0)
  ROOT %go = pred[] constant(true)
}

ENTRY %main (p: f32[8], q: f32[4,8], s: s32[]) -> f32[16,8] {
  %p = f32[8]{0} parameter(0)
  %q = f32[4,8]{1,0} parameter(1)
  %s = s32[] parameter(2)
  %near = f32[4,8]{1,0} custom-call(%q, %q), custom_call_target="ConcatBitcast"
  %begin = (f32[4,8]{1,0}, f32[8]{0}, s32[]) tuple(%near, %p, %s)
  %loop = (f32[4,8]{1,0}, f32[8]{0}, s32[]) while(%begin), condition=%cond, body=%body
  %after = f32[4,8]{1,0} get-tuple-element(%loop), index=0
  %late = f32[16,8]{1,0} all-gather(%after), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}
  %changed = f32[8]{0} get-tuple-element(%loop), index=1
  %other = f32[32]{0} all-gather(%changed), channel_id=4, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %end = f32[16,8]{1,0} copy(%late)
}
"""


@pytest.mark.parametrize(
    ("name", "parameter"),
    # A part of q, in the loop; what the loop changes; q as it left the loop; what was changed.
    [("gathered", 1), ("carried", None), ("late", 1), ("other", None)],
)
def test_a_value_is_followed_to_an_input_as_far_as_nothing_computes(name, parameter):
    module = hlo.parse(LOOPED)
    one = next(i for i in module.instructions() if i.name == name)
    assert EntryParameters(module).entering(one) == parameter


# Compiled here


def explained(fn, *args, **options):
    return sn.explain(fn, *args, **({"on": "v5e:2x4", "mesh": "data=8"} | options))


def mlp(params, x):
    def layer(x, w):
        return jnp.tanh(x @ w[0]) @ w[1], None

    return lax.scan(layer, x, params)[0].astype(jnp.float32).mean()


WEIGHTS = (shape(4, 1024, 2048), shape(4, 2048, 1024))


@needs_libtpu
def test_gathers_of_scanned_weights_name_the_weights_under_a_new_channel():
    spec = (P(None, "data"), P(None, "data"))
    report = explained(
        jax.grad(mlp), WEIGHTS, shape(512, 1024), in_specs=(spec, P("data")), out_specs=spec
    )
    made = hlo.parse(report.texts["after partitioning"])
    channels = {one.integer("channel_id"): one.op_name for one in made.instructions()}
    gathers = [c for c in report.collectives if "jvp()/while" in c.op_name and c.shape[0] == 1]
    assert {c.producer for c in gathers} == {"slice of params[0]", "slice of params[1]"}
    assert {(c.reason, c.asked_by) for c in report.collectives} == {("conflict", "inferred")}
    # TPU numbered both anew, one with the channel of what it had merged away.
    assert all(channels.get(c.channel) != c.op_name for c in gathers)


@needs_libtpu
def test_gradients_that_are_added_up_behind_a_reshape_are_partial_sums():
    report = explained(
        jax.grad(mlp),
        WEIGHTS,
        shape(512, 1024),
        in_specs=((P(), P()), P("data")),
        out_specs=(P(), P()),
    )
    assert {c.reason for c in report.collectives} == {"partial-sum"}
    sums = [c for c in report.collectives if c.trips == 4]
    assert [(c.producer, c.consumer) for c in sums] == [
        ("result of dot_general", "dot_general")
    ] * 2


@needs_libtpu
def test_sums_that_are_sent_together_in_a_loop_under_a_new_channel_are_told():
    spec = (P(None, "data", "model"), P(None, "model", "data"))
    report = explained(
        jax.grad(mlp),
        WEIGHTS,
        shape(512, 1024),
        mesh="data=4,model=2",
        in_specs=(spec, P("data")),
        out_specs=spec,
    )
    together = [c for c in report.collectives if c.combined_with]
    assert [(c.kind, c.reason, c.trips) for c in together] == [
        ("reduce-scatter", "partial-sum", 4)
    ] * 2
    assert Counter(c.reason for c in report.collectives) == {"partial-sum": 4, "conflict": 5}


@needs_libtpu
def test_all_that_a_shard_map_gathers_in_steps_is_counted():
    def gathered(*arrays):
        *xs, w = arrays
        return tuple(w @ jnp.sin(lax.all_gather(x, "data", axis=0, tiled=True)) for x in xs)

    def called(*arrays):
        return jax.shard_map(gathered, in_specs=P("data"), out_specs=P("data"))(*arrays)

    report = explained(
        called,
        *[shape(4096, 2048)] * 4,
        shape(8192, 4096),
        in_specs=P("data"),
    )
    assert [(c.kind, c.asked_by) for c in report.collectives] == [("all-gather", "called")] * 4
    assert sum(c.overlap is not None for c in report.collectives) >= 2
    assert {c.channel for c in report.collectives} == {1}


@needs_libtpu
def test_products_in_steps_on_one_line_name_the_operand_that_goes_round():
    report = explained(
        lambda x, *ws: tuple(x @ w for w in ws),
        shape(32768, 8192),
        *[shape(8192, 32768)] * 3,
        mesh="data=4",
        on="v5e:2x2",
        in_specs=P("data"),
    )
    sent = [c for c in report.collectives if c.kind == "collective-permute"]
    assert {c.reason for c in sent} == {"conflict"}
    assert {c.producer for c in sent} == {"ws0", "ws1", "ws2"}


@needs_libtpu
def test_looked_up_rows_that_are_permuted_to_a_constraint_are_there_for_it():
    report = explained(
        lambda table, at: lax.with_sharding_constraint(table[at], P("x", None, "y")),
        shape(8192, 2048),
        shape(16, 256, dtype=jnp.int32),
        mesh="x=4,y=2",
        in_specs=(P("y", "x"), P("x")),
    )
    moved = [c for c in report.collectives if c.consumer == "sharding_constraint"]
    assert "collective-permute" in {c.kind for c in moved}
    assert {(c.reason, c.asked_by) for c in moved} == {("output-spec", "requested")}
    # The rows are computed where table and indices are, which want one axis: where is not said. From
    # there they are sent to what enters the permute: device 4 (x=2, y=0) sends what device 1 must
    # have, of dimension 0 the first quarter and of dimension 2 the second half.
    permuted = (("y", "x:(2)2"), (), ("x:(1)2",))
    of_kind = {c.kind: c.producer_spec for c in moved}
    assert of_kind.pop("collective-permute") == permuted
    assert set(of_kind.values()) == {None}
    # The indices are sharded over x alone, and are brought into the order of x and y before a
    # gather.
    first = report.collectives[0]
    assert (first.kind, first.axes) == ("collective-permute", ("x", "y"))
    assert (
        "is sharded over x on dimension 0, but x also shards another dimension of table"
        in first.why
    )


@needs_libtpu
def test_what_was_picked_out_of_a_split_row_is_a_partial_sum():
    report = explained(
        lambda scores, at: jnp.take_along_axis(scores, at[..., None], -1)[..., 0],
        shape(16, 256, 8192),
        shape(16, 256, dtype=jnp.int32),
        mesh="x=4,y=2",
        in_specs=(P("x", None, "y"), P("x")),
    )
    assert [(c.kind, c.axes, c.reason) for c in report.collectives] == [
        ("all-reduce", ("y",), "partial-sum")
    ]


@needs_libtpu
def test_gathers_that_are_added_up_among_zeros_are_no_sums():
    def loss(biases, x):
        for bias in biases:
            x = jnp.tanh(x + bias)
        return (x**2).sum()

    biases = [shape(64, dtype=jnp.float32)] * 3
    report = explained(
        jax.grad(loss), biases, shape(64, 64, dtype=jnp.float32), in_specs=(P("data"), P("data"))
    )
    # Gathers of the biases and sums of their gradients have the same kind, type and shape.
    together = [c for c in report.collectives if c.combined_with]
    assert {(c.kind, c.shape) for c in together} == {("all-reduce", (64,))}
    told = Counter((c.made_as, c.reason, c.producer) for c in together)
    assert told == {
        **{("all-gather", "conflict", f"biases[{i}]"): 1 for i in range(3)},
        (None, "partial-sum", "result of reduce_sum"): 3,
    }


@needs_libtpu
def test_a_product_in_two_steps_sends_in_one_of_them():
    # Two devices along model, so two steps: the last one sends nothing, in a branch of XLA's own.
    report = explained(
        lambda x, up, down: jax.nn.relu(x @ up) @ down,
        shape(8, 32, dtype=jnp.float32),
        shape(32, 64, dtype=jnp.float32),
        shape(64, 32, dtype=jnp.float32),
        mesh="data=4,model=2",
        in_specs=(P("data", "model"), P("model"), P("model")),
    )
    (step,) = (c for c in report.collectives if c.kind == "collective-permute")
    assert (step.reason, step.producer) == ("partial-sum", "x @ up")
    assert step.within == ("while",)
    assert step.trips == 1


@needs_libtpu
def test_a_training_step_names_what_enters_a_product_in_steps_and_sums_sent_together():
    # Two layers of the benchmark's transformer, parameters over data and model. What enters a loop
    # of a product is gathered for that product; gradients of several layers, scattered together
    # beside such loops, are partial sums.
    step, args, specs = transformer(2)
    report = explained(
        step,
        *args,
        mesh="data=4,model=2",
        in_specs=specs,
        out_specs=(specs[0], specs[1], P()),
    )
    products = [c for c in report.collectives if c.shape == (64, 128, 512)]
    assert {c.consumer for c in products if c.producer == "result of mul"} == {"dot_general"}
    scattered = [c for c in report.collectives if c.kind == "reduce-scatter"]
    assert {c.reason for c in scattered} == {"partial-sum"}
    # Left: both gradients of a layer's scales, padded and added before they are summed once.
    unknown = [c for c in report.collectives if c.reason == "unknown"]
    assert [c.shape for c in unknown] == [(2, 256)] * 2


@needs_libtpu
def test_results_are_those_of_the_program_where_jax_leaves_functions_beside_it():
    def step(k, x):
        kept = x * jax.random.bernoulli(jax.random.fold_in(k, 1), 0.9, x.shape)
        return kept, kept * jax.random.bernoulli(jax.random.fold_in(k, 2), 0.9, x.shape)

    report = explained(
        step, jax.random.key(0), shape(8, 16, dtype=jnp.float32), in_specs=(P(), P("data"))
    )
    assert [(v.name, v.spec, v.requested) for v in report.outputs] == [
        ("result[0]", (("data",), ()), None),
        ("result[1]", (("data",), ()), None),
    ]
