"""Bytes on one device: the compiler's figures against sums done by hand."""

import pytest

NOTEBOOK = "08_bytes_per_device.ipynb"
F32, BF16 = 4, 2
MIB = 2**20


def test_replicated_and_split_weigh_what_a_published_course_prints(notebook):
    rows = {row[0]: tuple(map(int, row[1:])) for row in notebook.table("numbers")}
    assert rows["replicated"] == (2097152, 1048576, 0)
    assert rows["split"] == (786432, 131072, 0)


def test_both_follow_from_the_shapes():
    assert (2 * 512 * 512 * F32, 512 * 512 * F32) == (2097152, 1048576)
    assert ((128 * 512 + 512 * 256) * F32, 128 * 256 * F32) == (786432, 131072)


@pytest.mark.parametrize("name", ["replicated", "split"])
def test_shapes_without_arrays_are_not_run(notebook, name):
    assert notebook.report(name).run.run_seconds is None


def test_a_momentum_left_replicated_takes_seven_mib_too_many(notebook):
    forgotten, sharded = notebook.printed("waste").splitlines()
    assert "2 arrays of momentum are replicated over data" in forgotten
    assert "1.0 MiB per device instead of 8.0 MiB (7 MiB per device)" in forgotten
    assert sharded == "[]"


def test_what_is_stored_in_pieces_is_whole_while_it_is_used(notebook):
    report = notebook.report("stored")
    (collective,) = report.collectives
    assert (collective.kind, collective.bytes) == ("all-gather", 4 * MIB)
    memory = report.memory
    assert memory.arguments == 2 * 4 * MIB // 8
    assert memory.temporaries >= 4 * MIB
    printed = notebook.printed("stored-numbers").split()
    assert printed[1] == str(MIB)
    assert int(printed[5]) == MIB + memory.temporaries + 4 * MIB // 8


def test_a_donated_argument_counts_once(notebook):
    piece = 1024 * 1024 * F32 // 8
    kept, donated = notebook.printed("donate").splitlines()
    assert kept.endswith(f"arguments {2 * piece} outputs {piece} aliased 0 = {3 * piece}")
    assert donated.endswith(f"arguments {2 * piece} outputs {piece} aliased {piece} = {2 * piece}")


def count_of(layers, d=4096, hidden=11008, vocabulary=32000):
    block = 4 * d * d + 3 * d * hidden + 2 * d
    return layers * block + 2 * vocabulary * d


def test_the_models_weights_are_counted(notebook):
    weights = count_of(32)
    said = f"{weights / 1e9:.2f} billion weights, {BF16 * weights / 2**30:.1f} GiB in bfloat16"
    assert notebook.printed("model").strip() == said
    assert said.startswith("6.74 billion")


def test_what_fits_into_sixteen_gib(notebook):
    verdicts = [line.split()[-1] for line in notebook.printed("fits").splitlines()]
    held = [count_of(32) * 16 / parts / 2**30 for parts in (1, 8, 8, 64, 256)]
    assert verdicts == ["fits" if one < 16 else "no" for one in held]
    assert verdicts[0] == "no"


def test_the_compiler_counts_twelve_bytes_a_weight(notebook):
    arguments, rest = notebook.printed("ask").splitlines()
    weights = count_of(2)
    assert arguments == f"arguments {weights * (2 + 4 + 4 + 2) // 64} bytes per weight 12.0"
    # Weights and both moments are given back; the gradient is not.
    assert rest == f"aliased {weights * (2 + 4 + 4) // 64} collectives 0"


def test_the_exercise_fits_where_both_axes_cut(notebook):
    rows = [line.split("  ")[1:] for line in notebook.printed("exercise").splitlines()]
    whole = 8192 * 4096 * BF16
    assert [int(row[-2]) for row in rows] == [whole // 16, whole // 256, whole // 16, whole // 256]
    assert [row[-1] for row in rows] == ["False", "True", "False", "True"]
