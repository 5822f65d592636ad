"""A report in which every text would do harm, wherever reports are shown: nothing of it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import nbformat
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid
from shardnb.widgets.check import CheckView
from tests.browser.lab import serve
from tests.foreign.hostile import hostile_report
from tests.needs import needs_nbconvert

# What a trusted notebook runs, and another does not: so the test sees which one it has.
CONTROL = '<img alt="control" src=x onerror="window.control = 1">'
SHOWN = "<script>window.harmed=1</script>"
# What a page would act on, in the parts of it that show a report.
ACTING = """selector => [...document.querySelectorAll(`${selector} *`)].filter(node =>
  node.alt !== 'control' && (['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'IMG', 'svg'].includes(node.nodeName) ||
  [...node.attributes].some(one => one.name.startsWith('on') || /^\\s*javascript:/i.test(one.value)))
).map(node => node.outerHTML.slice(0, 200))"""
TRUST = """async () => {
  const model = window.jupyterapp.shell.currentWidget.content.model;
  for (const cell of model.cells) { cell.trusted = true; }
}"""


@pytest.fixture(scope="module")
def report():
    return hostile_report()


@pytest.fixture
def page(page):
    """A page on which no dialog opens and no script of a report's runs."""
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    yield page
    frames = [frame.evaluate("window.harmed ?? null") for frame in page.frames]
    assert (frames, dialogs) == ([None] * len(frames), [])


@pytest.fixture(scope="module")
def notebook_app(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("hostile"), app="notebook") as running:
        yield running


def outputs(report):
    """Return what a notebook keeps of a report: all of it, and as an HTML page alone."""
    bundle = report._repr_mimebundle_()
    diff = report.diff(replace(report, collectives=()))
    parts = (bundle, {"text/html": bundle["text/html"]}, {"text/plain": bundle["text/plain"]})
    control = nbformat.v4.new_output("display_data", data={"text/html": CONTROL})
    shown = [control] + [nbformat.v4.new_output("display_data", data=part) for part in parts]
    return [*shown, nbformat.v4.new_output("stream", name="stdout", text=str(diff))]


def open_all(page, selector):
    """Open what is folded, and touch what reacts to the pointer."""
    page.evaluate(
        "selector => document.querySelectorAll(`${selector} details`)"
        ".forEach(node => { node.open = true; })",
        selector,
    )
    for canvas in page.locator(f"{selector} canvas").all()[:3]:
        canvas.hover()
    page.wait_for_timeout(500)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_nothing_runs_in_a_notebook(lab, notebook_app, page, report, app, trusted):
    server = lab if app == "lab" else notebook_app
    cell = {"source": report.sources[0].text, "id": "hostile", "outputs": outputs(report)}
    server.open(page, server.write("hostile", [cell], kernel=False), kernel=False)
    page.wait_for_selector(".shardnb-report")
    if trusted:
        page.evaluate(TRUST)
        page.wait_for_timeout(500)
    open_all(page, ".jp-OutputArea")
    assert SHOWN in page.inner_text(".shardnb-report")
    assert SHOWN in page.locator(".jp-RenderedHTML").last.inner_text()
    assert page.evaluate("window.control ?? null") == (1 if trusted else None)
    assert page.evaluate(ACTING, ".shardnb-report") == []
    assert page.evaluate(ACTING, ".jp-RenderedHTML") == []


def test_nothing_runs_in_a_saved_page(page, report, tmp_path):
    page.goto(sn.Report.save_html(report, tmp_path / "page.html").as_uri())
    open_all(page, "body")
    assert SHOWN in page.inner_text("body")
    assert page.evaluate(ACTING, "body") == []


@needs_nbconvert
def test_nothing_runs_in_a_converted_notebook(page, report, tmp_path):
    from nbconvert import HTMLExporter

    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell("1", outputs=outputs(report))]
    path = tmp_path / "converted.html"
    path.write_text(HTMLExporter().from_notebook_node(book)[0], encoding="utf-8")
    # The page asks a network for MathJax and others, which is not there.
    page.route("http**", lambda route: route.abort())
    page.goto(Path(path).as_uri())
    open_all(page, ".jp-OutputArea")
    assert SHOWN in page.inner_text(".jp-OutputArea")
    assert page.evaluate(ACTING, ".jp-OutputArea") == []


def hostile_call():
    """Return a function, and an argument whose names and axes would do harm."""
    axis = f"a{SHOWN}<img src=x onerror=window.harmed=1>"
    mesh = jax.sharding.Mesh(make_grid("data=4,model=2").mesh.devices, (axis, "model"))
    params = {f"{SHOWN}\x1b[31m": jax.ShapeDtypeStruct((8, 4), jnp.float32)}
    return (lambda p: sum(v.sum() for v in p.values())), params, mesh, axis


WIDGET = """state => {
  const model = { get: name => state[name], send: () => {}, on: () => {}, off: () => {} };
  return import('/widgets.js').then(module =>
    module.default.render({ model, el: document.getElementById('host') }));
}"""


def checked(fn, params, **options):
    return CheckView(sn.check_shard_map(fn, params, out_specs=P(), **options))


@pytest.mark.parametrize("shown", [sn.explore, sn.predict, checked])
def test_nothing_runs_in_a_widget(page, shown):
    from tests.browser.page import HOST, STATIC

    fn, params, mesh, axis = hostile_call()
    widget = shown(fn, params, mesh=mesh, in_specs=(P(axis),))
    traits = [key for key in widget.keys if not key.startswith("_")]
    state = widget.get_state(traits)
    state.pop("layout", None), widget.close()
    body = '<!doctype html><meta charset="utf-8"><div id="host"></div>'

    def answer(route):
        file = route.request.url.removeprefix(HOST).strip("/")
        if file:
            route.fulfill(path=STATIC / file)
        else:
            route.fulfill(body=body, content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/")
    page.evaluate(WIDGET, state)
    open_all(page, "#host")
    assert SHOWN in page.inner_text("#host")
    assert page.evaluate(ACTING, "#host") == []
