"""What `predict` asks: what a line sends, also of lines that send nothing; with the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Location, Report
from shardnb.report.why import explain_each
from shardnb.terms.primitives import ELEMENTWISE
from shardnb.views import words
from shardnb.views.formatting import clean

# A quiz of more is not finished.
MOST = 20
# At least so many are about lines that send nothing, where there are any, and else a third: who
# knows that each line sends something guesses which (test_some_questions_are_about_silent_lines).
_SILENT = 2
# Sentences on the values of a line that sends nothing.
_VALUES = 2
NOTHING = "nothing"
_NO_COLLECTIVE = "The compiled program has no collective."
_NONE_FROM = "No collective of the compiled program comes from this line."


@dataclass(frozen=True)
class Question:
    """What does a line send?

    `sent` are the ids of the different collectives of a line, `before` says how many of these were
    asked for by earlier questions: any that is left is a right answer. `why` says what the report
    shows of a line that sends nothing. `line` is None where it is not one of the first source.
    """

    line: int | None = None
    place: str = ""
    text: str = ""
    sent: tuple[int, ...] = ()
    before: int = 0
    why: str = ""


@dataclass(frozen=True)
class Answer:
    """A guess for the question number `at`; `sent` is the collective that was shown, if any."""

    at: int
    guess: str
    right: bool
    sent: int | None = None


def questions(report: Report) -> tuple[Question, ...]:
    """Return the questions about a report, in the order of its lines."""
    sending = list(_sending(report))
    quiet = list(_silent(report))
    number = min(len(quiet), max(_SILENT, (len(sending) + 1) // 2), MOST // 3)
    # Spread over the program.
    chosen = [quiet[at * len(quiet) // number] for at in range(number)]
    asked = [*sending[: MOST - number], *chosen]
    if not asked:
        return (Question(why=_NO_COLLECTIVE),)
    ordered = sorted(asked, key=lambda pair: (pair[0] is None, pair[0] or (0, 0)))
    return tuple(question for _, question in ordered)


Placed = tuple[tuple[int, int] | None, Question]
"""A question with the source and line that it is about."""


def _sending(report: Report) -> Iterator[Placed]:
    lines: dict[Location | None, list[Collective]] = {}
    for collective in report.collectives:
        home = words.home(collective, report)
        place = home and Location(home.source, home.line)
        different = lines.setdefault(place, [])
        if (collective.kind, collective.axes) not in [(c.kind, c.axes) for c in different]:
            different.append(collective)
    for place, different in lines.items():
        ids = tuple(collective.id for collective in different)
        for before in range(len(different)):
            yield _placed(place, report, Question(sent=ids, before=before))


def _silent(report: Report) -> Iterator[Placed]:
    """Yield lines that make values and that no collective comes from.

    None where the lines of a collective are not known: it may come from any.
    """
    if any(not collective.frames for collective in report.collectives):
        return
    calls = {(frame.source, frame.line) for c in report.collectives for frame in c.frames}
    found: dict[Location, list[int]] = {}
    for number, value in enumerate(report.values):
        place = value.location
        if place is None or not words.is_shown(place, report) or not words.code_at(place, report):
            continue
        if (place.source, place.line) not in calls:
            found.setdefault(Location(place.source, place.line), []).append(number)
    sentences = list(explain_each(report)) if found else []
    for place, numbers in sorted(found.items(), key=lambda item: (item[0].source, item[0].line)):
        yield _placed(place, report, Question(why=_why(report, numbers, sentences)))


def _why(report: Report, numbers: Sequence[int], sentences: Sequence[str]) -> str:
    """Say what the report shows of a line that sends nothing: its values, and what makes them."""
    values = [report.values[number] for number in numbers]
    ops, parts = {value.op for value in values}, [_NONE_FROM]
    if len(ops) == 1 and ops <= ELEMENTWISE:
        parts.append(f"Its result is made by {ops.pop()}, element by element, on each device.")
    known = [
        words.sentence(clean(sentences[number]), {clean(value.name)})
        for number, value in zip(numbers, values, strict=True)
        if all(origin.kind != "unknown" for origin in value.origins)
    ]
    return " ".join([*parts, *list(dict.fromkeys(known))[:_VALUES]])


def _placed(place: Location | None, report: Report, question: Question) -> Placed:
    """Put a question at a line."""
    if place is None:
        return None, question
    at = words.at(place, report).removeprefix("at ")
    named = replace(
        question,
        line=place.line if place.source == 0 else None,
        place=f"{at[:1].upper()}{at[1:]}",
        text=words.code_at(place, report),
    )
    return (place.source, place.line), named


def truth(report: Report, question: Question, answer: Answer) -> str:
    """Say what a line sends: the collective that was shown for an answer, or nothing, and why."""
    shown = next((c for c in report.collectives if c.id == answer.sent), None)
    if shown is None:
        return f"It sends {NOTHING}. {question.why}" if not question.sent else ""
    return clean(f"It sends {shown.kind}{words.over(shown)}: {words.because(shown)}")
