"""From a training step to a layout that a test keeps: look, search, try, check.

Mesh data=4, model=2; an embedding of 2 MiB and two MLPs of 2 MiB each, 32 x 64 tokens.
"""

import re

NOTEBOOK = "15_your_own_repository.ipynb"
MIB = 2**20
PARAMETERS, TOKENS, ROWS = 6 * MIB, 32 * 64 * 4, 32 // 4 * 64


def test_data_parallel_sums_every_gradient_over_data(notebook):
    report = notebook.report("look")
    assert {(c.kind, c.axes) for c in report.collectives} == {("all-reduce", ("data",))}
    # The embedding has two gradients: of its rows, and of the logits. The loss is four bytes.
    gradients = PARAMETERS + 2 * MIB
    assert report.wire_bytes == 2 * gradients * 3 // 4 + 2 * 4 * 3 // 4


def test_every_plan_was_compiled_and_none_is_worse_in_both(notebook):
    shown = notebook.shown("search")
    found = (
        r"\s*\d+ plans? for step; \d+ \w+ estimated \(\d+ products of recipes .*\), \d+ compiled"
    )
    assert re.match(found, shown)
    sizes = [
        line.split()[1:5] for line in shown.splitlines() if re.match(r"\d+ +[\d.]+ \w*s ", line)
    ]
    factor = {"us": 1, "ms": 1e3, "KiB": 2**10, "MiB": MIB}
    plans = [(float(t) * factor[tu], float(m) * factor[mu]) for t, tu, m, mu in sizes]
    # The fastest comes first, and each of the others holds less.
    assert plans == sorted(plans)
    assert [held for _, held in plans] == sorted((held for _, held in plans), reverse=True)
    assert plans


def test_a_plan_is_python_to_paste(notebook):
    code = notebook.printed("code")
    compile(code, "plan", "exec")
    assert "jax.make_mesh((4, 2), ('data', 'model')" in code


def test_the_idea_halves_what_is_held(notebook):
    now, chosen = notebook.table("compare")
    assert now[4] == f"{PARAMETERS + TOKENS // 4:,}"
    assert chosen[4] == f"{PARAMETERS // 2 + TOKENS // 4:,}"


def test_the_idea_sums_activations_over_model_and_half_gradients_over_data(notebook):
    collectives = notebook.report("check").collectives
    shapes = {(c.axes, c.shape) for c in collectives if c.kind == "all-reduce"}
    assert (("model",), (ROWS // 64, 64, 256)) in shapes
    assert (("data",), (256, 512)) in shapes
    assert (("data",), (1024, 256)) in shapes
    assert "all-gather" not in {c.kind for c in collectives}
