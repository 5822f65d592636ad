"""Why the GPU compiler sends what it copies, joins, scatters and takes a step ahead.

The right values are those of the program right after partitioning, times the steps of its loops.
"""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.needs import needs_gpu_compiler

LAYERS = 7
SPECS = {"w1": P(None, "data", "model"), "w2": P(None, "model", "data")}
ROWS = P("data")

# What a training run on GPUs sets, or the level that sets all of it.
# The XLA of jax 0.11 has other names for the same, and takes no product in steps.
NEW = jax.__version_info__ >= (0, 12)
ON = "COLLECTIVE_PIPELINING_MODE_ON"
PIPELINED = (
    {"xla_gpu_pipeline_all_gather": ON, "xla_gpu_pipeline_reduce_scatter": ON}
    if NEW
    else {
        "xla_gpu_enable_pipelined_all_gather": True,
        "xla_gpu_enable_pipelined_reduce_scatter": True,
    }
)
WAYS = {
    "as is": {},
    "double buffered": {"xla_gpu_enable_while_loop_double_buffering": True},
    "pipelined": PIPELINED,
    "O1": {"optimization_level": "O1" if NEW else 1},
}


def f32(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def loss(params, x, y):
    def layer(x, p):
        h = jnp.tanh(x @ p["w1"])
        return x + h @ p["w2"], None

    return jnp.mean((lax.scan(layer, x, params)[0] - y) ** 2)


# Where the last step runs outside the loop, the gradient of the input is left out: nobody takes it.
LEFT_OUT = {"pipelined": 1, "O1": int(NEW)}


@pytest.fixture(scope="module", params=WAYS)
def step(request):
    params = {"w1": f32(LAYERS, 256, 512), "w2": f32(LAYERS, 512, 256)}
    fn = jax.jit(jax.value_and_grad(loss), compiler_options=WAYS[request.param])
    report = sn.explain(
        fn,
        *(params, f32(64, 256), f32(64, 256)),
        mesh="data=4,model=2",
        on="h100:8",
        in_specs=(SPECS, ROWS, ROWS),
        out_specs=(P(), SPECS),
    )
    return report, LEFT_OUT.get(request.param, 0)


@needs_gpu_compiler
def test_each_step_of_a_loop_counts_once_in_whatever_form_it_is_written(step):
    (report, left_out), runs = step, Counter()
    for one in report.collectives:
        runs[one.kind, one.axes, one.bytes] += one.trips
    weight = 256 * 256 * 4  # a weight, sharded over model only
    assert runs == {
        # Both weights in both passes, and the two gradients of each layer.
        ("all-gather", ("data",), weight): 4 * LAYERS,
        ("reduce-scatter", ("data",), weight // 4): 2 * LAYERS,
        # h @ w2, and the gradient of what x @ w1 takes.
        ("all-reduce", ("model",), 16 * 256 * 4): 2 * LAYERS - left_out,
        ("all-reduce", ("data",), 4): 1,
    }


@needs_gpu_compiler
def test_each_copy_has_the_cause_and_the_parameter_of_what_it_is_a_copy_of(step):
    (report, left_out), runs = step, Counter()
    for one in report.collectives:
        runs[one.kind, one.reason, one.role, one.role_of] += one.trips
    assert runs == {
        ("all-gather", "conflict", "parameter-gather", "params['w1']"): 2 * LAYERS,
        ("all-gather", "conflict", "parameter-gather", "params['w2']"): 2 * LAYERS,
        ("reduce-scatter", "partial-sum", "gradient-scatter", "params['w1']"): LAYERS,
        ("reduce-scatter", "partial-sum", "gradient-scatter", "params['w2']"): LAYERS,
        ("all-reduce", "partial-sum", "tensor-parallel-sum", "params['w2']"): LAYERS,
        ("all-reduce", "partial-sum", "tensor-parallel-sum", "params['w1']"): LAYERS - left_out,
        ("all-reduce", "partial-sum", "loss", ""): 1,
    }
    scattered = {one.made_as for one in report.collectives if one.kind == "reduce-scatter"}
    assert scattered == {"all-reduce"}


@needs_gpu_compiler
def test_the_work_of_a_program_with_asynchronous_sums_is_counted(step):
    report, left_out = step
    # Three products for each weight: 16 rows by 256 x 256, twice; where a step is peeled, the
    # gradient of the input is left out.
    products = 2 * 16 * 256 * 256 * (6 * LAYERS - left_out)
    assert report.work is not None
    assert products <= report.work.flops <= 1.1 * products
    assert 0 < report.work.least_bytes <= report.work.accessed_bytes
    assert report.cost.memory_least_seconds < report.cost.memory_seconds


@needs_gpu_compiler
def test_sums_that_were_joined_into_one_flat_array_are_counted_each():
    def step(w, x, y):
        def loss(w):
            return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(w)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, w, gradient)

    weights = {"a": f32(256, 512), "b": f32(512, 128)}
    report = sn.explain(
        step,
        *(weights, f32(128, 256), f32(128, 128)),
        mesh="data=8",
        on="h100:8",
        in_specs=(P(), ROWS, ROWS),
        out_specs=P(),
    )
    sent = {(one.kind, one.bytes, one.role, one.role_of) for one in report.collectives}
    assert sent == {
        ("all-reduce", 4, "loss", ""),
        ("all-reduce", 256 * 512 * 4, "gradient", "w['a']"),
        ("all-reduce", 512 * 128 * 4, "gradient", "w['b']"),
    }
    assert {len(one.combined_with) for one in report.collectives} == {2}


@needs_gpu_compiler
def test_a_flat_array_that_the_user_joined_stays_one():
    def total(a, b):
        return lax.psum(jnp.concatenate([a.ravel(), b.ravel()]), "x")

    report = sn.explain(
        total, f32(64, 32), f32(64, 16), mesh="x=8:manual", on="h100:8",
        in_specs=(P("x"), P("x")), out_specs=P(),
    )  # fmt: skip
    (one,) = report.collectives
    assert (one.kind, one.asked_by, one.shape) == ("all-reduce", "called", (8 * 32 + 8 * 16,))


@needs_gpu_compiler
def test_the_steps_of_a_product_are_counted_each_when_their_loop_is_written_out():
    """Eight devices hold an eighth of each weight: a step sends one to the next device."""
    options = {
        "xla_gpu_threshold_for_windowed_einsum_mib": 0,
        "xla_gpu_multi_streamed_windowed_einsum": True,
    }
    report = sn.explain(
        jax.jit(lambda x, a, b: jax.nn.relu(x @ a) @ b, compiler_options=options),
        *(jax.ShapeDtypeStruct(sizes, jnp.bfloat16) for sizes in ((4096, 1024), (1024, 4096))),
        jax.ShapeDtypeStruct((4096, 1024), jnp.bfloat16),
        mesh="model=8",
        on="h100:8",
        in_specs=(P("model"), P(None, "model"), P("model")),
        out_specs=P("model"),
    )
    runs = Counter()
    for one in report.collectives:
        runs[one.kind, one.reason, one.bytes] += one.trips
    in_steps = {("collective-permute", "conflict", 1024 * 512 * 2): 16}
    assert runs == (in_steps if NEW else {("all-gather", "conflict", 1024 * 4096 * 2): 2})


@needs_gpu_compiler
def test_labels_that_are_picked_from_logits_and_their_sum_are_told_apart():
    """The one is [8, 32, 1] right after partitioning, the other [8, 32]: both are sent as [256]."""

    def evaluated(head, h, labels):
        logits = h @ head
        picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()

    labels = jax.ShapeDtypeStruct((16, 32), jnp.int32)
    specs = P(None, "tp"), P("dp"), P("dp")
    args = f32(128, 512), f32(16, 32, 128), labels
    report = sn.explain(evaluated, *args, mesh="dp=2,tp=4", on="h100:8", in_specs=specs)
    consumers = [c.consumer for c in report.collectives if c.axes == ("tp",)]
    assert Counter(consumers) == Counter(("reduce_max", "reduce_sum", "gather"))


@needs_gpu_compiler
def test_a_product_that_took_a_transpose_in_is_named_as_the_product():
    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

    args = f32(128, 256), f32(64, 128)
    report = sn.explain(step, *args, mesh="data=8", on="h100:8", in_specs=(P(), P("data")))
    (gradient,) = report.collectives
    assert (gradient.producer, gradient.consumer) == ("result of dot_general", "dot_general")
    assert "the backward pass of x @ w sums over a dimension sharded over data" in gradient.why
