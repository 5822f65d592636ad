"""Tensors of torch's as arrays of NumPy's, and back; values are shared where they can be."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import torch

# NumPy has no such types: the bits are passed as integers.
_BITS: dict[Any, tuple[Any, Any]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.int8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.int8, ml_dtypes.float8_e5m2),
}


def array_of(tensor: torch.Tensor, name: str = "a tensor") -> Any:
    """Return a CPU tensor's values as a NumPy array, a meta tensor's shape; nothing is copied.

    Raises ValueError for a tensor elsewhere, or one that is not dense.
    """
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise ValueError(f"expected a dense tensor for {name}, got the layout {tensor.layout}")
    if tensor.device.type == "meta":
        return jax.ShapeDtypeStruct(tuple(tensor.shape), dtype_of(tensor.dtype))
    if tensor.device.type != "cpu":
        raise ValueError(
            f"expected a tensor on the CPU or the meta device for {name}, which is on "
            f"{tensor.device}: shardnb does not move your tensors"
        )
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype in _BITS:
        integer, dtype = _BITS[plain.dtype]
        return plain.view(integer).numpy().view(dtype)
    return plain.numpy()


def dtype_of(dtype: torch.dtype) -> Any:
    """Return NumPy's name of a type of torch's."""
    if dtype in _BITS:
        return np.dtype(_BITS[dtype][1])
    return torch.empty(0, dtype=dtype).numpy().dtype


def tensor_of(array: Any) -> torch.Tensor:
    """Return an array's values as a new CPU tensor; a shape becomes a meta tensor."""
    if isinstance(array, jax.ShapeDtypeStruct):
        return torch.empty(array.shape, dtype=_torch_dtype(array.dtype), device="meta")
    values = np.array(array)  # a copy, which torch may write to
    for integer, dtype in ((k, v[1]) for k, v in _BITS.items()):
        if values.dtype == dtype:
            return torch.from_numpy(values.view(np.dtype(f"i{values.itemsize}"))).view(integer)
    return torch.from_numpy(values)


def _torch_dtype(dtype: Any) -> Any:
    for named, (_, bits) in _BITS.items():
        if np.dtype(dtype) == bits:
            return named
    return torch.from_numpy(np.empty(0, dtype)).dtype
