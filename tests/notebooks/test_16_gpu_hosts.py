"""One step for 8 and 64 H100 and for v5e:8x8: bytes and seconds worked out by hand.

Two weights of 4096 x 16384 in bf16, x of 512 x 512 x 4096. NVLink carries 450 GB/s one way from an
H100, and its network 50 GB/s (NVIDIA's datasheets of H100 and DGX H100).
"""

import re

import pytest

from tests.needs import needs_gpu_compiler, needs_libtpu

NOTEBOOK = "16_gpu_hosts.ipynb"
pytestmark = [needs_libtpu, needs_gpu_compiler]

WEIGHT = 4096 * 16384 * 2
MIB = 2**20


def sent(report):
    return sorted((c.kind, c.axes, c.wire_bytes) for c in report.collectives)


@pytest.mark.parametrize(("cell", "devices"), [("host", 8), ("hosts", 64)])
def test_weights_are_gathered_and_gradients_scattered(notebook, cell, devices):
    share = WEIGHT * (devices - 1) // devices
    assert sent(notebook.report(cell)) == [
        ("all-gather", ("data",), share),
        ("all-gather", ("data",), share),
        ("all-reduce", ("data",), -(-2 * 4 * (devices - 1) // devices)),
        ("reduce-scatter", ("data",), share),
        ("reduce-scatter", ("data",), share),
    ]


def test_a_gather_within_a_host_takes_its_bytes_over_nvlink(notebook):
    by_hand, in_report = map(int, re.findall(r"(\d+) us", notebook.printed("by-hand")))
    assert by_hand == round(WEIGHT * 7 / 8 / 450e9 * 1e6)
    assert 0 < in_report - by_hand < 15


def test_an_eighth_of_what_a_host_needs_crosses_for_each_gpu(notebook):
    between = 4 * WEIGHT * 7 // 8 // 8
    within = 4 * WEIGHT * 63 // 64 - between
    line = f"data: {within / MIB:.0f} MiB within hosts, {between / MIB:.0f} MiB between them\n"
    assert notebook.printed("crossing") == line


def test_the_comparison_leads_with_what_the_compilers_do_differently(notebook):
    words = " ".join(notebook.shown("compared").split())
    assert words.startswith(
        "h100:8x8 | v5e:8x8: each device sends 504 MiB on h100:8x8, 756 MiB on v5e:8x8 per run; the "
        "largest difference is for gradient of params["
    )
    assert "1 x reduce-scatter bf16, 126 MiB on h100:8x8" in words
    assert "1 x all-reduce bf16, 252 MiB on v5e:8x8" in words


def test_the_table_says_what_the_text_says_of_it(notebook):
    rows = {line.split()[0]: line for line in notebook.printed("table").splitlines()[1:]}
    assert list(rows) == ["h100:8", "h100:8x8", "v5e:8x8"]
    compute = {name: float(re.findall(r"([\d.]+) ms", row)[0]) for name, row in rows.items()}
    send = {name: float(re.findall(r"([\d.]+) ms", row)[-1]) for name, row in rows.items()}
    # Two products forward and three backward, at 989 and 197 TFLOP/s.
    products = 5 * 2 * 512 * 512 * 4096 * 16384
    assert compute["h100:8"] == pytest.approx(products / 8 / 989e12 * 1e3, rel=0.02)
    assert compute["v5e:8x8"] == pytest.approx(products / 64 / 197e12 * 1e3, rel=0.02)
    assert compute["h100:8"] / compute["h100:8x8"] == pytest.approx(8, rel=0.02)
    assert send["h100:8x8"] / send["h100:8"] == pytest.approx(4 / 3, rel=0.05)
    assert send["h100:8"] / compute["h100:8"] == pytest.approx(1 / 20, rel=0.05)
    assert send["h100:8x8"] / compute["h100:8x8"] == pytest.approx(1 / 2, rel=0.1)


def test_a_slower_network_takes_longer(notebook):
    quick, slow = map(float, re.findall(r"([\d.]+) ms", notebook.printed("hardware")))
    between = 4 * WEIGHT * 7 / 8 / 8
    assert slow - quick == pytest.approx((between / 12.5e9 - between / 50e9) * 1e3, rel=0.02)


def test_the_exercise_is_answered_by_its_check(notebook):
    shard = WEIGHT // 8
    over_hosts = [c for c in notebook.report("exercise-check").collectives if c.axes == ("hosts",)]
    assert [(c.kind, c.wire_bytes) for c in over_hosts] == [("all-reduce", 2 * shard * 7 // 8)] * 2
    assert notebook.printed("exercise-crossing").startswith(
        "56 MiB leave a host for each GPU, 2.46"
    )
