"""The program of one device: shapes, varying sets and verdicts, worked out by hand."""

import pytest

NOTEBOOK = "05_manual.ipynb"
F32 = 4
MODEL_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))


def test_the_sum_that_was_written_is_called(notebook):
    (collective,) = notebook.report("product").collectives
    assert (collective.kind, collective.groups) == ("all-reduce", MODEL_PAIRS)
    assert (collective.shape, collective.bytes) == ((64, 1024), 64 * 1024 * F32)
    assert (collective.asked_by, collective.generated) == ("called", False)


def test_the_body_sees_blocks_and_what_they_vary_over(notebook):
    types = notebook.shown("product")
    assert "f32[64,256]{V:(data,model)}" in types
    assert "f32[256,1024]{V:model}" in types
    assert "pvary[axes=('data',)] c    # inserted by JAX" in types
    assert "f32[64,1024]{V:data} = psum_invariant[axes=('model',)]" in types


def test_the_result_is_whole_and_right(notebook):
    shape, rest = notebook.printed("product-mark").split(") ", 1)
    assert shape == "(256, 1024"
    assert "'data'" in rest
    assert rest.split()[-1] == "1.0"  # tanh(512)


def test_the_checker_accepts_the_body_with_the_sum(notebook):
    said = notebook.shown("check")
    assert "accepted by JAX" in said
    assert "refused" not in said


def test_without_the_sum_it_is_refused_and_the_sum_is_named(notebook):
    said = notebook.shown("missing")
    assert "refused by JAX, ValueError" in said
    assert "missing: psum over model" in said
    assert "Fix: jax.lax.psum(x @ W, 'model')" in said


def test_the_cell_without_the_sum_is_refused_before_it_runs(notebook):
    name, text = notebook.error("missing-cell")
    assert name == "ValueError"
    assert "replicated across mesh axis 'model'" in text
    assert "check_vma=False" in text
    assert "y = jax.lax.psum(x @ W, 'model')" in notebook.shown("missing-cell")


def test_unchecked_it_gives_half_of_the_sum(notebook):
    # Each of two devices sums 256 ones out of 512.
    assert notebook.printed("off").split() == ["256.0", "instead", "of", "512.0"]


@pytest.mark.parametrize(
    ("name", "varying", "kinds"),
    [
        ("psum", "()", ["all-reduce"]),
        ("pmean", "()", ["all-reduce"]),
        ("pmax", "()", ["all-reduce"]),
        ("pmin", "()", ["all-reduce"]),
        ("all_gather", "('data',)", ["all-gather"]),
        ("psum_scatter", "('data',)", ["reduce-scatter"]),
        ("all_to_all", "('data',)", ["all-to-all"]),
        ("ppermute", "('data',)", ["collective-permute"]),
        ("pswapaxes", "('data',)", ["all-to-all"]),
        ("axis_index", "('data',)", []),
    ],
)
def test_what_each_collective_does_to_the_varying_set(notebook, name, varying, kinds):
    rows = {row[0]: row[1:] for row in notebook.table("collectives")}
    assert rows[name] == [varying, str(kinds)]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("psum-whole", "ValueError", "varying"),
        ("unbound", "NameError", "unbound axis name: data"),
        ("carry", "TypeError", "scan body function carry input and carry output"),
    ],
)
def test_errors_that_everybody_meets(notebook, name, kind, words):
    found, text = notebook.error(name)
    assert found == kind
    assert words in text


def test_the_carry_is_mended_by_a_cast(notebook):
    assert "jax.lax.pcast(0.0, 'data', to='varying')" in notebook.shown("carry")
    assert notebook.printed("carry-result").split() == [f"{256 * 512}.0", "=", f"{256 * 512}"]


def test_one_row_does_not_go_over_eight_devices(notebook):
    assert "dimension 0 (1) is not divisible by the 8 devices" in notebook.refused("row-run")


def test_a_pending_result_has_to_be_stated_as_it_is(notebook):
    verdict, message = notebook.printed("pending").strip().split("\n", 1)
    assert verdict == "False - ValueError"
    assert "unreduced" in message


def test_at_the_edge_the_compiler_moves_what_lies_otherwise(notebook):
    (collective,) = notebook.report("outside").collectives
    assert (collective.kind, collective.axes) == ("all-to-all", ("data",))
    assert (collective.asked_by, collective.reason) == ("requested", "output-spec")
    # 256 x 128 on a device, three quarters of it for others.
    assert collective.wire_bytes == 256 * 128 * F32 * 3 // 4


def test_the_region_carries_the_specs_and_the_manual_axes(notebook):
    region = notebook.printed("lower")
    assert "sdy.manual_computation" in region
    assert 'in_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"model"}, {}]>]' in region
    assert 'out_shardings=[<@mesh, [{"data"}, {}]>]' in region
    assert 'manual_axes={"data", "model"}' in region


def test_the_older_partitioner_has_markers_and_axes_of_size_one_have_none(notebook):
    markers, regions = notebook.printed("lower-old").splitlines()
    assert markers == "['SPMDFullToShardShape', 'SPMDShardToFullShape']"
    assert regions == "True False"


def test_the_exercise_sends_one_row(notebook):
    report = notebook.report("exercise-run")
    (collective,) = report.collectives
    assert (collective.kind, collective.bytes) == ("all-reduce", 8 * F32)
    # A ring of eight: seven eighths of the row, twice.
    assert collective.wire_bytes == 2 * 8 * F32 * 7 // 8
    assert "sharded and unsharded agree" in notebook.shown("exercise-run")
