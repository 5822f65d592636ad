"""What a report says of why a collective is there, beside its reason (the bank judges that)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.causes import explain_causes
from shardnb.compiler.dumps import Dumps
from shardnb.report.model import Axis, Collective, Mesh
from shardnb.texts import hlo
from tests.bank import families, known, layers
from tests.bank.case import BANK, explain


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def matmul(a, b):
    return jnp.tanh(a @ b)


def only(name):
    (collective,) = explain(BANK[name]).collectives
    return collective


def test_the_specs_of_both_ends():
    collective = only(known.c4_one_side.__name__)
    assert collective.producer_spec == (("model",), ("data",))
    assert collective.needed_spec == (("model",), ())


def test_the_sentence_of_a_conflict():
    report = sn.explain(
        matmul,
        f32(256, 512),
        f32(512, 1024),
        mesh="data=4,model=2",
        in_specs=(P("model", "data"), P()),
    )
    (collective,) = report.collectives
    assert collective.why == (
        "all-gather[data] of a (128x512 f32, 256 KiB) before a @ b at line "
        f"{collective.line}: a is sharded over data on its contracting dimension, but b is replicated, so a is gathered."
    )


def test_the_line_is_the_consumers():
    report = sn.explain(
        matmul,
        f32(256, 512),
        f32(512, 1024),
        mesh="data=4,model=2",
        in_specs=(P("model", "data"), P()),
    )
    assert report.source.line(report.collectives[0].line).strip() == "return jnp.tanh(a @ b)"


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("c3_contracting", None),
        ("c4_one_side", "operands disagree"),
        ("c5_axis_twice", "one mesh axis shards two dimensions"),
        ("c7b_top_k_batch", "no sharded implementation of this operation"),
        (
            families.out_other_dim.__name__,
            "result of mul must be P(None, 'data'), because of out_specs",
        ),
    ],
)
def test_detail_says_which_kind_of_conflict(name, detail):
    assert only(name).detail == detail


def test_full_rematerialisation_is_a_flag_beside_the_reason():
    collectives = explain(BANK["c12_constraint"]).collectives
    assert [(c.full_remat, c.reason) for c in collectives] == [(True, "output-spec")] * 2


def test_the_warning_of_a_remat_that_is_told_is_not_passed_on():
    assert explain(BANK["c12_constraint"]).warnings_left == ""


def test_a_gather_that_the_compiler_did_not_warn_of_is_not_flagged():
    assert not only("c4_one_side").full_remat


def test_a_moved_result_lies_where_it_was_computed():
    first, _ = explain(BANK["c12_constraint"]).collectives
    assert first.producer_spec == (("y",), (), ("x",))
    assert first.needed_spec == ((), ("x", "y"), ())


def test_phases_of_a_gradient():
    phases = [c.phase for c in explain(BANK["c17_scan_grad"]).collectives]
    assert sorted(phases) == ["backward", "backward", "forward"]


def test_what_is_computed_again_is_rematerialised():
    phases = {c.phase for c in explain(BANK["remat_scan"]).collectives}
    assert "rematerialised" in phases


@pytest.mark.parametrize(
    "name", ["explicit_softmax", "explicit_gradient", "mean_of_log_softmax", "c11_ffi"]
)
def test_nobody_asked_where_an_explicit_program_states_no_sharding(name):
    assert {c.asked_by for c in explain(BANK[name]).collectives} == {"inferred"}


@pytest.mark.parametrize("name", ["explicit_reshard", "c24_out_sharding"])
def test_a_stated_sharding_of_an_explicit_program_is_requested(name):
    assert {c.asked_by for c in explain(BANK[name]).collectives} == {"requested"}


def test_called_collectives_that_share_a_channel_are_told_apart():
    collectives = explain(BANK["moe_all_to_all"]).collectives
    assert [c.producer for c in collectives] == ["reshape of x", "result of dot_general"]


def test_what_a_loop_carries_is_not_called_by_the_name_of_what_it_started_with():
    producers = {c.producer for c in explain(BANK["ring_attention"]).collectives}
    assert producers == {"carried k", "carried v"}


def test_counts_say_what_was_moved_out_of_a_loop():
    counts = explain(BANK["gather_of_a_loop_invariant"]).counts
    assert (counts.made, counts.left, counts.moved) == ({"all-gather": 1}, {"all-gather": 1}, 1)


def test_counts_say_what_is_sent_together():
    counts = explain(BANK["c23b_combined"]).counts
    assert counts.combined == 3
    assert counts.made == {"all-reduce": 3}


def test_counts_tell_called_ones_from_those_of_the_partitioner():
    counts = explain(BANK[layers.partly_manual.__name__]).counts
    assert (counts.called, counts.made) == ({"all-reduce": 1}, {"all-reduce": 1})


def test_without_dumps_nothing_is_added():
    mesh = Mesh((Axis("data", 2),), (0, 1))
    collective = Collective(0, "all-reduce", ("data",), ((0, 1),), "f32", (4,), 8)
    module = hlo.parse("HloModule m\n\nENTRY main {\n  ROOT c = f32[] constant(0)\n}\n")
    causes = explain_causes(
        [collective], optimized=module, dumps=Dumps(warnings="a warning\n"), mesh=mesh
    )
    assert causes.collectives == (collective,)
    assert causes.warnings_left == "a warning\n"


def test_members_that_cpu_widens_are_found_again():
    # XLA for CPU sends narrow floats as f32: a combined collective has other element types than
    # what partitioning made.
    def loss(params, x):
        return jnp.square(x @ params["a"] + x @ params["b"]).mean()

    shape = jax.ShapeDtypeStruct((64, 64), jnp.bfloat16)
    report = sn.explain(
        jax.grad(loss),
        {"a": shape, "b": shape},
        jax.ShapeDtypeStruct((128, 64), jnp.bfloat16),
        mesh="data=8",
        in_specs=(P(), P("data")),
    )
    assert {(c.kind, c.dtype, c.reason) for c in report.collectives} == {
        ("all-reduce", "f32", "partial-sum")
    }
    assert any(c.combined_with for c in report.collectives)


def test_a_reshard_that_ends_a_pending_sum_is_requested():
    def ended(a, b):
        pending = jnp.matmul(a, b, out_sharding=P("data", None, unreduced={"model"}))
        return jax.sharding.reshard(pending + pending, P("data", None))

    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    report = sn.explain(
        ended,
        shape,
        shape,
        mesh="data=4,model=2",
        axes="explicit",
        in_specs=(P("data", "model"), P("model")),
    )
    (found,) = report.collectives
    assert (found.kind, found.asked_by, found.reason) == ("all-reduce", "requested", "partial-sum")
    assert (found.role, found.consumer) == ("requested-reshard", "reshard")
    assert "each device along model holds a part of the result" in found.why


def test_what_moves_to_another_dimension_was_not_asked_to_go_there():
    report = sn.explain(lambda x: jnp.sort(x, 0), f32(256, 1024), mesh="data=8", in_specs=P("data"))
    there = report.collectives[0]
    assert (there.kind, there.consumer, there.reason) == ("all-to-all", "sort", "whole-axis")
    assert there.producer_spec == (("data",), ())
    assert there.needed_spec is None


def test_of_a_collective_that_is_no_more_found_nothing_is_claimed():
    # Another channel and name than any that the partitioner made: its origin is unknown.
    attributes = "channel_id=1, replica_groups={{0,1}}, to_apply=add"
    text = (
        "HloModule m\n\nENTRY main {\n  x = f32[4]{0} parameter(0)\n"
        f"  ROOT found = f32[4]{{0}} all-reduce(x), {attributes}\n}}\n"
    )
    collective = Collective(
        0, "all-reduce", ("data",), ((0, 1),), "f32", (8,), 16,
        generated=True, channel=9, instruction="%lost = f32[8] all-reduce(%y)",
    )  # fmt: skip
    (told,) = explain_causes(
        [collective],
        optimized=hlo.parse(text),
        dumps=Dumps(before=text, partitioned=text),
        mesh=Mesh((Axis("data", 2),), (0, 1)),
    ).collectives
    assert (told.asked_by, told.reason) == (None, "unknown")
