"""Dumps of torch_xla 2.9.0 itself: what eight CPU devices compiled, as it printed it.

`forward`, `step` and `manual` are `_get_xla_tensors_hlo` with `XLA_DUMP_POST_OPTIMIZATIONS=1`,
`not_partitioned` is the same without it. A batch of 8 x 16 is sharded over `data`, the weights of
two layers (32 x 16 and 16 x 32) over `model`, on a mesh of 4 x 2.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import shardnb as sn
from shardnb.torch import SpmdMesh

DUMPS = Path(__file__).parent / "dumps"
MESH = "data=4,model=2"


def report(name, mesh=MESH):
    return sn.explain_hlo((DUMPS / f"{name}.hlo").read_text(), mesh=mesh)


def test_the_forward_pass_sums_over_model():
    """2 x 16 floats per device in a ring of two: each sends half of them twice."""
    (sent,) = report("forward").collectives
    assert (sent.kind, sent.axes, sent.shape) == ("all-reduce", ("model",), (2, 16))
    assert sent.groups == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert sent.wire_bytes == 128
    assert sent.generated is True  # it has the name of a matrix product
    assert sent.module == ""


def test_the_inputs_have_the_specs_of_their_marks():
    specs = {(v.shape, v.shard_shape): v.spec for v in report("not_partitioned").inputs}
    assert specs[(32, 16), (16, 16)] == (("model",), ())
    assert specs[(8, 16), (2, 16)] == (("data",), ())
    assert specs[(16,), (16,)] == ((),)


def test_the_sharding_strings_are_those_of_the_mesh():
    text = (DUMPS / "not_partitioned.hlo").read_text()
    mesh = SpmdMesh(range(8), (4, 2), ("data", "model"))
    for spec in (("model", None), ("data", None)):
        assert f"sharding={mesh.sharding(spec).hlo}" in text


def test_a_program_that_is_not_partitioned_says_so():
    assert report("not_partitioned").partitioned is False


def test_a_training_step_adds_up_the_gradients_over_data():
    sent = report("step").collectives
    assert [c.kind for c in sent] == ["all-reduce"] * 6
    over = {c.shape: c.axes for c in sent}
    assert over == {(2, 16): ("model",), (): ("data",), (16,): ("data",), (16, 16): ("data",)}
    # The line of the loss is the user's; PyTorch/XLA gives none in the backward pass.
    lines = {(c.frames[0].line if c.frames else None, c.op_name) for c in sent if c.shape == ()}
    assert lines == {(22, "aten__mean")}
    assert all(c.generated for c in sent)


def test_without_a_mesh_the_groups_speak():
    (sent,) = report("forward", None).collectives
    assert (sent.axes, sent.groups) == (None, ((0, 1), (2, 3), (4, 5), (6, 7)))


def test_a_call_of_a_collective_is_the_users():
    (sent,) = report("manual", "x=8").collectives
    assert (sent.kind, sent.axes, sent.generated) == ("all-gather", ("x",), False)
    assert sent.role == "called"


@pytest.mark.parametrize("groups", ["{}", "{{0,1,2,3,4,5,6,7}}"])
def test_a_cross_replica_sum_of_another_process_is_called(groups):
    text = f"""HloModule SyncTensorsGraph.9, is_scheduled=true

%Add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add = f32[] add(f32[] %x, f32[] %y)
}}

ENTRY %SyncTensorsGraph.9 (p0: f32[1024]) -> f32[1024] {{
  %p0 = f32[1024]{{0}} parameter(0)
  ROOT %sum = f32[1024]{{0}} all-reduce(f32[1024]{{0}} %p0), replica_groups={groups}, constrain_layout=true, to_apply=%Add, metadata={{op_type="xla__cross_replica_sum" op_name="xla__cross_replica_sum" source_file="/home/user/model.py" source_line=484}}
}}
"""
    (sent,) = sn.explain_hlo(text, mesh="data=8").collectives
    assert (sent.axes, sent.generated, sent.frames[0].line) == (("data",), False, 484)
    # Seven eighths of 4 KiB, twice.
    assert sent.wire_bytes == 2 * 7 * 4096 // 8


def test_the_command_reads_a_dump():
    command = [sys.executable, "-m", "shardnb.cli", "read", str(DUMPS / "forward.hlo")]
    done = subprocess.run([*command, "--mesh", MESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all-reduce[model]" in done.stdout
    assert "line 134 of linear.py" in done.stdout
