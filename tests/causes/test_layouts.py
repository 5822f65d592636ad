"""What must not be said of a resharded value, and at which line what you wrote is."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.spec import axes_in

M42 = "data=4,model=2"


def _array(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def rows_of_a_table_added(h: Any, emb: Any, t: Any) -> Any:
    return h + emb[t]


def test_rows_of_a_table_added_are_not_said_to_be_gathered_or_to_conflict() -> None:
    report = sn.explain(
        rows_of_a_table_added,
        _array(4, 16),
        _array(64, 16),
        _array(4, dtype=jnp.int32),
        mesh=M42,
        in_specs=(P("data", "model"), P("model", None), P("data")),
    )
    # XLA looks up the rows on the devices that hold them, and moves a mask of its own.
    assert "no partitioned form" not in {finding.kind for finding in report.findings}
    for one in report.collectives:
        if one.dtype == "pred":
            assert (one.reason, one.asked_by, one.producer) == ("unknown", None, None)
        # `h` has `data` on dimension 0 alone, as the rows have it.
        assert "another dimension of h" not in one.why
    (completed,) = [one for one in report.collectives if one.reason == "partial-sum"]
    assert "emb[t] looks up entries along a dimension sharded over model" in completed.why


@pytest.mark.parametrize(
    ("mesh", "spec"),
    [
        (M42, P("data", "model")),
        ("tp=4,dp=2", P("tp", "dp")),
        ("dp=2,fs=2,tp=2", P(("dp", "fs"), "tp")),
    ],
)
def test_a_needed_spec_uses_an_axis_once(mesh: str, spec: P) -> None:
    report = sn.explain(
        lambda x, w: jnp.sin(x @ w) @ w,
        _array(16, 16),
        _array(16, 16),
        mesh=mesh,
        in_specs=(spec, spec),
    )
    assert report.collectives
    for one in report.collectives:
        for spec_of in (one.needed_spec, one.producer_spec):
            entries = [axis for axes in spec_of or () for axis in axes]
            assert len(entries) == len(axes_in(spec_of or ()))


def test_a_requested_reshard_is_at_the_line_of_the_constraint() -> None:
    def constraint_after_an_einsum(x: Any, d: Any) -> Any:
        e = jnp.einsum("gsm,gsec->egcm", x, d)
        return lax.with_sharding_constraint(e, P("data"))

    report = sn.explain(
        constraint_after_an_einsum,
        _array(8, 64, 128),
        _array(8, 64, 8, 16),
        mesh="data=8",
        in_specs=(P("data"), P("data")),
    )
    (one,) = report.collectives
    constraint = constraint_after_an_einsum.__code__.co_firstlineno + 2
    assert (one.kind, one.asked_by, one.frames[0].line) == ("all-to-all", "requested", constraint)


def test_a_transpose_in_a_program_does_not_hide_the_pass() -> None:
    report = sn.explain(
        lambda x, y: x + y.T,
        _array(16, 16),
        _array(16, 16),
        mesh="data=8",
        in_specs=(P("data"), P("data")),
    )
    assert report.collectives
    assert {one.phase for one in report.collectives} == {"forward"}


def test_two_views_of_one_array_are_not_said_to_be_one() -> None:
    report = sn.explain(
        lambda x: jnp.sin(x[None] - x[:, None]), _array(24, 3), mesh="data=8", in_specs=(P("data"),)
    )
    (one,) = [one for one in report.collectives if one.reason == "conflict"]
    assert "data also shards another dimension of" in one.why
    before, after = one.why.split("data also shards another dimension of ")
    assert str(one.producer) in before
    assert not after.startswith(str(one.producer))


def test_a_permute_moves_from_the_layout_that_its_pairs_show() -> None:
    def block(x: Any, w: Any) -> Any:
        return jnp.tanh(lax.with_sharding_constraint(x @ w, P(None, "model")))

    report = sn.explain(
        block, _array(32, 16), _array(16, 64), mesh=M42, in_specs=(P("data", "model"), P("model"))
    )
    (permute,) = [one for one in report.collectives if one.kind == "collective-permute"]
    # 32 x 32 of 32 x 64 per device, and `x` was gathered over data before: so rows are in full. It
    # sends 0->0, 1->2, 2->4, 3->6, 4->1, 5->3, 6->5, 7->7, and odd devices (model 1) need the second
    # half of the columns. So devices 4 to 7, the second half of data, have that before.
    pairs = dict(pair for pair in permute.groups)
    assert [pairs[device] % 2 for device in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert permute.producer_spec == ((), ("data:(1)2",))
    assert permute.needed_spec == ((), ("model",))
    assert "x @ w is sharded over a part of data on dimension 1, but" in permute.why


def running_sum_of_uneven_rows(x):
    total = jnp.cumsum(x, axis=0)
    return jax.lax.with_sharding_constraint(total, P("data")) * 2


def test_permutes_of_padded_blocks_after_an_all_to_all_exchange_edges():
    # 34 rows are padded to 8 blocks of 5, more than the 34 x 2 that a device has of x at first.
    x = jax.ShapeDtypeStruct((34, 16), "float32")
    report = sn.explain(running_sum_of_uneven_rows, x, mesh="data=8", in_specs=P(None, "data"))
    first, *permutes, last = report.collectives
    assert (first.kind, first.reason, first.asked_by) == ("all-to-all", "output-spec", "requested")
    assert {(one.kind, one.reason, one.producer) for one in permutes} == {
        ("collective-permute", "halo", "x")
    }
    because = "x is sharded over data, but jnp.cumsum(x, axis=0) reads elements that other devices"
    assert all(because in one.why for one in permutes)
    assert last.reason == "uneven"


def blocks_beside_and_below(a):
    row = jnp.concatenate([a, a * 2], 1)
    return jnp.concatenate([row, row * 3], 0)


def test_a_concatenation_in_another_layout_arrives_before_the_next():
    x = jax.ShapeDtypeStruct((16, 16), "float32")
    spec = P("r", "c")
    report = sn.explain(blocks_beside_and_below, x, mesh="r=4,c=2", in_specs=spec, out_specs=spec)
    assert report.collectives
    assert {one.reason for one in report.collectives} == {"whole-axis"}
