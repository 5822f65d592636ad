"""Programs of the TPU compiler, compiled here without a TPU: what is read is what it sends."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.collectives.find import find_collectives
from shardnb.findings.memory import memory_of
from shardnb.report import Axis, Mesh
from shardnb.texts import hlo
from shardnb.texts.buffers import Buffer, read_allocations
from shardnb.texts.instruction import HloValue
from tests.needs import needs_libtpu

MESH = Mesh((Axis("data", 4), Axis("model", 2)), tuple(range(8)))


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


# By hand: a text in TPU's way of writing


STEP = """HloModule m, is_scheduled=true, num_partitions=8

%start (a: bf16[8,4]) -> (bf16[8,4], bf16[32,4], u32[]) {
  %a = bf16[8,4]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %gather.1 = bf16[32,4]{1,0:T(8,128)(2,1)} all-gather(%a), channel_id=7, replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}, use_global_device_ids=true, frontend_attributes={chain_id="0"}, metadata={op_name="w"}
  ROOT %c.1 = (bf16[8,4]{1,0}, bf16[32,4]{1,0}, u32[]{:S(2)}) custom-call(%gather.1), custom_call_target="AsyncCollectiveStart"
}

%async_collective_fusion.1 (b: bf16[8,4], x: bf16[4,4]) -> (bf16[4,4], bf16[32,4]) {
  %b = bf16[8,4]{1,0} parameter(0)
  %x = bf16[4,4]{1,0} parameter(1)
  %y = bf16[4,4]{1,0} convolution(%x, %x), dim_labels=bf_io->bf
  %gather.2 = bf16[32,4]{1,0} all-gather(%b), channel_id=7, replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}, frontend_attributes={chain_id="0"}
  ROOT %t = (bf16[4,4]{1,0}, bf16[32,4]{1,0}) tuple(%y, %gather.2)
}

%done (d: bf16[8,4]) -> bf16[32,4] {
  %d = bf16[8,4]{1,0} parameter(0)
  %gather.3 = bf16[32,4]{1,0} all-gather(%d), channel_id=7, replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}, frontend_attributes={chain_id="0"}
  ROOT %c.2 = bf16[32,4]{1,0} custom-call(%d, %gather.3), custom_call_target="AsyncCollectiveDone"
}

%all-reduce-scatter.1 (i: f32[64,8]) -> f32[16,8] {
  %i = f32[64,8]{1,0} parameter(0)
  %sum = f32[64,8]{1,0} all-reduce(%i), channel_id=9, replica_groups={{0,2,4,6},{1,3,5,7}}, to_apply=%add
  %zero = u32[] constant(0)
  ROOT %part = f32[16,8]{1,0} dynamic-slice(%sum, %zero, %zero), dynamic_slice_sizes={16,8}
}

