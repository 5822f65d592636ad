"""The IPython magics: a cell compiled as one program over a mesh."""

from __future__ import annotations

from typing import Any

_LOADED = "ShardMagics"


def load_ipython_extension(shell: Any) -> None:
    """Add `%mesh`, `%%shard` and `%shard` to a shell, with their tab completion."""
    from shardnb.magics.magics import ShardMagics
    from shardnb.mesh import follow

    if _LOADED in shell.magics_manager.registry:
        return
    magics = ShardMagics(shell)
    shell.register_magics(magics)
    magics.cells.watch()
    shell.Completer.custom_matchers.append(magics.matcher)
    magics.channel.open()
    follow(magics.notebook_mesh.grid)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics from a shell."""
    magics = shell.magics_manager.registry.pop(_LOADED, None)
    if magics is None:
        return
    from shardnb.mesh import unfollow

    for kind, name in (("line", "mesh"), ("line", "shard"), ("cell", "shard")):
        shell.magics_manager.magics[kind].pop(name, None)
    magics.cells.unwatch()
    magics.channel.close()
    magics.hosts.stop()
    unfollow(magics.notebook_mesh.grid)
    magics.explain_any_cell(on=False)
    shell.Completer.custom_matchers.remove(magics.matcher)
