"""State of a training step: sharded unlike its parameters, or returned otherwise than it came."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32
from tests.findings.test_replicated_inputs import (
    ADAM,
    BATCH,
    LAYERS,
    MOMENTUM,
    adam,
    loss,
    momentum,
)

WEIGHTS = LAYERS * (512 * 512 + 512) * 4
"""Bytes of one copy of all parameters."""
KINDS = ("state unlike parameters", "returned otherwise", "replicated")


def found(fn, *args, mesh="data=8", **options):
    report = sn.explain(fn, *args, mesh=mesh, origins=False, **options)
    return {finding.kind: finding for finding in report.findings if finding.kind in KINDS}


def kept(params, opt):
    """Return the options of a step that returns its state as it takes it."""
    return {"in_specs": (params, opt, P("data")), "out_specs": (params, opt)}


# State unlike its parameters


def test_state_left_replicated_beside_sharded_parameters_is_said_once():
    findings = found(adam, *ADAM, **kept(P("data"), P()))
    assert list(findings) == ["state unlike parameters"]
    finding = findings["state unlike parameters"]
    assert finding.wasted_bytes == 2 * (WEIGHTS - WEIGHTS // 8)
    assert finding.message == (
        "optimizer state: 12 arrays of opt are replicated over data, which shards the parameters, "
        "such as params[0]['w'] P('data'): sharded like their parameters, they would take 770 KiB "
        "per device instead of 6.0 MiB"
    )
    assert finding.details.splitlines() == [
        "opt['mu'][*]['w']: 3 arrays, 3.0 MiB per device",
        "opt['nu'][*]['w']: 3 arrays, 3.0 MiB per device",
        "opt['mu'][*]['b']: 3 arrays, 6.0 KiB per device",
        "opt['nu'][*]['b']: 3 arrays, 6.0 KiB per device",
    ]


def test_one_moment_left_replicated_is_said():
    finding = found(momentum, *MOMENTUM, **kept(P("data"), P()))["state unlike parameters"]
    assert "6 arrays of opt['trace'] are replicated over data" in finding.message
    assert finding.wasted_bytes == WEIGHTS - WEIGHTS // 8


def test_it_stands_in_the_report_with_what_it_costs():
    """Both moments are gathered in each step: a device gets 7/8 of 2 x 3 MiB."""
    text = str(sn.explain(adam, *ADAM, mesh="data=8", **kept(P("data"), P())))
    assert "would take 770 KiB per device instead of 6.0 MiB" in " ".join(text.split())
    assert "5.3 MiB per run" in text


def test_a_gather_of_state_is_counted_by_one_finding():
    report = sn.explain(adam, *ADAM, mesh="data=8", origins=False, **kept(P("data"), P()))
    counted = [one for finding in report.findings for one in finding.collectives]
    assert counted
    assert len(counted) == len(set(counted))


def test_gradients_that_are_returned_whole_are_said():
    """The batch is replicated, so the gradients could be sharded as the parameters are."""
    specs = P("data"), P()
    finding = found(jax.grad(loss), ADAM[0], BATCH, in_specs=specs, out_specs=P())
    finding = finding["state unlike parameters"]
    assert finding.message.startswith("gradients: 6 arrays of result are replicated over data")
    assert finding.wasted_bytes == WEIGHTS - WEIGHTS // 8


@pytest.mark.parametrize(("step", "args"), [(adam, ADAM), (momentum, MOMENTUM)])
@pytest.mark.parametrize(
    ("params", "opt"), [(P(), P()), (P("data"), P("data")), (P(), P("data"))], ids=str
)
def test_data_parallelism_fsdp_and_sharded_state_have_nothing_to_say(step, args, params, opt):
    assert found(step, *args, **kept(params, opt)) == {}


def test_state_on_another_dimension_is_resharded_in_each_step():
    """Each device sends 7 of 8 parts of its eighth of the three matrices; biases have one dimension."""
    matrices, biases = P(None, "data"), P("data")
    opt = {"trace": [{"w": matrices, "b": biases}] * LAYERS}
    findings = found(momentum, *MOMENTUM, **kept(P("data"), opt))
    assert list(findings) == ["state unlike parameters"]
    finding = findings["state unlike parameters"]
    assert finding.message == (
        "optimizer state: 3 arrays of opt['trace'] are sharded over data on another dimension than "
        "the parameters, so each update is resharded: opt['trace'][0]['w'] is P(None, 'data'), but "
        "params[0]['w'] is P('data')"
    )
    assert len(finding.collectives) == LAYERS
    assert finding.wire_bytes == LAYERS * 512 * 512 * 4 // 8 * 7 // 8


# State that comes out otherwise


def test_state_that_comes_out_otherwise_is_said_once_with_what_the_next_call_receives():
    """A device gets the other 7 of 8 blocks of all parameters and of both moments."""
    options = {"in_specs": (P(), P(), P("data")), "out_specs": (P("data"), P("data"))}
    findings = found(adam, *ADAM, **options)
    assert list(findings) == ["returned otherwise"]
    finding = findings["returned otherwise"]
    assert finding.message == (
        "18 arrays of params and opt: params[0]['w'], for example, goes in as P() and comes out as "
        "P('data'), so the next call has to reshard or to compile again"
    )
    assert finding.wire_bytes == 3 * WEIGHTS * 7 // 8


def test_what_comes_out_whole_costs_the_gathers_of_this_call():
    """The next call slices what each device has; each device sends 7/8 of the parameters now."""
    options = {"in_specs": (P("data"), P("data"), P("data")), "out_specs": (P(), P("data"))}
    finding = found(adam, *ADAM, **options)["returned otherwise"]
    assert finding.message.startswith("6 arrays of params: params[0]['w'], for example, goes in")
    assert finding.wire_bytes == WEIGHTS * 7 // 8
    assert len(finding.collectives) == 6


CACHE = f32(8, 64, 32), f32(8, 1, 32), jax.ShapeDtypeStruct((), "int32")
OTHERWISE = {"in_specs": (P("data"), P("data"), P()), "out_specs": P(None, "data")}


def decode(cache, x, at):
    return jax.lax.dynamic_update_slice(cache, x, (0, at, 0))


def test_a_cache_that_is_written_into_is_state():
    """An all-to-all sends 7/8 of a device's block in this call, and the next one sends it back."""
    for options in ({}, {"donate_argnums": 0}):
        finding = found(decode, *CACHE, **OTHERWISE, **options)["returned otherwise"]
        assert finding.message == (
            "cache goes in as P('data') and comes out as P(None, 'data'), so the next call has to "
            "reshard or to compile again"
        )
        assert finding.wire_bytes == 2 * 64 * 32 * 4 * 7 // 8
        assert len(finding.collectives) == 1


