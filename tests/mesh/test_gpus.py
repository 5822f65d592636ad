"""GPU clusters: how they are written, their devices, and what does not fit."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import compilers, gpus, make_grid
from tests.needs import needs_gpu_compiler


@pytest.mark.parametrize(
    ("text", "written", "size"),
    [
        ("h100:8", "h100:8", 8),
        ("h100=8", "h100:8", 8),
        ("h100:1x8", "h100:8", 8),
        ("h100:4x8", "h100:4x8", 32),
        ("gb200:18x4", "gb200:18x4", 72),
        ("2*h100:16x8", "2*h100:16x8", 256),
        ("a100-40gb:2", "a100-40gb:2", 2),
        ("1*b300:8", "b300:8", 8),
    ],
)
def test_a_cluster_is_written_as_hosts_and_gpus(text, written, size):
    assert gpus.is_cluster(text)
    cluster = gpus.parse(text)
    assert (str(cluster), cluster.size) == (written, size)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h100:16", "a host has at most 8; did you mean h100:2x8"),
        ("gb200:8", "a host has at most 4; did you mean gb200:2x4"),
        ("h100:12", "a host has at most 8$"),
        ("h100:0x8", "1 to 131,072 GPUs in all, got 'h100:0x8' with 0; a GPU cluster is written"),
        ("h100:1000000x8", "got 'h100:1000000x8' with 8,000,000"),
        ("2*h100:8x8x8", "'2\\*h100:8x8x8' has 3 sizes, but a GPU cluster is written as h100:8"),
        ("h900:8", "is not a GPU cluster that can be compiled for .*h100, h200"),
    ],
)
def test_a_cluster_that_does_not_exist(text, said):
    assert gpus.is_cluster(text)
    with pytest.raises(ValueError, match=said):
        gpus.parse(text)


@pytest.mark.parametrize("text", ["cpu", "v5e:2x4", "v5p-8", "tpu7x:2x2x2", "moon", "2*cpu"])
def test_what_is_no_cluster(text):
    assert not gpus.is_cluster(text)


def test_a_mesh_of_another_size():
    with pytest.raises(ValueError, match=r"has 12 devices, but h100:8 has 8: 4 x 2 or 2 x 4"):
        make_grid("data=4,model=3", on="h100:8")


def test_without_the_compiler_the_command_is_named(monkeypatch):
    monkeypatch.setattr(compilers, "gpu_plugin", lambda: None)
    with pytest.raises(ValueError, match="run `shardnb targets add gpu`"):
        make_grid("data=7", on="h100:7")


@needs_gpu_compiler
@pytest.mark.parametrize("name", gpus.GPUS)
def test_each_gpu_has_devices_of_its_kind(name):
    devices = gpus.devices_of(f"{name}:2x4")
    assert [device.id for device in devices] == list(range(8))
    assert [device.process_index for device in devices] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {device.device_kind for device in devices} == {gpus.GPUS[name].description}


@needs_gpu_compiler
def test_a_product_is_compiled_for_eight_gpus():
    x = jax.ShapeDtypeStruct((1024, 512), jnp.float32)
    w = jax.ShapeDtypeStruct((512, 256), jnp.float32)
    specs = (P("data", "model"), P("model"))
    report = sn.explain(jnp.matmul, x, w, mesh="data=4,model=2", on="h100:8", in_specs=specs)
    (collective,) = report.collectives
    # Each device's rows, 1024 / 4, of the partial sums over the two halves of the columns.
    assert (collective.kind, collective.axes) == ("all-reduce", ("model",))
    assert (collective.dtype, collective.shape) == ("f32", (256, 256))
    assert (collective.asked_by, collective.reason) == ("inferred", "partial-sum")
    assert (report.mesh.target, report.mesh.platform) == ("h100:8", "gpu")
    # One device's blocks: 256 x 256 of x, 256 x 256 of w, and of the result.
    assert report.memory.arguments == 2 * 256 * 256 * 4


@needs_gpu_compiler
def test_jax_starts_as_before_and_sees_no_gpu():
    script = (
        "import jax, shardnb\n"
        "from shardnb.mesh import gpus\n"
        "print(len(gpus.devices_of('h100:2x8')), jax.devices())\n"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "16 [CpuDevice(id=0)]"
    assert not done.stderr
