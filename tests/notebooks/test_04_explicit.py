"""Placement in the type: what JAX refuses, what it takes, and what each answer sends."""

import pytest

NOTEBOOK = "04_explicit.ipynb"
F32 = 4
MODEL_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
# Per device: a block of 64 x 1024, of which a ring of two sends half, twice.
REDUCED = 64 * 1024 * F32


def test_the_placement_is_in_the_type(notebook):
    assert notebook.printed("type-shown").strip() == (
        "float32[256@data,512@model] | float32[512@model,1024] | float32[256@data,512@model]"
    )


def test_on_auto_axes_it_is_not(notebook):
    assert notebook.printed("type-auto-shown").strip() == "float32[256,512] | float32[512,1024]"


def test_a_pending_sum_is_refused(notebook):
    name, text = notebook.error("refused")
    assert name == "ShardingTypeError"
    assert "lhs_contracting_spec=('model',) and rhs_contracting_spec=('model',)" in text


def test_the_refusal_lists_answers_with_their_price(notebook):
    rows = [line.split("  ") for line in notebook.shown("refused").splitlines()]
    answers = {
        row[1].strip(): [part.strip() for part in row[2:] if part.strip()]
        for row in rows
        if len(row) > 3
    }
    pending = answers["jnp.matmul(x, W, out_sharding=P('data', None, unreduced={'model'}))"]
    whole = answers["jnp.matmul(x, W, out_sharding=P('data', None))"]
    assert pending[:2] == ["none", "0 B"]
    assert whole[:2] == ["all-reduce[model]", "256 KiB"]
    assert REDUCED == 256 * 1024


def test_the_answer_gives_the_all_reduce_that_auto_gives_and_it_is_requested(notebook):
    (collective,) = notebook.report("explicit").collectives
    assert (collective.kind, collective.groups) == ("all-reduce", MODEL_PAIRS)
    assert (collective.shape, collective.wire_bytes) == ((64, 1024), REDUCED)
    assert (collective.asked_by, collective.reason) == ("requested", "partial-sum")


def test_the_type_of_each_intermediate_is_shown(notebook):
    assert "b:f32[256@data,1024] = tanh a" in notebook.shown("explicit")


def test_auto_and_explicit_run_the_same_instructions(notebook):
    error, line, sentence, header = notebook.printed("compare-ask").splitlines()
    assert error == "ShardingTypeError"
    assert line == "y = jnp.tanh(jnp.matmul(x, W, out_sharding=P('data', None)))"
    assert sentence.startswith("identical")
    assert header == "('allow_spmd_sharding_propagation_to_output',)"


def test_a_longer_function_needs_one_annotation(notebook):
    said = notebook.shown("longer")
    assert "1 annotation" in said
    assert "compiles to the same collectives" in said
    assert "return x + jnp.matmul(h, down, out_sharding=P('data', None))" in said


def test_an_axis_twice_is_refused_and_resharding_moves_one_operand(notebook):
    assert notebook.error("add")[0] == "ShardingTypeError"
    (collective,) = notebook.report("add-fixed").collectives
    # A block is 256 x 128; three quarters of it go to the three others.
    assert (collective.kind, collective.axes) == ("all-to-all", ("data",))
    assert collective.wire_bytes == 256 * 128 * F32 * 3 // 4
    assert collective.asked_by == "requested"


def test_a_reshape_of_a_split_dimension_is_refused(notebook):
    assert notebook.error("reshape")[0] == "ShardingTypeError"
    assert "out_sharding" in notebook.error("reshape")[1]
    (output,) = notebook.report("reshape-fixed").outputs
    assert output.spec == ((), ("data",), ())


def test_a_constraint_only_asserts(notebook):
    assert notebook.error("constraint")[0] == "AssertionError"
    assert "Fix: jax.sharding.reshard(s, P(None, 'data'))" in notebook.shown("constraint")


def test_a_pending_sum_is_reduced_once_where_it_is_needed(notebook):
    report = notebook.report("pending")
    assert [(c.kind, c.axes, c.bytes) for c in report.collectives] == [
        ("all-reduce", ("model",), REDUCED)
    ]
    pending = {value.name: value.unreduced for value in report.outputs}
    assert pending == {"parts": ("model",), "twice": ("model",), "y": ()}


def test_an_expensive_placement_passes(notebook):
    (collective,) = notebook.report("gathered").collectives
    assert (collective.kind, collective.shape) == ("all-gather", (128, 512))
    assert collective.asked_by == "inferred"


def test_an_operation_without_a_split_form_gathers_in_silence(notebook):
    report = notebook.report("hidden")
    (collective,) = report.collectives
    assert (collective.kind, collective.shape) == ("all-gather", (64, 128))
    assert (collective.asked_by, collective.reason) == ("inferred", "whole-axis")
    assert {value.spec for value in report.outputs} == {(("data",), ())}


def test_the_places_that_raise_are_those_of_the_version(notebook):
    _, version, count = notebook.printed("sites").split()
    assert int(count) == {"0.11.0": 53}.get(version, int(count))
    assert int(count) >= 53


@pytest.mark.parametrize("name", ["exercise-one", "exercise-three"])
def test_two_products_of_the_exercise_are_refused(notebook, name):
    assert notebook.error(name)[0] == "ShardingTypeError"


def test_the_third_is_taken_and_gathers(notebook):
    (collective,) = notebook.report("exercise-two").collectives
    # Four devices along data put 256 x 256 together: each sends its quarter three times.
    assert (collective.kind, collective.wire_bytes) == ("all-gather", 256 * 256 * F32 * 3 // 4)
    assert collective.asked_by == "inferred"


def test_types_of_axes_mix(notebook):
    report = notebook.report("mixed")
    assert [axis.type for axis in report.mesh.axes] == ["explicit", "auto"]
    assert report.collectives == ()
    assert "256@data" in notebook.shown("mixed")
