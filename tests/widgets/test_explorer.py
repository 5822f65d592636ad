"""The explorer answers a front end: previews, compiled programs, refusals, pins."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report import Report
from shardnb.widgets import Explorer, explore
from tests.needs import needs_gpu_compiler, needs_libtpu
from tests.widgets.conftest import Front, layer, shape

WHOLE = [[], []]


def specs_of(values):
    return {value.name: value.spec for value in values}


def test_it_begins_with_the_compiled_program_of_the_first_plan(explorer):
    assert [(c.kind, c.axes) for c in explorer.report.collectives] == [("all-reduce", ("model",))]
    assert explorer.plan["specs"] == {"x": [["data"], ["model"]], "W": [["model"], []]}
    assert Report.from_json(explorer.compiled["report"]).collectives == explorer.report.collectives


def test_a_click_is_answered_by_a_preview_of_where_arrays_lie(front):
    answer = front.preview(front.plan(x=[["data"], []], W=[[], ["model"]]))
    assert answer["kind"] == "preview"
    report = Report.from_json(answer["report"])
    assert specs_of(report.outputs) == {"result": (("data",), ("model",))}
    assert specs_of(report.values)["h"] == (("data",), ("model",))
    assert report.inputs[0].shard_shape == (64, 512)


def test_a_preview_claims_nothing_of_collectives_or_memory(front):
    report = Report.from_json(front.preview(front.plan(x=WHOLE))["report"])
    assert report.collectives == ()
    assert report.memory is None


def test_the_compiled_program_comes_from_a_thread(front):
    report = front.compile(front.plan(x=[["data"], []], W=[[], ["model"]]))
    assert report.collectives == ()
    assert specs_of(report.outputs) == {"result": (("data",), ("model",))}
    assert front.explorer.report == report


def test_a_plan_s_program_is_the_one_that_explain_compiles(front):
    plan = front.plan(x=[[], ["model"]], W=[["model"], ["data"]])
    report = front.compile(plan)
    own = sn.explain(
        *(layer, shape(256, 512), shape(512, 1024)),
        mesh="data=4,model=2",
        in_specs=(P(None, "model"), P("model", "data")),
    )
    assert not own.diff(report)
    assert [c.why for c in report.collectives] == [c.why for c in own.collectives]


def test_another_mesh_has_a_preview_and_a_program(front):
    axes = [("data", 2, "auto"), ("model", 8, "auto")]
    plan = front.plan(axes=axes)
    preview = Report.from_json(front.preview(plan)["report"])
    assert preview.mesh.shape == {"data": 2, "model": 8}
    assert preview.outputs[0].shard_shape == (128, 1024)
    report = front.compile(plan)
    assert report.mesh.size == 16
    assert specs_of(report.outputs) == specs_of(preview.outputs)
    assert [len(group) for c in report.collectives for group in c.groups] == [8, 8]


def test_renamed_axes_are_a_plan_like_any_other(front):
    axes = [("dp", 4, "auto"), ("tp", 2, "auto")]
    plan = front.plan(axes=axes, x=[["dp"], ["tp"]], W=[["tp"], []])
    assert Report.from_json(front.preview(plan)["report"]).outputs[0].spec == (("dp",), ())
    assert front.compile(plan).collectives[0].axes == ("tp",)


def test_explicit_axes_have_no_preview_and_are_compiled(front):
    axes = [("data", 4, "explicit"), ("model", 2, "explicit")]
    plan = front.plan(axes=axes, x=[["data"], []], W=[[], ["model"]])
    answer = front.preview(plan)
    assert (answer["kind"], "types" in answer["said"]) == ("none", True)
    assert front.compile(plan).outputs[0].spec == (("data",), ("model",))


def test_a_program_that_jax_refuses_is_explained_in_place(front):
    axes = [("data", 4, "explicit"), ("model", 2, "explicit")]
    before = dict(front.explorer.compiled)
    answer = front.compile(front.plan(axes=axes, x=[["data"], ["model"]], W=[["model"], []]))
    assert answer["kind"] == "failed"
    assert "x @ W" in answer["said"]
    assert front.explorer.compiled == before


@needs_libtpu
def test_a_program_that_does_not_fit_is_shown_with_what_it_needs():
    wide = shape(1 << 17, 1 << 17)  # 64 GiB; a chip of v5e has 16 GB
    found = explore(lambda x: (x * 2).sum(), wide, mesh="data=8", on="v5e:2x4", in_specs=P("data"))
    front = Front(found)
    report = front.compile(front.plan(x=[[], []]))
    found.close()
    (finding,) = (f for f in report.findings if f.kind == "out-of-memory")
    assert "64.00 GiB" in finding.message


@needs_gpu_compiler
@pytest.mark.parametrize(
    ("mesh", "target"), [("data=4,model=2", "h100:8"), ("data=4,model=8", "h100:4x8")]
)
def test_a_gpu_cluster_is_explored_and_its_compile_may_be_interrupted(mesh, target, monkeypatch):
    specs = (P("data", "model"), P("model"))
    found = explore(layer, shape(256, 512), shape(512, 1024), mesh=mesh, on=target, in_specs=specs)
    front = Front(found)
    # Each device has a part of the columns of x: what it sums, all along `model` get.
    plan = front.plan(x=[["data"], ["model"]], W=[["model"], []])
    report = front.compile(plan)
    assert (report.mesh.target, report.cost.hardware) == (target, "NVIDIA H100 SXM")
    assert {(one.kind, one.axes, one.reason) for one in report.collectives} == {
        ("all-reduce", ("model",), "partial-sum")
    }
    assert report.cost.communication_seconds > 0

    begun, compile_ = threading.Event(), found._subject.compiled

    def slow(plan, trace):
        begun.set()
        return compile_(plan, trace)

    monkeypatch.setattr(found._subject, "compiled", slow)
    before = dict(found.compiled)
    front.ask("compile", front.plan(x=WHOLE, W=WHOLE))
    assert begun.wait(30)
    front.ask("stop")
    assert found._worker.wait(60)
    assert found.compiled == before
    monkeypatch.undo()
    assert not front.compile(front.plan(x=WHOLE, W=WHOLE)).collectives
    found.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": [["model", "data"], ["model"]]}, "uses the mesh axis 'model' twice"),
        ({"x": [["nope"], []]}, "names the mesh axis 'nope'"),
        ({"axes": [("data", 3, "auto"), ("model", 2, "auto")]}, "is not divisible"),
        ({"axes": [("<b>", 4, "auto")]}, "is not a mesh axis"),
        ({"axes": [("data", 4, "odd")]}, "is not an axis type"),
        ({"axes": [("data", 4, "auto"), ("data", 2, "auto")]}, "names the axis 'data' twice"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_its_reason(front, change, words):
    before = dict(front.explorer.compiled)
    for kind in ("preview", "compile"):
        front.ask(kind, front.plan(**change))
        assert front.explorer.answer["kind"] == "refused"
        assert words in front.explorer.answer["said"]
    assert front.explorer.compiled == before


@pytest.mark.parametrize("content", [None, 3, {}, {"axes": 1, "specs": []}, {"axes": [{}]}])
def test_what_is_no_plan_is_refused(front, content):
    front.ask("preview", content)
    assert front.explorer.answer["kind"] == "refused"


def test_a_plan_that_was_compiled_is_shown_at_once(front):
    first = front.explorer.plan
    front.compile(front.plan(x=WHOLE))
    number = front.ask("preview", first)
    assert front.explorer.compiled["number"] == number
    assert front.explorer.report.collectives


def test_of_waiting_compiles_only_the_newest_is_done(front, monkeypatch):
    explorer, begun, leave = front.explorer, threading.Event(), threading.Event()
    compiled = []
    compile_ = explorer._subject.compiled

    def slow(plan, trace):
        compiled.append(plan.data["specs"]["x"])
        begun.set()
        leave.wait(30)
        return compile_(plan, trace)

    monkeypatch.setattr(explorer._subject, "compiled", slow)
    front.ask("compile", front.plan(x=WHOLE))
    begun.wait(30)
    front.ask("compile", front.plan(x=[["model"], []]))
    last = front.ask("compile", front.plan(x=[["data"], []]))
    leave.set()
    assert explorer._worker.wait(60)
    assert compiled == [WHOLE, [["data"], []]]
    assert explorer.compiled["number"] == last


@pytest.mark.parametrize("way", ["stop", "interrupt", "close"])
def test_nothing_comes_of_a_compile_that_was_stopped(front, monkeypatch, way):
    explorer, begun, leave = front.explorer, threading.Event(), threading.Event()
    compile_ = explorer._subject.compiled

    def slow(plan, trace):
        begun.set()
        leave.wait(30)
        return compile_(plan, trace)

    monkeypatch.setattr(explorer._subject, "compiled", slow)
    before = dict(explorer.compiled)
    front.ask("compile", front.plan(x=WHOLE))
    begun.wait(30)
    if way == "stop":
        front.ask("stop")
    elif way == "close":
        explorer.close()
    else:
        interrupted = type("Result", (), {"error_in_exec": KeyboardInterrupt()})
        explorer._after_cell(interrupted)
    leave.set()
    assert explorer._worker.wait(60)
    assert explorer.compiled == before


def test_the_user_s_python_is_traced_once_for_a_mesh():
    traced = []

    def heard(x):
        traced.append(threading.get_ident())
        return jnp.sin(x)

    explorer = explore(heard, shape(8, 8), mesh="data=4")
    front = Front(explorer)
    front.compile(front.plan(x=[["data"], []]))
    front.compile(front.plan(x=[[], ["data"]]))
    assert traced == [threading.get_ident()]
    front.compile(front.plan(axes=[("data", 2, "auto")]))
    assert traced == [threading.get_ident()] * 2
    explorer.close()


def test_what_the_function_prints_is_heard_once(capsys):
    def loud(x):
        print("traced")  # noqa: T201
        return x + 1

    explorer = explore(loud, shape(8), mesh="data=4")
    front = Front(explorer)
    front.compile(front.plan(axes=[("data", 2, "auto")]))
    assert capsys.readouterr().out == "traced\n"
    explorer.close()


def test_arrays_are_not_kept():
    x = np.ones((8, 8), np.float32)
    explorer = explore(jnp.sin, x, mesh="data=4", in_specs=P("data"))
    leaves = jax.tree_util.tree_leaves(explorer._subject.shapes)
    assert [type(leaf) for leaf in leaves] == [jax.ShapeDtypeStruct]
    explorer.close()


def figures(pin, *names):
    """Return the text and the value of a pin's figures."""
    found = {one["name"]: (one["text"], one["value"]) for one in pin["figures"]}
    return [found[name] for name in names]


