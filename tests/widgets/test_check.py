"""The check of a shard_map as a widget."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.types import ShardMapCheck
from tests.widgets.conftest import shape


def body(x, w):
    return jnp.tanh(x @ w)


def checked(**options):
    specs = {"in_specs": (P("data", "model"), P("model")), "out_specs": P("data")} | options
    return sn.check_shard_map(body, shape(8, 16), shape(16, 32), mesh="data=4,model=2", **specs)


@pytest.fixture
def widget():
    found = checked().widget()
    yield found
    found.close()


def ask(widget, kind="check", *, inputs, outputs):
    content = {"kind": kind, "number": 1, "inputs": inputs, "outputs": outputs}
    widget._handle_custom_msg(content, [])
    return widget.data


def test_it_offers_the_specs_that_were_given(widget):
    assert widget.pick["axes"] == [
        {"name": "data", "size": 4, "type": "manual"},
        {"name": "model", "size": 2, "type": "manual"},
    ]
    assert [one["spec"] for one in widget.pick["inputs"]] == [
        [["data"], ["model"]],
        [["model"], []],
    ]
    assert widget.pick["outputs"] == [{"name": "result", "shape": [2, 32], "spec": [["data"], []]}]
    assert widget.data["accepted"] is False


def test_other_specs_are_checked_again(widget):
    data = ask(widget, inputs=[[["data"], []], [[], ["model"]]], outputs=[[["data"], ["model"]]])
    assert data["accepted"] is True
    # 8 rows over 4 devices, 32 columns over 2.
    assert data["outputs"][0]["local_shape"] == (2, 16)
    assert data["report"] is None
    assert widget.check.accepted


def test_it_is_compiled_when_asked_for(widget):
    specs = {"inputs": [[["data"], []], [[], ["model"]]], "outputs": [[["data"], ["model"]]]}
    data = ask(widget, "compile", **specs)
    assert sn.Report.from_json(data["report"]).collectives == ()


def test_specs_that_do_not_fit_are_told_by_the_check_itself(widget):
    data = ask(widget, inputs=[[["data", "model"], ["data"]], [[], []]], outputs=[[[], []]])
    assert data["accepted"] is False
    assert any("twice" in step["message"] for step in data["steps"])


def test_the_cure_of_a_refused_body_is_among_what_it_lacks():
    def body(x):
        return jax.lax.scan(lambda c, _: (c + x.sum(), None), 0.0, None, length=2)[0]

    specs = {"in_specs": P("data"), "out_specs": P("data")}
    widget = sn.check_shard_map(body, shape(8), mesh="data=4", **specs).widget()
    (missing,) = widget.data["missing"]
    assert "jax.lax.pcast(0.0, 'data', to='varying')" in missing["fix"]
    widget.close()


def test_nonsense_changes_nothing_but_says_so(widget):
    before = widget.check
    data = ask(widget, inputs=[[["data"]]], outputs=[])
    assert "ValueError" in data["failed"]
    assert widget.check is before


def test_text_and_html_are_those_of_the_check():
    check = checked()
    data, _ = check.widget()._repr_mimebundle_()
    plain = ShardMapCheck._repr_mimebundle_(check)
    assert str(check) in data["text/plain"]
    assert data["text/html"].startswith(plain["text/html"])
    assert "application/vnd.jupyter.widget-view+json" not in plain


def test_arrays_are_not_kept():
    x, w = np.ones((8, 16), np.float32), np.ones((16, 32), np.float32)
    specs = {"in_specs": (P("data"), P()), "out_specs": P("data")}
    check = sn.check_shard_map(body, x, w, mesh="data=4", **specs)
    assert not any(isinstance(one, np.ndarray) for one in check.again.arguments)


def test_one_spec_for_all_arguments_is_offered_for_each():
    check = sn.check_shard_map(
        *(lambda x, y: x + y, shape(8), shape(8)),
        mesh="data=4",
        in_specs=P("data"),
        out_specs=P("data"),
    )
    widget = check.widget()
    assert [one["spec"] for one in widget.pick["inputs"]] == [[["data"]], [["data"]]]
    widget.close()
