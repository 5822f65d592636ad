"""How many mutations a run of these tests makes: SHARDNB_EXAMPLES=10000 for all that there should be."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

settings.register_profile(
    "foreign",
    max_examples=int(os.environ.get("SHARDNB_EXAMPLES", "60")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
MUTATIONS = settings.get_profile("foreign")


@contextmanager
def soon() -> Iterator[None]:
    """Fail where the block takes long by the processor's clock, which other programs do not move.

    The largest of these inputs is read and shown in a second.
    """
    start = time.process_time()
    yield
    assert time.process_time() - start < 20
