"""Tests of shardings in PyTorch/XLA's terms."""
