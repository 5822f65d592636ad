"""What may change in JAX is named in `shardnb/jax_compat` only."""

import ast
from pathlib import Path

import pytest

import shardnb

ROOT = Path(shardnb.__file__).parent
UNSTABLE = ("jaxlib", "jax._src", "jax.extend", "jax.interpreters", "jax.experimental", "jax.lib")
ELSEWHERE = [path for path in sorted(ROOT.rglob("*.py")) if "jax_compat" not in path.parts]


def unstable(name):
    return any(name == part or name.startswith(f"{part}.") for part in UNSTABLE)


def dotted(node):
    """The text of `a.b.c`; "" for anything else."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def named(tree):
    """Each name of a module that is imported, written as a text, or reached by attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.strip()


@pytest.mark.parametrize(
    "text",
    [
        "import jaxlib",
        "def f():\n    from jax._src import config",
        "from jax import extend",
        "x = jax.experimental.topologies.get_topology_desc",
        "importlib.import_module('jax._src.core')",
    ],
)
def test_every_way_to_name_a_module_is_seen(text):
    assert any(map(unstable, named(ast.parse(text))))


# The version of jaxlib is public: `importlib.metadata.version("jaxlib")`.
PUBLIC = {"jaxlib"}


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_names_a_private_or_unstable_part_of_jax(path):
    found = {name for name in named(ast.parse(path.read_text())) if unstable(name)}
    assert found <= (PUBLIC if path.name == "assemble.py" else set())


# Words of errors, and locals of frames

MATCHES = {"search", "findall", "finditer", "match", "fullmatch", "split", "sub"}
WORDING_MODULES = {"wordings", "error_wordings"}


def is_error_text(node):
    """Whether an expression is the text of an exception: `evidence.message` or `str(error)`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "message" and isinstance(node.value, ast.Name)
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
    return call and any(isinstance(arg, ast.Name) and "error" in arg.id for arg in node.args)


def from_wordings(tree):
    """Names that a module imports from `error_wordings`."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("error_wordings")
        for alias in node.names
    }


def read_words(tree):
    """Each place where words of an error's text are sought with a pattern of its own."""
    known = from_wordings(tree) | WORDING_MODULES
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_error_text, node.comparators)):
            yield ast.unparse(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        pattern = node.func.value
        root = pattern.value if isinstance(pattern, ast.Attribute) else pattern
        is_known = isinstance(root, ast.Name) and root.id in known
        if node.func.attr in MATCHES and any(map(is_error_text, node.args)) and not is_known:
            yield ast.unparse(node)
        if is_error_text(pattern) and node.func.attr in {"startswith", "endswith", "removeprefix"}:
            yield ast.unparse(node)


@pytest.mark.parametrize(
    "text",
    [
        "'is not implemented' in evidence.message",
        "'not installed' in str(error)",
        "re.search('is (.*) here', evidence.message)",
        "PATTERN.search(str(error))",
        "str(error).startswith('in_specs')",
    ],
)
def test_every_way_to_read_an_errors_words_is_seen(text):
    assert list(read_words(ast.parse(text)))


def test_a_wording_is_the_way_to_read_them():
    text = "from shardnb.jax_compat.error_wordings import SPEC\nSPEC.search(evidence.message)"
    assert not list(read_words(ast.parse(text)))


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_knows_words_of_jaxs_errors(path):
    assert not list(read_words(ast.parse(path.read_text())))


# The frame of the user's own code that raised, and one that may hold a function of the user's.
USERS_FRAMES = {"errors/evidence.py", "magics/object_graph.py"}


def test_no_other_module_reads_the_locals_of_frames():
    reading = {
        path.relative_to(ROOT).as_posix()
        for path in ELSEWHERE
        if any(
            isinstance(node, ast.Attribute) and node.attr == "f_locals"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert reading <= USERS_FRAMES
