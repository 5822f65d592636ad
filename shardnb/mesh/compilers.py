"""The compilers for devices that are not here: where they are, and how to fetch them.

A compiler is one file of a package that the environment of the notebook must not have: installed
there, it makes every start of JAX complain about the missing hardware. So it is kept in a folder of
its own, by name and version.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from platformdirs import user_data_path

from shardnb.jax_compat.devices import gpu_compiler_version


@dataclass(frozen=True)
class Compiler:
    """A compiler: the package that has it, the file in it, and where the environment may have it.

    `module` is the package's own folder when it is installed in the environment.
    """

    name: str
    what: str
    package: str
    file: str
    module: str

    def version(self) -> str | None:
        """Return the version that the installed JAX needs, as pip takes it; None if it says none.

        It may end in `.*`.
        """
        if self.name == "gpu":
            return gpu_compiler_version()
        for requirement in metadata.requires("jax") or ():
            if match := re.match(r"libtpu\s*==\s*([\w.]+\*?)", requirement):
                return match[1]
        return None

    def folder(self) -> Path:
        """Return the private folder of this version."""
        return folder() / f"{self.package}-{(self.version() or '').removesuffix('.*')}"

    def installed(self) -> Path | None:
        """Return the file where the environment itself has the package."""
        try:
            spec = importlib.util.find_spec(self.module)
        except ModuleNotFoundError:
            return None
        for place in (spec and spec.submodule_search_locations) or ():
            if (path := Path(place) / self.file).is_file():
                return path
        return None

    def path(self) -> Path | None:
        """Return the file: the environment's own, else the one that was fetched; None without."""
        fetched = self.folder() / self.file
        return self.installed() or (fetched if fetched.is_file() else None)


COMPILERS = {
    "gpu": Compiler(
        "gpu",
        "NVIDIA GPUs",
        "jax-cuda13-pjrt",
        "xla_cuda_plugin.so",
        "jax_plugins.xla_cuda13",
    ),
    "tpu": Compiler("tpu", "Cloud TPUs", "libtpu", "libtpu.so", "libtpu"),
}


def folder() -> Path:
    """Return the folder of the compilers: `SHARDNB_COMPILERS`, else one in the user's data."""
    named = os.environ.get("SHARDNB_COMPILERS")
    return Path(named) if named else user_data_path("shardnb") / "compilers"


def gpu_plugin() -> Path | None:
    """Return the file of XLA's GPU compiler, None where there is none."""
    return COMPILERS["gpu"].path()


def tpu_library() -> Path | None:
    """Return the file of libtpu, None where there is none."""
    return COMPILERS["tpu"].path()


_NONE = "(from versions: none)"


def fetch(compiler: Compiler) -> Path:
    """Fetch a compiler with pip or uv, and give its file.

    The installer checks the package's hash and continues from its cache. The file appears in its
    folder at once, whole, or not at all. Raises `RuntimeError` with the installer's last words.
    """
    version = compiler.version()
    if version is None:
        raise RuntimeError(f"the installed jax does not say which {compiler.package} it needs")
    if (there := compiler.path()) is not None:
        return there
    target = compiler.folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as place:
        command = [*_installer(), "--no-deps", "--target", place, f"{compiler.package}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            last = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
            # What pip says without a network, as if there were no such package.
            none = "; the package index cannot be reached, or has none" if _NONE in last else ""
            raise RuntimeError(f"{compiler.package} {version} could not be fetched{none}: {last}")
        files = sorted(Path(place).rglob(compiler.file))
        if not files:
            raise RuntimeError(f"{compiler.package} {version} has no {compiler.file}")
        kept = Path(place) / "kept"
        kept.mkdir()
        shutil.move(files[0], kept / compiler.file)
        # Another process may have been quicker: its folder is as good.
        if not target.exists():
            kept.rename(target)
    return target / compiler.file


def _installer() -> Sequence[str]:
    """Return the command that installs a package into a folder."""
    options = ("--disable-pip-version-check", "--quiet", "--no-input")
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip", "install", *options)
    if (uv := shutil.which("uv")) is not None:
        return (uv, "pip", "install", "--quiet", "--python", sys.executable)
    # An environment that uv made has no pip, but another Python's can install for it.
    if (pip := shutil.which("pip") or shutil.which("pip3")) is not None:
        return (pip, "--python", sys.executable, "install", *options)
    raise RuntimeError("fetching a compiler needs pip or uv, but neither is on the PATH")
