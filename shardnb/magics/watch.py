"""Collects the programs that a cell's own jit calls compile.

XLA hands each program to a hook of JAX's, which is removed again whatever happens. A program that
JAX has compiled before is not compiled again, and so is not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from shardnb.jax_compat.xla import compiled_modules

_NUMBERS = itertools.count(1)


@contextmanager
def watching() -> Iterator[list[bytes]]:
    """Collect the serialized HLO module of each program that is compiled in the block.

    Raises `NotAvailable`.
    """
    protos: list[bytes] = []
    name = f"shardnb-watch-{next(_NUMBERS)}"

    def keep(proto: bytes) -> None:
        protos.append(bytes(proto))

    with compiled_modules(name, keep):
        yield protos
