"""Shardy in this process: propagation with its reasons, and previews that need no compile.

XLA writes the module that it hands to Shardy (`Dumps.stated`): everything is inlined there, and
what the user stated stands in it. Propagating a copy of it gives what XLA's own run gives, and
debug options make Shardy note where each mesh axis came from and along which op it travelled.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """A propagated module. `traced` says whether it holds the edges that axes travelled along."""

    module: shardy.Module
    traced: bool


def stated_module(dumps: Dumps) -> mlir.Module:
    """Give the module that XLA handed to Shardy, with the rules that only XLA knows.

    Raises `ValueError` where this jaxlib cannot read it, and `NotAvailable`; so do all here.
    """
    module = dumps.parsed_stated.copy()
    if dumps.propagated:
        module.take_rules(dumps.parsed_propagated)
    return module


def propagate(dumps: Dumps) -> Propagation:
    """Propagate the module that XLA handed to Shardy, and note the reasons.

    jaxlib 0.11.0 cannot note the edges of a program with a loop or a branch: only the origins
    are known there.
    """
    module = stated_module(dumps)
    try:
        traced = module.copy().run(f"{PIPELINE}{{{_ORIGINS} {_EDGES}}}")
    except ValueError:
        untraced = module.run(f"{PIPELINE}{{{_ORIGINS}}}")
        return Propagation(shardy.read(untraced), traced=False)
    return Propagation(shardy.read(traced), traced=True)


def imported(dumps: Dumps) -> mlir.Module:
    """Do to the stated module what Shardy does first, whatever its inputs' specs are."""
    return stated_module(dumps).run(_IMPORT)


def preview(
    module: mlir.Module, mesh: str, specs: Mapping[int, Spec], axes: Mapping[str, int] | None = None
) -> shardy.Module:
    """Give every value's sharding with other specs for some inputs, without compiling.

    The compiler may decide otherwise. `module` is one that was `imported`, `mesh` the name of its
    mesh; `specs` has the new spec by the number of an input, `axes` the axes of another mesh.
    """
    inputs = {number: sharding_text(mesh, spec) for number, spec in specs.items()}
    changed = module.copy(inputs, mesh_text(axes) if axes else "")
    return shardy.read(changed.run(_PROPAGATE))
