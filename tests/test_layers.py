"""The rooms of `shardnb/`: a module imports from its own room and from those below it.

Every import is read from the source, those inside functions and under `TYPE_CHECKING` as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shardnb

ROOT = Path(shardnb.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES}

ROOMS = [
    "terms",
    "bugs",
    "interrupts",
    "progress",
    "tracebacks",
    "report",
    "views",
    "cost",
    "jax_compat",
    "worker",
    "texts",
    "mesh",
    "hosts",
    "torch",
    "sources",
    "compiler",
    "collectives",
    "causes",
    "propagation",
    "findings",
    "profiles",
    "rewrite",
    "manual",
    "errors",
    "search",
    "engine",
    "axis_types",
    "numerical_check",
    "reading",
    "watching",
    "guards",
    "testing",
    "pytest_plugin",
    "widgets",
    "magics",
    "commands",
    "cli",
    "__init__",
]
"""From the bottom up."""

READS_EVIDENCE = ("texts", "collectives", "causes", "propagation", "findings")
WITHOUT_JAX = ("terms", "bugs", "progress", "report", "views", "cost")


def room_of(path: Path) -> str:
    """Return the folder of a module, or its name where it stands alone."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(path: Path) -> Iterator[str]:
    """Yield what a file imports: modules, or names within them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms_of(path: Path) -> Iterator[str]:
    """Yield the rooms that a file imports from, but for names that the package itself defines."""
    for name in imported(path):
        top, _, rest = name.partition(".")
        room = rest.partition(".")[0]
        if top == "shardnb" and room in ROOMS:
            yield room


def test_every_module_belongs_to_a_room_of_the_list():
    assert {room_of(path) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_itself_and_from_rooms_below(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    upward = {
        f"{path.relative_to(ROOT)} imports {other}"
        for path in FILES
        if room_of(path) == room
        for other in rooms_of(path)
        if other not in allowed
    }
    assert not upward


def test_the_report_and_its_views_import_no_jax():
    with_jax = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FILES
        if room_of(path) in WITHOUT_JAX
        for name in imported(path)
        if name.partition(".")[0] in {"jax", "jaxlib"}
    }
    assert not with_jax


def calls(path: Path) -> Iterator[str]:
    """Yield the names of what a file calls: `open` for `open(...)`, `.compile` for a method."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield f"{ast.unparse(node.func.value)}.{node.func.attr}"


def test_what_reads_evidence_neither_compiles_nor_traces_nor_reads_files():
    acting = {"compile", "trace", "jit", "read_text", "read_bytes", "getlines"}
    acting |= {"open", "exec", "eval", "rglob", "eval_shape", "make_jaxpr"}
    text_methods = {"re.compile"}
    found = {
        f"{path.relative_to(ROOT)} calls {call}"
        for path in FILES
        if room_of(path) in READS_EVIDENCE
        for call in calls(path)
        if call.rpartition(".")[2] in acting and call not in text_methods
    }
    assert not found


def test_an_import_inside_a_function_counts(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    from shardnb.magics import cell\n    import jax.numpy\n")
    assert list(imported(file)) == ["shardnb.magics.cell", "jax.numpy"]
    assert list(rooms_of(file)) == ["magics"]
