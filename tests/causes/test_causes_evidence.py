"""How the causes read what the compiler wrote: shardings, names, warnings."""

from __future__ import annotations

import pytest

from shardnb.causes.phase import phase_of
from shardnb.causes.rematerialisation import read_warnings
from shardnb.report.model import Axis, Mesh
from shardnb.report.op_names import joined_names
from shardnb.report.spec import blocks_of, placed_value
from shardnb.texts.shardings import LayoutReader
from shardnb.texts.shardy_attributes import sharding_text

MESH = Mesh((Axis("data", 4), Axis("model", 2)), tuple(range(8)))
LONG = Mesh((Axis("data", 8),), tuple(range(8)))


def layout(text, rank, mesh=MESH):
    return LayoutReader(mesh).read(text, rank)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{mesh['data'=4,'model'=2], [{'model'}, {'data'}]}", (("model",), ("data",))),
        ("{mesh['data'=4,'model'=2], [{'data', 'model'}, {}]}", (("data", "model"), ())),
        ("{mesh['a'=4,'b'=2], [{'b'}, {'a'}]}", (("model",), ("data",))),
        ("{mesh[], replicated}", ((), ())),
        ("{replicated}", ((), ())),
        ("{devices=[4,2]<=[8]}", (("data",), ("model",))),
        ("{devices=[2,4]<=[4,2]T(1,0)}", (("model",), ("data",))),
        ("{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", (("model",), ())),
        ("{devices=[8,1]<=[4,2]T(1,0)}", (("model", "data"), ())),
        ("{devices=[2,4]0,2,4,6,1,3,5,7}", (("model",), ("data",))),
    ],
)
def test_both_notations_of_a_sharding(text, spec):
    assert layout(text, 2).spec == spec


def test_parts_of_an_axis():
    text = "{mesh['data'=8], [{'data':(1)4}, {'data':(4)2}]}"
    old = "{devices=[4,2]<=[8]}"
    assert layout(text, 2, LONG).spec == (("data:(1)4",), ("data:(4)2",))
    assert layout(old, 2, LONG).spec == (("data:(1)4",), ("data:(4)2",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (((), ("data:(1)2",)), ((), ("model",))),
        (((), ("data:(2)2",)), ((), ("data:(1)2",))),
        ((("data",), ("model",)), (("data:(2)2", "model"), ("data:(1)2",))),
        ((("model", "data:(2)2"), ()), (("data",), ())),
    ],
)
def test_the_layout_before_a_permute_is_what_its_pairs_bring_to_the_one_after(before, after):
    """A device sends to one that must have the block that it holds, as `blocks_of` counts them."""
    held, wanted = (
        blocks_of(placed_value("x", "f32", (16, 16), spec, MESH), MESH) for spec in (before, after)
    )
    free = list(range(8))
    pairs = []
    for source, block in enumerate(held):
        target = next(device for device in free if wanted[device] == block)
        free.remove(target)
        pairs.append((source, target))
    reader = LayoutReader(MESH)
    text = sharding_text("mesh", after).replace('"', "'")
    dims = text[text.index("[") : text.rindex("]") + 1]
    layout = reader.read(f"{{mesh['data'=4,'model'=2], {dims}}}", 2)
    assert layout.spec == after
    assert reader.before_permute(layout, tuple(pairs)).spec == before
    assert reader.before_permute(layout, tuple(pairs[1:])) is None


def test_a_permute_from_a_layout_that_no_axes_describe():
    layout_after = layout("{mesh['data'=4,'model'=2], [{}, {'model'}]}", 2)
    # Devices 0, 1, 2 and 4 hold the first half.
    pairs = ((0, 0), (1, 2), (2, 4), (3, 1), (4, 6), (5, 3), (6, 5), (7, 7))
    assert LayoutReader(MESH).before_permute(layout_after, pairs) is None


def test_devices_in_an_order_that_no_axes_give():
    found = layout("{devices=[8,1]0,2,1,3,4,5,6,7}", 2)
    assert found.spec is None
    assert found.tiles == (8, 1)


def test_a_manual_value_is_one_devices_own():
    assert layout("{mesh['data'=4,'model'=2], manual}", 2).manual
    assert layout("{manual}", 2).shard_shape((3, 5)) == (3, 5)


def test_each_leaf_of_a_tuple_has_its_layout():
    text = "{{mesh[], replicated}, /*index=1*/{mesh['data'=4,'model'=2], [{'data'}, {}]}}"
    first, second = LayoutReader(MESH).leaves(text, (0, 2))
    assert first.spec == ()
    assert second.spec == (("data",), ())


def test_no_sharding_means_whole():
    (found,) = LayoutReader(MESH).leaves(None, (2,))
    assert found.spec == ((), ())


def test_the_block_of_a_size_that_does_not_divide_is_padded():
    found = layout("{mesh['data'=4,'model'=2], [{'data'}]}", 1)
    assert found.shard_shape((17,)) == (5,)
    assert not found.divides((17,))


def test_names_of_a_combined_collective():
    assert joined_names("jit(f)/transpose(jvp())/(dot_general:a/reduce_sum)") == [
        "jit(f)/transpose(jvp())/dot_general",
        "jit(f)/transpose(jvp())/a/reduce_sum",
    ]
    assert joined_names("jit(f)/transpose(jvp())/dot_general") == []
    assert joined_names("jit(f)/jvp()") == []


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("jit(f)/jvp()/dot_general", "forward"),
        ("jit(f)/transpose(jvp())/dot_general", "backward"),
        ("jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot", "rematerialised"),
        ("jit(f)/adam/mul", None),
    ],
)
def test_phase_of_a_program_that_is_differentiated(name, phase):
    assert phase_of(name, differentiated=True) == phase


def test_a_program_that_is_not_differentiated_runs_forward():
    assert phase_of("jit(f)/mul", differentiated=False) == "forward"


WARNING = (
    "W1 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler cannot go "
    "from sharding {a} to {b} efficiently for HLO operation %NAME = f32[8]{0} add(%p, %p), "
    'metadata={op_name="jit(f)/add" stack_frame_id=5}. As the last resort ...\n'
)


def test_warnings_are_told_and_the_rest_is_left():
    warnings = read_warnings("first\n" + WARNING + "last\n")
    assert warnings.keys == {("jit(f)/add", 5)}
    assert warnings.left == "first\nlast\n"


def test_warnings_of_a_scratch_computation_are_dropped():
    warnings = read_warnings(WARNING.replace("%NAME", "%fake_parameter.2"))
    assert not warnings.keys
    assert not warnings.left
