"""Five programs with one mistake each: the first screen names it, its line, its cost and its fix."""

from __future__ import annotations

import re
from html import unescape

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.views import html
from shardnb.views.live import said_of
from tests.causes.cases import f32

KIB = 1024
# What a ring of 8 devices sends of an array that it gathers, in eighths; a sum takes it twice.
GATHERED = 7


# The programs


def embedding_loss(params, tokens):
    x = params["table"][tokens]
    h = jax.nn.relu(x @ params["w1"])
    return jnp.mean((h @ params["w2"]) ** 2)


def constrained_loss(params, tokens):
    x = params["table"][tokens]
    x = jax.lax.with_sharding_constraint(x, P("fsdp"))
    h = jax.nn.relu(x @ params["w1"])
    return jnp.mean((h @ params["w2"]) ** 2)


def twice(params, x):
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ params["w"]), P("data"))
    low = h.astype("bfloat16") @ params["w"].T.astype("bfloat16")
    low = jax.lax.with_sharding_constraint(low, P("data"))
    return jnp.mean(low.astype("float32") ** 2)


def mlp_loss(params, x):
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ params["w1"]), P("data"))
    return jnp.mean((h @ params["w2"]) ** 2)


def momentum(params, trace, x):
    grads = jax.grad(mlp_loss)(params, x)
    trace = jax.tree.map(lambda t, g: 0.9 * t + g, trace, grads)
    params = jax.tree.map(lambda p, t: p - 0.1 * t, params, trace)
    return params, trace


def flattened(x):
    h = jnp.tanh(x)
    flat = h.reshape(-1)
    return flat * 2


def sgd(loss):
    def step(params, batch):
        grads = jax.grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step


# What the first screen shows


def without_fixes(fn, *args, **options):
    return sn.explain(fn, *args, origins=False, **options)


def with_fixes(fn, *args, **options):
    # A few seconds: what a finding proposes is compiled first.
    report = sn.explain(fn, *args, origins=False, fixes=60.0, **options)
    assert not [note for note in report.notes if "left out" in note or "search for" in note]
    return report


def plain(text):
    return " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())


def first_screens(report):
    """Return the verdict and the points as the text, the HTML and the live view show them."""
    said = said_of(report)
    live = [said.verdict]
    for point in said.points[:5]:
        live += [point.head, point.cost, point.cause]
        live += [f"{edit.code} {edit.effect}" for edit in point.edits]
    texts = str(report), html.render(report)
    return [*(plain(text).partition("What is sent")[0] for text in texts), plain(" ".join(live))]


def assert_all_show(report, *parts):
    for screen in first_screens(report):
        for part in parts:
            assert part in screen, (part, screen)


def line_of(fn, number):
    return fn.__code__.co_firstlineno + number


def finding_of(report, kind):
    (found,) = (finding for finding in report.findings if finding.kind == kind)
    return found


# A lost batch sharding

MODEL = {"table": f32(512, 64), "w1": f32(64, 256), "w2": f32(256, 64)}
SHARDED = {"table": P(None, "fsdp"), "w1": P("fsdp"), "w2": P("fsdp")}
LOST = {"mesh": "fsdp=8", "in_specs": (SHARDED, P("fsdp")), "out_specs": SHARDED}
TOKENS = jax.ShapeDtypeStruct((64, 16), "int32")
# Sums of x @ w1 and of h @ w2, and gathers of h's gradient and of the tokens.
LOST_KIB = (2 * 1024 + 1024 + 2 * 256 + 4) * GATHERED / 8