def test_pins_hold_what_plans_cost(front):
    front.ask("pin", front.explorer.plan)
    other = front.plan(x=[["data"], []], W=[[], ["model"]])
    front.ask("pin", other)
    assert len(front.explorer.pins) == 1
    front.compile(other)
    front.ask("pin", other)
    front.ask("pin", other)
    first, second = front.explorer.pins
    # An all-reduce of f32[64, 1024] over 2 devices sends 2 * 256 KiB * (2 - 1) / 2 = 256 KiB.
    assert first["text"] == "data=4,model=2  x=P('data', 'model')  W=P('model')"
    assert figures(first, "sent per run", "collectives") == [
        ("256 KiB", 262144),
        ("1 all-reduce", 1),
    ]
    assert figures(second, "sent per run", "collectives") == [("0 B", 0), ("none", 0)]
    # x 64 x 512 and W 512 x 512 of 4 bytes, the result 64 x 512, and what is held meanwhile.
    least = 4 * (64 * 512 + 512 * 512 + 64 * 512)
    assert figures(second, "memory per device")[0][1] >= least
    assert "seconds sending" not in [one["name"] for one in first["figures"]]
    front.ask("unpin", index=0)
    assert front.explorer.pins == [second]


def test_inputs_that_differ_in_a_number_are_picked_together():
    def net(params, x):
        for one in params:
            x = jnp.tanh(x @ one["w"])
        return x

    params = [{"w": shape(16, 16)} for _ in range(3)]
    explorer = explore(net, params, shape(8, 16), mesh="data=4")
    inputs = explorer.subject["inputs"]
    # What has the batch comes first.
    assert [one["pattern"] for one in inputs] == ["x", "params[*]['w']"]
    assert inputs[1]["names"] == ["params[0]['w']", "params[1]['w']", "params[2]['w']"]
    explorer.close()


