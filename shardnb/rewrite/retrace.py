"""The user's Python traced once more, without its output."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from shardnb.jax_compat.tracing import traced_apart


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what is printed, and in a notebook what is displayed."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        from IPython.utils.capture import capture_output

        with capture_output():
            yield
    else:
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


@contextmanager
def quiet_retrace() -> Iterator[None]:
    """Trace the user's Python once more, without its output and apart from JAX's caches.

    What it prints is dropped, Python's and NumPy's random numbers go on where they were, and
    JAX traces inner `jit` functions anew without touching what it has cached for the user.
    """
    numbers, state = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's own
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_silent())
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(traced_apart())
            yield
    finally:
        random.setstate(numbers)
        np.random.set_state(state)  # noqa: NPY002
