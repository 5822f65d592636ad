"""Which strategy a collective is typical of, in its report."""

from __future__ import annotations

from shardnb.report.model import Collective, Report
from shardnb.report.spec import axes_in
from shardnb.terms.roles import ROLES, Strategy


def strategy_of(collective: Collective, report: Report) -> Strategy | None:
    """Return the strategy that sends such collectives when all is as it should be, else None.

    What a finding counts as its cost is typical of nothing. Gradients that are scattered are FSDP's
    where the parameter is sharded over these axes, and ZeRO's where it is replicated over them. A
    softmax is tensor parallelism's over the shards of a parameter.
    """
    if collective.role is None or collective.id in report.ids_in_findings:
        return None
    if collective.role == "softmax" and not collective.role_of:
        return None  # over the keys of attention along a sharded sequence, for example
    strategy = ROLES[collective.role].typical
    of_gradients = collective.role in ("gradient-scatter", "gradient-norm")
    return (
        "weight-update sharding (ZeRO)"
        if of_gradients and _is_replicated(collective, report)
        else strategy
    )


def _is_replicated(collective: Collective, report: Report) -> bool:
    """Whether the parameter of a gradient is known to be replicated over a collective's axes."""
    specs = [value.spec for value in report.inputs if value.name == collective.role_of]
    axes = set(collective.axes or ())
    return any(spec is not None and not axes & axes_in(spec) for spec in specs)