ENTRY %main (p: bf16[8,4], q: bf16[4,4], g: f32[64,8]) -> f32[16,8] {
  %p = bf16[8,4]{1,0} parameter(0)
  %q = bf16[4,4]{1,0} parameter(1)
  %g = f32[64,8]{1,0} parameter(2)
  %async-collective-start = (bf16[8,4]{1,0}, bf16[32,4]{1,0}, u32[]{:S(2)}) fusion(%p), kind=kCustom, calls=%start
  %e = bf16[8,4]{1,0} get-tuple-element(%async-collective-start), index=0
  %step = (bf16[4,4]{1,0}, bf16[32,4]{1,0}) fusion(%e, %q), kind=kOutput, calls=%async_collective_fusion.1, metadata={op_name="jit(f)/dot_general"}, backend_config={"window_config":{"estimated_cycles":"2221"}}
  %copy-start = (f32[64,8]{1,0:S(1)}, f32[64,8]{1,0}, u32[]{:S(2)}) copy-start(%g)
  %tanh = bf16[4,4]{1,0} fusion(%q), kind=kLoop, calls=%other, metadata={op_name="jit(f)/tanh"}, backend_config={"window_config":{"estimated_cycles":"100"}}
  %copy-done = f32[64,8]{1,0:S(1)} copy-done(%copy-start)
  %async-collective-done = bf16[32,4]{1,0} fusion(%e), kind=kCustom, calls=%done, frontend_attributes={is_spmd_generated="true"}
  ROOT %rs = f32[16,8]{1,0} fusion(%copy-done), kind=kCustom, calls=%all-reduce-scatter.1, metadata={op_name="jit(f)/transpose(jvp())/dot_general"}, backend_config={"collective_algorithm_config":{"emitter":"AllReduceScatterFusion","strategy":"StrategyRing","debug":""}}
}
"""


@pytest.fixture(scope="module")
def step():
    return find_collectives(hlo.parse(STEP), MESH, lambda frames: ())


def test_start_steps_and_done_are_one(step):
    assert [(c.kind, c.axes, c.shape, c.channel) for c in step] == [
        ("all-gather", ("data",), (32, 4), 7),
        ("reduce-scatter", ("data",), (16, 8), 9),
    ]


def test_what_is_scheduled_between_start_and_done(step):
    gather = step[0]
    assert (gather.overlap.ops, gather.overlap.names) == (2, ("dot_general", "tanh"))
    assert gather.overlap.cycles == 2321
    assert step[1].overlap is None


def test_where_a_block_lies_is_no_work_to_hide_behind():
    offset = '%tanh = s32[] multiply(%i, %i), metadata={op_name="jit(f)/dot_general"}\n'
    lines = [offset if "%tanh =" in line else line for line in STEP.splitlines(keepends=True)]
    (gather, _) = find_collectives(hlo.parse("".join(lines)), MESH, lambda frames: ())
    assert (gather.overlap.ops, gather.overlap.names) == (1, ("dot_general",))


def test_a_mark_that_only_the_done_kept_counts(step):
    assert step[0].generated


def test_an_all_reduce_that_is_cut_at_once_is_sent_as_a_reduce_scatter(step):
    scatter = step[1]
    # Each device keeps 16 x 8 floats, 512 bytes, and sends as much to each of 3 others.
    assert (scatter.made_as, scatter.bytes, scatter.wire_bytes) == ("all-reduce", 512, 1536)
    assert scatter.algorithm == "StrategyRing, AllReduceScatterFusion"
    assert scatter.op_name == "jit(f)/transpose(jvp())/dot_general"


def test_an_all_reduce_whose_whole_result_is_used_stays_one():
    text = STEP.replace("ROOT %part", "%part").replace(
        "dynamic_slice_sizes={16,8}\n",
        "dynamic_slice_sizes={16,8}\n  ROOT %all = f32[64,8]{1,0} negate(%sum)\n",
    )
    kinds = [c.kind for c in find_collectives(hlo.parse(text), MESH, lambda frames: ())]
    assert kinds == ["all-gather", "all-reduce"]


GATHER = (
    "all-gather(%a), channel_id=1, replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}, "
    'frontend_attributes={chain_id="CHAIN"}'
)
CHAIN = f"""
%begin.CHAIN (a: bf16[8,4]) -> (bf16[8,4], bf16[32,4]) {{
  %a = bf16[8,4]{{1,0}} parameter(0)
  %g.first.CHAIN = bf16[32,4]{{1,0}} {GATHER}
  ROOT %c = (bf16[8,4]{{1,0}}, bf16[32,4]{{1,0}}) custom-call(%g.first.CHAIN), custom_call_target="AsyncCollectiveStart"
}}

%end.CHAIN (a: bf16[8,4]) -> bf16[32,4] {{
  %a = bf16[8,4]{{1,0}} parameter(0)
  %g.last.CHAIN = bf16[32,4]{{1,0}} {GATHER}
  ROOT %c = bf16[32,4]{{1,0}} custom-call(%a, %g.last.CHAIN), custom_call_target="AsyncCollectiveDone"
}}
"""
TWO_CHAINS = (
    "HloModule m, is_scheduled=true, num_partitions=8\n"
    + CHAIN.replace("CHAIN", "0")
    + CHAIN.replace("CHAIN", "1")
    + """
ENTRY %main (p: bf16[8,4], q: bf16[8,4]) -> bf16[32,4] {
  %p = bf16[8,4]{1,0} parameter(0)
  %q = bf16[8,4]{1,0} parameter(1)
  %start.0 = (bf16[8,4]{1,0}, bf16[32,4]{1,0}) fusion(%p), kind=kCustom, calls=%begin.0
  %x = bf16[8,4]{1,0} sine(%p)
  %start.1 = (bf16[8,4]{1,0}, bf16[32,4]{1,0}) fusion(%q), kind=kCustom, calls=%begin.1
  %done.0 = bf16[32,4]{1,0} fusion(%p), kind=kCustom, calls=%end.0
  %y = bf16[8,4]{1,0} cosine(%p)
  %done.1 = bf16[32,4]{1,0} fusion(%q), kind=kCustom, calls=%end.1
  ROOT %z = bf16[32,4]{1,0} add(%done.0, %done.1)
}
"""
)


def test_what_a_shard_map_gathers_over_one_channel_is_told_by_its_chain():
    found = find_collectives(hlo.parse(TWO_CHAINS), MESH, lambda frames: ())
    assert [(c.kind, c.overlap.names) for c in found] == [
        ("all-gather", ("sine",)),
        ("all-gather", ("cosine",)),
    ]


NAMELESS = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %a = f32[8]{0} collective-permute(%p), channel_id=1, source_target_pairs={{0,2},{2,4}}, metadata={op_name="jit(f)/shard_map/ppermute"}
  ROOT %b = f32[8]{0} collective-permute(%a), channel_id=1, source_target_pairs={{0,2},{2,4}}
}
"""


