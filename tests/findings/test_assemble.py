"""A finding reaches a report wherever its evidence is: in a program, a dump, or a text alone."""

from __future__ import annotations

import importlib
import pkgutil

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb import findings
from shardnb.compiler import build
from shardnb.compiler.call import read_call
from shardnb.findings.assemble import FINDINGS, report_of_program, report_of_text
from shardnb.mesh import make_grid
from tests.causes.cases import f32
from tests.needs import needs_libtpu

ACCUMULATING = """HloModule steps

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (carry: (s32[], f32[64,64])) -> (s32[], f32[64,64]) {
  %carry = (s32[], f32[64,64]) parameter(0)
  %i = s32[] get-tuple-element(%carry), index=0
  %total = f32[64,64] get-tuple-element(%carry), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %part = f32[64,64] broadcast(%i), dimensions={}
  %whole = f32[64,64] all-reduce(%part), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
  %more = f32[64,64] add(%total, %whole)
  ROOT %out = (s32[], f32[64,64]) tuple(%next, %more)
}

%cond (carry.1: (s32[], f32[64,64])) -> pred[] {
  %carry.1 = (s32[], f32[64,64]) parameter(0)
  %i.1 = s32[] get-tuple-element(%carry.1), index=0
  %end = s32[] constant(4)
  ROOT %less = pred[] compare(%i.1, %end), direction=LT
}

ENTRY %main (x: f32[64,64]) -> (s32[], f32[64,64]) {
  %zero = s32[] constant(0)
  %x = f32[64,64] parameter(0)
  %p = (s32[], f32[64,64]) tuple(%zero, %x)
  ROOT %loop = (s32[], f32[64,64]) while(%p), condition=%cond, body=%body
}
"""


def program(fn, *args, mesh="data=8", in_specs=None, out_specs=None, **jit_options):
    return build(read_call(fn, args, jit_options).request(make_grid(mesh), in_specs, out_specs))


def of_kind(report, kind):
    return [finding for finding in report.findings if finding.kind == kind]


def test_every_finding_is_in_the_table():
    modules = [
        importlib.import_module(f"shardnb.findings.{one.name}")
        for one in pkgutil.iter_modules(findings.__path__)
    ]
    assert {module.find for module in modules if hasattr(module, "find")} == set(FINDINGS)


# What a text alone shows


def test_a_text_shows_a_sum_over_steps():
    (finding,) = of_kind(sn.explain_hlo(ACCUMULATING, mesh="data=8"), "accumulation")
    assert finding.wasted_bytes == 3 * (2 * 64 * 64 * 4 * 7 // 8)


def test_a_collective_without_a_channel_is_not_taken_for_another():
    text = ACCUMULATING.replace("channel_id=1, ", "")
    assert of_kind(sn.explain_hlo(text, mesh="data=8"), "accumulation") == []


def test_a_text_shows_a_collective_in_a_loop_condition():
    until = program(
        lambda x: lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x),
        f32(64),
        in_specs=P("data"),
    )
    (finding,) = of_kind(sn.explain_hlo(until.optimized, mesh="data=8"), "loop condition")
    assert "condition of a loop" in finding.message


@pytest.mark.parametrize("own", [False, True])
def test_a_text_shows_a_donation_that_no_result_took(own):
    lost = program(
        lambda x, y: (x + 1, y.sum()),
        f32(8, 8),
        f32(16, 8),
        in_specs=(P("data"), P("data")),
        donate_argnums=(0, 1),
    )
    report = report_of_text(lost.optimized, make_grid("data=8").describe(), own=own)
    (finding,) = of_kind(report, "donation")
    assert finding.message.startswith("y was donated")
    assert finding.wasted_bytes == 2 * 8 * 4
    assert of_kind(report_of_program(lost), "donation") == [finding]


def test_a_donation_that_the_compiler_may_still_use_is_nothing_to_say():
    lost = program(lambda x: x.sum(), f32(16, 8), in_specs=P("data"), donate_argnums=0)
    assert of_kind(sn.explain_hlo(lost.dumps.before, mesh="data=8"), "donation") == []


def test_a_text_shows_the_state_that_is_left_replicated():
    def decayed(params, opt):
        return params["w"] - opt["w"], 0.9 * opt["w"]

    weights = {"w": f32(1024, 1024)}
    step = program(decayed, weights, weights, in_specs=(P("data"), P()))
    (finding,) = of_kind(sn.explain_hlo(step.dumps.before, mesh="data=8"), "replicated")
    assert finding.message.startswith("opt['w'] is replicated over data")
    assert finding.wasted_bytes == 7 * 1024 * 1024 * 4 // 8


# What a text shows with the dumps of its compile


def twice_moved(x):
    y = lax.with_sharding_constraint(x.reshape(8, 8, 32), P("data", None, "model"))
    return lax.with_sharding_constraint(jnp.tanh(y), P(None, ("model", "data")))


def padded(x):
    return 2 * lax.with_sharding_constraint(jnp.sin(x), P("data"))


@pytest.mark.parametrize(
    ("kind", "fn", "arg", "options"),
    [
        (
            "full rematerialisation",
            twice_moved,
            f32(64, 32),
            {"mesh": "data=4,model=2", "in_specs": P("data")},
        ),
        ("uneven", padded, f32(30, 16), {}),
        ("no partitioned form", jnp.linalg.inv, f32(64, 64), {"in_specs": P("data")}),
        ("output spec", jnp.tanh, f32(64, 64), {"in_specs": P("data"), "out_specs": P()}),
    ],
)
def test_dumps_show_what_the_program_shows(kind, fn, arg, options):
    compiled = program(fn, arg, **options)
    here = report_of_program(compiled)
    there = report_of_text(compiled.optimized, here.mesh, dumps=compiled.dumps)
    expected = [finding.wasted_bytes for finding in of_kind(here, kind)]
    assert expected
    assert [finding.wasted_bytes for finding in of_kind(there, kind)] == expected


def test_dumps_show_what_became_of_the_collectives():
    def step(x, w, b):
        return (jnp.tanh(x @ w) + b).sum()

    compiled = program(
        step, f32(64, 64), f32(64, 64), f32(64), in_specs=(P(None, "data"), P("data"), P())
    )
    here = report_of_program(compiled)
    there = report_of_text(compiled.optimized, here.mesh, dumps=compiled.dumps)
    assert [note for note in there.notes if note.startswith("collectives:")] == [
        note for note in here.notes if note.startswith("collectives:")
    ]


@needs_libtpu
def test_what_became_another_kind_is_said_to_be():
    """TPU scatters a sum of which each device keeps a shard, which was an all-reduce before."""

    def product(x, y):
        return x.T @ y

    report = sn.explain(
        product,
        f32(1024, 512),
        f32(1024, 512),
        mesh="data=8",
        in_specs=P("data"),
        out_specs=P("data"),
        on="v5e:2x4",
        origins=False,
    )
    assert [one.kind for one in report.collectives] == ["reduce-scatter"]
    assert [note for note in report.notes if "inserted" in note] == [
        "the partitioner inserted 1 collective, and the compiled program has as many, of other kinds"
    ]
