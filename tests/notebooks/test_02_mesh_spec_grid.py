"""Which device holds which block: grids counted by hand on a 4 x 2 mesh."""

import pytest

NOTEBOOK = "02_mesh_spec_grid.ipynb"
F32 = 4


def inputs(notebook, name):
    return {value.name: value for value in notebook.report(name).inputs}


def test_the_kernels_own_backend_keeps_its_device(notebook):
    assert notebook.shown("start") == "1"
    assert "8 emulated" in notebook.printed("mesh")


@pytest.mark.parametrize(
    ("name", "shard"),
    [
        ("rows", (16 // 4, 8)),
        ("columns", (16, 8 // 2)),
        ("tiles", (4, 4)),
        ("both", (16 // 8, 8)),
        ("turned", (2, 8)),
        ("whole", (16, 8)),
    ],
)
def test_each_spec_cuts_by_the_sizes_of_its_axes(notebook, name, shard):
    value = inputs(notebook, "six")[name]
    assert value.shard_shape == shard
    assert value.shard_bytes == shard[0] * shard[1] * F32


def test_the_bytes_are_printed_for_each(notebook):
    printed = [line[-5] for line in notebook.table("bytes")]
    assert printed == ["128", "256", "64", "64", "64", "512"]


def test_shapes_are_not_run(notebook):
    assert notebook.report("six").run.run_seconds is None


def test_the_exercise_has_the_answer_that_it_gives(notebook):
    # Rows 64:128 are data 1, columns 256: are model 1; device = 2 * data + model.
    assert notebook.printed("exercise-check").splitlines() == ["[3]", "[0, 2, 4, 6]"]


def test_the_transpose_gives_the_devices_by_block(notebook):
    assert notebook.printed("transpose").splitlines() == [
        "('data',) [[0, 1], [2, 3], [4, 5], [6, 7]]",
        "('model',) [[0, 2, 4, 6], [1, 3, 5, 7]]",
        "('data', 'model') [[0], [1], [2], [3], [4], [5], [6], [7]]",
        "('model', 'data') [[0], [2], [4], [6], [1], [3], [5], [7]]",
        "() [[0, 1, 2, 3, 4, 5, 6, 7]]",
    ]


@pytest.mark.parametrize("name", ["uneven-run", "uneven-run-explicit"])
def test_sizes_that_divide_are_named_alike_with_either_type_of_axes(notebook, name):
    said = notebook.refused(name)
    assert "(257) is not divisible by the 4 devices along `data`" in said
    assert "256 or 260" in said  # 4 * 64 and 4 * 65


def test_jaxs_own_error_comes_from_device_put(notebook):
    text = notebook.printed("uneven-plain")
    assert "array axis 0 is partitioned 4 times" in text
    assert "size is 257" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [("twice", "'data' twice"), ("rank", "3 entries"), ("unknown", "the axes are data, model")],
)
def test_what_no_spec_can_say_is_refused_in_a_line(notebook, name, words):
    assert words in notebook.refused(name)


def test_two_thousand_devices_compile(notebook):
    report = notebook.report("large")
    assert report.mesh.size == 64 * 32
    assert inputs(notebook, "large")["big"].shard_shape == (8192 // 64, 8192 // 32)


def test_the_two_constructors_of_a_mesh_differ_in_their_types(notebook):
    assert notebook.printed("types").splitlines() == ["(Auto, Auto)", "(Explicit, Explicit)"]


def test_an_axis_has_its_type_behind_its_size(notebook):
    assert "data=4 (explicit), model=2 (auto)" in notebook.printed("types-run")
