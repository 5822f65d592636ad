"""What is alive when most of a device's memory is in use: sizes by hand, names of the user's."""

from __future__ import annotations

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.findings.held_values import Makers
from shardnb.mesh import make_grid
from shardnb.report import Report
from shardnb.texts import hlo
from shardnb.texts.instruction import HloValue
from shardnb.views import html
from tests.needs import needs_gpu_compiler, needs_libtpu

MIB = 1 << 20
FLOAT = jnp.float32


def shaped(*shape):
    return jax.ShapeDtypeStruct(shape, FLOAT)


def wide(x, w):
    h = x @ w
    return jnp.sort(h, axis=1).sum(1)


def loss(params, x):
    h = jnp.tanh(x @ params["w"])

    def layer(h, w):
        return jnp.tanh(h @ w), None

    h, _ = lax.scan(layer, h, params["layers"])
    return (h**2).mean()


def step(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def rows(report: Report) -> dict[str, int]:
    return {held.name: held.bytes for held in report.memory.peak.held}


def line_of(report: Report, text: str) -> int:
    source = next(s for s in report.sources if text in s.text)
    before = source.text.partition(text)[0]
    return source.first_line + before.count("\n")


def assert_adds_up(report: Report) -> None:
    memory = report.memory
    peak = memory.peak
    assert sum(h.bytes for h in peak.held) + peak.others + peak.unused == memory.total
    assert [h.bytes for h in peak.held] == sorted((h.bytes for h in peak.held), reverse=True)


def test_a_product_is_held_by_its_name_and_line():
    """Of 1024 x 4096 numbers over 8 devices each holds 2 MiB; sort takes another 2."""
    report = sn.explain(
        wide, shaped(1024, 256), shaped(256, 4096), mesh="data=8", in_specs=(P("data"), P())
    )
    assert_adds_up(report)
    held = rows(report)
    assert held["w"] == 4 * MIB
    assert held["x"] == MIB // 8
    assert held["h"] == 2 * MIB
    h = next(h for h in report.memory.peak.held if h.name == "h")
    assert (h.dtype, h.shape, h.use) == ("f32", (128, 4096), "temporary")
    assert h.location.line == line_of(report, "h = x @ w")


@pytest.fixture(scope="module")
def trained() -> Report:
    params = {"w": shaped(256, 512), "layers": shaped(6, 512, 512)}
    specs = {"w": P(), "layers": P()}
    return sn.explain(
        step, params, shaped(4096, 256), mesh="data=4", in_specs=(specs, P("data")),
        donate_argnums=0,
    )  # fmt: skip


def test_what_a_loop_keeps_for_the_backward_pass_is_named(trained):
    """Each of 6 layers keeps 1024 x 512 numbers on each of 4 devices: 12 MiB."""
    assert_adds_up(trained)
    kept = [h for h in trained.memory.peak.held if h.stacked and h.phase == "forward"]
    assert kept
    assert all(h.bytes == h.count * 12 * MIB and h.shape == (6, 1024, 512) for h in kept)
    carried = next(h for h in kept if h.name == "jnp.tanh(h @ w)")
    assert carried.location.line == line_of(trained, "return jnp.tanh(h @ w), None")


def test_what_jax_traced_elsewhere_is_at_its_loop(trained):
    """The factor that the derivative of tanh takes has the line of the first tanh in the stack."""
    stacked = [h for h in trained.memory.peak.held if h.stacked]
    first = line_of(trained, 'h = jnp.tanh(x @ params["w"])')
    assert stacked
    assert all(h.location.line != first for h in stacked)


def test_an_argument_that_a_result_reuses_is_held_once(trained):
    held = {h.name: h for h in trained.memory.peak.held if h.use == "argument"}
    assert held["params['layers']"].bytes == 6 * MIB
    assert held["params['layers']"].reused
    assert not held["x"].reused
    assert not [h for h in trained.memory.peak.held if h.use == "output"]


def test_results_that_reuse_nothing_are_held_beside_the_arguments():
    """The sum takes four bytes, which no reader looks for."""
    report = sn.explain(
        lambda x: {"twice": x * 2, "sum": x.sum()}, shaped(512, 512), mesh="data=4", in_specs=P()
    )
    assert_adds_up(report)
    outputs = {h.name: h.bytes for h in report.memory.peak.held if h.use == "output"}
    assert outputs == {"twice": MIB}


def test_layers_that_are_alike_are_one_row():
    """Four kernels of 64 KiB, and what is made of each: 512 x 128 numbers on a device."""

    def deep(ws, x):
        kept = [jnp.tanh(x @ w) for w in ws]
        return jnp.sort(jnp.stack(kept), axis=0)

    report = sn.explain(
        deep, [shaped(128, 128)] * 4, shaped(1024, 128), mesh="data=2", in_specs=(P(), P("data"))
    )
    assert_adds_up(report)
    kernels = next(h for h in report.memory.peak.held if h.name == "ws[*]")
    assert (kernels.count, kernels.bytes, kernels.shape) == (4, 4 * 64 << 10, (128, 128))


def test_a_report_keeps_the_peak_in_its_json(trained):
    assert sn.Report.from_json(trained.to_json()).memory == trained.memory


def test_the_text_has_the_largest_first(trained):
    said = str(trained)
    assert "Held at the peak" in said
    (total,) = re.findall(r"Memory +([\d.]+ \w+) per device", said)
    assert total in said
    first, second = re.search(r"Held at the peak.*\n +(.*)\n +(.*)", said).groups()
    assert "MiB" in first
    assert "MiB" in second


def test_what_is_alive_is_said_to_be_unknown_without_live_ranges(trained):
    unknown = replace(trained, memory=replace(trained.memory, peak=None))
    assert "What is alive at the peak is not known" in str(unknown)
    assert "What is alive at the peak is not known" in html.render(unknown)


def test_a_text_alone_does_not_say_what_is_alive():
    compiled = jax.jit(lambda x: x * 2).lower(1.0).compile()
    report = sn.explain_hlo(compiled.as_text())
    assert report.memory is None


def test_a_list_that_names_what_the_program_does_not_have_names_nothing():
    body = "(s32[], /*index=1*/(f32[4]{0}, f32[4]{0}))"
    text = f"""HloModule f, num_partitions=2

ENTRY main {{
  x = f32[4]{{0}} parameter(0)
  ROOT state = {body} custom-call(x), custom_call_target="f"
}}
"""
    makers = Makers(hlo.parse(text))
    for element in ((2,), (1, 2), (0, 0), (1, 0, 0)):
        assert makers.made(HloValue("state", element)) is None
    for element in ((0,), (1,), (1, 1)):
        assert makers.made(HloValue("state", element)).node.name == "state"
    assert makers.made(HloValue("nothing")) is None


@needs_gpu_compiler
def test_a_gpus_peak_names_what_runs_asynchronously():
    params = {"w": shaped(256, 512), "layers": shaped(6, 512, 512)}
    specs = {"w": P(), "layers": P(None, None, "model")}
    report = sn.explain(
        step, params, shaped(4096, 256), mesh="data=4,model=2", on="h100:8",
        in_specs=(specs, P("data")), donate_argnums=0,
    )  # fmt: skip
    assert_adds_up(report)
    assert rows(report)["params['layers']"] == 3 * MIB
    assert not [name for name in rows(report) if "fusion" in name]


@needs_libtpu
def test_a_tpus_memory_is_what_its_compiler_counts():
    """It refuses this program in its own words, with the sum of the arguments and temporaries."""

    def too_large(x, w):
        return jnp.sort(x @ w, axis=0)

    args = shaped(1 << 17, 8192), shaped(8192, 1 << 16)
    specs = P("data"), P(None, "model")
    mesh = "data=4,model=2"
    report = sn.explain(too_large, *args, mesh=mesh, on="v5e:2x4", in_specs=specs, origins=False)
    grid = make_grid(mesh, on="v5e:2x4").mesh
    shardings = tuple(jax.NamedSharding(grid, spec) for spec in specs)
    with pytest.raises(jax.errors.JaxRuntimeError) as refused:
        jax.jit(too_large, in_shardings=shardings).lower(*args).compile()
    needed = re.search(r"\(([\d.]+)G\) exceeds", str(refused.value))
    assert needed is not None
    assert f"{report.memory.total / (1 << 30):.2f}" == needed[1]
    assert_adds_up(report)
