"""A notebook of the course, run once for all tests of its module in a real kernel."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.notebooks.course import COURSE, MIME, executed, report_of


@dataclass(frozen=True)
class Executed:
    """An executed notebook: its cells by id, and what they showed."""

    cells: dict
    seconds: float = field(default=0.0)

    def reports(self, name) -> list:
        """Return the reports that a cell showed."""
        return [report_of(data[MIME]) for data in self._data(name) if MIME in data]

    def report(self, name):
        """Return the report that a cell showed."""
        (report,) = self.reports(name)
        return report

    def shown(self, name) -> str:
        """Return the plain text of what a cell displayed, or of its value."""
        return "\n".join(data["text/plain"] for data in self._data(name) if "text/plain" in data)

    def html(self, name) -> str:
        """Return the HTML of what a cell displayed, or of its value."""
        return "".join(data["text/html"] for data in self._data(name) if "text/html" in data)

    def printed(self, name) -> str:
        """Return what a cell printed."""
        streams = [one for one in self.cells[name].outputs if one.output_type == "stream"]
        return "".join(stream["text"] for stream in streams if stream["name"] == "stdout")

    def refused(self, name) -> str:
        """Return the error of one line by which a magic refused a cell."""
        texts = [one["text"] for one in self.cells[name].outputs if one.get("name") == "stderr"]
        return next(text for text in texts if text.startswith("UsageError"))

    def error(self, name) -> tuple:
        """Return the class and the text of the error that a cell ended with."""
        (error,) = [one for one in self.cells[name].outputs if one.output_type == "error"]
        return error["ename"], error["evalue"]

    def table(self, name) -> list:
        """Return the words of each line that a cell printed."""
        return [line.split() for line in self.printed(name).splitlines()]

    def _data(self, name) -> Iterator:
        for output in self.cells[name].outputs:
            if "data" in output:
                yield output["data"]


@pytest.fixture(scope="module")
def notebook(request):
    """The notebook that the test's module names as NOTEBOOK, executed."""
    start = time.monotonic()
    done = executed(COURSE / request.module.NOTEBOOK)
    cells = {cell.id: cell for cell in done.cells}
    return Executed(cells, time.monotonic() - start)
