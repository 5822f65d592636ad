"""Numbers as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.views import formatting

FACTORS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (64 * 1024, "64 KiB"),
        (1024 * 1024 - 1, "1.0 MiB"),
        (int(10.5 * 2**20), "10.5 MiB"),
        (int(100.5 * 2**20), "100 MiB"),
        (3 * 2**30, "3.0 GiB"),
    ],
)
def test_a_size_has_a_binary_unit(count, written):
    assert formatting.size(count) == written


@given(st.integers(0, 2**60))
def test_a_written_size_is_within_five_percent(count):
    number, unit = formatting.size(count).split()
    assert abs(float(number) * FACTORS[unit] - count) <= 0.05 * count


@given(st.integers(0, 2**60))
def test_a_written_size_stays_below_the_next_unit(count):
    number, unit = formatting.size(count).split()
    assert unit == "PiB" or float(number) < 1024


@given(st.floats(1e-6, 900))
def test_seconds_have_three_digits(value):
    number, unit = formatting.seconds(value).split()
    assert len(number.replace(".", "").lstrip("0")) <= 3
    assert float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit] == pytest.approx(value, rel=0.006)


@given(st.text())
def test_a_clean_text_is_printable(text):
    assert formatting.clean(text).isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_a_printable_text_stays_as_it_is(text):
    assert formatting.clean(text) == text
