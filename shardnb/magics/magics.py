"""The magics `%mesh`, `%%shard` and `%shard`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)

from shardnb.magics import options
from shardnb.magics.cell import CellError
from shardnb.magics.complete import matcher
from shardnb.magics.meshes import NO_MESH, NotebookMesh, described, mesh_value
from shardnb.magics.shown_errors import usage_errors
from shardnb.magics.sources import Cells
from shardnb.mesh import make_grid

if TYPE_CHECKING:
    from shardnb.magics.session import ProgramText, Session


@magics_class
class ShardMagics(Magics):
    """Compile cells for a mesh of devices, and show what they send between them."""

    def __init__(self, shell: Any) -> None:
        """Begin with no mesh and no report."""
        super().__init__(shell)
        self.cells = Cells(shell)
        self.notebook_mesh = NotebookMesh()
        self.namespace: dict[str, Any] = shell.user_ns
        self.matcher = matcher(self.notebook_mesh, self.namespace)

    @cached_property
    def session(self) -> Session:
        """What the magics have done so far."""
        # The engine is imported with the first cell: loading the extension is quick.
        from shardnb.magics.session import Session

        return Session(self.shell, self.cells, self.notebook_mesh)

    @no_var_expand
    @line_magic
    def mesh(self, line: str) -> None:
        """Set or show the notebook's mesh: a named grid of devices.

        `%%shard` and `%shard` compile for it, unless they say another.

            %mesh data=4,model=2                     8 emulated CPU devices in a 4 x 2 grid
            %mesh                                    shows the mesh
            %mesh data=4:explicit,model=2:manual     an axis with its type
            %mesh my_mesh                            a jax.sharding.Mesh of the notebook

        Types of axes: `auto` (the default) leaves placement to the compiler; with `explicit` it is
        part of each array's type and is checked; over `manual` axes a cell is the body of one
        device, as in `jax.shard_map`.

        Options:

            --axes explicit     the type of the axes that state none
                                %mesh data=8 --axes explicit
            --on v5e:2x4        the devices: cpu (the default) emulates any number of them and
                                needs no restart; attached takes those of jax.devices(); a TPU
                                topology is compiled for, with no TPU here (Tab lists some; needs
                                pip install 'shardnb[tpu]')
                                %mesh data=4,model=2 --on v5e:2x4
        """
        with usage_errors():
            read = options.parse(line, options.MESH_OPTIONS, specs=False)
            self._mesh(read)

    def _mesh(self, line: options.MagicLine) -> None:
        mesh, axes, on = self.notebook_mesh, line.text(options.AXES), line.text(options.ON)
        stated = mesh.stated
        if line.first:
            stated = mesh_value(line.first, self.namespace)
        elif axes or on:
            axes, on = axes or mesh.axes, on or mesh.on
        else:
            axes, on = mesh.axes, mesh.on
        if stated is None:
            raise CellError(NO_MESH)
        grid = make_grid(stated, axes, on)
        mesh.stated, mesh.axes, mesh.on = stated, axes, on
        print(described(grid))  # noqa: T201

    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def shard(self, line: str, cell: str | None = None) -> Any:
        """Compile a cell as one program over a mesh, show what it sends, and run it.

            %mesh data=4,model=2

            %%shard x=P('data', 'model') W=P('model')
            y = jnp.tanh(x @ W)

        The arrays that the cell reads are the program's inputs, also those in dictionaries, lists
        and the models of any library; what it assigns are its outputs. All else stays what it is
        in Python. The report says which collectives the program has, at which line, over which
        axes, who asked for each, why, and what it sends. Then the program runs, and the names hold
        the results, as after any cell; the last expression shows, and `;` silences it.

        A first line that ends in a backslash goes on in the next one.

        The body is executed once, while JAX traces it: prints and other effects happen once.
        With a `jax.ShapeDtypeStruct` among the inputs nothing is allocated and nothing runs: what
        the cell assigns holds shapes with their shardings, so that the next cell can go on, and
        what the cell prints is dropped.

        Where the data is:

            x=P('data', None)      the placement of an input: a P, a NamedSharding, or a pytree
                                   prefix of them; any Python expression, spaces and all.
                                   Not given: the array's own, if it is on this mesh, else
                                   replicated. P and NamedSharding are known here.
            --out y=P('data')      the placement of outputs, up to the next option. `Out` is the
                                   value of the last expression.

        Over manual axes the cell is the body of one device: the specs are `jax.shard_map`'s
        in_specs, and every output is stated behind --out.

            %%shard --axes manual x=P('data') --out total=P()
            total = jax.lax.psum(x.sum(), 'data')

        Options:

            --mesh data=8          the mesh, for this cell, with its own types of axes (auto where
                                   none is stated); or a jax.sharding.Mesh by its name.
                                   Not given: the one in the arguments' shardings, else the one
                                   of %mesh, else the one of jax.set_mesh
            --axes explicit        the type of its axes: auto, explicit or manual
            --on v5e:2x4           its devices: cpu (emulated, any number), attached, or a TPU
                                   topology, for which the cell is compiled and does not run
            --no-run               compile and explain only: no name changes, and what the cell
                                   prints is dropped
            --watch                run the cell as it stands, and report each program that its own
                                   jit, shard_map and lower().compile() calls compile
            --save report          bind the report to a name (with --watch, a list of reports)
            --forbid inferred      raise an error, before anything runs, if the program has such
                                   collectives: kinds (all-gather,all-to-all) or who asked
                                   (inferred, requested, called; what nobody knows
                                   who asked for counts as inferred)
            --fix                  look for edits that remove collectives which nobody asked for;
                                   each was compiled before it is shown. Takes up to 20 seconds;
                                   an interrupt keeps what was found
            --check                compare the result with that of one device, and say how far
                                   they differ
            --compare auto,explicit,manual
                                   compile the cell for each of these types of axes, and show
                                   the programs side by side with what differs; where explicit
                                   axes refuse it, every annotation that they need is found. The
                                   cell then runs with the first type
            --view brief           how much to show: full, brief or none

        An error of JAX's about placement comes with the arrays drawn, the cause, and the text
        that mends it; the traceback is folded below, and `%tb` shows it.

        On a line of its own:

            %shard f(x, W)         compile and explain a call; nothing runs. The same options and
                                   specs may follow: %shard f(x, W) --mesh data=8 x=P('data')
            %shard                 the last report again
            %shard --errors on     explain JAX's errors about placement in every cell of the
                                   notebook, also without %%shard; --errors off ends it
        """
        with usage_errors():
            if cell is None:
                return self._line(line)
            line, cell = options.continued(line, cell)
            read = options.parse(line, options.CELL_OPTIONS)
            if read.first:
                raise CellError(f"{read.first!r} is neither an option nor a spec x=P('data')")
            text = self.session.cell_text(line, cell)
            if read.has(options.WATCH):
                from shardnb.magics.watched import run_watched

                return run_watched(self.session, text, read)
            return self._run(text, read, run=not read.has(options.NO_RUN))

    def _run(self, text: ProgramText, read: options.MagicLine, *, run: bool) -> Any:
        if read.has(options.COMPARE):
            from shardnb.magics.compared import run_compared

            return run_compared(self.session, text, read, run=run)
        return self.session.run(text, read, run=run)

    def explain_any_cell(self, *, on: bool) -> None:
        """Switch on or off that the errors of every cell are explained."""
        if on or "session" in self.__dict__:
            self.session.any_cell.switch(on=on)

    def _line(self, line: str) -> None:
        from shardnb.magics.session import show

        read = options.parse(line, options.CALL_OPTIONS)
        if read.has(options.ERRORS):
            self.explain_any_cell(on=read.text(options.ERRORS) == "on")
            return
        if read.first:
            self._run(self.session.call_text(read.first), read, run=False)
            return
        if read.specs or read.out:
            raise CellError("the call comes first: %shard f(x, W) x=P('data')")
        if self.session.last is None:
            raise CellError("there is no report yet: %shard f(x, W) explains a call")
        show(self.session.last, read.text(options.VIEW) or "full")
