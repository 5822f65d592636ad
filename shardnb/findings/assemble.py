"""Evidence becomes a report, from whatever evidence there is."""

from __future__ import annotations

import itertools
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import metadata

import jax

from shardnb.causes import Counts
from shardnb.collectives.host_copies import host_copies
from shardnb.collectives.transfers import host_transfers
from shardnb.compiler import Program, SourceTexts
from shardnb.compiler.collector import collector_paused
from shardnb.compiler.dumps import Dumps, pass_on
from shardnb.cost import priced
from shardnb.findings import (
    accumulated_in_loop,
    activation_gather,
    collective_reasons,
    full_rematerialisation,
    lost_donation,
    lost_sharding,
    moved_arguments,
    out_of_memory,
    padded_constraints,
    repeated_gather,
    replicated_inputs,
    returned_otherwise,
    silent_replication,
    state_unlike_parameters,
    unchanging_in_loop,
)
from shardnb.findings.evidence import Evidence
from shardnb.findings.peak import with_peak
from shardnb.findings.program_evidence import evidence_of_program
from shardnb.findings.text_evidence import evidence_of_text
from shardnb.findings.work import work_of
from shardnb.jax_compat.jaxprs import equations
from shardnb.jax_compat.parts import lost
from shardnb.propagation import Explained, values_of
from shardnb.propagation.typed_view import typed_program, with_varying
from shardnb.report import valid
from shardnb.report.model import Finding, Mesh, Report
from shardnb.report.typed import TypedLine
from shardnb.terms.findings import FindingKind
from shardnb.views.formatting import count, size

Find = Callable[[Evidence], Iterable[Finding]]

FINDINGS: tuple[Find, ...] = (
    out_of_memory.find,
    lost_sharding.find,
    silent_replication.find,
    full_rematerialisation.find,
    activation_gather.find,
    repeated_gather.find,
    collective_reasons.find,
    padded_constraints.find,
    accumulated_in_loop.find,
    unchanging_in_loop.find,
    returned_otherwise.find,
    lost_donation.find,
    state_unlike_parameters.find,
    replicated_inputs.find,
    moved_arguments.find,
)
"""What finds each finding, in the order of a report; one whose evidence is missing finds none."""

_MORE_SPECIFIC: Mapping[FindingKind, tuple[FindingKind, ...]] = {
    "output spec": ("state unlike parameters", "returned otherwise"),
    "no partitioned form": ("lost sharding",),
}
"""For a finding that says why something is gathered, those that say what is wrong with that."""

# Equations up to which a report holds the typed view of its program: a reader can still read it.
_TYPED_LIMIT = 5000

_NO_AXES = "no mesh is given: groups are shown by the positions of their devices"
_NO_CAUSES = "the text does not say who asked for a collective, and why"


def report_of_program(program: Program, *, origins: bool | None = None) -> Report:
    """Return the report of a program that was compiled here, and how long reading it took.

    `origins` is as for `explain`.
    """
    start = time.perf_counter()
    with collector_paused():
        report = assemble(evidence_of_program(program, origins=origins))
    seconds = time.perf_counter() - start
    return replace(report, run=replace(report.run, explain_seconds=seconds))


def report_of_text(
    text: str,
    mesh: Mesh | None = None,
    texts: SourceTexts | None = None,
    *,
    own: bool = False,
    dumps: Dumps | None = None,
) -> Report:
    """Return the report of an HLO text; the arguments are those of `evidence_of_text`."""
    with collector_paused():
        report = assemble(evidence_of_text(text, mesh, texts, own=own, dumps=dumps))
        return report if own else valid.check(report)


def assemble(evidence: Evidence) -> Report:
    """Read evidence into a report, and pass on the compiler's warnings that are not shown in it.

    Sources are numbered in the order in which their lines are met: first those of collectives.
    """
    causes = evidence.causes
    pass_on(causes.warnings_left)
    explained, typed = _values(evidence), _typed(evidence)
    report = Report(
        title=evidence.title,
        mesh=evidence.mesh,
        inputs=evidence.inputs,
        outputs=evidence.outputs,
        values=with_varying(explained.values, typed),
        collectives=causes.collectives,
        findings=_counted_once(finding for find in FINDINGS for finding in find(evidence)),
        memory=with_peak(evidence),
        typed=typed,
        work=work_of(evidence.text, evidence.module, evidence.compiled) if evidence.own else None,
        sources=evidence.sources.texts(),
        versions=_versions(evidence),
        notes=(
            *evidence.notes,
            *_of_cores(evidence.mesh),
            *dict.fromkeys(evidence.dumps.problems),
            *explained.notes,
            *_of_causes(evidence),
            *_of_hosts(evidence),
            *lost("report"),
        ),
        partitioned=evidence.is_partitioned,
        complete=evidence.complete,
        run=evidence.run,
        texts=evidence.texts,
    )
    return priced(report)


