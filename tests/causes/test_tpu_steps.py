"""What the TPU compiler writes in steps of its own; judged in the program right after partitioning.

Each program is named in a comment of the code that reads it.
"""

from __future__ import annotations

import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.needs import needs_libtpu

F32 = jnp.float32
ROWS = P("data")


def answers(fn, *arrays, mesh="data=8"):
    """Explain on a slice of eight chips; `arrays` are shapes with specs, of `float32`."""
    args = [jax.ShapeDtypeStruct(*_typed(shape)) for shape, _ in arrays]
    report = sn.explain(
        fn, *args, mesh=mesh, on="v5e:2x4", in_specs=tuple(s for _, s in arrays), origins=False
    )
    return report.collectives


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, F32)


def _typed(shape):
    return (shape, F32) if isinstance(shape[-1], int) else (shape[:-1], shape[-1])


def told(collectives):
    return Counter((c.kind, c.reason, c.producer, c.consumer) for c in collectives)


@needs_libtpu
def test_what_is_sent_under_the_name_of_a_pad_is_for_the_pad():
    def shifted_difference(x):
        return jnp.pad(x, ((1, 0), (0, 0)))[:-1] - x

    # collective-permute(slice(x)) under the pad's name, {0,1} to {6,7}: each device's last row.
    assert told(answers(shifted_difference, ((512, 64), ROWS))) == {
        ("collective-permute", "halo", "x", "pad"): 1
    }


@needs_libtpu
def test_concatenations_that_are_written_as_maxima_of_pads_are_followed():
    def running_maximum_by_halves(x):
        return lax.associative_scan(jnp.maximum, x)

    # Right after partitioning: 28 permutes, five sums of a first row among zeros. By the names of
    # the permutes' operands and of what selects their results:
    found = answers(running_maximum_by_halves, ((1024, 64), ROWS))
    assert told(found) == {
        ("all-reduce", "whole-axis", "slice of x", "concatenate"): 1,
        ("all-reduce", "whole-axis", "result of slice", "concatenate"): 4,
        ("collective-permute", "halo", "x", "slice"): 1,
        ("collective-permute", "halo", "result of max", "slice"): 13,
        ("collective-permute", "halo", "result of max", "concatenate"): 9,
        ("collective-permute", "halo", "result of max", "pad"): 1,
        ("collective-permute", "halo", "result of concatenate", "pad"): 2,
        ("collective-permute", "halo", "result of add", "pad"): 2,
    }


@needs_libtpu
def test_a_running_sum_is_named_and_not_the_windows_that_compute_it():
    def cumsum_rows(x):
        return jnp.cumsum(x, 0) / jnp.arange(1, 513)[:, None]

    # Sizes of windows are the compiler's own: nothing in the program is uneven. TPU drops the name
    # of JAX's function around them.
    whole, step = "reduce_window_sum", "a step of reduce_window_sum"
    found = answers(cumsum_rows, ((512, 64), ROWS))
    assert {c.line for c in found} == {cumsum_rows.__code__.co_firstlineno + 1}
    assert told(found) == {
        ("all-gather", "whole-axis", "reshape of x", whole): 1,
        ("all-gather", "whole-axis", step, whole): 1,
        ("all-reduce", "whole-axis", step, whole): 1,
        ("collective-permute", "halo", step, whole): 3,
    }


@needs_libtpu
def test_steps_of_a_factorization_are_for_the_factorization():
    def factor(x):
        return jnp.linalg.cholesky(x @ x.T + jnp.eye(512))

    found = answers(factor, ((512, 512), P("data", "model")), mesh="data=4,model=2")
    inside = [c for c in found if c.producer == "a step of cholesky"]
    assert len(inside) > 20
    assert {c.consumer for c in inside} == {"cholesky"}
    assert {c.reason for c in inside} == {"whole-axis", "halo", "partial-sum"}
    assert "unknown" not in {c.reason for c in found}
    blocks = next(c for c in inside if c.reason == "whole-axis")
    assert blocks.why.endswith("cholesky is computed in steps, on blocks that other devices hold.")


@needs_libtpu
def test_layers_of_an_unrolled_scan_are_told_apart_by_where_they_are_cut():
    def scan_unrolled_over_sharded_layers(ws, x):
        def layer(h, w):
            return jnp.tanh(h @ w), None

        return jnp.sum(lax.scan(layer, x, ws, unroll=4)[0] ** 2)

    found = answers(
        jax.grad(scan_unrolled_over_sharded_layers),
        ((4, 256, 256), P(None, "data")),
        ((512, 256), ROWS),
    )
    gathers = [c for c in found if c.kind == "all-gather"]
    assert {(c.reason, c.producer, c.consumer) for c in gathers} == {
        ("conflict", "slice of ws", "dot_general")
    }
    # The first layer takes x itself; the others, what the one before made.
    assert sum(" of x, so" in c.why for c in gathers) == 1


