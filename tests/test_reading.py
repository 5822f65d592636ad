"""Folders that XLA dumped to: what a compile elsewhere left tells as much as a compile here."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid

SPECS = {"x": P("data", "model"), "w": P("model")}


def layer(x, w):
    return jnp.tanh(x @ w)


def shapes(mesh):
    sizes = {"x": (256, 512), "w": (512, 1024)}
    return [
        jax.ShapeDtypeStruct(sizes[name], jnp.float32, sharding=NamedSharding(mesh, spec))
        for name, spec in SPECS.items()
    ]


def dump(folder, passes):
    mesh = make_grid("data=4,model=2").mesh
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}
    if passes:
        options["xla_dump_hlo_pass_re"] = passes
    jax.jit(layer).lower(*shapes(mesh)).compile(compiler_options=options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump")
    dump(path, "spmd|shardy")
    return path


@pytest.fixture(scope="module")
def here():
    args = shapes(make_grid("data=4,model=2").mesh)
    return sn.explain(layer, *args, mesh="data=4,model=2")


def test_a_folder_tells_what_a_compile_here_tells(folder, here):
    there = sn.explain_hlo(folder, mesh="data=4,model=2")
    (one,), (other,) = there.collectives, here.collectives
    for name in ("kind", "axes", "shape", "wire_bytes", "asked_by", "reason", "line"):
        assert getattr(one, name) == getattr(other, name), name
    assert [(v.name, v.spec, v.shape) for v in there.inputs] == [
        (v.name, v.spec, v.shape) for v in here.inputs
    ]
    assert [(v.spec, v.shape) for v in there.outputs] == [(v.spec, v.shape) for v in here.outputs]
    assert there.memory.arguments == here.memory.arguments
    assert there.memory.outputs == here.memory.outputs


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_module_of_shardy_that_cannot_be_read_is_left_out_of_a_report(tmp_path, stage):
    """Its text may come from a version of XLA that this jaxlib does not know."""
    dump(tmp_path, "spmd|shardy")
    (module,) = tmp_path.rglob(f"*{stage}_propagation.mlir")
    module.write_text(module.read_text().replace("sdy.mesh", "sdy.not_known_yet"))
    report = sn.explain_hlo(tmp_path, mesh="data=4,model=2")
    (note,) = (note for note in report.notes if "this jaxlib cannot read" in note)
    assert note.startswith("causes and requested shardings may be missing: ")
    assert "not_known_yet" in note
    assert [(c.kind, c.axes) for c in report.collectives] == [("all-reduce", ("model",))]


def test_a_dump_does_not_say_by_which_jax_it_was_made(folder):
    assert set(sn.explain_hlo(folder).versions) == {"shardnb"}


def test_a_folder_without_the_partitioners_passes_has_no_causes(tmp_path):
    dump(tmp_path, None)
    (found,) = sn.explain_hlo(tmp_path, mesh="data=4,model=2").collectives
    assert (found.kind, found.axes, found.reason) == ("all-reduce", ("model",), None)


def test_a_module_of_a_folder_is_named(folder):
    (path,) = folder.glob("*before_optimizations.txt")
    name = path.name.partition(".before_optimizations")[0]
    assert sn.explain_hlo(folder / name).collectives
    with pytest.raises(ValueError, match=f"the modules are {name}"):
        sn.explain_hlo(folder / "module_9999.jit_other")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="none with an optimized program"):
        sn.explain_hlo(tmp_path)


def test_a_line_of_a_dump_is_shown_with_its_file():
    text = """HloModule m, num_partitions=2

ENTRY main {
  x = f32[8]{0} parameter(0)
  ROOT s = f32[8]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=add, metadata={op_name="jit(f)/psum" source_file="/elsewhere/train.py" source_line=484}
}
"""
    assert "line 484 of train.py" in " ".join(str(sn.explain_hlo(text)).split())