def test_a_lost_batch_sharding():
    report = with_fixes(sgd(embedding_loss), MODEL, TOKENS, **LOST)
    finding, line = finding_of(report, "lost sharding"), line_of(embedding_loss, 1)
    assert (finding.location.line, finding.wire_bytes) == (line, LOST_KIB * KIB)
    (fix,) = finding.fixes
    again = without_fixes(sgd(constrained_loss), MODEL, TOKENS, **LOST)
    assert fix.wire_bytes == (report.wire_bytes, again.wire_bytes)
    assert fix.memory_bytes == (report.memory.total, again.memory.total)
    assert again.findings == ()
    assert_all_show(
        report,
        f"Sharding lost at line {line}",
        'x = params["table"][tokens]',
        "3.1 MiB per run",
        f"after line {line}: x = jax.lax.with_sharding_constraint(x, P('fsdp'))",
        "sends 396 KiB instead of 3.1 MiB",
    )


# State of an optimizer

WEIGHTS = {"w1": f32(256, 1024), "w2": f32(1024, 256)}
BATCH = f32(64, 256)
STATE_KIB = 2 * 1024 * GATHERED // 8


def of_momentum(made, params, trace, results):
    specs = {"in_specs": (params, trace, P("data")), "out_specs": results}
    return made(momentum, WEIGHTS, WEIGHTS, BATCH, mesh="data=8", **specs)


def test_an_optimizer_state_that_is_not_sharded():
    """Each device gathers the new state, which is 2 MiB, as it is given back replicated."""
    data = P("data")
    report = of_momentum(with_fixes, data, P(), (data, P()))
    finding = finding_of(report, "state unlike parameters")
    assert report.findings == (finding,)
    assert (finding.wire_bytes, finding.wasted_bytes) == (STATE_KIB * KIB,) * 2
    (fix,) = finding.fixes
    again = of_momentum(without_fixes, data, data, (data, data))
    assert fix.wire_bytes == (report.wire_bytes, again.wire_bytes)
    assert report.wire_bytes - again.wire_bytes == STATE_KIB * KIB
    assert fix.memory_bytes == (report.memory.total, again.memory.total)
    assert_all_show(
        report,
        "Sharded unlike the parameters: 2 arrays of trace",
        "1.8 MiB per run",
        "trace=P('data') --out result[1]=P('data')",
        "sends 5.2 MiB instead of 7.0 MiB",
    )


def test_state_that_comes_out_differently():
    """Replicated it is data parallelism, with sums of gradients of 2 MiB; sharded it is ZeRO."""
    data = P("data")
    report = of_momentum(with_fixes, P(), P(), (P(), data))
    finding = finding_of(report, "returned otherwise")
    assert finding.wire_bytes == STATE_KIB * KIB
    alike = {fix.edit: fix for fix in finding.fixes}
    assert alike.keys() == {"--out result[1]=P()", "trace=P('data')"}
    assert alike["--out result[1]=P()"].wire_bytes == (report.wire_bytes, 2 * STATE_KIB * KIB)
    sharded = alike["trace=P('data')"]
    again = of_momentum(without_fixes, P(), data, (P(), data))
    assert sharded.wire_bytes == (report.wire_bytes, again.wire_bytes)
    assert sharded.memory_bytes == (report.memory.total, again.memory.total)
    assert_all_show(
        report,
        "State returned with another sharding: 2 arrays of trace",
        "1.8 MiB per run",
        "goes in as P() and comes out as P('data')",
        "--out result[1]=P()",
        "trace=P('data')",
    )


def test_what_is_proposed_is_not_called_compiled():
    report = of_momentum(without_fixes, P(), P(), (P(), P("data")))
    finding = finding_of(report, "returned otherwise")
    assert finding.fixes is None
    assert [edit.text for edit in finding.edits] == ["--out result[1]=P()", "trace=P('data')"]
    assert "Try: trace=P('data')\n        [not compiled]" in str(report)


# A parameter that is gathered twice


