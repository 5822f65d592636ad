"""What the front end takes from Python is up to date, and it has no words of its own."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from shardnb.terms.collectives import KINDS
from shardnb.views.palette import TONES

ROOT = Path(__file__).parents[2] / "labextension"
GENERATED = ROOT / "src" / "generated"

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|/(?![*/\s])(?:\\.|[^/\n\\])+/[a-z]*(?=[.)\s,;])"
    r"|'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"|`((?:\\.|[^`\\])*)`",
    re.DOTALL,
)
WORDS = re.compile(r"(?:[A-Za-z]{2,}|\{\})[,.:;]? +[A-Za-z]{2,}")
# What a browser or JupyterLab reads, and names of classes.
TECHNICAL = re.compile(r"sans-serif|prefers-reduced-motion|mousemove|rgba|hsl")


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["report.d.ts", "vocabulary.ts"])
def test_what_is_committed_is_what_python_gives(generate, name):
    assert (GENERATED / name).read_text(encoding="utf-8") == generate.generated()[name]


def test_nothing_else_is_there(generate):
    assert {path.name for path in GENERATED.iterdir()} == set(generate.generated())


def test_every_slot_of_a_phrase_has_a_name(generate):
    for name, text in generate.phrases.REPORT.items():
        forms = (text,) if isinstance(text, str) else text
        for form in forms:
            assert not re.search(r"\{\W*\}", form), name


def literals(text):
    """Yield the texts of a source, without the parts that are filled in."""
    for match in TOKEN.finditer(text):
        single, double, template = match.groups()
        if template is not None:
            yield re.sub(r"\$\{[^}]*\}", "{}", template)
        elif single is not None or double is not None:
            yield single if single is not None else double


def sentences(text):
    text = re.sub(r"class(?:Name)?: '[^']*'|className = '[^']*'|class: `[^`]*`", "", text)
    return [
        literal
        for literal in literals(text)
        if WORDS.search(literal) and not TECHNICAL.search(literal)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("h('p', null, 'Its sharding')", ["Its sharding"]),
        ("say(`sends ${size} to ${all} devices`)", ["sends {} to {} devices"]),
        ("// a comment 'that says'\nh('p', { class: 'line gap' }, text)", []),
        ("pen.font = '12px system-ui, sans-serif'", []),
    ],
)
def test_a_sentence_is_found(text, found):
    assert sentences(text) == found


def sources():
    return sorted(p for p in (ROOT / "src").rglob("*.ts") if p.parent != GENERATED)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_typescript_has_no_sentence(generate, path):
    names = {name for names in generate.unions().values() for name in names}
    found = sentences(path.read_text(encoding="utf-8"))
    assert [text for text in found if text not in names] == []


def test_the_front_end_knows_each_kind_and_each_colour(generate):
    text = generate.generated()["vocabulary.ts"]
    for name in (*KINDS, *TONES):
        assert f'  "{name}": ' in text