def _counted_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave a gather to a finding that says more of it."""
    every = tuple(findings)
    counted: dict[FindingKind, set[int]] = {
        kind: {i for finding in every if finding.kind in specific for i in finding.collectives}
        for kind, specific in _MORE_SPECIFIC.items()
    }
    return tuple(kept for finding in every if (kept := _less(finding, counted)) is not None)


def _less(finding: Finding, counted: Mapping[FindingKind, set[int]]) -> Finding | None:
    if finding.kind not in counted:
        return finding
    left = tuple(one for one in finding.collectives if one not in counted[finding.kind])
    return replace(finding, collectives=left) if left else None


def _values(evidence: Evidence) -> Explained:
    """Return the values of the user's lines, or those whose sharding a text states.

    Shardy does not run on what comes from elsewhere: at a module that is not right it ends the
    process.
    """
    if evidence.lines is None:
        return Explained(tuple(evidence.stated_values()))
    return values_of(
        evidence.dumps,
        evidence.mesh,
        evidence.lines,
        inputs=evidence.parameters,
        outputs=[value.name for value in evidence.outputs],
        origins=evidence.origins if evidence.own else False,
    )


def _typed(evidence: Evidence) -> tuple[TypedLine, ...]:
    """Return the typed view where types say placements, and where a reader can still read it."""
    if evidence.jaxpr is None:
        return ()
    found = list(itertools.islice(equations(evidence.jaxpr), _TYPED_LIMIT + 1))
    manual = any(equation.primitive.name == "shard_map" for equation in found)
    typed = manual or any(axis.type != "auto" for axis in evidence.mesh.axes)
    if not typed or len(found) > _TYPED_LIMIT:
        return ()
    names = [value.name for value in evidence.inputs if not value.closed_over]
    return typed_program(evidence.jaxpr, evidence.sources, names).lines


def _versions(evidence: Evidence) -> dict[str, str]:
    """Return the versions of what made a program and its report, as far as they are known."""
    own = {"shardnb": metadata.version("shardnb")}
    if not evidence.own:
        return own
    jaxlib = metadata.version("jaxlib")
    return {**own, "jax": jax.__version__, "jaxlib": jaxlib, "python": platform.python_version()}


def _of_cores(mesh: Mesh) -> Iterator[str]:
    """Say that the devices are not those that JAX shows on a machine of this kind."""
    if mesh.kind == "TPU v4" and mesh.cores is not None:
        yield "each core of a chip is a device here; on a v4 machine JAX shows one device a chip"


def _of_causes(evidence: Evidence) -> Iterator[str]:
    """Say what became of collectives on the way, or what is not known of them."""
    collectives, counts = evidence.collectives, evidence.causes.counts
    if counts is not None:
        yield from _on_the_way(counts)
    if collectives and not evidence.mesh.axes:
        yield _NO_AXES
    unknown = (one.asked_by is None and one.generated is not False for one in collectives)
    if counts is None and any(unknown):
        yield _NO_CAUSES


def _of_hosts(evidence: Evidence) -> Iterator[str]:
    """Say what devices transfer to and from their hosts: callbacks, feeds, copies of arrays."""
    if transfers := host_transfers(evidence.module):
        yield f"{transfers} transfers between a device and its host are not among the collectives"
    copies = host_copies(evidence.module)
    if any(copies):
        yield (
            f"each device copies {size(copies.to_device)} per run from its host's memory, and "
            f"{size(copies.to_host)} back"
        )


def _on_the_way(counts: Counts) -> Iterator[str]:
    """Say how many collectives there were at each stage, where the numbers differ."""
    if not (counts.differ or counts.combined or counts.moved):
        return
    called, made, left = (sum(n.values()) for n in (counts.called, counts.made, counts.left))
    asked = [f"the program calls {count(called, 'collective')}"] if called else []
    asked += [f"the partitioner inserted {count(made, 'collective')}"] if made else []
    changes = (
        (counts.combined, "is sent together with others", "are sent together with others"),
        (counts.gone, *2 * ("merged with others or simplified away",)),
        (counts.copied, "is a copy of another", "are copies of others"),
        (counts.added, *2 * ("added by the compiler after partitioning",)),
        (counts.moved, *2 * ("moved out of the loop that needs it",)),
    )
    changed = [
        f"{number} {one if number == 1 else many}" for number, one, many in changes if number
    ]
    before = f"{' and '.join(asked)}, and " if asked else ""
    if before and left == called + made and len(changed) == 1 and counts.combined:
        yield f"{before}{counts.combined} of them are sent together with others"
        return
    has = "as many" if before and left == called + made else count(left, "collective")
    # An all-reduce whose result is sliced becomes a reduce-scatter, for example.
    became = f": {', '.join(changed)}" if changed else ", of other kinds"
    yield f"{before}the compiled program has {has}{became}"
