"""What all widgets share: the view's own module, and text and HTML where no widget is alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    # As texts: anywidget watches files, and each watch keeps its widget for ever.
    _esm = (_STATIC / "widgets.js").read_text(encoding="utf-8")
    _css = (_STATIC / "widgets.css").read_text(encoding="utf-8")
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
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        still = {
            "text/plain": repr(self),
            "text/html": self.html() + markup.block(markup.text(NEEDS), markup.FAINT),
        }
        return {**(data or {}), **still}, metadata

    def listen(self, hear: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `hear(content)` for each message of a front end whose content is an object."""
        self.on_msg(
            lambda _widget, content, _buffers: (
                hear(content) if isinstance(content, Mapping) else None
            )
        )
