"""How JAX words the errors that shardnb explains, and what is read from its words.

An error that JAX words otherwise is shown as JAX's own, without an explanation: no wording here is
needed for anything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from jax.sharding import PartitionSpec

_BOTH = ("0.11.0", "0.12.0.1")


@dataclass(frozen=True)
class Wording:
    """A pattern, a part of an error of JAX's that has it, and the JAX versions that said so."""

    pattern: str
    example: str
    seen: tuple[str, ...] = _BOTH

    def search(self, message: str) -> re.Match[str] | None:
        """Return the first match in an error's text."""
        return re.search(self.pattern, message)

    def findall(self, message: str) -> list[Any]:
        """Return what the groups of all matches hold."""
        return re.findall(self.pattern, message)


# Classes of errors, by name: JAX exports some of them only in some versions.

SHARDING_TYPE_ERROR = "ShardingTypeError"
INDIVISIBLE_ERROR = "IndivisibleError"
DUPLICATE_SPEC_ERROR = "DuplicateSpecError"
REPLICATION_ERROR = "_RepError"

# Values that a traced function does not have

TRACED_FUNCTION = Wording(
    r"while tracing the function (\S+) at",
    "The error occurred while tracing the function cell at <ipython-input-24-ab97>:1 for jit.",
)
FORMATTED_TRACER = Wording(
    r"format string passed to \w*Tracer\.__format__",
    "unsupported format string passed to DynamicJaxprTracer.__format__",
)
PRINTED_TRACER = Wording(r"\b\w*Tracer\(~?\w+\[", "the loss is JitTracer(float32[])")

# Sizes that mesh axes do not divide

FULL_SHAPE = Wording(
    r"(?:full shape: |Got shape: )\(([\d, ]*)\)",
    "the dimension size is 257 (full shape: (257, 512), per-dimension tiling factors: (4, 1)",
)
SPEC = Wording(
    r"spec=(P\((?:[^()]|\([^()]*\))*\))",
    "NamedSharding(mesh=Mesh('data': 4, axis_types=(Auto,)), spec=P('data', None), memory_kind=",
)
AXIS_SIZES = Wording(r"'(\w+)': (\d+)", "Mesh('data': 4, 'model': 2, axis_types=(Auto, Auto))")
KEY_PATH = Wording(
    r"pytree key path (\S+?) was",
    "One of pjit arguments with pytree key path x['w'] was given the sharding of",
)
SHARD_MAP_UNEVEN = Wording(
    "not evenly divisible",
    "was given argument arrays with axis sizes that are not evenly divisible by the corresponding "
    "mesh axis sizes:",
)
SHARD_MAP_ARGUMENT = Wording(
    r"the passed args(\S+) of shape (\w+)\[([\d,]*)\](?:, where args\S+ is bound to \S+'s "
    r"parameter '(\w+)',)? corresponds to in_specs\S* of value (P\(.*?\)), which maps",
    "the passed args[0] of shape float32[1,16], where args[0] is bound to <lambda>'s parameter "
    "'x', corresponds to in_specs of value P('data',), which maps array axis 0 (of size 1)",
)
SHARD_MAP_MESH = Wording(
    r"mesh given has shape \(([\d, ]+)\) with .*? names \(([^)]*)\)",
    "The mesh given has shape (8,) with corresponding axis names ('data',).",
)
NOT_DIVISIBLE = Wording(
    "not divisible",
    "slicing on sharded dims where out dim (6) is not divisible by mesh axes (4) with spec (data) "
    "is not implemented.",
)
NOT_IMPLEMENTED = Wording(
    "is not implemented", "sharding rule for cumsum is not implemented. Please file an issue"
)

# Specs and meshes

AXIS_NOT_IN_MESH = Wording(
    r"Resource axis: (?P<axis>\w+) of .*? is not found in mesh: \((?P<axes>[^)]*)\)",
    "Resource axis: dta of P('dta',) is not found in mesh: ('data', 'model').",
)
AXIS_NOT_MANUAL = Wording(
    r"(?s)^(?P<axes>.*?)but:.*_specs\S* refers to '(?P<axis>\w+)'",
    "shard_map in_specs argument must refer to an axis marked as manual (frozenset({'data'})), "
    "but:\n\n  in_specs refers to 'rows'",
)
AXIS_TWICE = Wording(
    r"has duplicate entries for `(\w+)`",
    "but P(('data', 'data'),) has duplicate entries for `data`",
)
SPEC_TOO_LONG = Wording(
    r"rank at least (?P<length>\d+), but was applied to a value of rank (?P<rank>\d+)",
    "is only valid for values of rank at least 2, but was applied to a value of rank 1.",
)
SHARD_MAP_SPEC_TOO_LONG = Wording(
    r"(?s)is (P\([^\n]*?\)) which has length (?P<length>\d+), but .*? has rank (?P<rank>\d+)",
    "in_specs is P('data', 'model') which has length 2, but the passed args[0] has shape "
    "float32[8], which has rank 1 (and 1 < 2)",
)
MESH_TOO_LARGE = Wording(
    r"must be >= the product of mesh_shape \(([\d, ]+)\)",
    "Number of devices 1 must be >= the product of mesh_shape (4096,)",
)
DEVICES_DO_NOT_RESHAPE = Wording(
    r"cannot reshape array .*?into shape \(([\d, ]+)\)",
    "cannot reshape array of size 1 into shape (4,2)",
)
TOO_LATE_FOR_DEVICES = Wording(
    "jax_num_cpu_devices",
    "jax_num_cpu_devices config should be updated before backends are initialized",
)

