"""`Inconclusive` evidence, which ends quietly, and bugs, which are never silent.

A report has many parts, and a bug in one of them must not lose the others or the user's own result.
So each part is made inside `contained`, which logs a bug to the logger `shardnb`; under
`SHARDNB_STRICT=1`, which the tests set, it raises the bug instead.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

logger = logging.getLogger("shardnb")


class Inconclusive(Exception):
    """The evidence does not determine the answer, so the report says that it is unknown."""


@contextmanager
def refusable() -> Iterator[None]:
    """Turn any exception of the block into `Inconclusive`, with the exception as its cause.

    Only for calls that try a program that the user did not write.
    """
    try:
        yield
    # The user's function, traced again, may raise anything; so may JAX and XLA, which refuse a
    # sharding with a ValueError, a TypeError, an AssertionError, a JaxRuntimeError and others.
    except Exception as error:
        raise Inconclusive(str(error)) from error


@dataclass(frozen=True)
class contained:  # noqa: N801 - used as contextlib.suppress is
    """End a block quietly on `Inconclusive`, and log a bug in it; interrupts always pass.

    The code after the block has to hold if the block did not finish. `part` names what is not shown
    because of the bug.

    >>> with contained("the cause of all-gather.3"):
    ...     raise Inconclusive
    """

    part: str

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> bool:
        """Say whether the block's error ends here."""
        if isinstance(error, Inconclusive):
            return True
        if not isinstance(error, Exception) or os.environ.get("SHARDNB_STRICT") == "1":
            return False
        log(self.part, error)
        return True


# The places of bugs that were already logged with their tracebacks.
_places: set[tuple[str, int | None]] = set()


def log(part: str, error: Exception) -> None:
    """Log a bug, with its traceback the first time.

    A bug in the judging of a collective may occur for each of a thousand collectives, and the log
    is what the user sees below the cell.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = (frames[-1].filename, frames[-1].lineno)
    logger.error(
        "a bug in shardnb: %s is not shown (%s: %s)",
        part,
        type(error).__name__,
        error,
        exc_info=None if place in _places else error,
    )
    _places.add(place)
