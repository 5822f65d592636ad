"""From the text of a cell to its report and its results."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from IPython.display import display

from shardnb import engine, numerical_check
from shardnb.compiler import Program, Request
from shardnb.compiler.torch_program import torch_types
from shardnb.cost import Given
from shardnb.errors import explain_error, failures
from shardnb.jax_compat.process_lock import names_traced
from shardnb.jax_compat.profiling import InUse
from shardnb.magics import options, shown_errors, shown_explanations, sources, traced_values
from shardnb.magics.binding import Binding
from shardnb.magics.captured_names import names_through
from shardnb.magics.cell import CellError, CheckedCell, cell_of, parted
from shardnb.magics.cell_function import HELD, CellCode, CellFunction, inputs_of
from shardnb.magics.inputs import refuse_two_specs, refuse_what_does_not_fit
from shardnb.magics.line_previews import LinePreviews
from shardnb.magics.meshes import NotebookMesh, hardware_value, mesh_value
from shardnb.magics.options import MagicLine
from shardnb.magics.parts import with_parts, with_rules
from shardnb.magics.prepared import Prepared, out_specs_of
from shardnb.magics.reachable import text_of
from shardnb.magics.recording import LAST
from shardnb.magics.scope import Names
from shardnb.magics.specs import evaluated, not_an_input
from shardnb.magics.trees import leaves_of
from shardnb.mesh import Grid, retyped
from shardnb.progress import line_on
from shardnb.report import Mesh, Report
from shardnb.report.changes import Outcome
from shardnb.report.types import ErrorReport
from shardnb.rewrite.retrace import silenced
from shardnb.sources.functions import code_of
from shardnb.tracebacks import is_ours, says_what_is_wrong

Tree = Any
NOT_RUN = "nothing ran, and no name was bound: "


@dataclass(frozen=True)
class ProgramText:
    """A text that is compiled as a program: its syntax tree, and the file name of its code.

    `lines` are the user's, `python` is what IPython made of them. `explained` is the file whose
    text is the first of the report's sources.
    """

    tree: ast.Module
    lines: Sequence[str]
    file: str
    title: str
    explained: str
    python: str = ""


class Session:
    """The state of the magics in one shell: its mesh, its cells, its last report."""

    def __init__(self, shell: Any, cells: sources.Cells, mesh: NotebookMesh) -> None:
        """Start with no report."""
        self.shell = shell
        self.cells = cells
        self.mesh = mesh
        self.last: Report | None = None
        # By cell and title, so that each call of a cell is compared with itself.
        self._runs: dict[tuple[str, str], Report] = {}
        self.previews = LinePreviews(self.namespace, mesh)
        self.any_cell = shown_explanations.AnyCell(shell, self._explanation)

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's names."""
        names: dict[str, Any] = self.shell.user_ns
        return names

    # Texts

    def cell_text(self, line: str, body: str) -> ProgramText:
        """Read the body of `%%shard`, with the line numbers that the user sees."""
        running = self.cells.running("%%shard", line, body)
        code = body.lstrip("\n")
        python: str = self.shell.transform_cell(code)
        source = running.head + "\n" * (len(body) - len(code)) + python
        file = self.shell.compile.cache(source, running.number, raw_code=running.raw)
        self.cells.add(file, running.source)
        lines = running.raw.splitlines()
        try:
            tree: ast.Module = self.shell.compile.ast_parse(source, filename=file)
        except SyntaxError:
            shown_errors.show_syntax_error_alone(self.shell)
            raise
        tree = _interactive(self.shell.transform_ast(tree), self.shell.ast_node_interactivity)
        return ProgramText(tree, lines, file, running.source.name, file, source)

    def call_text(self, line: str) -> ProgramText:
        """Read the call after `%shard`, at its line of the cell."""
        try:
            ast.parse(line, mode="eval")
        except SyntaxError as error:
            raise CellError(
                f"expected a call such as %shard f(x, W), got {line!r}: {error.msg}"
            ) from error
        number, file = self.cells.at_line(line)
        tree = ast.increment_lineno(ast.parse(line), number - 1)
        lines = ["" for _ in range(number - 1)] + [line]
        python = "\n".join(lines)
        if self.cells.has(file):
            # A separate file: in the cell's file, the call is part of a magic's line.
            raw = f"# %shard at line {number}\n{line}"
            cell, file = file, self.shell.compile.cache(python, self.cells.number, raw_code=raw)
            self.cells.add_as(file, cell)
        return ProgramText(tree, lines, file, line, self._defined_in(tree, file), python)

    def _defined_in(self, tree: ast.Module, file: str) -> str:
        """Return the file of the cell that defines the called function, else of the call."""
        match tree.body[0]:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                code = code_of(self.namespace.get(name))
                defined_in = getattr(code, "co_filename", file)
                return defined_in if self.cells.has(defined_in) else file
        return file

    # Programs

    def run(self, text: ProgramText, line: MagicLine, *, run: bool) -> Any:
        """Compile a text, show its report, run it, and bind what it assigns.

        Without `run`, or if an input is only a shape, nothing runs; in the second case the names
        are bound to shapes. Returns the value of the last expression.
        """
        self.previews.forget(self.cells.cell_id)
        of_torch = line.has(options.FROM)
        with self.errors(text.file), line_on(), torch_types() if of_torch else nullcontext():
            prepared = self.prepared(text, line, run=run)
            program, report = prepared.compiled()
            if not of_torch:
                self.previews.keep(self.cells.cell_id, text.lines, line, prepared, program, report)
            report = self.forbidding(line, self.since_last_run(text, report))
            report = self.keep(line, report, prepared.function.printed)
            self.forbid(line, report)
            if line.has(options.FIX):
                report = self.keep(line, engine.with_fixes(program, report), [])
            value = None
            if run:
                value, report = self.executed(line, prepared, program, report)
            self.show(line, report)
            return value

    def executed(
        self, line: MagicLine, prepared: Prepared, program: Program, report: Report
    ) -> tuple[Any, Report]:
        """Run a program and bind what the cell assigns; gives the last value, and the report.

        All names are bound, or none. Where only shapes are known these are bound, and where the
        program cannot run the report says why.
        """
        recording = prepared.function.recording
        if recording is None:
            raise RuntimeError("the cell was not traced")
        binding = Binding(self.namespace, recording)
        if program.abstract:
            return binding.finish(prepared.function.results(shapes_of(program))), report
        if program.hindrance:
            return None, self.keep(line, report, [NOT_RUN + program.hindrance])
        if runs := line.number(options.PROFILE):
            report = self._measured(line, program, report, runs)
        unsharded = numerical_check.unsharded(program) if line.has(options.CHECK) else None
        with binding.begun():
            outputs, report = self._results(line, program, report)
            checked = numerical_check.against(unsharded, outputs) if unsharded else None
            value = binding.finish(prepared.function.results(outputs))
        if checked is not None:
            lines = tuple(line.strip() for line in str(checked).splitlines())
            report = with_outcome(report, Outcome("check", checked.ok, lines))
        return value, self.keep(line, report, [])

    def prepared(
        self, text: ProgramText, line: MagicLine, *, run: bool, axes: str | None = None
    ) -> Prepared:
        """Make a text a function on the mesh of a line; `axes` is the type of all mesh axes."""
        cell = cell_of(text.tree, text.lines)
        with names_traced():  # not while another thread has traced values in the names
            return self._prepared(text, cell, line, run=run, axes=axes)

    def _prepared(
        self, text: ProgramText, cell: CheckedCell, line: MagicLine, *, run: bool, axes: str | None
    ) -> Prepared:
        if line.has(options.FROM):
            from shardnb.magics import torch_cell

            self.refuse_save(line, cell.names)
            code = self._compiled_code(cell, text.file, text.python)
            texts = replace(self.cells.texts(text.explained), title=text.title)
            read = torch_cell.read(cell.names, code, self.namespace, line)
            grid = read.grid(line, self.mesh) or self.grid(line, ())
            prepared = read.prepared(grid, texts, run=run)
            return replace(prepared, hardware=self.hardware(line, grid.describe()))
        names, reachable = names_through(cell.names, self.namespace)
        # Python's and NumPy's own random numbers, which any function may draw.
        drawing: tuple[Any, ...] = (random.random, np.random.get_state)
        reachable.add_all(("random", function.__self__) for function in drawing)
        inputs = inputs_of(names.read, self.namespace, line.placed)
        for name in line.placed:
            if name not in inputs:
                raise not_an_input(name, names, inputs, self.namespace)
        given = (line.specs, line.parts, line.rule_texts, line.out)
        specs, parts, by_rule, out = (evaluated(texts, self.namespace) for texts in given)
        specs, notes = with_rules(specs, line.by_rule(by_rule), inputs)
        specs = with_parts(specs, parts, inputs)
        self.refuse_save(line, names)
        refuse_what_does_not_fit({name: inputs[name] for name in specs})
        refuse_two_specs(inputs, specs)
        grid = retyped(self.grid(line, (inputs, specs)), axes)
        hardware = self.hardware(line, grid.describe())
        runs = run and not grid.compile_only and not _shapes_only(inputs)
        function = CellFunction(
            code=self._compiled_code(cell, text.file, text.python),
            namespace=self.namespace,
            inputs=inputs,
            reachable=reachable,
            names=names.read,
            placed=frozenset(specs),
            stated=tuple(out),
            possible=tuple(dict.fromkeys((*names.assigned, *inputs, *out, LAST, HELD))),
            manual=bool(grid.manual),
            runs=runs,
            rereads=_rereads(line, run=runs),
            quiet=silenced,
        )
        array_names = {
            **{id(array): text_of(path) for path, array in reachable.arrays},
            **{id(v): name for name, v in self.namespace.items() if isinstance(v, jax.Array)},
        }
        request = Request(
            function=function,
            arguments=function.arguments(),
            grid=grid,
            in_specs=specs,
            out_specs=out_specs_of(function, out),
            in_jit=False,
            apart=line.has(options.ISOLATE),
            texts=replace(self.cells.texts(text.explained), title=text.title, names=array_names),
            notes=notes,
        )
        return Prepared(function, request, hardware)

    def code(self, text: ProgramText) -> CellCode:
        """Compile a text as Python alone."""
        return self._compiled_code(cell_of(text.tree, text.lines), text.file, text.python)

    def _compiled_code(self, cell: CheckedCell, file: str, text: str) -> CellCode:
        compiled, (body, last) = self.shell.compile, parted(cell.tree)
        value = None if last is None else compiled(last, file, "eval")
        return CellCode(compiled(body, file, "exec"), value, cell.tree, file, text)

    def grid(self, line: MagicLine, values: Any) -> Grid:
        """Return the mesh that a line names, or the default."""
        text = line.text(options.MESH)
        stated = None if text is None else mesh_value(text, self.namespace)
        return self.mesh.choose(stated, line.text(options.AXES), line.text(options.ON), values)

    def hardware(self, line: MagicLine, mesh: Mesh) -> Given | None:
        """Return what the seconds are for: what a line names, else what `%mesh` does for its own.

        None for the devices of the mesh. A line that names other devices has no default.
        """
        text = line.text(options.HARDWARE)
        if text is not None:
            return hardware_value(text, self.namespace, mesh)
        own = not line.has(options.MESH) and not line.has(options.ON)
        return self.mesh.hardware_of(mesh) if own else None

    def _results(
        self, line: MagicLine, program: Program, report: Report
    ) -> tuple[dict[str, Tree], Report]:
        try:
            return engine.ran(program, report)
        except BaseException:  # an interrupt too: the report exists already
            self.show(line, report)
            raise

    def _measured(self, line: MagicLine, program: Program, report: Report, runs: int) -> Report:
        try:
            return self.keep(line, engine.measured(program, report, runs), [])
        except InUse as error:
            raise CellError(f"--profile: {error}") from error

    def refuse_save(self, line: MagicLine, names: Names) -> None:
        """Refuse to bind the report to a name that the cell uses: its array would be lost."""
        name = line.text(options.SAVE)
        if name in (*names.read, *names.assigned):
            does = "assigns" if name in names.assigned else "reads"
            raise CellError(f"--save {name} would replace {name}, which the cell {does}")

    # Reports

    def keep(self, line: MagicLine, report: Report, notes: Sequence[str]) -> Report:
        """Keep a report, with more notes, as the last one, and bind it to the name of `--save`."""
        added = tuple(note for note in notes if note not in report.notes)
        self.last = replace(report, notes=(*report.notes, *added))
        name = line.text(options.SAVE)
        if name is not None:
            self.namespace[name] = self.last
        return self.last

    def since_last_run(self, text: ProgramText, report: Report) -> Report:
        """Say in a report what changed since the last run of its cell, if this shell knows one."""
        cell = self.cells.cell_id
        if cell is None:
            return report
        # A cell's title ends with the number of its run.
        key = cell, text.title.rstrip("0123456789]")
        before, self._runs[key] = self._runs.get(key), replace(report, texts={})
        return report if before is None else replace(report, since=before.diff(report))

    def forbidding(self, line: MagicLine, report: Report) -> Report:
        """Say in a report whether it has what `--forbid` names."""
        words = line.words(options.FORBID)
        if not words:
            return report
        passed = not any(c.is_among(words) for c in report.collectives)
        known = passed if report.partitioned else None
        return with_outcome(report, Outcome("forbid", known, words))

    def forbid(self, line: MagicLine, report: Report) -> None:
        """Raise `ForbiddenCollectives` if a report has what `--forbid` names."""
        words = line.words(options.FORBID)
        broken = [c for c in report.collectives if c.is_among(words)]
        if broken:
            self.show(line, report)
            raise shown_errors.ForbiddenCollectives(words, broken)

    def show(self, line: MagicLine, report: Report) -> None:
        """Display a report as a line asks for it."""
        show(report, line.text(options.VIEW) or "full")

    def _explanation(self, error: BaseException) -> ErrorReport | None:
        """Explain an error of any cell."""
        return explain_error(error, texts=self.cells.texts(self.cells.now()))

    @contextmanager
    def errors(self, file: str) -> Iterator[None]:
        """Show an error from the cell's own line on, and an error of a magic in one line."""
        try:
            yield
        except (CellError, shown_errors.ForbiddenCollectives):
            raise
        except BaseException as error:  # an interrupt too: it is shown from the cell's line on
            start, report = shown_errors.at_cell(error, file), failures.report_of(error)
            if start is not None:
                shown_errors.note_missing_import(error)
            if report is None and start is not None:
                report = traced_values.explained(error, self.cells.texts(file))
            plain = shown_errors.rendered(self.shell, error, start)
            if report is not None:
                shown_explanations.show(self.shell, error, report, plain)
            if start is None and says_what_is_wrong(error):
                raise CellError(str(error)) from error
            if report is None and (start is not None or not is_ours(error)):
                error._render_traceback_ = plain  # type: ignore[attr-defined]
            raise


