"""Tensors of one number on the host: code changes them in place while it is traced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class HostNumbers:
    """What such tensors were before a trace, so that the trace can be taken back.

    torch mixes them with tensors of any device, and an optimizer counts its steps with one.
    """

    def __init__(self, tensors: Iterable[Any]) -> None:
        """Remember the numbers; torch counts the writes to each tensor."""
        self._before = [(tensor, tensor._version, tensor.clone()) for tensor in tensors]

    def changed(self) -> list[tuple[Any, Any]]:
        """Return the tensors that were written to, each with what it is now."""
        return [(t, t.clone()) for t, version, _ in self._before if t._version > version]

    def restore(self) -> None:
        """Write what the tensors were before."""
        for tensor, version, before in self._before:
            if tensor._version > version:
                tensor.copy_(before)
        self._before = []
