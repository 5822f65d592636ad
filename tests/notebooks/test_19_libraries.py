"""Equinox, Optax and Orbax: what their steps send.

Mesh data=4, model=2; 64 rows of 256, an inner width of 1024, all f32.
"""

import ast

NOTEBOOK = "19_libraries.ipynb"
F32 = 4
ROWS = 64 // 4


def test_an_equinox_module_sends_gradients_and_one_sum(notebook):
    report = notebook.report("rules")
    gradients = {c.role_of for c in report.collectives if c.role == "gradient"}
    assert gradients == {
        f"model.{layer}.{array}" for layer in ("up", "down") for array in ("weight", "bias")
    }
    (product,) = [c for c in report.collectives if c.role == "tensor-parallel-sum"]
    # A ring over 2 devices sends a half twice: all of it.
    assert (product.axes, product.wire_bytes) == (("model",), ROWS * 256 * F32)


def test_the_norm_is_a_number_over_the_shards(notebook):
    norms = ast.literal_eval(notebook.printed("norm"))
    assert norms
    assert set(norms) == {("all-reduce", ("model",), ())}


def test_what_is_held_adds_up(notebook):
    *rows, adds_up = notebook.printed("peak").splitlines()
    assert adds_up == "True"
    # Half of up's and down's weights and of their moments, all donated to nobody.
    assert any(
        row.split()[:3] == [f"{256 * 1024 * F32 // 2:,}", "argument", "model.up.weight"]
        for row in rows
    )


def test_a_checkpoint_restored_as_needed_sends_one_sum(notebook):
    sums = ast.literal_eval(notebook.printed("restored"))
    assert sums == [("all-reduce", ("model",), ROWS * 256 * F32)]


def test_a_checkpoint_restored_otherwise_sends_more(notebook):
    assert "+" in notebook.printed("wrong")
    assert "all-reduce" in notebook.printed("wrong")


def test_a_step_with_shardings_names_the_array(notebook):
    assert "params['down'] has the sharding" in notebook.printed("jitted")
    assert "jax.jit refuses it" in notebook.printed("jitted")
