"""A vocabulary is listed in `terms` alone: everything else takes it from there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shardnb
from shardnb.terms.tables import TABLES

ROOT = Path(shardnb.__file__).parent
FILES = [path for path in ROOT.rglob("*.py") if path.parent != ROOT / "terms"]


def strings(node: ast.AST) -> list[str]:
    """Return the texts that stand in a collection itself; of a dict, its keys and its values."""
    if isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = node.elts
    else:
        return []
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def listed(source: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each collection with three members or more of a vocabulary: line, vocabulary, members.

    In a text, such as a pattern, alternatives count like a collection.
    """
    for node in ast.walk(ast.parse(source)):
        found = set(strings(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "|" in node.value:
            found = {part.strip("()\\b?: ") for part in node.value.split("|")}
        for name, rows in TABLES.items():
            members = sorted(found & set(rows))
            if len(members) >= 3:
                yield node.lineno, name, members


def test_no_module_lists_a_vocabulary():
    assert len(FILES) > 100
    found = [(str(path), *one) for path in FILES for one in listed(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("X = ('all-gather', 'all-reduce', 'all-to-all')", "Kind"),
        ("X = {'psum', 'pmax', 'pmin'}", "Primitive"),
        ("X = frozenset(['conflict', 'halo', 'reshape'])", "Reason"),
        ("X = {'called': 1, 'requested': 2, 'inferred': 3}", "Asker"),
        ("X = {'a': 'auto', 'b': 'explicit', 'c': 'manual'}", "AxisType"),
        ("X = Literal['forward', 'backward', 'sideways']", "Direction"),
        (r"X = re.compile(r'\b(all-gather|all-reduce|all-to-all)\(')", "Kind"),
    ],
)
def test_a_list_is_found(source, name):
    assert name in {found for _, found, _ in listed(source)}


def test_two_members_are_no_list():
    assert list(listed("X = ('all-gather', 'all-reduce', 'dot')")) == []
