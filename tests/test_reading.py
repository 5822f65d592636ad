"""Folders that XLA dumped to: what a compile elsewhere left tells as much as a compile here."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid
from tests.needs import needs_libtpu

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


# The programs of a folder


def sums(x):
    """Many instructions with a product at the end."""
    for _ in range(12):
        x = jnp.sin(x) * jnp.cumsum(x, axis=1)[:, ::-1]
    return x @ x.T


def dump_of(folder, function, shape, *spec, mesh="data=4,model=2"):
    devices = make_grid(mesh).mesh
    arg = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(devices, P(*spec)))
    dumped = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}
    passes = {"xla_dump_hlo_pass_re": "spmd|shardy"}
    jax.jit(function).lower(arg).compile(compiler_options={**dumped, **passes})


def total(x):
    return x.sum()


def doubled(x):
    return 2 * x


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run: a large program twice, a small one, and one that sends nothing."""
    path = tmp_path_factory.mktemp("run")
    dump_of(path, sums, (16, 16), None, "model")
    for file in list(path.glob("*.txt")):  # as another process dumps the same program
        shutil.copyfile(file, path / f"1796117047110999.{file.name}")
    dump_of(path, total, (64,), "data")
    dump_of(path, doubled, (64,), "data")
    return path


def test_a_small_program_is_a_line(run):
    programs = sn.explain_dumps(run)
    assert [(each.report.title, each.compiles) for each in programs.explained] == [("jit_sums", 2)]
    assert [each.report.title for each in programs.small] == ["jit_total"]
    assert programs.silent == ("jit_doubled",)
    text = str(programs)
    assert "Program jit_sums (module_" in text
    assert "compiled 2 times)" in text
    # One number in each of 4 devices: a ring sends it 2 * 3/4 times, 4 bytes each time.
    assert "Also compiled: jit_total, 1 all-reduce. Each device sends 6 B per run." in text
    assert "Also compiled, without collectives: jit_doubled." in text


def test_the_causes_and_the_mesh_are_in_the_folder(run):
    (report,) = sn.explain_dumps(run).reports
    assert report.mesh.shape == {"data": 4, "model": 2}
    assert report.mesh.platform == "cpu"
    # XLA's partitioner gathers what is accumulated along its sharded dimension, the reversal takes
    # blocks of other devices, and the product sums over the sharded dimension.
    assert Counter((c.kind, c.reason) for c in report.collectives) == {
        ("all-gather", "whole-axis"): 12,
        ("collective-permute", "halo"): 12,
        ("all-reduce", "partial-sum"): 1,
    }
    assert {c.axes for c in report.collectives} == {("model",)}


def test_lines_are_shown_of_allowed_files_only(run, tmp_path, monkeypatch):
    def shown():
        (report,) = sn.explain_dumps(run, sources=allowed).reports
        (product,) = (c for c in report.collectives if c.kind == "all-reduce")
        return report.sources[product.frames[0].source].line(product.line)

    allowed = [Path(__file__).parent]
    assert shown() == "    return x @ x.T"
    monkeypatch.setattr("shardnb.sources.quotable._is_module", lambda path: False)
    allowed = [tmp_path]
    assert shown() == ""


def test_programs_are_chosen_by_name_and_number(run):
    named = sn.explain_dumps(run, only="dou*")
    assert [report.title for report in named.reports] == ["jit_doubled"]
    assert "No communication." in str(named)
    first = sn.explain_dumps(run, first=1)
    assert [report.title for report in first.reports] == ["jit_sums"]
    assert first.left == 2
    assert "Not read: 2 more programs." in str(first)
    with pytest.raises(sn.InvalidInput, match="named step; there are jit_sums, jit_total"):
        sn.explain_dumps(run, only="step")
    with pytest.raises(sn.InvalidInput, match="at least 1 program, got 0"):
        sn.explain_dumps(run, first=0)


def test_a_mesh_names_the_axes_of_the_programs_that_it_fits(run):
    (report,) = sn.explain_dumps(run, mesh="a=4,b=2").reports
    assert report.collectives[-1].axes == ("b",)
    with pytest.raises(sn.InvalidInput, match="none of its programs is for 4 devices"):
        sn.explain_dumps(run, mesh="a=4")


def test_one_bad_program_does_not_hide_the_others(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    broken = next((tmp_path / "copy").glob("*jit_total.cpu_after_optimizations.txt"))
    broken.write_text(broken.read_text()[:-40])
    programs = sn.explain_dumps(tmp_path / "copy")
    assert [report.title for report in programs.reports] == ["jit_sums"]
    ((name, why),) = programs.unread
    assert name.endswith("jit_total")
    assert why
    assert "jit_total cannot be read: " in " ".join(str(programs).split())


def test_what_is_not_the_folder_of_a_dump_is_refused(tmp_path):
    with pytest.raises(sn.InvalidInput, match="there is no program in it"):
        sn.explain_dumps(tmp_path)
    with pytest.raises(sn.InvalidInput, match="expected the folder"):
        sn.explain_dumps(tmp_path / "none")


@needs_libtpu
def test_a_tpus_memory_is_in_its_dump(tmp_path):
    """The compiler counts the list of its buffers, so the folder says as much as the compile."""
    mesh = make_grid("data=4,model=2", on="v5e:2x4").mesh
    options = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}
    options |= {"xla_dump_hlo_pass_re": "spmd|shardy"}
    jax.jit(layer).lower(*shapes(mesh)).compile(compiler_options=options)
    (report,) = sn.explain_dumps(tmp_path).reports
    explained = sn.explain(layer, *shapes(mesh), mesh=mesh)
    assert replace(report.memory, peak=None, code=explained.memory.code) == replace(
        explained.memory, peak=None
    )
    assert report.memory.peak.held[0].name == explained.memory.peak.held[0].name
    assert report.mesh.platform == "tpu"
    assert [(c.kind, c.axes, c.reason) for c in report.collectives] == [
        ("all-reduce", ("model",), "partial-sum")
    ]
