"""Edits that give arrays other specs: those of inputs and results as `%%shard` takes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from shardnb.findings.evidence import Evidence
from shardnb.findings.patterns import prefix, steps
from shardnb.report.edits import NewSpec, ProposedEdit
from shardnb.report.model import Spec, Value
from shardnb.report.spec import spec_text
from shardnb.views.sent import pattern

# More specs than these are described in words: a model has one for each kind of parameter
# (test_more_specs_than_one_reads_are_described_in_words).
_WRITTEN = 4


def spec_edit(
    evidence: Evidence, inputs: Mapping[str, Spec], results: Mapping[str, Spec], in_words: str
) -> ProposedEdit:
    """Return the edit that gives inputs and results, by their names, these specs.

    A pytree whose arrays all get the same is written once; `in_words` is for too many of them.
    """
    written = list(_written(evidence.inputs, inputs))
    results_written = list(_written(evidence.outputs, results))
    if results_written:
        written += ["--out", *results_written]
    few = len(written) <= _WRITTEN + bool(results_written)
    # After --out a cell gives a name one spec or a tree of them: what it holds is known only later.
    few = few and not any(
        len(steps(label)) > 1 and steps(label)[0] != "result" for label in results_written
    )
    specs = [NewSpec("input", name, spec) for name, spec in inputs.items()]
    specs += [NewSpec("result", name, spec) for name, spec in results.items()]
    return ProposedEdit(" ".join(written) if few else in_words, tuple(specs))


def constraint_text(name: str, spec: Spec) -> str:
    """Return the statement that gives a value a spec, on Auto axes."""
    return f"{name} = jax.lax.with_sharding_constraint({name}, {spec_text(spec)})"


def _written(values: Sequence[Value], specs: Mapping[str, Spec]) -> Iterator[str]:
    texts = {name: spec_text(spec) for name, spec in specs.items()}
    given: dict[str, list[str | None]] = defaultdict(list)
    for value in values:
        given[pattern(value.name)].append(texts.get(value.name))
    labels = []
    for label, text in _labels(values, texts, 1):
        starred = pattern(label)
        # A star stands for all numbers, so the arrays of all of them must get this spec.
        is_alike = len(given[starred]) > 1 and set(given[starred]) == {text}
        labels.append(f"{starred if is_alike else label}={text}")
    yield from dict.fromkeys(labels)


def _labels(
    values: Sequence[Value], texts: Mapping[str, str], depth: int
) -> Iterator[tuple[str, str]]:
    """Yield the largest parts of the pytrees whose arrays all get the same spec."""
    parts: dict[str, list[Value]] = {}
    for value in values:
        parts.setdefault(prefix(value.name, depth), []).append(value)
    for label, members in parts.items():
        given = {texts.get(member.name) for member in members}
        text = given.pop() if len(given) == 1 else None
        if text is not None:
            yield label, text
        elif given and any(len(steps(member.name)) > depth for member in members):
            yield from _labels(members, texts, depth + 1)
