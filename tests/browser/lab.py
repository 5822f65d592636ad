"""JupyterLab on loopback with everything of its own in a folder, and a page that looks at it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MIME = "application/vnd.shardnb.report.v1+json"

# Resolves when the notebook is there and, where it is to have one, its kernel answers.
_READY = """async (kernel) => {
  const app = window.jupyterapp;
  await app.started;
  await app.restored;
  let panel;
  for (let i = 0; i < 600 && !(panel = app.shell.currentWidget)?.sessionContext; i++) {
    await new Promise(done => setTimeout(done, 50));
  }
  await panel.context.ready;
  if (kernel) {
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
  }
}"""


@dataclass
class Lab:
    """A running JupyterLab or Notebook: where it is, its token, its folder of notebooks."""

    app: str
    url: str
    token: str
    notebooks: Path

    def write(self, name: str, cells: Sequence[Mapping[str, Any]], *, kernel: bool = True) -> str:
        """Write a notebook of code cells, each a dict of its source, id and outputs."""
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(**cell) for cell in cells]
        book.metadata["language_info"] = {"name": "python"}
        if kernel:
            spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            book.metadata["kernelspec"] = spec
        (self.notebooks / f"{name}.ipynb").write_text(nbformat.writes(book), encoding="utf-8")
        return name

    def open(self, page: Page, name: str, *, kernel: bool = True) -> None:
        """Show a notebook, in a workspace of its own, and wait until it can be used."""
        workspace = f"lab/workspaces/{secrets.token_hex(8)}/tree"
        place = workspace if self.app == "lab" else "notebooks"
        page.goto(f"{self.url}/{place}/{name}.ipynb?token={self.token}")
        page.wait_for_function("window.jupyterapp")
        page.evaluate(_READY, kernel)


def run_all(page: Page) -> None:
    """Run all cells, and wait for them."""
    run = "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
    page.evaluate(run)


def command(page: Page, name: str) -> None:
    """Execute a command of JupyterLab."""
    page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)


def report_output(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output of a cell that holds a report."""
    bundle = {MIME: data, "text/plain": "a report"}
    return nbformat.v4.new_output("display_data", data=bundle)


@contextmanager
def serve(folder: Path, app: str = "lab") -> Iterator[Lab]:
    """Serve JupyterLab (or Notebook, with `app="notebook"`) from a folder until the end."""
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    token, port = secrets.token_hex(16), _free_port()
    log = (folder / "server.log").open("wb")
    server = subprocess.Popen(
        _command(app, port, token, notebooks), env=_environment(folder), stdout=log, stderr=log
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, token, server, folder / "server.log")
        yield Lab(app, url, token, notebooks)
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            # Its kernels leave by themselves once their parent is gone.
            server.kill()
            server.wait()
        log.close()


def new_page(browser: Browser, *, width: int = 1280, height: int = 1000) -> Page:
    """Open a page of its own, with nothing of another's."""
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.set_default_timeout(30_000)
    return page


def _command(app: str, port: int, token: str, notebooks: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "jupyter", app, "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", "--port-retries=0"),
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={notebooks}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which this checkout's extension is found and nothing is kept."""
    extensions = folder / "share" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "shardnb").symlink_to(ROOT / "labextension" / "dist")
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "JUPYTER_PATH": "share",
    }
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    folders = {name: str(folder / place) for name, place in own.items()}
    return os.environ | folders | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, token: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/api?token={token}"):  # noqa: S310
                return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-4000:]}")
