"""One training step for CPU, v5e:16x16 and v5p:8x8x8: bytes and seconds worked out by hand.

Two weights of 4096 x 16384, x of 1024 x 2048 x 4096, all bf16. What a link carries one way is
45 GB/s on v5e and 90 GB/s on v5p ("How to Scale Your Model", chapter 2); a chip of a ring has two.
"""

import re

import pytest

from tests.needs import needs_libtpu

NOTEBOOK = "10_tpu_pod.ipynb"
pytestmark = needs_libtpu

BATCH, SEQUENCE, WIDTH, INNER = 1024, 2048, 4096, 16384
BF16, F32 = 2, 4


def activations(data, itemsize):
    """Bytes of the activations on one device of `data` that split the batch."""
    return BATCH // data * SEQUENCE * WIDTH * itemsize


def summed(report):
    """The all-reduce over model."""
    (found,) = [c for c in report.collectives if (c.kind, c.axes) == ("all-reduce", ("model",))]
    return found


@pytest.mark.parametrize(
    ("cell", "platform", "devices"), [("cpu", "cpu", 256), ("v5e", "tpu", 256), ("v5p", "tpu", 512)]
)
def test_each_program_is_compiled_for_its_devices(notebook, cell, platform, devices):
    mesh = notebook.report(cell).mesh
    assert (mesh.platform, mesh.size) == (platform, devices)


def test_on_cpu_the_step_is_what_the_text_predicts(notebook):
    found = sorted((c.kind, c.axes) for c in notebook.report("cpu").collectives)
    assert found == [
        ("all-gather", ("data",)),
        ("all-gather", ("data",)),
        ("all-reduce", ("data",)),
        ("all-reduce", ("data",)),
        ("all-reduce", ("data",)),
        ("all-reduce", ("model",)),
    ]


@pytest.mark.parametrize(
    ("cell", "data", "model", "dtype", "itemsize"),
    [("cpu", 16, 16, "f32", F32), ("v5e", 16, 16, "bf16", BF16), ("v5p", 64, 8, "bf16", BF16)],
)
def test_activations_are_summed_over_model(notebook, cell, data, model, dtype, itemsize):
    found = summed(notebook.report(cell))
    assert found.dtype == dtype
    assert found.bytes == activations(data, itemsize)
    assert found.wire_bytes == 2 * activations(data, itemsize) * (model - 1) // model


def test_the_seconds_of_that_sum_are_by_the_ring(notebook):
    v5e = 2 * activations(16, BF16) * 15 / 16 / (2 * 45e9)
    v5p = 2 * activations(64, BF16) * 7 / 8 / (2 * 90e9)
    assert summed(notebook.report("v5e")).seconds == pytest.approx(v5e)
    assert summed(notebook.report("v5p")).seconds == pytest.approx(v5p)
    assert float(notebook.shown("by-hand")) == pytest.approx(v5e)
    assert float(notebook.shown("by-formula")) == pytest.approx(v5e)


@pytest.mark.parametrize(("cell", "chips", "peak"), [("v5e", 256, 197e12), ("v5p", 512, 459e12)])
def test_computing_takes_at_least_five_products_at_the_peak(notebook, cell, chips, peak):
    # Two forward, three backward: the gradient of x is not asked for.
    products = 5 * 2 * BATCH * SEQUENCE * WIDTH * INNER / chips / peak
    assert notebook.report(cell).cost.compute_seconds == pytest.approx(products, rel=0.02)


def test_v5e_moves_weights_around_in_permutes(notebook):
    kinds = [c.kind for c in notebook.report("v5e").collectives if c.axes == ("data",)]
    assert kinds.count("all-gather") == 1
    assert kinds.count("collective-permute") > 8


def test_v5p_scatters_the_gradients_that_cpu_devices_sum_whole(notebook):
    kinds = [c.kind for c in notebook.report("v5p").collectives]
    assert kinds.count("reduce-scatter") == 2
    scattered = [c for c in notebook.report("v5p").collectives if c.kind == "reduce-scatter"]
    assert {c.made_as for c in scattered} == {"all-reduce"}
    assert "reduce-scatter" not in {c.kind for c in notebook.report("cpu").collectives}


def test_on_v5p_model_is_one_dimension_of_the_torus_and_data_two(notebook):
    rings = {
        axes: said.count("ring of 8") for axes, said in notebook.report("v5p").cost.links.items()
    }
    assert rings == {"data": 2, "model": 1}


def test_the_table_says_that_v5e_sends_nearly_as_long_as_it_computes(notebook):
    rows = [line for line in notebook.printed("table").splitlines() if line.startswith("v5")]
    seconds = [[float(ms) for ms in re.findall(r"([\d.]+) ms", row)] for row in rows]
    (e_compute, _, e_send), (p_compute, _, p_send) = seconds
    assert 0.7 < e_send / e_compute < 1
    assert 0.4 < p_send / p_compute < 0.6


def test_a_program_that_does_not_fit_is_a_finding(notebook):
    (found,) = [f for f in notebook.report("too-large").findings if f.kind == "out-of-memory"]
    # A quarter of big, of its other rows, and of the result, are 8, 4 (in bf16) and 4 GiB.
    assert "15.75 GiB" in found.message
    assert "8.00 GiB" in found.message
