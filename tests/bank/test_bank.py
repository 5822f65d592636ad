"""Every collective of the bank is judged as it was by hand; an unknown is allowed, and counted."""

from __future__ import annotations

import functools

import pytest

from shardnb.report.model import Collective
from tests.bank import everyday, families, fresh, indexing, known, layers, second, statements
from tests.bank.case import BANK, Answer, answer, compare, explain

MODULES = (known, families, layers, fresh, second, indexing, statements, everyday)
UNKNOWN_LIMIT = 0.03


@functools.cache
def collectives(name: str) -> tuple[Collective, ...]:
    return explain(BANK[name]).collectives


def judged(name: str) -> tuple[list[Answer], list[Answer]]:
    """Return the answers that are wrong, and those that are unknown where something is expected."""
    found = [answer(collective) for collective in collectives(name)]
    missing, beyond = compare(BANK[name].answers, found)
    wrong, unknown = [], []
    for one in beyond:
        expected = next((m for m in missing if m[:2] == one[:2] and one[3] == "unknown"), None)
        (wrong if expected is None else unknown).append(one)
        if expected is not None:
            missing.remove(expected)
    return wrong + missing, unknown


@pytest.mark.parametrize("name", BANK)
def test_no_answer_is_wrong(name):
    assert judged(name)[0] == []


def test_few_answers_are_unknown():
    count = sum(len(collectives(name)) for name in BANK)
    unknown = sum(len(judged(name)[1]) for name in BANK)
    assert unknown <= UNKNOWN_LIMIT * count


@pytest.mark.parametrize("name", BANK)
def test_where_the_reason_is_unknown_so_is_who_asked(name):
    for collective in collectives(name):
        assert (collective.asked_by is None) == (collective.reason == "unknown")


@pytest.mark.parametrize("name", BANK)
def test_every_collective_has_a_sentence_of_one_line(name):
    for collective in collectives(name):
        assert collective.why.startswith(collective.kind)
        assert collective.why.endswith(".")
        assert "\n" not in collective.why
        assert "None" not in collective.why.replace("P(None", "").replace(", None", "")
