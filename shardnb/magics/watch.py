"""Collects the programs that a cell's own jit calls compile.

XLA hands each program to a public hook of JAX's, which is removed again whatever happens. A
program that JAX has compiled before is not compiled again, and so is not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from jax.extend import xla

_NUMBERS = itertools.count(1)


@contextmanager
def watching() -> Iterator[list[bytes]]:
    """Collect the serialized HLO module of each program that is compiled in the block."""
    protos: list[bytes] = []
    name = f"shardnb-watch-{next(_NUMBERS)}"

    def keep(proto: bytes) -> None:
        protos.append(bytes(proto))

    stage = xla.PipelineStage.POST_SCHEDULER
    xla.register_hlo_module_transformation(keep, name=name, stage=stage)
    try:
        yield protos
    finally:
        xla.clear_hlo_module_transformation(name=name, stage=stage)