def test_arguments_that_differ_in_a_number_are_picked_apart():
    explorer = explore(lambda x, w1, w2: x @ w1 @ w2, *[shape(16, 16)] * 3, mesh="data=4")
    assert [one["names"] for one in explorer.subject["inputs"]] == [["x"], ["w1"], ["w2"]]
    explorer.close()


def test_a_report_alone_is_shown_and_pinned():
    report = sn.explain(layer, shape(8, 8), shape(8, 8), mesh="data=4")
    explorer = explore(report)
    front = Front(explorer)
    front.ask("pin")
    front.ask("compile", {"axes": [], "specs": {}})
    assert len(explorer.pins) == 1
    assert explorer.subject == {}
    assert Report.from_json(explorer.compiled["report"]) == report
    with pytest.raises(ValueError, match="expected no further arguments with a report"):
        explore(report, mesh="data=4")


def test_without_a_mesh_it_begins_with_one():
    explorer = explore(jnp.sin, shape(8, 8))
    assert [one["name"] for one in explorer.plan["axes"]] == ["data", "model"]
    explorer.close()


def test_text_and_html_are_there_without_a_front_end(explorer):
    data, _ = explorer._repr_mimebundle_()
    assert "all-reduce[model]" in data["text/plain"]
    assert "all-reduce[model]" in data["text/html"]
    for kind in ("text/plain", "text/html"):
        assert "the widget needs the kernel" in data[kind]
    assert "application/vnd.jupyter.widget-view+json" in data
    assert repr(explorer) == data["text/plain"]


