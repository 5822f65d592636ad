"""Widgets where none is alive: what the explorer and a quiz showed last, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from shardnb.report import Report
from shardnb.views import html as report_html
from shardnb.views import markup, phrases
from shardnb.views import text as report_text
from shardnb.views.formatting import clean, columns
from shardnb.views.questions import Answer, Question, truth

Table = Sequence[Sequence[str]]
"""Rows of cells, the heads first."""

_GUESS = "What does each line send? Guess, then open this."
_LEFT = "What does each line send?"
_ANSWERED = ("question", "guess", "answer")


def explorer_text(plan: str, report: Report, problem: str, pins: Table) -> str:
    """Write the explorer's plan, its report, what is wrong with a later plan, and the pins."""
    parts = [clean(plan), report_text.render(report), problem]
    table = "\n".join(columns([list(row) for row in pins])) if pins else ""
    return "\n\n".join(filter(None, [*parts, table]))


def explorer_html(plan: str, report: Report, problem: str, pins: Table) -> str:
    """Write the same as HTML."""
    head = markup.block(markup.mono(clean(plan))) if plan else ""
    wrong = markup.block(markup.text(problem)) if problem else ""
    return (
        markup.fragment(head) + report_html.render(report) + markup.fragment(wrong + _table(pins))
    )


def pins_table(pins: Sequence[dict[str, object]]) -> list[list[str]]:
    """Return pinned plans as a table; the figures are those of the first."""
    rows: list[list[str]] = []
    for pin in pins:
        figures = {str(one["name"]): str(one["text"]) for one in pin["figures"]}  # type: ignore[attr-defined]
        if not rows:
            rows.append([str(phrases.WIDGETS["plan"]), *figures])
        rows.append([str(pin["text"]), *(figures.get(name, "") for name in rows[0][1:])])
    return rows


def quiz_text(report: Report, questions: Sequence[Question], answers: Sequence[Answer]) -> str:
    """Write the questions: those that were answered with the answers, and the report after all."""
    table = "\n".join(columns(_answered(report, questions, answers))) if answers else ""
    known = {answer.at for answer in answers}
    left = [_asked(one) for at, one in enumerate(questions) if at not in known]
    rest = "\n".join([_LEFT, *(f"  {one}" for one in left)])
    return "\n\n".join(filter(None, [table, rest if left else report_text.render(report)]))


def quiz_html(report: Report, questions: Sequence[Question], answers: Sequence[Answer]) -> str:
    """Write the same as HTML, with the report folded."""
    table = _table(_answered(report, questions, answers)) if answers else ""
    folded = markup.details(markup.text(_GUESS), report_html.render(report))
    return (markup.fragment(table) if table else "") + folded


def _answered(
    report: Report, questions: Sequence[Question], answers: Sequence[Answer]
) -> list[list[str]]:
    rows = [list(_ANSWERED)]
    for answer in answers:
        question = questions[answer.at]
        verdict = phrases.WIDGETS["right" if answer.right else "wrong"]
        rows.append(
            [_asked(question), clean(answer.guess), f"{verdict} {truth(report, question, answer)}"]
        )
    return rows


def _asked(question: Question) -> str:
    return clean(f"{question.place}: {question.text}" if question.place else question.text)


def _table(rows: Table) -> str:
    if not rows:
        return ""
    heads, *rest = rows
    bold = [markup.cell(markup.tag("b", markup.text(head))) for head in heads]
    cells = ([markup.cell(markup.text(cell)) for cell in row] for row in rest)
    return markup.table([markup.row(bold), *map(markup.row, cells)])