def with_outcome(report: Report, outcome: Outcome) -> Report:
    """Add to a report how an option that checks something ended."""
    return replace(report, outcomes=(*report.outcomes, outcome))


def show(report: Report, view: str) -> None:
    """Display a report: `full`, `brief` up to what is sent, or not at all."""
    if view == "full":
        display(report)
    elif view == "brief":
        from shardnb.views import live

        display(live.mimebundle(report, "brief"), raw=True)


def _interactive(tree: ast.Module, interactivity: str) -> ast.Module:
    """Apply the shell's setting of which expressions a cell shows."""
    match tree.body[-1:], interactivity:
        case [ast.Assign(targets=[ast.Name(id=name)])], "last_expr_or_assign":
            shown = ast.copy_location(ast.Expr(ast.Name(name, ast.Load())), tree.body[-1])
            tree.body.append(ast.fix_missing_locations(shown))
        case [ast.Expr()], "none":
            tree.body.append(ast.copy_location(ast.Pass(), tree.body[-1]))
    return tree


def _rereads(line: MagicLine, *, run: bool) -> str:
    """Say why a cell is traced more than once, or without running it; "" where it is not."""
    several = [o.name for o in (options.FIX, options.COMPARE, options.CHECK) if line.has(o)]
    if several:
        return f"--{several[0]} traces the cell more than once"
    return "" if run else "the cell is only compiled"


def _shapes_only(inputs: Mapping[str, Tree]) -> bool:
    leaves = (leaf for value in inputs.values() for leaf in leaves_of(value))
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)


def shapes_of(program: Program) -> dict[str, Tree]:
    """Return the results of a program as shapes with their shardings."""
    shapes: dict[str, Tree] = jax.tree_util.tree_map(
        lambda info, sharding: jax.ShapeDtypeStruct(info.shape, info.dtype, sharding=sharding),
        program.lowered.out_info,
        program.output_shardings,
    )
    return shapes