def test_a_parameter_that_is_gathered_twice():
    """1 MiB of floats, once as it is and once transposed: the CPU compiler sends both as floats."""
    specs = {"in_specs": (P("data"), P("data")), "out_specs": P("data")}
    report = with_fixes(sgd(twice), {"w": f32(256, 1024)}, BATCH, mesh="data=8", **specs)
    gathers = [one for one in report.collectives if one.kind == "all-gather"]
    assert [one.least_wire_bytes for one in gathers] == [1024 * KIB * GATHERED // 8] * 2
    finding = finding_of(report, "repeated gather")
    first, second = line_of(twice, 1), line_of(twice, 2)
    assert [one.frames[0].line for one in gathers] == [first, second]
    assert finding.collectives == tuple(one.id for one in gathers)
    assert finding.wire_bytes == 2 * 1024 * KIB * GATHERED // 8
    (fix,) = finding.fixes
    assert fix.wire_bytes[0] - fix.wire_bytes[1] == 1024 * KIB * GATHERED // 8
    assert_all_show(
        report,
        f"Parameter gathered more than once at line {first}",
        "1.8 MiB per run",
        "params['w'] is gathered over data 2 times in the forward pass",
        "params['w'] = jax.lax.with_sharding_constraint(params['w'], P())",
        "sends 4.4 MiB instead of 5.2 MiB",
    )


# A reshape across shard boundaries


def test_a_reshape_across_shard_boundaries():
    report = with_fixes(flattened, f32(64, 256), mesh="model=8", in_specs=(P(None, "model"),))
    (one,) = report.collectives
    assert (one.asked_by, one.reason) == ("inferred", "reshape")
    assert one.wire_bytes == 64 * KIB * GATHERED // 8
    assert_all_show(
        report,
        f"all-gather[model] at line {line_of(flattened, 2)}",
        "flat = h.reshape(-1)",
        "56 KiB per run",
        "a reshape joins or splits dimensions across its shard boundaries",
        "x=P('model')",
        "sends nothing",
    )


# How specs are written


@pytest.mark.parametrize(
    ("layers", "edit"),
    [
        (1, "trace[0]['w1']=P('data') trace[0]['w2']=P(None, 'data')"),
        (3, "trace[*]['w1']=P('data') trace[*]['w2']=P(None, 'data')"),
    ],
)
def test_arrays_that_get_the_same_spec_are_written_once(layers, edit):
    def loss(params, x):
        for layer in params:
            x = jax.nn.relu(x @ layer["w1"]) @ layer["w2"]
        return jnp.mean(x**2)

    def step(params, trace, x):
        grads = jax.grad(loss)(params, x)
        trace = jax.tree.map(lambda t, g: 0.9 * t + g, trace, grads)
        return jax.tree.map(lambda p, t: p - 0.1 * t, params, trace), trace

    weights = [{"w1": f32(256, 512), "w2": f32(512, 256)}] * layers
    params = [{"w1": P("data"), "w2": P(None, "data")}] * layers
    specs = {"in_specs": (params, P(), P("data")), "out_specs": (params, P())}
    report = without_fixes(step, weights, weights, BATCH, mesh="data=8", **specs)
    (proposed,) = finding_of(report, "state unlike parameters").edits
    assert proposed.text == f"{edit} --out {edit.replace('trace', 'result[1]')}"


def test_more_specs_than_one_reads_are_described_in_words():
    def loss(params, x):
        for weight in params.values():
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(params, trace, x):
        grads = jax.grad(loss)(params, x)
        trace = jax.tree.map(lambda t, g: 0.9 * t + g, trace, grads)
        return jax.tree.map(lambda p, t: p - 0.1 * t, params, trace), trace

    weights = {name: f32(256, 256) for name in ("a", "b", "c", "d", "e", "f")}
    params = {name: P("data") if name < "d" else P(None, "data") for name in weights}
    specs = {"in_specs": (params, P(), P("data")), "out_specs": (params, P())}
    report = without_fixes(step, weights, weights, BATCH, mesh="data=8", **specs)
    (proposed,) = finding_of(report, "state unlike parameters").edits
    assert proposed.text == "give 6 arrays of trace the specs of params"
