"""Dumps as they come: old and new notations, each backend, with and without what XLA may omit.

The texts are written by hand from the grammar of HLO; every expected figure is worked out by hand.
"""

from __future__ import annotations

import pytest

import shardnb as sn
from shardnb.texts import hlo
from shardnb.texts.instruction import HloValue

PAIRS = "replica_groups={{0,1},{2,3},{4,5},{6,7}}"


def module(*lines: str, head: str = "HloModule m, num_partitions=8", before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{head}\n\n{before}\nENTRY %main {{\n{body}\n}}\n"


def only(text: str, mesh: str | None = "data=4,model=2"):
    (found,) = sn.explain_hlo(text, mesh=mesh).collectives
    return found


# Old notations


OLD = module(
    "x = f32[32,128]{1,0} parameter(0)",
    "ROOT g = f32[128,128]{1,0} all-gather(f32[32,128]{1,0} x), "
    "replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}, "
    'metadata={op_type="dot" op_name="f/dot" source_file="train.py" source_line=12}',
    head="HloModule old",
)


def test_types_before_operands_and_no_percent_signs():
    found = only(OLD)
    # 4 devices gather 128 x 128 floats of 4 bytes: each sends three quarters of 64 KiB.
    assert (found.kind, found.axes, found.bytes, found.wire_bytes) == (
        "all-gather",
        ("data",),
        65536,
        49152,
    )


def test_the_line_stands_in_the_metadata():
    report = sn.explain_hlo(OLD)
    assert (report.sources[0].name, report.collectives[0].line) == ("train.py", 12)


def test_operands_with_percent_signs_and_types():
    text = OLD.replace("} x)", "} %x)").replace("x = ", "%x = ").replace("g = ", "%g = ")
    parsed = hlo.parse(text)
    assert parsed.body("main")[1].operands == (HloValue("x"),)


def test_operands_of_tuple_type_and_comments_between_them():
    text = module(
        "p = (s32[], f32[8]{0}) parameter(0)",
        "q = f32[8]{0} parameter(1)",
        "ROOT t = ((s32[], f32[8]{0}), /*index=1*/f32[8]{0}) tuple((s32[], f32[8]{0}) p, /*index=1*/q)",
    )
    assert hlo.parse(text).body("main")[2].operands == (HloValue("p"), HloValue("q"))


def test_what_a_log_writes_before_the_module_is_passed_over():
    assert only("I0101 12:00:00.000000 hlo_module:\n\n" + OLD).kind == "all-gather"


def test_windows_line_ends():
    assert only(OLD.replace("\n", "\r\n")).kind == "all-gather"


def test_a_program_for_replicas_has_that_many_devices():
    text = OLD.replace("HloModule old", "HloModule old, replica_count=16").replace(
        "replica_groups={{0,2,4,6},{1,3,5,7}}", "replica_groups={}"
    )
    report = sn.explain_hlo(text)
    assert (report.mesh.size, report.collectives[0].groups) == (16, (tuple(range(16)),))


# Asynchronous pairs


WRAPPED = """%wrapped (q: f32[8,4]) -> f32[2,4] {{
  %q = f32[8,4]{{1,0}} parameter(0)
  ROOT %inner = f32[2,4]{{1,0}} reduce-scatter(f32[8,4]{{1,0}} %q), channel_id=1, {groups}, dimensions={{0}}, to_apply=%add
}}
"""
FOURS = "replica_groups=[2,4]<=[4,2]T(1,0)"


def scheduled(*lines: str, before: str = "") -> str:
    return module(*lines, head="HloModule m, is_scheduled=true, num_partitions=8", before=before)


def test_async_start_around_a_reduce_scatter():
    text = scheduled(
        "%p = f32[8,4]{1,0} parameter(0)",
        "%s = ((f32[8,4]{1,0}), f32[2,4]{1,0}, u32[]) async-start(%p), calls=%wrapped",
        "%a = f32[8,4]{1,0} add(%p, %p)",
        "%u = ((f32[8,4]{1,0}), f32[2,4]{1,0}, u32[]) async-update(%s), calls=%wrapped",
        '%d = f32[8,4]{1,0} dot(%a, %a), metadata={op_name="jit(f)/dot_general"}',
        "ROOT %e = f32[2,4]{1,0} async-done(%u), calls=%wrapped",
        before=WRAPPED.format(groups=FOURS),
    )
    found = only(text)
    # A device keeps 2 x 4 floats, and sends that to each of the 3 others.
    assert (found.kind, found.shape, found.wire_bytes, found.axes, found.trips) == (
        "reduce-scatter",
        (2, 4),
        96,
        ("data",),
        1,
    )
    assert (found.overlap.ops, found.overlap.names) == (2, ("add", "dot_general"))


@pytest.mark.parametrize(
    ("start", "kind", "shape"),
    [
        ("(f32[4]{0}, f32[8]{0}) all-gather-start(%p)", "all-gather", (8,)),
        ("((f32[4]{0}), f32[8]{0}) all-gather-start(f32[4]{0} %p)", "all-gather", (8,)),
        ("f32[4]{0} all-reduce-start(%p)", "all-reduce", (4,)),
        ("((f32[4]{0}), f32[2]{0}, s32[]) reduce-scatter-start(%p)", "reduce-scatter", (2,)),
        ("((f32[4]{0}), f32[4]{0}) all-to-all-start(%p)", "all-to-all", (4,)),
    ],
)
def test_pairs_that_xla_writes_short(start, kind, shape):
    text = scheduled(
        "%p = f32[4]{0} parameter(0)",
        f"%s = {start}, channel_id=3, {PAIRS}, dimensions={{0}}",
        f"ROOT %e = f32{list(shape)} {kind}-done(%s)".replace(" ", " "),
    )
    found = only(text)
    assert (found.kind, found.shape, found.axes, found.overlap.ops) == (kind, shape, ("model",), 0)


def test_work_before_the_start_and_after_the_done_is_not_beside_it():
    text = scheduled(
        "%p = f32[4]{0} parameter(0)",
        "%b = f32[4]{0} negate(%p)",
        f"%s = f32[4]{{0}} all-reduce-start(%b), channel_id=3, {PAIRS}, to_apply=%add",
        "%c = f32[4]{0} cosine(%p)",
        "%e = f32[4]{0} all-reduce-done(%s)",
        "ROOT %f = f32[4]{0} add(%c, %e)",
    )
    assert only(text).overlap.names == ("cosine",)


def test_without_a_schedule_the_order_says_nothing():
    text = module(
        "%p = f32[4]{0} parameter(0)",
        f"%s = f32[4]{{0}} all-reduce-start(%p), channel_id=3, {PAIRS}, to_apply=%add",
        "%c = f32[4]{0} cosine(%p)",
        "ROOT %e = f32[4]{0} all-reduce-done(%s)",
    )
    report = sn.explain_hlo(text, mesh="data=4,model=2")
    assert report.collectives[0].overlap is None
    assert any("no schedule" in note for note in report.notes)


# GPU


@pytest.mark.parametrize(
    ("config", "asynchronous"),
    [
        ('{"collective_backend_config":{"is_sync":true,"no_parallel_custom_call":false}}', False),
        ('{"collective_backend_config":{"is_sync":false,"no_parallel_custom_call":false}}', True),
        ('{"is_sync":true,"no_parallel_custom_call":false}', False),
        (r'"{\"is_sync\":true,\"no_parallel_custom_call\":false}"', False),
        ('{"operation_queue_id":"0","wait_on_operation_queues":[]}', True),
    ],
)
def test_gpu_says_which_pairs_are_not_asynchronous(config, asynchronous):
    text = scheduled(
        "%p = f32[4]{0} parameter(0)",
        f"%s = f32[4]{{0}} all-reduce-start(%p), channel_id=1, {PAIRS}, use_global_device_ids=true, to_apply=%add, backend_config={config}",
        "ROOT %e = f32[4]{0} all-reduce-done(%s)",
    )
    assert (only(text).overlap is not None) == asynchronous


LOOP = f"""%cond (c: (s32[], f32[8])) -> pred[] {{
  %c = (s32[], f32[8]{{0}}) parameter(0)
  ROOT %l = pred[] constant(true)
}}

%body (b: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %b = (s32[], f32[8]{{0}}) parameter(0)
  %x = f32[8]{{0}} get-tuple-element(%b), index=1
  %g = f32[8]{{0}} all-reduce(%x), channel_id=2, {PAIRS}, to_apply=%add
  ROOT %t = (s32[], f32[8]{{0}}) tuple(%b, %g)
}}
"""


@pytest.mark.parametrize(
    "config",
    [
        '{"known_trip_count":{"n":"12"}}',
        r'"{\"known_trip_count\":{\"n\":\"12\"}}"',
        '{"known_init_step":{"init":"0","step":"1"},"known_trip_count":{"n":"12"}}',
    ],
)
def test_trip_counts_in_old_and_new_configs(config):
    text = module(
        "%p = (s32[], f32[8]{0}) parameter(0)",
        f"ROOT %w = (s32[], f32[8]{{0}}) while((s32[], f32[8]{{0}}) %p), condition=%cond, body=%body, backend_config={config}",
        before=LOOP,
    )
    assert only(text).trips == 12


# Layouts


@pytest.mark.parametrize(
    "layout", ["", "{1,0}", "{1,0:T(8,128)}", "{0,1:T(8,128)(2,1)S(1)}", "{1,0:S(5)}", "{1,0:E(4)}"]
)
def test_layouts_tiles_and_memory_spaces_do_not_count(layout):
    text = module(
        f"%p = bf16[8,128]{layout} parameter(0)",
        f"ROOT %r = bf16[8,128]{layout} all-reduce(bf16[8,128]{layout} %p), channel_id=1, {PAIRS}, to_apply=%add",
    )
    # Two devices: an all-reduce sends its array of 2 KiB once.
    assert (only(text).bytes, only(text).wire_bytes) == (2048, 2048)


# Meshes


def test_without_a_mesh_the_groups_speak():
    report = sn.explain_hlo(OLD)
    assert (report.mesh.axes, report.mesh.size, report.collectives[0].axes) == ((), 8, None)
    assert "all-gather[2 groups of 4]" in str(report)


def test_axes_that_the_text_itself_names_are_taken():
    text = module(
        "%p = f32[4]{0} parameter(0)",
        "ROOT %r = f32[4]{0} all-reduce(%p), channel_id=1, "
        "replica_groups=mesh['data'=4,'model'=2] {'model'}, to_apply=%add",
    )
    report = sn.explain_hlo(text)
    assert (report.mesh.shape, report.collectives[0].axes) == ({"data": 4, "model": 2}, ("model",))


def test_axes_without_names_of_their_own_are_not():
    text = module(
        "%p = f32[4]{0} parameter(0)",
        "ROOT %r = f32[4]{0} all-reduce(%p), channel_id=1, "
        "replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, to_apply=%add",
    )
    assert sn.explain_hlo(text).mesh.axes == ()


def test_a_mesh_of_another_size_is_refused():
    text = module("ROOT %p = f32[4]{0} parameter(0)")
    with pytest.raises(ValueError, match=r"m is for 8 devices, and the mesh has 4: data=4"):
        sn.explain_hlo(text, mesh="data=4")


# Before partitioning


BEFORE = module(
    '%x = f32[256,512]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}, metadata={op_name="x"}',
    "%w = f32[512,64]{1,0} parameter(1), "
    "sharding={devices=[1,1,8]0,1,2,3,4,5,6,7 last_tile_dim_replicate}, "
    "metadata={op_name=\"params['w']\"}",
    "%y = f32[256,64]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    '%s = f32[256,64]{1,0} custom-call(%y), custom_call_target="Sharding", '
    "sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}",
    "ROOT %t = (f32[256,64]{1,0}) tuple(%s), sharding={{devices=[4,1,2]<=[8] last_tile_dim_replicate}}",
)


def test_before_partitioning_what_is_stated_is_all_there_is():
    report = sn.explain_hlo(BEFORE, mesh="data=4,model=2")
    assert report.collectives == ()
    assert any("not partitioned yet" in note for note in report.notes)
    x, w = report.inputs
    assert (x.name, x.shape, x.shard_shape, x.spec) == (
        "x",
        (256, 512),
        (64, 256),
        (("data",), ("model",)),
    )
    assert (w.name, w.spec) == ("params['w']", ((), ()))
    assert [(v.name, v.spec) for v in report.values] == [("s", (("data",), ()))]
    assert [(v.name, v.spec) for v in report.outputs] == [("result[0]", (("data",), ()))]


def test_after_partitioning_an_input_has_its_whole_shape_again():
    text = module(
        '%p = f32[64,256]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}, metadata={op_name="x"}',
        f"ROOT %r = f32[64,256]{{1,0}} all-reduce(%p), channel_id=1, {PAIRS}, to_apply=%add",
    )
    (x,) = sn.explain_hlo(text, mesh="data=4,model=2").inputs
    assert (x.shape, x.shard_shape) == ((256, 512), (64, 256))


def test_what_lies_on_one_device_is_not_said_to_be_whole_on_each():
    text = BEFORE.replace("sharding={devices=[4,2]<=[8]}", "sharding={maximal device=3}")
    assert [v.name for v in sn.explain_hlo(text, mesh="data=4,model=2").inputs] == ["params['w']"]


# Who made it


@pytest.mark.parametrize(
    ("attributes", "made"),
    [
        ('metadata={op_name="jit(f)/shard_map/psum_invariant"}', False),
        ('metadata={op_name="jit(f)/dot_general"}', True),
        ('frontend_attributes={is_spmd_generated="true"}', True),
        ('metadata={op_name="dense_layer/MatMul"}', None),
        ("use_global_device_ids=true", None),
    ],
)
def test_who_made_a_collective_as_far_as_the_text_tells(attributes, made):
    text = module(
        "%p = f32[4]{0} parameter(0)",
        f"ROOT %r = f32[4]{{0}} all-reduce(%p), channel_id=1, {PAIRS}, to_apply=%add, {attributes}",
    )
    assert only(text).generated is made


# Texts that are not dumps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_such_file.txt", "there is no such file, and it is not the text"),
        ("HloModule", "expected an HLO module"),
        (OLD[:-20], "truncated"),
        ("module @jit_f {\n}\n", "no main function"),
    ],
)
def test_what_is_no_dump_is_refused(text, message):
    with pytest.raises(sn.InvalidInput, match=message):
        sn.explain_hlo(text)


def test_a_dump_in_a_file(tmp_path):
    path = tmp_path / "dump.txt"
    path.write_text(OLD)
    assert sn.explain_hlo(path).collectives == sn.explain_hlo(str(path)).collectives


def test_a_binary_dump_is_refused_with_what_to_say(tmp_path):
    path = tmp_path / "dump.pb"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="xla_dump_hlo_as_text"):
        sn.explain_hlo(path)


def test_a_report_of_a_dump_is_a_report():
    report = sn.explain_hlo(BEFORE, mesh="data=4,model=2")
    assert sn.Report.from_json(report.to_json()) == report
    assert report._repr_mimebundle_()
