"""Tensors of torch and numpy as plain bytes, without copying where that can be."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from trial_runtime.errors import WeightsError
from trial_runtime.weights.format import dtypes
from trial_runtime.weights.format.skeleton import is_torch_tensor


@dataclass(frozen=True)
class Staged:
    """One tensor, ready to be written."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: memoryview  # flat, of single bytes; keeps its owner alive
    like: str  # "torch" or "numpy"
    identity: Hashable  # equal for tied tensors: the same elements of the same memory

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


def stage(name: str, tensor: Any) -> Staged:
    """Lay a tensor out as little-endian bytes in C order.

    Contiguous tensors in the memory of the CPU are not copied: the bytes written are those
    that are there while :func:`save` runs, so nobody may train on meanwhile.

    Raises:
        WeightsError: sparse, quantised or meta tensors, object arrays.
    """
    return _stage_torch(name, tensor) if is_torch_tensor(tensor) else _stage_numpy(name, tensor)


def dtype_of(name: str, tensor: Any) -> str:
    """Our name of a tensor's or array's element type."""
    of = dtypes.of_torch if is_torch_tensor(tensor) else dtypes.of_numpy
    return of(tensor.dtype, f"tensor {name!r}")


def _stage_torch(name: str, tensor: Any) -> Staged:
    import torch

    dtype = dtypes.of_torch(tensor.dtype, f"tensor {name!r}")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        kind = "quantised" if tensor.is_quantized else f"{tensor.layout} ({tensor.device})"
        raise WeightsError(
            f"a tensor of layout {kind} cannot be stored",
            hint="store its dense parts (values, indices, scale) instead",
            where=f"tensor {name!r}",
        )
    detached = tensor.detach()
    identity: Hashable = (
        "torch",
        str(detached.device),
        detached.data_ptr(),
        tuple(detached.stride()),
        tuple(detached.shape),
        dtype,
        detached.is_conj(),
        detached.is_neg(),
    )
    flat = detached.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    data = memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")
    if not data.nbytes:  # empty tensors share the null pointer and are not tied for it
        identity = ("empty", name)
    return Staged(name, dtype, tuple(tensor.shape), data, "torch", identity)


def _stage_numpy(name: str, array: Any) -> Staged:
    import numpy as np

    dtype = dtypes.of_numpy(array.dtype, f"tensor {name!r}")
    if isinstance(array, np.ma.MaskedArray):
        raise WeightsError(
            "a masked array cannot be stored",
            hint="store its data and its mask",
            where=f"tensor {name!r}",
        )
    shape = tuple(array.shape)
    identity: Hashable = (
        "numpy",
        array.__array_interface__["data"][0],
        array.strides,
        shape,
        array.dtype.str,
    )
    little: Any = np.ascontiguousarray(array, dtype=dtypes.to_numpy(dtype, name)).reshape(-1)
    data = memoryview(little.view(np.uint8)) if little.size else memoryview(b"")
    if not data.nbytes:
        identity = ("empty", name)
    return Staged(name, dtype, shape, data, "numpy", identity)


def tensor_over(
    data: Any, offset: int, form: tuple[str, tuple[int, ...]], like: str, where: str
) -> Any:
    """A tensor or array over bytes of a buffer, sharing its memory.

    Args:
        data: the buffer; for torch a writable one.
        offset: of the first byte in it.
        form: our name of the element type, such as ``F32``, and the shape.
        like: ``torch`` or ``numpy``.
        where: the tensor's name, for the error.

    Raises:
        WeightsError: the library has no such type.
    """
    library: Any
    dtype, shape = form
    if like == "torch":
        import torch

        library, wanted = torch, dtypes.to_torch(dtype, where)
    else:
        import numpy as np

        library, wanted = np, dtypes.to_numpy(dtype, where)
    count = math.prod(shape)
    if not count:
        return library.empty(shape, dtype=wanted)
    return library.frombuffer(data, dtype=wanted, count=count, offset=offset).reshape(shape)
