"""Golden reports: what is kept of a report, and what changed."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.golden import Entry, Golden, changes
from shardnb.views.golden import differences, golden_of


def layer(x, w):
    h = jnp.tanh(x @ w)
    return h.sum(1)


SUMMED = P("data", "model"), P("model")
GATHERED = P("model", "data"), P()


def report(fn=layer, mesh="data=4,model=2", specs=SUMMED, rows=256):
    shapes = (rows, 512), (512, 1024)
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return sn.explain(fn, *args, mesh=mesh, in_specs=specs, origins=False)


def moved(x, w):
    """The same program, some lines further down."""
    h = jnp.tanh(x @ w)
    return h.sum(1)


def test_a_collective_is_known_by_line_operation_kind_and_axes():
    (entry,) = golden_of(report()).entries
    assert entry.key == ("h = jnp.tanh(x @ w)", "dot_general", "all-reduce", ("model",))
    # 64 rows and 1024 columns of floats on each device; a ring of 2 sends as much.
    assert (entry.number, entry.wire_bytes) == (1, 2**18)
    assert entry.place.startswith("line ")
    assert "partial sum" in entry.why


def test_a_program_that_moved_in_its_file_is_the_same():
    assert changes(golden_of(report()), golden_of(report(moved))) == ()


def test_json_is_read_back_and_has_a_line_for_each_collective():
    golden = golden_of(report())
    assert Golden.from_json(golden.to_json()) == golden
    assert json.loads(golden.to_json())["entries"][0]["kind"] == "all-reduce"
    (line,) = [line for line in golden.to_json().splitlines() if "all-reduce" in line]
    assert "h = jnp.tanh(x @ w)" in line
    assert Golden.from_json(Golden("data=8").to_json()) == Golden("data=8")


def test_what_changed_is_said_with_place_and_cause():
    before = golden_of(report())
    after = golden_of(report(specs=GATHERED))
    gone, came = differences(before, after)
    assert gone.startswith("-1 all-reduce[model], 256 KiB per run at line ")
    # Each device sends its 128 x 128 floats of x to 3 others.
    assert came.startswith("+1 all-gather[data], 192 KiB per run at line ")
    assert "because x is sharded over data on its contracting dimension" in came


def test_other_bytes_of_the_same_collectives_are_a_change():
    (line,) = differences(golden_of(report()), golden_of(report(rows=512)))
    assert line.startswith(
        "1 all-reduce[model], 512 KiB per run instead of 256 KiB per run at line "
    )


def test_another_mesh_is_a_change():
    lines = differences(golden_of(report()), golden_of(report(mesh="data=2,model=2")))
    assert lines[0] == "the mesh is data=2,model=2 instead of data=4,model=2"


def test_unknown_bytes_are_said_to_be_unknown():
    entry = Entry("y", "while", "all-reduce", ("data",), 1, None)
    (line,) = differences(Golden("data=4"), Golden("data=4", (entry,)))
    assert line == "+1 all-reduce[data], unknown bytes per run: y"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a golden report"),
        ("[]", "not a golden report"),
        ('{"mesh": "data=4", "entries": [{"kind": "all-reduc"}]}', "not a golden report"),
        ('{"version": 9, "mesh": "data=4"}', "version 9, and this shardnb reads up to 1"),
        (
            '{"mesh": "d", "entries": [{"line": "", "op": "", "kind": "all-reduce", "axes": [], "number": -1}]}',
            "expected counts that can be",
        ),
    ],
)
def test_what_is_not_one_is_refused(text, message):
    with pytest.raises(sn.InvalidInput, match=message):
        Golden.from_json(text)
