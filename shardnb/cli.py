"""The command line: `shardnb demo`, `lab`, `run`, `explain`, `read`, `diff` and `targets`.

`command_error.STATUSES` has the exit statuses.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from shardnb import __version__
from shardnb.commands import command_error
from shardnb.commands.command_error import CommandError
from shardnb.terms.axis_types import AXIS_TYPES

# Nothing here imports JAX or Jupyter before a command needs it, so that --help is instant.
if TYPE_CHECKING:
    from shardnb.report import Report
    from shardnb.report.programs import Programs

ON = (
    "the devices of the mesh; 2*v5e:4x4 are two slices, and `shardnb targets` says what can be "
    "compiled for here"
)
RUN = (
    "Run a program in a child process, unchanged: its input, output, exit status and signals pass "
    "through. XLA's dumps are switched on in its environment (XLA_FLAGS, to which they are added), "
    "so it works for any framework over XLA, on the devices that the program uses. When it ends, "
    "each large program that it compiled is reported on standard error: its collectives, who asked "
    "for each, why, at which line, and memory. JAX's persistent compilation cache takes no part."
)
HARDWARE = (
    "what the seconds are for, where it is not those devices: a chip, slice or cluster, or a JSON "
    "or TOML file with figures in place of the table's"
)
COPY = Path("shardnb-quickstart.ipynb")
PAGE = Path("shardnb-demo.html")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    try:
        return _run(_parser().parse_args(argv))
    except CommandError as error:
        print(f"shardnb: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("shardnb: interrupted", file=sys.stderr)
        return command_error.INTERRUPTED
    # Python's own status for a traceback is that of a forbidden collective.
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return command_error.BUG
    finally:
        with _reader_may_leave():
            sys.stdout.flush()


def _run(given: argparse.Namespace) -> int:
    if getattr(given, "forbid", None):
        from shardnb.commands import output

        output.check_words(given.forbid)
    status: int = given.command(given)
    return status


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Drop the rest of the output where its reader, such as `head`, has seen enough."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: object, file: TextIO | None = None) -> None:
    """Print, with escapes for what the terminal's encoding does not have."""
    file = sys.stdout if file is None else file
    encoding = file.encoding or "utf-8"
    with _reader_may_leave():
        print(str(text).encode(encoding, "backslashreplace").decode(encoding), file=file)


def _demo(given: argparse.Namespace) -> int:
    from shardnb.commands import notebook

    status = _give(notebook.run(notebook.demo()), given)
    where = sys.argv[0] if Path(sys.argv[0]).name == "shardnb" else "shardnb"
    _print(f"The same notebook in JupyterLab:  {where} lab", _aside(given))
    return status


def _lab(given: argparse.Namespace) -> NoReturn:
    from shardnb.commands import notebook

    if not COPY.exists():
        shutil.copyfile(notebook.demo(), COPY)
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command = [sys.executable, "-m", "jupyterlab", str(COPY), *root, *given.options]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606


def _explain(given: argparse.Namespace) -> int:
    from shardnb.commands import hardware

    hardware.check(given.hardware)
    if given.target.endswith(".ipynb"):
        from shardnb.commands import notebook

        return _give(hardware.on(notebook.run(Path(given.target)), given.hardware), given)
    from shardnb.commands import function

    call = function.CallOptions(
        mesh=given.mesh,
        axes=given.axes,
        on=given.on,
        arguments=given.arg,
        args=given.args,
        in_specs=given.in_specs,
        out_specs=given.out_specs,
    )
    report = function.explain(given.target, call)
    return _give(hardware.on(report, given.hardware), given)


def _run_program(given: argparse.Namespace) -> int:
    from shardnb.commands import hardware, program

    hardware.check(given.hardware)
    ended, programs = program.run(
        program.RunOptions(
            words=given.program,
            module=given.module,
            mesh=given.mesh,
            only=given.only,
            first=given.first,
            stop=given.stop_when_compiled,
            keep=given.keep,
        )
    )
    status = _give(hardware.on(programs, given.hardware), given)
    return ended.status or status


def _read(given: argparse.Namespace) -> int:
    from shardnb.commands import hardware, saved

    hardware.check(given.hardware)
    dump = saved.read(
        given.dump,
        given.mesh,
        given.sources,
        only=given.only,
        first=given.first,
        dumps=given.dumps,
    )
    return _give(hardware.on(dump, given.hardware), given)