def test_an_argument_that_is_donated_is_state():
    def decay(moment, x):
        return 0.9 * moment + x

    args = f32(64, 64), f32(64, 64)
    specs = {"in_specs": (P("data"), P("data")), "out_specs": P(None, "data")}
    finding = found(decay, *args, donate_argnums=0, **specs)["returned otherwise"]
    assert finding.message.startswith(
        "moment goes in as P('data') and comes out as P(None, 'data')"
    )
    assert found(decay, *args, **specs) == {}


@pytest.mark.parametrize(
    "write",
    [
        lambda cache, x, at: cache.at[:, at].set(x[:, 0]),
        lambda cache, x, at: jnp.concatenate([cache[:, 1:], x], 1),
        lambda cache, x, at: jax.lax.fori_loop(0, 3, lambda i, c: decode(c, x, i), cache),
        lambda cache, x, at: decode(decode(cache, x, at), x, 0),
    ],
)
def test_a_cache_is_state_however_it_is_written_into(write):
    finding = found(write, *CACHE, **OTHERWISE)["returned otherwise"]
    assert finding.message.startswith("cache goes in as P('data') and comes out as P(None, 'data')")


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, y, at: x.at[:, 0].set(0.0),
        lambda x, y, at: jnp.roll(x, 1, 1),
        lambda x, y, at: jnp.concatenate([jnp.zeros_like(y), x[:, :-1]], 1),
        lambda x, y, at: jnp.where(x > 0, x, y),
        lambda x, y, at: decode(jnp.tanh(x), y, at),
        lambda x, y, at: x + y,
    ],
)
def test_a_result_that_is_padded_shifted_or_computed_is_no_state(compute):
    assert found(compute, *CACHE, **OTHERWISE) == {}


def test_a_result_that_is_no_state_may_lie_anywhere():
    def scale(x):
        return jnp.tanh(x) * 2

    assert found(scale, f32(64, 64), in_specs=P("data"), out_specs=P(None, "data")) == {}
