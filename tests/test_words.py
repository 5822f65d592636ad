"""The words of everything that a person reads: the worst patterns stay out.

Each pattern has a reason and what to write instead. Code in backticks is left out, and so are the
texts in ALLOWED, which quote JAX's, XLA's or an editor's own words.
"""

import ast
import io
import json
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A pattern, and what to write.
PATTERNS = {
    r"\blies?\b(?! (?:between|deeper|outside|below|above|beyond|in a branch|far|down)\b)": (
        "an array is sharded, or replicated; an argument is on a device"
    ),
    r"\b(?<!there )(?:is|are|was|were) no (?!longer\b|more\b|one\b)": "is not a ...",
    r"(?<!there )\bis (?-i:none)\b(?! of)": "is not one",
    r"\ba (?:device|chip) (?:a|per) run\b|\b(?:bytes|[KMGT]i?B) a (?:device|run|call|step)\b": "per",
    r"\bsplit (?:over|along|differently|alike|further)\b|"
    r"\b(?:array|arrays|dimension|dimensions|value|values|operand|operands|sum|sums|batch|rows|columns"
    r"|it|they|which|that) (?:is|are|was|were) (?:also )?split\b(?! (?:or|into|in|by|apart|and)\b)": (
        "sharded over"
    ),
    r"\bin (?:one|two|four|eight|several|its|their) pieces?\b|\bin pieces\b": "in blocks, sharded",
    r"\b(?:is|are|left|stays?|kept|needs?|means?|leaves?|all) whole\b|"
    r"\bwhole (?:on|along|everywhere|over)\b": "replicated, or the full dimension",
    r"\bbehind (?:--|it\b|its\b|the (?:name|option|colon|size|line)|an? |another|one\b|what\b|`)": (
        "after"
    ),
    r"\bnobody (?:asked|wrote|did|stated|knows|is known|has|holds|needs)\b|\bby nobody\b": (
        "the compiler inserted it; nothing in the code asks for it; unknown"
    ),
    r"\basked by\b(?! (?:the|a) )": "name the agent",
    r"\bwish(?:es)?\b": "a constraint requires",
    r"\bexchange[sd]?\b(?! (?:the |their )?(?:edges|data|boundary))": "communicate; a collective",
    r"\b(?:is|are|was|were|be|being) cut\b(?! (?:off|short|to|or)\b)|\bcuts? (?:over|along|into)\b": (
        "sharded, sliced"
    ),
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bha(?:s|ve) not(?=[.,;:)\"']|$)": "does not have",
    r"\btold\b(?! apart)": "shown, given, described",
    r"\bgoes without saying\b": "is the default",
}
WORSE = {re.compile(pattern, re.IGNORECASE): meant for pattern, meant in PATTERNS.items()}

# Texts of others that have such words.
ALLOWED: tuple[str, ...] = ()

# Files that are still being rewritten: the list only gets shorter.
LATER: tuple[str, ...] = ()

_CODE = re.compile(r"``.*?``|`[^`]*`|```.*?```", re.DOTALL)


def tracked(*endings):
    """The files of the repository with these endings, without what is built or generated."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()  # noqa: S607
    made = ("labextension/dist/", "labextension/src/generated/", "shardnb/static/")
    return [name for name in listed if name.endswith(endings) and not name.startswith(made)]


def of_python(text):
    """Comments, docstrings and strings with a blank, each with its line."""
    start = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.FSTRING_START:
            start = token.start[0]
        words = token.type in {tokenize.COMMENT, tokenize.STRING, tokenize.FSTRING_MIDDLE}
        if words and " " in token.string.strip():
            yield start if token.type == tokenize.FSTRING_MIDDLE else token.start[0], token.string


def of_notebook(text):
    """Markdown, and the strings and comments of code cells."""
    for number, cell in enumerate(json.loads(text)["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield number, source
            continue
        python = "\n".join("" if line[:1] in {"%", "!"} else line for line in source.splitlines())
        try:
            ast.parse(python)
        except SyntaxError:
            continue
        yield from ((number, words) for _, words in of_python(python))


def of_typescript(text):
    """Comments and strings with a blank."""
    parts = r"/\*.*?\*/|(?<![:\w])//[^\n]*|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\"(?:[^\"\\\n]|\\.)*\""
    for match in re.finditer(parts, text, re.DOTALL):
        if " " in match[0] and match[0][0] != "`":
            yield text[: match.start()].count("\n") + 1, match[0]


def of_text(text):
    """A text as it is, paragraph by paragraph."""
    for match in re.finditer(r"(?:[^\n]+\n?)+", text):
        yield text[: match.start()].count("\n") + 1, match[0]


READERS = {
    ".py": of_python,
    ".ipynb": of_notebook,
    ".ts": of_typescript,
    ".md": of_text,
    ".toml": of_text,
    ".json": of_text,
}


def bad(words):
    """The patterns that a text has, with the words around them."""
    words = " ".join(_CODE.sub("``", words).replace("\n#", "\n").split())
    for quoted in ALLOWED:
        words = words.replace(quoted, "")
    for pattern, meant in WORSE.items():
        for match in pattern.finditer(words):
            around = words[max(0, match.start() - 40) : match.end() + 30]
            yield f"...{around}...  (write: {meant})"


def found(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    reader = READERS[Path(name).suffix]
    return [f"{name}:{line}: {each}" for line, words in reader(text) for each in bad(words)]


NAMES = [
    name
    for name in tracked(*READERS)
    if name != "tests/test_words.py" and not name.startswith(LATER or ("\0",))
]


@pytest.mark.parametrize("name", NAMES)
def test_the_words_are_plain(name):
    assert "\n".join(found(name)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "x lies on the mesh",
        "8 is no mesh",
        "192 KiB sent by each device, 3 bytes a run",
        "a dimension that is split over data",
        "W is whole",
        "Asked by nobody.",
        "rows are cut over data",
        "devices exchange their blocks",
        "a constraint is a wish",
        "the mesh has not.",
        "stands behind --out",
    ],
)
def test_the_worst_patterns_are_found(text):
    assert list(bad(text))


@pytest.mark.parametrize(
    "text",
    [
        "there is no report yet",
        "the mesh is no longer there",
        "neighbouring devices exchange edges",
        "a dimension is split into two by a reshape",
        "the function behind the wrapper",
        "the whole array",
        "each device sends 3 bytes per run",
        "`behind` is code",
    ],
)
def test_plain_words_pass(text):
    assert not list(bad(text))
