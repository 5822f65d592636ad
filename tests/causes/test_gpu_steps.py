"""Why the GPU compiler sends what it computes in steps, flattens twice, or sends with sizes as data."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.needs import needs_gpu_compiler

# The XLA of jax 0.11 gathers all of what is summed.
NEW = jax.__version_info__ >= (0, 12)


def f32(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def returns(rewards):
    return jnp.cumsum(rewards, 0) / jnp.arange(1, 4097)[:, None]


def returns_of_episodes(rewards):
    return lax.scan(lambda sum_, one: (sum_ + jnp.cumsum(one, 0), None), rewards[0], rewards)[0]


def two_sums_of_one_line(rewards):
    return jnp.cumsum(rewards, 0) - jnp.cumsum(rewards, 0)[-1]


@needs_gpu_compiler
def test_two_running_sums_of_one_line_have_their_cause():
    args = f32(4096, 16)
    report = sn.explain(two_sums_of_one_line, args, mesh="x=8", on="h100:8", in_specs=(P("x"),))
    reasons = {one.reason for one in report.collectives}
    assert reasons == {"whole-axis", "halo" if NEW else "partial-sum"}


@needs_gpu_compiler
@pytest.mark.parametrize(
    ("fn", "sizes", "spec", "trips"),
    [
        (returns, (4096, 16), P("x"), 1),
        (returns_of_episodes, (6, 4096, 16), P(None, "x"), 6),
    ],
)
def test_a_running_sum_gathers_the_totals_of_its_blocks(fn, sizes, spec, trips):
    report = sn.explain(fn, f32(*sizes), mesh="x=8", on="h100:8", in_specs=(spec,))
    (one,) = report.collectives
    assert (one.kind, one.axes, one.trips) == ("all-gather", ("x",), trips)
    assert (one.reason, one.asked_by, one.consumer) == ("whole-axis", "inferred", "cumsum")
    assert one.shape == ((8, 16) if NEW else (4096, 16))
    if NEW:
        assert one.producer == "a step of cumsum"
        assert one.why.endswith("cumsum is computed in steps, on blocks that other devices hold.")


@needs_gpu_compiler
def test_what_a_running_sum_takes_is_not_a_step_of_it():
    def sum_over_columns(x):
        return lax.with_sharding_constraint(jnp.cumsum(x, 0), P(None, "x"))

    report = sn.explain(
        sum_over_columns, f32(4096, 16), mesh="x=8", on="h100:8", in_specs=(P("x"),)
    )
    (one,) = report.collectives
    assert (one.kind, one.reason) == ("all-to-all", "whole-axis")
    assert (one.producer, one.consumer) == ("x", "cumsum")


@needs_gpu_compiler
def test_what_takes_a_running_sum_takes_the_whole_and_not_a_step():
    def returns_over_the_last(rewards):
        sums = jnp.cumsum(rewards)
        return sums / sums[-1]

    args = f32(4096)
    report = sn.explain(returns_over_the_last, args, mesh="x=8", on="h100:8", in_specs=(P("x"),))
    _, *last = report.collectives
    assert [(one.kind, one.reason, one.producer, one.consumer) for one in last] == [
        ("collective-permute", "halo", "sums", "slice"),
        ("all-reduce", "whole-axis", "slice of sums", "squeeze"),
    ]


@needs_gpu_compiler
def test_the_largest_elements_are_gathered_from_those_of_each_block():
    scores, specs = f32(8, 1000), (P(None, "x"),)
    report = sn.explain(lambda s: lax.top_k(s, 5), scores, mesh="x=8", on="h100:8", in_specs=specs)
    assert {one.consumer for one in report.collectives} == {"top_k"}
    for one in report.collectives:
        assert (one.kind, one.reason, one.asked_by) == ("all-gather", "whole-axis", "inferred")
        if NEW:
            assert one.why.endswith(
                "top_k is computed in steps, on blocks that other devices hold."
            )


@needs_gpu_compiler
def test_sums_within_hosts_that_are_summed_between_them_keep_their_parameters():
    """One scatters both gradients within hosts, and another adds both shards up between hosts."""

    def step(net, batch):
        def loss(net):
            return jnp.mean(jnp.abs(jnp.tanh(batch @ net["a"]) @ net["b"]))

        return jax.tree.map(lambda p, g: p - 0.1 * g, net, jax.grad(loss)(net))

    specs = {"a": P("gpus"), "b": P(None, "gpus")}
    net = {"a": f32(64, 256), "b": f32(256, 64)}
    report = sn.explain(
        step, net, f32(256, 64), mesh="hosts=4,gpus=8", on="h100:4x8",
        in_specs=(specs, P(("hosts", "gpus"))), out_specs=specs,
    )  # fmt: skip
    shard = 64 * 256 * 4 // 8
    sent = [(c.kind, c.axes, c.role, c.role_of, c.bytes) for c in report.collectives[2:]]
    assert sorted(sent) == [
        ("all-reduce", ("hosts",), "gradient", "net['a']", shard),
        ("all-reduce", ("hosts",), "gradient", "net['b']", shard),
        ("reduce-scatter", ("gpus",), "gradient-scatter", "net['a']", shard),
        ("reduce-scatter", ("gpus",), "gradient-scatter", "net['b']", shard),
    ]


@needs_gpu_compiler
def test_what_is_sent_twice_with_ragged_sizes_keeps_its_lines():
    """Both have one channel, and the optimized program has the name and the line of neither."""

    def layer(rows, w, sizes, starts):
        sizes, starts = sizes[0], starts[0]
        got = lax.all_to_all(sizes, "x", 0, 0, tiled=True)
        lands = lax.all_to_all(starts, "x", 0, 0, tiled=True)
        space = jnp.zeros((32, 16))
        there = lax.ragged_all_to_all(rows, space, starts, sizes, lands, got, axis_name="x")
        y = jnp.tanh(there @ w)
        return lax.ragged_all_to_all(y, space, lands, got, starts, sizes, axis_name="x")

    i32 = jax.ShapeDtypeStruct((8, 8), jnp.int32)
    args, specs = (f32(256, 16), f32(16, 16), i32, i32), (P("x"), P(), P("x"), P("x"))
    report = sn.explain(
        layer, *args, mesh="x=8:manual", on="h100:8", in_specs=specs, out_specs=P("x")
    )
    ragged = [one for one in report.collectives if one.kind == "ragged-all-to-all"]
    first = layer.__code__.co_firstlineno
    assert [one.line - first for one in ragged] == [5, 7]
    assert [(one.producer, one.asked_by) for one in ragged] == [("rows", "called"), ("y", "called")]
    assert {one.bytes for one in ragged} == {32 * 16 * 4}


@needs_gpu_compiler
def test_a_sum_that_left_its_loop_stacked_and_was_flattened_keeps_its_parameter():
    def norms_of_layers(scales, x):
        def loss(scales):
            return jnp.mean(lax.scan(lambda h, s: (jnp.sin(h * s), None), x, scales)[0] ** 2)

        value, gradient = jax.value_and_grad(loss)(scales)
        return scales - 0.1 * gradient, value

    report = sn.explain(
        norms_of_layers, f32(4, 64), f32(16, 64), mesh="x=8", on="h100:8",
        in_specs=(P(), P("x")), out_specs=P(),
    )  # fmt: skip
    sent = {(one.shape, one.reason, one.role, one.role_of) for one in report.collectives}
    assert sent == {
        ((4, 64), "partial-sum", "gradient", "scales"),
        ((), "partial-sum", "loss", ""),
    }
    assert all(one.combined_with for one in report.collectives)


@needs_gpu_compiler
def test_a_sum_over_both_axes_that_were_summed_one_after_another_has_its_cause():
    def attention_of_one_product(w, x):
        q, k, v = jnp.split(x @ w, 3, -1)
        return jnp.mean((jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v) ** 2)

    report = sn.explain(
        attention_of_one_product, f32(32, 96), f32(8, 16, 32), mesh="data=4,model=2", on="h100:8",
        in_specs=(P("data", "model"), P("data")),
    )  # fmt: skip
    (total,) = (one for one in report.collectives if one.shape == ())
    assert (total.kind, total.axes) == ("all-reduce", ("data", "model"))
    assert (total.reason, total.asked_by, total.role) == ("partial-sum", "inferred", "loss")
    assert total.line == attention_of_one_product.__code__.co_firstlineno + 2


@needs_gpu_compiler
def test_what_a_loop_in_a_shard_map_sends_with_ragged_sizes_keeps_its_line():
    def turns(rows, w, sizes):
        sizes = sizes[0]
        starts = (jnp.cumsum(sizes) - sizes).astype(jnp.int32)
        space = lax.pcast(jnp.zeros((64, 16)), ("x",), to="varying")

        def turn(h, _):
            h = jnp.tanh(h @ w)
            sent = lax.ragged_all_to_all(h, space, starts, sizes, starts, sizes, axis_name="x")
            return sent, None

        return lax.scan(turn, rows, None, length=3)[0]

    args = f32(512, 16), f32(16, 16), jax.ShapeDtypeStruct((8, 8), jnp.int32)
    report = sn.explain(
        turns, *args, mesh="x=8:manual", on="h100:8",
        in_specs=(P("x"), P(), P("x")), out_specs=P("x"),
    )  # fmt: skip
    (one,) = report.collectives
    assert (one.kind, one.trips, one.producer) == ("ragged-all-to-all", 3, "h")
    assert one.line == turns.__code__.co_firstlineno + 7


@needs_gpu_compiler
def test_a_ragged_exchange_of_the_backward_pass_is_autodiffs():
    def ragged_exchange_differentiated(w, rows, sizes):
        sizes = sizes[0]
        starts = (jnp.cumsum(sizes) - sizes).astype(jnp.int32)
        space = lax.pcast(jnp.zeros((32, 16)), ("x",), to="varying")
        places = starts, sizes, starts, sizes
        got = lax.ragged_all_to_all(rows @ w, space, *places, axis_name="x")
        return lax.psum(jnp.sum(got**2), "x")

    def gradient(w, rows, sizes):
        specs = P(), P("x"), P("x")
        loss = jax.shard_map(ragged_exchange_differentiated, in_specs=specs, out_specs=P())
        return jax.grad(loss)(w, rows, sizes)

    args = f32(16, 16), f32(256, 16), jax.ShapeDtypeStruct((8, 8), jnp.int32)
    report = sn.explain(gradient, *args, mesh="x=8", on="h100:8", in_specs=(P(), P("x"), P("x")))
    line = ragged_exchange_differentiated.__code__.co_firstlineno + 5
    ragged = [one for one in report.collectives if one.kind == "ragged-all-to-all"]
    assert [(one.frames[0].line, one.by_autodiff, one.role) for one in ragged] == [
        (line, False, "called"),
        (line, True, None),
    ]


def attention_step(p, x):
    def loss(p):
        q, k, v = (jnp.einsum("bsd,dhf->bhsf", x, p[name]) for name in "qkv")
        values = jax.nn.softmax(q @ k.mT) @ v
        return jnp.mean(jnp.einsum("bhsf,hfd->bsd", values, p["o"]) ** 2)

    value, gradients = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, gradients), value


@needs_gpu_compiler
def test_projections_that_xla_makes_one_product_of_are_not_named_after_another_one():
    p = {name: f32(64, 8, 8) for name in "qkv"} | {"o": f32(8, 8, 64)}
    spec = {name: P(None, "tp") for name in "qkv"} | {"o": P("tp")}
    specs = (spec, P("dp"))
    report = sn.explain(
        attention_step,
        p,
        f32(16, 32, 64),
        mesh="dp=4,tp=8",
        on="h100:4x8",
        in_specs=specs,
        out_specs=(spec, P()),
    )
    sums = [one for one in report.collectives if one.role == "gradient"]
    # A device has one head of 8: each gradient is 64 x 8, which are laid end to end.
    assert {(one.shape, one.axes) for one in sums} == {((64, 8), ("dp",))}
    assert sorted(one.role_of for one in sums) == [f"p['{name}']" for name in "koqv"]


def layers_of_a_library(p, x):
    """Three products of one layer, each in a function of its own, and their clipped gradients."""

    def loss(p):
        layers = {}
        for name in "qkv":
            with jax.named_scope(name):
                layers[name] = x @ p[name]
        return jnp.mean(jax.nn.softmax(layers["q"] @ layers["k"].T) @ layers["v"])

    value, gradients = jax.value_and_grad(loss)(p)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda p, g: p - g / jnp.maximum(norm, 1.0), p, gradients), value


@needs_gpu_compiler
def test_gradients_that_xla_makes_as_one_product_and_scatters_keep_their_names():
    specs = ({name: P("data") for name in "qkv"}, P("data"))
    report = sn.explain(
        layers_of_a_library,
        {name: f32(64, 64) for name in "qkv"},
        f32(512, 64),
        mesh="data=8",
        on="h100:8",
        in_specs=specs,
        out_specs=(specs[0], P()),
    )
    names = [one.role_of for one in report.collectives if one.role == "gradient-scatter"]
    assert len(names) == 3
    if NEW:  # the XLA of jax 0.11 gives what it sends together the name of one
        assert sorted(names) == [f"p['{name}']" for name in "kqv"]
        # Nothing tells the norms apart: they are sent in no order of the program's.
        norms = [one for one in report.collectives if one.role == "gradient-norm"]
        assert {one.role_of for one in norms} == {""}


def filters_of_one_size(filters, image):
    def loss(filters):
        first, second = filters
        dims = ("NHWC", "HWIO", "NHWC")
        inner = lax.conv_general_dilated(image, first, (1, 1), "SAME", dimension_numbers=dims)
        outer = lax.conv_general_dilated(inner, second, (1, 1), "SAME", dimension_numbers=dims)
        return jnp.mean(outer**2)

    value, gradients = jax.value_and_grad(loss)(filters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, filters, gradients), value


@needs_gpu_compiler
def test_filters_whose_gradients_are_stored_transposed_are_told_by_the_results_they_reach():
    report = sn.explain(
        filters_of_one_size,
        (f32(3, 3, 3, 8), f32(3, 3, 8, 3)),
        f32(64, 8, 8, 3),
        mesh="data=8",
        on="h100:8",
        in_specs=(P(), P("data")),
        out_specs=(P(), P()),
    )
    sums = [one for one in report.collectives if one.role == "gradient"]
    assert sorted(one.role_of for one in sums) == ["filters[0]", "filters[1]"]


def ring_whose_gradient_is_sent_back(w, x):
    @functools.partial(jax.shard_map, in_specs=(P(), P("seq")), out_specs=P())
    def loss(w, x):
        key, total = x @ w, 0.0
        for hop in range(4):
            total += jnp.sum(jnp.exp(x @ key.T) @ x)
            if hop < 3:
                key = lax.ppermute(key, "seq", [(i, (i + 1) % 8) for i in range(8)])
        return lax.psum(total, "seq")

    return jax.grad(loss)(w, x)


@needs_gpu_compiler
def test_what_an_unrolled_ring_sends_back_has_its_names():
    args = f32(16, 16), f32(64, 16)
    specs = (P(), P("seq"))
    report = sn.explain(
        ring_whose_gradient_is_sent_back, *args, mesh="seq=8", on="h100:8", in_specs=specs
    )
    back = [
        one
        for one in report.collectives
        if one.kind == "collective-permute" and one.phase == "backward"
    ]
    # The gradient of the last key alone, and twice that with the next one's: one hop was not sent.
    names = ["result of add_any"] * 2 + ["result of dot_general"]
    assert sorted(one.producer for one in back) == names
    assert all(one.by_autodiff for one in back)


def context_parallel(p, x):
    """Queries are sharded over the sequence; keys and values are gathered, as is asked."""

    def loss(p):
        k = jax.lax.with_sharding_constraint(x @ p["k"], P("dp"))
        v = jax.lax.with_sharding_constraint(x @ p["v"], P("dp"))
        scores = jnp.einsum("bsd,btd->bst", x @ p["q"], k)
        return jnp.mean(jnp.einsum("bst,btd->bsd", jax.nn.softmax(scores), v) ** 2)

    value, gradients = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, gradients), value


@needs_gpu_compiler
def test_sums_over_two_axes_that_are_sent_end_to_end_under_no_name_keep_their_parameters():
    report = sn.explain(
        context_parallel,
        {name: f32(32, 32) for name in "qkv"},
        f32(8, 64, 32),
        mesh="dp=4,sp=8",
        on="h100:4x8",
        in_specs=(P(), P("dp", "sp")),
        out_specs=P(),
    )
    sums = [one for one in report.collectives if one.kind == "all-reduce" and one.combined_with]
    assert {(one.axes, one.reason, one.asked_by) for one in sums} == {
        (("dp", "sp"), "partial-sum", "inferred")
    }
    assert sorted((one.role, one.role_of) for one in sums) == [
        ("gradient", "p['k']"),
        ("gradient", "p['q']"),
        ("gradient", "p['v']"),
        ("loss", ""),
    ]
    first = context_parallel.__code__.co_firstlineno + 3
    lines = {one.role_of: one.line for one in sums}
    assert lines == {"p['k']": first + 1, "p['v']": first + 2, "p['q']": first + 3, "": first + 4}
