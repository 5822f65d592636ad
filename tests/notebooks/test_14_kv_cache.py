"""Inference with a cache: what one token sends, by the sharding of the cache.

Eight devices along `model`; 8 sequences, 8 heads of 32, 512 positions, 2 layers, all f32.
"""

import pytest

NOTEBOOK = "14_kv_cache.ipynb"
F32, LAYERS, BATCH, HEADS, SIZE, LENGTH = 4, 2, 8, 8, 32, 512
WIDTH = HEADS * SIZE
TOKENS = BATCH * WIDTH * F32
CACHE = 2 * LAYERS * BATCH * LENGTH * HEADS * SIZE * F32
SUM = 2 * TOKENS * 7 // 8
GATHER = TOKENS * 7 // 8
SCALARS = 2 * BATCH * HEADS * F32 * 7 // 8


def test_a_cache_sharded_by_heads_sends_one_sum_for_each_layer(notebook):
    collectives = notebook.report("heads").collectives
    assert [(c.kind, c.axes, c.shape) for c in collectives] == [
        ("all-reduce", ("model",), (BATCH, WIDTH))
    ] * LAYERS
    assert {c.wire_bytes for c in collectives} == {SUM}


@pytest.mark.parametrize(
    ("name", "sent", "kinds"),
    [
        ("heads", LAYERS * SUM, "{'all-reduce': 2}"),
        # The maximum and the sum of the softmax, the weighted values, and the output's sum.
        (
            "length",
            LAYERS * (3 * GATHER + 2 * SCALARS + 2 * SUM),
            "{'all-gather': 6, 'all-reduce': 8}",
        ),
        ("replicated", LAYERS * SUM + CACHE * 7 // 8, "{'all-gather': 4, 'all-reduce': 2}"),
    ],
)
def test_what_a_token_sends(notebook, name, sent, kinds):
    lines = notebook.printed("compare").splitlines()
    (line,) = [line for line in lines if line.startswith(name)]
    assert line.split()[2] == f"{sent:,}"
    assert line.endswith(kinds)


def test_donation_reuses_the_cache(notebook):
    plain, donated = notebook.printed("donate").splitlines()
    assert plain.endswith("aliased 0")
    assert donated.endswith(f"aliased {CACHE // 8}")


def test_with_the_batch_sharded_too_a_sum_is_half_as_large(notebook):
    half = BATCH // 2 * WIDTH * F32
    expected = [("all-reduce", ("model",), (BATCH // 2, WIDTH), 2 * half * 3 // 4)] * LAYERS
    assert notebook.printed("exercise-check").strip() == str(expected)
