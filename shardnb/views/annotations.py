"""What an annotation of a tensor does, in words."""

from __future__ import annotations

from collections.abc import Sequence

from shardnb.report import Collective, Report
from shardnb.report.model import Spec
from shardnb.report.spec import spec_text
from shardnb.views.formatting import count, size
from shardnb.views.words import at

_SHOWN = 3


def of_data(name: str, function: str, spec: Spec, held: int, whole: int) -> str:
    """Say what an annotation of data moves; `held` and `whole` are bytes per device.

    >>> print(of_data("model.fc1.weight", "mark_sharding", (("model",), ()), 1024, 2048))
    mark_sharding shards model.fc1.weight as P('model'): it is data, so PyTorch/XLA uploads \
1.0 KiB to each device, and 2.0 KiB without the annotation
    """
    rest = "" if held == whole else f", and {size(whole)} without the annotation"
    return (
        f"{function} shards {name} as {spec_text(spec)}: it is data, so PyTorch/XLA uploads "
        f"{size(held)} to each device{rest}"
    )


def of_value(function: str, spec: Spec, nodes: int) -> str:
    """Say what an annotation of a value that the program computes costs.

    >>> print(of_value("mark_sharding", (("data",), ()), 1))
    mark_sharding shards this value as P('data'): the program computes it, so the annotation \
itself moves no bytes; it adds 1 node to the graph
    """
    parts = ", one for the value and one for its gradient" if nodes > 1 else ""
    return (
        f"{function} shards this value as {spec_text(spec)}: the program computes it, so the "
        f"annotation itself moves no bytes; it adds {count(nodes, 'node')} to the graph{parts}"
    )


def of_gradient(spec: Spec, alone: Spec | None, *, both: bool) -> str:
    """Say how the gradient is sharded with the second annotation, and without it (`alone`).

    >>> print(of_gradient((("data",), ()), ((), ()), both=False))
    its gradient is sharded as P(); mark_sharding_with_gradients would shard it as \
P('data')
    """
    if alone is None:
        return "how its gradient is sharded is unknown"
    if alone == spec:
        return "its gradient is sharded alike, with or without an annotation of its own"
    if both:
        return (
            f"its gradient is sharded as {spec_text(spec)}; mark_sharding would leave it as "
            f"{spec_text(alone)}"
        )
    return (
        f"its gradient is sharded as {spec_text(alone)}; mark_sharding_with_gradients would shard "
        f"it as {spec_text(spec)}"
    )


def of_absence(added: Sequence[Collective], removed: Sequence[Collective], report: Report) -> str:
    """Say what the program without the annotation sends, that it does not send now, and back."""
    parts = []
    if added:
        parts.append(f"needs {_listed(added, report)}")
    if removed:
        parts.append(f"does not need {_listed(removed, report)}")
    if not parts:
        return "without it the program has the same collectives"
    return f"without it the program {' and '.join(parts)}"


def not_compared(limit: float) -> str:
    """Say why the program without an annotation is not known."""
    return f"the program without it was not compiled within the limit of {limit:g} s"


def refused(why: str) -> str:
    """Say that the program without an annotation does not compile."""
    return f"the program without it was refused by the compiler: {why}"


def _article(text: str) -> str:
    return "an" if text.startswith("a") else "a"


def _listed(collectives: Sequence[Collective], report: Report) -> str:
    texts: dict[str, int] = {}
    for one in collectives:
        axes = "unknown axes" if one.axes is None else ", ".join(one.axes) or "all devices"
        line = at(one.frames[0], report) if one.frames else ""
        shape = f"{one.dtype}[{', '.join(map(str, one.shape))}]"
        text = (
            f"{one.kind}[{axes}] of {shape}, {size(one.wire_bytes)} per device{line and f' {line}'}"
        )
        texts[text] = texts.get(text, 0) + 1
    shown = [f"{n} x {text}" if n > 1 else f"{_article(text)} {text}" for text, n in texts.items()]
    rest = len(shown) - _SHOWN
    more = [f"and {count(rest, 'other')}"] if rest > 0 else []
    return "; ".join([*shown[:_SHOWN], *more])
