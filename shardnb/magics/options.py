"""The line of a magic: its options, and the specs written as `name=SPEC`.

A spec is any Python expression, with or without spaces: it ends where the next `name=` or
`--option` begins outside brackets and strings.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from shardnb import cost
from shardnb.mesh import TARGETS, axis_type, is_target, target_name
from shardnb.report.measured import MOST_RUNS, RUNS
from shardnb.terms.axis_types import AXIS_TYPES
from shardnb.terms.causes import AskedBy
from shardnb.terms.collectives import KINDS

ASKED_BY = get_args(AskedBy)
SWITCH = ("on", "off")
FRONTENDS = ("torch",)
VIEWS = ("full", "brief", "none")

_CELL = re.compile(r"%%shard(?:\s+(.*))?\s*")
_OPTION = re.compile(r"--[A-Za-z]")
_WORD = re.compile(r"--[A-Za-z][\w-]*")
_ROOT = re.compile(r"[^\W\d]\w*")
_TARGET = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
# A target with a path: `params['w']=` or `opt_state[0].mu=`, which a report writes for its arrays.
_PART = re.compile(r"([^\W\d]\w*)(?:\.\w+|\[[^\]]*\])+\s*=(?!=)")
# A rule for the arrays of a pytree whose paths a regular expression matches: `params:/.*kernel/=`.
_RULE = re.compile(r"([^\W\d]\w*):/((?:[^/\\]|\\.)*)/\s*=(?!=)")
_JOINED = re.compile(r"\),\s*[^\W\d]\w*\s*=(?!=)")
_NUMBER = re.compile(r"\s*=|\s+[-+]?\d")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class OptionError(ValueError):
    """A line that cannot be read; the message shows the right form."""


def _view(value: str) -> str:
    if value not in VIEWS:
        raise ValueError(f"{value!r} is not a view; the views are {', '.join(VIEWS)}")
    return value


def _name(value: str) -> str:
    if not value.isidentifier() or keyword.iskeyword(value):
        raise ValueError(f"{value!r} is not a Python name, such as --save report")
    return value


def _forbidden(value: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in value.split(",") if word.strip())
    for word in words:
        if word not in (*KINDS, *ASKED_BY):
            known = ", ".join((*ASKED_BY, *KINDS))
            raise ValueError(f"{word!r} cannot be forbidden; the choices are {known}")
    return words


@dataclass(frozen=True)
class Option:
    """An option of a magic: how its value is read, and the example value in its help.

    `read` raises `ValueError` for a bad value. An option without `value` is a switch, and one with
    a `default` takes it where no number follows.
    """

    name: str
    value: str = ""
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    default: object = None


def _modes(value: str) -> tuple[str, ...]:
    words = [word.strip() for word in value.split(",") if word.strip()]
    if any(is_target(word) for word in words):
        return _compared_targets(words)
    modes = tuple(map(axis_type, words))
    if len(modes) < 2 or len(set(modes)) < len(modes):
        raise ValueError(f"expected two or three axis types such as auto,explicit, got {value!r}")
    return modes


def _compared_targets(words: Sequence[str]) -> tuple[str, ...]:
    for word in words:
        if not is_target(word):
            raise ValueError(f"{word!r} is not a target, such as cpu, v5e:2x4 or h100:8")
    names = tuple(map(target_name, words))
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"expected different targets such as cpu,h100:8, got {','.join(words)!r}")
    return names


def _switch(value: str) -> str:
    if value not in SWITCH:
        raise ValueError(f"{value!r} is neither on nor off")
    return value


def _count(value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"expected the number of hosts, such as 2, got {value!r}")
    return int(value)


def _frontend(value: str) -> str:
    if value not in FRONTENDS:
        raise ValueError(f"{value!r} is not a library that cells are read from; torch is")
    return value


def _runs(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value[:9]) <= MOST_RUNS:
        raise ValueError(f"expected a number of runs from 1 to {MOST_RUNS:,}, got {value!r}")
    return int(value)


MESH = Option("mesh", "data=4,model=2")
AXES = Option("axes", "|".join(AXIS_TYPES), axis_type, tuple(AXIS_TYPES))
ON = Option("on", "cpu|attached|v5e:2x4|h100:4x8", choices=TARGETS)
_CHIPS = tuple(chip.short for chip in cost.HARDWARE)
HARDWARE = Option("hardware", "h100:4x8|cluster.toml", choices=_CHIPS)
NO_RUN = Option("no-run")
WATCH = Option("watch")
SAVE = Option("save", "NAME", _name)
FORBID = Option("forbid", "inferred|all-gather|...", _forbidden, (*ASKED_BY, *KINDS))
FIX = Option("fix")
CHECK = Option("check")
ISOLATE = Option("isolate")
PROFILE = Option("profile", "[N]", _runs, default=RUNS)
COMPARE = Option("compare", f"{','.join(AXIS_TYPES)}|cpu,h100:8", _modes, (*AXIS_TYPES, *TARGETS))
FROM = Option("from", "torch", _frontend, FRONTENDS)
HOSTS = Option("hosts", "2", _count)
CLUSTER = Option("cluster", "PROFILE")
ERRORS = Option("errors", "on|off", _switch, SWITCH)
VIEW = Option("view", "full|brief|none", _view, VIEWS)

# What cannot act together: the first would be ignored, or done in spite of the second.
APART = (
    *((NO_RUN, WATCH), (FIX, WATCH), (CHECK, WATCH), (COMPARE, WATCH)),
    *((CHECK, NO_RUN), (FIX, COMPARE), (CHECK, COMPARE)),
    *((PROFILE, option) for option in (NO_RUN, WATCH, COMPARE)),
    # They edit the program, or look at it, as one that is written with JAX.
    *((FROM, option) for option in (AXES, FIX, COMPARE, CHECK, WATCH, ERRORS)),
    *((option, ERRORS) for option in (MESH, AXES, ON, HARDWARE, SAVE, FORBID, FIX, COMPARE, VIEW)),
)

MESH_OPTIONS = (AXES, ON, HARDWARE, HOSTS, CLUSTER)
CELL_OPTIONS = (
    *(MESH, AXES, ON, HARDWARE, SAVE, FORBID, FIX, COMPARE, VIEW),
    *(NO_RUN, CHECK, ISOLATE, WATCH, FROM, PROFILE),
)
CALL_OPTIONS = (
    *(MESH, AXES, ON, HARDWARE, SAVE, FORBID, FIX, COMPARE),
    *(ISOLATE, VIEW, ERRORS, FROM),
)


@dataclass(frozen=True)
class MagicLine:
    """A line as it was read.

    `first` is the text before every option and spec, `values` the options' values by name (True for
    a switch), `specs` and `out` the expressions of `name=SPEC` before and after `--out`.
    `parts` has those of `name.part=SPEC`, by the path of the part, and `rules` those of
    `name:/PATTERN/=SPEC`, by name and pattern in their order.
    """

    first: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    specs: Mapping[str, str] = field(default_factory=dict)
    out: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def placed(self) -> tuple[str, ...]:
        """The names that have a spec, or a part with one."""
        roots = (_ROOT.match(path) for path in self.parts)
        parts = (root[0] for root in roots if root)
        return tuple(dict.fromkeys((*self.specs, *(name for name, _ in self.rules), *parts)))

    @property
    def rule_texts(self) -> dict[str, str]:
        """The specs of rules by what is written before them."""
        return {f"{name}:/{pattern}/": text for (name, pattern), text in self.rules.items()}

    def by_rule(self, values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        """Return the values of `rule_texts` by name and pattern."""
        return dict(zip(self.rules, values.values(), strict=True))

    def text(self, option: Option) -> str | None:
        """Return the value of an option that takes a text, or None if it is not given."""
        value = self.values.get(option.name)
        return None if value is None else str(value)

    def words(self, option: Option) -> tuple[str, ...]:
        """Return the value of an option that takes several words."""
        value = self.values.get(option.name)
        return value if isinstance(value, tuple) else ()

    def number(self, option: Option) -> int:
        """Return the value of an option that takes a number, 0 if it is not given."""
        value = self.values.get(option.name, 0)
        return value if isinstance(value, int) else 0

    def has(self, option: Option) -> bool:
        """Whether an option is given."""
        return option.name in self.values


def parse(line: str, options: Sequence[Option], *, specs: bool = True) -> MagicLine:
    """Read the line of a magic that knows these options.

    Raises `OptionError`, with a message of one line.

    >>> line = parse("x=P('data', None)  w = P() --axes explicit --out y=P()", CELL_OPTIONS)
    >>> line.specs, line.out, line.values
    ({'x': "P('data', None)", 'w': 'P()'}, {'y': 'P()'}, {'axes': 'explicit'})
    """
    return _LineReader(line, {option.name: option for option in options}, specs=specs).read()


def parse_cell(line: str) -> MagicLine:
    """Read the line of `%%shard`; raises `OptionError`, with a message of one line."""
    read = parse(line, CELL_OPTIONS)
    if read.first:
        raise OptionError(f"{read.first!r} is neither an option nor a spec, x=P('data')")
    return read


def continued(line: str, body: str) -> tuple[str, str]:
    r"""Join a magic's line with the lines it continues on; returns it and the rest of the cell.

    >>> continued("x=P('data') \\", "  --no-run\ny = x * 2")
    ("x=P('data') --no-run", 'y = x * 2')
    """
    while line.endswith("\\") and body:
        following, _, body = body.partition("\n")
        line = f"{line[:-1].rstrip()} {following.strip()}"
    return line, body


def parted(code: str) -> tuple[str, str] | None:
    r"""Return the line of a `%%shard` cell and the rest of the cell, or None for another cell.

    >>> parted("%%shard x=P('data')\ny = x * 2")
    ("x=P('data')", 'y = x * 2')
    """
    first, _, body = code.lstrip("\n").partition("\n")
    match = _CELL.fullmatch(first)
    return None if match is None else continued(match[1] or "", body)


class _LineReader:
    """Reads a line from left to right."""

    def __init__(self, line: str, options: Mapping[str, Option], *, specs: bool) -> None:
        self._line = line[: _end(line, 0, lambda _line, _at: False)]
        self._options = options
        self._with_specs = specs
        self._values: dict[str, object] = {}
        self._specs: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._rules: dict[tuple[str, str], str] = {}
        self._out: dict[str, str] = {}
        self._into = self._specs
        self._at = 0

    def read(self) -> MagicLine:
        self._skip()
        first = "" if self._starts_item(self._line, self._at) else self._expression()
        while self._at < len(self._line):
            option = _WORD.match(self._line, self._at)
            if option:
                self._option(option)
            else:
                self._spec()
            self._skip()
        for one, other in APART:
            if one.name in self._values and other.name in self._values:
                raise OptionError(f"--{one.name} cannot be combined with --{other.name}")
        return MagicLine(first, self._values, self._specs, self._out, self._parts, self._rules)

    def _option(self, match: re.Match[str]) -> None:
        name = match[0][2:]
        self._at = match.end()
        if name == "out" and self._with_specs:
            self._into = self._out
            return
        self._into = self._specs
        option = self._options.get(name)
        if option is None:
            raise OptionError(self._unknown(name))
        if name in self._values:
            raise OptionError(f"--{name} is given twice")
        self._values[name] = self._value(option) if option.value else True

    def _value(self, option: Option) -> object:
        if option.default is not None and not _NUMBER.match(self._line, self._at):
            return option.default
        text = self._word()
        if not text:
            raise OptionError(f"--{option.name} needs a value: --{option.name} {option.value}")
        try:
            return option.read(text)
        except ValueError as error:
            raise OptionError(f"--{option.name}: {error}") from error

    def _unknown(self, name: str) -> str:
        known = [*self._options, *(["out"] if self._with_specs else [])]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean --{near[0]}?" if near else ""
        listed = ", ".join(f"--{option}" for option in known)
        return f"there is no option --{name}; {hint or f'the options are {listed}'}"

    def _rule(self, match: re.Match[str]) -> None:
        name, pattern = match[1], match[2].replace("\\/", "/")
        written = f"{name}:/{pattern}/"
        if self._into is self._out:
            raise OptionError(f"{written} is a rule for an input; after --out a name has one spec")
        if (name, pattern) in self._rules:
            raise OptionError(f"the spec of {written} is given twice")
        try:
            re.compile(pattern)
        except re.error as error:
            raise OptionError(f"{written} is not a regular expression: {error}") from error
        self._at = match.end()
        self._rules[name, pattern] = self._spec_text(written)

    def _spec(self) -> None:
        if rule := _RULE.match(self._line, self._at):
            self._rule(rule)
            return
        match, into = _TARGET.match(self._line, self._at), self._into
        if match is None:
            match, into = _PART.match(self._line, self._at), self._parts
        if match is None or (into is self._parts and self._into is self._out):
            text = self._line[self._at : _end(self._line, self._at, self._starts_item)].strip()
            if match:
                raise OptionError(_of_an_output(text, match[1]))
            raise OptionError(f"{text!r} is neither an option nor a spec such as x=P('data')")
        name = match[1] if into is not self._parts else _as_python(match[0].rpartition("=")[0])
        self._at = match.end()
        if name in into:
            raise OptionError(f"the spec of {name} is given twice")
        into[name] = self._spec_text(name)

    def _spec_text(self, name: str) -> str:
        """Read the expression of a spec."""
        text = self._expression().rstrip(",").rstrip()
        if not text:
            raise OptionError(f"{name}= needs a spec, such as {name}=P('data')")
        try:
            ast.parse(text, mode="eval")
        # A NUL is a ValueError; what is nested too deep is one of the other two.
        except (ValueError, RecursionError, MemoryError) as error:
            raise OptionError(f"the spec of {name} is not a Python expression: {error}") from error
        except SyntaxError as error:
            hint = "; put a blank between two specs, not a comma" if _JOINED.search(text) else ""
            why = f"the spec {name}={text} is not a Python expression: {error.msg}{hint}"
            raise OptionError(why) from error
        return text

    def _starts_item(self, line: str, at: int) -> bool:
        if _OPTION.match(line, at):
            return True
        return self._with_specs and any(
            target.match(line, at) for target in (_TARGET, _PART, _RULE)
        )

    def _expression(self) -> str:
        start = self._at
        self._at = _end(self._line, start, self._starts_item)
        return self._line[start : self._at].strip()

    def _word(self) -> str:
        if self._line.startswith("=", self._at):
            self._at += 1
        self._skip()
        start = self._at
        if _OPTION.match(self._line, start):
            return ""
        # A value ends at the next blank, unless a comma comes before the blank.
        self._at = _end(self._line, start, lambda line, at: not line[:at].rstrip().endswith(","))
        return _unquoted(self._line[start : self._at].strip())

    def _skip(self) -> None:
        while self._at < len(self._line) and self._line[self._at].isspace():
            self._at += 1


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted and text[0] not in text[1:-1] else text


def _as_python(path: str) -> str:
    """Write a path as Python does, as JAX names the arrays of a pytree."""
    try:
        # A report writes a star for all numbers.
        node = ast.parse(path.strip().replace("[*]", "[...]"), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise OptionError(f"{path.strip()} is not the path of an array: {error}") from error
    return ast.unparse(node).replace("[...]", "[*]")


def _of_an_output(text: str, name: str) -> str:
    return (
        f"{text} is a spec for a part of {name}, but after --out a name has one as a whole: "
        f"{name}=P() for all of its arrays, or a tree with a spec for each, such as "
        f"{name}=jax.tree.map(lambda array: P(), {name})"
    )


def _end(line: str, start: int, boundary: Callable[[str, int], bool]) -> int:
    """Return where a part ends, outside brackets: at a blank before `boundary`, or a comment."""
    at, open_brackets = start, ""
    while at < len(line):
        char = line[at]
        if char in "'\"":
            quote = line[at : at + 3] if line[at : at + 3] in {"'''", '"""'} else char
            at += len(quote)
            while at < len(line) and not line.startswith(quote, at):
                at += 2 if line[at] == "\\" else 1
            at += len(quote)
            continue
        if char in _CLOSING:
            open_brackets += _CLOSING[char]
        elif open_brackets and char == open_brackets[-1]:
            open_brackets = open_brackets[:-1]
        elif not open_brackets and at > start and line[at - 1].isspace() and not char.isspace():
            if char == "#" or boundary(line, at):
                return at
        elif char == "#" and at == 0:
            return at
        at += 1
    return at