def _diff(given: argparse.Namespace) -> int:
    from shardnb.commands import output, saved

    before, after = saved.load(given.before), saved.load(given.after)
    pairs = saved.paired(before, after)
    _print(output.diff_text(pairs, json=given.json, markdown=given.markdown))
    if given.html is not None:
        output.write_diff_page(pairs, given.html)
    return _judged(after, output.not_explained(after, given.forbid), given)


def _targets(given: argparse.Namespace) -> int:
    from shardnb.commands import targets

    print(targets.add(given.compiler) if given.action == "add" else targets.listing())
    return 0


def _give(result: Report | Sequence[Report] | Programs, given: argparse.Namespace) -> int:
    """Print reports, write them as a page if asked, and check them against `--forbid`."""
    from shardnb.commands import output
    from shardnb.report import Report
    from shardnb.report.programs import Programs

    text = output.as_text_or_json(result, json=given.json)
    _give_text(text, given)
    if isinstance(result, Programs):
        unknown = output.not_read(result, given.forbid)
        reports: Sequence[Report] = result.communicating
    else:
        reports = [result] if isinstance(result, Report) else result
        unknown = output.not_explained(reports, given.forbid)
    if given.html is not None:
        output.write_page(reports, given.html)
    return _judged(reports, unknown, given)


def _give_text(text: str, given: argparse.Namespace) -> None:
    """Print the reports, or write them to the file of `--output`.

    Those of a program that ran follow its own output on standard error: its standard output stays
    as it would be without shardnb.
    """
    from shardnb.commands import output

    if getattr(given, "output", None) is not None:
        output.write_text(text, given.output)
    else:
        _print(text, sys.stderr if hasattr(given, "output") else sys.stdout)


def _judged(reports: Sequence[Report], unknown: Sequence[str], given: argparse.Namespace) -> int:
    """Print where a page was written and which collectives are forbidden; returns the status."""
    from shardnb.commands import output

    if given.html is not None:
        _print(f"Wrote {given.html}", _aside(given))
    broken = output.forbidden(reports, given.forbid)
    for line in (*broken, *unknown):
        _print(f"shardnb: {line}", sys.stderr)
    if broken:
        return command_error.FORBIDDEN
    return command_error.NOT_EXPLAINED if unknown else command_error.DONE


def _aside(given: argparse.Namespace) -> TextIO:
    return sys.stderr if given.json or hasattr(given, "output") else sys.stdout


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shardnb",
        description="What a JAX program sends between devices, who asked for it, and why.",
        **_statuses(),
    )
    parser.add_argument("--version", action="version", version=f"shardnb {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_lab(commands)
    _add_run(commands)
    _add_explain(commands)
    _add_read(commands)
    _add_diff(commands)
    _add_targets(commands)
    return parser


def _statuses() -> dict[str, Any]:
    """Return what ends the help of each command that can fail."""
    lines = [f"  {status:<4}{text}" for status, text in command_error.STATUSES.items()]
    epilog = "\n".join(("exit status:", *lines))
    return {"epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter}


type Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _add_demo(commands: Commands) -> None:
    text = f"run a notebook without a browser, print its reports, write {PAGE}"
    demo = commands.add_parser("demo", help=text, description=text, **_statuses())
    demo.set_defaults(command=_demo)
    _add_output(demo, PAGE)


def _add_lab(commands: Commands) -> None:
    text = f"open the demo's notebook in JupyterLab, as {COPY} in this folder"
    lab = commands.add_parser("lab", help=text, description=text)
    lab.set_defaults(command=_lab)
    lab.add_argument(
        "options", nargs="*", metavar="-- OPTION", help="JupyterLab's own, such as -- --no-browser"
    )


def _add_explain(commands: Commands) -> None:
    text = "explain a function of a file, or the cells of a notebook"
    explain = commands.add_parser("explain", help=text, description=text, **_statuses())
    explain.set_defaults(command=_explain)
    explain.add_argument("target", metavar="FILE.py:function | FILE.ipynb")
    explain.add_argument("--mesh", metavar="data=4,model=2", help="the mesh of devices")
    explain.add_argument("--axes", metavar="|".join(AXIS_TYPES), help="the type of the mesh axes")
    explain.add_argument("--on", metavar="cpu|attached|v5e:2x4|h100:4x8", help=ON)
    explain.add_argument("--hardware", metavar="h100:4x8|FILE", help=HARDWARE)
    explain.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="x=f32[256@data,512]",
        help="the type of an argument, for which no array is needed; repeat it for each argument",
    )
    explain.add_argument(
        "--args", metavar="EXPR", help="all arguments, as an expression in the file's names"
    )
    explain.add_argument(
        "--in-specs",
        metavar="EXPR",
        help="with --args: their specs, as an expression, or by name and rule as on the line of "
        "%%%%shard: \"params:/kernel$/=P(None, 'model') opt=like(params)\"",
    )
    explain.add_argument("--out-specs", metavar="EXPR", help="the specs of the result")
    _add_output(explain, None)


def _add_run(commands: Commands) -> None:
    text = "run a program unchanged, and report what it compiles: who asked for what, and why"
    run = commands.add_parser(
        "run",
        help=text,
        description=RUN,
        usage="shardnb run [OPTIONS] (SCRIPT | -m MODULE) [ARGUMENTS...]",
        **_statuses(),
    )
    run.set_defaults(command=_run_program)
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT ARGUMENTS...")
    run.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="MODULE ARGUMENTS...",
        help="run a module, as python -m does",
    )
    run.add_argument("--mesh", metavar="data=4,model=2", help="names the axes, if XLA does not")
    run.add_argument("--hardware", metavar="h100:4x8|FILE", help=HARDWARE)
    _add_choice(run)
    run.add_argument(
        "--stop-when-compiled",
        action="store_true",
        help="end the program once the first large program (or --first N, --only PATTERN) is "
        "compiled, before a step has run",
    )
    run.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep XLA's dumps, which `shardnb read DIR` reads"
    )
    run.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the reports here, as text or JSON"
    )
    _add_output(run, None)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--first", type=int, metavar="N", help="report at most so many large programs"
    )
    parser.add_argument(
        "--only", metavar="PATTERN", help="report the programs of such a name: 'train*'"
    )


