"""Torch code with `mark_sharding`: a forward pass, a training step, an annotated value, a dump.

Mesh data=4, model=2; 32 rows of 64, an inner width of 256, all f32.
"""

import pytest

pytest.importorskip("torchax", reason="needs torch and torchax")

NOTEBOOK = "17_torch.ipynb"
F32 = 4
ROWS, HALF = 32 // 4, 256 // 2


def sent(report):
    return {(c.kind, c.axes, c.shape): c for c in report.collectives}


def test_a_mesh_in_both_spellings(notebook):
    kind, of_torch, of_jax = notebook.printed("mesh").splitlines()
    assert kind == "PARTIAL"
    assert of_torch.endswith("{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}")
    assert of_jax.endswith("{devices=[4,1,2]<=[8] last_tile_dim_replicate} P('data', None)")


def test_the_forward_pass_sums_over_model(notebook):
    """Half of the block twice: a ring of two."""
    ((key, collective),) = sent(notebook.report("forward")).items()
    assert key == ("all-reduce", ("model",), (ROWS, 64))
    assert collective.wire_bytes == ROWS * 64 * F32
    assert collective.module == "model.down"
    messages = [f.message for f in notebook.report("forward").findings if f.kind == "annotation"]
    assert len(messages) == 3
    assert all("it is data, so PyTorch/XLA uploads" in message for message in messages)


def test_the_result_is_that_of_plain_torch(notebook):
    assert notebook.printed("plain").split() == ["Tensor", "(32,", "64)", "True"]


def test_a_training_step_sums_the_gradients_over_data(notebook):
    lines = notebook.printed("gradients").splitlines()
    assert {
        f"all-reduce ('data',) ({HALF}, 64) in model.up",
        f"all-reduce ('data',) (64, {HALF}) in model.down",
    } <= set(lines)


def test_an_annotated_value_is_gathered_and_its_gradient_is_not(notebook):
    """Each device sends its half of 8 x 256 to the other one of its pair."""
    assert ("all-gather", ("model",), (ROWS, 256)) in sent(notebook.report("value"))
    cost, gradient, absence = notebook.printed("value-read").splitlines()
    assert "adds 1 node to the graph" in cost
    assert "is sharded as P('data', 'model'); mark_sharding_with_gradients would" in gradient
    assert "does not need an all-gather[model] of f32[8, 256], 4.0 KiB per device" in absence
    # The gradient of `down` is then summed in two shards instead of one replicated block.
    assert "needs an all-reduce[data] of f32[64, 128], 48 KiB per device" in absence


def test_a_module_without_data(notebook):
    assert notebook.printed("explain").strip() == (
        "[('all-reduce', ('model',), (256, 8192), 'model[2]')]"
    )


def test_a_dump_of_torch_xla(notebook):
    assert notebook.printed("dump").strip() == (
        f"all-reduce ('model',) (8, 64) {8 * 64 * F32} bytes per device"
    )
