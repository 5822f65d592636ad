"""What is known of one program, however it was come by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shardnb.causes import Causes, UserShardings, explain_causes
from shardnb.causes.names import UserNames
from shardnb.causes.text_roles import with_roles
from shardnb.causes.training import Training
from shardnb.collectives.find import find_collectives
from shardnb.compiler.dumps import Dumps
from shardnb.findings.memory import memory_of, memory_of_compiled, with_host
from shardnb.propagation.named import Lines
from shardnb.propagation.written import WrittenNames
from shardnb.report.memory import Memory
from shardnb.report.model import Collective, Location, Mesh, Run, Value
from shardnb.report.types import SpecProblem
from shardnb.sources.source_texts import Sources
from shardnb.terms.primitives import PRIMITIVES
from shardnb.texts import hlo
from shardnb.texts.buffers import Allocation, read_allocations

_OF_JAX = re.compile(r'op_name="(jit|pjit|pmap|xmap)\(')
# PyTorch/XLA names an operation by the function of torch's, and calls of collectives by its own.
_OF_TORCH_XLA = re.compile(r'op_name="[^"]*\b(aten|xla)__')
_CALLED_IN_TORCH = re.compile(
    r"\bxla__(cross_replica_sum|all_reduce|all_gather|all_to_all|collective_permute|reduce_scatter)"
    r"[\w.]*$"
)
_CALLED = re.compile(
    rf"({'|'.join(name for name, row in PRIMITIVES.items() if row.kind is not None)})\w*\)*$"
)


@dataclass(frozen=True)
class Evidence:
    """What is known of one program: always its HLO, and the rest as far as it is there.

    `text` and `module` are the HLO that the report is about, `before` and `partitioned` the modules
    right before and right after partitioning, `dumps` what else the compiler wrote. `own` says that
    this process compiled the program: only then may its texts go back to XLA, which ends the
    process at a text that is not right.

    `inputs` and `outputs` are those that are known, and `parameters` names the HLO's parameters.
    `donated` are inputs by the number of their parameter, `stated_values` gives values whose
    shardings the text states, `user_shardings` are those written on Explicit axes, `moved` are
    arguments committed elsewhere. `jaxpr` and `compiled` are JAX's own, `failure` is the compiler's
    word for a program that does not fit into memory. `origins` says whether to seek where shardings
    came from (None: unless the program is large). `is_partitioned` is False where the partitioner
    has yet to add its collectives, and `complete` where not all inputs and outputs are known.
    `constants` names the closed-over arrays that `jax.jit` makes constants of each device.
    """

    title: str
    text: str
    module: hlo.Module
    mesh: Mesh
    sources: Sources
    own: bool
    before: hlo.Module | None = None
    partitioned: hlo.Module | None = None
    dumps: Dumps = field(default_factory=Dumps)
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    parameters: tuple[str, ...] = ()
    donated: Mapping[int, Value] = field(default_factory=dict)
    stated_values: Callable[[], Iterable[Value]] = tuple
    user_shardings: UserShardings | None = None
    moved: tuple[SpecProblem, ...] = ()
    jaxpr: Any = None
    compiled: Any = None
    failure: str = ""
    origins: bool | None = None
    notes: tuple[str, ...] = ()
    is_partitioned: bool = True
    complete: bool = True
    constants: frozenset[str] = frozenset()
    run: Run = field(default_factory=Run)
    texts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def allocations(self) -> tuple[Allocation, ...]:
        """XLA's list of what it allocates; empty where it did not write one."""
        return read_allocations(self.dumps.buffers)

    @cached_property
    def memory(self) -> Memory | None:
        """What one device holds, without what of it is alive at the peak.

        XLA's list of allocations is read sooner than analysed again. A TPU's analysis counts other
        temporaries than its compiler does, and of a GPU's list it is not known which of the memory
        spaces take room of their own.
        """
        listed, analysed = None, None
        apart = [each for each in self.allocations if not each.is_main]
        if self.allocations and not (apart and self.mesh.platform == "gpu"):
            listed = memory_of(self.allocations)
        if self.compiled is not None and (listed is None or self.mesh.platform != "cpu"):
            analysed = memory_of_compiled(self.compiled, self.mesh.platform)
        memory = listed or analysed
        if memory is None or self.compiled is None:
            return memory
        if analysed is not None:
            memory = replace(memory, code=analysed.code, host=analysed.host)
        constants = (value.shard_bytes for value in self.inputs if value.name in self.constants)
        memory = with_host(memory, self.inputs, self.outputs)
        return replace(memory, constants=sum(constants))

    @cached_property
    def causes(self) -> Causes:
        """The collectives with their causes, as far as the dumps tell them."""
        locate = self.sources.locate_anywhere
        found = find_collectives(self.module, self.mesh, locate, self.partitioned)
        if self.before is None or self.partitioned is None:
            named = bool(_OF_JAX.search(self.text) or _OF_TORCH_XLA.search(self.text))
            found = tuple(replace(c, generated=_is_made(c, named=named)) for c in found)
            found = with_roles(found, self.module, self.mesh)
        return explain_causes(
            found,
            optimized=self.module,
            partitioned=self.partitioned,
            before=self.before,
            dumps=self.dumps,
            mesh=self.mesh,
            input_names=self.parameters,
            output_names=[value.name for value in self.outputs],
            user_shardings=self.user_shardings,
            locate=locate,
            user_names=self._user_names(),
        )

    def _user_names(self) -> UserNames | None:
        """Return what the user's text calls values, of the files that `sources` may read."""
        return None if self.lines is None else WrittenNames(self.lines)

    @cached_property
    def lines(self) -> Lines | None:
        """The user's lines of the program before partitioning."""
        return None if self.before is None else Lines(self.before, self.sources)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives with their causes."""
        return self.causes.collectives

    @property
    def training(self) -> Training | None:
        """What the program trains, None where its dataflow is not known."""
        dataflow = self.causes.dataflow
        return None if dataflow is None else dataflow.training


def _is_made(collective: Collective, *, named: bool) -> bool | None:
    """Whether the compiler made a collective, as far as the text tells; else None.

    The partitioner's mark tells; else, in a program whose operations are `named` by JAX or by
    PyTorch/XLA, the operation that it was compiled from.
    """
    if collective.generated:
        return True
    if _CALLED.search(collective.op_name) or _CALLED_IN_TORCH.search(collective.op_name):
        return False
    return True if named and collective.op_name else None


def location_of(collective: Collective) -> Location | None:
    """Return the line that a collective is shown at: one of the explained text, else any."""
    frames = collective.frames
    return next((frame for frame in frames if frame.source == 0), frames[0] if frames else None)
