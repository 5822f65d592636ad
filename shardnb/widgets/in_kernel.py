"""Whether somebody can answer a widget's questions."""

from __future__ import annotations

import sys
from typing import Any


def is_alive() -> bool:
    """Whether this is a notebook's kernel: only there are widgets drawn, and asked."""
    shell: Any = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
