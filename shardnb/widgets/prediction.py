"""Predict, then reveal: guess what each line sends before the report says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import traitlets

from shardnb import engine
from shardnb.report import Report
from shardnb.views import live, still
from shardnb.views.questions import NOTHING, Answer, questions
from shardnb.widgets.base import Live

Tree = Any


def predict(fn_or_report: Callable[..., Tree] | Report, *args: Tree, **options: Any) -> Prediction:
    """Return a widget that asks what each line sends, and over which axes, then shows it.

    It also asks about lines that send nothing, and says what the report shows of why. If a line
    sends several collectives, they may be named in any order. Takes a report, or the arguments of
    `explain`. Raises what JAX raises.

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
    """A widget with questions about the lines of `report`; `answers` are those given."""

    data = traitlets.Unicode().tag(sync=True)
    questions: Any = traitlets.List().tag(sync=True)

    def __init__(self, report: Report) -> None:
        """Take the report whose collectives are the answers."""
        self.report = report
        self.answers: tuple[Answer, ...] = ()
        self._asked = questions(report)
        asked = [asdict(question) for question in self._asked]
        super().__init__(view="predict", data=live.to_json(report), questions=asked)
        self.listen(self._hear)

    def text(self) -> str:
        """Return the answers so far and the report, which is the answer to all, as text."""
        return still.quiz_text(self.report, self._asked, self.answers)

    def html(self) -> str:
        """Return the same as HTML, the report folded."""
        return still.quiz_html(self.report, self._asked, self.answers)

    def _hear(self, content: Mapping[str, Any]) -> None:
        """Keep an answer; the first question begins anew."""
        answer = _answer(content, len(self._asked))
        if answer is not None:
            earlier = () if answer.at == 0 else self.answers
            self.answers = (*(each for each in earlier if each.at < answer.at), answer)
            self.keep()


def _answer(content: Mapping[str, Any], questions: int) -> Answer | None:
    """Read an answer as a front end sends it; None for anything else."""
    at, axes, sent = content.get("at"), content.get("axes"), content.get("sent")
    if content.get("kind") != "answer" or not isinstance(at, int) or not 0 <= at < questions:
        return None
    over = f" over {', '.join(map(str, axes))}" if isinstance(axes, list) and axes else ""
    guess = str(content.get("guess", NOTHING))
    is_id = isinstance(sent, int)
    return Answer(at, f"{guess}{over}", content.get("right") is True, sent if is_id else None)
