"""Specs for a module of flax.nnx: by its names, by the module itself, and for its optimizer.

Mesh data=4, model=2; 64 rows of 256, an inner width of 1024, all f32.
"""

NOTEBOOK = "13_flax_nnx.ipynb"
F32 = 4
KERNELS, BIASES, ROWS = 2 * 256 * 1024 * F32, (1024 + 256) * F32, 64 // 4


def test_a_module_with_specs_by_name_sends_one_sum(notebook):
    (collective,) = notebook.report("dict").collectives
    assert (collective.kind, collective.axes) == ("all-reduce", ("model",))
    assert collective.shape == (ROWS, 256)
    assert collective.reason == "partial-sum"


def test_a_missing_spec_is_named_in_one_line(notebook):
    assert "the specs given for model have none for model.down" in notebook.refused("missing")


def test_a_replicated_optimizer_is_found(notebook):
    assert "opt_state[0] are replicated over model" in notebook.printed("train")


def test_the_same_specs_shard_the_moments(notebook):
    sizes, kinds = notebook.printed("state").splitlines()
    # up's bias is sharded, down's is not; a count and a step are four bytes each.
    parameters = KERNELS // 2 + 1024 * F32 // 2 + 256 * F32
    rest = 8 + ROWS * 256 * F32
    before = parameters + 2 * (KERNELS + BIASES) + rest
    assert sizes.startswith(f"{before:,} -> {3 * parameters + rest:,} bytes")
    assert "state unlike parameters" not in kinds


def test_an_annotated_module_needs_no_specs(notebook):
    assert notebook.printed("annotated").split() == ["P(None,", "'model')", "P('model',", "None)"]
    collectives, findings = notebook.printed("annotated-step").splitlines()
    assert "('all-reduce', ('data',), (256, 512))" in collectives
    assert "('all-reduce', ('data',), (512, 256))" in collectives
    assert "all-gather" not in collectives
    assert "state unlike parameters" not in findings
