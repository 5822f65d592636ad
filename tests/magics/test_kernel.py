"""The magics in a real kernel: file names, cell ids, errors and interrupts as Jupyter has them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from shardnb.magics.preview_channel import TARGET

MIME = "application/vnd.shardnb.report.v1+json"
SETUP = """
%load_ext shardnb
import jax, jax.numpy as jnp, numpy as np
x = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
W = np.ones((8, 4), np.float32)
%mesh data=4,model=2
"""


def report_in(outputs):
    """The report among outputs; a compile that takes a second shows its progress before."""
    return next(content["data"][MIME] for _, content in outputs if MIME in content.get("data", {}))


class Kernel:
    """A running kernel, and what its cells give."""

    def __init__(self, client):
        self.client = client

    def send(self, code, cell_id=None, subshell=None):
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": False}
        metadata = {"cellId": cell_id} if cell_id else None
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def outputs(self, sent, until=lambda _: False):
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            yield kind, content
            if until(content):
                return

    def run(self, code, cell_id=None):
        return list(self.outputs(self.send(code, cell_id)))

    def interrupted(self, sent):
        """The errors of a cell that is interrupted, again where Python lost the interrupt.

        What reaches a callback of the garbage collector, or of ZeroMQ, is shown and dropped.
        """
        self.client.parent.interrupt_kernel()
        for kind, content in self.outputs(sent):
            if kind == "error":
                yield content
            elif "Exception ignored in" in content.get("text", ""):
                self.client.parent.interrupt_kernel()

    def value(self, code):
        found = [c["data"]["text/plain"] for kind, c in self.run(code) if kind == "execute_result"]
        return found[0] if found else None

    def report(self, code, cell_id=None):
        outputs = self.run(code, cell_id)
        return report_in(outputs)

    def error(self, code):
        outputs = self.run(code)
        return next(content for kind, content in outputs if kind == "error")


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager()
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="test", language="python")
    manager.start_kernel(env={**os.environ, "JAX_PLATFORMS": "cpu"})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    kernel = Kernel(client)
    assert not [content for kind, content in kernel.run(SETUP) if kind == "error"]
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    client.context.destroy()


def test_lines_and_cell_ids_are_those_of_the_notebook(kernel):
    kernel.run("\ndef f(v):\n    return v @ W", "cell-with-f")
    report = kernel.report(
        "%%shard x=P('data', 'model') W=P('model')\n\ny = f(x)\n", "cell-with-shard"
    )
    (collective,) = report["collectives"]
    assert [s["cell_id"] for s in report["sources"]] == ["cell-with-shard", "cell-with-f"]
    assert [(f["source"], f["function"]) for f in collective["frames"]] == [
        (1, "f"),
        (0, "<module>"),
    ]
    assert collective["frames"][1]["line"] == 3
    line = collective["frames"][0]["line"]
    assert report["sources"][1]["text"].splitlines()[line - 1] == "    return v @ W"


def test_an_edited_line_is_previewed_over_a_comm(kernel):
    body = "y = x @ W"
    kernel.run(f"%%shard x=P('data') W=P()\n{body}", "cell-with-shard")
    session, shell = kernel.client.session, kernel.client.shell_channel
    opened = session.msg("comm_open", {"comm_id": "1", "target_name": TARGET, "data": {}})
    code = f"%%shard x=P() W=P(None, 'model')\n{body}"
    question = {"number": 1, "cell": "cell-with-shard", "code": code}
    asked = session.msg("comm_msg", {"comm_id": "1", "data": question})
    shell.send(opened)
    shell.send(asked)
    sent = asked["header"]["msg_id"]
    (answer,) = [c["data"] for kind, c in kernel.outputs(sent) if kind == "comm_msg"]
    types = [[0, 2, "y", "f32[16, 4@model]"]]
    assert answer == {"number": 1, "kind": "preview", "types": types}
    code = "type(x).__name__, y.sharding.spec == jax.sharding.PartitionSpec('data')"
    assert kernel.value(code) == "('ndarray', True)"


def test_a_text_that_ran_in_two_cells_is_the_last_one_s(kernel):
    text = "def twice(v):\n    return v @ W @ W.T"
    kernel.run(text, "cell-first")
    number = int(kernel.value("len(In)"))
    kernel.run(text, "cell-copy")
    report = kernel.report("%%shard x=P('data', 'model')\ny = twice(x)", "cell-with-shard")
    sources = [(source["name"], source["cell_id"]) for source in report["sources"]]
    assert sources[1:] == [(f"Cell In[{number}]", "cell-copy")]


def test_a_source_has_the_name_that_the_notebook_shows(kernel):
    number = int(kernel.value("len(In)"))
    report = kernel.report("%%shard\ny = x * 2")
    assert report["sources"][0]["name"] == f"Cell In[{number}]"


def test_the_last_expression_is_the_result_of_the_cell(kernel):
    assert kernel.value("%%shard x=P('data')\nx.sum()") == "Array(8128., dtype=float32)"
    assert kernel.value("float(_)") == "8128.0"


def test_a_semicolon_silences_it(kernel):
    assert kernel.value("%%shard x=P('data')\nx.sum();") is None


def test_an_error_is_shown_at_its_line_and_fails_the_cell(kernel):
    error = kernel.error("%%shard x=P('data')\n\ny = x * 2\nraise KeyError('boo')")
    shown = "\n".join(error["traceback"])
    assert error["ename"] == "KeyError"
    assert ", line 4" in plain(shown)
    assert "run_cell_magic" not in shown
    assert "shardnb" not in shown
    assert kernel.value("'y_' in dir()") == "False"


def test_an_error_of_jax_is_shown_at_its_line(kernel):
    error = kernel.error("%%shard x=P('data')\n\ny = jnp.dot(x, x)")
    shown = plain("\n".join(error["traceback"]))
    assert error["ename"] == "TypeError"
    assert "----> 3 y = jnp.dot(x, x)" in shown
    assert "shardnb" not in shown


def test_a_syntax_error_is_pythons_own(kernel):
    error = kernel.error("%%shard x=P('data')\n\ny = x +\n")
    shown = plain("\n".join(error["traceback"]))
    assert error["ename"] == "SyntaxError"
    assert ", line 3" in shown
    assert "run_cell_magic" not in shown


def test_a_bad_line_is_one_line(kernel):
    outputs = kernel.run("%%shard z=P('data')\ny = x * 2")
    (text,) = [content["text"] for kind, content in outputs if kind == "stream"]
    assert text == "UsageError: z is not defined\n"


@pytest.mark.parametrize(
    "body",
    [
        "x = x * 2\nprint('started', flush=True)\nimport time; time.sleep(60)",
        "print('started', flush=True)\nwhile True: x = x * 1\n",
    ],
)
def test_an_interrupt_leaves_the_kernel_as_it_was(kernel, body):
    sent = kernel.send(f"%%shard x=P('data')\n{body}")
    list(kernel.outputs(sent, until=lambda content: "started" in content.get("text", "")))
    *_, error = kernel.interrupted(sent)
    assert error["ename"] == "KeyboardInterrupt"
    assert "run_cell_magic" not in "\n".join(error["traceback"])
    assert kernel.value("type(x).__name__, float(x.sum()), 'time' in dir()") == (
        "('ndarray', 8128.0, False)"
    )
    assert kernel.value("%%shard x=P('data')\nx.sum()") == "Array(8128., dtype=float32)"


def test_a_subshell_waits_for_a_trace_and_keeps_its_output(kernel):
    pytest.importorskip("ipykernel.subshell", reason="subshells need ipykernel 7")
    client = kernel.client
    request = client.session.msg("create_subshell_request")
    client.control_channel.send(request)
    subshell = client.get_control_msg(timeout=60)["content"]["subshell_id"]
    kernel.run("import time\nv = jnp.arange(8.0)")
    traced = kernel.send(
        "%%shard --view none\nprint('tracing', flush=True)\ntime.sleep(1)\nv = v * 2\nprint('traced')"
    )
    started = list(
        kernel.outputs(traced, until=lambda content: "tracing" in content.get("text", ""))
    )
    beside = kernel.send("print('beside', type(v).__name__)\n1 + 1", subshell=subshell)
    texts, results, idle = {traced: "", beside: ""}, {}, set()
    while idle != {traced, beside}:
        message = client.get_iopub_msg(timeout=60)
        parent, content = message["parent_header"].get("msg_id"), message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            idle |= {parent} & {traced, beside}
        elif parent in texts:
            texts[parent] += content.get("text", "")
            results |= {parent: content["data"]} if message["msg_type"] == "execute_result" else {}
    assert started
    assert texts[traced] == "traced\n"
    assert texts[beside] == "beside ArrayImpl\n"
    assert results[beside]["text/plain"] == "2"
    assert kernel.value("type(v).__name__, float(v[3])") == "('ArrayImpl', 6.0)"


def test_a_watched_cell_is_reported_at_its_lines(kernel):
    kernel.run("%%shard x=P(None, 'model') --out a=P(None, 'model')\na = x")
    report = kernel.report("%%shard --watch\n@jax.jit\ndef g(a):\n    return a.sum(1)\nb = g(a)")
    assert report["collectives"][0]["frames"][0]["line"] == 4
    assert report["collectives"][0]["axes"] == ["model"]


BROKEN = """
import os
from shardnb.causes.judge import Judge
kept, strict = Judge.judge, os.environ.pop('SHARDNB_STRICT')
def judge(*_): raise KeyError('add.1')
Judge.judge = judge
"""
MENDED = "Judge.judge, os.environ['SHARDNB_STRICT'] = kept, strict"


def test_a_bug_is_seen_below_the_cell_and_the_report_stands(kernel):
    kernel.run(BROKEN)
    outputs = kernel.run("%%shard x=P('data')\nx.sum()")
    kernel.run(MENDED)
    logged = "".join(c["text"] for kind, c in outputs if kind == "stream" and c["name"] == "stderr")
    assert logged.startswith("a bug in shardnb: the cause of the all-reduce number 0 is not shown")
    assert "in judge\n" in logged
    report = report_in(outputs)
    assert [one["reason"] for one in report["collectives"]] == ["unknown"]
    assert [c["data"]["text/plain"] for kind, c in outputs if kind == "execute_result"] == [
        "Array(8128., dtype=float32)"
    ]


def test_loading_imports_neither_the_compiler_nor_what_only_some_cells_need():
    """What takes long to import comes with the cell that needs it, so that loading is quick."""
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell as Shell;"
        "Shell.instance().run_line_magic('load_ext', 'shardnb'); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = set(loaded.stdout.split())
    assert "shardnb.magics.magics" in modules
    later = ("matplotlib", "anywidget", "flax", "google.protobuf")
    rooms = ("compiler", "texts", "sources", "findings", "causes", "propagation", "widgets")
    assert not modules & {*later, *(f"shardnb.{room}" for room in rooms)}


def plain(text):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
