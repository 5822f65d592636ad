"""The way on which a notebook's editor asks what an edited `%%shard` line leads to.

The front end opens a comm to the target `shardnb.preview` and sends `number`, `cell` (its id) and
`code` (its text); each message gets one answer with the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from comm import get_comm_manager
from comm.base_comm import BaseComm

from shardnb.bugs import contained

TARGET = "shardnb.preview"

Answer = Mapping[str, Any]
"""Its `kind`, and what belongs to that:

preview   `types`: source, line, name and type of each value that a line of the report assigns
compiled  the line states the program that was compiled
refused   `said`: what is wrong with the line
none      `said`: why there is no preview of it
busy      a cell is being traced
unknown   the kernel has not compiled a cell with this body
"""

UNKNOWN: Answer = {"kind": "unknown"}


class PreviewChannel:
    """Answers the front end's questions, one after the other."""

    def __init__(self, answer: Callable[[str, str], Answer]) -> None:
        """Ask `answer(cell, code)`."""
        self._answer = answer

    def open(self) -> None:
        """Let front ends ask."""
        get_comm_manager().register_target(TARGET, self._opened)

    def close(self) -> None:
        """Let no other front end ask."""
        get_comm_manager().unregister_target(TARGET, self._opened)

    def _opened(self, channel: BaseComm, _: Mapping[str, Any]) -> None:
        channel.on_msg(lambda message: self._asked(channel, message["content"].get("data")))

    def _asked(self, channel: BaseComm, data: Any) -> None:
        match data:
            case {"number": int(number), "cell": str(cell), "code": str(code)}:
                answer = UNKNOWN
                with contained("the preview of a line"):
                    answer = self._answer(cell, code)
                channel.send({"number": number, **answer})
