"""Figures of matplotlib that show themselves in a notebook, also where nobody imported pyplot."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Drawing(Figure):
    """A figure that a notebook shows as a picture."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=96)
        return picture.getvalue()
