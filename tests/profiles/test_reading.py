"""Traces that JAX takes of CPU devices: programs, collectives, lines, and who asked with dumps."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb import cli
from shardnb.mesh import make_grid


def layer(x, w):
    with jax.named_scope("mixer"):
        h = jnp.tanh(x @ w)
    return h, jnp.sum(h)


def silent(x):
    return x + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trace of three runs of a program on four devices, and the dumps of its compile."""
    folder = tmp_path_factory.mktemp("traced")
    mesh = make_grid("data=2,model=2").mesh
    options = {
        "xla_dump_to": str(folder / "dumps"),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_pass_re": "shardy|spmd-partitioning",
    }
    x, w = (
        jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, spec))
        for spec in (P("data", "model"), P("model"))
    )
    with jax.set_mesh(mesh):
        program = jax.jit(layer).lower(x, w).compile(options)
        other = jax.jit(silent).lower(x).compile()
    with jax.profiler.trace(folder / "trace"):
        for _ in range(3):
            jax.block_until_ready(program(x, w))
        jax.block_until_ready(other(x))
    return folder


def only_report(*arguments, **options):
    (report,) = sn.read_profile(*arguments, **options).reports
    return report


def test_a_trace_alone_has_collectives_axes_lines_and_module_paths(folder):
    report = only_report(folder / "trace", "data=2,model=2", sources=[__file__])
    assert report.title == "jit_layer"
    summed = next(c for c in report.collectives if c.axes == ("model",))
    assert (summed.kind, summed.shape) == ("all-reduce", (8, 16))
    line = Path(__file__).read_text().splitlines().index("        h = jnp.tanh(x @ w)") + 1
    assert {frame.line for frame in summed.frames} >= {line}
    assert summed.module == "mixer"
    assert "h = jnp.tanh(x @ w)" in str(report)
    # A text alone does not say who asked.
    assert summed.asked_by is None


def test_each_collective_of_a_trace_is_measured(folder):
    report = only_report(folder / "trace")
    assert (report.profile.runs, report.profile.devices) == (3, 4)
    assert report.profile.unmeasured == 0
    assert all(c.measured.seconds > 0 for c in report.collectives)
    assert "these times say nothing about GPUs or TPUs" in " ".join(str(report).split())


def test_programs_without_collectives_are_named(folder):
    assert "jit_silent" in sn.read_profile(folder / "trace").silent


def test_the_file_of_a_trace_is_read_as_its_folder_is(folder):
    (file,) = (folder / "trace").rglob("*.xplane.pb")
    assert only_report(file).profile == only_report(folder / "trace").profile


def test_with_dumps_beside_it_a_trace_says_who_asked_and_why(folder):
    report = only_report(folder / "trace", "data=2,model=2", dumps=folder / "dumps")
    summed = next(c for c in report.collectives if c.axes == ("model",))
    assert (summed.asked_by, summed.reason) == ("inferred", "partial-sum")
    assert summed.measured.seconds > 0


def test_dumps_in_the_folder_of_the_trace_are_taken(folder):
    report = only_report(folder, "data=2,model=2")
    assert {c.reason for c in report.collectives} == {"partial-sum"}


def test_dumps_of_another_program_are_not_taken(folder, tmp_path):
    """It has the same name, and other instructions."""
    options = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}

    def layer(x):
        return x * 2

    jax.jit(layer).lower(jnp.ones(4)).compile(options)
    report = only_report(folder / "trace", "data=2,model=2", dumps=tmp_path)
    assert {c.asked_by for c in report.collectives} == {None}


# The command line


def test_the_command_reads_a_trace(folder, capsys):
    assert cli.main(["read", str(folder / "trace"), "--mesh", "data=2,model=2"]) == 0
    text = capsys.readouterr().out
    assert "all-reduce[model]" in text
    assert "measured" in text


def test_the_command_gives_measurements_as_json(folder, capsys):
    assert cli.main(["read", str(folder / "trace"), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["profile"]["runs"] == 3
    assert all(c["measured"]["seconds"] > 0 for c in report["collectives"])


def test_the_command_takes_dumps_beside_a_trace(folder, capsys):
    trace, dumps = str(folder / "trace"), str(folder / "dumps")
    assert cli.main(["read", trace, "--mesh", "data=2,model=2", "--dumps", dumps]) == 0
    assert "completes a partial sum" in capsys.readouterr().out


def test_dumps_belong_to_a_trace(folder, capsys):
    assert cli.main(["read", str(folder / "dumps"), "--dumps", str(folder)]) == 2
    assert "--dumps belongs to a profiler's trace" in capsys.readouterr().err


def test_a_damaged_trace_is_an_error_of_one_line(folder, tmp_path, capsys):
    (file,) = (folder / "trace").rglob("*.xplane.pb")
    copy = Path(shutil.copy(file, tmp_path))
    copy.write_bytes(copy.read_bytes()[:-100])
    assert cli.main(["read", str(copy)]) == 2
    error = capsys.readouterr().err
    assert f"{copy}: it is cut off" in error
    assert error.count("\n") == 1


def test_a_page_has_the_measured_time(folder, tmp_path):
    page = tmp_path / "page.html"
    assert cli.main(["read", str(folder / "trace"), "--html", str(page)]) == 0
    assert "measured" in page.read_text()
    assert "A run takes" in page.read_text()
