"""A step of a decoder as MaxText builds it: what FSDP and tensor parallelism send, worked out by hand."""

from __future__ import annotations

import inspect
from collections import Counter

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid
from shardnb.report import Collective, Report
from tests.libraries import decoder
from tests.libraries.decoder import DEPTH, GROUPS, HEADS, HIDDEN, LAYERS, WIDTH

MESH = "fsdp=4,tensor=2"
FLOAT = 4
# Numbers of each kernel on one device of two along `tensor`, and its line.
KERNELS = {
    "['attention']['query']": (WIDTH * HEADS // 2 * DEPTH, "x, wq)"),
    "['attention']['key']": (WIDTH * GROUPS // 2 * DEPTH, "x, wk)"),
    "['attention']['value']": (WIDTH * GROUPS // 2 * DEPTH, "x, wv)"),
    "['attention']['out']": (WIDTH * HEADS // 2 * DEPTH, "mixed, wo)"),
    "['mlp']['gate']": (WIDTH * HIDDEN // 2, "(x @ gate)"),
    "['mlp']['up']": (WIDTH * HIDDEN // 2, "(x @ up)"),
    "['mlp']['down']": (WIDTH * HIDDEN // 2, "h @ down"),
}
# The rows of one of the 4 groups along `fsdp`.
ACTIVATION = decoder.BATCH // 4 * decoder.LENGTH * WIDTH * FLOAT


@pytest.fixture(scope="module")
def report() -> Report:
    state = jax.eval_shape(decoder.initial, jax.random.key(0))
    tokens = jax.ShapeDtypeStruct((decoder.BATCH, decoder.LENGTH), jnp.int32)
    specs = sn.logical(decoder.RULES), P("fsdp")
    step = jax.jit(decoder.step, donate_argnums=0)
    with nn.logical_axis_rules(decoder.RULES), jax.set_mesh(make_grid(MESH).mesh):
        return sn.explain(step, state, tokens, mesh=MESH, in_specs=specs, origins=False)


def of(report: Report, role: str, kernel: str) -> list[Collective]:
    name = f"state.params['layers']{kernel}.value"
    return [c for c in report.collectives if c.role == role and c.role_of == name]


def line(text: str) -> int:
    lines, _ = inspect.getsourcelines(decoder)
    (found,) = [number for number, each in enumerate(lines, 1) if text in each]
    return found


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_gathered_for_each_layer_and_once_more_backwards(report, kernel):
    """A ring all-gather over 4 devices sends three quarters of what it gathers."""
    numbers, text = KERNELS[kernel]
    gathers = of(report, "parameter-gather", kernel)
    assert len(gathers) == 2
    assert {c.axes for c in gathers} == {("fsdp",)}
    assert {c.trips for c in gathers} == {LAYERS}
    assert {c.wire_bytes for c in gathers} == {numbers * FLOAT * 3 // 4}
    assert {c.frames[0].line for c in gathers} == {line(text)}
    first, second = (c.phase for c in gathers)
    assert first == "forward"
    assert second in ("backward", "rematerialised")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_of_a_kernel_is_summed_and_scattered_over_the_batch(report, kernel):
    """CPU sends an all-reduce, 2 x 3/4 of it, where an accelerator may scatter."""
    numbers, text = KERNELS[kernel]
    (gradient,) = of(report, "gradient-scatter", kernel)
    assert (gradient.axes, gradient.trips, gradient.phase) == (("fsdp",), LAYERS, "backward")
    assert gradient.wire_bytes == numbers * FLOAT * 2 * 3 // 4
    assert gradient.on_accelerators.kind == "reduce-scatter"
    assert gradient.frames[0].line == line(text)


def test_tensor_parallelism_sums_where_rows_of_a_kernel_are_sharded_and_backwards_the_others(
    report,
):
    """Forwards after `out` and `down`; backwards at the products whose columns are sharded."""
    sums = [c for c in report.collectives if c.role == "tensor-parallel-sum" and c.trips == LAYERS]
    assert {(c.axes, c.wire_bytes) for c in sums} == {(("tensor",), ACTIVATION)}
    names = {name: f"state.params['layers']{name}.value" for name in KERNELS}
    forward = Counter(c.role_of for c in sums if c.phase == "forward")
    assert forward == Counter([names["['attention']['out']"], names["['mlp']['down']"]])
    backward = {c.role_of for c in sums if c.phase == "backward"}
    columns = set(KERNELS) - {"['attention']['out']", "['mlp']['down']"}
    assert backward == {names[name] for name in columns}


def test_all_that_the_layers_send_has_a_role(report):
    repeated = [c for c in report.collectives if c.trips == LAYERS]
    assert len(repeated) >= 2 * len(KERNELS) + len(KERNELS)
    assert all(c.role for c in repeated)
    assert {c.asked_by for c in repeated} == {"inferred"}


def test_the_norms_gradients_and_the_loss_are_sums_over_the_batch(report):
    scales = [c for c in report.collectives if c.role == "gradient" and "scale" in c.role_of]
    assert {c.role_of.rpartition("params")[2] for c in scales} == {
        "['layers']['norm']['scale'].value",
        "['layers']['mlp_norm']['scale'].value",
        "['last_norm']['scale'].value",
    }
    # A sum of 32 floats over 4 devices sends 2 x 3/4 of them.
    assert {(c.axes, c.wire_bytes) for c in scales} == {(("fsdp",), WIDTH * FLOAT * 2 * 3 // 4)}
    (loss,) = [c for c in report.collectives if c.role == "loss"]
    assert loss.axes == ("fsdp",)


def test_parameters_and_moments_are_where_the_rules_put_them(report):
    specs = {value.name: value.spec for value in report.inputs}
    for tree in ("state.params", "state.opt_state[0].mu", "state.opt_state[0].nu"):
        assert specs[f"{tree}['layers']['mlp']['gate'].value"] == ((), ("fsdp",), ("tensor",))
        assert specs[f"{tree}['layers']['attention']['out'].value"] == (
            ((), ("tensor",), (), ("fsdp",))
        )
        assert specs[f"{tree}['embedding'].value"] == (("tensor",), ("fsdp",))


def test_the_donated_state_is_reused_and_what_is_kept_for_the_backward_pass_is_counted(report):
    assert not [f for f in report.findings if f.kind in ("lost donation", "returned otherwise")]
    peak = report.memory.peak
    held = sum(h.bytes for h in peak.held) + peak.others + peak.unused
    assert held == report.memory.total
    # `remat` keeps the input of each layer, and no more.
    kept = [h for h in peak.held if h.stacked and h.phase == "forward"]
    assert [(h.bytes, h.shape) for h in kept] == [
        (LAYERS * ACTIVATION, (LAYERS, decoder.BATCH // 4, decoder.LENGTH, WIDTH))
    ]