def test_it_is_public():
    assert sn.explore is explore
    assert issubclass(Explorer, object)


def test_the_first_plan_fails_as_explain_does():
    with pytest.raises(ValueError, match="is not divisible"):
        explore(layer, shape(255, 8), shape(8, 8), mesh="data=4", in_specs=(P("data"), P()))


def test_previews_of_keys_loops_and_unused_inputs_agree_with_the_programs():
    def loop(key, x, ws, unused):
        del unused
        noise = jax.random.normal(key, x.shape)
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), h.sum()), x + noise, ws)

    key = jax.eval_shape(lambda: jax.random.key(0))
    explorer = explore(loop, key, shape(32, 64), shape(3, 64, 64), shape(8), mesh="data=4,model=2")
    front = Front(explorer)
    changes = (
        {"x": [["data"], []], "ws": [[], [], ["model"]]},
        {"x": [["model"], ["data"]]},
        {"axes": [("data", 2, "auto"), ("model", 4, "auto")], "x": [["data"], ["model"]]},
    )
    for change in changes:
        plan = front.plan(**change)
        preview = Report.from_json(front.preview(plan)["report"])
        assert specs_of(front.compile(plan).outputs) == specs_of(preview.outputs)
    explorer.close()


def test_the_body_of_a_shard_map_has_no_preview_on_another_mesh():
    def mapped(x):
        add = jax.shard_map(lambda y: jax.lax.psum(y, "data"), in_specs=P("data"), out_specs=P())
        return add(x)

    explorer = explore(mapped, shape(64, 16), mesh="data=4,model=2")
    front = Front(explorer)
    answer = front.preview(front.plan(axes=[("data", 2, "auto"), ("model", 4, "auto")]))
    assert "shard_map" in answer["said"]
    answer = front.preview(front.plan(axes=[("rows", 4, "auto"), ("model", 2, "auto")]))
    assert answer["kind"] == "none"
    explorer.close()


def test_a_program_that_names_axes_itself_has_no_preview_without_them():
    def constrained(x):
        return jax.lax.with_sharding_constraint(x * 2, P(None, ("data", "model")))

    explorer = explore(constrained, shape(8, 8), mesh="data=4,model=2")
    front = Front(explorer)
    answer = front.preview(front.plan(axes=[("data", 4, "auto"), ("tp", 2, "auto")]))
    assert answer["said"] == "No preview: the program itself uses model. Compiling ..."
    assert answer["specs"] == {"x": "P()"}
    answer = front.compile(front.plan(axes=[("data", 4, "auto"), ("tp", 2, "auto")]))
    assert (answer["kind"], "model" in answer["said"]) == ("failed", True)
    explorer.close()
