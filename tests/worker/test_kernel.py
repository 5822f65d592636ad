"""A large compile in a real kernel: it says how far it is, and an interrupt ends it."""

from __future__ import annotations

import time

from tests.magics.test_kernel import MIME, kernel

__all__ = ["kernel"]

DEEP = """
def deep(x, layers):
    for i in range(layers):
        x = jnp.sin(x @ jnp.ones((64, 64)) + i) + jnp.cumsum(x, axis=i % 2)
    return x
a, y = jnp.ones((64, 64)), 'before'
"""
CELL = "%%shard a=P('data')\ny = deep(a, 600)"


def shown(outputs):
    """The texts of a cell's displays, those of one output one after another."""
    texts = {}
    for kind, content in outputs:
        if kind in ("display_data", "update_display_data") and MIME not in content["data"]:
            key = content["transient"].get("display_id")
            texts.setdefault(key, []).append(content["data"]["text/plain"])
    return list(texts.values())


def test_a_large_compile_says_what_it_does_and_an_interrupt_ends_it(kernel):
    assert not [content for kind, content in kernel.run(DEEP) if kind == "error"]
    sent = kernel.send(CELL)
    seen, struck = [], 0.0
    for kind, content in kernel.outputs(sent):
        seen.append((kind, content))
        if not struck and "KiB of StableHLO" in str(content):
            struck = time.monotonic()
            kernel.client.parent.interrupt_kernel()
    assert time.monotonic() - struck < 2
    assert [c["ename"] for kind, c in seen if kind == "error"] == ["KeyboardInterrupt"]
    (texts,) = shown(seen)
    assert "s  tracing" in texts[0] or "s  Cell" in texts[0] or "equations" in texts[0]
    assert texts[-1] == ""
    assert kernel.value("y") == "'before'"
    assert not [kind for kind, _ in kernel.run("%%shard a=P('data')\ny = a * 2") if kind == "error"]
    assert kernel.value("float(y.sum())") == "8192.0"
