"""The command line, called as a function; one test calls the installed command."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from shardnb import Report, cli
from shardnb.commands import output, typed_arguments
from shardnb.commands.command_error import CommandError

LAYER = """\
import jax
import jax.numpy as jnp


def layer(x, W, scale=1):
    return jnp.tanh(x @ W) * scale


def summed(params):
    return params["w"].sum()


def shapes():
    return ({"w": jax.ShapeDtypeStruct((8, 16), jnp.float32)},)


answer = 42


def optional(x, first=None, second=None, *, train):
    assert first is None and train is True
    return x + second


jitted = jax.jit(
    lambda x, W: x @ W,
    in_shardings=jax.NamedSharding(
        jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,)), jax.P("data")
    ),
    donate_argnums=0,
)
"""
MATMUL = [
    *("--mesh", "data=4,model=2"),
    *("--arg", "x=f32[256@data,512@model]", "--arg", "W=f32[512@model,1024]"),
]


@pytest.fixture
def layer(tmp_path):
    """The path of a file with a function `layer`."""
    path = tmp_path / "some_layer.py"
    path.write_text(LAYER)
    return path


def complaint(capsys, *argv, status=2):
    """Run bad input; gives the one line that it was answered with."""
    assert cli.main([str(word) for word in argv]) == status
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("shardnb: ")
    return line.removeprefix("shardnb: ")


def test_explain_prints_the_report_of_a_function(layer, capsys):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL]) == 0
    text = capsys.readouterr().out
    assert "all-reduce[model]" in text
    assert "return jnp.tanh(x @ W) * scale" in text


def test_explain_gives_a_functions_report_as_json(layer, capsys):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--json"]) == 0
    report = Report.from_json(capsys.readouterr().out)
    (collective,) = report.collectives
    assert (collective.kind, collective.axes, collective.bytes) == (
        "all-reduce",
        ("model",),
        64 * 1024 * 4,
    )


def test_explain_writes_a_page(layer, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--html", str(page)]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "all-reduce" in page.read_text()
    assert f"Wrote {page}" in capsys.readouterr().out


def test_explain_prices_a_function_as_if_on_a_cluster_or_by_a_file(layer, tmp_path, capsys):
    file = tmp_path / "cluster.toml"
    file.write_text('chip = "h100:4x2"\nmemory = 1e9\n')
    for given in ("h100:4x2", str(file)):
        argv = ["explain", f"{layer}:layer", *MATMUL, "--json", "--hardware", given]
        assert cli.main(argv) == 0
        cost = Report.from_json(capsys.readouterr().out).cost
        assert (cost.hardware, cost.assumed) == ("NVIDIA H100 SXM", True)
    assert cost.memory_size == 10**9


def test_explain_takes_literals_for_what_is_no_array(layer, capsys):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--arg", "scale=2", "--json"]) == 0
    names = [value.name for value in Report.from_json(capsys.readouterr().out).inputs]
    assert {"x", "W"} <= set(names)


def test_arguments_may_be_left_out_and_given_by_keyword(layer, capsys):
    words = ["--arg", "train=True", "--arg", "second=f32[8@data,4]", "--arg", "x=f32[8,4]"]
    target = f"{layer}:optional"
    assert cli.main(["explain", target, "--mesh", "data=4", "--json", *words]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert [(value.name, value.spec) for value in report.inputs] == [
        ("x", ((), ())),
        ("second", (("data",), ())),
    ]


def test_a_jitted_function_says_its_own_shardings(layer, capsys):
    words = ["--arg", "x=f32[8,4]", "--arg", "W=f32[4,4]"]
    assert cli.main(["explain", f"{layer}:jitted", "--json", *words]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert [value.spec for value in report.inputs] == [(("data",), ())] * 2


def test_explain_takes_an_expression_for_all_arguments(layer, capsys):
    argv = ["explain", f"{layer}:summed", "--mesh", "data=4", "--args", "shapes()"]
    assert cli.main([*argv, "--in-specs", "P('data')", "--json"]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert [value.name for value in report.inputs] == ["params['w']"]
    assert [c.kind for c in report.collectives] == ["all-reduce"]


def test_specs_of_all_arguments_may_be_given_by_rules(tmp_path, capsys):
    file = tmp_path / "step.py"
    file.write_text(
        "import jax, jax.numpy as jnp\n"
        "kernel = jax.ShapeDtypeStruct((8, 16), jnp.float32)\n"
        "given = {'up': {'kernel': kernel}}, {'up': {'kernel': kernel}}, 2.0\n"
        "def step(params, momentum, scale):\n"
        "    return params['up']['kernel'] * scale + momentum['up']['kernel']\n"
    )
    argv = ["explain", f"{file}:step", "--mesh", "model=4", "--args", "given", "--json"]
    line = "params:/up.kernel/=P(None, 'model') momentum=like(params)"
    assert cli.main([*argv, "--in-specs", line]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert [value.spec for value in report.inputs[:2]] == [((), ("model",))] * 2
    assert cli.main([*argv, "--in-specs", "{'params': rules({'kernel': P('model')})}"]) == 0
    assert Report.from_json(capsys.readouterr().out).inputs[0].spec == (("model",), ())
    assert cli.main([*argv, "--in-specs", "params:/kernal/=P('model')"]) == 3
    assert "no rule of params matches any of its arrays: /kernal/" in capsys.readouterr().err
    assert cli.main([*argv, "--in-specs", "params:/(/=P('model')"]) == 2
    assert "is not a regular expression" in capsys.readouterr().err


def test_specs_beside_the_types_of_arguments_are_refused(layer, capsys):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--in-specs", "x=P()"]) == 2
    assert "--in-specs goes with --args" in capsys.readouterr().err


def test_a_forbidden_collective_gives_status_1_and_is_named(layer, capsys):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--forbid", "all-reduce"]) == 1
    assert "all-reduce[model] at line 6 in layer is forbidden" in capsys.readouterr().err


def test_what_is_not_there_may_be_forbidden(layer):
    assert cli.main(["explain", f"{layer}:layer", *MATMUL, "--forbid", "all-gather,called"]) == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["there.py:f"], "there is no file there.py"),
        (["there"], "expected FILE.py:function or FILE.ipynb, got 'there'"),
        (["there.ipynb"], "there is no file there.ipynb"),
        (
            ["there.py:f", "--forbid", "gossip"],
            "'gossip' cannot be forbidden; the choices are called, requested, inferred, all-reduce,",
        ),
    ],
)
def test_bad_input_is_answered_with_one_line(words, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert complaint(capsys, "explain", *words).startswith(line)


@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        ("layr", [], "has no function layr"),
        ("answer", [], "is not a function"),
        ("layer", ["--arg", "x=f32[2,2]"], "layer needs W: add --arg W=f32[256@data,512]"),
        ("layer", ["--arg", "q=f32[2,2]"], "layer has no parameter q, only x, W, scale"),
        (
            "layer",
            ["--arg", "x=f32[2,b]"],
            "'b' in 'x=f32[2,b]' is not a dimension: an argument is",
        ),
        ("layer", ["--hardware", "mi300"], "--hardware: unknown hardware 'mi300'; known are v2"),
        ("layer", [*MATMUL, "--hardware", "h100:16"], "--hardware: the mesh has 8 devices"),
        ("layer", ["--hardware", "no.toml"], "--hardware: no.toml: [Errno 2] No such file"),
        ("layer", ["--arg", "x"], "cannot read the argument 'x': an argument is written as x=f32["),
        (
            "layer",
            ["--mesh", "data=4", "--arg", "x=f99[4,2]", "--arg", "W=f32[2,2]"],
            "float99 of x is not a dtype",
        ),
        (
            "layer",
            ["--mesh", "data", "--arg", "x=f32[4,2]", "--arg", "W=f32[2,2]"],
            "a mesh is written as data=4,model=2",
        ),
    ],
)
def test_a_bad_call_is_answered_with_one_line(function, words, line, layer, capsys):
    assert line in complaint(capsys, "explain", f"{layer}:{function}", *words)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--args", "nothing()"], "--args 'nothing()': NameError: name 'nothing'"),
        (
            ["--mesh", "data=4", "--arg", "x=f32[6@data,2]", "--arg", "W=f32[2,2]"],
            "dimension 0 (6) is not divisible by the 4 devices along `data`",
        ),
    ],
)
def test_a_call_that_raises_has_a_status_of_its_own(words, line, layer, capsys):
    assert line in complaint(capsys, "explain", f"{layer}:layer", *words, status=3)


def test_a_file_that_ends_the_process_is_not_taken_for_explained(tmp_path, capsys):
    path = tmp_path / "ends.py"
    path.write_text("def f(x):\n    return x\n\nimport sys\nsys.exit(0)\n")
    line = complaint(capsys, "explain", f"{path}:f", "--forbid", "inferred", status=3)
    assert line == f"{path} cannot be imported: SystemExit: 0"


def test_a_guard_that_explained_nothing_fails(tmp_path, capsys):
    path = notebook(tmp_path / "plain.ipynb", "1 + 1")
    assert cli.main(["explain", str(path), "--forbid", "inferred"]) == 4
    assert "no program was explained" in capsys.readouterr().err


def test_a_notebook_whose_kernel_dies_is_an_error_of_one_line(tmp_path, capsys):
    path = notebook(tmp_path / "dies.ipynb", "import os\nos._exit(0)")
    assert "the kernel did not finish" in complaint(capsys, "explain", path, status=3)


@pytest.mark.parametrize(
    "text",
    [
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [7]}',
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": [{"cell_type": "code"}]}',
        '{"nbformat": "x", "cells": {}}',
        "[" * 100_000,
        "[]",
        "3",
    ],
)
def test_a_malformed_notebook_is_an_error_of_one_line(text, tmp_path, capsys):
    path = tmp_path / "malformed.ipynb"
    path.write_text(text)
    assert "is not a notebook" in complaint(capsys, "explain", path)


def test_a_bug_has_a_status_of_its_own(monkeypatch, capsys, tmp_path):
    def broken(*given, **options):
        raise KeyError("bug")

    path = tmp_path / "module.hlo"
    path.write_text("")
    monkeypatch.setattr("shardnb.commands.saved.read", broken)
    assert cli.main(["read", str(path)]) == 5
    assert "KeyError: 'bug'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["explain"], ["read"], ["diff"], ["demo"]])
def test_the_help_says_each_exit_status(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    told = capsys.readouterr().out.partition("exit status:")[2]
    assert [line.split()[0] for line in told.splitlines() if line.strip()] == [
        *("0", "1", "2", "3", "4", "5"),
        "130",
    ]


def test_a_reader_that_leaves_early_is_met_with_silence(layer):
    target = [f"{layer}:layer", *MATMUL, "--forbid", "all-reduce"]
    command = [sys.executable, "-m", "shardnb.cli", "explain", *target]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        run.stdout.close()
        (told,) = run.stderr.read().splitlines()
    assert told == "shardnb: inferred all-reduce[model] at line 6 in layer is forbidden"
    assert run.returncode == 1


def test_a_file_that_raises_is_named_with_its_error(tmp_path, capsys):
    path = tmp_path / "raises.py"
    path.write_text("1 / 0\n")
    line = complaint(capsys, "explain", f"{path}:f", status=3)
    assert line == f"{path} cannot be imported: ZeroDivisionError: division by zero"


def test_a_page_that_cannot_be_written_is_an_error(layer, tmp_path, capsys):
    argv = ["explain", f"{layer}:layer", *MATMUL, "--html", str(tmp_path / "no" / "page.html")]
    assert cli.main(argv) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "spec"),
    [
        ("x=f32[4]", "float32", (4,), ((),)),
        ("x=bf16[]", "bfloat16", (), ()),
        ("x=pred[2,3]", "bool", (2, 3), ((), ())),
        ("x=s8[2@data, 3]", "int8", (2, 3), (("data",), ())),
        ("x=float32[8@(data,model)]", "float32", (8,), (("data", "model"),)),
        ("x=c64[1,2@a]", "complex64", (1, 2), ((), ("a",))),
    ],
)
def test_an_argument_is_read_from_a_type(text, dtype, shape, spec):
    argument = typed_arguments.parse(text)
    assert (argument.dtype, argument.shape, argument.spec) == (dtype, shape, spec)


@pytest.mark.parametrize("text", ["x=f32[4", "x=f32[4@]", "x=f32[-1]", "4=f32[4]", "x=y", "=f32[]"])
def test_what_is_no_argument_is_refused(text):
    with pytest.raises(CommandError, match="an argument is written as"):
        typed_arguments.parse(text)


def notebook(path, *sources):
    """Write a notebook of code cells."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_explain_runs_a_notebook_and_gives_its_reports(tmp_path, capsys):
    path = notebook(
        tmp_path / "one.ipynb",
        "%load_ext shardnb\nimport jax.numpy as jnp\nx = jnp.ones((8, 4))",
        "%%shard --mesh data=4 x=P('data')\ny = x.sum()",
    )
    assert cli.main(["explain", str(path), "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    report = Report.from_json(json.dumps(data))
    assert [(c.kind, c.axes) for c in report.collectives] == [("all-reduce", ("data",))]


def test_a_notebook_is_left_as_it_was(tmp_path):
    path = notebook(tmp_path / "one.ipynb", "1 + 1")
    before = path.read_text()
    cli.main(["explain", str(path)])
    assert path.read_text() == before


def test_a_notebook_whose_cell_raises_is_an_error_of_one_line(tmp_path, capsys):
    path = notebook(tmp_path / "bad.ipynb", "1 / 0")
    line = complaint(capsys, "explain", path, status=3)
    assert line == f"{path}: a cell raised ZeroDivisionError: division by zero"


def test_what_is_no_notebook_is_an_error_of_one_line(tmp_path, capsys):
    path = tmp_path / "text.ipynb"
    path.write_text("hello")
    line = complaint(capsys, "explain", path)
    assert line.startswith(f"{path} is not a notebook: NotJSONError: ")


def test_reports_in_a_page_are_escaped(tmp_path):
    from shardnb.report import Axis, Mesh

    report = Report("<script>x</script>", Mesh((Axis("a", 1),), (0,)))
    output.write_page([report], tmp_path / "page.html")
    assert "<script" not in (tmp_path / "page.html").read_text()


def test_the_installed_command_runs(layer):
    command = [str(Path(sys.executable).with_name("shardnb")), "explain", f"{layer}:layer", *MATMUL]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "all-reduce[model]" in done.stdout
    assert done.stderr == ""
