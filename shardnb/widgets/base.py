"""The base of all widgets: the front-end module, and text and HTML if there is no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython import get_ipython

from shardnb.progress import in_kernel
from shardnb.views import markup

_STATIC = Path(__file__).parents[1] / "static"
NEEDS = (
    "To use this widget, open the notebook in a front end that shows Jupyter widgets (JupyterLab, "
    "Notebook 7, VS Code, Colab) and run the cell: the widget needs the kernel."
)
# Where JupyterLab shows this, the widget stands in it while there is a kernel, and else the HTML.
MIME = "application/vnd.shardnb.widget.v1+json"


class Live(anywidget.AnyWidget):
    """A shardnb widget; `view` names what the front end draws.

    Its rich display is the widget, with the text and the HTML of the same state as fallbacks. A
    saved notebook has them as they were last, since `keep` replaces them.
    """

    # As texts: anywidget watches files, and each watch keeps its widget for ever.
    _esm = (_STATIC / "widgets.js").read_text(encoding="utf-8")
    _css = (_STATIC / "widgets.css").read_text(encoding="utf-8")
    view = traitlets.Unicode().tag(sync=True)
    _shown = False
    _keeps = True

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
        return {MIME: {"view": self.view}, **(data or {}), **still}, metadata

    def _ipython_display_(self, **_options: Any) -> None:
        """Display it in a notebook under an id, since only such an output can be replaced."""
        if not in_kernel():
            raise NotImplementedError  # IPython then asks for the text
        self._publish(update=False)
        self._shown = True

    def keep(self) -> None:
        """Have the notebook keep its present text and HTML, where it was displayed.

        Not where its front end would draw the widget anew each time, and so lose the focus.
        """
        if self._shown and self._keeps and self.comm is not None:
            self._publish(update=True)

    def _publish(self, *, update: bool) -> None:
        data, metadata = self._repr_mimebundle_()
        transient = {"display_id": f"shardnb-{self.model_id}"}
        publish = get_ipython().display_pub.publish
        publish(data=data, metadata=metadata, transient=transient, update=update)

    def listen(self, hear: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `hear(content)` for each message from the front end whose content is an object.

        A front end says in it whether it `keeps` the widget as it is when the output is replaced.
        """

        def received(_widget: Any, content: Any, _buffers: Any) -> None:
            if isinstance(content, Mapping):
                self._keeps = content.get("keeps") is not False
                hear(content)

        self.on_msg(received)
