"""HLO modules: their text from a proto, the work that XLA counts in one, and hooks on compiles."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardnb.jax_compat import parts
from shardnb.jax_compat.devices import emulated_devices

_POST_SCHEDULER = 1
OWN_FOLDER = "shardnb-"
"""How the names of the folders begin that shardnb has XLA dump to."""

_INSTALLING = threading.Lock()
_given: list[Mapping[str, str | bool]] = []

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


@contextmanager
def compiled_with(options: Mapping[str, str | bool]) -> Iterator[None]:
    """Give XLA these options, such as where to dump to, for each program compiled in this block.

    A compile that dumps to a folder of its own keeps its options. JAX's persistent cache does not
    see them. Of blocks in several threads the last that began counts. Raises `NotAvailable`.
    """
    original = parts.BACKEND_COMPILE.get()
    if "options" not in inspect.signature(original).parameters:
        raise parts.BACKEND_COMPILE.gone()
    module: Any = importlib.import_module(parts.BACKEND_COMPILE.module)
    name = parts.BACKEND_COMPILE.attribute
    with _INSTALLING:
        if not _given:
            setattr(module, name, _with_options(original))
        _given.append(options)
    try:
        yield
    finally:
        with _INSTALLING:
            _given.remove(options)
            current = getattr(module, name)
            # What somebody else put around it meanwhile stays.
            if not _given and hasattr(current, "shardnb_original"):
                setattr(module, name, current.shardnb_original)


Around = Callable[[str, Callable[[], Any]], Any]
"""Compiles a program: it is given its name and JAX's function that does so."""


def surround_compiles(around: Around) -> None:
    """Have each compile of the user's done by `around`, from now on; twice is once.

    Those of shardnb's own reports are left out. Raises `NotAvailable`.
    """
    original = parts.CACHED_COMPILE.get()
    signature = inspect.signature(original)
    if not {"computation", "compile_options"} <= set(signature.parameters):
        raise parts.CACHED_COMPILE.gone()

    @functools.wraps(original)
    def compiled(*args: Any, **named: Any) -> Any:
        given = signature.bind(*args, **named).arguments
        dumps_to = dict(given["compile_options"].env_option_overrides).get("xla_dump_to", "")
        if Path(dumps_to).name.startswith(OWN_FOLDER):
            return original(*args, **named)
        name = given["computation"].operation.attributes["sym_name"].value
        return around(name, lambda: original(*args, **named))

    compiled.shardnb_around = around  # type: ignore[attr-defined]
    with _INSTALLING:
        if getattr(original, "shardnb_around", None) is not around:
            module: Any = importlib.import_module(parts.CACHED_COMPILE.module)
            setattr(module, parts.CACHED_COMPILE.attribute, compiled)


def _with_options(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return JAX's call of XLA's compiler, which adds what is in `_given`."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def compile_with_options(*args: Any, **named: Any) -> Any:
        options = signature.bind(*args, **named).arguments["options"]
        before = list(options.env_option_overrides)
        added = [] if not _given or "xla_dump_to" in dict(before) else [*_given[-1].items()]
        options.env_option_overrides = [*before, *added]
        try:
            return original(*args, **named)
        finally:
            options.env_option_overrides = before

    compile_with_options.shardnb_original = original  # type: ignore[attr-defined]
    return compile_with_options
