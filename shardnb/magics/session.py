"""What the magics do: from the text of a cell to its report and its results."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from IPython.display import display
from IPython.utils.capture import capture_output
from jax.sharding import NamedSharding, PartitionSpec

from shardnb import engine
from shardnb.compiler import Program, placement
from shardnb.magics import errors, options, sources
from shardnb.magics.binding import bind, left_out
from shardnb.magics.cell import Cell, CellError, cell_of
from shardnb.magics.function import LAST, CellFunction, Code, guard_of, inputs_of
from shardnb.magics.meshes import NotebookMesh, mesh_value
from shardnb.magics.options import Line
from shardnb.magics.reach import names_through
from shardnb.magics.trees import leaves_of
from shardnb.mesh import Grid
from shardnb.report import Report

Tree = Any
_KNOWN = {"P": PartitionSpec, "PartitionSpec": PartitionSpec, "NamedSharding": NamedSharding}


@dataclass(frozen=True)
class Text:
    """A text that is compiled as a program: its syntax tree, and the file name of its code."""

    tree: ast.Module
    lines: Sequence[str]
    file: str
    title: str
    explained: str
    """The file whose text is the first of the report's sources."""


class Session:
    """The state of the magics in one shell: its mesh, its cells, its last report."""

    def __init__(self, shell: Any, cells: sources.Cells, mesh: NotebookMesh) -> None:
        """Begin with no report."""
        self.shell = shell
        self.cells = cells
        self.mesh = mesh
        self.last: Report | None = None

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's names."""
        names: dict[str, Any] = self.shell.user_ns
        return names

    # Texts

    def cell_text(self, line: str, body: str) -> Text:
        """Read the body of `%%shard`, so that its lines have the numbers that the user sees."""
        running = self.cells.running("%%shard", line, body)
        source = running.head + self._python(body)
        file = self.shell.compile.cache(source, running.number, raw_code=running.raw)
        self.cells.add(file, running.source)
        lines = running.raw.splitlines()
        return Text(self._tree(source, file), lines, file, running.source.name, file)

    def _python(self, body: str) -> str:
        text = body.lstrip("\n")
        python: str = self.shell.transform_cell(text)
        return "\n" * (len(body) - len(text)) + python

    def _tree(self, source: str, file: str) -> ast.Module:
        try:
            tree: ast.Module = self.shell.compile.ast_parse(source, filename=file)
        except SyntaxError:
            errors.show_syntax_error_alone(self.shell)
            raise
        tree = self.shell.transform_ast(tree)
        return _interactive(tree, self.shell.ast_node_interactivity)

    def call_text(self, line: str) -> Text:
        """Read the call behind `%shard`, at the line of its cell."""
        try:
            ast.parse(line, mode="eval")
        except SyntaxError as error:
            raise CellError(f"{line!r} is no call such as %shard f(x, W): {error.msg}") from error
        number, file = self.cells.at_line(line)
        tree = ast.increment_lineno(ast.parse(line), number - 1)
        lines = ["" for _ in range(number - 1)] + [line]
        return Text(tree, lines, file, line, self._defined_in(tree, file))

    def _defined_in(self, tree: ast.Module, file: str) -> str:
        """Give the file of the cell that defines the called function, else of the call."""
        match tree.body[0]:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                code = _code_of(self.namespace.get(name))
                found = getattr(code, "co_filename", file)
                return found if self.cells.has(found) else file
        return file

    # Programs

    def run(self, text: Text, line: Line, *, run: bool) -> Any:
        """Compile a text, show its report, run it, and bind what it assigns.

        Without `run`, and with inputs of which only the shape is known, nothing runs; in the
        second case names are bound to shapes. Gives the value of the last expression.
        """
        with self.errors(text.file):
            function, program, report = self._compiled(text, line, run=run)
            report = self._keep(line, report, [left_out(path) for path in function.lost()])
            self._forbid(line, report)
            if line.has(options.FIX):
                report = self._keep(line, engine.with_fixes(program, report), [])
            results = self._results(line, program, report) if run else None
            if results is None:
                self._show(line, report)
                return None
            outputs, report = results
            checked = self._checked(line, program, outputs)
            value, notes = bind(function, outputs)
            self._show(line, self._keep(line, report, [*checked, *notes]))
            return value

    def _compiled(
        self, text: Text, line: Line, *, run: bool
    ) -> tuple[CellFunction, Program, Report]:
        cell = cell_of(text.tree, text.lines)
        names = names_through(cell.names, self.namespace)
        inputs = inputs_of(names.read, self.namespace)
        specs, out = self._specs(line.specs, inputs), self._evaluated(line.out)
        grid = self.grid(line, (inputs, specs))
        function = CellFunction(
            code=self._compiled_code(cell, text.file),
            namespace=self.namespace,
            inputs=inputs,
            guard=guard_of(names.read, inputs, self.namespace),
            stated=tuple(out),
            possible=tuple(dict.fromkeys((*names.assigned, *inputs, *out, LAST))),
            manual=bool(grid.manual),
            runs=run and not _shapes_only(inputs),
            quiet=capture_output,
        )
        known, files = self.cells.known(text.explained)
        program, report = engine.compile_and_analyse(
            function,
            function.arguments(),
            grid,
            title=text.title,
            in_specs=specs,
            out_specs=_out_specs(function, out),
            sources=known,
            files=files,
            names=self._array_names(function),
        )
        return function, program, sources.tidied(report)

    def code(self, text: Text) -> Code:
        """Compile a text as Python alone."""
        return self._compiled_code(cell_of(text.tree, text.lines), text.file)

    def _compiled_code(self, cell: Cell, file: str) -> Code:
        compiled = self.shell.compile
        last = None if cell.last is None else compiled(cell.last, file, "eval")
        return Code(compiled(cell.body, file, "exec"), last, cell.body, file)

    def _specs(self, stated: Mapping[str, str], inputs: Mapping[str, Tree]) -> dict[str, Tree]:
        for name in stated:
            if name not in inputs:
                read = ", ".join(name for name in inputs if leaves_of(inputs[name])) or "none"
                raise CellError(f"{name} is no array that the cell reads; it reads {read}")
        return self._evaluated(stated)

    def _evaluated(self, specs: Mapping[str, str]) -> dict[str, Tree]:
        return {name: self._value(name, text) for name, text in specs.items()}

    def _value(self, name: str, text: str) -> Tree:
        try:
            return eval(text, {**self.namespace, **_KNOWN})  # noqa: S307  the user's expression
        except Exception as error:
            raise CellError(f"the spec {name}={text}: {type(error).__name__}: {error}") from error

    def grid(self, line: Line, values: Any) -> Grid:
        """Give the mesh that a line asks for, or that goes without saying."""
        text = line.text(options.MESH)
        stated = None if text is None else mesh_value(text, self.namespace)
        return self.mesh.choose(stated, line.text(options.AXES), line.text(options.ON), values)

    def _array_names(self, function: CellFunction) -> dict[int, str]:
        own = {id(v): name for name, v in self.namespace.items() if isinstance(v, jax.Array)}
        return {**{id(array): path for path, array in function.guard.arrays()}, **own}

    def _results(
        self, line: Line, program: Program, report: Report
    ) -> tuple[dict[str, Tree], Report]:
        if program.abstract:
            return _shapes(program), report
        try:
            return engine.ran(program, report)
        except BaseException:
            self._show(line, report)
            raise

    def _checked(self, line: Line, program: Program, outputs: dict[str, Tree]) -> list[str]:
        if program.abstract or not line.has(options.CHECK):
            return []
        from shardnb import numeric

        lines = str(numeric.check(program, outputs)).splitlines()
        return ["; ".join(line.strip() for line in lines)]

    # Reports

    def _keep(self, line: Line, report: Report, notes: Sequence[str]) -> Report:
        added = tuple(note for note in notes if note not in report.notes)
        self.last = dataclasses.replace(report, notes=(*report.notes, *added))
        name = line.text(options.SAVE)
        if name is not None:
            self.namespace[name] = self.last
        return self.last

    def _forbid(self, line: Line, report: Report) -> None:
        words = line.words(options.FORBID)
        found = errors.forbidden(report.collectives, words)
        if found:
            self._show(line, report)
            raise errors.ForbiddenCollectives(words, found)

    def _show(self, line: Line, report: Report) -> None:
        show(report, line.text(options.VIEW) or "full")

    @contextmanager
    def errors(self, file: str) -> Iterator[None]:
        """Show an error of the cell from the cell's own line on, and one of ours in one line."""
        try:
            yield
        except (CellError, errors.ForbiddenCollectives):
            raise
        except BaseException as error:
            start = errors.at_cell(error, file)
            if start is None and errors.says_what_is_wrong(error):
                raise CellError(str(error)) from error
            if start is not None or not errors.is_ours(error):
                errors.show_from(self.shell, error, start)
            raise