def test_a_permute_that_tpu_adds_is_not_called_though_it_has_the_channel_of_one_that_is():
    before = NAMELESS[: NAMELESS.index("  ROOT")].replace("  %a", "  ROOT %a") + "}\n"
    found = find_collectives(hlo.parse(NAMELESS), MESH, lambda frames: (), hlo.parse(before))
    assert [c.generated for c in found] == [False, True]


SPARSE = """HloModule m, is_scheduled=true, num_partitions=8

%called (i: f32[512]) -> f32[512] {
  %i = f32[512]{0} parameter(0)
  ROOT %sum = f32[512]{0} all-reduce(%i), channel_id=1, replica_groups=[4,2]<=[8], to_apply=%add, frontend_attributes={is_spmd_generated="true"}, backend_config={"device_type":"DEVICE_TYPE_SPARSECORE"}
}, execution_thread="sparsecore"

ENTRY %main (p: f32[512]) -> f32[512] {
  %p = f32[512]{0} parameter(0)
  %call-start = ((), (), (s32[1]{0})) call-start(), async_execution_thread="sparsecore", to_apply=%called
  %x = f32[512]{0} sine(%p)
  %call-update = ((f32[512]{0}), f32[512]{0}) call-update(%call-start, %x)
  %y = f32[512]{0} cosine(%p)
  %call-done = f32[512]{0} call-done(%call-update)
  ROOT %z = f32[512]{0} add(%call-done, %y)
}
"""


def test_what_sparse_cores_send_begins_where_they_get_it():
    (found,) = find_collectives(hlo.parse(SPARSE), MESH, lambda frames: ())
    assert (found.kind, found.axes, found.algorithm) == ("all-reduce", ("model",), "SparseCore")
    assert found.overlap.names == ("cosine",)


# Compiled here


@pytest.fixture(scope="module")
def matmul():
    return sn.explain(
        lambda x, w: jnp.tanh(x @ w),
        shape(256, 512),
        shape(512, 1024),
        mesh="data=4,model=2",
        on="v5e:2x4",
        in_specs=(P("data", "model"), P("model")),
    )


@needs_libtpu
def test_a_matmul_split_over_its_contracting_dim(matmul):
    (found,) = matmul.collectives
    # Each device holds a partial sum of 64 x 1024 floats.
    assert (found.kind, found.axes, found.shape, found.bytes) == (
        "all-reduce",
        ("model",),
        (64, 1024),
        262144,
    )
    assert (found.asked_by, found.reason) == ("inferred", "partial-sum")
    assert "Strategy" in found.algorithm


@needs_libtpu
def test_the_report_says_which_hardware_and_where(matmul):
    assert (matmul.mesh.target, matmul.mesh.kind) == ("v5e:2x4", "TPU v5 lite")
    assert len(set(matmul.mesh.coords)) == 8
    assert "8 TPU v5 lite devices (v5e:2x4)" in str(matmul)
    assert sn.Report.from_json(matmul.to_json()) == matmul


@needs_libtpu
def test_nothing_runs_on_a_topology():
    with pytest.raises(ValueError, match="programs for a TPU topology or a GPU cluster are only"):
        sn.explain(jnp.sin, jnp.ones(8), mesh="data=8", on="v5e:2x4", run=True)


@needs_libtpu
def test_a_scan_has_its_trips_and_sends_what_the_partitioner_did_not_make():
    def layers(x, ws):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]

    report = sn.explain(
        layers,
        shape(256, 512),
        shape(5, 512, 512),
        mesh="data=4,model=2",
        on="v5e:2x4",
        in_specs=(P("data", None), P(None, "model", None)),
    )
    (found,) = report.collectives
    # The sum of 64 x 512 is needed sharded over model: TPU scatters it, CPU would not.
    assert (found.kind, found.made_as, found.trips) == ("reduce-scatter", "all-reduce", 5)
    assert (found.shape, found.reason) == ((64, 256), "partial-sum")


@needs_libtpu
def test_each_exchange_of_a_gradient_is_told_once():
    def loss(params, x):
        for w in params:
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    report = sn.explain(
        jax.grad(loss),
        [shape(1024, 1024)] * 4,
        shape(512, 1024),
        mesh="data=8",
        on="v5e:2x4",
        in_specs=(P("data"), P("data")),
        out_specs=P("data"),
    )
    after = hlo.parse(report.texts["after partitioning"])
    made = {
        (one.opcode, one.operands)
        for one in after.instructions()
        if one.integer("channel_id") is not None
    }
    sent = Counter(c.made_as or c.kind for c in report.collectives)
    # Those that the partitioner made of one operand twice are one in the end, and no other goes.
    assert sent == Counter(opcode for opcode, _ in made)
    assert sent["all-gather"] >= 4
    assert {c.asked_by for c in report.collectives} == {"inferred"}
    assert len({c.channel for c in report.collectives}) == len(report.collectives)
    overlapped = [c for c in report.collectives if c.overlap is not None]
    assert overlapped
    assert all("dot_general" in c.overlap.names for c in overlapped)


