"""The types of tensor elements that weights may have, and what each library calls them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trial_runtime.errors import WeightsError


class DType(NamedTuple):
    """One element type.

    ``header`` and ``trailing`` are its description in a data file: types that older readers
    of safetensors do not know (complex, the rarer float8) are declared as a plain type
    with one more dimension of ``trailing`` elements; the bytes are the same.
    """

    itemsize: int  # bytes
    numpy: str | None  # None: numpy has no such type
    torch: str | None  # attribute of the torch module
    header: str
    trailing: int = 0


DTYPES: Final[dict[str, DType]] = {
    "F64": DType(8, "<f8", "float64", "F64"),
    "F32": DType(4, "<f4", "float32", "F32"),
    "F16": DType(2, "<f2", "float16", "F16"),
    "BF16": DType(2, None, "bfloat16", "BF16"),
    "F8_E4M3": DType(1, None, "float8_e4m3fn", "F8_E4M3"),
    "F8_E5M2": DType(1, None, "float8_e5m2", "F8_E5M2"),
    "F8_E4M3FNUZ": DType(1, None, "float8_e4m3fnuz", "U8"),
    "F8_E5M2FNUZ": DType(1, None, "float8_e5m2fnuz", "U8"),
    "F8_E8M0": DType(1, None, "float8_e8m0fnu", "U8"),
    "I64": DType(8, "<i8", "int64", "I64"),
    "I32": DType(4, "<i4", "int32", "I32"),
    "I16": DType(2, "<i2", "int16", "I16"),
    "I8": DType(1, "|i1", "int8", "I8"),
    "U64": DType(8, "<u8", "uint64", "U64"),
    "U32": DType(4, "<u4", "uint32", "U32"),
    "U16": DType(2, "<u2", "uint16", "U16"),
    "U8": DType(1, "|u1", "uint8", "U8"),
    "BOOL": DType(1, "|b1", "bool", "BOOL"),
    "C64": DType(8, "<c8", "complex64", "F32", trailing=2),
    "C128": DType(16, "<c16", "complex128", "F64", trailing=2),
}

_BY_NUMPY: Final = {spec.numpy: name for name, spec in DTYPES.items() if spec.numpy}
_BY_TORCH: Final = {f"torch.{spec.torch}": name for name, spec in DTYPES.items() if spec.torch}


def kind(name: str) -> str:
    """``float``, ``integer``, ``bool`` or ``complex``: within a kind, values may be converted."""
    if name.startswith(("F", "BF")):
        return "float"
    if name.startswith("C"):
        return "complex"
    return "bool" if name == "BOOL" else "integer"


def of_numpy(dtype: Any, where: str) -> str:
    """The name of a numpy dtype; byte order is not part of it (stored little-endian)."""
    name = _BY_NUMPY.get(dtype.newbyteorder("<").str)
    if name is None:
        raise WeightsError(
            f"arrays of dtype {dtype} cannot be stored",
            hint="convert it to a numeric dtype of at most 64 bits, or to a list",
            where=where,
        )
    return name


def of_torch(dtype: Any, where: str) -> str:
    """The name of a torch dtype."""
    name = _BY_TORCH.get(str(dtype))
    if name is None:
        raise WeightsError(
            f"tensors of dtype {dtype} cannot be stored",
            hint="convert it to a dtype of whole bytes, such as torch.uint8",
            where=where,
        )
    return name


def to_numpy(name: str, where: str) -> Any:
    """The numpy dtype of a name.

    Raises:
        WeightsError: numpy has no such type (bfloat16, float8). Its bits are not given
            out as integers in disguise: arithmetic on them would yield nonsense.
    """
    import numpy as np

    spelled = DTYPES[name].numpy
    if spelled is None:
        raise WeightsError(
            f"numpy has no type for {name}",
            hint="load it with torch installed and framework='torch', "
            "or let the writer convert it to float32",
            where=where,
        )
    return np.dtype(spelled)


def to_torch(name: str, where: str) -> Any:
    """The torch dtype of a name, if this torch has it."""
    import torch

    dtype = getattr(torch, DTYPES[name].torch or "", None)
    if dtype is None:
        raise WeightsError(f"torch {torch.__version__} has no type for {name}", where=where)
    return dtype
