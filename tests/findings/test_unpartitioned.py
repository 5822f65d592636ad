"""A program that is not partitioned yet: its collectives are not known, and nobody says they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.cli import main
from shardnb.mesh import make_grid

MESH = make_grid("data=4,model=2").mesh


def shape(dims, *spec):
    return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


@pytest.fixture(scope="module")
def lowered():
    args = shape((128, 512), "model", "data"), shape((512, 64))
    return jax.jit(lambda x, w: jnp.tanh(x @ w)).lower(*args)


@pytest.fixture(params=["stablehlo", "hlo"])
def text(request, lowered):
    return lowered.as_text(request.param)


def test_its_mesh_and_shardings_are_read_and_its_collectives_not_known(text):
    report = sn.explain_hlo(text)
    assert report.mesh.shape == {"data": 4, "model": 2}
    assert [value.spec for value in report.inputs] == [(("model",), ("data",)), ((), ())]
    assert [value.shard_shape for value in report.inputs] == [(64, 128), (512, 64)]
    assert not report.partitioned
    assert "No communication" not in str(report)
    assert "Communication is not known: the program is not partitioned yet" in str(report)
    assert sn.Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("word", ["inferred", "all-gather"])
def test_a_guard_fails(text, word, tmp_path, capsys):
    file = tmp_path / "step.txt"
    file.write_text(text)
    assert main(["read", str(file), "--forbid", word]) == 4
    assert "are unknown: it is not partitioned yet" in capsys.readouterr().err
    assert main(["read", str(file)]) == 0


def test_a_program_for_one_device_has_none(capsys):
    text = jax.jit(lambda x: x * 2).lower(jnp.ones(4)).as_text("hlo")
    report = sn.explain_hlo(text)
    assert report.partitioned
    assert "No communication" in str(report)


def test_another_mesh_than_the_texts_is_refused(lowered):
    with pytest.raises(ValueError, match="the text is for the mesh"):
        sn.explain_hlo(lowered.as_text(), mesh="data=8")


def test_stablehlo_without_shardings_has_no_mesh():
    report = sn.explain_hlo(jax.jit(lambda x: x * 2).lower(jnp.ones(4)).as_text())
    assert (report.mesh.axes, report.inputs, report.complete) == ((), (), False)
    assert report.partitioned  # it is for one device, as JAX states


def test_stablehlo_for_several_devices_without_shardings_is_not_partitioned():
    text = jax.jit(lambda x: x * 2).lower(jnp.ones(4)).as_text()
    several = text.replace("mhlo.num_partitions = 1", "mhlo.num_partitions = 8")
    assert not sn.explain_hlo(several).partitioned


def test_stablehlo_that_cannot_be_read_is_an_error():
    with pytest.raises(ValueError, match="cannot read the module"):
        sn.explain_hlo("module @jit_f {\n  func.func public @main( {\n}\n")


def test_a_text_is_not_a_function(lowered):
    with pytest.raises(TypeError, match=r"sn.explain_hlo reads HLO text"):
        sn.explain(lowered.as_text())


OVER_ALL = """HloModule sync, input_output_alias={ {0}: (0, {}, must-alias) }

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add = f32[] add(f32[] %x, f32[] %y)
}

ENTRY %main (p0: f32[1024]) -> f32[1024] {
  %p0 = f32[1024]{0} parameter(0)
  ROOT %sum = f32[1024]{0} all-reduce(f32[1024]{0} %p0), replica_groups={}, to_apply=%add
}
"""


def test_collectives_over_an_unknown_number_of_devices_need_a_mesh():
    with pytest.raises(ValueError, match="does not say how many there are: give a mesh"):
        sn.explain_hlo(OVER_ALL)
    (sent,) = sn.explain_hlo(OVER_ALL, mesh="data=8").collectives
    assert (sent.axes, sent.wire_bytes) == (("data",), 2 * 4096 * 7 // 8)


def test_a_count_of_replicas_says_how_many_devices_there_are():
    text = OVER_ALL.replace("HloModule sync,", "HloModule sync, replica_count=4,")
    (sent,) = sn.explain_hlo(text).collectives
    assert sent.groups == ((0, 1, 2, 3),)
