"""Every use of JAX's private parts and of jaxlib, in one place.

Each function says which public behaviour it stands in for. Where a part is gone, `NotAvailable`
says so in a sentence.
"""

from __future__ import annotations

import importlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jax._src.core
import jaxlib

_POST_SCHEDULER = 1
_TRACES_APART = itertools.count(1)

core = jax._src.core
"""What jaxprs are made of.

Stands in for `jax.extend.core`. Importing any part of `jax.extend` imports Pallas, which adds
settings to the keys of JAX's caches: every jitted function of the user's would compile again.
"""

ALONE = threading.RLock()
"""Held while something of the whole process is changed for a compile: descriptor 2, the cache."""


class NotAvailable(RuntimeError):
    """A part of JAX that shardnb needs is not in the installed version."""

    def __init__(self, part: str) -> None:
        """Name the missing part and the versions."""
        super().__init__(
            f"{part} is not available with jax {jax.__version__} and jaxlib {jaxlib.__version__}; "
            "shardnb supports jax 0.11.0 and later"
        )


def _part(module: str, name: str, what: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise NotAvailable(what) from error


def emulated_devices(count: int) -> Sequence[jax.Device]:
    """Give the devices of a new CPU client, beside the kernel's own backend.

    Stands in for `jax_num_cpu_devices`, which cannot change once JAX has started.
    """
    make = _part("jaxlib.xla_client", "make_cpu_client", "a second CPU client")
    devices: Sequence[jax.Device] = make(num_devices=count).devices()
    return devices


def compile_only(device: jax.Device) -> bool:
    """Whether a device is one of a topology, which one can compile for and nothing else.

    Stands in for the type of its client, which JAX does not make public.
    """
    return type(device.client).__name__ == "CompileOnlyPyClient"


@contextmanager
def constants_kept_apart() -> Iterator[None]:
    """Trace so that arrays which a function closes over stay apart from the program.

    Stands in for `jax_use_simplified_jaxpr_constants`, for this thread and block only.
    """
    state = _part("jax._src.config", "use_simplified_jaxpr_constants", "lifting closed-over arrays")
    with state(True):  # noqa: FBT003
        yield


def lower(traced: Any) -> Any:
    """Lower what `constants_kept_apart` traced; the arrays closed over become arguments.

    Stands in for `traced.lower()`, which would fold them into constants.
    """
    parameters = _part(
        "jax._src.interpreters.mlir", "LoweringParameters", "lifting closed-over arrays"
    )
    with constants_kept_apart():
        return traced.lower(_private_parameters=parameters(hoist_constants_as_args=True))


def closed_over(lowered: Any) -> tuple[Any, ...]:
    """Give the arrays that `lower` made into arguments; they come before all others."""
    try:
        return tuple(lowered._lowering.const_args)
    except AttributeError as error:
        raise NotAvailable("the list of closed-over arrays") from error


def kept_arguments(lowered: Any) -> tuple[int, ...]:
    """Give the numbers of the arguments that the program uses, closed-over arrays first."""
    try:
        return tuple(sorted(lowered._lowering.compile_args["kept_var_idx"]))
    except (AttributeError, KeyError) as error:
        raise NotAvailable("the list of used arguments") from error


@contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Compile without JAX's persistent cache: a program out of the cache leaves no dumps.

    Stands in for `jax_enable_compilation_cache`, whose value JAX reads only once.
    """
    cache: Any = importlib.import_module("jax._src.compilation_cache")
    if not hasattr(cache, "_cache_checked") or not hasattr(cache, "_cache_used"):
        raise NotAvailable("compiling beside the persistent cache")
    with ALONE:
        saved = cache._cache_checked, cache._cache_used
        cache._cache_checked, cache._cache_used = True, False
        try:
            yield
        finally:
            cache._cache_checked, cache._cache_used = saved


def hlo_text(proto: bytes) -> str:
    """Give the text of a serialized HLO module."""
    module = _part("jaxlib._hlo", "HloModule", "reading HLO protos")
    text: str = module.from_serialized_hlo_module_proto(proto).to_string()
    return text


@cache
def _counting_client() -> Any:
    return emulated_devices(1)[0].client


def cost_counts(text: str) -> dict[str, float]:
    """Count the operations and bytes of an HLO program's text, each loop's body once.

    Stands in for `compiled.cost_analysis()`, which has no counts for a part of a program. Raises
    `ValueError` where XLA cannot read the text.
    """
    # XLA checks a schedule as it reads one, and ends the process at some of TPU's.
    text = re.sub(r",? is_scheduled=true", "", text, count=1)
    read = _part("jaxlib._hlo", "hlo_module_from_text", "reading HLO text")
    count = _part("jaxlib._jax", "hlo_module_cost_analysis", "counting a program's work")
    try:
        return dict(count(_counting_client(), read(text)))
    except RuntimeError as error:
        raise ValueError(f"XLA cannot count this program: {error}") from error


def raw_frames(traceback: Any) -> list[tuple[Any, int]]:
    """Give the code objects and instruction offsets of a stack that JAX kept, innermost first.

    Stands in for `jax.extend.source_info_util.summarize`, which gives a text without columns.
    """
    if traceback is None:
        return []
    if not hasattr(traceback, "raw_frames"):
        raise NotAvailable("the stack of an equation")
    return list(zip(*traceback.raw_frames(), strict=True))


@contextmanager
def full_tracebacks() -> Iterator[None]:
    """Leave JAX's own frames in tracebacks, for this thread and block only.

    Stands in for `jax_traceback_filtering`, whose value belongs to the user.
    """
    state = _part("jax._src.config", "traceback_filtering", "tracebacks with JAX's own frames")
    with state("off"):
        yield


@contextmanager
def shard_map_arguments_checked_by(check: Callable[..., None]) -> Iterator[None]:
    """Call `check(specs, arguments)` in place of shard_map's own check of its arguments.

    Stands in for the exception that `jax.shard_map` raises at its first argument that does not
    fit. Only for a trace that nobody runs: the shapes in the body are rounded down.
    """
    module = importlib.import_module("jax._src.shard_map")
    name = "_check_specs_vs_args"
    original = _part("jax._src.shard_map", name, "the check of every shard_map at once")
    thread = threading.get_ident()

    def instead(*given: Any) -> None:
        if threading.get_ident() != thread:
            original(*given)
        else:
            check(*given[-2:])

    setattr(module, name, instead)
    try:
        yield
    finally:
        setattr(module, name, original)


@contextmanager
def mesh_context(mesh: Any) -> Iterator[None]:
    """Trace under an abstract mesh, or under none, for this thread and block only.

    Stands in for `jax.set_mesh`, which needs devices, and for leaving it.
    """
    use = _part("jax._src.mesh", "use_abstract_mesh", "tracing under another mesh")
    empty = _part("jax._src.mesh", "empty_abstract_mesh", "tracing under no mesh")
    with use(empty if mesh is None else mesh):
        yield


@contextmanager
def traced_apart() -> Iterator[None]:
    """Trace without meeting what JAX has cached of inner functions; what it adds is not met again.

    Stands in for `jax.make_user_context`: a call of it makes JAX compile every jitted function of
    the user's again. The setting is a part of the key of JAX's trace caches, for this thread and
    block only; its value, new each time, matches no file name.
    """
    state = _part("jax._src.config", "hlo_source_file_canonicalization_regex", "a trace apart")
    never = f"(?!){next(_TRACES_APART)}"
    with state(never if state.value is None else f"{state.value}|{never}"):
        yield


@contextmanager
def optimized_modules(name: str, callback: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Hand each module that is optimized for CPU in this block to `callback`.

    Stands in for `jax.extend.xla.register_hlo_module_transformation`, which would start the
    kernel's own backends first.
    """
    library = _part("jax._src.lib", "_xla", "the optimized program before machine code")
    if not hasattr(library, "register_xla_transform"):
        raise NotAvailable("the optimized program before machine code")
    library.register_xla_transform(name, _POST_SCHEDULER, callback)
    try:
        yield
    finally:
        library.clear_xla_transform(name, _POST_SCHEDULER)


@contextmanager
def compiled_modules(name: str, callback: Callable[[bytes], None]) -> Iterator[None]:
    """Hand each module that is optimized for any backend in this block to `callback`.

    Stands in for `jax.extend.xla`, which cannot be imported without the rest of `jax.extend`.
    """
    module, what = "jax._src.xla_transform", "the programs that a cell compiles"
    register = _part(module, "register_hlo_module_transformation", what)
    clear = _part(module, "clear_hlo_module_transformation", what)
    stage = _part(module, "PipelineStage", what).POST_SCHEDULER
    register(callback, name=name, stage=stage)
    try:
        yield
    finally:
        clear(name=name, stage=stage)
