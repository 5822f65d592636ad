"""HLO modules: their text from a proto, the work that XLA counts in one, and hooks on compiles."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shardnb.jax_compat import parts
from shardnb.jax_compat.devices import emulated_devices

_POST_SCHEDULER = 1


# XLA writes it for an asynchronous all-reduce of a GPU's, and refuses to read it there.
_NOT_READ = re.compile(r"(to_apply=%?[\w.\-]+), output_to_operand_aliasing=\{[^=]*\}(?=, )")


def hlo_text(proto: bytes) -> str:
    """Return the text of a serialized HLO module."""
    text: str = parts.HLO_MODULE.get()(proto).to_string()
    return text


def cost_counts(text: str) -> dict[str, float]:
    """Count the operations and bytes of an HLO program's text, each loop's body once.

    Raises `ValueError` where XLA cannot read the text, and `NotAvailable`.
    """
    # XLA checks a schedule as it reads one, and ends the process at some of TPU's.
    text = re.sub(r",? is_scheduled=true", "", text, count=1)
    text = _NOT_READ.sub(r"\1", text)
    read, count = parts.HLO_FROM_TEXT.get(), parts.COST_ANALYSIS.get()
    try:
        return dict(count(emulated_devices(1)[0].client, read(text)))
    except RuntimeError as error:
        raise ValueError(f"XLA cannot count this program: {error}") from error


@contextmanager
def optimized_modules(name: str, callback: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Hand each module that is optimized for CPU in this block to `callback`, to be read.

    Raises `NotAvailable`.
    """
    parts.HLO_MODULE.get()
    register = parts.CPU_TRANSFORMS.get()
    library = importlib.import_module(parts.CPU_TRANSFORMS.module)._xla
    register(name, _POST_SCHEDULER, callback)
    try:
        yield
    finally:
        library.clear_xla_transform(name, _POST_SCHEDULER)


@contextmanager
def compiled_modules(name: str, callback: Callable[[bytes], None]) -> Iterator[None]:
    """Hand each module that is optimized for any backend in this block to `callback`, to be read.

    Raises `NotAvailable`.
    """
    parts.HLO_MODULE.get()
    register = parts.COMPILED_MODULES.get()
    module = importlib.import_module(parts.COMPILED_MODULES.module)
    stage = module.PipelineStage.POST_SCHEDULER
    register(callback, name=name, stage=stage)
    try:
        yield
    finally:
        module.clear_hlo_module_transformation(name=name, stage=stage)
