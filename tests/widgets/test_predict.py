"""Predict-then-reveal has a report, and shows it where no widget is alive."""

from __future__ import annotations

import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.widgets.conftest import layer, shape


def test_it_takes_a_function_or_its_report():
    specs = (P("data", "model"), P("model"))
    options = {"mesh": "data=4,model=2", "in_specs": specs}
    args = (shape(256, 512), shape(512, 1024))
    asked = sn.predict(layer, *args, **options)
    assert [c.kind for c in asked.report.collectives] == ["all-reduce"]
    again = sn.predict(asked.report)
    assert sn.Report.from_json(again.data) == asked.report
    assert "all-reduce[model]" in again._repr_mimebundle_()[0]["text/html"]
    with pytest.raises(ValueError, match=r"sn\.predict\(report\)"):
        sn.predict(asked.report, mesh="data=4")
