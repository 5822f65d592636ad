"""The notebooks of the course: how they are run, and saved with their outputs.

`python -m tests.notebooks.course` runs all of them again and saves them;
`python -m tests.notebooks.course 02_mesh_spec_grid.ipynb` saves one.
"""

import json
import os
import re
import site
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from shardnb import Report
from shardnb.report.model import Run
from shardnb.views import live
from shardnb.widgets import base

COURSE = Path(__file__).parents[2] / "notebooks"
MIME = live.MIME
_WIDGET = "application/vnd.jupyter.widget-view+json"
_KEPT = base.MIME

# What is of one machine and one run: files of cells, folders of packages, seconds.
_PRIVATE = (
    (re.compile(re.escape(tempfile.gettempdir()) + r"/ipykernel_\d+/\d+\.py"), "(cell)"),
    (re.compile(r"\b\d{7,10}\.py\b"), "(cell)"),
    *((re.compile(re.escape(folder)), "site-packages") for folder in site.getsitepackages()),
    (re.compile(re.escape(sys.base_prefix)), "python"),
    (re.compile(re.escape(str(COURSE.parent))), "."),
    (re.compile(r" at 0x[0-9a-f]{6,}"), ""),
    (re.compile(r"(?: {3}| · )(?:compiled|ran) [\d.,]+ \w?s"), ""),
)


def executed(path):
    """Run a notebook in a kernel of its own; the file stays as it is."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},  # as Jupyter does
    )
    client.execute(env={**os.environ, "JAX_PLATFORMS": "cpu"})
    return notebook


def report_of(data):
    """Read a report from the data of an output."""
    return Report.from_json(json.dumps(data))


def save(path):
    """Run a notebook and save it with its outputs, without what differs from run to run."""
    notebook = executed(path)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined([_kept(one) for one in cell.outputs if not _noise(one)])
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def _joined(outputs):
    """Put texts together that a kernel happened to send in parts."""
    joined = []
    for output in outputs:
        if joined and output.get("name") and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _noise(output):
    """Whether an output is what libraries write to stderr, or a search's progress.

    A magic's own errors stand on stderr too.
    """
    if output.get("data") == {"text/plain": ""}:
        return True
    return output.get("name") == "stderr" and not output["text"].startswith("UsageError")


def _kept(output):
    data = output.get("data")
    if data is None:
        return _without_private(output)
    if MIME in data:
        # The report is written again without its seconds and without the programs' texts.
        again = live.mimebundle(replace(report_of(data[MIME]), run=Run()))
        output.data = nbformat.from_dict(again)
        return output
    for live_type in (_WIDGET, _KEPT):  # they would point to a kernel that is gone
        data.pop(live_type, None)
    output.data = _without_private(data)
    return output


def _without_private(node):
    if isinstance(node, str):
        for pattern, word in _PRIVATE:
            node = pattern.sub(word, node)
        return node
    if isinstance(node, dict):
        return nbformat.from_dict({key: _without_private(value) for key, value in node.items()})
    if isinstance(node, list):
        return [_without_private(value) for value in node]
    return node


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(one.name for one in COURSE.glob("*.ipynb")):
        save(COURSE / name)
        print(name)  # noqa: T201
