"""Reports written by hand as the data of their JSON, small and as large as they come.

They are shown as `spoken` gives them: with the words that Python has for them.
"""

from __future__ import annotations

import json
from typing import Any

from shardnb.report import Report
from shardnb.views import live

Data = dict[str, Any]

CELL = "%%shard x=P('data', 'model') W=P('model')\nh = x @ W\ny = jnp.tanh(h)"
HOSTILE = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'


def spoken(data: Data) -> Data:
    """Return a report's data with its words, as a notebook keeps it."""
    if "said" in data or "deflated" in data:
        return data
    report = Report.from_json(json.dumps(data))
    return live.to_data(report)


def sketch(cell: str = CELL) -> Data:
    """Return a report of two collectives, at the cell's second and third line, on 4 x 2 devices."""
    return {
        "title": "cell",
        "mesh": _mesh(4, 2),
        "inputs": [
            _array("x", (256, 512), (("data",), ("model",)), (64, 256)),
            _array("W", (512, 1024), (("model",), ()), (256, 1024)),
        ],
        "outputs": [_array("y", (256, 1024), (("data",), ()), (64, 1024))],
        "values": [
            _array("h", (256, 1024), (("data",), ()), (64, 1024), location=_at(2)),
            _array("y", (256, 1024), (("data",), ()), (64, 1024), location=_at(3)),
        ],
        "collectives": [
            _collective(0, "all-reduce", "model", 0, line=2, trips=4),
            _collective(1, "all-gather", "data", 1, line=3, asked_by="requested"),
        ],
        "sources": [{"name": "cell", "text": cell}],
        "versions": {"jax": "0.12.0"},
        "version": 1,
        "group_table": [
            [[0, 1], [2, 3], [4, 5], [6, 7]],
            [[0, 2, 4, 6], [1, 3, 5, 7]],
        ],
    }


def large(rows: int = 128, columns: int = 16, number: int = 5000) -> Data:
    """Return a report of many collectives on many devices: 2048 and 5,000 of four kinds."""
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    lines = [f"step_{i} = f(step_{i - 1})" for i in range(1, 101)]
    shape, shard = (rows * 8, columns * 64), (8, 64)
    along_model = [list(range(i * columns, (i + 1) * columns)) for i in range(rows)]
    along_data = [list(range(i, rows * columns, columns)) for i in range(columns)]
    return {
        "title": "cell",
        "mesh": _mesh(rows, columns),
        "inputs": [
            _array("x", shape, (("data",), ("model",)), shard),
            _array("W", shape, (("model",), ()), (shape[0] // columns, shape[1])),
            _array("t", (rows * columns, 4), (("data", "model"), ()), (1, 4)),
        ],
        "outputs": [
            _array("y", shape, (("data",), ()), (8, shape[1]), unreduced=("model",)),
        ],
        "collectives": [
            _collective(
                i,
                kinds[i % 4],
                ("model", "data")[i % 2],
                i % 2,
                line=i % 100 + 1,
                trips=i % 5 + 1,
                wire_bytes=1024 * (i % 977 + 1),
                asked_by=("inferred", "requested", "called")[i % 3],
                producer=f"dot_general.{i}",
                consumer=f"tanh.{i}",
                instruction=f"%collective.{i} = f32[64,1024] {kinds[i % 4]}(%fusion.{i}), "
                f"channel_id={i}, replica_groups=[128,16]<=[2048]",
                op_name=f"jit(step)/layer_{i % 48}/dot_general",
            )
            for i in range(number)
        ],
        "sources": [{"name": "cell", "text": "\n".join(lines)}],
        "version": 1,
        "group_table": [along_model, along_data],
    }


def hostile() -> Data:
    """Return a report in which every text would do harm where it were taken for markup."""
    data = sketch(f"%%shard\nh = '{HOSTILE}'\ny = h")
    for part in (*data["inputs"], *data["outputs"], *data["values"]):
        part["name"] = HOSTILE
    for one in data["collectives"]:
        one.update(why=HOSTILE, producer=HOSTILE, instruction=HOSTILE)
    findings = [{"kind": "donation", "message": HOSTILE, "details": HOSTILE}]
    shown = spoken(data | {"title": HOSTILE, "notes": [HOSTILE], "findings": findings})
    # No kind is like this; the view shows what it gets.
    for one in (*shown["collectives"], *shown["findings"]):
        one["kind"] = HOSTILE
    shown["said"]["collectives"]["name"] = {"texts": [HOSTILE]}
    for part in (*shown["said"]["rows"], *shown["said"]["points"]):
        part.update({name: HOSTILE for name in ("name", "what", "head", "cause") if name in part})
    return shown


def _mesh(rows: int, columns: int) -> Data:
    return {
        "axes": [{"name": "data", "size": rows}, {"name": "model", "size": columns}],
        "device_ids": list(range(rows * columns)),
        "emulated": True,
    }


def _array(name, shape, spec, shard, **more) -> Data:
    return {
        "name": name,
        "dtype": "f32",
        "shape": list(shape),
        "spec": [list(axes) for axes in spec],
        "shard_shape": list(shard),
        **more,
    }


def _collective(number, kind, axis, groups, *, line, **more) -> Data:
    return {
        "id": number,
        "kind": kind,
        "axes": [axis],
        "groups": groups,
        "dtype": "f32",
        "shape": [64, 1024],
        "wire_bytes": 262144,
        "asked_by": "inferred",
        "reason": "partial-sum",
        "frames": [_at(line)],
        **more,
    }


def _at(line: int) -> Data:
    return {"source": 0, "line": line}
