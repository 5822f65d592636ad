"""Plans of whole programs, against traffic worked out by hand."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.engine import explain
from shardnb.mesh import make_grid
from shardnb.search.plans import plan
from tests.benchmarks.bench_plans import beats, left_out
from tests.needs import needs_gpu_compiler
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


ADAM = optax.adam(1e-3)


def trained_mlp(params, state, x, y):
    def loss(params):
        h = x
        for p in params:
            h = h + jax.nn.gelu(h @ p["up"]) @ p["down"]
        return jnp.mean((h - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = ADAM.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


PARAMS = [{"up": f32(256, 1024), "down": f32(1024, 256)}] * 2
TRAINED = (PARAMS, jax.eval_shape(ADAM.init, PARAMS), f32(4096, 256), f32(4096, 256))


@pytest.fixture(scope="module")
def trained():
    return plan(trained_mlp, *TRAINED, mesh="data=2,model=2", previews=20, compiles=9)


def test_the_megatron_layout_sends_least_at_its_memory():
    arguments = transformer_arguments()
    found = plan(transformer, *arguments, mesh="model=8", previews=20, compiles=4)
    one = next(o for o in found if is_megatron(o, "model", x=((), (), ())))
    assert dict(one.collectives) == {"all-reduce[model]": 4}
    # Two all-reduces a layer of the activations: each sends 2·(7/8) of them.
    assert one.wire_bytes == 4 * 2 * 7 * (BATCH * LENGTH * WIDTH * 4) // 8
    assert all(o.wire_bytes > one.wire_bytes for o in found if o.memory < one.memory)


def test_the_megatron_layout_is_found_beside_data_parallelism():
    arguments = transformer_arguments()
    found = plan(transformer, *arguments, mesh="data=4,model=2", previews=20, compiles=8)
    one = next(o for o in found if is_megatron(o, "model", x=(("data",), (), ())))
    # On a quarter of the batch, 2·(1/2) of it is sent four times.
    assert one.wire_bytes == 4 * (BATCH // 4 * LENGTH * WIDTH * 4)


def test_no_placement_is_faster_than_the_best_plan_without_repeating_work():
    arguments = f32(8, 64), f32(64, 256), f32(256, 64)
    specs = itertools.product((P(), P("model"), P(None, "model")), repeat=3)
    reports = [
        explain(mlp, *arguments, mesh="model=2", in_specs=each, origins=False) for each in specs
    ]
    least = min(report.work.flops for report in reports)
    sound = [report for report in reports if report.work.flops <= 1.2 * least]
    fastest = min(report.on_hardware("h100").cost.step_seconds for report in sound)
    best = plan(mlp, *arguments, mesh="model=2", compiles=6).best
    assert best.seconds <= fastest
    # Data parallel: nothing is sent where nothing is trained.
    assert (best.layout, best.wire_bytes) == ({"model": "data-parallel"}, 0)


def test_a_column_then_a_row_send_one_all_reduce(small):
    # 6 rows cannot be divided among 4 devices, so tensor parallelism is what is left.
    one = small.best
    assert one.layout == {"model": "tensor-parallel"}
    assert dict(one.specs) == {"x": ((), ()), "up": ((), ("model",)), "down": (("model",), ())}
    assert one.wire_bytes == 2 * 3 * (6 * 512 * 4) // 4


def test_no_plan_is_the_best_in_which_devices_repeat_work(small):
    # All replicated, four devices each do all of the work and send nothing.
    whole = explain(mlp, *MLP, mesh="model=4", in_specs=P())
    assert whole.work.flops > 1.2 * small.least_work
    assert all(small.work(each) <= 1.2 for each in small)


def test_the_same_seed_gives_the_same_plans(small):
    assert plan(mlp, *MLP, mesh="model=4", previews=80, compiles=8) == small


def test_a_faster_plan_comes_before_a_smaller_one(trained):
    seconds = [each.seconds for each in trained]
    memory = [each.memory for each in trained]
    assert seconds == sorted(seconds)
    assert memory == sorted(memory, reverse=True)


def test_no_recipe_beats_a_plan_of_a_training_step(trained):
    rest = left_out(trained)
    assert len(rest) + len(trained.beaten) + len(trained) >= trained.recipes
    assert not [(one.layout, each.layout) for one in rest for each in trained if beats(one, each)]


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

    found = plan(trained_mlp, *TRAINED, mesh="model=4", previews=40, compiles=8, progress=stop)
    assert found.compiled == 3  # the first of them splits nothing
    assert len(found) >= 1
    assert any("interrupted" in note for note in found.notes)


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
    allowed = small[0].memory
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
    assert found.compiled <= 12  # two of them split nothing


def test_of_three_axes_the_products_of_few_recipes_are_estimated():
    found = plan(mlp, f32(8, 512), *MLP[1:], mesh="a=2,b=2,c=2", previews=0, compiles=1)
    # With 5 choices for each there are 125; 49 products are looked at, and some are the same.
    assert found.looked == 49
    assert 0 < found.recipes < 49


def test_plans_on_a_hardware_are_compared_by_seconds():
    wide = f32(4096, 2048), f32(2048, 8192), f32(8192, 2048)
    found = plan(mlp, *wide, mesh="model=4", hardware="v5e", previews=60, compiles=6)
    # To split the work four ways takes less than to do all of it everywhere and send nothing.
    assert found.best.flops == pytest.approx(2 * 2 * 4096 * 2048 * 8192 / 4, rel=0.01)
    assert found.best.cost.hardware == "TPU v5e"


@needs_gpu_compiler
@pytest.mark.parametrize(
    ("mesh", "target", "among_hosts"),
    [("data=4,model=2", "h100:8", 0), ("data=4,model=8", "h100:4x8", 1)],
)
def test_plans_for_a_gpu_cluster_are_estimated_for_its_hosts(mesh, target, among_hosts):
    def slopes(weights, x):
        return jax.grad(lambda weights: jnp.mean(mlp(x, *weights) ** 2))(weights)

    sizes = (f32(64, 256), f32(256, 64)), f32(1024, 64)
    found = plan(slopes, *sizes, mesh=mesh, on=target, previews=10, compiles=2)
    assert {one.mesh.target for one in found} == {target}
    assert f"time, estimated for NVIDIA H100 SXM ({target}): the longer" in str(found)
    assert all(one.cost.hardware == "NVIDIA H100 SXM" for one in found)
    # The axis `data` is over the hosts where there are several: what it sends leaves them.
    plans = [*found, *found.beaten]
    assert sum(one.wire_bytes for one in plans)
    reached = {axis for one in plans for axis, sent in one.cost.crossing.items() if sent[1]}
    assert reached <= {"data"} if among_hosts else not reached
    # Nothing is said of hardware that nobody named: the cluster is.
    assert not any("no hardware was named" in note for note in found.notes)


@needs_gpu_compiler
def test_other_hardware_than_the_cluster_is_not_said_to_be_the_cluster():
    found = plan(mlp, *MLP, mesh="model=4", on="h100:4", hardware="h200", previews=10, compiles=2)
    assert "time, estimated for NVIDIA H200 SXM: the longer" in str(found)


@needs_gpu_compiler
def test_an_interrupt_of_plans_for_a_gpu_cluster_keeps_what_was_found():
    def stop(what, done, total):
        if what == "plans compiled" and done == 1:
            raise KeyboardInterrupt

    found = plan(mlp, *MLP, mesh="model=4", on="h100:4", previews=10, compiles=4, progress=stop)
    assert any("interrupted" in note for note in found.notes)
    again = plan(mlp, *MLP, mesh="model=4", on="h100:4", previews=10, compiles=1)
    assert len(again) >= 1


def test_arrays_that_are_closed_over_are_said_to_take_no_part():
    w = jnp.ones((64, 64))
    found = plan(lambda x: x @ w, f32(64, 64), mesh="model=2", previews=10, compiles=2)
    assert found.notes[-1].startswith("1 array that the function closes over took no part")


def test_explicit_axes_are_refused():
    with pytest.raises(ValueError, match="the mesh axis model is explicit"):
        plan(mlp, *MLP, mesh="model=4:explicit")


# The code of a plan


def executed(plans, number, **names):
    """Run the code of a plan as pasted, where the emulated devices are those of `jax.devices`."""
    code = plans.code(number)
    axes = plans[number].mesh.shape.items()
    mesh = make_grid(",".join(f"{axis}={size}" for axis, size in axes)).mesh
    lines = [line for line in code.splitlines() if not line.startswith("mesh = ")]
    assert len(lines) == len(code.splitlines()) - 1
    made = {"mesh": mesh, **names}
    exec("\n".join(lines), made)  # noqa: S102 - what the user would paste
    return made


def test_the_code_of_a_plan_makes_the_mesh(small):
    made = "mesh = jax.make_mesh((4,), ('model',), axis_types=(AxisType.Auto,) * 1)"
    assert made in small.code(0).splitlines()


def test_the_code_of_a_plan_runs_and_sends_the_same(small):
    made = executed(small, 0, mlp=mlp)
    text = made["mlp"].lower(*MLP).compile().as_text()
    assert dict(small[0].collectives) == {"all-reduce[model]": text.count(" all-reduce(")}


def test_the_code_of_a_training_step_donates_and_keeps_the_state_where_it_was(trained):
    number = next(n for n, each in enumerate(trained) if "fsdp" in each.layout.values())
    params, state, x, y = (jax.tree.map(lambda s: jnp.ones(s.shape, s.dtype), a) for a in TRAINED)
    made = executed(trained, number, trained_mlp=trained_mlp, params=params, state=state)
    assert "donate_argnums=(0, 1)" in trained.code(number)
    expected = trained_mlp(params, state, x, y)
    placed = [
        jax.device_put(array, made[f"{name}_sharding"])
        for name, array in (("params", params), ("state", state), ("x", x))
    ]
    placed.append(jax.device_put(y, made["x_sharding"]))
    before = jax.tree.map(lambda array: array.sharding, placed[:2])
    given = jax.tree.leaves(placed[:2])
    result = made["trained_mlp"](*placed)
    assert all(array.is_deleted() for array in given)
    assert jax.tree.map(lambda array: array.sharding, list(result[:2])) == before
    for own, other in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert jnp.allclose(own, other, rtol=1e-4, atol=1e-6)


def test_the_code_has_a_rule_for_what_layers_have_in_common(trained):
    number = next(n for n, each in enumerate(trained) if "fsdp" in each.layout.values())
    rules = [line for line in trained.code(number).splitlines() if line.startswith('    r"')]
    # `up` by its columns, `down` by its rows: of the parameters, and of both moments.
    assert len(rules) == 2
    assert len(jax.tree.leaves(TRAINED[:2])) == 3 * 4 + 1


def test_the_code_of_a_tree_of_other_nodes_goes_by_paths():
    class Layer(NamedTuple):
        w: jax.Array

    def fn(layers, x):
        for one in layers:
            x = x @ one.w
        return x

    layers = [Layer(f32(64, 64)) for _ in range(3)]
    found = plan(fn, layers, f32(3, 64), mesh="model=2", previews=20, compiles=4)
    made = executed(found, 0, fn=fn, layers=layers)
    text = made["fn"].lower(layers, f32(3, 64)).compile().as_text()
    assert sum(found[0].collectives.values()) == text.count(" all-gather(") > 0


def test_users_python_is_traced_once_for_all_placements_and_once_for_constraints():
    runs = []

    def counted(x, w):
        runs.append(1)
        return jnp.tanh(x @ w)

    plan(counted, f32(64, 64), f32(64, 64), mesh="model=2", previews=20, compiles=4)
    assert len(runs) == 2
