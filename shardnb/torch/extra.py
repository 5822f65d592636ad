"""The import of torch and torchax, which leaves JAX's settings as they were."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

INSTALL = "pip install 'shardnb[torch]'"


class MissingExtraError(ImportError):
    """torch or torchax cannot be imported; the message says how to install them."""


def torchax() -> Any:
    """Import torch and torchax; returns torchax.

    Raises `MissingExtraError` where one of them is missing, or where their versions do not fit.
    """
    with _settings_kept():
        try:
            importlib.import_module("torch")
            module = importlib.import_module("torchax")
            with jax.ensure_compile_time_eval():
                # Each thread has a random key there from its first use on: not one of a trace.
                _ = module.default_env().param
        # torchax is built against private parts of torch, and raises anything with another torch.
        except Exception as error:
            raise MissingExtraError(
                f"torch code is compiled with torch and torchax: {INSTALL} "
                f"(the import failed with {type(error).__name__}: {error})"
            ) from error
    return module


@contextmanager
def _settings_kept() -> Iterator[None]:
    """Put back what torchax sets for the process: options of JAX, a variable of the environment."""
    settings, variables = dict(jax.config.values), dict(os.environ)
    try:
        yield
    finally:
        for name, value in settings.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)
        for name in set(os.environ) - set(variables):
            del os.environ[name]