# Arrays placed elsewhere

NOT_IN_SHARDINGS = Wording(
    "does not match the sharding on the respective arg",
    "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding:",
)
OTHER_DEVICES = Wording(
    "incompatible devices", "Received incompatible devices for jitted computation."
)
DEVICE_IDS = Wording(
    r"device ids \[([\d, ]+)\]", "with device ids [6, 7, 4, 5, 2, 3, 0, 1] on platform CPU"
)

OTHER_MEMORY = Wording(
    r"memory_space of all inputs passed to `(?P<name>\w+)` must be the same",
    "memory_space of all inputs passed to `add` must be the same. Got one operand with type: "
    "float32[64,64] and another operand with type: float32<host>[64,64]",
)

# Explicit axes

LOOP_OVER_SHARDED = Wording(
    "0th dimension of (?:all xs|leaf passed to `jax.lax.map`) should be replicated",
    "0th dimension of leaf passed to `jax.lax.map` should be replicated. Got f32[8@d,4]",
)
CONSTRAINT_ASSERTS = Wording(
    "with_sharding_constraint",
    "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`.",
)
OTHER_TYPE_THAN_IN_SPECS = Wording(
    r"in_specs passed to shard_map: (.*?) does not match the specs of the input: "
    r"(.*?) for arg: (\S+)",
    "in_specs passed to shard_map: P('data',) does not match the specs of the input: P('model',) "
    "for arg: float32[8@model].",
)
SHARDINGS_DO_NOT_MEET = Wording(
    "Incompatible types for broadcasting|via `out_sharding`|over sharded axes|unreduced rule for",
    "Please pass sharding to `jnp.repeat` via `out_sharding` parameter.",
)

# shard_map and the varying set

NOT_REPLICATED = Wording(
    "require replication",
    "was given out_specs which require replication which can't be statically inferred given the "
    "mesh:",
)
BODY_UNDER_OUTER_MESH = Wording(
    r"For primitive (?P<name>\w+), context mesh (?:(?!Manual).)* should match the aval mesh "
    r"AbstractMesh\((?P<axes>[^()]*), axis_types=\((?P<kinds>[^)]*Manual[^)]*)\)",
    "For primitive broadcast_in_dim, context mesh AbstractMesh('d': 4, axis_types=(Auto,)) should "
    "match the aval mesh AbstractMesh('d': 4, axis_types=(Manual,)) for shape bool[]{V:d}.",
)
OTHER_MESH_IN_SHARD_MAP = Wording(
    "context mesh .* should match the mesh passed to shard_map",
    "The context mesh AbstractMesh('d': 8, axis_types=(Auto,)) should match the mesh passed to "
    "shard_map Mesh('d': 8, axis_types=(Explicit,))",
)
CARRY_CHANGES_TYPE = Wording(
    r"The input carry (?:component )?(.+?) has type (\S+) but the corresponding output carry "
    r"component has type ([^\s,]+(?:,[^\s,]+)*)",
    "The input carry c has type float32[2] but the corresponding output carry component has type "
    "float32[2]{V:data}, so the manual axis types do not match.",
)
BRANCHES_DIFFER = Wording(
    r"The output of (\w+?)(?:'s \w+)? has type (\S+) but the corresponding output of (\w+) has "
    r"type ([^\s,]+(?:,[^\s,]+)*)",
    "The output of true_fun has type float32[2]{V:data} but the corresponding output of false_fun "
    "has type float32[2], so the manual axis types do not match.",
)
AXIS_UNBOUND = Wording(
    r"[Uu]nbound axis name: (\w+)",
    "Found an unbound axis name: data. To fix this, please call psum under `jax.shard_map`.",
)
NOT_VARYING = Wording(
    "must be applied to a device-varying|variant->invariant collective",
    "psum is a variant->invariant collective. This means that the axis",
)
OTHER_UNREDUCED = Wording(
    r"_specs passed to shard_map should be.*reduced|educed in (?:in|out)_specs.*shard_map",
    "out_specs passed to shard_map should be equal to the unreduced present on the out_aval.",
)

# The compiler

