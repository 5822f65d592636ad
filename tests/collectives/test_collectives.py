"""Collectives in HLO text written by hand: each kind once, with its trips."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.collectives.find import KINDS, find_collectives
from shardnb.findings import report_of_text
from shardnb.report import Axis, Mesh
from shardnb.texts import hlo

MESH = Mesh((Axis("data", 4), Axis("model", 2)), tuple(range(8)))
PAIRS = "{{0,1},{2,3},{4,5},{6,7}}"


def collectives(body: str, before: str = ""):
    text = f"HloModule m, num_partitions=8\n\n{before}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{body}\n}}\n"
    return find_collectives(hlo.parse(text), MESH, lambda frames: ())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found(kind):
    groups = (
        "source_target_pairs={{0,1},{1,0}}"
        if kind == "collective-permute"
        else f"replica_groups={PAIRS}"
    )
    (found,) = collectives(
        f"  ROOT %x = f32[8]{{0}} {kind}(%p), channel_id=1, {groups}, dimensions={{0}}"
    )
    assert (found.kind, found.axes, found.shape, found.bytes) == (kind, ("model",), (8,), 32)


def test_the_name_of_an_instruction_says_nothing():
    (found,) = collectives(f"  ROOT %psum.7 = f32[8]{{0}} all-reduce(%p), replica_groups={PAIRS}")
    assert found.kind == "all-reduce"
    assert not collectives("  ROOT %all-reduce.1 = f32[8]{0} add(%p, %p)")


def test_an_async_pair_counts_once_with_the_shape_of_its_result():
    (found,) = collectives(
        f"  %s = (f32[4]{{0}}, f32[8]{{0}}) all-gather-start(%q), channel_id=1, replica_groups={PAIRS}, dimensions={{0}}\n"
        "  ROOT %d = f32[8]{0} all-gather-done(%s)"
    )
    assert (found.kind, found.shape) == ("all-gather", (8,))


def test_an_async_ragged_exchange_counts_once_though_it_takes_six_operands():
    sizes = ", ".join(["s64[8]{0}"] * 4)
    (found,) = collectives(
        f"  %s = ((f32[8]{{0}}, f32[16]{{0}}, {sizes}), f32[16]{{0}}) ragged-all-to-all-start("
        f"%p, %q, %a, %b, %c, %d), channel_id=1, replica_groups={PAIRS}\n"
        "  ROOT %e = f32[16]{0} ragged-all-to-all-done(%s)"
    )
    assert (found.kind, found.shape, found.combined_with) == ("ragged-all-to-all", (16,), ())


def test_what_a_gpu_records_in_a_command_buffer_counts_once_with_the_trips_of_its_loop():
    """Some versions of XLA make a computation of what they record, which the program calls."""
    before = f"""
