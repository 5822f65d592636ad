"""What a report says of one collective."""

from dataclasses import replace

import pytest

from shardnb.report import Collective

SUM = Collective(0, "all-reduce", ("data",), ((0, 1),), "f32", (4,), 16, generated=True)


@pytest.mark.parametrize(
    ("collective", "words", "among"),
    [
        (SUM, {"all-reduce"}, True),
        (SUM, {"all-gather", "called"}, False),
        (replace(SUM, asked_by="requested"), {"requested"}, True),
        (replace(SUM, asked_by="requested"), {"inferred"}, False),
        (SUM, {"inferred"}, True),
        (replace(SUM, generated=None), {"inferred"}, True),
        (replace(SUM, generated=False), {"inferred"}, False),
        (replace(SUM, generated=False), {"called"}, True),
    ],
)
def test_one_that_nobody_knows_the_asker_of_may_be_inferred(collective, words, among):
    assert collective.is_among(words) is among
