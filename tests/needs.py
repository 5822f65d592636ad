"""What some tests need, and the reason that a skip names where it is missing."""

import importlib.util

import pytest

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")
