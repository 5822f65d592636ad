"""The widgets in a kernel that no front end answers: what a saved notebook holds."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

START = """\
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import shardnb as sn
def layer(x, W):
    return jnp.tanh(x @ W)
x, W = jax.ShapeDtypeStruct((256, 512), 'f4'), jax.ShapeDtypeStruct((512, 1024), 'f4')
specs = (P('data', 'model'), P('model'))"""
CALLS = (
    "sn.explore(layer, x, W, mesh='data=4,model=2', in_specs=specs)",
    "sn.predict(layer, x, W, mesh='data=4,model=2', in_specs=specs)",
    "sn.explore(sn.explain(layer, x, W, mesh='data=4,model=2', in_specs=specs))",
    "sn.check_shard_map(layer, x, W, mesh='data=4,model=2', in_specs=specs, out_specs=P('data'))",
    "import os; explorer = sn.explore(jnp.sin, x, mesh='data=4'); before = os.readlink('/dev/fd/2')",
    """explorer._handle_custom_msg({'kind': 'compile', 'number': 1, 'plan': {
    'axes': explorer.plan['axes'], 'specs': {'x': [['data'], []]}}}, [])
explorer._worker.wait(60), os.readlink('/dev/fd/2') == before, explorer.compiled['number']""",
    """def through(x, W):
    return layer(x, W)
report = sn.explain(through, x, W, mesh='data=4,model=2', in_specs=specs)
[source.name for source in report.sources][1:]""",
)


@pytest.fixture(scope="module")
def outputs():
    """Run the calls in one kernel; give the data that each of them shows."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source) for source in (START, *CALLS)]
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return [[out.get("data", out) for out in cell.outputs] for cell in book.cells[1:]]


@pytest.mark.parametrize("number", range(4))
def test_text_and_html_stand_beside_the_widget(outputs, number):
    (data,) = outputs[number]
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "model" in data["text/html"]
    for kind in ("text/html", "text/plain"):
        assert data[kind].count("the widget needs the kernel") == 1
    assert "<script" not in data["text/html"]


def test_a_compile_in_the_thread_leaves_the_kernel_as_it_was(outputs):
    assert outputs[4] == []
    assert [data["text/plain"] for data in outputs[5]] == ["(True, True, 1)"]


def test_a_line_of_another_cell_stands_under_its_number(outputs):
    assert [data["text/plain"] for data in outputs[6]] == ["['Cell In[1]']"]
