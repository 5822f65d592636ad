"""What some tests need, and the reason that a skip names where it is missing."""

import importlib.util

import pytest

from shardnb.mesh import compilers

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")
needs_gpu_compiler = pytest.mark.skipif(
    compilers.gpu_plugin() is None, reason="needs XLA's GPU compiler: shardnb targets add gpu"
)
needs_nbconvert = pytest.mark.skipif(
    importlib.util.find_spec("nbconvert") is None, reason="needs nbconvert"
)