SHARDING_NOT_COMPILED = Wording(
    "No registered implementation for untyped custom call to Sharding",
    "NOT_FOUND: No registered implementation for untyped custom call to Sharding for Host",
)
OUT_OF_MEMORY = Wording("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED: Ran out of memory on HBM,")
MEMORY_NEEDED = Wording(
    r"\(([\d.]+)([KMGT]?)\) exceeds available \w+ \(([\d.]+)([KMGT]?)\)"
    r"|Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?)",
    "the total memory required for HLO temporaries (45.64G) exceeds available HBM (15.75G).",
)
INTERRUPTED = Wording("KeyboardInterrupt", "INTERNAL: KeyboardInterrupt: <EMPTY MESSAGE>")
NO_LIBTPU = Wording("not installed", "JAX TPU support not installed; cannot generate TPU topology.")
# libtpu's, of a slice whose sizes are not multiples of those of a host.
HOSTS_DO_NOT_DIVIDE = Wording(
    r'not divisible by .*chips_per_host_bounds "([\dx]+)"',
    'Topology layout "v5e:3x3" is not divisible by the given (or default) chips_per_host_bounds '
    '"2x2x1"',
)
DONATED = Wording("deleted", "Array has been deleted with shape=float32[8].")

WORDINGS = tuple(value for value in dict(globals()).values() if isinstance(value, Wording))


# What is read from JAX's words

_ENTRY = re.compile(r"'(\w+)'|None|\(([^()]*)\)")
_VARYING = re.compile(r"\{V:\(?([\w,]+)\)?")
_DIMENSION = re.compile(r"\d+(?:@(\([^)]*\)|\w+))?(?:,|$)")


def numbers(text: str) -> tuple[int, ...]:
    """Read sizes such as `257, 512`."""
    return tuple(int(part) for part in text.split(",") if part.strip())


def names(text: str) -> tuple[str, ...]:
    """Read axis names such as `'data', 'model'`, each once."""
    return tuple(dict.fromkeys(re.findall(r"'(\w+)'", text)))


def read_spec(text: str) -> PartitionSpec:
    """Read a spec such as `P('data', None)`."""
    entries: list[Any] = []
    for match in _ENTRY.finditer(text[2:-1]):
        axes = tuple(re.findall(r"'(\w+)'", match[0]))
        entries.append(axes if match[2] is not None else axes[0] if axes else None)
    return PartitionSpec(*entries)


def spec_in_type(kind: str) -> PartitionSpec:
    """Read the spec in a type such as `float32[64@data,64]`."""
    shape = re.search(r"\[(.*?)\]", kind)
    parts = _DIMENSION.findall(shape[1]) if shape else []
    return PartitionSpec(*(tuple(part.strip("()").split(",")) if part else None for part in parts))


def varying_in_type(kind: str) -> set[str]:
    """Read the mesh axes along which a type such as `float32[2]{V:data}` differs."""
    found = _VARYING.search(kind)
    return set(found[1].split(",")) if found else set()


def first_sentence(message: str) -> str:
    """Return what an error says before it shows the types."""
    return message.partition("\n")[0].partition(". Got")[0].partition(" Got ")[0]


def compilers_words(error: BaseException) -> str:
    """Return the first line of an error of XLA's, without its status."""
    return str(error).partition("\n")[0].removeprefix("INVALID_ARGUMENT: ").strip()


_PREFIX = re.compile(r"^(?:LLVM ERROR: )?(?:[FE]\d{4} [\d:.]+ +\d+ )?")
_FATAL = re.compile(r"^F\d{4} |LLVM ERROR|Check failed|Fatal|Assertion")
_STACK = re.compile(r"^\s*(?:\*\*\* |@ +0x|#\d+ +0x|PC: @|\[[\w-]+:\d+\])")


def last_words(text: str) -> str:
    """Return what XLA wrote as it ended its process: what failed, without stacks and time stamps.

    >>> last_words("F1201 02:29:17.5 2718 util.cc:771] Check failed: x == y")
    'util.cc:771] Check failed: x == y'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _STACK.match(line)]
    fatal = [at for at, line in enumerate(lines) if _FATAL.search(line)]
    chosen = lines[fatal[0] : fatal[0] + 3] if fatal else lines[-3:]
    return " ".join(_PREFIX.sub("", line) for line in chosen)[:2000] or "it wrote nothing"


# Several threads write parts of such lines at the same time.
_GLOO = re.compile(
    r"^.*(?:\[Gloo\]|is connected to|Expected number of connected|peer ranks).*\n?", re.MULTILINE
)


def without_gloo(text: str) -> str:
    r"""Return what a process printed without the lines in which gloo says that it has connected.

    >>> without_gloo("[Gloo] Rank 0 is connected to 1 peer ranks. Expected number ... : 1\nhi\n")
    'hi\n'
    """
    return _GLOO.sub("", text)
