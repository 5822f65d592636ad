"""The compiler's own text: notations decoded by hand, and what each stage holds."""

import pytest

NOTEBOOK = "07_reading_the_partitioner.ipynb"
F32 = 4
PAIRS = "[[0, 1], [2, 3], [4, 5], [6, 7]]"
FOURS = "[[0, 2, 4, 6], [1, 3, 5, 7]]"


def test_a_report_keeps_the_program_at_each_stage(notebook):
    assert notebook.printed("start").splitlines() == [
        "jaxpr",
        "stablehlo",
        "before partitioning",
        "after partitioning",
        "optimized",
    ]


def test_shardy_declares_the_mesh_and_names_its_axes(notebook):
    text = notebook.printed("stablehlo")
    assert 'sdy.mesh @mesh = <["data"=4, "model"=2]>' in text
    assert '#sdy.sharding<@mesh, [{"data"}, {"model"}]>' in text
    assert '#sdy.sharding<@mesh, [{"model"}, {}]>' in text


def test_gspmd_writes_strings(notebook):
    text = notebook.printed("gspmd")
    assert 'mhlo.sharding = "{devices=[4,2]<=[8]}"' in text
    assert '"{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"' in text
    assert "sdy" not in text


def test_the_string_decodes_to_the_devices_of_each_half(notebook):
    first, second = notebook.printed("decode").splitlines()
    # model is the fast axis: its index is the parity of the device.
    assert first.endswith("[0 2 4 6]")
    assert second.endswith("[1 3 5 7]")


def test_the_recipe_gives_jaxs_own_string_for_each_spec(notebook):
    rows = notebook.printed("recipe").splitlines()
    assert len(rows) == 6
    assert all(row.startswith("same ") for row in rows)


def test_before_partitioning_all_values_have_a_sharding(notebook):
    lines = notebook.printed("before").splitlines()
    assert len(lines) == 4
    dot = next(line for line in lines if " dot(" in line)
    tanh = next(line for line in lines if " tanh(" in line)
    assert all("f32[256,1024]" in line for line in (dot, tanh))


def test_after_it_the_shapes_are_one_devices_and_the_exchange_is_marked(notebook):
    text = notebook.printed("after")
    assert "main.0_spmd (param: f32[64,256], param.1: f32[256,1024]) -> f32[64,1024]" in text
    (exchange,) = [line for line in text.splitlines() if " all-reduce(" in line]
    assert "f32[64,1024]" in exchange
    assert 'is_spmd_generated="true"' in exchange


def test_groups_are_those_of_the_axes(notebook):
    assert notebook.printed("groups").splitlines() == [
        f"all-reduce ['model'] {PAIRS}",
        f"all-gather ['data'] {FOURS}",
        PAIRS,
        FOURS,
    ]


def test_one_gather_serves_two_products(notebook):
    assert notebook.printed("shared").strip() == "[('all-gather', 'b')]"


def test_three_sums_are_one_instruction_with_three_members(notebook):
    after, optimized, members = notebook.printed("joined").splitlines()
    assert after == "after partitioning 3"
    assert optimized == "optimized 1"
    assert members == "members 3 [(1, 2), (0, 2), (0, 1)]"


def test_a_full_rematerialisation_is_caught(notebook):
    assert [line.rstrip() for line in notebook.printed("remat").splitlines()] == [
        "all-gather (8, 16, 16) requested output-spec full rematerialization",
        "all-gather (16, 16, 16) requested output-spec full rematerialization",
    ]


def test_in_two_steps_blocks_are_exchanged(notebook):
    kinds, sent = notebook.printed("remat-steps").splitlines()
    assert kinds == "['all-to-all', 'all-to-all']"
    # Gathers: 8 x 16 x 16 numbers over the four of x, then all 16 x 16 x 16 over the two of y.
    half = 8 * 16 * 16 * F32
    before = half * 3 // 4 + 2 * half // 2
    # Sends of one device's block: three quarters of it leave over x, a half over y.
    block = 16**3 // 8 * F32
    after = block * 3 // 4 + block // 2
    assert sent == f"{before} bytes before, {after} after"


@pytest.mark.parametrize(
    ("name", "rest"), [("dump", "None | None"), ("folder-read", "inferred | partial-sum")]
)
def test_a_dump_says_what_its_evidence_shows(notebook, name, rest):
    # A ring of two: half of 64 x 1024 numbers, twice.
    sent = 64 * 1024 * F32
    expected = f"all-reduce ('model',) (64, 1024) {sent} | {rest}"
    assert notebook.printed(name).splitlines()[-1] == expected


def test_the_pass_is_named_in_the_files_of_a_dump(notebook):
    names = notebook.printed("folder-read").splitlines()[:-1]
    assert any("before_spmd-partitioning" in name for name in names)
    assert any("after_spmd-partitioning" in name for name in names)


def test_shardy_is_the_default(notebook):
    assert notebook.printed("default").strip() == "True"


def test_the_exercise_reads_back(notebook):
    sharding, groups = notebook.printed("exercise-check").splitlines()
    assert sharding == "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"
    assert groups == FOURS
