"""Arrays that stay on the hosts, as the notebook names them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from shardnb.hosts import process
from shardnb.hosts.engines import Engines
from shardnb.hosts.pickling import CannotSend, Sender, by_value
from shardnb.views import hosts as words


class RemoteArray:
    """An array of a `%%shard` cell that stays, sharded, on the hosts of `%mesh --hosts`.

    It prints its sharding; the next `%%shard` cell reads it without a transfer. `fetch()`, or
    `numpy.asarray`, brings its values into the kernel. `spec` is its `PartitionSpec`.
    """

    def __init__(self, engines: Engines, key: str, info: process.ArrayInfo) -> None:
        """Name an array by its key in the engines, which drop it when this object is gone."""
        self.engines, self.key, self._info = engines, key, info
        weakref.finalize(self, engines.released.append, key).atexit = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return self._info.shape

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self._info.dtype

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape))

    @property
    def spec(self) -> Any:
        """Its `PartitionSpec`; None where its sharding has none."""
        return self._info.spec

    def fetch(self) -> np.ndarray[Any, Any]:
        """Return its values, each block from one host. Of random keys these are the key data.

        Raises `HostsEnded` where the hosts are gone, or one dies meanwhile.
        """
        parts = self.engines.call(process.blocks, self.key, doing=words.FETCHING)
        blocks = [block for of_host in parts for block in of_host]
        sizes = zip(*([end for _, end in block.place] for block in blocks), strict=True)
        shape = tuple(max(ends) for ends in sizes)
        whole = np.empty(shape, blocks[0].values.dtype)
        for block in blocks:
            whole[tuple(slice(*place) for place in block.place)] = block.values
        return whole

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:  # noqa: FBT001
        if copy is False:
            raise ValueError(words.FETCH_COPIES)
        values = self.fetch()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        """Say what it holds, how it is sharded, and what is on which host."""
        info = self._info
        spec = None if info.spec is None else str(info.spec).replace("PartitionSpec", "P")
        return words.array(str(info.dtype), info.shape, spec, info.axes, info.places)


class ToEngines(Sender):
    """Pickles for the engines: an array that they have is sent by its key alone."""

    def __init__(self, engines: Engines, namespace: dict[str, Any], files: Any) -> None:
        """Begin an empty pickle for these engines."""
        super().__init__(namespace, files)
        self._engines = engines
        self.new: dict[str, Any] = {}

    def reducer_override(self, value: Any) -> Any:
        """Say how a value is made again there."""
        if isinstance(value, RemoteArray):
            if value.engines is not self._engines:
                raise CannotSend(words.OTHER_HOSTS)
            return kept, (value.key,)
        return super().reducer_override(value)

    def reduced_array(self, array: Any) -> Any:
        """Send an array's values once: later the engines have it."""
        key = self._engines.key_of(array)
        if key is not None:
            return kept, (key,)
        key = f"kernel {id(array)} {self._engines.next_number()}"
        self.new[key] = array
        make, made_from, *rest = by_value(array)
        if any(part is not None for part in rest):
            raise CannotSend(f"an array of {type(array).__name__}")
        return keeping, (key, make, made_from)

    def arrived(self) -> None:
        """Remember which arrays the engines have now."""
        for key, array in self.new.items():
            self._engines.remember(array, key)


def kept(key: str) -> Any:
    """Return an array that is kept in this process."""
    return process.ARRAYS[key]


def keeping(key: str, make: Callable[..., Any], made_from: tuple[Any, ...]) -> Any:
    """Make an array in this process, and keep it."""
    process.ARRAYS[key] = array = make(*made_from)
    return array
