"""Option strings, meshes, arguments and command lines: what they say, or one clear error."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb import cli
from shardnb.commands import typed_arguments
from shardnb.commands.command_error import BUG, STATUSES, CommandError
from shardnb.magics.options import CALL_OPTIONS, CELL_OPTIONS, MESH_OPTIONS, OptionError, parse
from shardnb.mesh import parse_mesh
from shardnb.report import InvalidInput
from tests.foreign import samples
from tests.foreign.conftest import MUTATIONS, soon
from tests.foreign.mutations import HOSTILE, HUGE, NUMBERS, PIECES, mutated

randoms = st.randoms(use_true_random=True)
OPTIONS = (
    "x=P('data', 'model') W = P('model',None) --out y=P('data') --no-run",
    "--mesh data=4,model=2 --axes explicit --on v5e:2x4 --save report --forbid inferred,all-gather",
    "f(x, W) --compare auto,explicit,manual --view brief params={'w': P('data'), 'b': None} # why",
    "jax.tree.map(lambda a: P('data'), x) --fix --errors on",
)


@given(randoms)
@MUTATIONS
def test_mutated_options_are_read_or_refused(random):
    line = mutated(random.choice(OPTIONS), random)
    with soon():
        for options in (CELL_OPTIONS, CALL_OPTIONS, MESH_OPTIONS):
            with suppress(OptionError):
                parse(line, options, specs=options is not MESH_OPTIONS)


@given(randoms)
@MUTATIONS
def test_mutated_meshes_are_read_or_refused(random):
    try:
        spec = parse_mesh(mutated("data=4,model=2:explicit", random))
    except InvalidInput:
        return
    assert parse_mesh(str(spec)) == spec


@given(randoms)
@MUTATIONS
def test_mutated_arguments_are_read_or_refused(random):
    text = random.choice(
        ("x=f32[256@data,512@(data,model)]", "n=4", "n=(1, [2.5, 'a'], {3: None})")
    )
    with suppress(CommandError):
        typed_arguments.parse(mutated(text, random))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the paths of a module, a dump, two reports, a folder and a broken notebook."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "m.py").write_text("def f(x, n=2):\n    return x * n\n\nobject_ = object()\n")
    (folder / "dump.hlo").write_text(samples.GPU)
    (folder / "a.json").write_text(samples.compiled("cpu").to_json())
    (folder / "b.ipynb").write_text('{"cells": [3], "nbformat": 4}')
    (folder / "empty").mkdir()
    return folder


def words(files):
    """Return the words of command lines that work, and of those that do not."""
    return (
        *("explain", "read", "diff", "--json", "--html", "--forbid", "--mesh", "--arg", "--args"),
        *("--in-specs", "--out-specs", "--axes", "--on", "--sources", "--help", "--version", "--"),
        *("data=4", "data=2,model=2", "cpu", "attached", "auto", "x=f32[8@data,4]", "n=3", "-"),
        *("inferred", "called", "P('data')", "x=f32[0]", "(1,)", "all-gather", "explicit", "-5"),
        *(f"{files}/m.py:f", f"{files}/m.py:object_", f"{files}/dump.hlo", f"{files}/a.json"),
        *(f"{files}/b.ipynb", f"{files}/empty", str(files), f"{files}/page.html"),
        *PIECES[:24],
        *HOSTILE,
        *NUMBERS,
        *HUGE,
    )


@given(randoms)
@MUTATIONS
def test_command_lines_have_a_known_status(files, random):
    known = words(files)
    start = random.choice(
        (
            [],
            ["explain", f"{files}/m.py:f", "--arg", "x=f32[8@data,4]", "--mesh", "data=4"],
            ["read", f"{files}/dump.hlo"],
            ["diff", f"{files}/a.json", f"{files}/a.json"],
        )
    )
    line = [*start, *random.choices(known, k=random.randrange(4))]
    for at in random.sample(range(len(line)), random.choice((0, 0, min(1, len(line))))):
        line[at] = mutated(line[at], random)
    with soon():
        assert run(line) in set(STATUSES) - {BUG}


def run(line):
    """Run a command line; gives its status."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as told:
        out.fileno = told.fileno = lambda: -1
        try:
            status = cli.main(line)
        except SystemExit as error:  # argparse's, for a line that it refuses and for --help
            status = error.code
    assert "Traceback" not in told.getvalue(), (line, told.getvalue())
    return status
