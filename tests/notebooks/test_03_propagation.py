"""Where axes go, and what surprises: placements by the seeds' rules, sizes counted by hand."""

import pytest

NOTEBOOK = "03_propagation.ipynb"
F32 = 4
SIX = {
    "doubled": ("data", "model"),
    "column_sums": ("model",),
    "row_sums": ("data",),
    "transposed": ("model", "data"),
    "reshaped": ("data",),
    "product": ("data",),
}


def stripped(spec):
    """A spec as `P` writes it: without trailing dimensions that are not sharded."""
    entries = [axes[0] if axes else None for axes in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


def specs(report):
    return {value.name: stripped(value.spec) for value in report.outputs}


def at_lines(report):
    """Kinds and axes of the collectives by the name that their line assigns."""
    return {
        report.source.line(c.line).partition(" = ")[0].strip(): (c.kind, c.axes)
        for c in report.collectives
    }


def test_results_get_their_placement_from_the_inputs(notebook):
    assert specs(notebook.report("six")) == SIX


def test_the_arrays_say_the_same_after_the_run(notebook):
    printed = dict(line.split(maxsplit=1) for line in notebook.printed("read").splitlines())
    assert {name: eval(spec[spec.index("(") :]) for name, spec in printed.items()} == SIX  # noqa: S307


def test_each_exchange_of_the_six_stands_at_its_line(notebook):
    assert at_lines(notebook.report("six")) == {
        "column_sums": ("all-reduce", ("data",)),
        "row_sums": ("all-reduce", ("model",)),
        "reshaped": ("all-gather", ("model",)),
        "product": ("all-reduce", ("model",)),
    }


def test_the_lost_axis_of_the_reshape_is_explained(notebook):
    reshaped, product = notebook.printed("why").splitlines()
    assert "model of x was not kept" in reshaped
    assert "contiguous" in reshaped
    assert "contracted" in product


def test_the_type_says_nothing_on_auto_axes(notebook):
    type_, spec = notebook.printed("quiet").split(" | ")
    assert type_ == "float32[8,32]"
    assert "'data'" in spec


def test_an_axis_flows_backward_from_a_stated_result(notebook):
    report = notebook.report("back")
    assert report.collectives == ()
    assert specs(report)["h"] == ("data", "model")
    said = notebook.printed("back-why")
    assert "came from the spec of the output y, backward through add" in said


def test_four_placements_are_none_none_reduce_and_gather(notebook):
    ends = [line.partition("[")[2] for line in notebook.printed("four").splitlines()]
    # The ring of two sends the block of 64 x 1024 once; four devices send a quarter three times.
    reduced, gathered = 64 * 1024 * F32, 128 * 512 * F32 * 3 // 4
    assert ends == ["]  0", "]  0", f"'all-reduce']  {reduced}", f"'all-gather']  {gathered}"]


def test_two_operands_that_want_one_axis_cost_a_gather(notebook):
    (collective,) = notebook.report("conflict").collectives
    assert (collective.kind, collective.shape) == ("all-gather", (256, 256))
    assert (collective.asked_by, collective.reason) == ("inferred", "conflict")
    assert collective.producer == "b"
    assert specs(notebook.report("conflict")) == {"c": ("data",)}


@pytest.mark.parametrize(
    "line",
    [
        "sort(x) all-gather f32[8192] whole-axis",
        "top_k(x, 4) all-gather f32[2, 8192] whole-axis",
        "top_k, batch sharded all-gather f32[64, 128] whole-axis",
        "cumsum(x, -1) all-gather f32[8, 1024] whole-axis",
        "x.at[0:3].set(1) all-gather f32[16, 8] whole-axis",
        "x[::-1] collective-permute f32[2, 8] halo",
        "cholesky, batch sharded no communication",
    ],
)
def test_what_each_operation_wants(notebook, line):
    assert line.split() in notebook.table("whole")


def test_a_batched_fft_depends_on_the_version(notebook):
    version, kinds = notebook.printed("fft").removeprefix("jax ").split(maxsplit=1)
    expected = "['all-gather']" if version.startswith("0.11.") else "[]"
    assert kinds.strip() == expected


def test_a_constraint_that_does_not_fit_is_dropped_and_found(notebook):
    report = notebook.report("uneven")
    kinds = {finding.kind for finding in report.findings}
    assert {"silent replication", "uneven"} <= kinds
    assert specs(report) == {"y": ()}
    (collective,) = report.collectives
    # 17 rows over 8 devices are padded to 3 a device.
    assert (collective.kind, collective.shape) == ("all-gather", (24, 16))
    assert collective.reason == "uneven"


def test_a_stated_output_is_met(notebook):
    report = notebook.report("out")
    assert specs(report) == {"z": ("model", "data")}
    assert {c.asked_by for c in report.collectives} == {"requested"}
    assert {c.reason for c in report.collectives} == {"output-spec"}


def test_a_committed_argument_is_not_moved(notebook):
    name, text = notebook.error("in")
    assert name == "ValueError"
    assert "does not match the sharding on the respective arg" in text
    assert "jax.device_put(doubled" in notebook.shown("in")


def test_what_may_be_placed_is_placed(notebook):
    assert "('model', 'data')" in notebook.printed("in-free")


def test_the_compiled_program_tells_its_shardings(notebook):
    before, after = notebook.printed("compiled").split(" -> ")
    assert "('data', 'model')" in before
    assert "('data',)" in after


def test_the_check_for_tests_passes(notebook):
    (collective,) = notebook.report("tested").collectives
    assert (collective.kind, collective.axes) == ("all-reduce", ("model",))


def test_the_exercise_has_its_answers(notebook):
    report = notebook.report("exercise-run")
    assert specs(report) == {
        "mean": (),
        "centred": ("data", "model"),
        "split": ("data", None, "model"),
    }
    lines = [report.source.line(c.line).partition(" = ")[0] for c in report.collectives]
    assert "split" not in lines
    assert lines.count("centred") == 1
