"""A saved notebook holds what each widget showed last, as text and as HTML."""

from __future__ import annotations

import nbclient
import nbconvert
import nbformat
import pytest

from shardnb.widgets.base import MIME

VIEW = "application/vnd.jupyter.widget-view+json"
START = """\
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import shardnb as sn
def layer(x, W):
    return jnp.tanh(x @ W)
x, W = jax.ShapeDtypeStruct((256, 512), 'f4'), jax.ShapeDtypeStruct((512, 1024), 'f4')
specs = (P('data', 'model'), P('model'))
def send(widget, **content):
    widget._handle_custom_msg(content, [])
def other(number, **specs):
    return {'number': number, 'plan': {'axes': explorer.plan['axes'], 'specs': specs}}"""
SHOW = (
    "explorer = sn.explore(layer, x, W, mesh='data=4,model=2', in_specs=specs); explorer",
    "question = sn.predict(explorer.report); question",
    "sn.check_shard_map(layer, x, W, mesh='data=4,model=2', in_specs=specs, out_specs=P('data'))",
    "plain = sn.explore(layer, x, W, mesh='data=4,model=2', in_specs=specs); plain",
)
GO_ON = """\
from ipywidgets.widgets.widget import _instances
from shardnb.widgets.check import CheckView
send(explorer, kind='pin', plan=explorer.plan)
send(explorer, kind='compile', **other(1, x=[['data'], []], W=[[], ['model']]))
explorer._worker.wait(60)
send(explorer, kind='preview', **other(2, x=[['data'], ['data']], W=[[], []]))
send(question, kind='answer', at=0, guess='all-gather', axes=['data'], right=False, sent=0)
(check,) = [one for one in _instances.values() if isinstance(one, CheckView)]
send(check, kind='check', number=1, inputs=[[['data'], []], [[], []]], outputs=[[['data'], []]])
# This front end would draw the widget anew.
send(plain, kind='compile', keeps=False, **other(1, x=[[], []], W=[[], []]))
plain._worker.wait(60)"""


@pytest.fixture(scope="module")
def notebook():
    """Run the cells in one kernel, without the state of widgets that only a network draws."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source) for source in (START, *SHOW, GO_ON)]
    client = nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", store_widget_state=False
    )
    client.execute()
    return book


def data_of(notebook, number):
    (output,) = notebook.cells[number].outputs
    return output.data


def test_a_widget_is_displayed_so_that_its_output_can_be_replaced(notebook):
    for number in range(1, 5):
        (output,) = notebook.cells[number].outputs
        assert output.output_type == "display_data"
        assert {VIEW, MIME, "text/html", "text/plain"} <= output.data.keys()


def test_the_explorer_s_last_plan_its_pins_and_a_refusal_are_kept(notebook):
    data = data_of(notebook, 1)
    for kind in ("text/html", "text/plain"):
        assert "data=4,model=2  x=P('data')  W=P(None, 'model')" in data[kind]
        assert "No communication" in data[kind]
        # The first plan is pinned, with its all-reduce; a later one was refused.
        assert "1 all-reduce" in data[kind]
        assert "This plan does not fit: " in data[kind]


def test_the_answers_of_a_quiz_are_kept(notebook):
    for kind in ("text/html", "text/plain"):
        assert "all-gather over data" in data_of(notebook, 2)[kind]


def test_the_last_check_of_a_shard_map_is_kept(notebook):
    for kind in ("text/html", "text/plain"):
        assert "accepted by JAX" in data_of(notebook, 3)[kind]


def test_where_a_front_end_would_draw_the_widget_anew_the_output_stays(notebook):
    assert "x=P('data', 'model')" in data_of(notebook, 4)["text/plain"]


def test_html_that_nbconvert_makes_shows_the_last_state(notebook):
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    assert "No communication" in page
    assert "Not quite. It sends all-reduce[model]" in page
    assert "accepted by JAX" in page
    assert VIEW not in page


def test_where_the_widgets_state_is_saved_it_is_the_last_one_too():
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell(source)
        for source in (START, SHOW[0], GO_ON[: GO_ON.index("send(question")])
    ]
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    states = book.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    (state,) = [one["state"] for one in states.values() if "compiled" in one["state"]]
    assert state["compiled"]["number"] == 1
    assert len(state["pins"]) == 1
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    assert VIEW in page