%command_buffer (a: f32[8]) -> f32[8] {{
  %a = f32[8]{{0}} parameter(0)
  %start = f32[8]{{0}} all-reduce-start(%a), channel_id=1, replica_groups={PAIRS}, to_apply=%add
  ROOT %done = f32[8]{{0}} all-reduce-done(%start)
}}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %t = (s32[], f32[8]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[8]{{0}} get-tuple-element(%t), index=1
  %y = f32[8]{{0}} call(%x), to_apply=%command_buffer
  ROOT %n = (s32[], f32[8]{{0}}) tuple(%i, %y)
}}
"""
    (found,) = collectives(
        "  %w = (s32[], f32[8]{0}) while(%init), condition=%cond, body=%body, "
        'backend_config={"known_trip_count":{"n":"5"}}\n'
        "  ROOT %r = f32[8]{0} get-tuple-element(%w), index=1",
        before,
    )
    assert (found.kind, found.axes, found.trips) == ("all-reduce", ("model",), 5)
    assert found.within == ("while",)


def test_an_async_all_reduce_may_give_its_operands_as_well():
    """As GPUs do: once with its results only, once with its operands before them."""
    for shape, operands in (
        ("(f32[8]{0}, f32[4]{0})", "%p, %q"),
        ("((f32[8]{0}, f32[4]{0}), (f32[8]{0}, f32[4]{0}))", "%p, %q"),
    ):
        eight, four = collectives(
            f"  %q = f32[4]{{0}} slice(%p)\n"
            f"  %s = {shape} all-reduce-start({operands}), channel_id=1, replica_groups={PAIRS}\n"
            "  ROOT %d = (f32[8]{0}, f32[4]{0}) all-reduce-done(%s)"
        )
        assert (eight.shape, four.shape) == ((8,), (4,))
    (alone,) = collectives(
        f"  %s = ((f32[8]{{0}}), f32[8]{{0}}) all-reduce-start(%p), replica_groups={PAIRS}\n"
        "  ROOT %d = f32[8]{0} all-reduce-done(%s)"
    )
    assert (alone.shape, alone.combined_with) == ((8,), ())


def test_an_async_permute_has_its_result_behind_its_operand():
    (found,) = collectives(
        "  %s = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%p), channel_id=1, source_target_pairs={{0,2},{2,0}}\n"
        "  ROOT %d = f32[8]{0} collective-permute-done(%s)"
    )
    assert (found.shape, found.axes, found.wire_bytes) == ((8,), ("data",), 32)


@pytest.mark.parametrize(
    ("pairs", "sent"),
    # Where each device keeps its block nothing is sent; else a block of 8 floats by one of them.
    [("{{0,0},{1,1}}", 0), ("{{0,0},{1,2},{2,1}}", 32), ("{}", 0)],
)
def test_a_permute_of_a_device_to_itself_sends_nothing(pairs, sent):
    (found,) = collectives(
        f"  ROOT %x = f32[8]{{0}} collective-permute(%p), channel_id=1, source_target_pairs={pairs}"
    )
    assert found.wire_bytes == sent


def test_a_wrapped_async_collective_counts_once():
    wrapped = f"""%inside (q: f32[4]) -> f32[8] {{
  %q = f32[4]{{0}} parameter(0)
  ROOT %g = f32[8]{{0}} all-gather(%q), channel_id=1, replica_groups={PAIRS}, dimensions={{0}}
}}
"""
    (found,) = collectives(
        "  %s = ((f32[4]{0}), f32[8]{0}) async-start(%p), calls=%inside\n"
        "  ROOT %d = f32[8]{0} async-done(%s), calls=%inside",
        wrapped,
    )
    assert found.trips == 1


def test_members_of_a_combined_collective():
    one, two = collectives(
        f"  ROOT %x = (f32[8]{{0}}, bf16[2,3]{{1,0}}) all-reduce(%p, %q), channel_id=1, replica_groups={PAIRS}"
    )
    assert (one.shape, two.shape, two.dtype) == ((8,), (2, 3), "bf16")
    assert (one.combined_with, two.combined_with) == ((1,), (0,))


def test_an_all_to_all_in_pieces_is_one():
    (found,) = collectives(
        f"  ROOT %x = (f32[2,3]{{1,0}}, f32[2,3]{{1,0}}) all-to-all(%p, %q), channel_id=1, replica_groups={PAIRS}"
    )
    assert (found.bytes, found.combined_with) == (48, ())


LOOP = f"""%cond (c: (s32[], f32[8])) -> pred[] {{
  %c = (s32[], f32[8]{{0}}) parameter(0)
  %r = f32[] all-reduce(%c#1), channel_id=1, replica_groups={PAIRS}
  ROOT %l = pred[] compare(%r, %r), direction=LT
}}

%body (b: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %b = (s32[], f32[8]{{0}}) parameter(0)
  %g = f32[8]{{0}} all-gather(%b#1), channel_id=2, replica_groups={PAIRS}, dimensions={{0}}
  ROOT %t = (s32[], f32[8]{{0}}) tuple(%b#0, %g)
}}
"""


def test_a_loop_multiplies_and_its_condition_runs_once_more():
    config = 'backend_config={"known_trip_count":{"n":"5"}}'
    found = collectives(
        f"  ROOT %w = (s32[], f32[8]{{0}}) while(%p), condition=%cond, body=%body, {config}", LOOP
    )
    assert {c.kind: c.trips for c in found} == {"all-reduce": 6, "all-gather": 5}
    assert {c.kind: c.within for c in found} == {
        "all-reduce": ("while condition",),
        "all-gather": ("while",),
    }


def test_a_loop_of_unknown_length_has_unknown_trips():
    found = collectives(
        "  ROOT %w = (s32[], f32[8]{0}) while(%p), condition=%cond, body=%body", LOOP
    )
    assert {c.trips for c in found} == {None}
    assert {c.kind: c.least_trips for c in found} == {"all-reduce": 1, "all-gather": 0}


def test_an_axis_of_one_device_is_shown():
    mesh = Mesh((Axis("data", 8), Axis("one", 1)), tuple(range(8)))
    text = (
        "HloModule m, num_partitions=8\n\nENTRY %main (p: f32[8]) -> f32[8] {\n"
        "  ROOT %x = f32[8]{0} all-reduce(%p), replica_groups=mesh['data'=8,'one'=1] {'one'}\n}\n"
    )
    (found,) = find_collectives(hlo.parse(text), mesh, lambda frames: ())
    assert (found.axes, found.wire_bytes) == (("one",), 0)


def test_a_branch_is_marked():
    (found,) = collectives(
        "  ROOT %x = f32[8]{0} conditional(%i, %p, %p), branch_computations={%one, %two}",
        f"""%one (a: f32[8]) -> f32[8] {{
  %a = f32[8]{{0}} parameter(0)
  ROOT %r = f32[8]{{0}} all-reduce(%a), channel_id=1, replica_groups={PAIRS}
}}

%two (b: f32[8]) -> f32[8] {{
  ROOT %b = f32[8]{{0}} parameter(0)
}}
""",
    )
    assert found.within == ("conditional",)


def test_a_computation_that_two_calls_share_runs_twice():
    (found,) = collectives(
        "  %y = f32[8]{0} call(%p), to_apply=%shared\n  ROOT %x = f32[8]{0} call(%y), to_apply=%shared",
        f"""%shared (a: f32[8]) -> f32[8] {{
  %a = f32[8]{{0}} parameter(0)
  ROOT %r = f32[8]{{0}} all-reduce(%a), channel_id=1, replica_groups={PAIRS}
}}
""",
    )
    assert found.trips == 2


def test_copies_in_the_steps_of_an_async_fusion_count_once():
    step = f"""%async_collective_fusion.NUMBER (a: f32[4]) -> f32[8] {{
  %a = f32[4]{{0}} parameter(0)
  ROOT %r = f32[8]{{0}} all-gather(%a), channel_id=1, replica_groups={PAIRS}, dimensions={{0}}
}}
"""
    found = collectives(
        "  %y = f32[8]{0} fusion(%p), kind=kLoop, calls=%async_collective_fusion.1\n"
        "  ROOT %x = f32[8]{0} fusion(%y), kind=kLoop, calls=%async_collective_fusion.2",
        step.replace("NUMBER", "1") + "\n" + step.replace("NUMBER", "2"),
    )
    assert len(found) == 1


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("all-reduce", 2 * 32 * 3 // 4),
        ("all-gather", 32 * 3 // 4),
        ("all-to-all", 32 * 3 // 4),
        ("reduce-scatter", 32 * 3),
        ("collective-broadcast", 32),
    ],
)
def test_bytes_on_the_wire_follow_the_ring(kind, sent):
    (found,) = collectives(
        f"  ROOT %x = f32[8]{{0}} {kind}(%p), replica_groups={{{{0,2,4,6}},{{1,3,5,7}}}}, dimensions={{0}}"
    )
    assert (found.wire_bytes, found.axes) == (sent, ("data",))


def test_a_group_of_one_sends_nothing():
    (found,) = collectives(
        "  ROOT %x = f32[8]{0} all-reduce(%p), replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}"
    )
    assert (found.wire_bytes, found.axes) == (0, ())


def test_a_text_without_a_mesh_has_the_devices_of_its_groups():
    text = (
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        f"  ROOT %x = f32[8]{{0}} all-reduce(%p), replica_groups={PAIRS}\n}}\n"
    )
    report = report_of_text(text)
    assert (report.mesh.size, report.collectives[0].axes) == (8, None)
    assert "all-reduce" in str(report)


def test_all_to_alls_of_one_channel_keep_their_own_shapes():
    def body(x):
        y = jax.lax.all_to_all(x, "data", 1, 0, tiled=True)
        return jax.lax.all_to_all(jnp.concatenate([y, y], -1), "data", 0, 1, tiled=True)

    report = sn.explain(
        body,
        jax.ShapeDtypeStruct((64, 8, 32), jnp.float32),
        mesh="data=8",
        axes="manual",
        in_specs=P("data"),
        out_specs=P("data"),
    )
    # A device holds 8 x 8 x 32: 8 KiB, and twice that once they are joined.
    assert [c.bytes for c in report.collectives] == [8192, 16384]
