"""HLO text without what says where it came from: two processes have other stacks of frames."""

from __future__ import annotations

import re

_TABLE = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*\n*", re.MULTILINE
)
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')


def without_metadata(hlo: str) -> str:
    r"""Return HLO text without metadata and without the tables of frames.

    >>> without_metadata('ROOT %a = f32[4]{0} sine(%x), metadata={op_name="f[{1}]"}')
    'ROOT %a = f32[4]{0} sine(%x)'
    """
    return _METADATA.sub("", _TABLE.sub("", hlo))
