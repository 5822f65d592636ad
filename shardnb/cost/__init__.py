"""The seconds that a report's work and collectives take on some hardware; needs no JAX."""

from shardnb.cost.hardware import HARDWARE, Hardware, find_hardware
from shardnb.cost.price import Given, check_hardware, on_hardware, priced

__all__ = [
    "HARDWARE",
    "Given",
    "Hardware",
    "check_hardware",
    "find_hardware",
    "on_hardware",
    "priced",
]
