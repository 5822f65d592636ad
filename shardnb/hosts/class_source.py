"""The statement that defines a class of a notebook: run again, it registers the class, too."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Statement:
    """The definition of a class with its decorators, at its lines of a file.

    `names` are those that it reads as it runs, and not those that its methods read.
    """

    file: str
    text: str
    names: tuple[str, ...]

    def run(self, namespace: dict[str, Any]) -> None:
        """Define the class in a namespace; its lines are known for tracebacks."""
        lines = self.text.splitlines(keepends=True)
        linecache.cache.setdefault(self.file, (len(self.text), None, lines, self.file))
        exec(compile(self.text, self.file, "exec"), namespace)  # noqa: S102 - the user's class


def statement_of(cls: type, files: Mapping[str, str]) -> Statement | None:
    """Find the statement that defines a class at the top of a cell; `files` are their texts.

    A class with methods is of the file of these, another one of the last file that defines its
    name.
    """
    codes = [value.__code__ for value in vars(cls).values() if hasattr(value, "__code__")]
    own = [code.co_filename for code in codes if code.co_filename in files]
    for file in own[:1] or reversed(list(files)):
        for node in _classes(files[file]):
            if node.name == cls.__qualname__:
                return _statement(file, files[file], node)
    return None


def _classes(text: str) -> Iterator[ast.ClassDef]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell with a magic
        return
    yield from (node for node in reversed(tree.body) if isinstance(node, ast.ClassDef))


def _statement(file: str, text: str, node: ast.ClassDef) -> Statement:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    code = compile(ast.Module([node], []), file, "exec")
    bodies = [code, *(part for part in code.co_consts if _is_body(part, node.name))]
    names = dict.fromkeys(name for body in bodies for name in body.co_names)
    return Statement(file, "\n" * (first - 1) + "\n".join(lines), tuple(names))


def _is_body(part: object, name: str) -> bool:
    return isinstance(part, types.CodeType) and part.co_name == name
