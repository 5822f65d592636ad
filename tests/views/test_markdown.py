"""What changed, in Markdown for a pull request."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report import Collective, Mesh, Report, Source
from shardnb.report.model import Axis, Location
from shardnb.views.markdown import NO_DIFFERENCE, render


def layer(x, w):
    return jnp.tanh(x @ w)


@pytest.fixture(scope="module")
def reports():
    """A product that leaves a partial sum, and the same with w replicated."""
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((256, 512), (512, 1024))]
    return [
        sn.explain(layer, *args, mesh="data=4,model=2", in_specs=specs, origins=False)
        for specs in ((P("data", "model"), P("model")), (P("model", "data"), P()))
    ]


def test_what_came_and_went_has_its_place_and_its_cause(reports):
    text = render([tuple(reports)])
    lines = text.splitlines()
    assert lines[0] == "### `layer` on data=4,model=2"
    # Each device sends its 128 x 128 floats of x to 3 others.
    assert "Each device sends **192 KiB** instead of 256 KiB per run, and holds " in text
    gone, came = (line for line in lines if line.startswith("- "))
    assert gone.startswith("- **-1 all-reduce\\[model\\]** 256 KiB per run at `line ")
    assert came.startswith("- **+1 all-gather\\[data\\]** 192 KiB per run at `line ")
    assert "(`return jnp.tanh(x @ w)`), because x is sharded over data" in came


def test_the_same_program_has_no_difference(reports):
    assert NO_DIFFERENCE in render([(reports[0], reports[0])])


def test_a_program_in_one_file_alone_is_new_or_gone(reports):
    assert "This program is new." in render([(None, reports[0])])
    gone = render([(reports[0], None)])
    assert "This program is gone." in gone
    assert "- **-1 all-reduce" in gone


def test_texts_of_a_foreign_report_are_no_markup():
    collective = Collective(
        0,
        "all-gather",
        ("x",),
        ((0, 1),),
        "f32",
        (8,),
        16,
        why="<img src=x> of @somebody is [here](http://example.org), `so`",
        reason="conflict",
        frames=(Location(0, 1),),
    )
    mesh = Mesh((Axis("x", 2),), (0, 1))
    report = Report("a`b", mesh, collectives=(collective,), sources=(Source("f.py", "a ``` b"),))
    text = render([(None, report)])
    assert "### `` a`b ``" in text
    assert "\\<img src=x\\>" in text
    assert "@<!-- -->somebody" in text
    assert "\\[here\\](http" in text
    assert "```` a ``` b ````" in text
