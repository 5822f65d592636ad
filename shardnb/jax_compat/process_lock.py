"""One lock for what a compile changes in the whole process."""

import threading

PROCESS_LOCK = threading.RLock()
"""Held while descriptor 2, JAX's compilation cache or libtpu's environment is changed."""
