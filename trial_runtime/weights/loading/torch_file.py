"""Reading files of ``torch.save``, and the checks before torch may unpickle one."""

from __future__ import annotations

import io
import struct
from typing import Any, Final

from trial_runtime.errors import CorruptWeights, MissingExtra, WeightsError
from trial_runtime.torch_version import why_unsafe
from trial_runtime.weights.read.held import Held

#: Records of a file: one for each tensor, and a few. Each costs torch some memory.
_MAX_RECORDS: Final = 200_000

_END: Final = struct.Struct("<4s4H2LH")  # of the directory; APPNOTE 4.3.16
_LOCATOR: Final = struct.Struct("<4sLQL")  # 4.3.15
_END_64: Final = struct.Struct("<4sQ2H2L4Q")  # 4.3.14
_RECORD: Final = struct.Struct("<4s6H3L5H2L")  # 4.3.12
_LARGE: Final = 0xFFFFFFFF


def load(held: Held) -> Any:
    """The contents of a file of ``torch.save``: tensors and plain values, nothing else.

    Raises:
        MissingExtra: torch is not installed.
        WeightsError: this torch is no fence against hostile files, or it is more than weights.
        CorruptWeights: it is no such file, damaged, or takes more memory than it has bytes.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "this file was written by torch.save, and torch is not installed",
            hint="pip install 'bequeath[torch]', or have its writer use trial_runtime.weights",
            where=held.path,
        ) from None
    unsafe = why_unsafe(str(torch.__version__))
    if unsafe:
        raise WeightsError(
            f"is not read: {unsafe}",
            hint="pip install 'torch>=2.10', or have its writer use trial_runtime.weights.save or "
            "safetensors, which any torch reads",
            where=held.path,
        )
    fault = _archive_fault(held.memory)
    if fault:
        raise CorruptWeights(f"is no file of torch.save: {fault}", where=held.path)
    return _unpickled(torch, held)


def _unpickled(torch: Any, held: Held) -> Any:
    import pickle  # for the name of its error: torch unpickles, and tensors only

    try:
        file = io.BufferedReader(_Reader(held.memory))
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as fault:
        raise WeightsError(
            f"is not read: {_first_line(fault)}",
            hint="only tensors and plain values are read from files of torch.save, since "
            "unpickling runs whatever a file says; save the state_dict() itself",
            where=held.path,
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, AttributeError) as fault:
        raise CorruptWeights(
            f"torch cannot read these {held.nbytes:,} bytes: {_first_line(fault)}", where=held.path
        ) from fault


class _Reader(io.RawIOBase):
    """Memory as a file. Unlike a map's own, its reads go straight to where torch wants them."""

    def __init__(self, memory: Any) -> None:
        self._view = memoryview(memory)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        piece = self._view[self._at : self._at + len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._view)}[whence]
        self._at = max(0, begin + offset)
        return self._at


def _archive_fault(data: Any) -> str:
    """The reason why an archive must not be unpacked, or ''; '' also if it is no archive.

    torch stores records as they are, so all of them take no more than the file. Compressed ones
    are somebody else's: a megabyte of them can ask for a gigabyte. Only the one form that torch
    writes is read, so that two readers cannot take the same bytes for different directories.
    """
    size = len(data)
    if bytes(data[:4]) != b"PK\x03\x04":
        return ""
    try:
        return _directory_fault(data, size)
    except (struct.error, IndexError):
        return "its directory cannot be read"


def _directory_fault(data: Any, size: int) -> str:
    end = size - _END.size
    signature, _, _, _, count, length, begin, comment = _END.unpack_from(data, end)
    if signature != b"PK\x05\x06" or comment:
        return "its directory is not at its end"
    locator = end - _LOCATOR.size
    if locator > 0 and bytes(data[locator : locator + 4]) == b"PK\x06\x07":
        _, _, at, _ = _LOCATOR.unpack_from(data, locator)
        end = locator - _END_64.size
        fields = _END_64.unpack_from(data, end)
        if at != end or fields[0] != b"PK\x06\x06":
            return "its directory is not at its end"
        count, length, begin = fields[7], fields[8], fields[9]
    if begin + length != end:
        return "its directory is not at its end"
    if count > _MAX_RECORDS:
        return f"{count:,} records ({_MAX_RECORDS:,} are allowed)"
    total, at = 0, begin
    for _ in range(count):
        record = _RECORD.unpack_from(data, at)
        method, packed, plain, name, extra, note = record[4], *record[8:13]
        if record[0] != b"PK\x01\x02":
            return "its directory cannot be read"
        if method:
            return "a record is compressed, which torch never does"
        after = at + _RECORD.size + name
        if _LARGE in (packed, plain):
            plain = _plain_size(bytes(data[after : after + extra]), plain)
        total += plain
        at = after + extra + note
        if total > size:
            return f"its records would take more than the {size:,} bytes of the file"
    return "" if at == end else "its directory cannot be read"


def _plain_size(extra: bytes, plain: int) -> int:
    """The size of a record of 4 GiB or more: the first number in the field of that kind."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            return int(struct.unpack_from("<Q", extra, at + 4)[0]) if plain == _LARGE else plain
        at += 4 + length
    return plain


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]
