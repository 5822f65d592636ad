"""Notebooks without a browser: run in a real kernel, and the reports in their outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from shardnb.commands.command_error import CommandError, ProgramError, in_one_line
from shardnb.report import Report
from shardnb.sources.quotable import is_file

MIME = "application/vnd.shardnb.report.v1+json"
DEMO = "01_quickstart.ipynb"


def demo() -> Path:
    """Return the path of the demo notebook: in the package, or in a checkout's notebooks/."""
    package = Path(str(resources.files("shardnb")))
    for path in (package / "demo" / DEMO, package.parent / "notebooks" / DEMO):
        if path.is_file():
            return path
    raise CommandError(f"this installation has no {DEMO}: install shardnb again")


def run(path: Path) -> list[Report]:
    """Run a notebook's cells in a new kernel, and return the reports that they showed.

    The file is not changed. Raises `CommandError` if there is no notebook, if a cell raises, or if
    the `lab` extra is not installed.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
    except ImportError as error:
        raise CommandError("this needs the lab extra: pip install 'shardnb[lab]'") from error
    notebook = _read(path)
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent.resolve())}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise ProgramError(f"{path}: a cell raised {error.ename}: {error.evalue}") from error
    except (CellControlSignal, DeadKernelError, RuntimeError, TimeoutError) as error:
        raise ProgramError(f"{path}: the kernel did not finish: {in_one_line(error)}") from error
    return list(reports(notebook))


def _read(path: Path) -> Any:
    """Return a notebook; raises `CommandError` where there is none."""
    import nbformat

    if not is_file(path):
        raise CommandError(f"there is no file {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {in_one_line(error)}") from error
    try:
        _, notebook = nbformat.validator.normalize(nbformat.reads(text, as_version=4))
        nbformat.validate(notebook)
    # What nbformat raises for a malformed notebook depends on what is malformed: a KeyError, an
    # AttributeError, a RecursionError, a ValidationError and others.
    except Exception as error:
        raise CommandError(f"{path} is not a notebook: {in_one_line(error)}") from error
    return notebook


def reports(notebook: Any) -> Iterator[Report]:
    """Return the reports in a notebook's outputs, in order.

    Raises `CommandError` for a report that a newer shardnb wrote.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {}).get(MIME)
            if data is None:
                continue
            try:
                yield Report.from_json(json.dumps(data))
            except ValueError as error:
                raise CommandError(str(error)) from error
