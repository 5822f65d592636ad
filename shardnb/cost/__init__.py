"""The seconds that a report's work and collectives take on some hardware; needs no JAX."""

from shardnb.cost.hardware import HARDWARE, Hardware, find_hardware
from shardnb.cost.price import on_hardware, priced

__all__ = ["HARDWARE", "Hardware", "find_hardware", "on_hardware", "priced"]
