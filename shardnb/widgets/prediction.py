"""Predict, then reveal: guess what each line sends before the report says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from shardnb import engine
from shardnb.report import Report
from shardnb.views import html, live, markup, text
from shardnb.widgets.base import Live

Tree = Any


def predict(fn_or_report: Callable[..., Tree] | Report, *args: Tree, **options: Any) -> Prediction:
    """Return a widget that asks what each line sends, and over which axes, then shows it.

    It also asks about lines that send nothing. If a line sends several collectives, they may be
    named in any order. Takes a report, or the arguments of `explain`. Raises what JAX raises.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> question = predict(jnp.sum, x, mesh="data=4", in_specs=P("data"))
    >>> [c.kind for c in question.report.collectives]
    ['all-reduce']
    """
    if not isinstance(fn_or_report, Report):
        return Prediction(engine.explain(fn_or_report, *args, **options))
    if args or options:
        raise ValueError("expected no further arguments with a report: sn.predict(report)")
    return Prediction(fn_or_report)


class Prediction(Live):
    """A widget with a question for each line of `report`, and each different collective of it."""

    data = traitlets.Unicode().tag(sync=True)

    def __init__(self, report: Report) -> None:
        """Take the report whose collectives are the questions."""
        self.report = report
        super().__init__(view="predict", data=live.to_json(report))

    def text(self) -> str:
        """Return the report, which is the answer, as text."""
        return text.render(self.report)

    def html(self) -> str:
        """Return the report, which is the answer, as folded HTML."""
        summary = markup.text("What does each line send? Guess, then open this.")
        return markup.details(summary, html.render(self.report))
