"""Shardy in this process: propagation with its reasons, and previews that need no compile.

XLA dumps the module that it passes to Shardy (`Dumps.stated`): everything is inlined there, with
the shardings that the user wrote. Propagating a copy of it has the same result as XLA's own run,
and debug options make Shardy record where each mesh axis came from and through which op.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shardnb.compiler.dumps import Dumps
from shardnb.jax_compat import mlir
from shardnb.report.model import Spec
from shardnb.texts import shardy
from shardnb.texts.shardy_attributes import mesh_text, sharding_text

# The import must come first: origins on a module with a shard_map that was not imported end the
# process with jaxlib 0.11.0.
_IMPORT = "sdy-import-pipeline"
_PROPAGATE = "sdy-apply-sharding-constraints,sdy-user-priority-propagate"
PIPELINE = f"{_IMPORT},{_PROPAGATE}"
_ORIGINS = "debug-sharding-origins=true keep-sharding-rules=true"
_EDGES = "debug-propagation-edge-sharding=true"


@dataclass(frozen=True)
class Propagation:
    """A propagated module. `traced` says whether it records the ops that axes passed through."""

    module: shardy.Module
    traced: bool


def stated_module(dumps: Dumps) -> mlir.Module:
    """Return the module that XLA passed to Shardy, with the rules that only XLA knows.

    Raises `ValueError` if this jaxlib cannot read it, and `NotAvailable`, as all functions here.
    """
    module = dumps.parsed_stated.copy()
    if dumps.propagated:
        module.take_rules(dumps.parsed_propagated)
    return module


def propagate(dumps: Dumps) -> Propagation:
    """Propagate the module that XLA passed to Shardy, and record the reasons.

    jaxlib 0.11.0 cannot record the ops for a program with a loop or a branch: there only the
    origins are known.
    """
    module = stated_module(dumps)
    try:
        traced = module.copy().run(f"{PIPELINE}{{{_ORIGINS} {_EDGES}}}")
    except ValueError:
        untraced = module.run(f"{PIPELINE}{{{_ORIGINS}}}")
        return Propagation(shardy.read(untraced), traced=False)
    return Propagation(shardy.read(traced), traced=True)


def imported(dumps: Dumps) -> mlir.Module:
    """Run Shardy's import passes, which do not depend on the specs of the inputs."""
    return stated_module(dumps).run(_IMPORT)


def preview(
    module: mlir.Module,
    mesh: str,
    specs: Mapping[int, Spec],
    axes: Mapping[str, int] | None = None,
    results: Mapping[int, Spec | None] | None = None,
    free: Collection[int] = (),
) -> shardy.Module:
    """Return every value's sharding with other specs for some inputs, without compiling.

    The compiler may choose otherwise. `module` is one that was `imported`, `mesh` the name of its
    mesh; `specs` has the new spec by the number of an input, `axes` the axes of another mesh, and
    `results` the new spec by the number of a result, None where the compiler chooses it. Shardy may
    shard the inputs `free` further.
    """
    inputs = {
        number: sharding_text(mesh, spec, is_open=number in free) for number, spec in specs.items()
    }
    outputs = {
        number: "" if spec is None else sharding_text(mesh, spec)
        for number, spec in (results or {}).items()
    }
    changed = module.copy(inputs, mesh_text(axes) if axes else "", outputs)
    return shardy.read(changed.run(_PROPAGATE))
