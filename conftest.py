"""Doctests of modules that import torch, which is an extra, run where it is installed."""

from importlib.util import find_spec

_IMPORT_TORCH = ("annotations", "arrays", "operations", "sharded_tensor", "tensors", "trace")

collect_ignore = (
    [] if find_spec("torchax") else [f"shardnb/torch/{name}.py" for name in _IMPORT_TORCH]
)
