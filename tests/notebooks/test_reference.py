"""The reference says what the docstrings say."""

import ast
import re

import nbformat
import pytest

import shardnb
from shardnb.magics import options
from tests.notebooks import reference


@pytest.fixture(scope="module")
def cells():
    return {cell.id: cell.source for cell in nbformat.read(reference.PATH, as_version=4).cells}


def test_it_is_up_to_date():
    again = "python -m tests.notebooks.reference writes it anew"
    assert reference.PATH.read_text(encoding="utf-8") == reference.written(), again


def test_every_public_name_has_an_entry(cells):
    text = "\n".join(cells.values())
    missing = [
        name
        for name in shardnb.__all__
        if not re.search(rf"^### `(sn\.)?{name}`", text, re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize(
    "option", [*options.CELL_OPTIONS, *options.CALL_OPTIONS], ids=lambda o: o.name
)
def test_every_option_of_the_magics_is_told(cells, option):
    assert f"--{option.name}" in cells["magic-shard"]


def test_every_option_of_mesh_is_told(cells):
    assert all(f"--{option.name}" in cells["magic-mesh"] for option in options.MESH_OPTIONS)


def test_every_function_has_an_example_and_what_it_raises(cells):
    functions = {name: text for name, text in cells.items() if name.startswith("function-")}
    for name, text in functions.items():
        assert "```pycon" in text, name
        assert re.search(r"\b[Rr]aises", text), name


def test_examples_are_python(cells):
    for text in cells.values():
        for example in re.findall(r"```pycon\n(.*?)```", text, re.DOTALL):
            lines = [line[4:] for line in example.splitlines() if line.startswith((">>> ", "... "))]
            ast.parse("\n".join(lines))
