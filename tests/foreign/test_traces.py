"""Traces of the profiler from elsewhere, with other bytes: read, or refused in one way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardnb as sn
from tests.foreign.conftest import MUTATIONS, soon

SAVED = Path(__file__).parents[2] / "notebooks" / "traces" / "train_step.xplane.pb"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("traces") / "host.xplane.pb"


@MUTATIONS
@given(st.randoms(use_true_random=False))
def test_a_trace_with_other_bytes_is_read_or_refused(place, random):
    content = bytearray(SAVED.read_bytes())
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at, change = random.randrange(len(content)), random.random()
        if change < 0.7:
            content[at] = random.randrange(256)
        elif change < 0.85:
            del content[at : at + random.randrange(1, 40)]
        else:
            content[at:at] = random.randbytes(random.randrange(1, 10))
    place.write_bytes(content)
    with soon(), suppress(sn.InvalidInput):
        str(sn.read_profile(place))