def _add_read(commands: Commands) -> None:
    text = "explain an HLO dump or a profiler's trace from any machine"
    read = commands.add_parser("read", help=text, description=text, **_statuses())
    read.set_defaults(command=_read)
    what = (
        "a file with HLO text, a folder that XLA dumped to, a profiler's trace (its folder, or a "
        "file *.xplane.pb), or - for standard input"
    )
    read.add_argument("dump", metavar="DUMP", help=what)
    read.add_argument("--mesh", metavar="data=4,model=2", help="the mesh it was compiled for")
    _add_choice(read)
    read.add_argument("--hardware", metavar="h100:4x8|FILE", help=HARDWARE)
    read.add_argument(
        "--dumps",
        metavar="DIR",
        help="for a trace: the folder that XLA dumped to in the same run, which says who asked for "
        "each collective, and why",
    )
    read.add_argument(
        "--sources",
        action="append",
        default=[],
        metavar="PATH",
        help="a file or folder whose lines may be shown if the dump names them",
    )
    _add_output(read, None)


def _add_diff(commands: Commands) -> None:
    text = "compare reports saved as JSON; --forbid checks the second ones"
    diff = commands.add_parser("diff", help=text, description=text, **_statuses())
    diff.set_defaults(command=_diff)
    diff.add_argument("before", type=Path, metavar="A.json")
    diff.add_argument("after", type=Path, metavar="B.json")
    diff.add_argument(
        "--markdown",
        action="store_true",
        help="write what changed, where and why, for a pull request",
    )
    _add_output(diff, None)


def _add_targets(commands: Commands) -> None:
    text = "list what can be compiled for here, or fetch the compiler for GPUs or TPUs"
    targets = commands.add_parser("targets", help=text, description=text)
    targets.set_defaults(command=_targets, action="list")
    actions = targets.add_subparsers(metavar="ACTION")
    fetch = "fetch a compiler into a folder of its own, in the version that the installed JAX needs"
    adding = actions.add_parser("add", help=fetch, description=fetch)
    adding.set_defaults(action="add")
    adding.add_argument("compiler", choices=("gpu", "tpu"))


def _add_output(parser: argparse.ArgumentParser, page: Path | None) -> None:
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")
    parser.add_argument(
        "--html", type=Path, default=page, metavar="PATH", help="write the reports as one HTML page"
    )
    parser.add_argument(
        "--forbid",
        action="append",
        default=[],
        metavar="inferred|all-gather|...",
        help="fail if a report has such a collective, or may have it",
    )


if __name__ == "__main__":
    sys.exit(main())
