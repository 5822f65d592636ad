"""What a tensor is that stands for an array of a program while it is traced; imports no torch."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any


class Traced(ABC):
    """The tensors that hold traced values; `tensors` registers their classes.

    The classes of torch have a metaclass of their own, so that none can derive from this one.
    """

    @abstractmethod
    def jax(self) -> Any:
        """Return the value that JAX traces."""


def tracer_of(value: Any) -> Any:
    """Return JAX's traced value of a tensor; any other value is returned as it is."""
    return value.jax() if isinstance(value, Traced) else value


def is_torch_tensor(value: object) -> bool:
    """Whether a value is a tensor of torch's that holds data, which needs no import of torch."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and isinstance(value, getattr(torch, "Tensor", ()))
        and not isinstance(value, Traced)
    )


def is_torch_module(value: object) -> bool:
    """Whether a value is an `nn.Module`, which needs no import of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
