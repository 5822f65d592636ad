"""What TPU and GPU send where CPU sends more; the TPU compiler itself is the other source."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.collectives.on_accelerators import scattered
from shardnb.texts import hlo
from shardnb.views import words
from tests.needs import needs_libtpu


def bf16(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def step(w, x):
    def loss(w):
        return jnp.sum((x @ w).astype(jnp.float32) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


ROWS = P("data")


def trained(dtype=jnp.bfloat16, **options):
    args = jax.ShapeDtypeStruct((512, 256), dtype), jax.ShapeDtypeStruct((256, 512), dtype)
    specs = (ROWS, ROWS)
    return sn.explain(step, *args, mesh="data=8", in_specs=specs, out_specs=ROWS, **options)


# 448 KiB of the all-gather, and 896 KiB of the all-reduce, as f32; half of both as bf16.
SENT = "2 collectives here send 1.3 MiB per device, and as bf16 would send 672 KiB."


def test_narrow_floats_and_sums_that_are_cut_have_both_byte_counts():
    # On CPU f32: 512 x 256 and 256 x 512 numbers of 4 bytes, in rings of eight. Else of 2 bytes,
    # and each device keeps 64 columns of the sum: seven blocks of 256 x 64 are sent.
    report = trained()
    gather, total = report.collectives
    assert (gather.dtype, gather.wire_bytes) == ("f32", 512 * 256 * 4 * 7 // 8)
    other = gather.on_accelerators
    assert (other.kind, other.dtype, other.shape) == ("all-gather", "bf16", (512, 256))
    assert other.wire_bytes == 512 * 256 * 2 * 7 // 8
    assert (total.kind, total.wire_bytes) == ("all-reduce", 2 * 256 * 512 * 4 * 7 // 8)
    other = total.on_accelerators
    assert (other.kind, other.dtype, other.shape) == ("reduce-scatter", "bf16", (256, 64))
    assert other.wire_bytes == 256 * 64 * 2 * 7
    text = " ".join(str(report).split())
    assert SENT in text
    said = "A compiler for TPU or GPU may use reduce-scatter bf16[256, 64], which sends 224 KiB."
    assert said in words.further(total)


def test_a_sum_is_drawn_as_it_lies_before_it_is_cut():
    total = trained().collectives[1]
    assert (total.producer_shape, total.shape) == ((256, 512), (256, 512))
    assert total.producer_spec == ((), ())


def test_nothing_is_said_where_all_send_the_same():
    x = jax.ShapeDtypeStruct((64, 32), jnp.float32)
    report = sn.explain(lambda x: x.sum(0), x, mesh="data=8", in_specs=(ROWS,))
    assert [c.kind for c in report.collectives] == ["all-reduce"]
    assert all(c.on_accelerators is None for c in report.collectives)
    assert "TPU and GPU" not in str(report)


@needs_libtpu
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_the_tpu_compiler_sends_what_is_said_of_it(dtype):
    here = [c.on_accelerators or c for c in trained(dtype).collectives]
    there = trained(dtype, on="v5e:2x4", origins=False).collectives
    if dtype == jnp.float32:
        # TPU also rounds what only a product takes.
        here, there = here[1:], there[1:]
    # TPU also transposes the gradient before it sends it.
    said = [(c.kind, c.dtype, sorted(c.shape), c.wire_bytes) for c in here]
    assert said == [(c.kind, c.dtype, sorted(c.shape), c.wire_bytes) for c in there]


def test_a_sum_in_a_loop_counts_as_often_as_it_runs():
    def scanned(ws, x):
        def layer(h, w):
            return jnp.tanh(h @ w), None

        return jnp.sum(lax.scan(layer, x, ws)[0].astype(jnp.float32))

    report = sn.explain(
        jax.grad(scanned),
        bf16(4, 64, 64),
        bf16(128, 64),
        mesh="data=8",
        in_specs=(P(None, "data"), P("data")),
        out_specs=P(None, "data"),
    )
    cut = [c for c in report.collectives if c.kind == "all-reduce" and c.trips == 4]
    assert [c.on_accelerators.kind for c in cut] == ["reduce-scatter"]


CUT = """HloModule m, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main_spmd (p: f32[8,4]) -> f32[4,4] {
  %p = f32[8,4]{1,0} parameter(0)
  %sum = f32[8,4]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
  %zero = s32[] constant(0)
  %table = s32[4]{0} constant({0, 4, 0, 4})
  %device = u32[] partition-id()
  %row = s32[1]{0} dynamic-slice(%table, %device), dynamic_slice_sizes={1}
  %start = s32[] reshape(%row)
  ROOT %mine = f32[4,4]{1,0} dynamic-slice(%sum, %start, %zero), dynamic_slice_sizes={4,4}
}
"""


def cut(text, groups=((0, 1), (2, 3))):
    module = hlo.parse(text)
    graph = module.computations[module.entry]
    return scattered(graph, graph.nodes["sum"], groups)


def test_each_device_of_a_group_keeps_its_block_of_the_sum():
    assert cut(CUT) == (4, 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{0, 4, 0, 4}", "{0, 0, 4, 4}"),  # both devices of a group keep the same rows
        ("{0, 4, 0, 4}", "{4, 0, 4, 0}"),  # in another order than that of the group
        ("reshape(%row)", "negate(%row)"),  # computed in a way that is not followed
    ],
)
def test_a_sum_that_is_cut_otherwise_stays_one(old, new):
    assert cut(CUT.replace(old, new)) is None


def test_a_sum_that_is_also_used_in_full_stays_one():
    used = CUT.replace("  ROOT %mine", "  %full = f32[8,4]{1,0} negate(%sum)\n  ROOT %mine")
    assert cut(used) is None


def test_a_sum_over_more_devices_than_the_blocks_stays_one():
    assert cut(CUT, ((0, 1, 2, 3),)) is None
