"""Plans of whole programs, against traffic worked out by hand."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.engine import explain
from shardnb.mesh import make_grid
from shardnb.search.plans import plan
from tests.search.models import (
    BATCH,
    LENGTH,
    MLP,
    WIDTH,
    f32,
    mlp,
    transformer,
    transformer_arguments,
)


def is_megatron(one, axis, x):
    """Whether heads and hidden units are sharded over an axis, on the way out, then on the way in."""
    columns = dict.fromkeys("qkv", ((), (axis,), ())) | {"up": ((), (axis,))}
    rows = {"o": ((axis,), (), ()), "down": ((axis,), ())}
    wanted = {f"params[*]['{name}']": spec for name, spec in (columns | rows).items()}
    return dict(one.specs) == {**wanted, "x": x}


@pytest.fixture(scope="module")
def small():
    return plan(mlp, *MLP, mesh="model=4", previews=80, compiles=8)


def test_the_megatron_layout_sends_least_at_its_memory():
    arguments = transformer_arguments()
    found = plan(transformer, *arguments, mesh="model=8", previews=120, compiles=6)
    one = next(o for o in found if is_megatron(o, "model", x=((), (), ())))
    assert dict(one.collectives) == {"all-reduce[model]": 4}
    # Two all-reduces a layer of the activations: each sends 2·(7/8) of them.
    assert one.wire_bytes == 4 * 2 * 7 * (BATCH * LENGTH * WIDTH * 4) // 8
    assert all(o.wire_bytes > one.wire_bytes for o in found if o.memory < one.memory)


def test_the_megatron_layout_is_found_beside_data_parallelism():
    arguments = transformer_arguments()
    found = plan(transformer, *arguments, mesh="data=4,model=2", previews=300, compiles=8)
    one = next(o for o in found if is_megatron(o, "model", x=(("data",), (), ())))
    # On a quarter of the batch, 2·(1/2) of it is sent four times.
    assert one.wire_bytes == 4 * (BATCH // 4 * LENGTH * WIDTH * 4)


def test_the_front_is_that_of_every_placement_compiled():
    arguments = f32(8, 64), f32(64, 256), f32(256, 64)
    specs = itertools.product((P(), P("model"), P(None, "model")), repeat=3)
    reports = [
        explain(mlp, *arguments, mesh="model=2", in_specs=each, origins=False) for each in specs
    ]
    every = {(report.memory.total, report.wire_bytes) for report in reports}
    best = {p for p in every if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in every)}
    assert {(o.memory, o.wire_bytes) for o in plan(mlp, *arguments, mesh="model=2")} == best


def test_the_first_plan_of_all_splits_nothing_and_sends_nothing(small):
    assert (small.best.wire_bytes, small.best.collectives) == (0, {})


def test_a_column_then_a_row_send_one_all_reduce(small):
    one = small[1]
    assert dict(one.specs) == {"x": ((), ()), "up": ((), ("model",)), "down": (("model",), ())}
    assert one.wire_bytes == 2 * 3 * (6 * 512 * 4) // 4


def test_the_same_seed_gives_the_same_plans(small):
    assert plan(mlp, *MLP, mesh="model=4", previews=80, compiles=8) == small


def test_plans_rise_in_memory_and_fall_in_traffic(small):
    assert [o.memory for o in small] == sorted(o.memory for o in small)
    sent = [o.wire_bytes for o in small]
    assert sent == sorted(sent, reverse=True)


def test_a_plan_holds_and_sends_what_its_report_says(small):
    report = small.report(0)
    assert (report.memory.total, report.wire_bytes) == (small[0].memory, small[0].wire_bytes)


def test_the_specs_of_a_plan_are_what_explain_takes(small):
    report = explain(mlp, *MLP, mesh="model=4", in_specs=small.in_specs(0))
    assert report.wire_bytes == small[0].wire_bytes


def test_an_interrupt_keeps_what_was_found():
    def stop(what, done, total):
        if what == "plans compiled" and done == 2:
            raise KeyboardInterrupt

    found = plan(mlp, *MLP, mesh="model=4", previews=40, compiles=8, progress=stop)
    assert found.compiled == 3  # the first of them splits nothing
    assert len(found) >= 1
    assert "interrupted" in found.notes[0]


def test_an_interrupt_before_anything_was_compiled_keeps_the_start():
    def stop(what, done, total):
        if what == "placements estimated":
            raise KeyboardInterrupt

    found = plan(mlp, *MLP, mesh="model=4", progress=stop)
    assert [o.wire_bytes for o in found] == [0]


def test_an_interrupt_among_the_meshes_keeps_those_that_were_compiled():
    def stop(what, done, total):
        if done == 1:
            raise KeyboardInterrupt

    found = plan(mlp, *MLP, mesh=4, progress=stop)
    assert (found.compiled, found.looked) == (1, 0)


def test_a_plan_fits_in_the_memory_that_is_allowed(small):
    allowed = (small[0].memory + small[-1].memory) // 2
    found = plan(mlp, *MLP, mesh="model=4", memory=allowed, previews=80, compiles=8)
    assert found.best.memory <= allowed


def test_memory_that_no_plan_fits_in_is_said():
    found = plan(mlp, *MLP, mesh="model=4", memory="64KiB", previews=60, compiles=4)
    assert len(found) == 0
    assert "no plan that was compiled holds 64 KiB or less a device" in found.notes[-1]
    with pytest.raises(ValueError, match="the least holds"):
        _ = found.best


def test_an_argument_that_the_user_places_stays_there():
    specs = {"up": P("model")}
    found = plan(mlp, *MLP, mesh="model=4", in_specs=specs, previews=40, compiles=4)
    assert {o.specs["up"] for o in found} == {(("model",), ())}


def test_an_argument_that_a_rule_places_stays_there_on_axes_of_one_size():
    """The axes are alike, so a search may change their names, but not where the user wrote them."""

    def apply(params, x):
        return mlp(x, params["up"], params["down"])

    rule = sn.rules({"up": P(None, "model")})
    found = plan(
        apply,
        {"up": MLP[1], "down": MLP[2]},
        MLP[0],
        mesh="data=2,model=2",
        in_specs=(rule, P("data")),
        previews=40,
        compiles=4,
    )
    assert {o.specs["params['up']"] for o in found} == {((), ("model",))}
    assert {o.specs["x"] for o in found} == {(("data",), ())}
    assert any("from the rule /up/ = P(None, 'model')" in note for note in found.notes)


def test_a_number_of_devices_takes_every_mesh():
    found = plan(mlp, f32(8, 512), *MLP[1:], mesh=4, previews=60, compiles=10)
    assert {tuple(o.mesh.shape.values()) for o in found} <= {(4,), (2, 2)}
    assert found.compiled == 12  # two of them split nothing


def test_plans_on_a_hardware_are_compared_by_seconds():
    wide = f32(4096, 2048), f32(2048, 8192), f32(8192, 2048)
    found = plan(mlp, *wide, mesh="model=4", hardware="v5e", previews=60, compiles=6)
    # To split the work four ways takes less than to do all of it everywhere and send nothing.
    assert found.best.flops == pytest.approx(2 * 2 * 4096 * 2048 * 8192 / 4, rel=0.01)
    assert found.best.cost.hardware == "TPU v5e"


def test_arrays_that_are_closed_over_are_said_to_take_no_part():
    w = jnp.ones((64, 64))
    found = plan(lambda x: x @ w, f32(64, 64), mesh="model=2", previews=10, compiles=2)
    assert found.notes[0].startswith("1 array that the function closes over took no part")


def test_explicit_axes_are_refused():
    with pytest.raises(ValueError, match="the mesh axis model is explicit"):
        plan(mlp, *MLP, mesh="model=4:explicit")


def test_the_code_of_a_tree_of_other_nodes_goes_by_paths():
    class Layer(NamedTuple):
        w: jax.Array

    def fn(layers, x):
        for one in layers:
            x = x @ one.w
        return x

    layers = [Layer(f32(64, 64)) for _ in range(3)]
    found = plan(fn, layers, f32(4, 64), mesh="model=2", previews=20, compiles=3)
    made = {"mesh": make_grid("model=2").mesh, "layers": layers}
    lines = [line for line in found.code(0).splitlines() if not line.startswith("mesh = ")]
    exec("\n".join(lines), made)  # noqa: S102 - what the user would paste
    specs = found.in_specs(0)["layers"]
    assert [one.w.spec for one in made["shardings"][0]] == [one.w for one in specs]


def test_the_code_of_a_plan_runs_and_sends_the_same(small):
    # One device is attached here: the mesh of the text is made of emulated ones.
    made = {"mesh": make_grid("model=4").mesh}
    lines = [line for line in small.code(1).splitlines() if not line.startswith("mesh = ")]
    assert "mesh = jax.make_mesh((4,), ('model',), axis_types=(AxisType.Auto,) * 1)" in small.code(
        1
    )
    exec("\n".join(lines), made)  # noqa: S102 - what the user would paste
    text = jax.jit(mlp, in_shardings=made["shardings"]).lower(*MLP).compile().as_text()
    assert dict(small[1].collectives) == {"all-reduce[model]": text.count(" all-reduce(")}


def test_users_python_does_not_run_for_each_placement():
    runs = []

    def counted(x, w):
        runs.append(1)
        return jnp.tanh(x @ w)

    plan(counted, f32(64, 64), f32(64, 64), mesh="model=2", previews=20, compiles=4)
    assert len(runs) == 1