@needs_libtpu
def test_what_a_host_callback_takes_and_returns_is_explained():
    def through_the_host(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return (jax.pure_callback(np.sin, shape, x * 2) @ x.T).sum(0)

    found = answers(through_the_host, ((256, 128), ROWS))
    assert told(found)["all-gather", "whole-axis", "x * 2", "pure_callback"] == 1
    back = [c for c in found if c.producer == "jax.pure_callback(np.sin, shape, x * 2)"]
    assert [(c.reason, c.consumer) for c in back] == [("conflict", "dot_general")]
    assert back[0].why.endswith("only one device holds it, but (...) @ x.T runs on all of them.")


@needs_libtpu
def test_gathers_of_two_values_sent_together_are_told_apart_by_their_names():
    def sort_and_median(x):
        return jnp.sort(x), jnp.median(x)

    found = answers(sort_and_median, ((512,), ROWS))
    together = [c for c in found if c.combined_with]
    assert told(together) == {
        ("all-reduce", "whole-axis", "x", "sort"): 1,
        ("all-reduce", "whole-axis", "result of select_n", "sort"): 1,
    }


@needs_libtpu
def test_rows_of_a_sharded_table_name_the_axes_that_split_it():
    def rows_of_a_sharded_table(table, rows):
        return lax.with_sharding_constraint(table[rows], P(("dp", "fsdp"), None, None))

    found = answers(
        rows_of_a_sharded_table,
        ((1024, 256), P("tp", "fsdp")),
        ((16, 128, jnp.int32), P(("dp", "fsdp"))),
        mesh="dp=2,fsdp=2,tp=2",
    )
    # The table's blocks are permuted and gathered over dp, which does not split it.
    moved = [c for c in found if c.producer == "table"]
    assert moved
    for collective in moved:
        assert "sharded over dp" not in collective.why
        assert "but fsdp also shards the indices rows" in collective.why
    assert {c.reason for c in found} == {"conflict"}


@needs_libtpu
def test_a_row_that_one_device_holds_is_needed_by_all():
    def first_row_for_all(x, y):
        return y @ (x * 2)[0].T

    found = answers(first_row_for_all, ((16, 128, 64), ROWS), ((32, 64), P()))
    assert [(c.kind, c.reason, c.consumer) for c in found] == [
        ("all-reduce", "whole-axis", "squeeze")
    ]


@needs_libtpu
def test_a_batch_of_matrices_is_not_said_to_be_needed_in_full():
    def eigenvalues(x):
        return jnp.linalg.eigvalsh(x + x.swapaxes(1, 2))

    found = answers(eigenvalues, ((8, 64, 64), ROWS))
    assert {(c.reason, c.consumer) for c in found} == {("whole-axis", "eigh")}
    assert all("the partitioner cannot keep eigh sharded here" in c.why for c in found)


@needs_libtpu
def test_dimensions_are_those_of_the_array_that_is_named():
    def forces(x):
        d = x[:, None] - x
        return (d / ((d**2).sum(-1) + 1)[..., None]).sum(1)

    # The second x is broadcast by the subtraction, and sharded along its own dimension 0.
    (moved,) = answers(forces, ((1024, 3), ROWS))
    assert (moved.kind, moved.producer, moved.consumer) == ("all-to-all", "x", "sub")
    assert "x is sharded over data on dimension 0" in moved.why


@needs_libtpu
def test_a_result_after_running_sums_that_does_not_divide_is_uneven():
    def drawdown_of_a_running_sum(x):
        worth = jnp.cumsum(x, 0)
        return jnp.diff(worth - lax.cummax(worth, axis=0), axis=0)

    # 511 rows are left over for 8 devices. The reshapes of the running sums are the compiler's.
    found = answers(drawdown_of_a_running_sum, ((512, 64), ROWS))
    (returned,) = (c for c in found if c.consumer == "the program's result")
    assert (returned.kind, returned.reason) == ("all-gather", "uneven")
    first = drawdown_of_a_running_sum.__code__.co_firstlineno
    assert {c.line - first for c in found} == {1, 2}


@needs_libtpu
def test_a_scatter_into_zeros_that_two_rounds_share_is_the_sum_that_is_completed():
    def messages_along_sharded_edges(nodes, senders, receivers):
        for _ in range(2):
            messages = jax.nn.relu(nodes[senders])
            received = jax.ops.segment_sum(messages, receivers, num_segments=512)
            nodes = nodes + jnp.tanh(received)
        return nodes

    found = answers(
        messages_along_sharded_edges,
        ((512, 32), P()),
        ((4096, jnp.int32), ROWS),
        ((4096, jnp.int32), ROWS),
    )
    assert told(found) == {("all-reduce", "partial-sum", "received", "scatter-add"): 2}


@needs_libtpu
def test_what_is_multiplied_by_a_constant_is_not_named_by_the_broadcast_of_that():
    def squares_of_a_difference(w, x):
        return jnp.mean(jnp.square(jnp.tanh(x @ w[0]) @ w[1] - x))

    def step(w, x):
        return w - jax.grad(squares_of_a_difference)(w, x)

    # XLA joins the names of 2 / size, which is broadcast, and of the product with the difference.
    found = answers(step, ((2, 128, 128), P(None, "data")), ((64, 128), ROWS))
    gathered = [c for c in found if c.kind == "all-gather" and c.phase == "backward"]
    assert "result of mul" in {c.producer for c in gathered}
    assert "result of broadcast_in_dim" not in {c.producer for c in found}


@needs_libtpu
def test_a_gather_before_what_is_gathered_is_repeated_is_the_gather_after_it():
    def mean_over_tokens(w, x):
        hidden = jnp.tanh(x @ w[0]) @ w[1]
        return jnp.mean(jnp.tanh(hidden.mean(1) @ w[2][:, :32]))

    def step(w, x):
        return w - jax.grad(mean_over_tokens)(w, x)

    # The gradient of the mean is the same for all 16 tokens: (64, 256) is gathered, where the
    # program right after partitioning gathers (64, 16, 256). JAX divides it before it repeats it.
    found = answers(step, ((3, 256, 256), P(None, "data")), ((64, 16, 256), ROWS))
    gathered = [c for c in found if c.kind == "all-gather" and math.prod(c.shape) == 64 * 256]
    assert [(c.reason, c.producer, c.consumer) for c in gathered] == [
        ("conflict", "result of div", "dot_general")
    ]


@needs_libtpu
def test_a_look_up_that_is_reversed_before_it_is_completed_is_completed():
    def labels_in_descending_order(scores, labels):
        ordered = labels[jnp.argsort(scores)]
        return jnp.cumsum(ordered[::-1])

    # XLA reverses what each device holds, and adds up afterwards.
    found = answers(labels_in_descending_order, ((4096,), ROWS), ((4096, jnp.int32), ROWS))
    assert told(found) == {
        ("all-gather", "whole-axis", "scores", "sort"): 1,
        ("all-reduce", "partial-sum", "ordered", "gather"): 1,
    }


@needs_libtpu
def test_what_autodiff_keeps_for_the_backward_pass_of_a_shard_map_is_for_its_product_there():
    def keys_for_the_backward_pass(q, k, v):
        def attend(q, k, v):
            q, k, v = (lax.all_to_all(a, "data", 2, 1, tiled=True) for a in (q, k, v))
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
            out = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
            return lax.all_to_all(out, "data", 1, 2, tiled=True)

        heads = P(None, "data")
        mapped = jax.shard_map(attend, in_specs=heads, out_specs=heads)
        return jax.grad(lambda q: jnp.sum(mapped(q, k, v)))(q)

    # The values are used by the backward pass alone, since a sum of the output has no gradient
    # that depends on it: they leave the first shard_map, and a product in the second takes them.
    found = answers(keys_for_the_backward_pass, *[((4, 512, 8, 32), P(None, "data"))] * 3)
    called = [(c.producer, c.consumer) for c in found if not c.by_autodiff]
    assert sorted(called) == [(name, "dot_general") for name in "kqv"]


@needs_libtpu
def test_the_backward_pass_of_a_roll_is_a_roll_too():
    def halves_swapped(x):
        return jnp.sum(x * jnp.roll(x**2, 128, 0))

    # JAX splits what it rolls back, and joins it with two pads.
    found = answers(jax.grad(halves_swapped), ((256, 64), ROWS))
    assert {c.kind for c in found} == {"collective-permute"}
    assert {c.consumer for c in found} == {"roll"}
    assert "result of roll" not in {c.producer for c in found if c.phase == "backward"}


@needs_libtpu
def test_what_a_loop_carries_to_a_matrix_has_the_name_that_it_has_there():
    def directions_of_a_solver(matrix, b):
        def step(carry, _):
            x, r, p = carry
            product = matrix @ p
            return (x + p, r - product, r + p), None

        return lax.scan(step, (b * 0, b, b), None, length=5)[0]

    # The direction begins as `b`, and is another vector from the second turn on.
    found = answers(directions_of_a_solver, ((1024, 1024), ROWS), ((1024,), ROWS))
    assert told(found) == {("all-gather", "conflict", "p", "dot_general"): 1}


@needs_libtpu
def test_gathers_that_are_sent_in_one_sum_with_sums_are_told_from_them():
    def factored_state_is_gathered(w, rows, columns, x):
        def loss(w):
            return jnp.mean(jnp.square(jnp.tanh(jnp.tanh(x @ w[0]) @ w[1])))

        squares = jax.tree.map(jnp.square, jax.grad(loss)(w))
        rows = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g.mean(1), rows, squares)
        columns = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g.mean(0), columns, squares)
        return [jnp.sum(one) for one in squares], rows, columns

    spec = [P(None, "model"), P("model")]
    weights, vectors = [f32(128, 128)] * 2, [f32(128)] * 2
    report = sn.explain(
        factored_state_is_gathered,
        *(weights, vectors, vectors, f32(64, 128)),
        mesh="data=2,model=4",
        on="v5e:2x4",
        in_specs=(spec, P(), P(), ROWS),
        out_specs=(P(), P(), P()),
    )
    found = [c for c in report.collectives if c.axes == ("model",) and c.shape == (128,)]
    # A mean over the sharded dimension of a gradient's squares is a sum over `model`; a mean over
    # the other is sharded, and P() asks for its gather, which TPU sends as a sum among zeros.
    kinds = Counter((c.reason, c.role, c.role_of) for c in found)
    assert kinds == {
        ("partial-sum", None, ""): 2,
        ("output-spec", "optimizer-state", "columns[0]"): 1,
        ("output-spec", "optimizer-state", "rows[1]"): 1,
    }