@pytest.fixture(scope="module")
def too_large():
    def f(x, w):
        h = x @ w
        return jnp.tanh(h) @ w.T, h

    return sn.explain(
        f,
        shape(131072, 32768),
        shape(32768, 65536),
        mesh="data=4,model=2",
        on="v5e:2x4",
        in_specs=(P("data", "model"), P("model")),
    )


@needs_libtpu
def test_a_program_that_does_not_fit_is_a_finding(too_large):
    finding = next(f for f in too_large.findings if f.kind == "out-of-memory")
    # x 2 GiB, w 4 GiB, h 8 GiB and the result 2 GiB per device; a chip of v5e has 16 GB.
    assert "a device needs 16.00 GiB of memory and has 15.75 GiB" in finding.message
    assert "8.00 GiB f32[32768, 65536] of dot_general" in finding.message
    assert finding.location is not None
    assert too_large.memory.arguments == 6 * 2**30
    assert too_large.memory.outputs == pytest.approx(10 * 2**30, rel=1e-6)


@needs_libtpu
def test_a_program_that_does_not_fit_has_its_collectives_and_results(too_large):
    assert [(c.kind, c.axes, c.reason) for c in too_large.collectives] == [
        ("all-reduce", ("model",), "partial-sum")
    ]
    assert [value.spec for value in too_large.outputs] == [
        (("data",), ("model",)),
        (("data",), ()),
    ]


# Allocations, from a text by hand


ALLOCATIONS = """BufferAssignment:
allocation 0: size 1024, page 0, parameter 0, shape |f32[256]| at ShapeIndex {}:
 value: <1 x @0> (size=1024,offset=0): f32[256]{0:T(256)}
allocation 1: size 4096, page 0, maybe-live-out:
 value: <2 y @0> (size=4096,offset=0): f32[1024]{0:T(1024)}
allocation 2: size 512, color 6, page 0, thread-local:
 value: <3 z @6> (size=512,offset=0): pred[]{:T(512)S(6)}
allocation 3: size 3072, page 0, preallocated-temp:
 value: <4 a @0> (size=2048,offset=0): f32[512]{0:T(512)}
 value: <5 b{1} @0> (size=2048,offset=0): f32[512]{0:T(512)}
 value: <6 b{} @0> (size=1024,offset=2048): (f32[512]{0:T(512)}, f32[512]{0:T(512)})
allocation 4: size 65536, color 1, page 0, preallocated-temp:
 value: <7 c @1> (size=65536,offset=0): f32[16384]{0:T(1024)S(1)}
"""


def test_allocations_of_the_main_memory():
    found = [each for each in read_allocations(ALLOCATIONS) if each.is_main]
    assert [a.bytes for a in found] == [1024, 4096, 3072]
    assert found[2].largest == (Buffer(HloValue("a"), "f32[512]{0:T(512)}", 2048),)
    memory = memory_of(found)
    assert (memory.arguments, memory.outputs, memory.temporaries) == (1024, 4096, 3072)


def large(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)


@needs_libtpu
@pytest.mark.parametrize(
    ("args", "specs", "out", "reason", "producer"),
    [
        # The rows of x and the contracting dimension of w are sharded over one axis.
        ((large(32768, 8192), large(8192, 32768)), (P("data"), P("data")), None, "conflict", "b"),
        # Both contracting dimensions are sharded, and the result is scattered as the sum is made.
        (
            (large(32768, 8192), large(8192, 32768)),
            (P(None, "data"), P("data")),
            P("data"),
            "partial-sum",
            "result of dot_general",
        ),
    ],
)
def test_a_product_in_steps_is_there_for_what_a_gather_or_a_sum_would_be(
    args, specs, out, reason, producer
):
    report = sn.explain(
        jnp.matmul, *args, mesh="data=4", on="v5e:2x2", in_specs=specs, out_specs=out
    )
    assert {c.kind for c in report.collectives} == {"collective-permute"}
    assert {(c.reason, c.asked_by) for c in report.collectives} == {(reason, "inferred")}
    assert {c.producer for c in report.collectives} == {producer}
    assert "in steps with the product" in report.collectives[0].algorithm


@needs_libtpu
def test_a_product_of_an_array_with_itself_in_steps():
    report = sn.explain(
        lambda x: x @ x.T, large(32768, 8192), mesh="data=4", on="v5e:2x2", in_specs=P("data")
    )
    assert {c.reason for c in report.collectives} == {"conflict"}
