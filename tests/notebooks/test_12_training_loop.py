"""A training loop: what the optimizer's state costs, what donation saves, how often it compiles.

Eight devices along `data`; two parameters of 1 MiB each, Adam's two moments of the same shapes.
"""

NOTEBOOK = "12_training_loop.ipynb"
MIB = 2**20
PARAMETERS, MOMENTS, COUNT = 2 * MIB, 4 * MIB, 4
BATCH = 2 * 64 * 256 * 4


def test_the_forgotten_state_is_found_with_what_it_wastes(notebook):
    findings = {f.kind: f for f in notebook.report("forgotten").findings}
    assert findings["state unlike parameters"].wasted_bytes == MOMENTS - MOMENTS // 8
    assert "returned otherwise" in findings


def test_the_state_like_the_parameters_wastes_nothing(notebook):
    sizes, kinds = notebook.printed("sharded-bytes").splitlines()
    before = PARAMETERS // 8 + MOMENTS + COUNT + BATCH // 8
    after = PARAMETERS // 8 + MOMENTS // 8 + COUNT + BATCH // 8
    assert sizes.startswith(f"{before:,} -> {after:,} bytes")
    _, _, left = kinds.partition("->")
    assert "state unlike parameters" not in left
    assert "returned otherwise" not in left


def test_donation_reuses_parameters_and_state(notebook):
    plain, donated = notebook.printed("donation").splitlines()
    assert plain.startswith("() aliased 0 ")
    assert donated.startswith(f"(0, 1) aliased {(PARAMETERS + MOMENTS) // 8 + COUNT} ")


def test_three_steps_compile_one_program(notebook):
    assert notebook.printed("compiled").startswith("1 program; ")
    assert notebook.printed("training") == "the loss fell: True\n"


def test_data_parallel_sends_the_gradients_twice_but_an_eighth(notebook):
    kinds, _, sent = notebook.printed("exercise-check").rpartition(" ")
    assert set(kinds.strip("[]").replace("'", "").split(", ")) == {"all-reduce"}
    # The loss is a number of four bytes more: 2 * 4 * 7 / 8.
    assert int(sent) == 2 * PARAMETERS * 7 // 8 + 7
