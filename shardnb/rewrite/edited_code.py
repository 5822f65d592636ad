"""The user's functions with an edited text, for one trace: the one place that sets `__code__`.

Why code has to be set at all. An edit is only worth suggesting if what was compiled is exactly
the program that the user gets by writing it, and no other way gives that program:

- *An edit of the traced jaxpr* comes too late. JAX has differentiated it already, so the
  constraint would be missing on the gradient; the jaxpr does not say which equation made the `h`
  of `h = layer(x)`; and with Explicit axes a sharding changes the types of all that follows.
- *A copy of the function* is never called: what calls it holds the original, in a `jit`, a
  closure, a method, a list.
- *A trace function*, as a debugger sets one, can bind a local name in one thread, but changes
  neither what is returned nor a part of an expression, and takes the place of the user's debugger.

So the function itself gets other code while it is traced. That code holds both texts: the thread
that traces takes the edited branch, all others the one that the user wrote. The same holds for
functions that the trace made and that somebody kept.
"""

from __future__ import annotations
import __future__

import ast
import gc
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat, takewhile
from types import CodeType, FunctionType
from typing import Any

from shardnb.compiler import Program
from shardnb.jax_compat.frames import raw_frames
from shardnb.jax_compat.jaxprs import equations
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.rewrite import hook
from shardnb.rewrite.syntax_trees import copied
from shardnb.sources.source_texts import Sources
from shardnb.texts.hlo import Frame

_Key = tuple[str, int]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def traced_functions(program: Program) -> dict[str, list[FunctionType]]:
    """Return the user's functions that were on the stack of an equation, by the file of their code.

    The callers of shardnb are not part of the program.
    """
    sources, codes = Sources(), dict[int, CodeType]()
    for equation in equations(program.traced.jaxpr):
        try:
            stack = raw_frames(equation)
        except NotAvailable:
            return {}
        inside = takewhile(lambda frame: not sources.is_own(frame[0].co_filename), stack)
        codes |= {id(code): code for code, _ in inside}
    files = {code.co_filename for code in codes.values()}
    files = {file for file in files if sources.locate((Frame(file, 1),))}
    functions: dict[str, list[FunctionType]] = {file: [] for file in sorted(files)}
    with PROCESS_LOCK:  # no function has another thread's edit
        for holder in gc.get_referrers(*codes.values()):
            if type(holder) is FunctionType and holder.__code__.co_filename in files:
                functions[holder.__code__.co_filename].append(holder)
    return functions


def made_by(text: ast.Module, file: str, functions: Sequence[FunctionType]) -> list[FunctionType]:
    """Return the functions whose code is what a text compiles to."""
    codes = _codes(text, file, functions)
    return [function for function in functions if codes.get(_key(c := function.__code__)) == c]


@contextmanager
def edited_functions(
    functions: Sequence[FunctionType], file: str, text: ast.Module, edited: ast.Module
) -> Iterator[None]:
    """Trace with the edited text of functions; afterwards they have the code that they had.

    `text` and `edited` are the same but for expressions and statements around them.
    """
    codes = _codes(_with_both(text, edited), file, functions)
    with PROCESS_LOCK, hook.edited_trace():  # two threads would restore each other's edits
        originals = [function.__code__ for function in functions]
        restored = map(setattr, functions, repeat("__code__"), originals)
        restore: partial[Any] = partial(deque, restored, maxlen=0)
        try:
            for function, original in zip(functions, originals, strict=True):
                code = codes[_key(original)]
                # An edit may name what the function has not closed over: then it cannot take it.
                if code.co_freevars == original.co_freevars:
                    function.__code__ = code
            yield
        finally:
            restore()  # one call of C, so that no second interrupt can stop it half way


def _codes(text: ast.Module, file: str, functions: Sequence[FunctionType]) -> dict[_Key, CodeType]:
    """Compile a text as its functions were, and give every code object in it by its key."""
    flags = __future__.annotations.compiler_flag if functions else 0
    for function in functions:
        flags &= function.__code__.co_flags
    return _within(compile(text, file, "exec", flags, dont_inherit=True))


def _within(code: CodeType) -> dict[_Key, CodeType]:
    """Return a code object and those in it by their keys; of two with one key, the last."""
    codes = {_key(code): code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            codes |= _within(constant)
    return codes


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


def _with_both(text: ast.Module, edited: ast.Module) -> ast.Module:
    """Return a text whose functions run as edited in an edited trace, else as written.

    The edited branch is the last one, so that `_within` gives the functions of it.
    """
    both = copied(edited)
    pairs = list(zip(_functions(text), _functions(both), strict=True))
    for written, function in reversed(pairs):  # those within a function before itself
        test = ast.UnaryOp(ast.Not(), hook.call(hook.in_edited_trace))
        if isinstance(function, ast.Lambda) and isinstance(written, ast.Lambda):
            choice = ast.IfExp(test, copied(written.body), function.body)
            function.body = ast.copy_location(choice, function.body)
        elif not isinstance(function, ast.Lambda) and not isinstance(written, ast.Lambda):
            at = int(ast.get_docstring(written) is not None)
            # The declarations of the first branch are those of both; Python refuses a second one.
            after = [_Undeclared().visit(statement) for statement in function.body[at:]]
            branches = ast.If(test, copied(written.body[at:]) or [ast.Pass()], after)
            function.body[at:] = [ast.copy_location(branches, function.body[0])]
    return ast.fix_missing_locations(both)


def _functions(tree: ast.AST) -> Iterator[_Function]:
    """Yield the functions in a text in their order, without the lambdas that `auto_axes` gets."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function) and not _is_of_auto_axes(node):
            yield node
        yield from _functions(node)


def _is_of_auto_axes(node: _Function) -> bool:
    arrays = node.args.vararg is not None and node.args.vararg.arg == "arrays"
    return isinstance(node, ast.Lambda) and arrays


class _Undeclared(ast.NodeTransformer):
    """Takes `global` and `nonlocal` out of a function, not out of those within it."""

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node
