"""`shardnb targets`: what can be compiled for here, and the compilers that are missing."""

from __future__ import annotations

from shardnb.commands.command_error import CommandError
from shardnb.mesh import compilers, gpus, topologies


def listing() -> str:
    """Return the targets as text: those that are there, and how to get the others.

    >>> listing().splitlines()[0]
    'cpu       emulated CPU devices, any number'
    """
    lines = [
        "cpu       emulated CPU devices, any number",
        "attached  the devices of jax.devices()",
    ]
    for names, examples, compiler in (
        (topologies.GENERATIONS, "v5e:2x4, v5p:4x4x4, 2*v5e:4x4", compilers.COMPILERS["tpu"]),
        (gpus.GPUS, "h100:8, h100:4x8, gb200:18x4, 2*h100:16x8", compilers.COMPILERS["gpu"]),
    ):
        lines += [
            f"{compiler.name:<10}{', '.join(names)}",
            f"          written as {examples}",
            f"          {_state(compiler)}",
        ]
    return "\n".join(lines)


def _state(compiler: compilers.Compiler) -> str:
    package = f"{compiler.package} {compiler.version()}"
    if (installed := compiler.installed()) is not None:
        return f"compiler: {package}, installed in this environment: {installed}"
    if (path := compiler.path()) is not None:
        return f"compiler: {package}: {path}"
    return f"compiler: not here; `shardnb targets add {compiler.name}` fetches {package}"


def add(name: str) -> str:
    """Fetch a compiler, and say where it is. Raises `CommandError` where that fails."""
    compiler = compilers.COMPILERS[name]
    if (there := compiler.path()) is not None:
        return f"The compiler for {compiler.what} is already here: {there}"
    try:
        path = compilers.fetch(compiler)
    except RuntimeError as error:
        raise CommandError(str(error)) from error
    size = path.stat().st_size / 2**20
    return f"Fetched the compiler for {compiler.what} ({size:.0f} MiB): {path}"
