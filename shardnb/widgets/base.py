"""What all widgets share: the view's own module, and text and HTML where no widget is alive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from shardnb.views import markup

_STATIC = Path(__file__).parents[1] / "static"
NEEDS = (
    "To click in it, open the notebook where Jupyter's widgets are shown (JupyterLab, Notebook 7, "
    "VS Code, Colab) and run the cell: it asks the kernel."
)


class Live(anywidget.AnyWidget):
    """A widget of shardnb's; `view` names what the front end draws.

    Its rich display is the widget, with the text and the HTML of the same report beside it.
    """

    _esm = _STATIC / "widgets.js"
    _css = _STATIC / "widgets.css"
    view = traitlets.Unicode().tag(sync=True)

    def text(self) -> str:
        """Give what it shows as text."""
        raise NotImplementedError

    def html(self) -> str:
        """Give what it shows as HTML that needs no kernel."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Give the text: a terminal has nothing else."""
        return f"{self.text()}\n\n{NEEDS}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        found = super()._repr_mimebundle_(**options)
        data, metadata = found if isinstance(found, tuple) else (found, {})
        own = {
            "text/plain": repr(self),
            "text/html": self.html() + markup.block(markup.text(NEEDS), markup.FAINT),
        }
        return {**(data or {}), **own}, metadata


def listening(widget: Live, hear: Any) -> None:
    """Call `hear(content)` for each message of a front end whose content is an object."""

    def on_message(_widget: Live, content: Any, _buffers: Any) -> None:
        if isinstance(content, Mapping):
            hear(content)

    widget.on_msg(on_message)
