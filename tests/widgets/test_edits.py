"""The explorer's edits of many specs, and its searches, as a front end asks for them."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.report import Report
from shardnb.widgets import explore
from shardnb.widgets import searches as searches_module
from shardnb.worker.process import WORKER, Cancelled
from tests.widgets.conftest import Front, layer, shape

OPTIMIZER = optax.sgd(0.1, momentum=0.9)


def train(params, state, x):
    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"]) ** 2)

    updates, state = OPTIMIZER.update(jax.grad(loss)(params), state, params)
    return optax.apply_updates(params, updates), state


@pytest.fixture
def training():
    params = {"w1": shape(64, 128), "w2": shape(128, 64)}
    state = jax.eval_shape(OPTIMIZER.init, params)
    explorer = explore(train, params, state, shape(32, 64), mesh="data=4,model=2")
    yield Front(explorer)
    explorer.close()


def edit(front, kind, name="", plan=None):
    number = front.ask("edit", plan or front.explorer.plan, edit=kind, name=name)
    edited = front.explorer.edited
    assert edited["number"] == number
    return edited


def test_recipes_are_offered_for_the_axes_of_the_plan(training):
    labels = [one["label"] for one in training.explorer.compiled["recipes"]]
    assert labels == [
        "data parallel over data",
        "ZeRO-1 over data",
        "FSDP over data",
        "tensor parallel over model",
        "sequence parallel over model",
        "expert parallel over model",
    ]
    answer = training.preview(training.plan(axes=[("dp", 4, "auto"), ("tp", 2, "auto")]))
    assert [one["label"] for one in answer["recipes"]][3] == "tensor parallel over tp"


def test_a_recipe_gives_a_plan_and_says_what_it_set_and_left(training):
    edited = edit(training, "recipe", "tensor-parallel")
    specs = edited["plan"]["specs"]
    assert specs["params['w1']"] == specs["state[0].trace['w1']"] == [[], ["model"]]
    assert specs["params['w2']"] == specs["state[0].trace['w2']"] == [["model"], []]
    note = edited["note"]
    assert "4 arrays sharded." in note["notes"][0]
    assert "the compiled program below shows what it costs" in " ".join(note["notes"])
    assert "No input is sharded over data." in note["notes"]
    assert note["placed"][0] == ("P(None, 'model')", "params['w1'], state[0].trace['w1']")
    assert note["left"] == (("not a parameter", "x"),)


def test_what_a_recipe_sets_is_previewed_and_compiled_as_any_plan_is(training):
    plan = edit(training, "recipe", "tensor-parallel")["plan"]
    assert training.preview(plan)["kind"] == "preview"
    report = training.compile(plan)
    # The rows of w2 give partial sums. Backwards nothing is summed: no gradient of x is needed.
    assert [(c.kind, c.axes) for c in report.collectives] == [("all-reduce", ("model",))]


def test_a_spec_goes_to_the_optimizer_state_of_its_parameter(training):
    plan = training.plan(**{"params['w1']": [["data"], []]})
    edited = edit(training, "mirror", plan=plan)
    assert edited["plan"]["specs"]["state[0].trace['w1']"] == [["data"], []]
    assert edited["note"]["notes"] == ("2 arrays, each with the spec of its parameter.",)
    assert training.explorer.subject["state"]


def test_without_state_mirroring_says_so(front):
    assert not front.explorer.subject["state"]
    assert "No array belongs to a parameter" in edit(front, "mirror")["note"]["notes"][0]


def test_a_spec_goes_to_all_arrays_alike():
    def net(params, x):
        for name in ("a", "b"):
            x = jnp.tanh(x @ params[name]["kernel"])
        return x

    params = {name: {"kernel": shape(16, 16)} for name in ("a", "b")}
    front = Front(explore(net, params, shape(8, 16), mesh="data=4"))
    alike = {one["pattern"]: one["alike"] for one in front.explorer.subject["inputs"]}
    assert alike["params['a']['kernel']"] == ["params['b']['kernel']"]
    plan = front.plan(**{"params['a']['kernel']": [[], ["data"]]})
    edited = edit(front, "alike", "params['a']['kernel']", plan)
    assert edited["plan"]["specs"]["params['b']['kernel']"] == [[], ["data"]]
    front.explorer.close()


def test_with_explicit_axes_a_recipe_says_why_there_is_none(front):
    axes = [("data", 4, "explicit"), ("model", 2, "explicit")]
    plan = front.plan(axes=axes, x=[["data"], []], W=[[], ["model"]])
    assert "Recipes need a preview by Shardy" in edit(front, "recipe", "fsdp", plan)["refused"]


@pytest.mark.parametrize("content", [{"edit": "recipe", "name": "nope"}, {"edit": "alike"}, {}])
def test_what_is_not_an_edit_is_refused(front, content):
    front.ask("edit", front.explorer.plan, **content)
    assert front.explorer.answer["kind"] == "refused"


# Searches


def search(front, kind, plan=None):
    states = []
    front.explorer.observe(lambda change: states.append(change["new"]["state"]), "search")
    front.ask(kind, plan or front.explorer.compiled["plan"])
    assert front.explorer._searches.wait(120)
    assert states[0] == "running"
    return front.explorer.search


def test_fixes_are_searched_in_a_thread_and_lead_to_plans(front):
    found = search(front, "fix")
    assert found["state"] == "done"
    row = next(row for row in found["rows"] if row["plan"])
    assert "all-reduce[model]" in row["about"]
    report = front.compile(row["plan"])
    # The all-reduce of f32[64, 1024] over two devices sends 256 KiB by the ring. The fix sends less.
    assert report.wire_bytes < 262144
    assert "%%shard --fix" in found["said"]


def test_a_program_without_collectives_has_no_fixes(front):
    plan = front.plan(x=[["data"], []], W=[[], ["model"]])
    front.compile(plan)
    found = search(front, "fix", plan)
    assert found["rows"] == []
    assert found["said"] == "The compiler inserted no collective, so no fix was sought."


def test_plans_are_searched_in_a_thread_and_lead_to_plans(front):
    found = search(front, "plans")
    assert found["state"] == "done", found["said"]
    # W by its columns needs no collective, whatever else.
    row = found["rows"][-1]
    assert "sends nothing" in row["about"]
    assert front.compile(row["plan"]).collectives == ()


def test_the_searches_run_none_of_the_user_s_python_in_the_thread():
    threads = []

    def heard(x, w):
        threads.append(threading.get_ident())
        return jnp.tanh(x @ w)

    specs = (P("data", "model"), P("model"))
    front = Front(
        explore(heard, shape(64, 64), shape(64, 64), mesh="data=4,model=2", in_specs=specs)
    )
    search(front, "fix")
    search(front, "plans")
    assert set(threads) == {threading.get_ident()}
    front.explorer.close()


def test_with_explicit_axes_nothing_is_searched(front):
    axes = [("data", 4, "explicit"), ("model", 2, "explicit")]
    front.ask("fix", front.plan(axes=axes, x=[["data"], []], W=[[], ["model"]]))
    assert front.explorer.search["state"] == "failed"
    assert "Auto axes only" in front.explorer.search["said"]


@pytest.mark.parametrize("way", ["stop-search", "stop", "close"])
def test_a_stopped_search_ends_and_says_so(front, monkeypatch, way):
    begun, leave = threading.Event(), threading.Event()

    def slow(plan, compiled, progress):
        begun.set()
        leave.wait(30)
        progress("edits tried", 1, 2)
        raise AssertionError("not stopped")

    monkeypatch.setattr("shardnb.widgets.explorer.fixes_for", slow)
    front.ask("fix", front.explorer.plan)
    begun.wait(30)
    front.explorer.close() if way == "close" else front.ask(way)
    leave.set()
    assert front.explorer._searches.wait(30)
    assert front.explorer.search["state"] == "done"
    assert front.explorer.search["said"] == "Stopped before anything was compiled."


def test_a_stopped_search_keeps_what_it_found(front, monkeypatch):
    """The compile that another thread cancels is an interrupt for the search."""
    asked = []

    def cancelled(*_, **__):
        asked.append(1)
        raise Cancelled

    monkeypatch.setattr(WORKER, "ask", cancelled)
    found = search(front, "fix")
    assert len(asked) == 1
    assert found["state"] == "done"
    assert "The search for fixes was interrupted: 0 of" in found["said"]


def test_an_error_of_a_search_is_shown(front, monkeypatch):
    def broken(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(searches_module, "find_spec_fixes", broken)
    found = search(front, "fix")
    assert found["state"] == "failed"
    assert found["said"] == "The search failed. OSError: no space left"


def test_a_report_alone_is_not_edited_or_searched():
    front = Front(explore(explore(layer, shape(8, 8), shape(8, 8), mesh="data=4").report))
    for kind in ("edit", "fix", "plans"):
        front.ask(kind, {"axes": [], "specs": {}})
    assert front.explorer.edited == front.explorer.search == {}
    assert Report.from_json(front.explorer.compiled["report"]) == front.explorer.report
