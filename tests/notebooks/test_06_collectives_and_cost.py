"""What each kind sends, and six placements of one product: sums done by hand."""

import pytest

NOTEBOOK = "06_collectives_and_cost.ipynb"
F32 = 4
KIB = 1024
BLOCK = 8 * 1024 * F32  # one device's part of 64 x 1024
M = 8


@pytest.mark.parametrize(
    ("name", "kind", "holds", "sends"),
    [
        ("all_gather", "all-gather", M * BLOCK, (M - 1) * BLOCK),
        ("psum", "all-reduce", BLOCK, 2 * BLOCK * (M - 1) // M),
        ("psum_scatter", "reduce-scatter", BLOCK // M, BLOCK * (M - 1) // M),
        ("all_to_all", "all-to-all", BLOCK, BLOCK * (M - 1) // M),
        ("ppermute", "collective-permute", BLOCK, BLOCK),
    ],
)
def test_each_kind_has_the_price_of_its_picture(notebook, name, kind, holds, sends):
    rows = {row[0]: row[1:] for row in notebook.table("kinds")}
    assert rows[name] == [kind, "holds", str(holds), "sends", str(sends)]


def test_an_all_reduce_is_a_scatter_and_a_gather(notebook):
    both, reduce = notebook.printed("both").splitlines()
    half = 28 * KIB
    assert both == f"[('reduce-scatter', {half}), ('all-gather', {half})] {2 * half}"
    assert reduce == str(2 * half)


def kib(rows, columns, over=1):
    return rows * columns * F32 // over // KIB


A, WHOLE = kib(512, 512), kib(512, 512)


@pytest.mark.parametrize(
    ("name", "sends", "holds", "kinds"),
    [
        ("rows", 0, A // 4 + WHOLE + A // 4, "none"),
        ("tiles", 0, A // 4 + A // 2 + A // 8, "none"),
        # A block of the result is 128 x 512, and a ring of two sends it once.
        ("contraction", A // 4, A // 8 + A // 2 + A // 4, "all-reduce['model']"),
        # Four devices gather 1 MiB: each sends its quarter three times.
        ("stored sharded", A * 3 // 4, A // 4 + A // 4 + A // 4, "all-gather['data']"),
        ("same axis twice", A * 3 // 4, A // 4 + A // 4 + A // 4, "all-gather['data']"),
        # Half of the rows, 512 KiB, out of quarters.
        ("only A sharded", A // 2 * 3 // 4, A // 8 + WHOLE + A // 2, "all-gather['data']"),
    ],
)
def test_six_placements_of_one_product(notebook, name, sends, holds, kinds):
    lines = notebook.printed("six").splitlines()[1:]
    rows = {
        part[0].strip(): [p.strip() for p in part[1:]] for part in (x.split("|") for x in lines)
    }
    assert rows[name] == [str(sends), str(holds), kinds]


def test_the_chosen_one_passes_what_is_forbidden(notebook):
    assert notebook.report("forbid").collectives == ()


def test_seconds_come_only_with_hardware_and_its_assumptions(notebook):
    said = notebook.printed("seconds")
    assert "tiles []" in said
    assert "priced as if for TPU v5e" in said
    # V (m-1)/m over w: 1 MiB, m = 4, 45 GB/s each way, one direction of a line of four.
    assert f"all-gather {1e6 * 2**20 * 3 / 4 / 45e9:.1f} us" in said


def test_a_gather_in_a_loop_is_paid_on_each_trip(notebook):
    (collective,) = notebook.report("loop").collectives
    assert (collective.kind, collective.shape, collective.trips) == ("all-gather", (64, 64), 4)
    assert (collective.reason, collective.asked_by) == ("conflict", "inferred")
    assert collective.total_wire_bytes == 4 * 64 * 64 * F32 * 7 // 8


def test_summing_once_sends_a_quarter(notebook):
    once = 2 * 64 * 64 * F32 * 7 // 8
    auto, manual = notebook.printed("accumulate-compare").splitlines()
    assert auto == f"{4 * once} bytes in 4 trips"
    assert manual == f"{once} bytes in 1 trip"


def test_the_repeated_sum_is_a_finding(notebook):
    kinds = [finding.kind for finding in notebook.report("accumulate").findings]
    assert "accumulation" in kinds


def test_three_gradients_travel_together(notebook):
    collectives = notebook.report("combined").collectives
    assert [(c.kind, c.shape) for c in collectives] == [("all-reduce", (64, 64))] * 3
    for c in collectives:
        assert set(c.combined_with) == {0, 1, 2} - {c.id}
        assert c.phase == "backward"
