"""Functions and shapes that the widgets' tests explore, and a front end that asks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.report import Report
from shardnb.widgets import explore


def layer(x, W):  # noqa: N803 - as people write it
    h = x @ W
    return jnp.tanh(h)


def shape(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)


class Front:
    """A front end: asks as the explorer's own does, and waits for what comes."""

    def __init__(self, explorer):
        self.explorer = explorer
        self.number = 0

    def plan(self, *, axes=None, **specs):
        """Return the present plan with other specs, or on another mesh."""
        plan = {"axes": self.explorer.plan["axes"], "specs": dict(self.explorer.plan["specs"])}
        plan["specs"] |= specs
        if axes is not None:
            plan["axes"] = [{"name": n, "size": s, "type": t} for n, s, t in axes]
        return plan

    def ask(self, kind, plan=None, **more):
        self.number += 1
        content = {"kind": kind, "number": self.number, "plan": plan, **more}
        self.explorer._handle_custom_msg(content, [])
        return self.number

    def preview(self, plan):
        self.ask("preview", plan)
        return self.explorer.answer

    def compile(self, plan):
        number = self.ask("compile", plan)
        assert self.explorer._worker.wait(60)
        if self.explorer.compiled["number"] != number:
            return self.explorer.answer
        return Report.from_json(self.explorer.compiled["report"])


@pytest.fixture
def explorer():
    """Explore a layer on 4 x 2 devices: x over both axes, W over model."""
    specs = (P("data", "model"), P("model"))
    found = explore(layer, shape(256, 512), shape(512, 1024), mesh="data=4,model=2", in_specs=specs)
    yield found
    found.close()


@pytest.fixture
def front(explorer):
    return Front(explorer)