@needs_libtpu
def test_the_numbers_that_a_search_for_the_largest_sorts_along_are_a_step_of_it():
    def largest_of_each_column(x):
        return lax.top_k(x.T, 64)

    # TPU sorts along the sharded dimension, with the position of each element.
    found = answers(largest_of_each_column, ((256, 64), ROWS))
    moved = sorted((c.dtype, c.producer) for c in found if c.kind == "all-to-all")
    assert moved == [
        ("f32", "result of top_k"),
        ("f32", "transpose of x"),
        ("s32", "a step of top_k"),
        ("s32", "result of top_k"),
    ]


@needs_libtpu
def test_what_is_gathered_once_for_both_passes_is_for_the_forward_pass():
    def features_and_samples_over_one_axis(a, b, x):
        def loss(a, b):
            return jnp.mean(jnp.square(jax.nn.silu(x @ a) @ b - x[:, :64]))

        da, db = jax.grad(loss, argnums=(0, 1))(a, b)
        return a - da, b - db

    # Right after partitioning `x` is gathered for `x @ a`, and again for the gradient of `a`.
    found = answers(
        features_and_samples_over_one_axis,
        ((128, 256), P(None, "data")),
        ((256, 64), ROWS),
        ((64, 128), ROWS),
    )
    (gathered,) = [c for c in found if c.producer == "x" and c.kind == "all-gather"]
    assert (gathered.phase, gathered.reason) == ("forward", "conflict")
    assert gathered.why.endswith("but data also shards another dimension of a, so x is gathered.")


@needs_libtpu
def test_the_module_of_a_merged_sum_is_what_all_its_summands_have_in_common():
    def named_projections(w, x):
        h = jnp.tanh(x @ w["in"])
        parts = {}
        for name in ("q", "k"):
            with jax.named_scope("layer"), jax.named_scope(name):
                parts[name] = h @ w[name]
        return jnp.mean(jax.nn.softmax(parts["q"]) * jnp.tanh(parts["k"]))

    def step(w_in, w_q, w_k, x):
        w = {"in": w_in, "q": w_q, "k": w_k}
        return jax.tree.map(lambda p, g: p - g, w, jax.grad(named_projections)(w, x))

    columns = P(None, "model")
    args = ((256, 256), P()), ((256, 256), columns), ((256, 256), columns), ((64, 256), ROWS)
    found = answers(step, *args, mesh="data=2,model=4")
    merged = [c for c in found if c.role == "tensor-parallel-sum" and not c.role_of]
    assert [c.module for c in merged] == ["layer"]
