"""Figures of the user's own in place of the table's: a dict, or a JSON or TOML file with one."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardnb.cost.hardware import Hardware, Latency

FIGURES = {
    "flops": "operations per second of a chip, for bf16",
    "memory": "bytes of a chip's memory",
    "memory_bandwidth": "bytes per second of a chip's memory",
    "link": "bytes per second of a link in one direction",
    "network": "bytes per second of a chip to other hosts or slices",
    "start": "seconds before each collective sends",
    "step": "seconds of a step to a neighbour",
    "network_step": "seconds of a step over the network",
}
CHIP = "chip"
_LATENCIES = {"start": "start", "step": "step", "network_step": "network"}


def read(given: Mapping[str, Any] | str | Path) -> tuple[str | None, dict[str, float]]:
    """Return the chip that is named, None without one, and the figures.

    Raises `ValueError` that names the key, and what is expected there.
    """
    of_file = not isinstance(given, Mapping)
    where = f"{given}" if of_file else "hardware"
    data: object = _from_file(Path(given)) if isinstance(given, str | Path) else given
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected a table such as {{'chip': 'h100', 'network': 25e9}}")
    chip = data.get(CHIP)
    if chip is not None and not isinstance(chip, str):
        raise ValueError(f"{where}: {CHIP}: expected a name such as 'h100', got {chip!r}")
    figures = {key: _figure(where, key, value) for key, value in data.items() if key != CHIP}
    return chip, figures


def is_file(name: object) -> bool:
    """Whether a name is that of a file with figures.

    >>> is_file("cluster.toml"), is_file("h100:4x8")
    (True, False)
    """
    return isinstance(name, Path) or (isinstance(name, str) and name.endswith((".json", ".toml")))


def _from_file(path: Path) -> object:
    try:
        text = path.read_text()
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path} is not {path.suffix[1:].upper()}: {error}") from error


def _figure(where: str, key: str, value: object) -> float:
    if key not in FIGURES:
        near = difflib.get_close_matches(str(key), (CHIP, *FIGURES), 1)
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join((CHIP, *FIGURES))}"
        raise ValueError(f"{where}: {key!r} is not a figure of a chip; {hint}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    least = 0 if key in _LATENCIES else math.ulp(0)
    if not number or not least <= float(str(value)) < math.inf:
        raise ValueError(f"{where}: {key}: expected {FIGURES[key]}, a number, got {value!r}")
    return float(str(value))


def changed(hardware: Hardware, figures: Mapping[str, float]) -> Hardware:
    """Return hardware with figures of the user's own, which its source says."""
    if not figures:
        return hardware
    latency = hardware.latency or Latency(0.0, 0.0, 0.0, "")
    latencies = {_LATENCIES[key]: value for key, value in figures.items() if key in _LATENCIES}
    if latencies:
        source = "; ".join(filter(None, (latency.source, f"yours: {', '.join(latencies)}")))
        latency = replace(latency, **latencies, source=source)
    others: dict[str, Any] = {k: v for k, v in figures.items() if k not in _LATENCIES}
    if "memory" in others:
        others["memory"] = int(others["memory"])
    source = f"{hardware.source}; yours: {', '.join(figures)}"
    return replace(hardware, **others, latency=latency, source=source)
