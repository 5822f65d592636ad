"""What a JAX program sends between devices, who asked for it, why, and what it costs.

In a notebook, after `%load_ext shardnb`:

    %mesh data=4,model=2
    %%shard x=P('data', 'model') W=P('model')
    y = jnp.tanh(x @ W)

In Python:

    import shardnb as sn
    report = sn.explain(fn, x, W, mesh="data=4,model=2", in_specs=(P("data", "model"), P("model")))
    print(report)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardnb.report import InvalidInput, Report, shown

if TYPE_CHECKING:
    from shardnb.axis_types import check_shard_map, to_explicit
    from shardnb.engine import explain
    from shardnb.numerical_check import numeric_check
    from shardnb.profiles.reading import read_profile
    from shardnb.reading import explain_hlo
    from shardnb.search.plans import plan
    from shardnb.widgets import explore, predict

__version__ = "0.1.0"
__all__ = [
    "InvalidInput",
    "Report",
    "check_shard_map",
    "explain",
    "explain_dumps",
    "explain_hlo",
    "explore",
    "guard",
    "like",
    "logical",
    "numeric_check",
    "plan",
    "predict",
    "read_profile",
    "rules",
    "to_explicit",
    "watch",
]

_HOMES = {
    "GuardError": "shardnb.guards",
    "GuardWarning": "shardnb.guards",
    "check_shard_map": "shardnb.axis_types",
    "explain": "shardnb.engine",
    "explain_dumps": "shardnb.reading",
    "explain_hlo": "shardnb.reading",
    "explore": "shardnb.widgets",
    "guard": "shardnb.guards",
    "like": "shardnb.compiler.spec_rules",
    "logical": "shardnb.compiler.spec_rules",
    "numeric_check": "shardnb.numerical_check",
    "plan": "shardnb.search.plans",
    "predict": "shardnb.widgets",
    "read_profile": "shardnb.profiles.reading",
    "rules": "shardnb.compiler.spec_rules",
    "to_explicit": "shardnb.axis_types",
    "watch": "shardnb.watching",
}

# The report imports none of its views: each is looked up by name when something is first shown.
shown.register(
    {
        "bundle": "shardnb.views.live:mimebundle",
        "diff": "shardnb.views.changes:mimebundle",
        "diff text": "shardnb.views.changes:text_of",
        "check": "shardnb.widgets.check:display",
        "check widget": "shardnb.widgets.check:CheckView",
        "explanation": "shardnb.views.explanations:mimebundle",
        "explanation text": "shardnb.views.explanations:text_of",
        "figure": "shardnb.views.figure:draw",
        "on_hardware": "shardnb.cost:on_hardware",
        "page": "shardnb.views.html:save",
        "plans figure": "shardnb.views.plans:draw",
        "plans html": "shardnb.views.plans:html",
        "plans text": "shardnb.views.plans:text",
        "programs text": "shardnb.views.programs:render",
        "roofline": "shardnb.views.roofline:draw",
        "text": "shardnb.views.text:render",
    }
)


def __getattr__(name: str) -> Any:
    # JAX is imported when it is first needed, so a saved report opens without it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shardnb' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Add the magics `%mesh`, `%%shard` and `%shard` to a notebook."""
    from shardnb import magics

    magics.load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics."""
    from shardnb import magics

    magics.unload_ipython_extension(shell)
