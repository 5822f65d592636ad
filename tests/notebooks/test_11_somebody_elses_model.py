"""An accidental all-gather in flax's layers: what each device sends, by hand.

Mesh data=2, model=4; a batch of 16 x 128 tokens of width 256, 8 heads, inner width 1024, all f32.
"""

import pytest

NOTEBOOK = "11_somebody_elses_model.ipynb"
ROWS, TOKENS, WIDTH, HEADS, INNER = 16 // 2, 128, 256, 8, 1024
F32 = 4
SCORES = (ROWS, HEADS, TOKENS, TOKENS)
EACH_HEAD = (ROWS, TOKENS, HEADS, WIDTH // HEADS)
BY_THE_RULE = {
    ("all-reduce", SCORES),
    ("all-reduce", (ROWS, TOKENS)),
    ("all-gather", EACH_HEAD),
    ("all-gather", (ROWS, TOKENS, WIDTH)),
    ("all-gather", (ROWS, TOKENS, INNER)),
}


def found(report):
    return {(c.kind, c.shape) for c in report.collectives}


@pytest.mark.parametrize("cell", ["watch", "explain"])
def test_the_rule_costs_six_collectives_over_model(notebook, cell):
    report = notebook.report(cell)
    assert found(report) == BY_THE_RULE
    assert len(report.collectives) == 6
    assert {c.axes for c in report.collectives} == {("model",)}


def test_a_watched_program_says_why_as_one_does_that_shardnb_compiles(notebook):
    watched, explained = (
        sorted((c.kind, c.shape, c.asked_by, c.reason) for c in report.collectives)
        for report in (notebook.report("watch"), notebook.report("explain"))
    )
    assert watched == explained


def test_a_compiled_one_says_that_nobody_did_and_why(notebook):
    reasons = {(c.kind, c.asked_by, c.reason) for c in notebook.report("explain").collectives}
    assert reasons == {
        ("all-reduce", "inferred", "partial-sum"),
        ("all-gather", "inferred", "conflict"),
    }


def test_each_stands_at_the_line_of_the_model_that_led_to_it(notebook):
    report = notebook.report("explain")
    lines = {c.shape: report.sources[1].line(c.frames[0].line) for c in report.collectives}
    assert "MultiHeadDotProductAttention" in lines[SCORES]
    assert "MultiHeadDotProductAttention" in lines[EACH_HEAD]
    assert 'name="down"' in lines[ROWS, TOKENS, INNER]


def test_gathers_are_for_the_kernels_that_the_text_names(notebook):
    why = {c.shape: c.why for c in notebook.report("explain").collectives}
    assert "params['attention']['out']['kernel']" in why[EACH_HEAD]
    assert "params['mlp']['down']['kernel']" in why[ROWS, TOKENS, INNER]


def test_the_split_of_y_comes_from_x_and_from_a_kernel(notebook):
    assert "data came from x" in notebook.printed("why")
    assert "kernel" in notebook.printed("why")


def test_a_fix_splits_the_rows_of_the_second_kernel(notebook):
    (gather,) = notebook.report("fix").collectives
    edits = {fix.edit: fix for fix in gather.fixes}
    fix = edits["mlp['down']['kernel']=P('model')"]
    # Gathering 1024 columns, or adding up 256 twice around.
    gathered = ROWS * TOKENS * INNER * F32 * 3 // 4
    summed = 2 * ROWS * TOKENS * WIDTH * F32 * 3 // 4
    assert fix.wire_bytes == (gathered, summed)


def test_the_rule_by_name_leaves_two_sums_of_the_activations(notebook):
    report = notebook.report("after")
    assert [(c.kind, c.shape) for c in report.collectives] == [
        ("all-reduce", (ROWS, TOKENS, WIDTH))
    ] * 2


def test_bytes_before_and_after_are_these(notebook):
    sums = 2 * (ROWS * HEADS * TOKENS * TOKENS + 2 * ROWS * TOKENS)
    gathers = ROWS * TOKENS * (WIDTH + WIDTH + INNER)
    before = (sums + gathers) * F32 * 3 // 4
    after = 2 * 2 * ROWS * TOKENS * WIDTH * F32 * 3 // 4
    assert notebook.printed("bytes").strip() == f"{before:,} -> {after:,} bytes"


def test_the_numbers_stay(notebook):
    assert notebook.shown("same") == "True"
