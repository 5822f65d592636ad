"""A transformer on 8 devices: what each layout sends, counted by hand.

L = 2 layers, batch B = 16, sequence S = 64, width D = 256, inner width F = 1024, all f32. A ring of
n sends 2·(n-1)/n of an array for an all-reduce, (n-1)/n for an all-gather or an all-to-all.
"""

from collections import Counter

NOTEBOOK = "09_transformer.ipynb"
LAYERS, B, S, D, F = 2, 16, 64, 256, 1024
F32 = 4
MIB = 2**20
ACTIVATION = (B, S, D)
SQUARE, UP, DOWN = (D, D), (D, F), (F, D)
GRADIENTS = Counter({SQUARE: 4, UP: 1, DOWN: 1})


def kinds(report):
    """How many collectives there are of each kind, axes and number of trips."""
    return Counter((c.kind, c.axes, c.trips) for c in report.collectives)


def shapes(report, kind, phase=None):
    """How many there are of a kind with each shape."""
    return Counter(
        c.shape for c in report.collectives if c.kind == kind and phase in (None, c.phase)
    )


def test_data_parallel_sums_the_gradient_of_each_weight_and_the_loss(notebook):
    report = notebook.report("data")
    assert kinds(report) == {("all-reduce", ("data",), LAYERS): 6, ("all-reduce", ("data",), 1): 1}
    assert shapes(report, "all-reduce") == GRADIENTS + Counter([()])
    assert {(c.asked_by, c.reason) for c in report.collectives} == {("inferred", "partial-sum")}


def test_the_six_gradients_of_a_layer_are_one_exchange(notebook):
    together = [len(c.combined_with) for c in notebook.report("data").collectives]
    assert sorted(together) == [0, 5, 5, 5, 5, 5, 5]


def test_data_parallel_sends_what_the_parameters_weigh(notebook):
    a_layer = (4 * D * D + 2 * D * F) * F32
    assert a_layer == 3 * MIB
    loss = 2 * 4 * 7 // 8
    assert notebook.report("data").wire_bytes == LAYERS * 2 * a_layer * 7 // 8 + loss
    assert all(value.shard_shape == value.shape for value in parameters(notebook.report("data")))


def parameters(report):
    return [value for value in report.inputs if value.name.startswith("params")]


def test_megatron_has_two_all_reduces_of_the_activation_in_each_layer_forward(notebook):
    report = notebook.report("tensor")
    assert kinds(report) == {("all-reduce", ("model",), LAYERS): 2}
    assert shapes(report, "all-reduce") == {ACTIVATION: 2}
    assert report.wire_bytes == LAYERS * 2 * (2 * MIB * 7 // 8)
    assert {(c.asked_by, c.reason) for c in report.collectives} == {("inferred", "partial-sum")}


def test_megatron_step_has_three_exchanges_of_four_sums_backward(notebook):
    report = notebook.report("tensor-step")
    assert kinds(report) == {("all-reduce", ("model",), LAYERS): 6}
    assert shapes(report, "all-reduce") == {ACTIVATION: 6}
    assert sorted(len(c.combined_with) for c in report.collectives) == [0, 0, 0, 2, 2, 2]


def test_fsdp_gathers_each_weight_forward_and_backward(notebook):
    report = notebook.report("fsdp")
    assert shapes(report, "all-gather", "forward") == GRADIENTS
    assert shapes(report, "all-gather", "backward") == GRADIENTS
    gathers = [c for c in report.collectives if c.kind == "all-gather"]
    assert {(c.asked_by, c.reason, c.trips) for c in gathers} == {("inferred", "conflict", LAYERS)}


def test_fsdp_sums_whole_gradients_on_this_compiler(notebook):
    report = notebook.report("fsdp")
    assert shapes(report, "all-reduce") == GRADIENTS + Counter([()])
    assert not shapes(report, "reduce-scatter")


def test_the_counts_that_the_notebook_shows_are_these(notebook):
    shown = notebook.shown("fsdp-counts")
    for line in (
        "('all-gather', 'forward', 2): 6",
        "('all-gather', 'backward', 2): 6",
        "('all-reduce', 'backward', 2): 6",
        "('all-reduce', 'forward', 1): 1",
    ):
        assert line in shown


def test_fsdp_holds_an_eighth_of_the_parameters(notebook):
    whole = LAYERS * (4 * D * D + 2 * D * F) * F32
    assert notebook.shown("memory") == f"({whole}, {whole // 8})"


def test_sequence_parallel_with_one_constraint_gathers_all_weights(notebook):
    report = notebook.report("sequence-first")
    assert shapes(report, "all-gather") == GRADIENTS + Counter({(B, S, 8, D // 8): 2})
    assert {(c.asked_by, c.reason) for c in report.collectives} == {("inferred", "conflict")}


def test_sequence_parallel_with_both_gathers_activations_and_sums_them(notebook):
    report = notebook.report("sequence")
    assert kinds(report) == {
        ("all-gather", ("model",), LAYERS): 2,
        ("all-reduce", ("model",), LAYERS): 2,
    }
    assert {c.shape for c in report.collectives} == {ACTIVATION}
    asked = {(c.kind, c.asked_by) for c in report.collectives}
    assert asked == {("all-gather", "requested"), ("all-reduce", "inferred")}
    assert report.wire_bytes == LAYERS * 2 * 3 * (MIB * 7 // 8)


def test_experts_with_one_constraint_gather_all_tokens(notebook):
    report = notebook.report("moe-first")
    assert {c.kind for c in report.collectives} == {"all-gather", "all-reduce"}
    assert ACTIVATION in shapes(report, "all-gather")
    assert shapes(report, "all-reduce") == {ACTIVATION: 1}


def test_experts_with_both_ends_stated_are_two_all_to_alls(notebook):
    report = notebook.report("moe")
    assert kinds(report) == {("all-to-all", ("expert",), 1): 2}
    assert {c.asked_by for c in report.collectives} == {"requested"}
    # An eighth of 8 experts x 16 groups x 16 slots of D numbers is on each device.
    assert report.wire_bytes == 2 * (8 * 16 * 16 * D * F32 // 8) * 7 // 8


def test_what_experts_send_is_shown_before_and_after(notebook):
    gathered = (MIB + B * S * 4) * 7 // 8
    summed = 2 * MIB * 7 // 8
    moved = 2 * (8 * 16 * 16 * D * F32 // 8) * 7 // 8
    assert notebook.shown("moe-bytes") == f"({gathered + summed}, {moved})"


def test_the_pipeline_permutes_one_micro_batch_a_tick(notebook):
    report = notebook.report("pipeline")
    permute, total = sorted(report.collectives, key=lambda c: c.kind, reverse=True)
    assert (permute.kind, permute.trips, permute.shape) == ("collective-permute", 16 + 7, (4, D))
    assert set(permute.groups) == {(i, (i + 1) % 8) for i in range(8)}
    assert permute.wire_bytes == 4 * D * F32
    assert (total.kind, total.shape) == ("all-reduce", (16, 4, D))
    assert {c.asked_by for c in report.collectives} == {"called"}


def test_two_axes_gather_over_one_and_sum_over_the_other(notebook):
    report = notebook.report("exercise-answer")
    assert kinds(report) == {
        ("all-gather", ("data",), LAYERS): 6,
        ("all-reduce", ("model",), LAYERS): 2,
    }
