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
from shardnb.magics.host_meshes import Hosts, wants_hosts
from shardnb.magics.meshes import NO_MESH, NotebookMesh, described, hardware_value, mesh_value
from shardnb.magics.preview_channel import UNKNOWN, Answer, PreviewChannel
from shardnb.magics.shown_errors import usage_errors
from shardnb.magics.sources import Cells
from shardnb.mesh import make_grid
from shardnb.views import hosts as words

if TYPE_CHECKING:
    from shardnb.magics.session import ProgramText, Session


@magics_class
class ShardMagics(Magics):
    """Compile cells for a mesh of devices, and show what they send between them."""

    def __init__(self, shell: Any) -> None:
        """Start with no mesh and no report."""
        super().__init__(shell)
        self.cells = Cells(shell)
        self.notebook_mesh = NotebookMesh()
        self.hosts = Hosts()
        self.namespace: dict[str, Any] = shell.user_ns
        self.matcher = matcher(self.notebook_mesh, self.namespace)
        self.channel = PreviewChannel(self._preview)

    @cached_property
    def session(self) -> Session:
        """The state of the magics in this shell."""
        # The engine is imported with the first cell, so that loading the extension is quick.
        from shardnb.magics.session import Session

        return Session(self.shell, self.cells, self.notebook_mesh)

    def _preview(self, cell: str, code: str) -> Answer:
        # The first cell imports the engine; before it there is nothing to preview.
        if "session" not in self.__dict__:
            return UNKNOWN
        return self.session.previews.answer(cell, code)

    @no_var_expand
    @line_magic
    def mesh(self, line: str) -> None:
        """Set or show the notebook's mesh: a named grid of devices.

        `%%shard` and `%shard` compile for it unless they are given another one.

            %mesh data=4,model=2                     8 emulated CPU devices in a 4 x 2 grid
            %mesh                                    show the mesh
            %mesh data=4:explicit,model=2:manual     each axis with its type
            %mesh my_mesh                            a jax.sharding.Mesh that the notebook defines

        Axis types: with `auto` (the default) the compiler chooses the shardings that you do not
        give; with `explicit` the sharding is part of each array's type and is checked; over
        `manual` axes a cell is written for one device, like the body of a `jax.shard_map`.

        Options:

            --axes explicit     the type of the axes that are given without one
                                %mesh data=8 --axes explicit
            --on v5e:2x4        the devices: cpu (the default) emulates up to 2,048, without a
                                restart; attached uses those of jax.devices(). For a TPU topology, a
                                GPU cluster or slices of them cells are compiled and do not run, and
                                none of these is needed (Tab lists some; `shardnb targets` says what
                                can be compiled for here)
                                %mesh data=4,model=2 --on v5e:2x4
                                %mesh data=8,model=4 --on h100:4x8     4 hosts of 8 GPUs
                                %mesh data=8,model=4 --on 2*v5e:4x4    2 slices
            --hosts 2           run cells on several processes of this machine, as JAX does
                                on several hosts: each has its share of the devices, and
                                arrays stay there, sharded, until fetch() (needs pip install
                                'shardnb[hosts]'). --hosts 0 stops them
                                %mesh data=4,model=2 --hosts 2
            --cluster PROFILE   the same on the engines of an ipyparallel cluster that runs (over
                                SSH, Slurm, Kubernetes, ...): all of them, or --hosts of them. With
                                --on attached they use their own devices
                                %mesh data=4,model=2 --cluster slurm --on attached
            --hardware FILE     what the seconds of reports are for, where it is not those devices:
                                a chip, slice or cluster such as h100:4x8, or a JSON or TOML file,
                                or the name of a dict, with figures in place of the table's:
                                {"chip": "h100:4x8", "network": 25e9}; without `chip` they are
                                those of the devices. A wrong key lists the others
                                %mesh data=8,model=4 --on h100:4x8 --hardware cluster.toml
        """
        with usage_errors():
            read = options.parse(line, options.MESH_OPTIONS, specs=False)
            self._mesh(read)

    def _mesh(self, line: options.MagicLine) -> None:
        if line.text(options.HOSTS) == "0":
            self.hosts.stop()
            self.notebook_mesh.hosts = None
            print(words.STOPPED_ALL)  # noqa: T201
            if not line.first:
                return
        mesh, axes, on = self.notebook_mesh, line.text(options.AXES), line.text(options.ON)
        stated, priced = mesh.stated, line.text(options.HARDWARE)
        if line.first:
            stated = mesh_value(line.first, self.namespace)
        else:
            axes, on = axes or mesh.axes, on or mesh.on
        if stated is None:
            raise CellError(NO_MESH)
        hosts, on_hosts = mesh.hosts, wants_hosts(line) and line.text(options.HOSTS) != "0"
        # What only the hosts have is not needed here: the kernel's mesh is an emulated one.
        grid = make_grid(stated, axes, "cpu" if on_hosts else on)
        hardware = None if line.first or line.has(options.ON) else mesh.hardware
        if priced is not None:
            hardware = hardware_value(priced, self.namespace, grid.describe())
        if on_hosts:
            hosts = self.hosts.for_mesh(line, grid.mesh.size)
            on = "cpu"
        elif line.first or line.has(options.ON):
            hosts = None
        mesh.stated, mesh.axes, mesh.on, mesh.hardware = stated, axes, on, hardware
        mesh.hosts = hosts
        print(described(grid) + words.on_hosts(() if hosts is None else hosts.devices))  # noqa: T201

    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def shard(self, line: str, cell: str | None = None) -> Any:
        """Compile a cell as one program over a mesh, show what it sends, and run it.

            %mesh data=4,model=2

            %%shard x=P('data', 'model') W=P('model')
            y = jnp.tanh(x @ W)

        The JAX arrays that the cell reads are the program's inputs, also those in dictionaries,
        lists and models of any library; the arrays that it assigns, or puts into any object, are
        its outputs. Everything else is plain Python: a NumPy array without a spec stays a NumPy
        array, and the cell leaves what it leaves without `%%shard`, or an error says what cannot
        be followed before anything changes. The report says which collectives the program has, at
        which line and over which axes, who asked for each, why, and how many bytes each device
        sends. Then the program runs, and the names hold the results, as after any cell; the value
        of the last expression is shown, unless the line ends with `;`.

        A first line that ends in a backslash continues on the next line.

        JAX traces the cell as it traces a function under `jax.jit`: while the body executes, arrays
        have no values yet, and prints and other side effects happen once. Put `print(y)`,
        `f"{loss:.2f}"`, `float(loss)` and `if y.sum() > 0` into the next cell: here they show a
        JitTracer or are errors.
        If an input is a `jax.ShapeDtypeStruct`, nothing is allocated and nothing runs: the names
        that the cell assigns hold shapes with their shardings, so that the next cell can use them,
        and the cell prints nothing.

        Shardings:

            x=P('data', None)      the sharding of an input: a P, a NamedSharding, or a pytree
                                   prefix of them; any Python expression, which may have spaces.
                                   Default: the array's own sharding if it is on this mesh, else
                                   replicated. P and NamedSharding need no import here.
            opt[0].mu=P('data')    that of a part of a pytree, as reports name it: an array, or all
                                   arrays in it. A star is any number: layers[*]['w']=P('model').
            params:/.*kernel/=P('data')
                                   that of the arrays whose path, such as layers/0/up/kernel, the
                                   regular expression is found in: the first rule counts, and the
                                   report says which rule matched which arrays
            opt=like(params)       those of another input, as for an optimizer's state
            params=logical([('mlp', 'model')])
                                   those of the logical axes that flax's variables name
            --out y=P('data')      the shardings of outputs, up to the next option. `Out` is the
                                   value of the last expression.

        Over manual axes the cell is written for one device: the specs are the in_specs of
        `jax.shard_map`, and every output needs its out_spec after --out.

            %%shard --axes manual x=P('data') --out total=P()
            total = jax.lax.psum(x.sum(), 'data')

        Options:

            --mesh data=8          the mesh for this cell, with its own axis types (auto unless
                                   given); or the name of a jax.sharding.Mesh.
                                   Default: the mesh of the arguments' shardings, else the one
                                   of %mesh, else the one of jax.set_mesh
            --axes explicit        the type of all mesh axes: auto, explicit or manual
            --on v5e:2x4           the devices: cpu (emulated, any number), attached, or a TPU
                                   topology or GPU cluster (h100:4x8, 2*v5e:4x4), for which
                                   the cell is compiled and does not run
            --hardware FILE        what the seconds are for, where it is not the devices: a chip,
                                   slice or cluster (v5e:2x4, h100:4x8), or figures in place of
                                   the table's, in a JSON or TOML file or a dict (see %mesh).
                                   Default: that of %mesh for its own mesh
            --from torch           the cell is torch code: the tensors that it reads, and those of
                                   its modules and optimizers, are the inputs, sharded as
                                   shardnb.torch.mark_sharding says (needs pip install
                                   'shardnb[torch]'); it leaves CPU tensors, as without %%shard
            --isolate              compile in another process: an interrupt, or an error that ends
                                   the compiler, then leaves the kernel alive
            --no-run               only compile and explain: no name changes, and the cell prints
                                   nothing
            --watch                run the cell unchanged, and report each program that its own
                                   jit, shard_map and lower().compile() calls compile
            --save report          assign the report to a name (with --watch, a list of reports)
            --forbid inferred      raise an error, before anything runs, if the program has such
                                   collectives: by kind (all-gather,all-to-all) or by who asked
                                   for them (inferred, requested, called; a collective
                                   of unknown origin counts as inferred)
            --fix                  search for edits that remove inferred collectives; each edit
                                   that is shown was compiled. Takes up to 20 seconds; after an
                                   interrupt, the edits found so far are shown
            --profile [N]          run the program N times (5 unless given) under JAX's profiler
                                   before the cell's own run, and show the measured time of each
                                   collective; no array changes. On emulated devices the times say
                                   nothing about hardware
            --check                compare the results with those of one device, and say how much
                                   they differ
            --compare cpu,v5e:2x4,h100:8
                                   compile the cell for several targets: what each compiler sends,
                                   in how many messages, in what time, and whether it fits
            --compare auto,explicit,manual
                                   compile the cell with each of these axis types, and show the
                                   programs side by side with their differences; if explicit axes
                                   reject the cell, find every annotation that they need. The
                                   cell then runs with the first type
            --view brief           how much to show: full, brief (up to what is sent) or none

        A JAX error about shardings comes with a drawing of the arrays, the cause, and an edit that
        fixes it; the traceback is folded below, and `%tb` shows it.

        On one line:

            %shard f(x, W)         compile and explain a call; nothing runs. Specs and the same
                                   options may follow: %shard f(x, W) --mesh data=8 x=P('data')
            %shard                 show the last report again
            %shard --errors on     explain JAX's errors about shardings in every cell of the
                                   notebook, also without %%shard; --errors off stops that
        """
        with usage_errors():
            if cell is None:
                return self._line(line)
            line, cell = options.continued(line, cell)
            read = options.parse_cell(line)
            text = self.session.cell_text(line, cell)
            if self._goes_to_hosts(read):
                return self._run(text, read, run=not read.has(options.NO_RUN))
            if read.has(options.WATCH):
                from shardnb.magics.watched import run_watched

                return run_watched(self.session, text, read)
            return self._run(text, read, run=not read.has(options.NO_RUN))

    def _goes_to_hosts(self, read: options.MagicLine) -> bool:
        """Whether a line is for the hosts of the notebook's mesh, and names no other devices."""
        return self.notebook_mesh.hosts is not None and not read.has(options.ON)

    def _run(self, text: ProgramText, read: options.MagicLine, *, run: bool) -> Any:
        if self._goes_to_hosts(read):
            from shardnb.magics.host_cells import run_on_hosts

            return run_on_hosts(self.session, text, read, run=run)
        if read.has(options.COMPARE):
            from shardnb.magics.compared import run_compared

            return run_compared(self.session, text, read, run=run)
        return self.session.run(text, read, run=run)

    def explain_any_cell(self, *, on: bool) -> None:
        """Switch the explanation of errors in every cell on or off."""
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
            raise CellError("expected the call first, then its specs: %shard f(x, W) x=P('data')")
        if without := [f"--{name}" for name in read.values if name != options.VIEW.name]:
            raise CellError(f"{without[0]} needs a call: %shard f(x, W) {without[0]}")
        if self.session.last is None:
            raise CellError("there is no report yet: %shard f(x, W) explains a call")
        show(self.session.last, read.text(options.VIEW) or "full")
