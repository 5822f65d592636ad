"""Each private or unstable part of JAX and jaxlib that shardnb uses: why, and what if it is gone.

A part is looked up where it is used, so that a missing one is never fatal at import. A required
part has a fallback in public JAX; without an optional one, what needs it is switched off and
`lost` says so. `tests/jax_compat/test_parts.py` takes away each of them in turn.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import reduce
from importlib import metadata
from typing import Any, Literal


class NotAvailable(RuntimeError):
    """A part of JAX that shardnb needs is not in the installed version."""

    def __init__(self, part: str) -> None:
        """Name the missing part and the versions."""
        super().__init__(f"{_is_gone(part)}; shardnb supports jax 0.11.0 and later")


def _is_gone(part: str) -> str:
    jax, jaxlib = metadata.version("jax"), metadata.version("jaxlib")
    return f"{part} is not available with jax {jax} and jaxlib {jaxlib}"


@dataclass(frozen=True)
class Part:
    """A part of JAX: `attribute` of `module`, or of an object of JAX's where `module` is "".

    `instead_of` is the public part that would be used if it did the same, and why it does not.
    `fallback` is what shardnb does without a required part; "" makes the part optional. `lost` is
    what the user then reads, in each report or explained error, or at the place (`told_in` ""). A
    module without the attributes `has` counts as gone.
    """

    what: str
    module: str
    attribute: str
    instead_of: str
    lost: str
    fallback: str = ""
    told_in: Literal["report", "error", ""] = ""
    has: tuple[str, ...] = ()

    def get(self, owner: Any = None) -> Any:
        """Return the part, of `owner` where it is an attribute of an object; or `NotAvailable`."""
        try:
            start = importlib.import_module(self.module) if self.module else owner
            part = reduce(getattr, filter(None, self.attribute.split(".")), start)
            for name in self.has:
                getattr(part, name)
        except (ImportError, AttributeError) as error:
            raise self.gone() from error
        return part

    def call(self, *args: Any, **options: Any) -> Any:
        """Call the part; one that does not take these arguments any more is gone, too."""
        part = self.get()
        try:
            return part(*args, **options)
        except TypeError as error:
            raise self.gone() from error

    def gone(self) -> NotAvailable:
        """Remember for `lost` that the part is gone; gives the exception to raise."""
        _gone[self] = None
        return NotAvailable(self.what)


_gone: dict[Part, None] = {}


def lost(told_in: Literal["report", "error"]) -> tuple[str, ...]:
    """Say what is lost with the parts that were needed in this process and are gone."""
    parts = {part.lost: part.what for part in _gone if part.told_in == told_in}
    return tuple(f"{what}: {_is_gone(part)}" for what, part in parts.items())


# Devices

CPU_CLIENT = Part(
    "a second CPU client",
    "jaxlib.xla_client",
    "make_cpu_client",
    instead_of="jax_num_cpu_devices, which cannot change once JAX has started",
    fallback="the CPU devices of the notebook's own backend, if there are enough",
    lost="a mesh can have only as many CPU devices as jax_num_cpu_devices says",
)
CLIENT = Part(
    "the client of a device",
    "",
    "client",
    instead_of="nothing: JAX does not say in public that a device can only be compiled for",
    fallback="a device that is not among jax.devices() can only be compiled for",
    lost="nothing",
)
TOPOLOGIES = Part(
    "compiling for a TPU topology",
    "jax.experimental.topologies",
    "get_topology_desc",
    instead_of="nothing: jax.experimental may change in any version",
    lost="meshes on TPU topologies",
)
DEVICE_MESH = Part(
    "the layout of a mesh on a TPU topology",
    "jax.experimental.mesh_utils",
    "create_device_mesh",
    instead_of="jax.make_mesh, which has no allow_split_physical_axes",
    lost="meshes on TPU topologies",
)

GPU_TOPOLOGIES = Part(
    "compiling for a GPU cluster",
    "jax._src.lib",
    "xla_client",
    instead_of="jax_plugins, which start a GPU backend in this process",
    lost="meshes on GPU clusters",
    has=(
        "load_pjrt_plugin_dynamically",
        "pjrt_plugin_loaded",
        "pjrt_plugin_initialized",
        "initialize_pjrt_plugin",
        "make_c_api_device_topology",
    ),
)

# Compiling

_ALONE = "a compile can end the kernel, and an interrupt waits for its end"
_IN_KERNEL = "programs are compiled in the notebook's own process"
LOWERING = Part(
    "the lowered program inside of JAX's stage",
    "",
    "_lowering",
    instead_of="nothing: lowered.compile() does all of a compile, in this process",
    fallback=_IN_KERNEL,
    lost=_ALONE,
)
COMPILE_CLIENT = Part(
    "the client that a program is compiled by",
    "",
    "compile_args",
    instead_of="nothing: lowered.compile() does all of a compile, in this process",
    fallback=_IN_KERNEL,
    lost=_ALONE,
)
COMPILE_OPTIONS = Part(
    "reading the options of a compile",
    "jaxlib.xla_client",
    "CompileOptions",
    instead_of="compiler_options of lowered.compile(), which are a part of these",
    fallback=_IN_KERNEL,
    lost=_ALONE,
)
DEVICE_LIST = Part(
    "the devices of a compile",
    "jaxlib.xla_client",
    "DeviceList",
    instead_of="nothing: a client compiles for these alone",
    fallback=_IN_KERNEL,
    lost=_ALONE,
)

# Lowering

_CONSTANTS_LOST = (
    "arrays that the function closes over are constants of the compiled program and not listed as "
    "inputs"
)
SIMPLIFIED_CONSTANTS = Part(
    "tracing with closed-over arrays apart",
    "jax._src.config",
    "use_simplified_jaxpr_constants",
    instead_of="jax_use_simplified_jaxpr_constants, which holds for the whole process",
    fallback="closed-over arrays stay constants",
    lost=_CONSTANTS_LOST,
    told_in="report",
)
LOCATIONS_LIMIT = Part(
    "the number of frames that a program keeps of each stack",
    "jax._src.config",
    "traceback_in_locations_limit",
    instead_of="jax_traceback_in_locations_limit, which holds for the whole process",
    lost="lines of torch code are not found below those of torch and torchax",
)
LOWERING_PARAMETERS = Part(
    "lifting closed-over arrays to arguments",
    "jax._src.interpreters.mlir",
    "LoweringParameters",
    instead_of="traced.lower(), which folds closed-over arrays into constants",
    fallback="traced.lower()",
    lost=_CONSTANTS_LOST,
    told_in="report",
)
CLOSED_OVER = Part(
    "the list of closed-over arrays",
    "",
    "_lowering.const_args",
    instead_of="nothing: lowered.args_info has only the function's own arguments",
    fallback="traced.lower()",
    lost=_CONSTANTS_LOST,
    told_in="report",
)
CONSTANT_SHARDINGS = Part(
    "the shardings of closed-over arrays",
    "jax._src.pjit",
    "const_args_shardings",
    instead_of="nothing: a closed-over array is placed by JAX alone",
    fallback="closed-over arrays keep their shardings; the compiler chooses for the others",
    lost="closed-over arrays may be shown sharded, which jax.jit makes constants of each device",
    told_in="report",
)
KEPT_ARGUMENTS = Part(
    "the list of used arguments",
    "",
    "_lowering.compile_args",
    instead_of="compiled.input_shardings, which a program too large for a device does not have",
    fallback="compiled.input_shardings",
    lost="a report of a program that is too large for a device",
)
CACHE_FLAGS = Part(
    "compiling beside JAX's compilation cache",
    "jax._src.compilation_cache",
    "_cache_checked",
    instead_of="jax_enable_compilation_cache, whose value JAX reads only once",
    fallback="the program is compiled with the cache",
    lost="a program that comes out of JAX's compilation cache leaves no evidence of its causes",
    told_in="report",
)

# Tracing

TRACE_KEY = Part(
    "a trace apart from JAX's caches",
    "jax._src.config",
    "hlo_source_file_canonicalization_regex",
    instead_of="jax.make_user_context, which makes JAX compile all jitted functions again",
    fallback="jax.make_user_context",
    lost="JAX compiles once more the functions that it compiled before",
)
TRACE_STATE = Part(
    "the trace in which an object of a library was made",
    "jax._src.core",
    "get_opaque_trace_state",
    instead_of="jax.extend.core, whose import makes JAX compile all jitted functions again",
    lost="a cell cannot change the models of flax.nnx in place",
)
TRACE_OF = Part(
    "the trace that a traced value belongs to",
    "",
    "_trace",
    instead_of="nothing: JAX does not say in public which trace a value belongs to",
    lost="that a traced value stays in the process is not noticed",
)
_OPTIONS_LOST = "the options of a jitted function (shardings, donation, static arguments)"
JIT_INFO = Part(
    "the options of a jitted function",
    "",
    "_jit_info",
    instead_of="nothing: a jitted function does not say in public what it was jitted with",
    fallback="the function is jitted once more around its own jax.jit",
    lost=_OPTIONS_LOST,
    told_in="report",
)
JITTED_FUNCTION = Part(
    "the function inside a jitted one",
    "",
    "__wrapped__",
    instead_of="inspect.unwrap, which goes on to what the function itself wraps",
    fallback="the function is jitted once more around its own jax.jit",
    lost=_OPTIONS_LOST,
    told_in="report",
)
TRACEBACK_FILTERING = Part(
    "tracebacks with JAX's own frames",
    "jax._src.config",
    "traceback_filtering",
    instead_of="jax_traceback_filtering, whose value belongs to the user",
    lost="which operation raised is known only in a notebook",
    told_in="error",
)
SHARD_MAP_CHECK = Part(
    "the check of every argument of a shard_map at once",
    "jax._src.shard_map",
    "_check_specs_vs_args",
    instead_of="the exception of jax.shard_map, which names its first argument that does not fit",
    lost="only the first argument of a shard_map that does not fit is shown",
    told_in="error",
)

# Frames

TRACEBACK = Part(
    "the stack of an equation",
    "",
    "source_info.traceback",
    instead_of="jax.extend.source_info_util: importing jax.extend makes JAX compile again",
    fallback="the lines that XLA has in the program",
    lost="values and constraints are shown without the lines that wrote them",
    told_in="report",
)
RAW_FRAMES = Part(
    "the columns of an equation's source",
    "",
    "raw_frames",
    instead_of="the frames of the same stack, which have lines and no columns",
    fallback="lines without columns",
    lost="the source of an operation is known by its line only, and no expression is shown",
    told_in="report",
)
FRAMES = Part(
    "the lines of an equation's stack",
    "",
    "frames",
    instead_of="jax.extend.source_info_util: importing jax.extend makes JAX compile again",
    fallback="the lines that XLA has in the program",
    lost="values and constraints are shown without the lines that wrote them",
    told_in="report",
)

# HLO

HLO_MODULE = Part(
    "reading HLO protos",
    "jaxlib._hlo",
    "HloModule.from_serialized_hlo_module_proto",
    instead_of="nothing: compiled.as_text() is for programs that shardnb compiles",
    lost="--watch without dumps, and searches compile each program to its end",
)
HLO_FROM_TEXT = Part(
    "reading HLO text",
    "jaxlib._hlo",
    "hlo_module_from_text",
    instead_of="nothing",
    lost="the work in a program with loops is not counted",
    told_in="report",
)
COST_ANALYSIS = Part(
    "counting the work of a program's text",
    "jaxlib._jax",
    "hlo_module_cost_analysis",
    instead_of="compiled.cost_analysis(), which counts a loop once and no part of a program",
    lost="the work in a program with loops is not counted",
    told_in="report",
)
CPU_TRANSFORMS = Part(
    "the optimized program before machine code",
    "jax._src.lib",
    "_xla.register_xla_transform",
    instead_of="JAX's own hook, which would start the notebook's own backends first",
    lost="searches compile each program to its end",
)
COMPILED_MODULES = Part(
    "the programs that a cell compiles",
    "jax._src.xla_transform",
    "register_hlo_module_transformation",
    instead_of="jax.extend.xla: importing jax.extend makes JAX compile again",
    lost="--watch without dumps",
)

BACKEND_COMPILE = Part(
    "XLA's dumps of what a cell compiles",
    "jax._src.compiler",
    "backend_compile_and_load",
    instead_of="XLA_FLAGS, which XLA reads once, when its process starts",
    lost="--watch and sn.watch do not say who asked for a collective",
)
CACHED_COMPILE = Part(
    "what a call compiles, before it runs",
    "jax._src.compiler",
    "compile_or_get_cached",
    instead_of="the hook for HLO modules, which cannot stop a program and does not see cached ones",
    lost="sn.guard",
)

PROFILER_SESSION = Part(
    "measuring a program",
    "jaxlib._profiler",
    "ProfilerSession",
    instead_of="jax.profiler.trace, which starts the notebook's own backends, and writes files",
    lost="--profile and explain(profile=N)",
    has=("stop",),
)

# MLIR


def _bindings(module: str, *has: str) -> Part:
    return Part(
        "Shardy in this process",
        f"jaxlib.mlir.{module}",
        "",
        instead_of="a command line such as Shardy's own tool",
        lost="causes of collectives, origins of shardings, previews without a compile, and plans",
        has=has,
    )


MLIR_BINDINGS = {
    "ir": _bindings("ir", "Context", "DialectRegistry", "MLIRError", "Module", "RankedTensorType"),
    "_mlir_libs._jax_mlir_ext": _bindings("_mlir_libs._jax_mlir_ext", "register_dialects"),
    "passmanager": _bindings("passmanager", "PassManager"),
    "dialects.sdy": _bindings(
        "dialects.sdy",
        "register_dialect",
        "AxisRefAttr",
        "DimMappingAttr",
        "DimensionShardingAttr",
        "ManualAxesAttr",
        "MeshAttr",
        "MeshAxisAttr",
        "OpShardingRuleAttr",
        "SubAxisInfoAttr",
        "TensorMappingAttr",
        "TensorShardingAttr",
        "TensorShardingPerValueAttr",
    ),
    "dialects.stablehlo": _bindings(
        "dialects.stablehlo",
        "register_dialect",
        "ComparisonDirectionAttr",
        "ConvDimensionNumbers",
        "DotDimensionNumbers",
    ),
    "dialects.chlo": _bindings("dialects.chlo", "register_dialect"),
    "dialects.mhlo": _bindings("dialects.mhlo", "register_mhlo_dialect"),
}
"""jaxlib's MLIR modules by their names, with what is used of each."""

PARTS = (
    *(part for part in dict(globals()).values() if isinstance(part, Part)),
    *MLIR_BINDINGS.values(),
)
