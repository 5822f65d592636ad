"""The shell of the magics' tests, for cells of torch code."""

from tests.magics.conftest import ip, run, shell

__all__ = ["ip", "run", "shell"]
