"""What torch_xla 2.9.0 printed for eight devices, and JAX where it accepts the same shape."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.torch import SpmdMesh, from_named_sharding

IN_ORDER = "0,1,2,3,4,5,6,7"
BACKWARDS = "7,6,5,4,3,2,1,0"
PAIRS = "0,4,1,5,2,6,3,7"
EVENS = "0,2,4,6,1,3,5,7"
LAST = " last_tile_dim_replicate"

PRINTED = [
    # mesh shape, axis names, spec, tensor, sharding string, kind, shard
    ((1, 8), None, (0, 1), (1, 8), f"devices=[1,8]{IN_ORDER}", "TILED", (1, 1)),
    ((1, 8), None, (0, 1), (1, 128), f"devices=[1,8]{IN_ORDER}", "TILED", (1, 16)),
    (
        (1, 1, 2, 4), None, (0, 1, 2, 3), (2, 4, 8, 16),
        f"devices=[1,1,2,4]{IN_ORDER}", "TILED", (2, 4, 4, 4),
    ),
    ((1, 8), None, (1, 0), (8, 16), f"devices=[8,1]{IN_ORDER}", "TILED", (1, 16)),
    ((2, 1, 4), None, (1, 2, 0), (4, 8, 16), f"devices=[1,4,2]{PAIRS}", "TILED", (4, 2, 8)),
    (
        (2, 1, 1, 4), None, (3, 1, 2, 0), (32, 4, 8, 16),
        f"devices=[4,1,1,2]{PAIRS}", "TILED", (8, 4, 8, 8),
    ),
    ((2, 4), None, (0, None), (4, 4), f"devices=[2,1,4]{IN_ORDER}{LAST}", "PARTIAL", (2, 4)),
    (
        (2, 1, 4), None, (1, None, 0), (4, 3, 4),
        f"devices=[1,1,2,4]{IN_ORDER}{LAST}", "PARTIAL", (4, 3, 2),
    ),
    ((4, 2), None, (None, 1), (16, 16), f"devices=[1,2,4]{EVENS}{LAST}", "PARTIAL", (16, 8)),
    ((8,), None, (None,), (8,), "replicated", "REPLICATED", (8,)),
    ((8,), None, (0,), (8,), f"devices=[8]{IN_ORDER}", "TILED", (1,)),
    ((8,), None, (0,), (9,), f"devices=[8]{IN_ORDER}", "TILED", (2,)),
    ((2, 4), None, ((0, 1),), (16,), f"devices=[8]{IN_ORDER}", "TILED", (2,)),
    (
        (1, 2, 4), "rbm", (("r", "b"), None), (16, 16),
        f"devices=[2,1,4]{IN_ORDER}{LAST}", "PARTIAL", (8, 16),
    ),
    ((1, 2, 4), "rbm", (None, ("b", "m")), (16, 16), f"devices=[1,8]{IN_ORDER}", "TILED", (16, 2)),
    (
        (1, 2, 4), "rbm", (None, ("r", "m")), (16, 16),
        f"devices=[1,4,2]{PAIRS}{LAST}", "PARTIAL", (16, 4),
    ),
    ((1, 2, 4), "rbm", (None, ("m", "b")), (16, 16), f"devices=[1,8]{PAIRS}", "TILED", (16, 2)),
    (
        (1, 2, 4, 1), "abcd", (("a", "b"), ("c", "d")), (2, 2),
        f"devices=[2,4]{IN_ORDER}", "TILED", (1, 1),
    ),
    ((2, 4), None, (None, 0, 1), (16, 16, 16), f"devices=[1,2,4]{IN_ORDER}", "TILED", (16, 8, 4)),
    ((2, 4, 1), None, (2, 1), (16, 16), f"devices=[1,4,2]{PAIRS}{LAST}", "PARTIAL", (16, 4)),
    ((2, 4), None, (0, 1), (10, 20), f"devices=[2,4]{IN_ORDER}", "TILED", (5, 5)),
    ((2, 4), None, (None, None), (10, 20), "replicated", "REPLICATED", (10, 20)),
    ((2, 4), None, (None, 1), (10, 20), f"devices=[1,4,2]{PAIRS}{LAST}", "PARTIAL", (10, 5)),
    ((1, 8), None, (), (), "replicated", "REPLICATED", ()),
    ((1, 8), ("data", "model"), ("model", "data"), (8, 8), f"devices=[8,1]{IN_ORDER}", "TILED", (1, 8)),
    ((1, 8), None, (0, None), (1, 8), "replicated", "REPLICATED", (1, 8)),
    ((4, 2), None, (None, 1), (1, 2), f"devices=[1,2,4]{EVENS}{LAST}", "PARTIAL", (1, 1)),
    ((8,), ("data",), ("data", None), (8, 8), f"devices=[8,1]{IN_ORDER}", "TILED", (1, 8)),
    ((2, 2, 2), None, (None, None), (4, 4), "replicated", "REPLICATED", (4, 4)),
    ((8, 1), None, (0, None), (8, 8), f"devices=[8,1]{IN_ORDER}", "TILED", (1, 8)),
    ((8,), None, ((), None), (8, 8), "replicated", "REPLICATED", (8, 8)),
]  # fmt: skip


@pytest.mark.parametrize("printed", PRINTED)
def test_a_sharding_is_what_torch_xla_printed(printed):
    shape, names, spec, tensor, text, kind, shard = printed
    sharding = SpmdMesh(range(8), shape, names).sharding(spec)
    assert sharding.hlo == f"{{{text}}}"
    assert sharding.kind == kind
    first = sharding.shards(tensor)[0]
    assert tuple(index.stop - index.start for index in first.index) == shard


def test_device_ids_in_another_order():
    sharding = SpmdMesh(range(7, -1, -1), (1, 8)).sharding((0, 1))
    assert sharding.hlo == f"{{devices=[1,8]{BACKWARDS}}}"
    shards = sharding.shards((10, 20))
    assert shards[7].index == (slice(0, 10), slice(0, 3))
    # Seven shards of 3 columns reach the 20: the last, of device 0, begins beyond and is empty.
    assert shards[1].index == (slice(0, 10), slice(18, 20))
    assert shards[0].index == (slice(0, 10), slice(20, 20))


def test_a_data_loader_ignores_axes_that_are_left_over():
    mesh = SpmdMesh(range(8), (2, 2, 2), "abc")
    assert mesh.sharding(("a", "b")).kind == "PARTIAL"
    loader = mesh.sharding(("a", "b"), data_loader=True)
    assert loader.kind == "TILED"
    whole = SpmdMesh(range(8), (8,), ("data",)).sharding(
        ("data", None, None, None), data_loader=True
    )
    assert whole.hlo == f"{{devices=[8,1,1,1]{IN_ORDER}}}"


@pytest.mark.parametrize(
    ("shape", "spec", "groups", "numbers"),
    [
        ((4, 2), (0, None), ((0, 1), (2, 3), (4, 5), (6, 7)), ((0,), (1,), (2,), (3,))),
        ((4, 2), (None, 1), ((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1),)),
        ((4, 2), (0,), ((0, 1), (2, 3), (4, 5), (6, 7)), (0, 1, 2, 3)),
        ((4, 2), ((0, 1), None), tuple((i,) for i in range(8)), tuple((i,) for i in range(8))),
        ((4, 2), (None, None), (), ()),
        ((2, 2, 2), (None, None), (tuple(range(8)),), ((0,),)),
    ],
)
def test_group_assignment(shape, spec, groups, numbers):
    assert SpmdMesh(range(8), shape).sharding(spec).group_assignment == (groups, numbers)


def test_one_device_is_maximal_until_xla_calls_it_replicated():
    sharding = SpmdMesh([0], (1,)).sharding((0,))
    assert (sharding.requested_kind, sharding.kind, sharding.hlo) == (
        "MAXIMAL",
        "REPLICATED",
        "{replicated}",
    )


def test_groups_are_printed_sorted_whatever_the_order_of_ids():
    sharding = SpmdMesh([3, 2, 1, 0], (2, 2)).sharding((0, None))
    assert sharding.group_assignment[0] == ((3, 2), (1, 0))
    assert sharding.hlo == f"{{devices=[2,1,2]2,3,0,1{LAST}}}"
    assert [(s.device, s.replica_id) for s in sharding.shards((4, 4))] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
    ]


@pytest.mark.parametrize(
    ("ids", "shape", "names", "said"),
    [
        ([], (1,), None, "at least one device"),
        (range(8), (2, 4), ("x",), "expected 2 axis names"),
        (range(8), (2, 4), ("x", "x"), "a name of its own"),
        (range(8), (2, 2), None, "holds 4 devices, got 8 ids"),
        ([1] * 8, (8,), None, "expected each id from 0 to 7 once"),
        (range(9, 17), (8,), None, "expected each id from 0 to 7 once"),
        ([-1, 0], (2,), None, "expected each id from 0 to 1 once"),
        ([0], (-1, -1), None, "at least 1"),
    ],
)
def test_a_mesh_that_is_refused(ids, shape, names, said):
    with pytest.raises(ValueError, match=said):
        SpmdMesh(ids, shape, names)


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ([0, None], TypeError, "did you mean a tuple"),
        (([0],), TypeError, "got the list"),
        (((0, None),), TypeError, "got the NoneType None"),
        (((0, (1,)),), ValueError, "got the tuple"),
        ((True, None), ValueError, "got the bool True"),
        ((0.0, None), ValueError, "got the float"),
        ((np.int64(0), None), ValueError, "got the int64"),
        (("rows", None), ValueError, "'rows', which is not an axis of the mesh: data, model"),
        ((-1, None), ValueError, "uses axis -1"),
        ((2, None), ValueError, "has the axes 0 to 1"),
        ((0, 0), ValueError, "more than once"),
        (((0, 1), 1), ValueError, "'model' more than once"),
        (((), 1), TypeError, "empty tuple"),
        ("data", TypeError, "got the str"),
        ((0, None, None, None, None, None), ValueError, "at most 5 dimensions"),
    ],
)
def test_a_spec_that_is_refused(spec, error, said):
    mesh = SpmdMesh(range(8), (4, 2), ("data", "model"))
    with pytest.raises(error, match=said):
        mesh.sharding(spec)


def test_a_name_on_a_mesh_without_names():
    with pytest.raises(ValueError, match="the mesh has no axis names"):
        SpmdMesh(range(8), (8,)).sharding(("data",))


def test_a_tensor_of_another_rank():
    with pytest.raises(ValueError, match="one entry for each"):
        SpmdMesh(range(8), (8,)).sharding((0,)).shards((8, 8))


def test_six_dimensions_that_are_replicated_are_taken():
    assert SpmdMesh(range(8), (8,)).sharding((None,) * 6).kind == "REPLICATED"


SHAPES = [(8,), (2, 4), (4, 2), (1, 8), (8, 1), (2, 2, 2), (2, 1, 4), (1, 2, 4), (2, 2, 1, 2)]


@st.composite
def shardings(draw):
    """A sharding over eight devices, and a tensor that divides."""
    shape = draw(st.sampled_from(SHAPES))
    ids = draw(st.permutations(range(8)))
    names = draw(st.sampled_from([None, tuple("abcd"[: len(shape)])]))
    rank = draw(st.integers(0, 4))
    free = draw(st.permutations(range(len(shape))))
    spec = []
    for _ in range(rank):
        count = draw(st.integers(0, len(free)))
        axes, free = free[:count], free[count:]
        if names is not None:
            axes = [names[axis] for axis in axes]
        spec.append(None if not axes else axes[0] if len(axes) == 1 else tuple(axes))
    sizes = draw(st.lists(st.sampled_from([8, 16, 24]), min_size=rank, max_size=rank))
    return SpmdMesh(ids, shape, names).sharding(tuple(spec)), tuple(sizes)


@given(shardings())
def test_each_device_holds_what_jax_gives_it(case):
    sharding, shape = case
    devices = jax.devices("cpu")
    named = sharding.named_sharding(devices if len(devices) == 8 else None)
    expected = {
        device.id % 8: tuple(
            slice(index.start or 0, size if index.stop is None else index.stop)
            for index, size in zip(indices, shape, strict=True)
        )
        for device, indices in named.devices_indices_map(shape).items()
    }
    shards = sharding.shards(shape)
    assert {shard.device: shard.index for shard in shards} == expected
    # Equal shards are numbered from 0 without gaps.
    for index in set(expected.values()):
        copies = sorted(s.replica_id for s in shards if s.index == index)
        if math.prod(sharding.tiles) > 1:
            assert copies == list(range(len(copies)))


@given(shardings())
def test_the_iota_is_what_jax_prints(case):
    sharding, shape = case
    named = sharding.named_sharding()
    assert sharding.hlo_iota == str(named._to_xla_hlo_sharding(len(shape)))


@given(shardings())
def test_a_named_sharding_and_back(case):
    sharding, shape = case
    again = from_named_sharding(sharding.named_sharding(), len(shape))
    assert again.mesh.device_ids == sharding.mesh.device_ids
    assert (again.axes, again.hlo, again.kind) == (sharding.axes, sharding.hlo, sharding.kind)


def test_what_torch_xla_has_nothing_alike_for():
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("x",))
    spec = jax.sharding.PartitionSpec(None, None, None)
    with pytest.raises(ValueError, match="at most 2 entries"):
        from_named_sharding(jax.sharding.NamedSharding(mesh, spec), 2)
