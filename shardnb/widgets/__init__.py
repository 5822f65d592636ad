"""Widgets that ask the kernel: the explorer, predict, the check of a shard_map."""

from shardnb.widgets.explorer import Explorer, explore
from shardnb.widgets.prediction import Prediction, predict

__all__ = ["Explorer", "Prediction", "explore", "predict"]
