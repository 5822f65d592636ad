"""The base of all widgets: the front-end module, and text and HTML if there is no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from shardnb.views import markup

_STATIC = Path(__file__).parents[1] / "static"
NEEDS = (
    "To use this widget, open the notebook in a front end that shows Jupyter widgets (JupyterLab, "
    "Notebook 7, VS Code, Colab) and run the cell: the widget needs the kernel."
)


class Live(anywidget.AnyWidget):
    """A shardnb widget; `view` names what the front end draws.

    Its rich display is the widget, with the text and the HTML of the same report as fallbacks.
    """

    # As texts: anywidget watches files, and each watch keeps its widget for ever.
    _esm = (_STATIC / "widgets.js").read_text(encoding="utf-8")
    _css = (_STATIC / "widgets.css").read_text(encoding="utf-8")
    view = traitlets.Unicode().tag(sync=True)

    def text(self) -> str:
        """Return its contents as text."""
        raise NotImplementedError

    def html(self) -> str:
        """Return its contents as HTML that needs no kernel."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the text, for a terminal."""
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
        """Call `hear(content)` for each message from the front end whose content is an object."""
        self.on_msg(
            lambda _widget, content, _buffers: (
                hear(content) if isinstance(content, Mapping) else None
            )
        )