def show(report: Report, view: str) -> None:
    """Display a report: `full`, `brief` as text, or not at all."""
    if view == "full":
        display(report)
    elif view == "brief":
        from shardnb.views import text

        display({"text/plain": text.render(report, "brief")}, raw=True)


def _interactive(tree: ast.Module, interactivity: str) -> ast.Module:
    """Follow the shell's setting of what a cell shows."""
    match tree.body[-1:], interactivity:
        case [ast.Assign(targets=[ast.Name(id=name)])], "last_expr_or_assign":
            shown = ast.copy_location(ast.Expr(ast.Name(name, ast.Load())), tree.body[-1])
            tree.body.append(ast.fix_missing_locations(shown))
        case [ast.Expr()], "none":
            tree.body.append(ast.copy_location(ast.Pass(), tree.body[-1]))
    return tree


def _code_of(function: Any) -> Any:
    """Give the code of a function, of one inside `jax.jit`, or of an object that is called."""
    plain = inspect.unwrap(function) if callable(function) else function
    return getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)


def _shapes_only(inputs: Mapping[str, Tree]) -> bool:
    leaves = (leaf for value in inputs.values() for leaf in leaves_of(value))
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)


def _out_specs(function: CellFunction, out: Mapping[str, Tree]) -> Tree:
    if function.manual:
        return {name: _spec_alone(tree) for name, tree in out.items()}
    return {name: out.get(name) for name in function.possible} if out else None


def _spec_alone(tree: Tree) -> Tree:
    """Give specs for shardings: `shard_map` takes no others."""
    return jax.tree_util.tree_map(
        lambda spec: spec.spec if isinstance(spec, NamedSharding) else spec,
        tree,
        is_leaf=placement.is_spec,
    )


def _shapes(program: Program) -> dict[str, Tree]:
    """Give the results of a program as shapes with their shardings."""
    shapes: dict[str, Tree] = jax.tree_util.tree_map(
        lambda info, sharding: jax.ShapeDtypeStruct(info.shape, info.dtype, sharding=sharding),
        program.lowered.out_info,
        program.compiled.output_shardings,
    )
    return shapes
